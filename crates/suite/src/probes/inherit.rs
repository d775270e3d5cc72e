//! `inherit`: how long an urgent thread waits for a mutex that a less urgent one holds.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use punctual_core::schema::{Condition, Tells};
use punctual_core::units::BareNumber;
use punctual_sys::clock::monotonic_ns;
use punctual_sys::event::{Event, Taken};
use punctual_sys::mutex::{Mutex, Protocol};
use punctual_sys::thread;
use punctual_sys::timer::{AbsoluteSleep, Wait, Waited};
use punctual_sys::token::Token;

use super::counts::Counts;
use crate::compute::compute;
use crate::recorder::Recorder;
use crate::registry::need::PI_FUTEXES;
use crate::registry::probe::{
    By, Closed, Companion, CounterEntry, HelperThread, Pace, Primary, ProbeEntry, ProbeThread,
    Session, Stage, State, Stop, Window,
};
use crate::registry::{Choice, Default, Kind, Param, Values};

const LONG_NS: u64 = 1_000_000_000;

pub(super) const ENTRY: ProbeEntry = ProbeEntry {
    name: "inherit",
    summary: "how long an urgent thread waits for a mutex: priority inheritance (as pi_stress)",
    help: "Three threads on one CPU. The low one (priority - 2) locks a mutex and computes for \
hold=TIME; as soon as it has the mutex, the high one (priority) asks for it, and the medium one \
(priority - 1) computes for spin=TIME. Recorded is, both read by the high thread, the clock when it \
has the mutex minus the clock before it asked. With priority inheritance that is at most the rest of \
the section, hold, and what two switches take. If the medium thread computes while the high one \
waits, that is an inversion, and the cell is a FAIL; mutex=plain shows how that looks. Follows \
pi_stress of rt-tests, which shows a deadlock then and measures nothing. The mutex is a futex; what \
glibc or a language's runtime makes of it is not seen.",
    params: &[
        Param {
            name: "mutex",
            kind: Kind::Choice(&[
                Choice {
                    value: "pi",
                    help: "with priority inheritance (FUTEX_LOCK_PI)",
                    needs: &[PI_FUTEXES],
                },
                Choice::of("plain", "without (FUTEX_WAIT)"),
            ]),
            default: Default::Value("pi"),
            help: "kind of the mutex",
        },
        Param {
            name: "hold",
            kind: Kind::Time { bare: BareNumber::Microseconds, low: 1_000, high: LONG_NS },
            default: Default::Value("1ms"),
            help: "CPU time that the low thread needs with the mutex",
        },
        Param {
            name: "spin",
            kind: Kind::Time { bare: BareNumber::Microseconds, low: 1_000, high: LONG_NS },
            default: Default::Value("3ms"),
            help: "CPU time that the medium thread takes",
        },
        Param {
            name: "pause",
            kind: Kind::Time { bare: BareNumber::Microseconds, low: 0, high: 3_600_000_000_000 },
            default: Default::Value("10ms"),
            help: "from the end of a round to the next; with 0us the threads take the whole CPU",
        },
    ],
    overrides: &[("affinity", "auto")],
    without: &[],
    check,
    needs: &[],
    device: None,
    pace: Pace::BackToBack,
    dithers: |_| false,
    primary: Primary {
        name: "latency",
        meaning: "the high thread has the mutex minus it asked for it",
        nouns: ("lock", "locks"),
        by: By::Thread,
    },
    series: &[],
    counters: &[
        CounterEntry {
            name: "inversions",
            meaning: "the medium thread ran while the high one waited for the mutex that the low \
                      one held",
            tells: Tells::Fault,
        },
        CounterEntry {
            name: "uncontended",
            meaning: "the mutex was free again before the high thread asked for it",
            tells: Tells::Nothing,
        },
    ],
    state: State::There(open),
};

/// The entry's counters.
const INVERSIONS: usize = 0;
const UNCONTENDED: usize = 1;

fn check(values: &Values) -> Result<(), String> {
    if values.text("policy") == "other" {
        return Err(values.wrong("policy", "the probe needs three priorities; use fifo or rr"));
    }
    if values.known_number("priority").is_some_and(|priority| priority < 3) {
        return Err(values.wrong("priority", "the probe needs two more below it: at least 3"));
    }
    if values.word("affinity") == Some("inherited") {
        let why = "the probe needs its threads on one CPU; leave it out, or name CPUs";
        return Err(values.wrong("affinity", why));
    }
    Ok(())
}

