//! Times an operation: enough iterations for the clock to resolve, the empty loop subtracted,
//! repeated until the median is known well enough.
//!
//! Follows LMbench (McVoy and Staelin, "lmbench: portable tools for performance analysis",
//! USENIX 1996): iterations by doubling, 11 repetitions or more, the median. The confidence
//! interval of the median, the spread, and reporting when the time ran out first, are
//! punctual's own.

use std::io;

use punctual_core::schema::CostEnd;
use punctual_core::stats::Median;

use crate::registry::cost::Operation;

/// One repetition takes at least this long, ns, so that two clock reads resolve it to 10^-5.
const LONG_ENOUGH_NS: u64 = 10_000_000;
/// This many runs in a row must take that long: a single one may have lost the CPU meanwhile.
const CALIBRATIONS: u32 = 3;
/// An operation that needs more iterations takes no measurable time.
const MOST_ITERATIONS: u64 = 1 << 40;
/// Repetitions before the median can count as known well enough.
const REPETITIONS_LEAST: usize = 11;
/// A median is known well enough if its interval is no wider than this fraction of it.
const WIDTH_ENOUGH: f64 = 0.02;
/// Confidence of the interval.
pub(super) const CONFIDENCE: f64 = 0.95;

/// What an operation was found to take.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Timed {
    pub(super) iterations: u64,
    /// Time of one operation in each repetition, ns, with the empty loop subtracted.
    pub(super) repetitions: Vec<f64>,
    /// `None` if it was told to stop.
    pub(super) end: Option<CostEnd>,
}

/// The time source, and when time is up.
pub(super) trait Clockwork {
    fn now_ns(&self) -> u64;
    /// Whether the time is up.
    fn is_over(&self) -> bool;
    /// Whether it was told to stop earlier.
    fn is_stopped(&self) -> bool;
    /// Called after each repetition.
    fn repeated(&self) {}
}

/// Times `operation`.
///
/// # Errors
/// The error that ended the operation.
pub(super) fn time(operation: &mut dyn Operation, clock: &dyn Clockwork) -> io::Result<Timed> {
    let iterations = calibrate(operation, clock)?;
    let mut repetitions = Vec::new();
    loop {
        let took = of_run(operation, clock, iterations)?;
        let from = clock.now_ns();
        operation.empty(iterations);
        let empty = clock.now_ns() - from;
        #[allow(clippy::cast_precision_loss, reason = "a repetition is far below 2^53 ns")]
        repetitions.push((took as f64 - empty as f64) / iterations as f64);
        clock.repeated();
        let median = Median::of(&repetitions, CONFIDENCE);
        let known = median.and_then(|median| median.relative_width());
        let enough = repetitions.len() >= REPETITIONS_LEAST;
        if enough && known.is_some_and(|width| width <= WIDTH_ENOUGH) {
            return Ok(Timed { iterations, repetitions, end: Some(CostEnd::Precise) });
        }
        let stopped = clock.is_stopped();
        if stopped || clock.is_over() {
            // A value that may be 0 cannot be told from an empty loop.
            let least = median.map(|median| median.interval.map_or(median.value, |(low, _)| low));
            let end = match least {
                Some(least) if least <= 0.0 => Some(CostEnd::NotMeasurable),
                _ if stopped => None,
                _ => Some(CostEnd::TimeLimit),
            };
            return Ok(Timed { iterations, repetitions, end });
        }
    }
}

/// The number of iterations that takes long enough, found by doubling.
fn calibrate(operation: &mut dyn Operation, clock: &dyn Clockwork) -> io::Result<u64> {
    let (mut iterations, mut in_a_row) = (1, 0);
    while in_a_row < CALIBRATIONS && !clock.is_stopped() && !clock.is_over() {
        in_a_row += 1;
        if of_run(operation, clock, iterations)? < LONG_ENOUGH_NS && iterations < MOST_ITERATIONS {
            (iterations, in_a_row) = (iterations * 2, 0);
        }
    }
    Ok(iterations)
}

