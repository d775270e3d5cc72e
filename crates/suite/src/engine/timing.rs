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

use crate::registry::cost::{Direct, Operation};

/// One repetition takes at least this long, ns, so that two reads of a clock of nanoseconds resolve it
/// to 10^-5.
const LONG_ENOUGH_NS: u64 = 10_000_000;
/// And at least so many steps of a coarser clock.
const LONG_ENOUGH_STEPS: u64 = 200;
/// This many runs in a row must take that long: a single one may have lost the CPU meanwhile.
const CALIBRATIONS: usize = 3;
/// An operation that needs more iterations takes no measurable time.
const MOST_ITERATIONS: u64 = 1 << 40;
/// Repetitions before the median can count as known well enough.
const REPETITIONS_LEAST: usize = 11;
/// Repetitions of an operation that is too slow for more, whatever the time limit.
const REPETITIONS_OF_SLOW: usize = 3;
/// A median is known well enough if its interval at [`CONFIDENCE_TO_END`] is no wider than this
/// fraction of it.
const WIDTH_ENOUGH: f64 = 0.025;
/// Confidence of the interval.
pub(super) const CONFIDENCE: f64 = 0.95;
/// Confidence of the interval that is looked at after each repetition. To end as soon as an interval
/// happens to be narrow makes it hold less often: one of 95 %, looked at itself, held in 93 %.
const CONFIDENCE_TO_END: f64 = 0.99;

/// What an operation was found to take.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Timed {
    pub(super) iterations: u64,
    /// Time of one operation in each repetition, ns, less the median of the empty loop's; or
    /// values in the unit of the metric if they are no times of one operation.
    pub(super) repetitions: Vec<f64>,
    /// Their median. Its interval takes in how well the time of the empty loop is known.
    pub(super) median: Option<Median>,
    /// The longest that an operation may take which is not measurable.
    pub(super) bound: Option<f64>,
    /// `None` if it was told to stop.
    pub(super) end: Option<CostEnd>,
}

/// The time source, and when time is up.
pub(super) trait Clockwork {
    fn now_ns(&self) -> u64;
    /// The smallest step of [`Clockwork::now_ns`].
    fn step_ns(&self) -> u64;
    /// Whether the time is up.
    fn is_over(&self) -> bool;
    /// Whether it was told to stop earlier.
    fn is_stopped(&self) -> bool;
    /// Called after each repetition.
    fn repeated(&self) {}
}

/// Times `operation`. What both runs and empty loops contain, such as reading the clock, is
/// subtracted with the empty loop.
///
/// # Errors
/// The error that ended the operation.
pub(super) fn time(operation: &mut dyn Operation, clock: &dyn Clockwork) -> io::Result<Timed> {
    let mut runs = calibrate(operation, clock)?;
    loop {
        while runs.empty.len() < runs.took.len() && !clock.is_stopped() {
            let from = clock.now_ns();
            operation.empty(runs.iterations)?;
            runs.empty.push(in_ns(clock.now_ns() - from));
        }
        clock.repeated();
        if let Some(end) = end(runs.took.len(), runs.median(CONFIDENCE_TO_END).as_ref(), clock) {
            return Ok(runs.ended(end, in_ns(clock.step_ns())));
        }
        let took = of_run(operation, clock, runs.iterations)?;
        runs.took.push(in_ns(took));
    }
}

/// What to end with after so many repetitions and with this median at [`CONFIDENCE_TO_END`]; `None`
/// to go on, `Some(None)` if told to stop.
fn end(count: usize, median: Option<&Median>, clock: &dyn Clockwork) -> Option<Option<CostEnd>> {
    let (stopped, over) = (clock.is_stopped(), clock.is_over());
    let width = median.and_then(Median::relative_width);
    if count >= REPETITIONS_LEAST && width.is_some_and(|width| width <= WIDTH_ENOUGH) {
        return Some(Some(CostEnd::Precise));
    }
    let over = over && count >= REPETITIONS_OF_SLOW;
    (stopped || over).then(|| Some(CostEnd::TimeLimit).filter(|_| !stopped))
}

/// Runs of equally many iterations, and their empty loops, ns each.
struct Runs {
    iterations: u64,
    took: Vec<f64>,
    empty: Vec<f64>,
}

impl Runs {
    #[allow(clippy::cast_precision_loss, reason = "at most 2^40")]
    fn each(&self, ns: f64) -> f64 {
        ns / self.iterations as f64
    }