fn open(values: &Values, stage: &mut Stage<'_>) -> Result<Box<dyn Session>, String> {
    let (policy, _) = stage.scheduling;
    if !policy.is_real_time() {
        return Err(format!(
            "three real-time priorities are needed, and {} has none",
            policy.name()
        ));
    }
    Ok(Box::new(Inherit {
        protocol: match values.text("mutex") {
            "plain" => Protocol::None,
            _ => Protocol::Inherit,
        },
        hold_ns: values.number("hold"),
        spin_ns: values.number("spin"),
        pause_ns: values.number("pause"),
        break_ns: stage.break_ns,
        triples: Vec::new(),
    }))
}

struct Inherit {
    protocol: Protocol,
    hold_ns: u64,
    spin_ns: u64,
    pause_ns: u64,
    break_ns: i64,
    triples: Vec<Arc<Triple>>,
}

/// What three threads share. A round that begins in one window may end in the next, so each side
/// names its window, identified by its end. Ends only grow, and rounds are numbered across both.
#[derive(Debug)]
struct Triple {
    mutex: Mutex,
    to_high: Event,
    to_medium: Event,
    to_low: Event,
    /// Number of the last round in which the low thread has locked the mutex, and its window.
    round: AtomicU64,
    round_in: AtomicU64,
    /// The last rounds in which the low thread was about to unlock, the medium one had begun to
    /// compute, and the high one was done.
    unlocks: AtomicU64,
    spins: AtomicU64,
    done: AtomicU64,
    /// The last window that each has left.
    low_left: AtomicU64,
    high_left: AtomicU64,
    tally: Counts<2>,
}

impl Triple {
    fn new(protocol: Protocol) -> io::Result<Self> {
        let zero = || AtomicU64::new(0);
        Ok(Self {
            mutex: Mutex::new(protocol),
            to_high: Event::new()?,
            to_medium: Event::new()?,
            to_low: Event::new()?,
            round: zero(),
            round_in: zero(),
            unlocks: zero(),
            spins: zero(),
            done: zero(),
            low_left: zero(),
            high_left: zero(),
            tally: Counts::default(),
        })
    }

    /// Whether the high thread has still to lock the mutex in this window.
    fn is_open(&self, window: &Window, done: u64) -> bool {
        self.round_in.load(Ordering::Acquire) == window.end
            && self.round.load(Ordering::Acquire) != done
    }

    fn has_low_left(&self, window: &Window) -> bool {
        self.low_left.load(Ordering::Acquire) == window.end
    }
}

impl Session for Inherit {
    fn thread(&mut self, _: u32) -> Result<Box<dyn ProbeThread>, String> {
        let triple = Triple::new(self.protocol).map_err(|error| format!("eventfd: {error}"))?;
        let triple = Arc::new(triple);
        self.triples.push(Arc::clone(&triple));
        Ok(Box::new(High { triple, break_ns: self.break_ns, thread: 0 }))
    }

    fn helpers(&mut self) -> Vec<Companion> {
        let both = |(of, triple): (u32, &Arc<Triple>)| {
            let low =
                Low { triple: Arc::clone(triple), hold_ns: self.hold_ns, pause_ns: self.pause_ns };
            let medium = Medium { triple: Arc::clone(triple), spin_ns: self.spin_ns };
            let name = |what| format!("{what} thread {of}");
            [
                Companion {
                    of,
                    below: 2,
                    cpu: None,
                    name: name("low: locks before"),
                    helper: Box::new(low),
                },
                Companion {
                    of,
                    below: 1,
                    cpu: None,
                    name: name("medium: computes beside"),
                    helper: Box::new(medium),
                },
            ]
        };
        (0..).zip(&self.triples).flat_map(both).collect()
    }

    fn longest_pause_ns(&self) -> u64 {
        self.pause_ns + self.hold_ns + self.spin_ns
    }

    fn close(self: Box<Self>) -> Closed {
        let lock = match self.protocol {
            Protocol::Inherit => "with priority inheritance (FUTEX_LOCK_PI)",
            Protocol::None => "without priority inheritance (FUTEX_WAIT)",
        };
        let inverted = |(number, triple): (u32, &Arc<Triple>)| {
            let inversions = triple.tally.of(INVERSIONS);
            (inversions > 0).then(|| Condition {
                id: "inversion".to_owned(),
                text: format!(
                    "thread {number}: priority inversion at its mutex {lock} in {inversions} rounds"
                ),
            })
        };
        Closed {
            counts: Counts::totals(self.triples.iter().map(|triple| &triple.tally)),
            notes: (0..).zip(&self.triples).filter_map(inverted).collect(),
        }
    }
}

