//! The extrapolated answer, in numbers and in words.

use super::gates::{HORIZON, Refusal, passed};
use super::pareto::TWO_SIDED_95;
use super::peaks::Seconds;
use crate::run::CellData;
use crate::stats::bounds::real;
use crate::units::{grouped, human_ns};

/// What an extrapolation is, wherever it is shown.
pub const LABEL: &str = "model, conditional on the tested load and paths";

/// What is said of latencies beyond those that were seen (L2). It is no part of a verdict.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// All gates are open.
    Estimate(Extrapolation),
    /// A gate is closed, and there is no number.
    Refused(Refusal),
}

/// An extrapolated level. All values are of peaks: the largest sample of a cluster of seconds. The
/// intervals are two-sided, 95 %, by profile likelihood.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Extrapolation {
    /// Peaks of at least this are fitted, ns.
    pub threshold_ns: i64,
    /// How many there are.
    pub peaks: u64,
    /// Seconds that were measured.
    pub seconds: u64,
    /// The largest sample, ns.
    pub max_ns: i64,
    /// The shape of the tail, xi.
    pub shape: f64,
    /// Its interval.
    pub shape_interval: (f64, f64),
    /// What peaks exceed once on average in [`HORIZON`] times the run's length, ns.
    pub level_ns: f64,
    /// Its interval, ns.
    pub level_interval: (f64, f64),
    /// What no peak exceeds, ns, with its interval, if that of the shape is below 0.
    pub endpoint_ns: Option<(f64, (f64, f64))>,
}

/// The answer for the maxima of the seconds of one thread.
#[must_use]
pub fn answer(seconds: &Seconds) -> Answer {
    let tail = match passed(seconds) {
        Ok(tail) => tail,
        Err(refusal) => return Answer::Refused(refusal),
    };
    let threshold = float(tail.peaks.threshold);
    let over = |(low, high): (f64, f64)| (threshold + low, threshold + high);
    let (fit, excesses) = (&tail.fit, &tail.excesses);
    let shape_interval = excesses.shape_interval(fit, TWO_SIDED_95);
    let endpoint = (shape_interval.1 < 0.0)
        .then(|| fit.endpoint().zip(excesses.endpoint_interval(fit, TWO_SIDED_95)))
        .flatten();
    Answer::Estimate(Extrapolation {
        threshold_ns: tail.peaks.threshold,
        peaks: tail.peaks.len() as u64,
        seconds: seconds.maxima().len() as u64,
        max_ns: seconds.maxima().iter().max().copied().unwrap_or(i64::MIN),
        shape: fit.shape,
        shape_interval,
        level_ns: threshold + fit.level(tail.one_in()),
        level_interval: over(excesses.level_interval(fit, tail.one_in(), TWO_SIDED_95)),
        endpoint_ns: endpoint.map(|(at, interval)| (threshold + at, over(interval))),
    })
}

/// The answer for each thread of a cell, by number; `series` is 0 for the primary one, whose values
/// are in nanoseconds.
#[must_use]
pub fn from_cell(cell: &CellData, series: usize) -> Vec<Answer> {
    let of = |thread: &crate::run::ThreadData| {
        answer(&Seconds::of_blocks(&thread.series(series).blocks))
    };
    cell.threads.iter().map(of).collect()
}

impl Answer {
    /// The answer in sentences without an end, the most important first. Each stands by itself, and
    /// an extrapolation says what it is.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        match self {
            Self::Estimate(estimate) => estimate.sentences(),
            Self::Refused(refusal) => {
                vec![format!("no extrapolation ({}): {}", refusal.gate.name(), refusal.sentence)]
            }
        }
    }
}

impl Extrapolation {
    fn sentences(&self) -> Vec<String> {
        let level = format!(
            "{LABEL}: in {HORIZON} times this run ({} s) one cluster on average exceeds {} (95 % \
             interval {})",
            grouped(self.seconds.saturating_mul(HORIZON)),
            time(self.level_ns),
            interval(self.level_interval)
        );
        let (low, high) = self.shape_interval;
        let shape = format!("shape {:.2} (95 % interval {low:.2} to {high:.2})", self.shape);
        let bound = match self.endpoint_ns {
            Some((at, range)) => format!(
                "{shape}: the model ends at {} (95 % interval {})",
                time(at),
                interval(range)
            ),
            None if low > 0.0 => format!("{shape}: heavy tail, no finite bound"),
            None => format!("{shape}: whether the tail has a bound is open"),
        };
        let basis = format!(
            "fitted to {} peaks of {} or more; the largest seen is {}",
            grouped(self.peaks),
            human_ns(self.threshold_ns),
            human_ns(self.max_ns)
        );
        vec![level, bound, basis]
    }
}

/// A latency, rounded to nanoseconds.
#[allow(clippy::cast_possible_truncation, reason = "a float saturates")]
fn time(ns: f64) -> String {
    if ns < float(i64::MAX) { human_ns(ns.round() as i64) } else { "no bound".to_owned() }
}

fn interval((low, high): (f64, f64)) -> String {
    format!("{} to {}", time(low), time(high))
}

/// A time in ns as a float, which is exact below 104 days.
fn float(ns: i64) -> f64 {
    real(ns.unsigned_abs()) * if ns < 0 { -1.0 } else { 1.0 }
}