    /// The median of one operation.
    fn median(&self, confidence: f64) -> Option<Median> {
        let of = |all: &[f64]| {
            let all: Vec<_> = all.iter().map(|ns| self.each(*ns)).collect();
            Median::of(&all, confidence)
        };
        Some(of(&self.took)?.minus(&of(&self.empty)?))
    }

    fn ended(self, end: Option<CostEnd>, step: f64) -> Timed {
        let Some(median) = self.median(CONFIDENCE) else {
            let (iterations, repetitions) = (self.iterations, Vec::new());
            return Timed { iterations, repetitions, median: None, bound: None, end };
        };
        let empty = Median::of(&self.empty, CONFIDENCE).map_or(0.0, |median| median.value);
        let repetitions: Vec<_> = self.took.iter().map(|ns| self.each(*ns - empty)).collect();
        // Without an interval, all of them.
        let (low, high) = median.interval.unwrap_or_else(|| range(&repetitions));
        let step = self.each(step);
        // A value that may be 0 cannot be told from an empty loop, less than a step of the clock
        // not from nothing.
        let measurable = low > 0.0 && median.value >= step;
        let bound = Some(high.max(step)).filter(|_| !measurable);
        let end = if measurable { end } else { Some(CostEnd::NotMeasurable) };
        Timed { iterations: self.iterations, repetitions, median: Some(median), bound, end }
    }
}

fn range(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::MAX, f64::MIN), |(low, high), one| (low.min(*one), high.max(*one)))
}

/// Repeats what is worked out from several times; its repetitions are values in the unit of the
/// metric. It is not measurable if more than half of them are none.
///
/// # Errors
/// The error that ended it.
pub(super) fn values(direct: &mut dyn Direct, clock: &dyn Clockwork) -> io::Result<Timed> {
    let (mut repetitions, mut without) = (Vec::new(), 0);
    loop {
        match direct.measure()? {
            Some(value) => repetitions.push(value),
            None => without += 1,
        }
        clock.repeated();
        let count = repetitions.len() + without;
        let nothing = without * 2 > count;
        let known = Median::of(&repetitions, CONFIDENCE_TO_END);
        let ended = end(count, known.as_ref(), clock).or_else(|| {
            (nothing && count >= REPETITIONS_LEAST).then_some(Some(CostEnd::NotMeasurable))
        });
        if let Some(end) = ended {
            let median = Median::of(&repetitions, CONFIDENCE);
            let ends = median.map(|m| m.interval.unwrap_or_else(|| range(&repetitions)));
            let measurable = !nothing && ends.is_none_or(|(low, _)| low > 0.0);
            let bound =
                ends.map(|(_, high)| high).filter(|high| !measurable && !nothing && *high > 0.0);
            let end = if measurable { end } else { Some(CostEnd::NotMeasurable) };
            return Ok(Timed { iterations: 1, repetitions, median, bound, end });
        }
    }
}

/// Finds the number of iterations that takes long enough, by doubling. The runs that show it count
/// as repetitions.
fn calibrate(operation: &mut dyn Operation, clock: &dyn Clockwork) -> io::Result<Runs> {
    let long_enough = LONG_ENOUGH_NS.max(clock.step_ns().saturating_mul(LONG_ENOUGH_STEPS));
    let mut runs = Runs { iterations: 1, took: Vec::new(), empty: Vec::new() };
    while runs.took.len() < CALIBRATIONS && !clock.is_stopped() {
        let took = of_run(operation, clock, runs.iterations)?;
        let short = took < long_enough && runs.iterations < MOST_ITERATIONS;
        if short && !clock.is_over() {
            runs.iterations *= 2;
            runs.took.clear();
        } else {
            runs.took.push(in_ns(took));
        }
    }
    Ok(runs)
}

fn of_run(
    operation: &mut dyn Operation,
    clock: &dyn Clockwork,
    iterations: u64,
) -> io::Result<u64> {
    operation.prepare(iterations)?;
    let from = clock.now_ns();
    operation.run(iterations)?;
    let took = clock.now_ns() - from;
    operation.tidy()?;
    Ok(took)
}

