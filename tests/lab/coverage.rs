//! What loads execute of a kernel is known by name, and comes again exactly in a repeat.

use serde_json::Value;

use crate::boards::{side_by_side, x86_64};
use punctual_harness::{Place, count, items, need};

fn names(list: &Value) -> Vec<&str> {
    items(list).iter().map(|item| item.as_str().unwrap()).collect()
}

/// The blocks of the functions of this name, by cell.
fn blocks(coverage: &Value, name: &str) -> Vec<u64> {
    let mut sum = vec![0; items(&coverage["cells"]).len()];
    for function in items(&coverage["executed"]).iter().filter(|one| one["name"] == name) {
        let blocks = items(&function["blocks"]).iter().map(|number| number.as_u64().unwrap());
        sum.iter_mut().zip(blocks).for_each(|(sum, more)| *sum += more);
    }
    sum
}

#[test]
fn what_each_load_executes_is_known_by_name_and_repeats() {
    need!(x86_64());
    let place = Place::of_build();
    let common = "--offline --kernel debian:none wakeup --load none,hackbench -D 200ms";
    let watched = |folder| format!("lab sections -q --json --out {folder} {common}");
    let all = side_by_side(&place, [&watched("first"), &watched("second")]);
    let [first, second] = all.map(|ended| ended.with(0).json());
    place.run(&format!("lab run -q --no-report --out plain {common}")).with(0);
    place.run("compare --exact first plain").with(0);
    let coverage = &first[0]["coverage"];
    assert_eq!(coverage, &second[0]["coverage"]);

    // Its own work, and what a CPU does that has none.
    for (load, own) in [
        ("hackbench", ["unix_stream_sendmsg", "unix_stream_read_generic"]),
        ("none", ["do_idle", "default_idle_call"]),
    ] {
        let number = items(&coverage["cells"]).iter().position(|cell| cell["load"] == load);
        let number = number.unwrap();
        for name in own {
            let found = blocks(coverage, name);
            assert!(found[number] > 0 && found[1 - number] == 0, "{load}: {name} {found:?}");
            assert!(names(&coverage["cells"][number]["only"]).contains(&name), "{name}");
        }
    }
    for name in ["hrtimer_wakeup", "__schedule", "try_to_wake_up", "read_tsc"] {
        let found = blocks(coverage, name);
        assert!(found.iter().all(|blocks| *blocks > 0), "{name} {found:?}");
    }
    // Two of them ran before.
    for name in ["kernel_init", "load_elf_binary", "suspend_devices_and_enter"] {
        assert_eq!(blocks(coverage, name), [0, 0], "{name}");
    }

    let executed = items(&coverage["executed"]);
    let functions = count(coverage, "functions");
    assert!((30_000..80_000).contains(&functions), "{functions}");
    for (number, cell) in items(&coverage["cells"]).iter().enumerate() {
        println!("{}: {} functions, {} blocks", cell["key"], cell["functions"], cell["blocks"]);
        let of_cell = |one: &&Value| one["blocks"][number].as_u64().unwrap() > 0;
        let own: Vec<&Value> = executed.iter().filter(of_cell).collect();
        assert_eq!(count(cell, "functions"), own.len() as u64);
        let named: u64 = own.iter().map(|one| one["blocks"][number].as_u64().unwrap()).sum();
        // Hardly anything has no name.
        let all = count(cell, "blocks");
        assert!(named <= all && all < named + named / 20, "{named} {all}");
        assert!(all <= count(coverage, "blocks") && count(cell, "locking") < own.len() as u64);
        let only = own.iter().filter(|one| {
            items(&one["blocks"]).iter().filter(|blocks| blocks.as_u64().unwrap() > 0).count() == 1
        });
        assert_eq!(only.count(), items(&cell["only"]).len());
        // Sections are found in another way.
        let kinds = items(&first[0]["cells"][number]["kinds"]).iter();
        for pair in kinds.flat_map(|kind| items(&kind["pairs"])) {
            for end in ["from", "to"] {
                let name = pair[end].as_str().unwrap();
                let is_known = blocks(coverage, name)[number] > 0 || name.starts_with('[');
                assert!(is_known, "{name} in {pair}");
            }
        }
    }

    let unreached: Vec<&str> =
        items(&coverage["unreached"]).iter().map(|one| one["name"].as_str().unwrap()).collect();
    // Both take locks.
    assert!(unreached.contains(&"__do_sys_swapoff") && !unreached.contains(&"try_to_wake_up"));
    assert!(unreached.len() as u64 > count(coverage, "locking") / 2, "{}", unreached.len());
    // What takes a lock for others does not count itself.
    assert!(!unreached.iter().any(|name| name.starts_with("_raw_spin_lock")));
}
