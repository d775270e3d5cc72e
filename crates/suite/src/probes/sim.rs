//! `sim`: known distributions through the whole pipeline, in simulated time.

use std::io;
use std::time::Duration;

use punctual_core::units::{BareNumber, parse_duration_ns};

use super::{Common, Factory, Kind, ProbeEntry, ProbeThread, Stop, Window};
use crate::recorder::Recorder;
use crate::registry::{Param, Values};
use crate::schedule::Schedule;

pub(super) const ENTRY: ProbeEntry = ProbeEntry {
    name: "sim",
    summary: "a known distribution in simulated time; measures nothing of this machine",
    help: "Feeds known latencies through the recorder, the collector, the record and the report, \
for tests and demonstrations. Time is simulated: -D 24h takes about a second. With order=cycle \
(the default) every 4096 samples hold each of the distribution's 4096 equally likely values \
once, so that counts, quantiles, means and extremes are known exactly. A latency longer than \
the interval makes releases pass, which are counted as missed, as everywhere.",
    params: &[
        Param {
            name: "dist",
            value: "NAME",
            default: "uniform",
            help: "constant (low), uniform (low to high), exponential (low plus a mean of high) or \
list (values)",
        },
        Param { name: "low", value: "TIME", default: "10us", help: "smallest latency" },
        Param {
            name: "high",
            value: "TIME",
            default: "20us",
            help: "largest latency, or the mean above low",
        },
        Param {
            name: "values",
            value: "LIST",
            default: "",
            help: "for dist=list: latencies in their order, repeated, as 10us*900/100ms",
        },
        Param {
            name: "shift",
            value: "TIME",
            default: "0us",
            help: "taken from every latency: makes early ones",
        },
        Param { name: "stall", value: "TIME", default: "0us", help: "a latency of its own" },
        Param {
            name: "stall-every",
            value: "N",
            default: "0",
            help: "every N-th sample is the stall; 0 for none",
        },
        Param { name: "order", value: "ORDER", default: "cycle", help: "cycle or random" },
        Param { name: "seed", value: "N", default: "1", help: "seed of order=random" },
    ],
    needs: |_| &[],
    series: ("latency", "simulated start minus its release"),
    kind: Kind::Simulated,
    build,
};

/// Values of a distribution, equally likely.
const TABLE: usize = 4_096;
/// Odd, so that steps of it visit every entry of the table once.
const STRIDE: u64 = 1_597;

#[derive(Clone)]
struct Sim {
    interval_ns: u64,
    break_ns: i64,
    table: Vec<i64>,
    in_order: bool,
    random: bool,
    state: u64,
    count: u64,
    stall: i64,
    stall_every: u64,
}

fn build(values: &Values, common: &Common) -> Result<Factory, String> {
    let time = |key: &str, default: u64| {
        values.get(key, default, |text| {
            parse_duration_ns(text, BareNumber::Refused).map_err(|e| e.to_string())
        })
    };
    let (low, high) = (time("low", 10_000)?, time("high", 20_000)?);
    let shift = time("shift", 0)?;
    let dist = values.text("dist").unwrap_or("uniform");
    let latencies = match dist {
        "constant" => vec![low; TABLE],
        "uniform" if high >= low => table(|share| low + scaled(high - low, share)),
        "uniform" => return Err("sim: high must not be below low".to_owned()),
        "exponential" => table(|share| low + scaled(high, -f64::ln_1p(-share))),
        "list" => list(values.text("values").unwrap_or(""))?,
        _ => {
            return Err(format!(
                "sim: dist={dist}: must be constant, uniform, exponential or list"
            ));
        }
    };
    let random = match values.text("order").unwrap_or("cycle") {
        "cycle" => false,
        "random" => true,
        other => return Err(format!("sim: order={other}: must be cycle or random")),
    };
    let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
    let sim = Sim {
        interval_ns: common.interval_ns,
        break_ns: common.break_ns,
        table: latencies.into_iter().map(|ns| signed(ns) - signed(shift)).collect(),
        in_order: dist == "list",
        random,
        state: values.number("seed", 1, 1, u64::MAX)?,
        count: 0,
        stall: signed(time("stall", 0)?),
        stall_every: values.number("stall-every", 0, 0, u64::MAX)?,
    };
    Ok(Box::new(move |thread| {
        let state = sim.state.wrapping_add(u64::from(thread)).max(1);
        Box::new(Sim { state, ..sim.clone() })
    }))
}

