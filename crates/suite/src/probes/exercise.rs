//! A probe for the engine's own tests that uses every seam at once: legs from its threads, a
//! series and intervals from the session, helpers, counters, and settings undone by the
//! journal.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use punctual_core::schema::{Condition, Role, Tells, Unit};
use punctual_sys::clock::monotonic_ns;
use punctual_sys::sched::{self, Policy};
use punctual_sys::timer::{AbsoluteSleep, Wait, Waited};

use crate::recorder::Recorder;
use crate::registry::probe::{
    By, Closed, Companion, CounterEntry, Drained, HelperThread, Pace, Primary, ProbeEntry,
    ProbeThread, SeriesEntry, Session, Stage, State, Stop, Window,
};
use crate::registry::{Choice, Default, Kind, Param, Values, any_text};

pub(super) const ENTRY: ProbeEntry = ProbeEntry {
    name: "exercise",
    summary: "every seam of the engine at once; in tests only",
    help: "Not in a build that anybody uses.",
    params: &[
        Param {
            name: "setting",
            kind: Kind::Text { value: "FILE", check: any_text },
            default: Default::Required,
            help: "a file that is set to 1 while it measures",
        },
        Param {
            name: "bad",
            kind: Kind::Count { low: 0, high: 9 },
            default: Default::Value("0"),
            help: "lost events to report",
        },
        Param {
            name: "fail",
            kind: Kind::Count { low: 0, high: 1_000 },
            default: Default::Value("0"),
            help: "the session fails at this drain; 0 for never",
        },
        Param {
            name: "trouble",
            kind: Kind::Choice(&[
                Choice::of("none", ""),
                Choice::of("error", "a thread ends with an error"),
                Choice::of("panic", "a thread panics"),
                Choice::of("helper-panic", "the helper panics"),
                Choice::of("demoted", "a thread has another policy for a while"),
                Choice::of("stuck", "a thread does not end when it is told to"),
                Choice::of("prepare-panic", "a thread panics while it is prepared"),
                Choice::of("helper-late", "the helper comes late to the measurement"),
            ]),
            default: Default::Value("none"),
            help: "what goes wrong",
        },
    ],
    overrides: &[("threads", "2"), ("interval", "2ms")],
    without: &[],
    check: |_| Ok(()),
    needs: &[],
    device: None,
    pace: Pace::Periodic,
    dithers: |_| false,
    primary: Primary {
        name: "latency",
        meaning: "a known value",
        nouns: ("stroke", "strokes"),
        by: By::Thread,
    },
    series: &[
        SeriesEntry {
            name: "first",
            meaning: "two fifths of it",
            role: Role::Leg,
            unit: Unit::Ns,
            by: By::Thread,
        },
        SeriesEntry {
            name: "queue",
            meaning: "packets of a queue that is not there",
            role: Role::Aside,
            unit: Unit::Packets,
            by: By::Session,
        },
        SeriesEntry {
            name: "second",
            meaning: "the rest of it",
            role: Role::Leg,
            unit: Unit::Ns,
            by: By::Thread,
        },
    ],
    counters: &[
        CounterEntry {
            name: "strokes",
            meaning: "samples, counted by the session",
            tells: Tells::Nothing,
        },
        CounterEntry { name: "lost", meaning: "events that were lost", tells: Tells::Loss },
    ],
    state: State::There(open),
};

/// A probe whose primary series the session records: its thread only waits for the end.
pub(super) const STAMPED: ProbeEntry = ProbeEntry {
    name: "stamped",
    summary: "samples that something else made; in tests only",
    help: "Not in a build that anybody uses.",
    params: &[],
    overrides: &[("interval", "2ms")],
    without: &[],
    check: |_| Ok(()),
    needs: &[],
    device: None,
    pace: Pace::Periodic,
    dithers: |_| false,
    primary: Primary {
        name: "latency",
        meaning: "a known value",
        nouns: ("stamp", "stamps"),
        by: By::Session,
    },
    series: &[SeriesEntry {
        name: "waits",
        meaning: "what the thread records, which is not judged",
        role: Role::Aside,
        unit: Unit::Ns,
        by: By::Thread,
    }],
    counters: &[CounterEntry { name: "drains", meaning: "calls of drain", tells: Tells::Nothing }],
    state: State::There(|_, _| Ok(Box::new(Stamped { drains: 0 }))),
};

