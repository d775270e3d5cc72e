//! `sim`: known distributions through the whole pipeline, in simulated time.

use std::io;
use std::sync::Arc;

use punctual_core::random::Random;
use punctual_core::units::{BareNumber, parse_duration_ns};

use crate::recorder::{Recorder, Shared};
use crate::registry::probe::{
    By, Closed, Pace, Primary, ProbeEntry, ProbeThread, Session, Stage, State, Stop, Window,
};
use crate::registry::{Choice, Default, Kind, Param, Values};
use crate::schedule::Schedule;

const TIME: Kind = Kind::Time { bare: BareNumber::Refused, low: 0, high: i64::MAX.unsigned_abs() };

pub(super) const ENTRY: ProbeEntry = ProbeEntry {
    name: "sim",
    summary: "a known distribution in simulated time; measures nothing of this machine",
    help: "Feeds known latencies through the recorder, the collector, the record and the report, \
for tests and demonstrations. Time is simulated: -D 24h takes about a second. With order=cycle \
(the default) every 4096 samples contain each of the distribution's 4096 equally likely values \
once; counts, quantiles, means and extremes are therefore known exactly. A latency longer than \
the interval misses releases, which are counted as in any other probe. With burst=B samples \
are stalled at random, each with the probability 1/stall-every, in bursts: one in B samples \
draws anew whether it is stalled, every other one is as the one before it. Bursts are thus \
geometrically distributed and B samples long on average (two that meet count as one longer).",
    params: &[
        Param {
            name: "dist",
            kind: Kind::Choice(&[
                Choice::of("constant", "low"),
                Choice::of("uniform", "low to high"),
                Choice::of("exponential", "low plus a mean of high"),
                Choice::of("list", "values"),
            ]),
            default: Default::Value("uniform"),
            help: "distribution",
        },
        Param {
            name: "low",
            kind: TIME,
            default: Default::Value("10us"),
            help: "smallest latency",
        },
        Param {
            name: "high",
            kind: TIME,
            default: Default::Value("20us"),
            help: "largest latency, or the mean above low",
        },
        Param {
            name: "values",
            kind: Kind::Text { value: "LIST", check: is_list },
            default: Default::Value(""),
            help: "for dist=list: latencies in order, repeated, such as 10us*900/100ms",
        },
        Param {
            name: "shift",
            kind: TIME,
            default: Default::Value("0s"),
            help: "subtracted from every latency, to make early ones",
        },
        Param {
            name: "stall",
            kind: TIME,
            default: Default::Value("0s"),
            help: "an additional latency, see stall-every",
        },
        Param {
            name: "stall-every",
            kind: Kind::Count { low: 0, high: u64::MAX },
            default: Default::Value("0"),
            help: "every Nth sample has the latency stall; 0 for none",
        },
        Param {
            name: "burst",
            kind: Kind::Count { low: 0, high: u64::MAX },
            default: Default::Value("0"),
            help: "stalls come at random, one in stall-every, in bursts of so many on average; \
1: independently; 0: every Nth",
        },
        Param {
            name: "order",
            kind: Kind::Choice(&[Choice::of("cycle", ""), Choice::of("random", "")]),
            default: Default::Value("cycle"),
            help: "order of the values",
        },
        Param {
            name: "seed",
            kind: Kind::Count { low: 1, high: u64::MAX },
            default: Default::Value("1"),
            help: "seed for order=random and burst",
        },
    ],
    overrides: &[],
    without: &[],
    check,
    needs: &[],
    device: None,
    pace: Pace::Simulated,
    dithers: |_| false,
    primary: Primary {
        name: "latency",
        meaning: "simulated start minus its release",
        nouns: ("activation", "activations"),
        by: By::Thread,
    },
    series: &[],
    counters: &[],
    state: State::There(open),
};

