//! What the tests of metrics share.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use crate::registry::Values;
use crate::registry::cost::{CostEntry, Method, Operation};

/// Parameters of a metric, the others at their defaults.
pub(super) fn values(entry: &CostEntry, given: &[(&str, &str)]) -> Values {
    let text = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let given: BTreeMap<_, _> = given.iter().map(text).collect();
    entry.read(&given).unwrap()
}

/// The operation of a timed metric.
pub(super) fn timed(entry: &CostEntry, given: &[(&str, &str)]) -> Box<dyn Operation> {
    match (entry.open)(&values(entry, given)).unwrap() {
        Method::Timed(operation) => operation,
        Method::Direct(_) => panic!("{} is timed", entry.name),
    }
}

/// What it takes, ns: the best of several runs, so that what else runs here does not count.
pub(super) fn nanoseconds(operation: &mut dyn Operation, iterations: u64) -> f64 {
    let once = || {
        operation.prepare(iterations).unwrap();
        let from = Instant::now();
        operation.run(iterations).unwrap();
        let took = from.elapsed();
        operation.tidy().unwrap();
        took
    };
    #[allow(clippy::cast_precision_loss, reason = "a handful of iterations")]
    let count = iterations as f64;
    let best = std::iter::repeat_with(once).take(7).min().unwrap();
    best.as_secs_f64() * 1e9 / count
}

/// What each of them takes, ns: run in turn, so that what else runs here disturbs none alone.
pub(super) fn fastest<const N: usize>(mut all: [Box<dyn Operation>; N]) -> [f64; N] {
    let mut best = [f64::INFINITY; N];
    for _ in 0..40 {
        for (operation, best) in all.iter_mut().zip(&mut best) {
            let from = Instant::now();
            operation.run(1).unwrap();
            *best = best.min(from.elapsed().as_secs_f64() * 1e9);
        }
    }
    best
}

/// Whether there is no such process any more, not even one that waits to be reaped.
pub(super) fn gone(id: i32) -> bool {
    !Path::new(&format!("/proc/{id}")).exists()
}
