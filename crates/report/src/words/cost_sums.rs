//! What costs come to: the sentence on their mean, and indices.

use punctual_core::compare::{Comparison, CostMean, Trade, TurnedCost};
use punctual_core::indices::{BASELINE, INDICES, IndexValue};
use punctual_core::key::{NO_LOAD, load_name};
use punctual_core::published;
use punctual_core::units::human_ns;

use super::cost_table::cost_ratio;
use super::names::{kernel_names, key_name, letter};
use super::{clean, runs};

/// What must be said of any publication beside a run.
pub const PUBLISHED: &str = "Other machines, kernels, compilers and programs: what differs by less \
    than several times says nothing. Blank is blank in the publication, or not measured.";

/// The names of what costs are compared of: kernels, or letters of runs.
#[must_use]
pub fn cost_sides(comparison: &Comparison) -> Vec<String> {
    if comparison.has_costs_by_kernel() {
        kernel_names(&comparison.groups)
    } else {
        (0..comparison.runs.len()).map(letter).collect()
    }
}

/// What a kernel costs altogether, in one sentence.
#[must_use]
pub fn mean_sentence(names: &[String], mean: &CostMean) -> String {
    let name = |at: usize| names.get(at).map_or("", String::as_str);
    let side = name(mean.group.or(mean.run).unwrap_or_default());
    let load = match mean.load.as_str() {
        NO_LOAD => String::new(),
        load => format!(" under {}", clean(load_name(load))),
    };
    let list = |costs: &[TurnedCost]| {
        let texts =
            costs.iter().map(|c| format!("{} {}", clean(&c.name), cost_ratio(Some(c.ratio))));
        texts.collect::<Vec<_>>().join(", ")
    };
    let (noun, of) =
        if mean.costs == 1 { ("ratio", "one") } else { ("ratios", "geometric mean of") };
    let of = if mean.costs == 1 { of.to_owned() } else { format!("{of} {}", mean.costs) };
    let best = match &mean.best[..] {
        [] => String::new(),
        best => format!("; best: {}", list(best)),
    };
    format!(
        "{side} costs {} times what {} does{load} ({of} {noun}, above 1 is worse; {} shown to be \
         worse, {} better); worst: {}{best}",
        cost_ratio(Some(mean.ratio)),
        name(0),
        mean.shown_worse,
        mean.shown_better,
        list(&mean.worst)
    )
}

/// What an index is, and what it is not.
#[must_use]
pub fn index_about(name: &str) -> String {
    let index = INDICES.iter().find(|index| index.name == name);
    index.map_or_else(String::new, |index| format!("{name}: {}", index.summary))
}

/// What 100 stands for.
#[must_use]
pub fn index_baseline() -> String {
    let (citation, kernel) = BASELINE;
    let platform = published::find(citation).and_then(|of| of.costs().into_iter().next());
    let platform = platform.map(|cost| cost.platform).unwrap_or_default();
    format!(
        "Bigger is better; 100 is {kernel} on the {platform}, as published ({citation}), whose fork, \
         exec, sh and mmap do more, and whose bandwidths are doubtful: compare indices with each other \
         only."
    )
}

/// An index, or which of its parts are missing: `123.4 (120.1 to 126.0)`.
#[must_use]
pub fn index_value(index: &IndexValue) -> String {
    match (index.value, index.low, index.high) {
        (Some(value), Some(low), Some(high)) => format!("{value:.1} ({low:.1} to {high:.1})"),
        (Some(value), ..) => format!("{value:.1}"),
        (None, ..) => format!("no value, for want of {}", index.missing.join(", ")),
    }
}

/// The name of an index, with the load if there is one.
#[must_use]
pub fn index_name(index: &IndexValue) -> String {
    match index.load.as_str() {
        NO_LOAD => index.name.to_owned(),
        load => format!("{} under {}", index.name, clean(load_name(load))),
    }
}

/// Whether an index is worth a line: few of its parts in a run are no attempt at it.
#[must_use]
pub fn is_attempted(index: &IndexValue) -> bool {
    2 * index.missing.len() < index.parts
}

/// An index of every side of a comparison: of a kernel the median over its runs.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexRow {
    /// Its name.
    pub index: String,
    /// Its name, with the load.
    pub name: String,
    /// Its text on each side.
    pub texts: Vec<String>,
}

/// The indices that at least one run attempts.
#[must_use]
pub fn index_rows(comparison: &Comparison) -> Vec<IndexRow> {
    let sides: Vec<Vec<usize>> = if comparison.has_costs_by_kernel() {
        comparison.groups.iter().map(|group| group.runs.clone()).collect()
    } else {
        (0..comparison.runs.len()).map(|run| vec![run]).collect()
    };
    let attempted = comparison.indices.iter().flatten().filter(|index| is_attempted(index));
    let mut keys: Vec<(&str, &str)> = Vec::new();
    for index in attempted {
        if !keys.contains(&(index.name, &index.load)) {
            keys.push((index.name, &index.load));
        }
    }
    let row = |(name, load): (&str, &str)| {
        let of = |run: &usize| {
            let found = comparison.indices.get(*run)?.iter();
            found.into_iter().find(|index| index.name == name && index.load == load)
        };
        let any = sides.iter().flatten().find_map(of);
        let text = |side: &Vec<usize>| match &side.iter().filter_map(of).collect::<Vec<_>>()[..] {
            [] => "-".to_owned(),
            [one] => index_value(one),
            several => median_text(several),
        };
        IndexRow {
            index: name.to_owned(),
            name: any.map_or_else(|| name.to_owned(), index_name),
            texts: sides.iter().map(text).collect(),
        }
    };
    keys.into_iter().map(row).collect()
}

/// Over the runs of a kernel; if none has a value, what the first lacks.
fn median_text(indices: &[&IndexValue]) -> String {
    let mut values: Vec<f64> = indices.iter().filter_map(|index| index.value).collect();
    values.sort_by(f64::total_cmp);
    let (Some(low), Some(high)) = (values.first(), values.last()) else {
        return indices.first().map_or_else(String::new, |index| index_value(index));
    };
    let median = f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2]);
    format!("{median:.1} ({low:.1} to {high:.1})")
}

/// How the latency and the cost of kernels are to be read.
#[must_use]
pub fn trade_about(trade: &[Trade]) -> String {
    let Some(first) = trade.first() else { return String::new() };
    let load = match first.load.as_str() {
        NO_LOAD => "idle".to_owned(),
        load => format!("under {}", clean(load_name(load))),
    };
    format!(
        "The largest latency of each kernel in any cell that all have measured, and what its costs \
         are, {load}, over those of the first: the geometric mean of {} ratios, above 1 is worse.",
        first.costs
    )
}

/// The latency of a kernel and where it is from: `500.3 us in wakeup @ hackbench @ 4s, 4 runs`.
#[must_use]
pub fn trade_latency(trade: &Trade) -> String {
    format!("{} in {}, {}", human_ns(trade.max_ns), key_name(&trade.key), runs(trade.runs))
}
