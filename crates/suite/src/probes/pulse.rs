//! `pulse`: how late the edges of a square wave are (as the parallel port on an oscilloscope).

use std::io;

use punctual_core::schema::{Ideal, Role, Unit};
use punctual_core::units::BareNumber;
use punctual_sys::clock::monotonic_ns;
use punctual_sys::timer::{AbsoluteSleep, Wait, Waited};

use self::output::{NONE, Output};
use super::serve::Serve;
use crate::recorder::Recorder;
use crate::registry::probe::{
    By, Closed, Pace, Primary, ProbeEntry, ProbeThread, SeriesEntry, Session, Stage, State, Stop,
    Window,
};
use crate::registry::{Choice, Default, Kind, Param, Values};
use crate::schedule::Schedule;

mod output;

const HOUR_NS: u64 = 3_600_000_000_000;
/// Releases have no phase of their own.
const ANY: &str = "any";

pub(super) const ENTRY: ProbeEntry = ProbeEntry {
    name: "pulse",
    summary: "edges of a square wave, a pulse of 50 us every 1 ms, and how late they are",
    help: "Each thread raises an output at every release and lowers it width=TIME after the release, \
whenever it was raised. It waits for each on CLOCK_MONOTONIC, sets the output, reads the clock, and \
records now - the ideal instant: of the rising edge (latency) and of the falling one (fall). With \
output=/dev/parport0 the output is the eight data pins of a parallel port, with \
output=/dev/gpiochip0,line=N a line of a GPIO chip (gpioinfo lists them), for an oscilloscope, and the \
clock is read when the request that sets it has returned; with output=none there is nothing to set. The report draws both edges as an oscilloscope in infinite persistence does. With \
jitter=TIME both edges of pulse k, from 0, are made late on purpose, by (1000 + 617 k mod 1000) / 2000 \
of TIME, to see whether the figures show it. Follows Arthur, Emde, Mc Guire (OSADL), who had a pulse \
on a parallel port before an oscilloscope.",
    params: &[
        Param {
            name: "width",
            kind: Kind::Time { bare: BareNumber::Microseconds, low: 1_000, high: HOUR_NS },
            default: Default::Value("50us"),
            help: "from the rising edge to the falling one",
        },
        Param {
            name: "output",
            kind: Kind::Or(
                &[Choice::of(NONE, "the clock is read, and nothing set")],
                &Kind::Text { value: "DEVICE", check: is_device },
            ),
            default: Default::Value(NONE),
            help: "what is set: the data pins of a parallel port, such as /dev/parport0, or a line \
                   of a GPIO chip, such as /dev/gpiochip0",
        },
        Param {
            name: "line",
            kind: Kind::Or(
                &[Choice::of(NONE, "the output is no GPIO chip")],
                &Kind::Count { low: 0, high: u32::MAX as u64 },
            ),
            default: Default::Value(NONE),
            help: "which line of the GPIO chip, from 0",
        },
        Param {
            name: "jitter",
            kind: Kind::Time { bare: BareNumber::Microseconds, low: 0, high: HOUR_NS },
            default: Default::Value("0s"),
            help: "edges are late on purpose, by known times from half of this to all of it",
        },
        Param {
            name: "phase",
            kind: Kind::Or(
                &[Choice::of(ANY, "whenever the cell happens to begin")],
                &Kind::Time { bare: BareNumber::Microseconds, low: 0, high: HOUR_NS },
            ),
            default: Default::Value(ANY),
            help: "releases are so long after multiples of the interval on CLOCK_MONOTONIC, where \
                   the kernel has its tick since Linux 6.4",
        },
    ],
    overrides: &[],
    without: &[],
    check,
    needs: &[],
    device: Some("parport"),
    pace: Pace::Periodic,
    // A square wave has one period.
    dithers: |_| false,
    primary: Primary {
        name: "latency",
        meaning: "the output has been raised minus the release",
        nouns: ("pulse", "pulses"),
        by: By::Thread,
    },
    series: &[SeriesEntry {
        name: "fall",
        meaning: "the output has been lowered minus the release and the width",
        role: Role::Aside,
        unit: Unit::Ns,
        by: By::Thread,
    }],
    counters: &[],
    state: State::There(open),
};

fn is_device(text: &str) -> Result<(), String> {
    if text.starts_with('/') { Ok(()) } else { Err("must be a device in /dev".to_owned()) }
}