/// A stamp of the warm-up is worth more than one of the measurement.
struct Stamped {
    drains: u64,
}

impl Session for Stamped {
    fn thread(&mut self, _: u32) -> Result<Box<dyn ProbeThread>, String> {
        Ok(Box::new(OneWait))
    }

    fn drain(&mut self, out: &mut Drained<'_>) -> io::Result<()> {
        let warm_up = out.until_ns != u64::MAX;
        self.drains += u64::from(!warm_up);
        let value = if warm_up { 900 } else { 70 };
        for tracks in out.tracks.iter_mut() {
            tracks[0].record(monotonic_ns(), value, 0);
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Closed {
        Closed { counts: vec![self.drains], notes: Vec::new() }
    }
}

/// Records one wait in each window, and ends with it.
struct OneWait;

impl ProbeThread for OneWait {
    fn run(&mut self, window: &Window, tracks: &mut [Recorder], stop: &Stop) -> io::Result<()> {
        tracks[0].record(window.first, 5_000, 0);
        while !stop.is_over(window) {
            let _ = AbsoluteSleep.until(window.end)?;
        }
        Ok(())
    }
}

fn open(values: &Values, stage: &mut Stage<'_>) -> Result<Box<dyn Session>, String> {
    let setting = PathBuf::from(values.text("setting"));
    stage.journal.setting(&setting, "1").map_err(|error| error.to_string())?;
    Ok(Box::new(Exercise {
        interval_ns: stage.interval_ns,
        bad: values.number("bad"),
        fail: values.number("fail"),
        drains: 0,
        pending: Vec::new(),
        setting,
        trouble: Trouble::of(values.text("trouble")),
        helped: Arc::default(),
    }))
}

struct Exercise {
    interval_ns: u64,
    bad: u64,
    fail: u64,
    drains: u64,
    /// Samples that are not handed over yet.
    pending: Vec<u64>,
    setting: PathBuf,
    trouble: Trouble,
    helped: Arc<AtomicU64>,
}

#[derive(Clone, Copy, PartialEq)]
enum Trouble {
    None,
    Error,
    Panic,
    HelperPanic,
    Demoted,
    Stuck,
    PreparePanic,
    HelperLate,
}

impl Trouble {
    fn of(word: &str) -> Self {
        match word {
            "error" => Self::Error,
            "panic" => Self::Panic,
            "helper-panic" => Self::HelperPanic,
            "demoted" => Self::Demoted,
            "stuck" => Self::Stuck,
            "prepare-panic" => Self::PreparePanic,
            "helper-late" => Self::HelperLate,
            _ => Self::None,
        }
    }
}

impl Session for Exercise {
    fn thread(&mut self, number: u32) -> Result<Box<dyn ProbeThread>, String> {
        Ok(Box::new(Strokes {
            interval_ns: self.interval_ns,
            number,
            // The helper and the other thread are to end with it.
            trouble: if number == 0 { self.trouble } else { Trouble::None },
            strokes: 0,
        }))
    }

    fn helpers(&mut self) -> Vec<Companion> {
        vec![Companion {
            of: 1,
            below: 3,
            cpu: None,
            name: "accompanies thread 1".to_owned(),
            helper: Box::new(Blocked { trouble: self.trouble, helped: Arc::clone(&self.helped) }),
        }]
    }

    fn drain(&mut self, out: &mut Drained<'_>) -> io::Result<()> {
        self.drains += 1;
        if self.drains == self.fail {
            return Err(io::Error::other("the trace ring is gone"));
        }
        let now = monotonic_ns();
        // The last call of the warm-up finds a sample of the measurement already.
        self.pending.push(now.max(if out.until_ns == u64::MAX { now } else { out.until_ns }));
        let due = self.pending.iter().filter(|at| **at < out.until_ns);
        for at in due {
            for tracks in out.tracks.iter_mut() {
                tracks[0].record(*at, 7, 0);
            }
        }
        self.pending.retain(|at| *at >= out.until_ns);
        let actor = out.intervals.actor("ksoftirqd/0");
        out.intervals.push(0, now - 1_000, now, actor);
        Ok(())
    }

    fn close(self: Box<Self>) -> Closed {
        let set = std::fs::read_to_string(&self.setting).unwrap_or_default();
        Closed {
            counts: vec![self.drains, self.bad],
            notes: vec![
                Condition { id: "closed".to_owned(), text: set.trim().to_owned() },
                Condition {
                    id: "helped".to_owned(),
                    text: self.helped.load(Ordering::Relaxed).to_string(),
                },
            ],
        }
    }
}

struct Strokes {
    interval_ns: u64,
    number: u32,
    trouble: Trouble,
    strokes: u32,
}

impl ProbeThread for Strokes {
    fn prepare(&mut self) -> io::Result<()> {
        assert!(self.trouble != Trouble::PreparePanic, "as it was told");
        Ok(())
    }

    fn run(&mut self, window: &Window, tracks: &mut [Recorder], stop: &Stop) -> io::Result<()> {
        let [whole, first, second] = tracks else {
            return Err(io::Error::other("three series come from a thread"));
        };
        let mut release = window.first;
        while release < window.end && !stop.is_set() {
            if AbsoluteSleep.until(release)? == Waited::Interrupted {
                continue;
            }
            let value = 100 * (i64::from(self.number) + 1);
            whole.record(release, value, 0);
            first.record(release, value * 2 / 5, 0);
            second.record(release, value * 3 / 5, 0);
            self.strokes += 1;
            // In the measurement: the warm-up of a tenth of a second has fifty.
            if self.strokes > 100 {
                match self.trouble {
                    Trouble::Error => return Err(io::Error::other("as it was told")),
                    Trouble::Panic => panic!("as it was told"),
                    Trouble::Demoted if self.strokes == 200 => {
                        sched::set(Policy::Batch, 0)?;
                    }
                    Trouble::Demoted if self.strokes == 900 => {
                        sched::set(Policy::Other, 0)?;
                    }
                    // After a block of a second, and for longer than it may take.
                    Trouble::Stuck if self.strokes > 700 => {
                        stop.set();
                        std::thread::sleep(Duration::from_secs(3_600));
                    }
                    _ => {}
                }
            }
            release += self.interval_ns;
        }
        Ok(())
    }
}

/// Sleeps as if for ever: only an interrupt ends it, in the warm-up and at the end.
struct Blocked {
    trouble: Trouble,
    /// Windows that it took part in from the start.
    helped: Arc<AtomicU64>,
}

impl HelperThread for Blocked {
    fn run(&mut self, window: &Window, stop: &Stop) -> io::Result<()> {
        let in_time = u64::from(monotonic_ns() < window.end);
        let windows = self.helped.fetch_add(in_time, Ordering::Relaxed) + in_time;
        assert!(self.trouble != Trouble::HelperPanic || windows < 2, "as it was told");
        while !stop.is_over(window) {
            if self.trouble == Trouble::HelperLate && windows < 2 {
                // As if it had lost the CPU just before it sleeps.
                while monotonic_ns() < window.end + 50_000_000 {}
            }
            let _ = AbsoluteSleep.until(window.end + 3_600_000_000_000)?;
        }
        Ok(())
    }
}
