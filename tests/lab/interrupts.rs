//! Known answers of probes that wait for a device's interrupts.

use crate::boards::x86_64;
use crate::probes::{cells, measure};
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
        for (cell, rate) in
            cells(&place, &format!("p/debian-{model}-0")).iter().zip([64, 1_024, 8_192])
        {
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
