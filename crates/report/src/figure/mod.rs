//! Figures, drawn once and written as SVG, PDF and PNG. All figures of a probe share one
//! latency axis, so that cells and kernels can be compared by eye.
//!
//! A figure is a file with an `Entry` and a line in `FIGURES`.

mod actors;
pub(crate) mod aimed;
mod bands;
mod bars;
mod breakdown;
mod ccdf;
mod clusters;
mod costs;
mod cpus;
mod curves;
mod deadline;
mod density;
mod drawing;
mod entry;
pub(crate) mod flame;
mod frame;
mod had;
mod histogram;
pub(crate) mod history;
mod latency;
mod latest;
mod legend;
mod legs;
mod longest;
mod name;
mod pdf;
mod persistence;
mod png;
mod raster;
mod returns;
mod scale;
pub(crate) mod sections;
mod sheet;
mod spread;
mod stacked;
mod stacks;
mod svg;
mod theme;
mod threads;
mod timeline;
mod trade;
mod typeface;
mod work;

use punctual_core::compare::{Comparison, compare};
use punctual_core::run::LoadedRun;

use entry::{Entry, Material};
use latency::Ranges;

pub(crate) use entry::Place;
pub use sheet::{Figure, Text, WIDTH};
pub(crate) use theme::style;

use crate::replicates::Kernels;
use crate::{data, subject};

/// Every kind of figure, in the order in which a report shows them.
const FIGURES: [Entry; 16] = [
    spread::ENTRY,
    bars::ENTRY,
    ccdf::ENTRY,
    breakdown::ENTRY,
    latest::ENTRY,
    legs::ENTRY,
    persistence::ENTRY,
    histogram::ENTRY,
    threads::ENTRY,
    timeline::ENTRY,
    returns::ENTRY,
    clusters::ENTRY,
    actors::ENTRY,
    cpus::ENTRY,
    trade::ENTRY,
    costs::ENTRY,
];

/// The figures of a report with their places, in the order in which it shows them.
pub(crate) fn set(
    runs: &[LoadedRun],
    comparison: &Comparison,
    kernels: Option<&Kernels<'_>>,
) -> Vec<(Place, Figure)> {
    let ranges = Ranges::of(runs);
    let (subjects, single) = match kernels {
        Some(kernels) => (kernels.pooled(), kernels.worst()),
        None => (subject::of_runs(runs), subject::of_runs(runs)),
    };
    let several = runs.len() > 1;
    let material = Material { ranges, subjects, single, comparison, kernels, several };
    let drawn = FIGURES
        .iter()
        .flat_map(|entry| (entry.draw)(&material).into_iter().map(|figure| (entry.place, figure)));
    drawn.collect()
}

/// Which figures a reader may miss, and why they are left out.
#[must_use]
pub fn left_out(runs: &[LoadedRun]) -> Option<&'static str> {
    let mut cells = runs.iter().flat_map(data::cells);
    cells.any(|(cell, data)| timeline::is_too_short(cell, data)).then_some(timeline::TOO_SHORT)
}

/// Every figure of a report, each complete in itself.
#[must_use]
pub fn figures(runs: &[LoadedRun]) -> Vec<Figure> {
    let comparison = compare(runs);
    let kernels = Kernels::of(runs, &comparison);
    set(runs, &comparison, kernels.as_ref()).into_iter().map(|(_, figure)| figure).collect()
}