fn check(values: &Values) -> Result<(), String> {
    let late = values.number("jitter");
    if values.number("width").saturating_add(late) >= values.number("interval") {
        return Err(values.wrong("width", "needs an interval longer than width and jitter"));
    }
    if phase(values).is_some_and(|phase| phase >= values.number("interval")) {
        return Err(values.wrong("phase", "needs a longer interval"));
    }
    output::check(values)
}

/// Where releases lie in their interval, if that is chosen, ns.
fn phase(values: &Values) -> Option<u64> {
    if values.word("phase").is_some() { None } else { Some(values.number("phase")) }
}

/// The first instant from `from` on that is `phase` after a multiple of `interval`, ns.
fn aligned(from: u64, interval: u64, phase: u64) -> u64 {
    from + (phase + interval - from % interval) % interval
}

fn open(values: &Values, stage: &mut Stage<'_>) -> Result<Box<dyn Session>, String> {
    Ok(Box::new(Pulses {
        interval_ns: stage.interval_ns,
        width_ns: values.number("width"),
        jitter: Jitter { ns: values.number("jitter"), interval_ns: stage.interval_ns },
        phase_ns: phase(values),
        output: Output::open(values, stage.journal)?,
        break_ns: stage.break_ns,
    }))
}

struct Pulses {
    interval_ns: u64,
    width_ns: u64,
    jitter: Jitter,
    phase_ns: Option<u64>,
    /// Of the only thread if it is one that is set.
    output: Output,
    break_ns: i64,
}

impl Session for Pulses {
    fn thread(&mut self, _: u32) -> Result<Box<dyn ProbeThread>, String> {
        let Self { interval_ns, width_ns, jitter, phase_ns, break_ns, .. } = *self;
        let output = std::mem::replace(&mut self.output, Output::Nothing);
        Ok(Box::new(Generator { interval_ns, width_ns, jitter, phase_ns, output, break_ns }))
    }

    fn ideal(&self) -> Option<Ideal> {
        Some(Ideal::Pulse { width_ns: self.width_ns })
    }

    fn close(self: Box<Self>) -> Closed {
        Closed::default()
    }
}

/// By how much edges are late on purpose: every 1000 pulses, each of 1000 steps once.
#[derive(Clone, Copy)]
struct Jitter {
    /// The largest, ns; 0 for none.
    ns: u64,
    interval_ns: u64,
}

impl Jitter {
    /// Of the edges of the pulse that is due so long after the first one, ns.
    fn of(self, after_ns: u64) -> u64 {
        let pulse = after_ns / self.interval_ns;
        self.ns * (1_000 + pulse % 1_000 * 617 % 1_000) / 2_000
    }
}

struct Generator {
    interval_ns: u64,
    width_ns: u64,
    jitter: Jitter,
    phase_ns: Option<u64>,
    output: Output,
    break_ns: i64,
}

impl ProbeThread for Generator {
    fn prepare(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn run(&mut self, window: &Window, tracks: &mut [Recorder], stop: &Stop) -> io::Result<()> {
        let [rises, falls] = tracks else {
            return Err(io::Error::other("two series come from a thread"));
        };
        let (output, jitter) = (&self.output, self.jitter);
        let align = |phase| aligned(window.first, self.interval_ns, phase);
        let first = self.phase_ns.map_or(window.first, align);
        let schedule = Schedule::new(first, self.interval_ns, window.end);
        let serve = Serve::new(schedule, rises, window.samples, stop, self.break_ns);
        let mut lowered = Ok(());
        let mut rise = Edge { high: true, output, jitter, first };
        serve.run(&mut rise, |release, _| {
            let due = release + self.width_ns;
            let mut fall = Edge { high: false, output, jitter, first: first + self.width_ns };
            // A signal that ends the cell ends the pulse as well, but not its wait: it is short.
            loop {
                match fall.until(due) {
                    Ok(Waited::Interrupted) if !stop.is_set() => {}
                    Ok(Waited::Interrupted) => break lowered = output.set(false),
                    Ok(Waited::Released) => {
                        let now = monotonic_ns();
                        break falls.record(now, now.wrapping_sub(due).cast_signed(), 0);
                    }
                    Err(error) => break lowered = Err(error),
                }
            }
            if lowered.is_err() {
                stop.set();
            }
        })?;
        lowered
    }
}

/// An edge as a wait: it has come when the output is set.
struct Edge<'a> {
    high: bool,
    output: &'a Output,
    jitter: Jitter,
    /// The ideal instant of the first one, CLOCK_MONOTONIC, ns.
    first: u64,
}

