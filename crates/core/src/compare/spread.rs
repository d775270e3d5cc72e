//! How much the runs of one kernel differ.

use serde::Serialize;

use super::groups::KernelRuns;
use super::row::{Ratios, Row, real};
use crate::stats::hodges_lehmann;

/// What the runs of one kernel measured in a cell. A quantity is absent if one of
/// the runs that measured the cell lacks it: a median over the others would leave
/// out the shortest runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spread {
    /// The kernel: an index into [`super::Comparison::groups`].
    pub group: usize,
    /// How many of its runs have samples of the cell.
    pub runs: usize,
    /// Index of the run with the largest sample, the first of equals.
    pub worst: Option<usize>,
    /// Largest samples, ns.
    pub max_ns: Option<Span<i64>>,
    /// 99.9 % quantiles, ns.
    pub p999_ns: Option<Span<i64>>,
    /// 99 % quantiles, ns.
    pub p99_ns: Option<Span<i64>>,
    /// Means, ns.
    pub avg_ns: Option<Span<f64>>,
    /// Smallest samples, ns.
    pub min_ns: Option<Span<i64>>,
    /// How the runs stand to those of the first kernel: the median of the ratios of all pairs of a
    /// run of this kernel and one of the first (Hodges and Lehmann, on logarithms). Absent if one
    /// of the runs has a value that is not above zero.
    pub ratio: Ratios,
}

/// One quantity over several runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Span<T> {
    /// The lowest of the runs' values.
    pub lowest: T,
    /// The median; for an even number of runs, the mean of the middle two.
    pub median: f64,
    /// The highest of the runs' values.
    pub highest: T,
}

impl<T: Copy> Span<T> {
    /// None without values, or if one is missing. `real` is a value as a float.
    pub(super) fn of(
        values: impl Iterator<Item = Option<T>>,
        real: impl Fn(T) -> f64,
    ) -> Option<Self> {
        let mut values = values.collect::<Option<Vec<T>>>()?;
        values.sort_by(|a, b| real(*a).total_cmp(&real(*b)));
        let (lowest, highest) = (*values.first()?, *values.last()?);
        let middle = |at: usize| real(values[at / 2]);
        let median = f64::midpoint(middle(values.len() - 1), middle(values.len()));
        Some(Self { lowest, median, highest })
    }
}

/// One spread for each kernel, in their order.
pub(super) fn of_rows(rows: &[Row], groups: &[KernelRuns]) -> Vec<Spread> {
    let mut spreads: Vec<Spread> = Vec::new();
    for (number, group) in groups.iter().enumerate() {
        let mut spread = of_group(rows, number, group);
        spread.ratio = ratios(rows, groups.first().unwrap_or(group), group);
        spreads.push(spread);
    }
    spreads
}

fn measured<'a>(rows: &'a [Row], group: &'a KernelRuns) -> impl Iterator<Item = &'a Row> + Clone {
    rows.iter().filter(|row| row.samples > 0 && group.runs.contains(&row.run))
}

fn of_group(rows: &[Row], number: usize, group: &KernelRuns) -> Spread {
    let mine: Vec<&Row> = measured(rows, group).collect();
    #[allow(clippy::cast_precision_loss, reason = "latencies are ordered and halved to a ns")]
    let whole =
        |read: fn(&Row) -> Option<i64>| Span::of(mine.iter().map(|row| read(row)), |ns| ns as f64);
    // Of equal maxima `max_by_key` takes the last.
    let worst = mine.iter().rev().max_by_key(|row| row.max_ns);
    Spread {
        group: number,
        runs: mine.len(),
        worst: worst.map(|row| row.run),
        max_ns: whole(|row| row.max_ns),
        p999_ns: whole(|row| row.p999_ns),
        p99_ns: whole(|row| row.p99_ns),
        avg_ns: Span::of(mine.iter().map(|row| row.avg_ns), |ns| ns),
        min_ns: whole(|row| row.min_ns),
        ratio: Ratios::default(),
    }
}