/// The thread that measures.
struct High {
    triple: Arc<Triple>,
    break_ns: i64,
    /// The kernel's number of it.
    thread: i32,
}

impl ProbeThread for High {
    fn prepare(&mut self) -> io::Result<()> {
        self.thread = thread::id();
        Ok(())
    }

    fn run(&mut self, window: &Window, tracks: &mut [Recorder], stop: &Stop) -> io::Result<()> {
        self.triple.tally.begin();
        let ended = self.lock_rounds(window, &mut tracks[0], stop);
        // However this ended, the low thread may be waiting for it.
        self.triple.high_left.store(window.end, Ordering::Release);
        Token::post(&self.triple.to_low)?;
        ended
    }
}

impl High {
    fn lock_rounds(&self, window: &Window, recorder: &mut Recorder, stop: &Stop) -> io::Result<()> {
        let triple = &*self.triple;
        let mut done = triple.done.load(Ordering::Relaxed);
        let mut left = window.samples;
        while left > 0 && !stop.is_set() {
            if triple.has_low_left(window) && !triple.is_open(window, done) {
                break;
            }
            if triple.to_high.take()? == Taken::Interrupted
                && stop.is_over(window)
                && !triple.is_open(window, done)
            {
                break;
            }
            let round = triple.round.load(Ordering::Acquire);
            let round_in = triple.round_in.load(Ordering::Acquire);
            if round_in > window.end {
                // The low thread is in the next window already, where this round belongs.
                return Token::post(&triple.to_high);
            }
            if round_in != window.end || round == done {
                continue;
            }
            let was_free = triple.unlocks.load(Ordering::Acquire) == round;
            let asked = monotonic_ns();
            triple.mutex.lock(self.thread)?;
            let locked = monotonic_ns();
            let is_inverted = triple.spins.load(Ordering::Acquire) == round && !was_free;
            triple.mutex.unlock(self.thread)?;
            let latency = locked.wrapping_sub(asked).cast_signed();
            recorder.record(locked, latency, 0);
            triple.tally.add(INVERSIONS, u64::from(is_inverted));
            triple.tally.add(UNCONTENDED, u64::from(was_free));
            (done, left) = (round, left - 1);
            if latency > self.break_ns {
                stop.set_broken(asked, latency);
            }
            if left == 0 {
                // Before the low thread sees this round done and begins another one.
                triple.high_left.store(window.end, Ordering::Relaxed);
            }
            triple.done.store(done, Ordering::Release);
            Token::post(&triple.to_low)?;
        }
        Ok(())
    }
}

/// Holds the mutex, and begins the rounds.
struct Low {
    triple: Arc<Triple>,
    hold_ns: u64,
    pause_ns: u64,
}

impl HelperThread for Low {
    fn run(&mut self, window: &Window, stop: &Stop) -> io::Result<()> {
        let ended = self.begin_rounds(window, stop);
        // However this ended, the others may be waiting for a round that does not come.
        self.triple.low_left.store(window.end, Ordering::Release);
        Token::post(&self.triple.to_high)?;
        Token::post(&self.triple.to_medium)?;
        ended
    }
}

impl Low {
    fn begin_rounds(&self, window: &Window, stop: &Stop) -> io::Result<()> {
        let triple = &*self.triple;
        let is_alone = || triple.high_left.load(Ordering::Acquire) == window.end;
        let (own, mut next) = (thread::id(), window.first);
        let mut round = triple.round.load(Ordering::Relaxed);
        loop {
            while AbsoluteSleep.until(next)? == Waited::Interrupted {
                if stop.is_over(window) {
                    return Ok(());
                }
            }
            if monotonic_ns() >= window.end || stop.is_set() || is_alone() {
                return Ok(());
            }
            round += 1;
            triple.mutex.lock(own)?;
            triple.round_in.store(window.end, Ordering::Release);
            triple.round.store(round, Ordering::Release);
            // The high thread has the CPU from here until it waits for the mutex.
            let begun = Token::post(&triple.to_high).and_then(|()| Token::post(&triple.to_medium));
            if begun.is_ok() {
                compute(self.hold_ns);
            }
            triple.unlocks.store(round, Ordering::Release);
            triple.mutex.unlock(own)?;
            begun?;
            while triple.done.load(Ordering::Acquire) != round {
                let interrupted = triple.to_low.take()? == Taken::Interrupted;
                if is_alone() || interrupted && stop.is_over(window) {
                    return Ok(());
                }
            }
            next = monotonic_ns().saturating_add(self.pause_ns);
        }
    }
}

/// Has work of its own, and nothing to do with the mutex.
struct Medium {
    triple: Arc<Triple>,
    spin_ns: u64,
}

