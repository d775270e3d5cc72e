//! What operations cost, in several runs.

use serde::Serialize;

use super::matching::Match;
use super::row::ratio;
use crate::schema::{Better, CellState, Cost, CostEnd, Unit};

/// One cost as several runs measured it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MatchedCost {
    /// What the cells were matched by.
    pub key: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Which way is better.
    pub better: Better,
    /// One row for each run that has the cell, in their order.
    pub rows: Vec<CostRow>,
}

/// What one run measured. Values are absent as in [`Cost`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CostRow {
    /// Index of the run.
    pub run: usize,
    /// Index of the cell in the run.
    pub cell: usize,
    /// How the cell stands.
    pub state: CellState,
    /// How the repetitions ended.
    pub end: Option<CostEnd>,
    /// Median of the repetitions.
    pub value: Option<f64>,
    /// Lower end of the interval of the median.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// The value, divided by that of the first row; absent for the first row, for another
    /// unit, and unless both are above zero.
    pub ratio: Option<f64>,
    /// How it stands to the first row; absent if one of the intervals is.
    pub against_first: Option<Against>,
}

impl CostRow {
    /// Whether there is a result: a value, or that it is below what can be measured.
    #[must_use]
    pub fn is_measured(&self) -> bool {
        self.value.is_some() || self.end == Some(CostEnd::NotMeasurable)
    }
}

/// How one cost stands to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Against {
    /// The intervals exclude each other, and this one is better.
    Better,
    /// The intervals exclude each other, and this one is worse.
    Worse,
    /// The intervals overlap: nothing is shown.
    Alike,
}

/// The rows of a cell; none for latencies.
pub(super) fn matched(found: &Match<'_>) -> Option<MatchedCost> {
    let first = found.cells.first()?.2.cost()?;
    let rows = found.cells.iter().enumerate().filter_map(|(number, (run, index, cell))| {
        let cost = cell.cost()?;
        let base = Some(first).filter(|first| number > 0 && first.unit == cost.unit);
        Some(CostRow {
            run: *run,
            cell: *index,
            state: cell.state,
            end: cost.end,
            value: cost.value,
            low: cost.low,
            high: cost.high,
            ratio: base.and_then(|base| ratio(cost.value, base.value)),
            against_first: base.and_then(|base| against(cost, base)),
        })
    });
    Some(MatchedCost {
        key: found.key.clone(),
        unit: first.unit,
        better: first.better,
        rows: rows.collect(),
    })
}

fn against(cost: &Cost, base: &Cost) -> Option<Against> {
    let is_measurable = |cost: &Cost| cost.end != Some(CostEnd::NotMeasurable);
    if !is_measurable(cost) || !is_measurable(base) {
        return None;
    }
    let (low, high) = (cost.low?, cost.high?);
    let (base_low, base_high) = (base.low?, base.high?);
    let is_less = high < base_low;
    Some(if !is_less && low <= base_high {
        Against::Alike
    } else if is_less == (base.better == Better::Less) {
        Against::Better
    } else {
        Against::Worse
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{cell, compared, cost, run};
    use super::*;

    fn against_first(base: [f64; 3], other: [f64; 3], better: Better) -> CostRow {
        let side = |id, preemption, [low, value, high]: [f64; 3]| {
            let mut cell = cost("lat.syscall @ none @ 1s", low, value, high);
            if let crate::schema::What::Cost(cost) = &mut cell.what {
                cost.better = better;
            }
            run(id, preemption, vec![cell])
        };
        let comparison = compared(vec![side("a", "none", base), side("b", "rt", other)]);
        assert!(comparison.cells.is_empty() && comparison.unmatched.is_empty());
        comparison.costs[0].rows[1].clone()
    }

    #[test]
    fn costs_differ_only_if_their_intervals_exclude_each_other() {
        let base = [90.0, 100.0, 110.0];
        for (other, less, more) in [
            ([111.0, 120.0, 130.0], Against::Worse, Against::Better),
            ([110.0, 120.0, 130.0], Against::Alike, Against::Alike),
            ([70.0, 80.0, 90.0], Against::Alike, Against::Alike),
            ([70.0, 80.0, 89.0], Against::Better, Against::Worse),
        ] {
            let row = against_first(base, other, Better::Less);
            assert_eq!((row.against_first, row.ratio), (Some(less), Some(other[1] / 100.0)));
            assert_eq!(against_first(base, other, Better::More).against_first, Some(more));
        }
    }

    #[test]
    fn without_an_interval_nothing_is_said() {
        let mut cells = [cost("c", 1.0, 2.0, 3.0), cost("c", 4.0, 5.0, 6.0)];
        let crate::schema::What::Cost(second) = &mut cells[1].what else { panic!("a cost") };
        second.low = None;
        let [a, b] = cells;
        let comparison = compared(vec![run("a", "none", vec![a]), run("b", "rt", vec![b])]);
        let rows = &comparison.costs[0].rows;
        assert_eq!((rows[1].ratio, rows[1].against_first), (Some(2.5), None));
        assert_eq!((rows[0].ratio, rows[0].against_first), (None, None));
    }

    #[test]
    fn a_cost_and_a_probe_of_one_key_are_not_mixed() {
        let a = run("a", "none", vec![cost("x", 1.0, 2.0, 3.0)]);
        let b = run("b", "rt", vec![cell("x", 1, 2)]);
        let comparison = compared(vec![a, b]);
        assert!(comparison.cells.is_empty() && comparison.costs.is_empty());
        assert_eq!(comparison.unmatched.len(), 2);
    }

    #[test]
    fn a_cost_that_a_run_lacks_is_said() {
        let mut lacking = cost("x", 1.0, 2.0, 3.0);
        let crate::schema::What::Cost(cost_of) = &mut lacking.what else { panic!("a cost") };
        cost_of.value = None;
        let comparison = compared(vec![
            run("a", "none", vec![cost("x", 1.0, 2.0, 3.0)]),
            run("b", "rt", vec![lacking]),
        ]);
        assert!(comparison.caveats.iter().any(|said| said == "x: not measured in every run"));
    }
}