/// Checks that involve several parameters.
fn check(values: &Values) -> Result<(), String> {
    match values.text("dist") {
        "uniform" if values.number("high") < values.number("low") => {
            Err("sim: high must not be below low".to_owned())
        }
        "list" if values.text("values").is_empty() => {
            Err("sim: dist=list needs values, such as sim:dist=list,values=10us*900/100ms"
                .to_owned())
        }
        _ if values.number("burst") > 0 && values.number("stall-every") == 0 => {
            Err("sim: burst needs stall-every, such as sim:stall=3ms,stall-every=1000,burst=100"
                .to_owned())
        }
        _ => Ok(()),
    }
}

/// Number of values that represent a distribution, all equally likely.
const TABLE: usize = 4_096;
/// Odd, so that this stride visits every entry of the table once.
const STRIDE: u64 = 1_597;

#[derive(Clone)]
struct Sim {
    interval_ns: u64,
    break_ns: i64,
    table: Vec<i64>,
    in_order: bool,
    random: bool,
    draws: Random,
    count: u64,
    stall: i64,
    stall_every: u64,
    burst: u64,
    stalled: bool,
}

fn open(values: &Values, stage: &mut Stage<'_>) -> Result<Box<dyn Session>, String> {
    Ok(Box::new(Sims(Sim::new(values, stage.interval_ns, stage.break_ns)?)))
}

fn latencies(values: &Values) -> Result<Vec<u64>, String> {
    let (low, high) = (values.number("low"), values.number("high"));
    Ok(match values.text("dist") {
        "constant" => vec![low; TABLE],
        "exponential" => table(|share| low.saturating_add(scaled(high, -f64::ln_1p(-share)))),
        "list" => list(values.text("values"))?,
        _ => table(|share| low + scaled(high.saturating_sub(low), share)),
    })
}

/// The threads differ in their seeds.
struct Sims(Sim);

impl Session for Sims {
    fn thread(&mut self, number: u32) -> Result<Box<dyn ProbeThread>, String> {
        Ok(Box::new(self.0.of_thread(number)))
    }

    fn close(self: Box<Self>) -> Closed {
        Closed::default()
    }
}

/// The distribution's values at the midpoints of [`TABLE`] equal shares of probability.
#[allow(clippy::cast_precision_loss, reason = "4096 fits")]
fn table(value: impl Fn(f64) -> u64) -> Vec<u64> {
    (0..TABLE).map(|i| value((i as f64 + 0.5) / TABLE as f64)).collect()
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "latencies are far under 2^53 ns, and a float cast saturates"
)]
fn scaled(ns: u64, factor: f64) -> u64 {
    (ns as f64 * factor).round() as u64
}

fn is_list(text: &str) -> Result<(), String> {
    if text.is_empty() { Ok(()) } else { list(text).map(drop) }
}

fn list(text: &str) -> Result<Vec<u64>, String> {
    const MOST: usize = 1 << 20;
    let mut values = Vec::new();
    for part in text.split('/') {
        let (time, times) = part.split_once('*').unwrap_or((part, "1"));
        let ns = parse_duration_ns(time, BareNumber::Refused).map_err(|error| error.to_string())?;
        let times: usize = times.parse().map_err(|_| format!("\"{part}\" is not TIME*COUNT"))?;
        if times == 0 || values.len().saturating_add(times) > MOST {
            return Err(format!("must be from 1 to {MOST} latencies in total"));
        }
        values.resize(values.len() + times, ns);
    }
    Ok(values)
}

impl Sim {
    fn new(values: &Values, interval_ns: u64, break_ns: i64) -> Result<Self, String> {
        let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        let shift = signed(values.number("shift"));
        Ok(Self {
            interval_ns,
            break_ns,
            table: latencies(values)?.into_iter().map(|ns| signed(ns) - shift).collect(),
            in_order: values.text("dist") == "list",
            random: values.text("order") == "random",
            draws: Random::new(values.number("seed")),
            count: 0,
            stall: signed(values.number("stall")),
            stall_every: values.number("stall-every"),
            burst: values.number("burst"),
            stalled: false,
        })
    }

    /// The same with random numbers of its own.
    fn of_thread(&self, number: u32) -> Self {
        let seed = self.draws.clone().word().wrapping_add(u64::from(number));
        Self { draws: Random::new(seed), ..self.clone() }
    }

