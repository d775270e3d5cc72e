//! How the table of costs is headed and written: the layout of LMbench's published summary.

use punctual_core::compare::{MatchedCost, ToFirst};
use punctual_core::key::{NO_LOAD, load_name, subject};
use punctual_core::schema::{Better, Cell, Cost, CostEnd, CostSection, Unit};
use punctual_core::units::grouped;

use super::clean;
use super::numbers::in_unit;

/// How ratios of costs are to be read.
pub const COST_RATIOS: &str = "Ratios are to the first, with 95 % intervals, and coloured only where \
    the interval excludes 1: of 20 that are alike, one does so by chance.";

/// What the intervals of ratios of single runs say.
pub const COST_RATIOS_OF_RUNS: &str = "Intervals are those of the repetitions within one run of each: \
    what another boot would change is not in them.";

/// What the intervals of ratios of replicates say.
pub const COST_RATIOS_OF_KERNELS: &str = "Values are medians over the runs of a kernel, and intervals \
    are over runs: at least 4 of each kernel.";

/// The sections in the order of the table.
pub const SECTIONS: [CostSection; 9] = [
    CostSection::Processor,
    CostSection::ContextSwitching,
    CostSection::Communication,
    CostSection::FilesAndMemory,
    CostSection::Bandwidths,
    CostSection::Basics,
    CostSection::MemoryLatencies,
    CostSection::Disk,
    CostSection::Others,
];

const fn section_title(section: CostSection) -> &'static str {
    match section {
        CostSection::Basics => "Basic parameters of the system",
        CostSection::Processor => "Processor and processes",
        CostSection::ContextSwitching => "Context switching",
        CostSection::Communication => "Local communication latencies",
        CostSection::FilesAndMemory => "File and virtual memory latencies",
        CostSection::Bandwidths => "Communication and memory bandwidths",
        CostSection::MemoryLatencies => "Memory latencies",
        CostSection::Disk => "Disk",
        CostSection::Others => "Others",
    }
}

fn title(section: CostSection, load: &str) -> String {
    let title = section_title(section);
    if load == NO_LOAD {
        title.to_owned()
    } else {
        format!("{title} under {}", clean(load_name(load)))
    }
}

/// What the costs of a part of the table have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostHead {
    /// Name and load.
    pub name: String,
    /// Name, load, unit and direction, as far as all share them.
    pub title: String,
    /// The unit, if all have one.
    pub unit: Option<Unit>,
    /// Whether rows have to say which way is better.
    pub mixed: bool,
}

/// The head of a section under a load, by unit and direction of each of its costs.
#[must_use]
pub fn cost_head(section: CostSection, load: &str, costs: &[(Unit, Better)]) -> CostHead {
    let first = costs.first().copied().unwrap_or_default();
    let name = title(section, load);
    let mut title = name.clone();
    let unit = costs.iter().all(|(unit, _)| *unit == first.0).then_some(first.0);
    let one_way = costs.iter().all(|(_, better)| *better == first.1);
    if let Some(unit) = unit.filter(|unit| *unit != Unit::Ratio) {
        title.push_str(&format!(", {}", unit.name()));
    }
    // A clock rate is neither good nor bad.
    let judged = section != CostSection::Basics;
    if judged {
        title.push_str(match first.1 {
            _ if !one_way => ", smaller is better unless it says bigger",
            Better::Less => ", smaller is better",
            Better::More => ", bigger is better",
        });
    }
    CostHead { name, title, unit, mixed: judged && !one_way }
}

impl CostHead {
    /// A value, with its unit if the head has none.
    #[must_use]
    pub fn value(&self, unit: Unit, value: f64) -> String {
        if self.unit == Some(unit) { digits(value) } else { in_unit(unit, value) }
    }

    /// A value, or the bound below which a time lies, or above which a rate does; empty without any.
    #[must_use]
    pub fn cost(
        &self,
        unit: Unit,
        end: Option<CostEnd>,
        value: Option<f64>,
        (low, high): (Option<f64>, Option<f64>),
    ) -> String {
        let bounded = end == Some(CostEnd::NotMeasurable);
        match (value, low, high) {
            (Some(value), ..) => self.value(unit, value),
            (None, _, Some(bound)) if bounded => format!("< {}", self.value(unit, bound)),
            (None, Some(bound), None) if bounded => format!("> {}", self.value(unit, bound)),
            _ => String::new(),
        }
    }

    /// The interval of a cost; `-` without one.
    #[must_use]
    pub fn interval(&self, cost: &Cost) -> String {
        match (cost.low, cost.high) {
            (Some(low), Some(high)) => {
                format!("{} to {}", self.value(cost.unit, low), self.value(cost.unit, high))
            }
            _ => "-".to_owned(),
        }
    }