fn ratios(rows: &[Row], base: &KernelRuns, group: &KernelRuns) -> Ratios {
    let of = |read: fn(&Row) -> Option<f64>| {
        let side = |group| -> Option<Vec<f64>> {
            let values = measured(rows, group).map(read);
            values.map(|value| value.filter(|value| *value > 0.0)).collect()
        };
        let (base, mine) = (side(base)?, side(group)?);
        if let ([base], [mine]) = (&base[..], &mine[..]) {
            return Some(mine / base);
        }
        let logs = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<_>>();
        hodges_lehmann(&logs(&base), &logs(&mine)).map(f64::exp)
    };
    Ratios {
        max: of(|row| real(row.max_ns)),
        p999: of(|row| real(row.p999_ns)),
        p99: of(|row| real(row.p99_ns)),
        avg: of(|row| row.avg_ns),
        min: of(|row| real(row.min_ns)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{cell, compared, run};
    use super::*;
    use crate::schema::{Latency, Run, Stats};

    /// Runs of two kernels in turn: maxima in us, 99.9 % quantiles of half of them.
    fn runs(maxima: &[(&str, i64)]) -> Vec<Run> {
        let made = maxima.iter().enumerate().map(|(number, (preemption, us))| {
            run(&number.to_string(), preemption, vec![cell("x", us / 2, *us)])
        });
        made.collect()
    }

    fn latency(run: &mut Run) -> &mut Latency {
        run.cells[0].latency_mut().unwrap()
    }

    const FIVE: [(&str, i64); 5] =
        [("none", 600), ("rt", 40), ("none", 1_000), ("rt", 20), ("none", 400)];

    #[test]
    fn replicates_have_a_lowest_median_and_highest() {
        let comparison = compared(runs(&FIVE));
        let [none, rt] = comparison.cells[0].spreads.as_slice() else { panic!("two kernels") };
        let us = |lowest: i64, median: f64, highest: i64| Span {
            lowest: lowest * 1_000,
            median: median * 1e3,
            highest: highest * 1_000,
        };
        assert_eq!((none.runs, none.worst, none.max_ns), (3, Some(2), Some(us(400, 600.0, 1_000))));
        assert_eq!((rt.runs, rt.worst, rt.max_ns), (2, Some(1), Some(us(20, 30.0, 40))));
        assert_eq!(rt.p999_ns, Some(us(10, 15.0, 20)));
        // Of the six ratios, 0.04 and 0.05 are in the middle.
        assert!((rt.ratio.max.unwrap() - (0.04_f64 * 0.05).sqrt()).abs() < 1e-12);
        assert_eq!((none.ratio.max, none.ratio.min), (Some(1.0), None));
    }

    #[test]
    fn a_run_without_samples_is_no_replicate() {
        let mut runs = runs(&FIVE);
        latency(&mut runs[0]).stats = Stats::default();
        latency(&mut runs[2]).stats.p999 = None;
        runs[1].cells.clear();
        runs[3].cells.clear();
        let comparison = compared(runs);
        let [none, rt] = comparison.cells[0].spreads.as_slice() else { panic!("two kernels") };
        assert_eq!((none.runs, none.max_ns.unwrap().median), (2, 700_000.0));
        assert_eq!(none.p999_ns, None, "one of the two has too few samples for it");
        assert_eq!((rt.runs, rt.worst, rt.max_ns, rt.ratio), (0, None, None, Ratios::default()));
    }

    #[test]
    fn two_runs_stand_for_themselves() {
        assert!(!compared(runs(&[("rt", 1), ("rt", 2)])).is_replicated());
        assert!(!compared(runs(&[("rt", 1), ("none", 2), ("full", 2)])).is_replicated());
        assert!(compared(runs(&[("rt", 1), ("none", 2), ("rt", 2)])).is_replicated());
    }

    #[test]
    fn of_equal_maxima_the_first_run_is_the_worst() {
        let comparison = compared(runs(&[("rt", 5), ("rt", 9), ("rt", 9)]));
        assert_eq!(comparison.cells[0].spreads[0].worst, Some(1));
    }
}
