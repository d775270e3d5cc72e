//! How costs are called and written in every output.

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

/// What an operation costs: its value, or the bound below which a time
/// lies, or above which a rate does; `-` without one.
#[must_use]
pub fn cost(cost: &Cost) -> String {
    match (cost.end, cost.low, cost.high) {
        (Some(CostEnd::NotMeasurable), _, Some(bound)) => {
            format!("< {}", in_unit(cost.unit, bound))
        }
        (Some(CostEnd::NotMeasurable), Some(bound), None) => {
            format!("> {}", in_unit(cost.unit, bound))
        }
        _ => mean(cost.unit, cost.value),
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

/// Four digits, which tell repetitions apart.
fn digits(value: f64) -> String {
    let places = match value.abs() {
        0.0..0.001 => 6,
        0.001..1.0 => 4,
        1.0..10.0 => 3,
        10.0..100.0 => 2,
        100.0..1e3 => 1,
        _ => 0,
    };
    format!("{value:.places$}")
}

/// How many instructions an operation takes, such as `1,234` or `12.5`.
#[must_use]
pub fn instructions(count: f64) -> String {
    // Fewer digits than a double has: it is worked out from times.
    if count.fract().abs() < 1e-6 { format!("{count:.0}") } else { format!("{count:.2}") }
}

/// Every repetition of a cost, in their order.
#[must_use]
pub fn repetitions(cost: &Cost) -> String {
    let values: Vec<_> = cost.repetitions.iter().map(|one| digits(*one)).collect();
    let (count, unit) = (grouped(cost.iterations), cost.unit.name());
    format!("repetitions of {count} operations, {unit}: {}", values.join(", "))
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
    fn repetitions_are_told_apart_by_four_digits() {
        let values = vec![1.415_78, 1.419_37, 0.061_234, 12.345_6, 4321.5, -0.2, 353.961];
        let cost = Cost { iterations: 8_192, repetitions: values, ..Cost::default() };
        assert_eq!(
            repetitions(&cost),
            "repetitions of 8,192 operations, ns: 1.416, 1.419, 0.0612, 12.35, 4322, -0.2000, 354.0"
        );
        assert_eq!(
            (instructions(354.0).as_str(), instructions(353.961).as_str()),
            ("354", "353.96")
        );
    }

    #[test]
    fn a_cost_below_what_can_be_measured_is_a_bound() {
        let measured = Cost { value: Some(120.0), high: Some(130.0), ..Cost::default() };
        assert_eq!(cost(&measured), "120.0 ns");
        let below = Cost { end: Some(CostEnd::NotMeasurable), ..measured };
        assert_eq!(cost(&below), "< 130.0 ns");
        let rate = Cost { low: Some(9_000.0), high: None, unit: Unit::MegabytesPerSecond, ..below };
        assert_eq!(cost(&rate), "> 9.00 GB/s");
        assert_eq!(cost_interval(Unit::Ns, None, Some(1.0)), "-");
        assert_eq!(cost_interval(Unit::Ns, Some(1.0), Some(2_000.0)), "1.0 ns to 2.0 us");
        assert_eq!([share(Some(0.0123)), share(None)], ["1.2 %", "-"]);
    }
}