impl Wait for Edge<'_> {
    #[inline(always)]
    fn until(&mut self, due: u64) -> io::Result<Waited> {
        if AbsoluteSleep.until(due)? == Waited::Interrupted {
            return Ok(Waited::Interrupted);
        }
        if self.jitter.ns > 0 {
            let late = due + self.jitter.of(due - self.first);
            while monotonic_ns() < late {}
        }
        self.output.set(self.high)?;
        Ok(Waited::Released)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::Recording;
    use punctual_core::aim::Aim;
    use punctual_core::block::Outlier;
    use punctual_core::stats::Limits;
    use std::collections::BTreeMap;
    use std::collections::BTreeSet;

    const MS: u64 = 1_000_000;

    fn read(params: &[(&str, &str)]) -> Result<Values, String> {
        let params = params.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        ENTRY.read(&params.collect::<BTreeMap<_, _>>())
    }

    fn run(jitter: Jitter, phase_ns: Option<u64>, pulses: u64) -> (u64, [Recording; 2]) {
        let interval_ns = jitter.interval_ns;
        let (output, break_ns) = (Output::Nothing, i64::MAX);
        let mut thread =
            Generator { interval_ns, width_ns: MS, jitter, phase_ns, output, break_ns };
        let first = monotonic_ns() + MS;
        let window =
            Window { first, end: first + pulses * interval_ns, samples: u64::MAX, aim: Aim::NONE };
        let mut tracks = [Recorder::new(Limits::NONE), Recorder::new(Limits::NONE)];
        for track in &mut tracks {
            track.begin(first);
        }
        thread.run(&window, &mut tracks, &Stop::default()).unwrap();
        (first, tracks.map(Recorder::finish))
    }

    #[test]
    fn every_thousand_pulses_are_late_by_each_step_once() {
        let jitter = Jitter { ns: 2_000_000, interval_ns: 10 };
        let late: BTreeSet<u64> = (0..1_000).map(|pulse| jitter.of(pulse * 10 + 9)).collect();
        assert_eq!(late, (1_000_000..2_000_000).step_by(1_000).collect());
        assert_eq!((jitter.of(0), jitter.of(10), jitter.of(20)), (1_000_000, 1_617_000, 1_234_000));
        assert_eq!(jitter.of(10_010), jitter.of(10));
        assert_eq!(Jitter { ns: 0, interval_ns: 10 }.of(10), 0);
    }

    #[test]
    fn both_edges_are_recorded_and_none_is_early() {
        let (_, [rises, falls]) = run(Jitter { ns: 0, interval_ns: 5 * MS }, None, 20);
        assert_eq!(rises.moments.count, falls.moments.count);
        assert_eq!(rises.moments.count + rises.moments.missed, 20);
        assert!(rises.moments.min >= 0 && falls.moments.min >= 0);
    }

    #[test]
    fn edges_are_as_late_as_they_are_made() {
        let (_, [rises, falls]) = run(Jitter { ns: 2 * MS, interval_ns: 5 * MS }, None, 20);
        for edges in [rises, falls] {
            // Pulse 0 is the least late of all, unless something else holds it up.
            assert!(edges.moments.min >= 1_000_000, "{:?}", edges.moments);
            assert!(edges.moments.max >= 1_900_000, "{:?}", edges.moments);
        }
    }

    #[test]
    fn releases_have_the_phase_that_is_asked_for() {
        for (from, first) in [(0, 3), (3, 3), (4, 13), (12, 13), (13, 13), (103, 103)] {
            assert_eq!(aligned(from, 10, 3), first);
        }
        let (first, [rises, _]) = run(Jitter { ns: 0, interval_ns: 5 * MS }, Some(2 * MS), 20);
        let release = |one: &Outlier| first + one.at - one.latency.cast_unsigned();
        assert!(!rises.outliers.is_empty());
        for outlier in &rises.outliers {
            assert_eq!(release(outlier) % (5 * MS), 2 * MS, "{outlier:?}");
        }
    }

    #[test]
    fn a_pulse_fits_into_its_interval_and_a_port_has_one_thread() {
        read(&[("width", "999us")]).unwrap();
        for wrong in [
            &[("width", "1ms")][..],
            &[("width", "600us"), ("jitter", "400us")],
            &[("output", "/dev/parport0"), ("threads", "2")],
            &[("output", "parport0")],
            &[("output", "/dev/gpiochip0")],
            &[("line", "4")],
            &[("phase", "1ms")],
            &[("output", "/dev/gpiochip0"), ("line", "4"), ("threads", "2")],
        ] {
            let error = read(wrong).unwrap_err();
            assert!(error.contains("needs") || error.contains("one ") || error.contains("/dev"));
        }
        read(&[("output", "/dev/gpiochip0"), ("line", "4")]).unwrap();
    }
}
