//! `clock`: how far apart two back-to-back reads of a clock can be (as gtod_latency).

use std::io;
use std::sync::Arc;
use std::time::Duration;

use punctual_core::schema::Condition;
use punctual_sys::clock::{Clock, monotonic_ns, tsc};
use punctual_sys::timer::{AbsoluteSleep, Wait, Waited};

use super::margin::{self, MARGIN, Margin, Spinning};
use crate::recorder::Recorder;
use crate::registry::need::TSC;
use crate::registry::probe::{
    By, Closed, Pace, Primary, ProbeEntry, ProbeThread, Session, Stage, State, Stop, Window,
};
use crate::registry::{Choice, Default, Kind, Param, Values};

pub(super) const ENTRY: ProbeEntry = ProbeEntry {
    name: "clock",
    summary: "time between two back-to-back reads of a clock (as gtod_latency)",
    help: "Each thread spins: it reads the clock twice, records the difference, and takes a fresh \
pair, which keeps recording out of the gaps. During a gap much longer than the median something \
else had the CPU: an interrupt, another thread, firmware, a hypervisor. Follows gtod_latency, \
which read gettimeofday. By default the thread sleeps for a tenth of the time (margin=10%), \
because a spinning real-time thread can hang a board; no pair spans such a sleep.",
    params: &[
        Param {
            name: "clock",
            kind: Kind::Choice(&[
                Choice::of("monotonic", "CLOCK_MONOTONIC"),
                Choice::of("realtime", "CLOCK_REALTIME"),
                Choice::of("monotonic_raw", "CLOCK_MONOTONIC_RAW"),
                Choice {
                    value: "tsc",
                    help: "x86: rdtscp, as nanoseconds of CLOCK_MONOTONIC_RAW",
                    needs: &[TSC],
                },
            ]),
            default: Default::Value("monotonic"),
            help: "clock to read",
        },
        MARGIN,
    ],
    overrides: &[],
    without: &[],
    check: |_| Ok(()),
    needs: &[],
    device: None,
    pace: Pace::BackToBack,
    dithers: |_| false,
    primary: Primary {
        name: "gap",
        meaning: "second read of the clock minus the first",
        nouns: ("pair of reads", "pairs of reads"),
        by: By::Thread,
    },
    series: &[],
    counters: &margin::COUNTERS,
    state: State::There(open),
};

#[derive(Clone, Copy)]
enum Source {
    Kernel(Clock),
    Tsc,
}

#[allow(clippy::unnecessary_wraps, reason = "sessions can fail to open; this one does not")]
fn open(values: &Values, stage: &mut Stage<'_>) -> Result<Box<dyn Session>, String> {
    let source = match values.text("clock") {
        "realtime" => Source::Kernel(Clock::Realtime),
        "monotonic_raw" => Source::Kernel(Clock::MonotonicRaw),
        "tsc" => Source::Tsc,
        _ => Source::Kernel(Clock::Monotonic),
    };
    let margin = Margin::of(values);
    Ok(Box::new(Clocks { source, margin, break_ns: stage.break_ns, spinning: Vec::new() }))
}

struct Clocks {
    source: Source,
    margin: Margin,
    break_ns: i64,
    /// By thread.
    spinning: Vec<Arc<Spinning>>,
}

impl Session for Clocks {
    fn thread(&mut self, _: u32) -> Result<Box<dyn ProbeThread>, String> {
        let Self { source, margin, break_ns, .. } = *self;
        let spinning: Arc<Spinning> = Arc::default();
        self.spinning.push(Arc::clone(&spinning));
        Ok(Box::new(ClockPairs { source, margin, break_ns, scale: TscScale::default(), spinning }))
    }

    fn close(self: Box<Self>) -> Closed {
        let counts = Spinning::totals(self.spinning.iter()).to_vec();
        Closed { counts, notes: Vec::new() }
    }
}

struct ClockPairs {
    source: Source,
    margin: Margin,
    break_ns: i64,
    scale: TscScale,
    spinning: Arc<Spinning>,
}

impl ProbeThread for ClockPairs {
    fn prepare(&mut self) -> io::Result<()> {
        if matches!(self.source, Source::Tsc) {
            self.scale = TscScale::measure()?;
        }
        Ok(())
    }

