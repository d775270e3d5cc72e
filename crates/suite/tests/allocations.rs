//! No probe allocates between two samples.

use std::collections::BTreeMap;

use punctual_suite::probes::{self, Common, Kind, Stop, Window};
use punctual_suite::recorder::{Limits, Recorder};
use punctual_sys::alloc::{Counting, thread_allocations};
use punctual_sys::clock::monotonic_ns;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SAMPLES: u64 = 3_000;
const INTERVAL_NS: u64 = 500_000;

/// Allocations of a run of `samples` samples, warm-up included in none of them.
fn allocations(probe: &str, params: &[(&str, &str)], samples: u64) -> u64 {
    let params: BTreeMap<_, _> =
        params.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let (entry, values) = probes::read(probe, &params).unwrap();
    let interval_ns = if entry.kind == Kind::Spinning { 0 } else { INTERVAL_NS };
    let common = Common { interval_ns, break_ns: i64::MAX };
    let mut thread = (entry.build)(&values, &common).unwrap()(0);
    thread.prepare().unwrap();
    // Every cold path is taken: late samples, worst samples, samples above the threshold.
    let mut recorder = Recorder::new(Limits { deadline: 1, threshold: 1 });
    let first = monotonic_ns() + 1_000_000;
    recorder.begin(first);
    let window = Window { first, end: u64::MAX, samples };
    let before = thread_allocations();
    thread.run(&window, &mut recorder, &Stop::default()).unwrap();
    let allocated = thread_allocations() - before;
    assert_eq!(recorder.finish().moments.count, samples);
    allocated
}

#[test]
fn the_counter_counts() {
    let before = thread_allocations();
    drop(std::hint::black_box(vec![1_u8]));
    assert_eq!(thread_allocations() - before, 1);
}

#[test]
fn no_probe_allocates_between_samples() {
    let probes: [(&str, &[(&str, &str)]); 9] = [
        ("wakeup", &[]),
        ("wakeup", &[("timer", "relative")]),
        ("wakeup", &[("timer", "timerfd")]),
        ("wakeup", &[("timer", "posix")]),
        ("clock", &[]),
        ("clock", &[("clock", "realtime")]),
        ("clock", &[("clock", "monotonic_raw"), ("margin", "0%")]),
        ("sim", &[("stall", "7ms"), ("stall-every", "10")]),
        ("sim", &[("dist", "exponential"), ("order", "random")]),
    ];
    for (probe, params) in probes {
        assert_eq!(allocations(probe, params, SAMPLES), 0, "{probe} {params:?}");
    }
}

/// Nothing between warm-up and measurement waits for the address space.
#[test]
fn the_end_of_the_warm_up_asks_for_no_memory() {
    let mut recorder = Recorder::new(Limits { deadline: 1, threshold: 1 });
    for sample in 0..1_000 {
        recorder.record(sample * 1_000, 7, 1);
    }
    let before = thread_allocations();
    assert_eq!(recorder.begin(1), Some(7));
    assert_eq!(thread_allocations() - before, 0);
    recorder.record(2, 5, 0);
    let recording = recorder.finish();
    assert_eq!((recording.moments.count, recording.moments.max), (1, 5));
    assert_eq!((recording.histogram.total(), recording.outliers.len()), (1, 1));
}
