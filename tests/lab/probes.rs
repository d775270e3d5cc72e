//! Known answers of probes: a disturbance of known size is what they measure.

use serde_json::Value;

use crate::boards::x86_64;
use crate::modules::module;
use punctual_harness::schema::validate;
use punctual_harness::{Ended, Place, count, need, run_json};

fn items(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("{value}"))
}

fn counter(cell: &Value, name: &str) -> u64 {
    let counters = items(&cell["counters"]);
    count(counters.iter().find(|counter| counter["name"] == name).unwrap(), "total")
}

/// The cells of a guest.
fn cells(place: &Place, guest: &str) -> Vec<Value> {
    let run = run_json(&place.path.join(guest));
    validate(&run);
    items(&run["cells"]).to_vec()
}

fn measure(place: &Place, kernels: &str, more: &str) -> Ended {
    place.run(&format!("lab run --offline -q --no-report --out p --kernel {kernels} {more}"))
}

/// The section is 2 ms long, and the thread that has nothing to do with it computes for 5 ms.
#[test]
fn a_mutex_without_inheritance_is_a_fail_and_one_with_it_is_bounded_by_its_section() {
    need!(x86_64());
    let place = Place::of_build();
    let probes = "inherit:hold=2ms,spin=5ms,mutex=pi inherit:hold=2ms,spin=5ms,mutex=plain";
    let more = format!("{probes} --load none,hackbench -D 500ms");
    measure(&place, "debian:none,debian:rt", &more).with(1).says(&["FAIL"]);
    place.run("show p/debian-rt-0").says(&[" inversions (the medium thread ran while ", "FAIL"]);
    for model in ["none", "rt"] {
        for cell in cells(&place, &format!("p/debian-{model}-0")) {
            let (min, max) = (count(&cell, "min_ns"), count(&cell, "max_ns"));
            let inversions = counter(&cell, "inversions");
            println!("{model}, {}: {min} to {max} ns, {inversions} inversions", cell["key"]);
            assert!(count(&cell, "samples") >= 20 && counter(&cell, "uncontended") == 0, "{cell}");
            if cell["params"]["mutex"] == "pi" {
                assert_eq!((inversions, &cell["verdict"]["outcome"]), (0, &"NONE".into()));
                assert!(min >= 2_000_000 && max <= 2_100_000, "{cell}");
            } else {
                assert_eq!(inversions, count(&cell, "samples"), "{cell}");
                assert_eq!(cell["verdict"]["outcome"], "FAIL");
                assert!(min >= 7_000_000, "{cell}");
                let notes = items(&cell["conditions"]);
                let is_named = |note: &&Value| note["id"] == "inversion";
                assert!(notes.iter().find(is_named).is_some(), "{cell}");
            }
        }
    }
}

/// A thread of priority 95 has the CPU for 3.0 ms every 37.3 ms: 300 packets arrive meanwhile.
#[test]
fn a_stall_is_as_long_in_packets_as_it_is_in_time() {
    need!(x86_64());
    let place = Place::of_build();
    let module = need!(module(&place, "spin"));
    let kernel = module.kernel("full");
    let folder = module.folder.to_str().unwrap();
    let probe = "burst:rate=100000,queue=256";
    let line = format!("lab run --offline -q --no-report --out p --modules {folder} --kernel");
    let words = line.split_whitespace().chain([kernel.as_str(), "--module"]);
    let words = words.chain(["spin period_us=37300", probe, "-D", "1s"]);
    place.words(&words.collect::<Vec<_>>()).with(0);
    let [cell] = &cells(&place, &format!("p/{}-0", kernel.replace(':', "-")))[..] else { panic!() };
    let max = count(cell, "max_ns");
    let queue = &items(&cell["threads"][0]["series"])[0];
    let (longest, dropped) = (count(queue, "max"), counter(cell, "dropped"));
    println!("{max} ns, {longest} packets, {dropped} dropped");
    assert!((2_900_000..=3_150_000).contains(&max), "{cell}");
    assert!((290..=315).contains(&longest), "{cell}");
    // 26 or 27 stalls, some of them in the warm-up or while the thread sleeps.
    assert!((15 * 30..=32 * 60).contains(&dropped), "{cell}");
}

#[test]
fn a_job_that_takes_more_than_its_reservation_is_an_overrun() {
    need!(x86_64());
    let place = Place::of_build();
    let probes = "deadline:runtime=200us,work=100us deadline:runtime=200us,work=500us";
    measure(&place, "debian:rt", &format!("{probes} -D 500ms")).with(0);
    let [fits, exceeds] = &cells(&place, "p/debian-rt-0")[..] else { panic!("two cells") };
    for cell in [fits, exceeds] {
        println!("{}: {}", cell["key"], cell["counters"]);
        assert_eq!(cell["threads"][0]["policy"], "deadline");
    }
    assert_eq!((counter(fits, "overruns"), counter(fits, "late")), (0, 0));
    let response = &items(&fits["threads"][0]["series"])[0];
    assert!((100_000..=200_000).contains(&count(response, "min")), "{response}");
    // It is stopped after 200 us of every millisecond: a job takes three of them.
    assert_eq!(counter(exceeds, "overruns"), count(exceeds, "samples"), "{exceeds}");
    assert_eq!(counter(exceeds, "late"), count(exceeds, "samples"), "{exceeds}");
    let response = &items(&exceeds["threads"][0]["series"])[0];
    assert!(count(response, "min") >= 2_000_000, "{response}");
}
