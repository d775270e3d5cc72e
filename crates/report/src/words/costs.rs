//! How costs are called and written in every output.

use punctual_core::compare::{Against, CostRow};
use punctual_core::run::LoadedRun;
use punctual_core::schema::{Cell, Cost, CostEnd, Unit};
use punctual_core::units::grouped;

use super::numbers::{in_unit, mean};

/// How the tables of costs are to be read.
pub const COSTS: &str = "Median of the repetitions, with the interval of the median by order \
    statistics. Spread: half the distance of the quartiles, divided by the median.";

/// The cells of costs, with the number of their run.
pub fn costs(runs: &[LoadedRun]) -> impl Iterator<Item = (usize, &Cell, &Cost)> {
    runs.iter().enumerate().flat_map(|(number, run)| {
        let cells = run.run.cells.iter();
        cells.filter_map(move |cell| Some((number, cell, cell.cost()?)))
    })
}

/// What an operation costs: its value, or the bound below which it lies; `-` without one.
#[must_use]
pub fn cost(cost: &Cost) -> String {
    or_bound(cost.unit, cost.end, cost.value, cost.high)
}

/// The same for a run next to others.
#[must_use]
pub fn cost_row(unit: Unit, row: &CostRow) -> String {
    or_bound(unit, row.end, row.value, row.high)
}

fn or_bound(unit: Unit, end: Option<CostEnd>, value: Option<f64>, high: Option<f64>) -> String {
    match (end, high) {
        (Some(CostEnd::NotMeasurable), Some(bound)) => format!("< {}", in_unit(unit, bound)),
        _ => mean(unit, value),
    }
}

/// The interval of a cost, such as `118.2 ns to 121.9 ns`; `-` without one.
#[must_use]
pub fn cost_interval(unit: Unit, low: Option<f64>, high: Option<f64>) -> String {
    match (low, high) {
        (Some(low), Some(high)) => format!("{} to {}", in_unit(unit, low), in_unit(unit, high)),
        _ => "-".to_owned(),
    }
}

/// How the repetitions of a cost ended.
#[must_use]
pub fn cost_end(cost: &Cost) -> &'static str {
    match cost.end {
        Some(CostEnd::Precise) => "precise",
        Some(CostEnd::TimeLimit) => "time limit",
        Some(CostEnd::NotMeasurable) => "not measurable",
        None => "-",
    }
}

/// How a cost stands to that of the first run.
#[must_use]
pub fn against(against: Option<Against>) -> &'static str {
    match against {
        Some(Against::Better) => "better",
        Some(Against::Worse) => "worse",
        Some(Against::Alike) => "not shown to differ",
        None => "-",
    }
}

/// Every repetition of a cost, in their order.
#[must_use]
pub fn repetitions(cost: &Cost) -> String {
    let values: Vec<_> = cost.repetitions.iter().map(|one| in_unit(cost.unit, *one)).collect();
    format!("repetitions of {} operations: {}", grouped(cost.iterations), values.join(", "))
}

/// A share such as 0.012 as `1.2 %`; `-` without one.
#[must_use]
pub fn share(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_below_what_can_be_measured_is_a_bound() {
        let measured = Cost { value: Some(120.0), high: Some(130.0), ..Cost::default() };
        assert_eq!(cost(&measured), "120.0 ns");
        let below = Cost { end: Some(CostEnd::NotMeasurable), ..measured };
        assert_eq!(cost(&below), "< 130.0 ns");
        assert_eq!(cost_interval(Unit::Ns, None, Some(1.0)), "-");
        assert_eq!(cost_interval(Unit::Ns, Some(1.0), Some(2_000.0)), "1.0 ns to 2.0 us");
        assert_eq!([share(Some(0.0123)), share(None)], ["1.2 %", "-"]);
    }
}
