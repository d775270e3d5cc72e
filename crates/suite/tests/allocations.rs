//! No probe allocates between two samples.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use punctual_core::aim::Aim;
use punctual_core::stats::Limits;
use punctual_harness::Folder;
use punctual_suite::facts::FactsRoot;
use punctual_suite::knobs::Journal;
use punctual_suite::probes::PROBES;
use punctual_suite::recorder::Recorder;
use punctual_suite::registry::probe::{By, Companion, Pace, Stage, State, Stop, Window};
use punctual_sys::alloc::{Counting, thread_allocations};
use punctual_sys::clock::monotonic_ns;
use punctual_sys::sched::Policy;
use punctual_sys::thread::{accept_wakes, wake};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SAMPLES: u64 = 3_000;
/// Probes that take longer for so many are content with these.
const AT_LEAST: u64 = 100;
const AT_MOST_NS: u64 = 4_000_000_000;
const INTERVAL_NS: u64 = 500_000;

/// Allocations of a run of `samples` samples in all threads that take part; warm-up has none. In a
/// thread of its own, whose scheduling a probe may change.
fn allocations(probe: &'static str, params: &'static [(&str, &str)], samples: u64) -> u64 {
    std::thread::spawn(move || allocations_here(probe, params, samples)).join().unwrap()
}

fn allocations_here(probe: &str, params: &[(&str, &str)], samples: u64) -> u64 {
    let params: BTreeMap<_, _> =
        params.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let entry = PROBES.iter().find(|entry| entry.name == probe).unwrap();
    let State::There(open) = entry.state else { panic!("{probe} is planned") };
    let values = entry.read(&params).unwrap();
    let folder = Folder::new("allocations");
    let mut journal = Journal::in_folder(&folder.path("journal")).unwrap();
    let root = FactsRoot::live();
    let interval_ns = if entry.pace == Pace::BackToBack { 0 } else { INTERVAL_NS };
    let mut stage = Stage {
        threads: 1,
        bound: punctual_sys::affinity::CpuSet::of(0),
        scheduling: (Policy::Fifo, 80),
        interval_ns,
        dither: None,
        break_ns: i64::MAX,
        journal: &mut journal,
        root: &root,
    };
    let mut session = match open(&values, &mut stage) {
        // This machine may not have what the probe measures.
        Err(reason) if entry.device.is_some() || entry.needs.iter().any(|need| !(need.met)()) => {
            println!("{probe} is not tested here: {reason}");
            return 0;
        }
        opened => opened.unwrap(),
    };
    let mut thread = session.thread(0).unwrap();
    thread.prepare().unwrap();
    // Every cold path is taken: late samples, worst samples, samples above the threshold.
    let recorded = entry.by().filter(|by| *by == By::Thread);
    let mut tracks: Vec<Recorder> = recorded
        .map(|_| Recorder::new(Limits { deadline: 1, threshold: 1, ..Limits::NONE }))
        .collect();
    let first = monotonic_ns() + 50_000_000;
    for track in &mut tracks {
        track.begin(first);
    }
    let window = Window { first, end: first + AT_MOST_NS, samples, aim: Aim::NONE };
    let stop = Arc::new(Stop::default());
    let helpers = session.helpers().into_iter().map(|Companion { mut helper, .. }| {
        let stop = Arc::clone(&stop);
        std::thread::spawn(move || {
            accept_wakes();
            let before = thread_allocations();
            helper.run(&window, &stop).unwrap();
            thread_allocations() - before
        })
    });
    let helpers: Vec<_> = helpers.collect();
    let before = thread_allocations();
    thread.run(&window, &mut tracks, &stop).unwrap();
    let mut allocated = thread_allocations() - before;
    stop.set();
    for helper in helpers {
        while !helper.is_finished() {
            wake(&helper);
            std::thread::sleep(Duration::from_millis(1));
        }
        allocated += helper.join().unwrap();
    }
    session.close();
    for track in tracks {
        let count = track.finish().moments.count;
        assert!(count == samples || count >= AT_LEAST && monotonic_ns() >= window.end, "{count}");
    }
    allocated
}

#[test]
fn the_counter_counts() {
    let before = thread_allocations();
    drop(std::hint::black_box(vec![1_u8]));
    assert_eq!(thread_allocations() - before, 1);
}

/// Parameters that take other paths than the defaults.
const VARIANTS: [(&str, &[(&str, &str)]); 22] = [
    ("handoff", &[("by", "pipe"), ("pause", "10us")]),
    ("handoff", &[("by", "futex"), ("pause", "10us")]),
    ("handoff", &[("by", "sem"), ("pause", "10us")]),
    ("handoff", &[("by", "svsem"), ("pause", "10us")]),
    ("handoff", &[("by", "mqueue"), ("pause", "10us")]),
    ("handoff", &[("by", "signal"), ("pause", "10us")]),
    ("handoff", &[("by", "sigwait"), ("pause", "10us")]),
    ("handoff", &[("by", "condvar"), ("pause", "10us")]),
    ("wakeup", &[("timer", "relative")]),
    ("wakeup", &[("timer", "timerfd")]),
    ("wakeup", &[("timer", "posix")]),
    ("wakeup", &[("timer", "epoll")]),
    ("wakeup", &[("timer", "futex")]),
    ("wakeup", &[("timer", "io_uring")]),
    ("clock", &[("clock", "realtime")]),
    ("clock", &[("clock", "monotonic_raw"), ("margin", "0%")]),
    ("cpumap", &[("model", "yield"), ("threshold", "10ns")]),
    ("cpumap", &[("model", "periodic:1ms/2ms"), ("threshold", "10ns")]),
    ("inherit", &[("mutex", "plain"), ("hold", "10us"), ("spin", "10us"), ("pause", "0us")]),
    ("pulse", &[("jitter", "100us")]),
    ("sim", &[("stall", "7ms"), ("stall-every", "10")]),
    ("sim", &[("dist", "exponential"), ("order", "random")]),
];

/// A probe that is added to the registry is tested here by itself, as it is by default.
#[test]
fn no_probe_allocates_between_samples() {
    let there = PROBES.iter().filter(|entry| !entry.is_planned());
    let defaults = there.map(|entry| (entry.name, &[][..]));
    for (probe, params) in defaults.chain(VARIANTS) {
        assert_eq!(allocations(probe, params, SAMPLES), 0, "{probe} {params:?}");
    }
}

/// Nothing between warm-up and measurement waits for the address space.
#[test]
fn the_end_of_the_warm_up_asks_for_no_memory() {
    let mut recorder = Recorder::new(Limits { deadline: 1, threshold: 1, ..Limits::NONE });
    for sample in 0..1_000 {
        recorder.record(sample * 1_000, 7, 1);
    }
    let before = thread_allocations();
    assert_eq!(recorder.begin(1), Some(7));
    assert_eq!(thread_allocations() - before, 0);
    recorder.record(2, 5, 0);
    let recording = recorder.finish();
    assert_eq!((recording.moments.count, recording.moments.max), (1, 5));
    assert_eq!((recording.histogram.sparse().total(), recording.outliers.len()), (1, 1));
}
