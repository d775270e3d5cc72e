//! Known answers of probes that wait for a device's interrupts.

use crate::boards::x86_64;
use crate::probes::{cells, counter, measure};
use punctual_harness::{Place, count, need};

/// A kernel with PREEMPT_RT and one CPU is where turning the interrupt off in a thread with
/// real-time priority would never end.
#[test]
fn the_real_time_clock_interrupts_at_its_rate() {
    need!(x86_64());
    let place = Place::of_build();
    let probes = [64, 1_024, 8_192].map(|rate| format!("rtc:rate={rate}")).join(" ");
    measure(&place, "debian:none,debian:rt", &format!("{probes} -D 1s")).with(0);
    for model in ["none", "rt"] {
        let found = cells(&place, &format!("p/debian-{model}-0"));
        assert_eq!(found.len(), 3, "{found:?}");
        for (cell, rate) in found.iter().zip([64, 1_024, 8_192]) {
            let period = count(cell, "interval_ns");
            assert_eq!(period, 1_000_000_000 / rate, "{cell}");
            let (samples, missed) = (count(cell, "samples"), count(cell, "missed"));
            assert!((rate - 3..=rate).contains(&(samples + missed)), "{cell}");
            let [min, max] = ["min_ns", "max_ns"].map(|key| cell[key].as_i64().unwrap());
            // The mean interval, from the sum of all of them.
            let mean = cell["avg_ns"].as_f64().unwrap() + period as f64;
            let mean = mean * samples as f64 / (samples + missed) as f64;
            println!("{model}, {rate} Hz: mean {mean:.1} ns, {min} to {max} ns, {missed} missed");
            assert!((mean / period as f64 - 1.0).abs() < 0.001, "{cell}");
            assert!(min < 0 && max > 0, "a late one makes the next one short: {cell}");
            assert_eq!(cell["conditions"][0]["id"], "rtc-emulated");
        }
    }
}

/// Without a priority it has to wait for its turn among the processes of the load.
#[test]
fn a_driver_in_user_space_runs_at_the_interrupt_if_it_has_the_priority() {
    need!(x86_64());
    let place = Place::of_build();
    let probes = "uio uio:policy=other --load none,hackbench:groups=4 -D 300ms --warmup 100ms";
    measure(&place, "debian:rt", probes).with(0);
    let found = cells(&place, "p/debian-rt-0");
    let max = |policy: &str, load: &str| {
        let is_it = |cell: &&serde_json::Value| {
            cell["threads"][0]["policy"] == policy
                && cell["load"].as_str().unwrap().starts_with(load)
        };
        let cell = found.iter().find(is_it).unwrap();
        let (min, max) = (count(cell, "min_ns"), count(cell, "max_ns"));
        let [lost, unanswered] = ["lost", "unanswered"].map(|name| counter(cell, name));
        let samples = count(cell, "samples");
        println!("{policy}, {load}: {samples} interrupts, {min} to {max} ns, {lost} lost");
        // Without the priority each may wait for most of the cell.
        let least = if (policy, load) == ("other", "hackbench") { 1 } else { 10 };
        assert!(samples >= least && lost == 0 && unanswered <= 1, "{cell}");
        (min, max)
    };
    let [(least, idle), (_, loaded)] = ["none", "hackbench"].map(|load| max("fifo", load));
    assert!(idle <= 2 * least && loaded <= 3 * least, "{least} {idle} {loaded}");
    let [_, (_, waited)] = ["none", "hackbench"].map(|load| max("other", load));
    assert!(waited >= 5 * loaded, "{waited} {loaded}");
}