    #[inline(always)]
    fn next(&mut self) -> i64 {
        self.count += 1;
        if self.stall_every > 0 && self.stalls() {
            return self.stall;
        }
        let length = self.table.len() as u64;
        let place = if self.random {
            self.draws.below(length)
        } else if self.in_order {
            (self.count - 1) % length
        } else {
            self.count.wrapping_mul(STRIDE) % TABLE as u64
        };
        self.table[usize::try_from(place).unwrap_or(0)]
    }

    /// Whether this sample is stalled. The first one of bursts is drawn as any other, so that
    /// one in `stall_every` is stalled from the start.
    #[inline(always)]
    fn stalls(&mut self) -> bool {
        if self.burst == 0 {
            return self.count.is_multiple_of(self.stall_every);
        }
        if self.count == 1 || self.draws.one_in(self.burst) {
            self.stalled = self.draws.one_in(self.stall_every);
        }
        self.stalled
    }
}

/// Ends the turn of a thread, however it ends: the collector waits for the turn of each.
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.turn.end();
    }
}

impl ProbeThread for Sim {
    fn run(&mut self, window: &Window, tracks: &mut [Recorder], stop: &Stop) -> io::Result<()> {
        let recorder = &mut tracks[0];
        let turn = Ending(recorder.shared());
        let unpublished_ns = recorder.unpublished_ns();
        let mut schedule = Schedule::new(window.first, self.interval_ns, window.end);
        let mut left = window.samples;
        while let Some(release) = schedule.next() {
            if left == 0 || stop.is_set() {
                break;
            }
            let latency = self.next();
            let now = release.saturating_add_signed(latency);
            // Simulated time can wait for the collector; real time cannot.
            if (now >= recorder.block_end() || latency > unpublished_ns) && !recorder.has_room() {
                turn.0.turn.wait(|| stop.is_set());
            }
            let (latency, missed) = schedule.serve(now);
            recorder.record(now, latency, missed);
            left -= 1;
            if latency > self.break_ns {
                stop.set_broken(release, latency);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
mod tests {
    use super::*;
    use crate::facts::FactsRoot;
    use crate::knobs::Journal;
    use punctual_core::aim::Aim;
    use punctual_core::params::Named;
    use punctual_core::stats::Limits;
    use punctual_core::units::SECOND_NS;
    use punctual_sys::sched::Policy;

    fn values(spec: &str) -> Result<Values, String> {
        ENTRY.read(&Named::parse(spec, "").unwrap().params)
    }

    fn samples(spec: &str, count: u64) -> Vec<i64> {
        let values = values(spec).unwrap();
        let folder = std::env::temp_dir();
        let mut stage = Stage {
            threads: 1,
            bound: punctual_sys::affinity::CpuSet::of(0),
            scheduling: (Policy::Other, 0),
            interval_ns: 1_000_000,
            dither: None,
            break_ns: i64::MAX,
            journal: &mut Journal::in_folder(&folder).unwrap(),
            root: &FactsRoot::live(),
        };
        let mut probe = open(&values, &mut stage).unwrap().thread(0).unwrap();
        let mut recorder = Recorder::new(Limits { threshold: i64::MIN, ..Limits::NONE });
        recorder.begin(SECOND_NS);
        let window = Window { first: SECOND_NS, end: u64::MAX, samples: count, aim: Aim::NONE };
        probe.run(&window, std::slice::from_mut(&mut recorder), &Stop::default()).unwrap();
        recorder.finish().outliers.iter().map(|o| o.latency).collect()
    }

    #[test]
    fn a_cycle_holds_every_value_once() {
        let mut values = samples("sim:dist=uniform,low=0ns,high=4096ns", 4_096);
        values.sort_unstable();
        assert_eq!(values, (1..=4_096).collect::<Vec<_>>());
    }

    #[test]
    fn a_list_keeps_its_order() {
        assert_eq!(
            samples("sim:dist=list,values=10us*2/1ms,shift=20us", 4),
            [-10_000, -10_000, 980_000, -10_000]
        );
        assert!(list("10us*0").is_err() && list("").is_err());
    }

    #[test]
    fn a_list_in_random_order_holds_its_values_at_random_places() {
        let spec = "sim:dist=list,values=10us*9/1ms,order=random";
        let random = samples(spec, 1_000);
        let rare = |values: &[i64]| values.iter().filter(|ns| **ns == 1_000_000).count();
        assert!((50..200).contains(&rare(&random)), "{}", rare(&random));
        let in_order = samples("sim:dist=list,values=10us*9/1ms", 1_000);
        assert_eq!(rare(&in_order), 100);
        assert_ne!(random, in_order);
    }

    #[test]
    fn what_is_too_long_for_a_time_is_the_longest_one() {
        let values = values("sim:dist=exponential,low=1h,high=2000000h").unwrap();
        assert!(latencies(&values).unwrap().iter().all(|ns| *ns >= 3_600_000_000_000));
    }

    #[test]
    fn stalls_come_as_often_as_asked() {
        let values = samples("sim:dist=constant,low=5us,stall=3ms,stall-every=10", 100);
        assert_eq!(values.iter().filter(|v| **v == 3_000_000).count(), 10);
    }
    fn sequence(spec: &str, count: u64) -> Vec<i64> {
        let sim = Sim::new(&values(spec).unwrap(), 1_000_000, i64::MAX).unwrap();
        let mut sim = sim.of_thread(0);
        (0..count).map(|_| sim.next()).collect()
    }

    /// The lengths of the bursts.
    fn bursts(stall_every: u64, burst: u64, count: u64) -> Vec<u64> {
        let spec = format!("sim:dist=constant,stall=1ms,stall-every={stall_every},burst={burst}");
        let values = sequence(&spec, count);
        let runs = values.chunk_by(|a, b| a == b).filter(|run| run[0] == 1_000_000);
        runs.map(|run| run.len() as u64).collect()
    }

    #[test]
    fn bursts_keep_to_their_law() {
        const COUNT: u64 = 1_000_000;
        for (stall_every, burst) in [(20, 1), (50, 10), (10, 100), (3, 7)] {
            let what = format!("stall-every={stall_every},burst={burst}");
            let bursts = bursts(stall_every, burst, COUNT);
            let (p, b) = (1.0 / stall_every as f64, burst as f64);
            let (count, number) = (COUNT as f64, bursts.len() as f64);

            // A sample correlates with the k-th after it by (1 - 1/b)^k: the variance of the
            // share is (2b - 1) times that of independent samples.
            let share = bursts.iter().sum::<u64>() as f64 / count;
            let sigma = (p * (1.0 - p) * (2.0 * b - 1.0) / count).sqrt();
            assert!((share - p).abs() < 4.0 * sigma, "{what}: {share} is not {p} +- {sigma}");

            // Geometric: ended by each sample with the probability (1 - p) / b.
            let end = (1.0 - p) / b;
            let mean = share * count / number;
            let sigma = (1.0 - end).sqrt() / end / number.sqrt();
            assert!((mean - 1.0 / end).abs() < 4.0 * sigma, "{what}: {mean} is not {}", 1.0 / end);
            for longer_than in [1, burst, 2 * burst] {
                let of_all = bursts.iter().filter(|&&n| n > longer_than).count() as f64 / number;
                let law = (1.0 - end).powi(i32::try_from(longer_than).unwrap());
                let sigma = (law * (1.0 - law) / number).sqrt();
                assert!((of_all - law).abs() < 4.0 * sigma, "{what}, > {longer_than}: {of_all}");
            }
        }
    }

    #[test]
    fn bursts_begin_as_likely_with_the_first_sample() {
        let first = |seed: u64| {
            let spec = format!("sim:dist=constant,stall=1ms,stall-every=4,burst=1000,seed={seed}");
            sequence(&spec, 1)[0] == 1_000_000
        };
        let stalled = (1..=1_000).filter(|&seed| first(seed)).count();
        // 250, with a standard deviation of 14.
        assert!((180..320).contains(&stalled), "{stalled} of 1000");
    }

    #[test]
    fn a_burst_needs_stalls() {
        assert!(values("sim:burst=3,stall-every=9").is_ok());
        assert!(values("sim:burst=3").unwrap_err().contains("stall-every"));
    }
}