fn of_run(
    operation: &mut dyn Operation,
    clock: &dyn Clockwork,
    iterations: u64,
) -> io::Result<u64> {
    let from = clock.now_ns();
    operation.run(iterations)?;
    Ok(clock.now_ns() - from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;

    /// A clock that only the operation below moves.
    struct Simulated {
        now: Rc<Cell<u64>>,
        end: u64,
        stopped: bool,
    }

    impl Clockwork for Simulated {
        fn now_ns(&self) -> u64 {
            self.now.get()
        }
        fn is_over(&self) -> bool {
            self.now.get() >= self.end
        }
        fn is_stopped(&self) -> bool {
            self.stopped
        }
    }

    /// Takes `ns` an iteration and 2 ns a round of the loop, with a disturbance now and then.
    struct Known {
        now: Rc<Cell<u64>>,
        ns: u64,
        jitter: u64,
        /// The run that loses the CPU for a while.
        loses: Option<u64>,
        runs: u64,
    }

    impl Operation for Known {
        fn run(&mut self, iterations: u64) -> io::Result<()> {
            self.runs += 1;
            let disturbed = if self.runs.is_multiple_of(3) { self.jitter * iterations } else { 0 };
            self.now.set(self.now.get() + iterations * (self.ns + 2) + disturbed);
            if self.loses == Some(self.runs) {
                self.now.set(self.now.get() + 2 * LONG_ENOUGH_NS);
            }
            Ok(())
        }
        fn empty(&mut self, iterations: u64) {
            self.now.set(self.now.get() + iterations * 2);
        }
        fn value(&self, ns: f64) -> f64 {
            ns
        }
    }

    fn timed(ns: u64, jitter: u64) -> Timed {
        timed_as(ns, jitter, None, 1_000_000_000, false)
    }

    fn timed_as(ns: u64, jitter: u64, loses: Option<u64>, end: u64, stopped: bool) -> Timed {
        let now = Rc::new(Cell::new(1_000));
        let clock = Simulated { now: Rc::clone(&now), end, stopped };
        time(&mut Known { now, ns, jitter, loses, runs: 0 }, &clock).unwrap()
    }

    #[test]
    fn a_known_operation_has_its_time_without_the_loop() {
        let timed = timed(250, 0);
        assert_eq!(
            (timed.end, timed.repetitions.len()),
            (Some(CostEnd::Precise), REPETITIONS_LEAST)
        );
        assert!(timed.repetitions.iter().all(|ns| *ns == 250.0), "{timed:?}");
        assert!(timed.iterations * 252 >= LONG_ENOUGH_NS);
    }

    #[test]
    fn disturbances_of_a_third_of_the_runs_do_not_move_the_median() {
        let timed = timed(250, 1_000);
        assert_eq!(Median::of(&timed.repetitions, CONFIDENCE).unwrap().value, 250.0);
        assert!(timed.repetitions.len() > REPETITIONS_LEAST, "the interval takes more of them");
    }

    #[test]
    fn what_takes_no_time_is_not_measurable() {
        assert_eq!(timed(0, 0).end, Some(CostEnd::NotMeasurable));
        // Too few repetitions for an interval.
        let timed = timed_as(0, 0, None, 2_000, false);
        assert_eq!((timed.end, timed.repetitions.len()), (Some(CostEnd::NotMeasurable), 1));
    }

    #[test]
    fn a_calibration_that_lost_the_cpu_does_not_shorten_the_repetitions() {
        let timed = timed_as(250, 0, Some(4), 1_000_000_000, false);
        assert!(timed.iterations * 252 >= LONG_ENOUGH_NS, "{} iterations", timed.iterations);
    }

    #[test]
    fn what_was_stopped_did_not_come_to_its_time_limit() {
        assert_eq!(timed_as(250, 0, None, 2_000, false).end, Some(CostEnd::TimeLimit));
        assert_eq!(timed_as(250, 0, None, 1_000_000_000, true).end, None);
    }
}