    /// A name, with the direction if the head has none.
    #[must_use]
    pub fn row(&self, name: &str, better: Better) -> String {
        match better {
            Better::More if self.mixed => format!("{} (bigger is better)", clean(name)),
            _ => clean(name).into_owned(),
        }
    }
}

/// Four significant digits.
#[must_use]
pub fn digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    if value.abs() >= 9_999.5 {
        let sign = if value < 0.0 { "-" } else { "" };
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "`as` saturates, and no cost comes near"
        )]
        return format!("{sign}{}", grouped(value.abs().round() as u64));
    }
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a logarithm is small, and clamped"
    )]
    let decimals = (3.0 - value.abs().log10().floor()).clamp(0.0, 9.0) as usize;
    format!("{value:.decimals$}")
}

/// What a metric is called in the table.
#[must_use]
pub fn cost_name(cell: &Cell) -> &str {
    let column = cell.cost().and_then(|cost| cost.column.as_deref());
    column.unwrap_or_else(|| subject(&cell.key))
}

/// The costs of each section and load, in the order of the table.
#[must_use]
pub fn cost_parts<'a, T>(
    costs: &'a [T],
    place: impl Fn(&'a T) -> (CostSection, &'a str),
) -> Vec<(CostSection, &'a str, Vec<&'a T>)> {
    let mut parts: Vec<(CostSection, &str, Vec<&T>)> = Vec::new();
    for cost in costs {
        let (section, load) = place(cost);
        match parts.iter_mut().find(|(of, under, _)| (*of, *under) == (section, load)) {
            Some((_, _, known)) => known.push(cost),
            None => parts.push((section, load, vec![cost])),
        }
    }
    let order = |section| SECTIONS.iter().position(|of| *of == section);
    parts.sort_by_key(|(section, load, _)| (*load != NO_LOAD, order(*section)));
    parts
}

/// [`cost_parts`] of costs side by side, each with its head.
#[must_use]
pub fn compared_parts(costs: &[MatchedCost]) -> Vec<(CostHead, Vec<&MatchedCost>)> {
    let parts = cost_parts(costs, |cost| (cost.section, cost.load.as_str()));
    let headed = parts.into_iter().map(|(section, load, costs)| {
        let kinds: Vec<_> = costs.iter().map(|cost| (cost.unit, cost.better)).collect();
        (cost_head(section, load, &kinds), costs)
    });
    headed.collect()
}

/// A ratio of costs with three decimals below 10, so that 1 can be told from what is near it; `-`
/// without one.
#[must_use]
pub fn cost_ratio(ratio: Option<f64>) -> String {
    ratio.map_or_else(
        || "-".to_owned(),
        |ratio| match ratio {
            r if r >= 100.0 => format!("{r:.0}"),
            r if r >= 10.0 => format!("{r:.1}"),
            r => format!("{r:.3}"),
        },
    )
}

/// The interval of a ratio, such as `1.601 to 1.642`; `-` without one.
#[must_use]
pub fn ratio_interval(to_first: &ToFirst) -> String {
    let ends = to_first.ratio_interval;
    ends.map_or_else(
        || "-".to_owned(),
        |[low, high]| format!("{} to {}", cost_ratio(Some(low)), cost_ratio(Some(high))),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_four_digits() {
        for (value, text) in [
            (0.000_123_45, "0.0001234"),
            (0.55, "0.5500"),
            (7.341, "7.341"),
            (110.83, "110.8"),
            (4156.4, "4156"),
            (34_000.0, "34,000"),
            (-2.0, "-2.000"),
            (0.0, "0"),
        ] {
            assert_eq!(digits(value), text);
        }
    }

    #[test]
    fn a_head_says_what_all_share() {
        let less = (Unit::Us, Better::Less);
        let rate = (Unit::PerSecond, Better::More);
        let head = |section, load, costs: &[_]| cost_head(section, load, costs);
        let same = head(CostSection::Processor, "none", &[less, less]);
        assert_eq!(same.title, "Processor and processes, us, smaller is better");
        assert_eq!(same.value(Unit::Us, 0.5), "0.5000");
        let mixed = head(CostSection::Others, "fork", &[less, rate]);
        assert_eq!(
            (mixed.title.as_str(), mixed.unit),
            ("Others under fork, smaller is better unless it says bigger", None)
        );
        assert_eq!(mixed.row("processes", Better::More), "processes (bigger is better)");
        assert_eq!(mixed.value(Unit::Us, 0.5), "500.0 ns");
        let basics = head(CostSection::Basics, "none", &[(Unit::Megahertz, Better::More), less]);
        assert_eq!(
            (basics.title.as_str(), basics.mixed),
            ("Basic parameters of the system", false)
        );
    }
}