/// The values at the middles of [`TABLE`] equal shares of probability.
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

fn list(text: &str) -> Result<Vec<u64>, String> {
    const MOST: usize = 1 << 20;
    let mut values = Vec::new();
    for part in text.split('/') {
        let (time, times) = part.split_once('*').unwrap_or((part, "1"));
        let ns = parse_duration_ns(time, BareNumber::Refused)
            .map_err(|e| format!("sim: values: {e}"))?;
        let times: usize =
            times.parse().map_err(|_| format!("sim: values: \"{part}\" is not TIME*COUNT"))?;
        if times == 0 || values.len().saturating_add(times) > MOST {
            return Err(format!("sim: values: from 1 to {MOST} latencies in all"));
        }
        values.resize(values.len() + times, ns);
    }
    Ok(values)
}

impl Sim {
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "an index below the table's length")]
    fn next(&mut self) -> i64 {
        self.count += 1;
        if self.stall_every > 0 && self.count.is_multiple_of(self.stall_every) {
            return self.stall;
        }
        if self.in_order {
            return self.table[((self.count - 1) % self.table.len() as u64) as usize];
        }
        if self.random {
            // xorshift64 (Marsaglia 2003); its high bits choose.
            self.state ^= self.state << 13;
            self.state ^= self.state >> 7;
            self.state ^= self.state << 17;
            return self.table[(self.state >> 52) as usize];
        }
        self.table[(self.count.wrapping_mul(STRIDE) % TABLE as u64) as usize]
    }
}

impl ProbeThread for Sim {
    fn run(&mut self, window: &Window, recorder: &mut Recorder, stop: &Stop) -> io::Result<()> {
        let mut schedule = Schedule::new(window.first, self.interval_ns, window.end);
        let mut left = window.samples;
        while let Some(release) = schedule.next() {
            if left == 0 || stop.is_set() {
                break;
            }
            let latency = self.next();
            let now = release.saturating_add_signed(latency);
            if now >= recorder.block_end() {
                // Simulated time waits for the collector, which real time cannot.
                while !recorder.has_room() && !stop.is_set() {
                    std::thread::sleep(Duration::from_micros(50));
                }
            }
            let (latency, missed) = schedule.serve(now);
            recorder.record(now, latency, missed);
            left -= 1;
            if latency > self.break_ns {
                stop.set_broken();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::Limits;
    use punctual_core::params::Named;
    use punctual_core::units::SECOND_NS;

    fn samples(spec: &str, count: u64) -> Vec<i64> {
        let named = Named::parse(spec, "").unwrap();
        let values = Values::check(&named, ENTRY.params).unwrap();
        let common = Common { interval_ns: 1_000_000, break_ns: i64::MAX };
        let mut probe = build(&values, &common).unwrap()(0);
        let mut recorder = Recorder::new(Limits { deadline: i64::MAX, threshold: i64::MIN });
        recorder.begin(SECOND_NS);
        let window = Window { first: SECOND_NS, end: u64::MAX, samples: count };
        probe.run(&window, &mut recorder, &Stop::default()).unwrap();
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
    fn stalls_come_as_often_as_asked() {
        let values = samples("sim:dist=constant,low=5us,stall=3ms,stall-every=10", 100);
        assert_eq!(values.iter().filter(|v| **v == 3_000_000).count(), 10);
    }
}
