//! Loads on a board with little memory: each fits, with the sizes that it chooses.

use serde_json::Value;

use crate::boards::x86_64;
use punctual_harness::registry::{self, entries};
use punctual_harness::{Place, count, need, run_json};

/// More than the kernel must have for everything after its start, bytes. Debian's kernel takes half
/// of the 100 MB that it is given, and QEMU does not start it with so little memory of its own.
const MEMORY: u64 = 64 << 20;

#[test]
fn every_load_works_on_a_board_with_64_mb() {
    need!(x86_64());
    let place = Place::of_build();
    let loads: Vec<_> = entries(&place, "loads")
        .iter()
        .map(|load| registry::name(load).to_owned())
        // A board has no shell for a command.
        .filter(|name| !["none", "cmd"].contains(&name.as_str()))
        .collect();
    let line = format!(
        "lab run --offline -q --no-report --replicates 1 --kernel debian:none --append mem=100M \
         --out r wakeup -D 300ms --load {}",
        loads.join(",")
    );
    place.run(&line).with(0);
    let run = run_json(&place.path.join("r/debian-none-0"));
    let memory = count(&run["facts"]["memory"], "total_bytes");
    assert!(memory < MEMORY, "{memory} bytes");
    let cells = run["cells"].as_array().unwrap();
    assert_eq!(cells.len(), loads.len());
    for (cell, load) in cells.iter().zip(&loads) {
        println!("{load}: {}", cell["load_work"]);
        assert_eq!((&cell["state"], &cell["load"]), (&"complete".into(), &load.as_str().into()));
        let parts = cell["load_work"].as_array().unwrap();
        for part in parts {
            assert_eq!((count(part, "deaths"), &part["trouble"]), (0, &Value::Null), "{load}");
        }
        // A part of a composite may need longer for its first unit.
        let mut counters = parts.iter().flat_map(|part| part["counters"].as_array().unwrap());
        assert!(counters.any(|one| count(one, "total") > 0), "{load}: {parts:?}");
    }
}

#[test]
fn a_board_without_limits_of_memory_has_no_oom_and_the_rest_goes_on() {
    need!(x86_64());
    for (append, reason) in [
        ("cgroup_disable=memory", "needs a control group with the memory controller"),
        ("sysctl.vm.panic_on_oom=2", "needs a vm.panic_on_oom other than 2"),
    ] {
        let place = Place::of_build();
        let line = format!(
            "lab run --offline -q --no-report --replicates 1 --kernel debian:none \
             --append {append} --out r wakeup --load oom,worst -D 300ms"
        );
        place.run(&line).with(4);
        let run = run_json(&place.path.join("r/debian-none-0"));
        let [oom, worst] = &run["cells"].as_array().unwrap()[..] else { panic!("{run}") };
        assert_eq!(oom["state"], "skipped", "{append}");
        assert!(oom["reason"].as_str().unwrap().contains(reason), "{append}: {}", oom["reason"]);
        assert_eq!(worst["state"], "complete", "{append}");
        for part in worst["load_work"].as_array().unwrap() {
            let trouble = part["trouble"].as_str().unwrap_or_default();
            assert_eq!(!trouble.is_empty(), part["load"] == "oom", "{append}: {part}");
        }
    }
}