    fn run(&mut self, window: &Window, tracks: &mut [Recorder], stop: &Stop) -> io::Result<()> {
        while AbsoluteSleep.until(window.first)? == Waited::Interrupted && !stop.is_set() {}
        let recorder = &mut tracks[0];
        self.spinning.begin();
        let Self { break_ns, margin, .. } = *self;
        let hot = Spin { window, recorder, stop, break_ns, margin, spinning: &self.spinning };
        match self.source {
            Source::Kernel(Clock::Monotonic) => hot.run(monotonic_ns, |gap| gap),
            Source::Kernel(Clock::Realtime) => hot.run(|| Clock::Realtime.now_ns(), |gap| gap),
            Source::Kernel(clock) => hot.run(|| clock.now_ns(), |gap| gap),
            Source::Tsc => {
                let scale = self.scale;
                hot.run(tsc::read, |gap| scale.ns(gap))
            }
        }
        Ok(())
    }

    fn notes(&self) -> Vec<Condition> {
        self.spinning.notes()
    }
}

struct Spin<'a> {
    window: &'a Window,
    recorder: &'a mut Recorder,
    stop: &'a Stop,
    break_ns: i64,
    margin: Margin,
    spinning: &'a Spinning,
}

impl Spin<'_> {
    #[inline(always)]
    fn run(self, read: impl Fn() -> u64, to_ns: impl Fn(i64) -> i64) {
        let mut left = self.window.samples;
        let spin_ns = self.margin.spin_ns();
        // Blocks and the end follow CLOCK_MONOTONIC, which is read once for many pairs.
        let mut now = monotonic_ns();
        let first = now;
        while now < self.window.end && left > 0 && !self.stop.is_set() {
            let round = now;
            let round_end = (now + spin_ns).min(self.window.end);
            while now < round_end && left > 0 && !self.stop.is_set() {
                for _ in 0..left.min(PAIRS_PER_LOOK) {
                    let first = read();
                    let second = read();
                    // CLOCK_REALTIME can be stepped back, so the gap is signed.
                    let gap = to_ns(second.wrapping_sub(first).cast_signed());
                    self.recorder.record(now, gap, 0);
                    left -= 1;
                    if gap > self.break_ns {
                        self.stop.set_broken(now, gap);
                        break;
                    }
                }
                now = monotonic_ns();
            }
            self.spinning.spun(self.margin, now - round);
            self.spinning.ended_late(now.saturating_sub(round_end));
            if !self.margin.is_none() && now < self.window.end && left > 0 {
                now = self.margin.sleep(self.spinning);
            }
        }
        self.spinning.end(self.margin, now - first);
    }
}

/// Pairs between two checks of the time and the stop flag: a few microseconds.
const PAIRS_PER_LOOK: u64 = 64;

/// Cycles to nanoseconds of CLOCK_MONOTONIC_RAW: `ns = cycles x mult / 2^32`.
#[derive(Debug, Clone, Copy, Default)]
struct TscScale {
    mult: u64,
}

impl TscScale {
    /// Compares both clocks over 50 ms: within 1 part in 10^5 if one read costs under 100 ns.
    fn measure() -> io::Result<Self> {
        let pair = || {
            // Uses the clock read that is closest to the read of the counter.
            (0..16)
                .map(|_| {
                    let before = tsc::read();
                    let ns = Clock::MonotonicRaw.now_ns();
                    let after = tsc::read();
                    (after.wrapping_sub(before), before + (after - before) / 2, ns)
                })
                .min_by_key(|(width, _, _)| *width)
                .map_or((0, 0), |(_, cycles, ns)| (cycles, ns))
        };
        let (first_cycles, first_ns) = pair();
        std::thread::sleep(Duration::from_millis(50));
        let (last_cycles, last_ns) = pair();
        let cycles = u128::from(last_cycles.saturating_sub(first_cycles));
        if cycles == 0 {
            return Err(io::Error::other("the time stamp counter stands still"));
        }
        let mult = (u128::from(last_ns - first_ns) << 32) / cycles;
        Ok(Self { mult: u64::try_from(mult).unwrap_or(u64::MAX) })
    }

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "a gap is far under 2^63 ns")]
    fn ns(self, cycles: i64) -> i64 {
        ((i128::from(cycles) * i128::from(self.mult)) >> 32) as i64
    }
}