#[allow(clippy::cast_precision_loss, reason = "a repetition is far below 2^53 ns")]
fn in_ns(ns: u64) -> f64 {
    ns as f64
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
        step: u64,
    }

    impl Clockwork for Simulated {
        fn now_ns(&self) -> u64 {
            self.now.get() / self.step * self.step
        }
        fn step_ns(&self) -> u64 {
            self.step
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
        /// What every third empty loop takes longer, ns.
        noise: u64,
        runs: u64,
        empties: u64,
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
        fn empty(&mut self, iterations: u64) -> io::Result<()> {
            self.empties += 1;
            let noise = if self.empties.is_multiple_of(3) { self.noise } else { 0 };
            self.now.set(self.now.get() + iterations * 2 + noise);
            Ok(())
        }
        fn value(&self, ns: f64) -> f64 {
            ns
        }
    }

    const SECOND: u64 = 1_000_000_000;

    /// A clock with steps of 1 ns, and an operation of so many ns.
    fn known(ns: u64) -> (Simulated, Known) {
        let now = Rc::new(Cell::new(1_000));
        let clock = Simulated { now: Rc::clone(&now), end: SECOND, stopped: false, step: 1 };
        (clock, Known { now, ns, jitter: 0, loses: None, noise: 0, runs: 0, empties: 0 })
    }

    fn timed(ns: u64) -> Timed {
        let (clock, mut operation) = known(ns);
        time(&mut operation, &clock).unwrap()
    }

    #[test]
    fn a_known_operation_has_its_time_without_the_loop() {
        let timed = timed(250);
        assert_eq!(
            (timed.end, timed.repetitions.len()),
            (Some(CostEnd::Precise), REPETITIONS_LEAST)
        );
        assert!(timed.repetitions.iter().all(|ns| *ns == 250.0), "{timed:?}");
        assert_eq!(timed.median.unwrap().value, 250.0);
        assert!(timed.iterations * 252 >= LONG_ENOUGH_NS);
    }

    #[test]
    fn runs_of_the_calibration_are_repetitions() {
        let (clock, mut operation) = known(250);
        let timed = time(&mut operation, &clock).unwrap();
        let doublings = u64::from(timed.iterations.ilog2());
        assert_eq!(operation.runs, doublings + timed.repetitions.len() as u64);
    }

    #[test]
    fn disturbances_of_a_third_of_the_runs_do_not_move_the_median() {
        let (clock, mut operation) = known(250);
        operation.jitter = 1_000;
        let timed = time(&mut operation, &clock).unwrap();
        assert_eq!(timed.median.unwrap().value, 250.0);
        assert!(timed.repetitions.len() > REPETITIONS_LEAST, "the interval takes more of them");
    }

    #[test]
    fn a_noisy_empty_loop_is_subtracted_by_its_median_and_widens_the_interval() {
        let (mut clock, mut operation) = known(250);
        (operation.noise, clock.end) = (LONG_ENOUGH_NS, 0);
        let timed = time(&mut operation, &clock).unwrap();
        assert!(timed.repetitions.iter().all(|ns| *ns == 250.0), "{timed:?}");
        clock.end = 3 * SECOND;
        let timed = time(&mut operation, &clock).unwrap();
        let (median, width) = (timed.median.unwrap(), timed.median.unwrap().relative_width());
        assert_eq!((median.value, timed.end), (250.0, Some(CostEnd::Precise)));
        assert!(width.unwrap() <= WIDTH_ENOUGH, "{median:?}");
        assert!(timed.repetitions.len() > REPETITIONS_LEAST, "{}", timed.repetitions.len());
    }

    /// One value of several per cent of noise, the same ones in each run of the test.
    struct Noisy(u64);

    impl Direct for Noisy {
        fn measure(&mut self) -> io::Result<Option<f64>> {
            // xorshift64 (Marsaglia 2003); the sum of 12 uniform numbers is nearly normal.
            let mut uniform = || {
                self.0 ^= self.0 << 13;
                self.0 ^= self.0 >> 7;
                self.0 ^= self.0 << 17;
                f64::from(u32::try_from(self.0 >> 32).unwrap()) / f64::from(u32::MAX)
            };
            let normal = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
            Ok(Some(100.0 + 3.0 * normal))
        }
    }

    /// It looks after each repetition, and ends when what it sees is narrow.
    #[test]
    fn an_interval_holds_the_median_as_often_as_it_says() {
        let (mut clock, _) = known(0);
        clock.end = u64::MAX;
        let mut noisy = Noisy(0x9E37_79B9_7F4A_7C15);
        let holds = (0..2_000).filter(|_| {
            let timed = values(&mut noisy, &clock).unwrap();
            let (low, high) = timed.median.unwrap().interval.unwrap();
            timed.end == Some(CostEnd::Precise) && low <= 100.0 && 100.0 <= high
        });
        let share = in_ns(holds.count() as u64) / 2_000.0;
        println!("{share} of the intervals hold the median");
        assert!(share >= CONFIDENCE - 0.01, "{share}");
    }

    #[test]
    fn what_takes_no_time_is_not_measurable_and_has_a_bound() {
        let nothing = timed(0);
        assert_eq!(nothing.end, Some(CostEnd::NotMeasurable));
        let bound = nothing.bound.unwrap();
        assert!(bound > 0.0 && bound < 1e-6, "a step of the clock in {} iterations", bound);
        // Too few repetitions for an interval.
        let (mut clock, mut operation) = known(0);
        clock.end = 2_000;
        let timed = time(&mut operation, &clock).unwrap();
        assert_eq!(timed.end, Some(CostEnd::NotMeasurable));
        assert_eq!(timed.repetitions.len(), REPETITIONS_OF_SLOW);
        assert!(timed.bound.unwrap() > 0.0);
        assert_eq!(super::tests::timed(250).bound, None);
    }

    #[test]
    fn a_coarse_clock_is_made_up_for_by_iterations_or_is_not_measurable() {
        let (mut clock, mut operation) = known(3_000_000);
        // Steps of 4 ms, as of a clock that counts jiffies.
        (clock.step, clock.end) = (4_000_000, 10 * SECOND);
        let timed = time(&mut operation, &clock).unwrap();
        assert!(timed.iterations * 3_000_000 >= LONG_ENOUGH_STEPS * clock.step);
        let value = timed.median.unwrap().value;
        assert!((value / 3e6 - 1.0).abs() < 0.01, "{value}");
        clock.end = 0;
        let timed = time(&mut operation, &clock).unwrap();
        assert_eq!((timed.iterations, timed.end), (1, Some(CostEnd::NotMeasurable)));
        assert!(timed.bound.unwrap() >= 4e6, "{timed:?}");
    }

    #[test]
    fn a_calibration_that_lost_the_cpu_does_not_shorten_the_repetitions() {
        let (clock, mut operation) = known(250);
        operation.loses = Some(4);
        let timed = time(&mut operation, &clock).unwrap();
        assert!(timed.iterations * 252 >= LONG_ENOUGH_NS, "{} iterations", timed.iterations);
    }

    #[test]
    fn a_slow_operation_is_repeated_and_ends_near_the_time_limit() {
        for (ns, count) in [(SECOND / 2, 3), (SECOND / 5, 5), (4 * SECOND, 3)] {
            let (clock, mut operation) = known(ns);
            let timed = time(&mut operation, &clock).unwrap();
            assert_eq!(
                (timed.end, timed.iterations, timed.repetitions.len()),
                (Some(CostEnd::TimeLimit), 1, count)
            );
            assert!(clock.now_ns() < (SECOND + ns).max(3 * ns) + LONG_ENOUGH_NS);
        }
    }

    #[test]
    fn what_was_stopped_did_not_come_to_its_time_limit() {
        let (mut clock, mut operation) = known(250);
        clock.end = 2_000;
        assert_eq!(time(&mut operation, &clock).unwrap().end, Some(CostEnd::TimeLimit));
        let (mut clock, mut operation) = known(250);
        clock.stopped = true;
        let timed = time(&mut operation, &clock).unwrap();
        assert_eq!((timed.end, operation.runs, operation.empties), (None, 0, 0));
        assert_eq!((timed.median, timed.repetitions), (None, Vec::new()));
    }

    /// What is found at each time of asking, again and again.
    struct Found(Vec<Option<f64>>);

    impl Direct for Found {
        fn measure(&mut self) -> io::Result<Option<f64>> {
            self.0.rotate_left(1);
            Ok(self.0[self.0.len() - 1])
        }
    }

    #[test]
    fn what_is_found_in_less_than_half_of_the_times_is_not_measurable() {
        let of = |found| values(&mut Found(found), &known(0).0).unwrap();
        let most = of(vec![Some(64.0), None, Some(64.0)]);
        assert_eq!((most.end, most.median.unwrap().value), (Some(CostEnd::Precise), 64.0));
        let few = of(vec![Some(64.0), None, None]);
        assert_eq!((few.end, few.bound), (Some(CostEnd::NotMeasurable), None));
        assert!(few.repetitions.iter().all(|value| *value == 64.0), "none is made up");
        // A difference that is at times below 0 counts with all of its values.
        let (mut clock, _) = known(0);
        clock.end = 0;
        let around = values(&mut Found(vec![Some(1.0), Some(-1.0), Some(0.5)]), &clock).unwrap();
        assert_eq!((around.end, around.bound), (Some(CostEnd::NotMeasurable), Some(1.0)));
        let never = of(vec![None]);
        assert_eq!((never.end, never.median), (Some(CostEnd::NotMeasurable), None));
    }
}