impl HelperThread for Medium {
    fn run(&mut self, window: &Window, stop: &Stop) -> io::Result<()> {
        let triple = &*self.triple;
        while !triple.has_low_left(window) && !stop.is_set() {
            if triple.to_medium.take()? == Taken::Interrupted && stop.is_over(window) {
                break;
            }
            let round = triple.round.load(Ordering::Acquire);
            let round_in = triple.round_in.load(Ordering::Acquire);
            if round_in > window.end {
                return Token::post(&triple.to_medium);
            }
            if round_in == window.end && round != triple.spins.load(Ordering::Relaxed) {
                triple.spins.store(round, Ordering::Release);
                compute(self.spin_ns);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::aim::Aim;
    use punctual_core::stats::Limits;
    use punctual_sys::affinity::{self, CpuSet};
    use punctual_sys::sched::{self, Policy};
    use std::sync::Barrier;
    use std::thread::{JoinHandle, spawn};

    const SPIN_NS: u64 = 2_000_000;

    fn window(from_ns: u64, end_ns: u64, samples: u64) -> Window {
        Window { first: from_ns, end: end_ns, samples, aim: Aim::NONE }
    }

    fn on_one_cpu(priority: u32) {
        let cpu = affinity::get().unwrap().iter().next().unwrap();
        affinity::set(&CpuSet::of(cpu)).unwrap();
        sched::set(Policy::Fifo, priority).unwrap();
    }

    fn session(protocol: Protocol) -> Inherit {
        Inherit {
            protocol,
            hold_ns: 500_000,
            spin_ns: SPIN_NS,
            pause_ns: 1_000_000,
            break_ns: i64::MAX,
            triples: Vec::new(),
        }
    }

    /// The recorders of two windows, and what was counted.
    fn rounds(protocol: Protocol) -> ([Recorder; 2], Vec<u64>) {
        let mut session = session(protocol);
        let mut high = session.thread(0).unwrap();
        let stop = Arc::new(Stop::default());
        let now = monotonic_ns();
        let windows = [window(now, now + (1 << 38), 5), window(now + 1, now + (1 << 39), 20)];
        // As at the gate: nobody begins before all are there.
        let gate = Arc::new(Barrier::new(3));
        let start = |companion: Companion| -> JoinHandle<()> {
            let (Companion { below, mut helper, .. }, stop) = (companion, Arc::clone(&stop));
            let gate = Arc::clone(&gate);
            spawn(move || {
                on_one_cpu(10 - below);
                gate.wait();
                windows.iter().for_each(|window| helper.run(window, &stop).unwrap());
            })
        };
        let helpers: Vec<_> = session.helpers().into_iter().map(start).collect();
        let gate = Arc::clone(&gate);
        let tracks = spawn(move || {
            on_one_cpu(10);
            high.prepare().unwrap();
            gate.wait();
            windows.map(|window| {
                let mut track = [Recorder::new(Limits::NONE)];
                track[0].begin(window.first);
                high.run(&window, &mut track, &Stop::default()).unwrap();
                let [track] = track;
                track
            })
        });
        let tracks = tracks.join().unwrap();
        helpers.into_iter().for_each(|helper| helper.join().unwrap());
        (tracks, Box::new(session).close().counts)
    }

    #[test]
    fn with_inheritance_the_medium_thread_never_runs_in_between() {
        let (tracks, counts) = rounds(Protocol::Inherit);
        assert_eq!(tracks.each_ref().map(Recorder::samples), [5, 20]);
        assert_eq!(counts, [0, 0], "inversions, and locks without a wait");
    }

    #[test]
    fn without_inheritance_every_round_is_inverted() {
        let (tracks, counts) = rounds(Protocol::None);
        assert_eq!(counts, [20, 0], "without those of the first window");
        for track in tracks {
            let moments = track.finish().moments;
            assert!(moments.min >= SPIN_NS.cast_signed(), "{moments:?}");
        }
    }

    #[test]
    fn a_mutex_that_was_inverted_is_named() {
        let mut session = session(Protocol::None);
        for _ in 0..2 {
            let _thread = session.thread(0).unwrap();
        }
        session.triples[1].tally.add(INVERSIONS, 7);
        let closed = Box::new(session).close();
        assert_eq!(closed.counts, [7, 0]);
        let [note] = closed.notes.as_slice() else { panic!("{:?}", closed.notes) };
        assert!(
            note.text.starts_with("thread 1: ") && note.text.contains("FUTEX_WAIT) in 7 rounds")
        );
    }
}
