//! What the latencies of a cell consist of: the distribution of each leg, and of the interrupt
//! latency over runs. That of the whole latency has a figure of its own (`ccdf.rs`).

use std::collections::BTreeMap;

use punctual_core::explanation::Milestone;
use punctual_core::histogram::SignedBin;
use punctual_core::legs::{CellLegs, LegTimes, SampleLegs};

use super::curves::{Chart, Curve, Look, points};
use super::entry::{Entry, Material, Place};
use super::latency::Range;
use super::sections::at_least_one;
use super::sheet::Figure;
use super::{frame, name};
use crate::data::Bins;
use crate::explanation::times::length;
use crate::legs::cells;
use crate::subject::Subject;
use crate::words;

pub const ENTRY: Entry = Entry { place: Place::Legs, draw };

/// What both axes of a figure show.
const NAMES: [&str; 2] = ["length of a leg", "share of samples with a longer one"];

fn draw(material: &Material<'_>) -> Vec<Figure> {
    let cells = cells(&material.single);
    let all = cells.iter().flatten().filter_map(|subject| subject.legs);
    let range = range(all);
    let mut figures = Vec::new();
    for cell in &cells {
        figures.extend(cell.iter().filter_map(|subject| of_run(subject, &range)));
        figures.extend(over_runs(cell, &range));
    }
    figures
}

/// The lengths of all legs, so that all figures have one axis.
fn range<'a>(all: impl Iterator<Item = &'a CellLegs>) -> Range {
    let (mut low, mut high) = (i64::MAX, 1);
    for leg in all.flat_map(|cell| &cell.legs) {
        low = low.min(at_least_one(leg.min_ns));
        high = high.max(at_least_one(leg.max_ns));
    }
    Range::spanning(low.min(high), high)
}

/// Each leg of one run's samples.
fn of_run(subject: &Subject<'_>, range: &Range) -> Option<Figure> {
    let legs = subject.legs?;
    let curve = |(number, leg): (usize, &LegTimes)| {
        let mark = (number + 1).to_string();
        let label = named(words::leg_title(leg.until), leg);
        curve(legs, leg.until, Look { mark, label, colour: number, dash: number })
    };
    let curves: Vec<_> = legs.legs.iter().enumerate().filter_map(curve).collect();
    let title = format!("Legs · {}", subject.label);
    drawn(name::of_cell("legs", subject), title, &curves, range, &[subject])
}

/// The interrupt latency of several runs; none of one.
fn over_runs(cell: &[&Subject<'_>], range: &Range) -> Option<Figure> {
    let first = cell.first().filter(|_| cell.len() > 1)?;
    let curve = |(number, subject): (usize, &&Subject<'_>)| {
        let legs = subject.legs?;
        let label = named(&subject.label, legs.t1.as_ref()?);
        let mark = words::letter(number);
        curve(legs, Milestone::Interrupt, Look { mark, label, colour: number, dash: number })
    };
    let curves: Vec<_> = cell.iter().enumerate().filter_map(curve).collect();
    let title = format!("Interrupt latency (t1) · {}", words::cell_name(first.cell));
    drawn(name::of_cell("t1", first), title, &curves, range, cell)
}

/// `switch, max 1.2 us`.
fn named(name: &str, leg: &LegTimes) -> String {
    format!("{name}, max {}", length(leg.max_ns))
}

/// The distribution of a leg; none if no sample has it.
fn curve(legs: &CellLegs, until: Milestone, look: Look) -> Option<Curve> {
    let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
    let length = |sample: &SampleLegs| sample.length_ns(until).map(at_least_one);
    legs.samples.iter().filter_map(length).for_each(|ns| *counts.entry(ns).or_default() += 1);
    let bin = |(ns, count)| SignedBin { low: ns, high: ns, count };
    let bins: Vec<_> = counts.into_iter().map(bin).collect();
    (!bins.is_empty()).then(|| Curve {
        look,
        points: points(&Bins { bins, coarse: false }),
        spot: None,
    })
}

fn drawn(
    name: String,
    title: String,
    curves: &[Curve],
    range: &Range,
    subjects: &[&Subject<'_>],
) -> Option<Figure> {
    let first = subjects.first().filter(|_| !curves.is_empty())?;
    let axis = range.axis(frame::LEFT, frame::RIGHT);
    let (drawing, height) =
        Chart { curves, axis, lines: Vec::new(), levels: Vec::new(), names: NAMES }.draw();
    let labels: Vec<_> =
        curves.iter().map(|c| format!("{} {}", c.look.mark, c.look.label)).collect();
    let text = format!(
        "Complementary cumulative distributions on logarithmic axes: {}.",
        labels.join("; ")
    );
    let description = name::described(first, text);
    let title = name::titled(subjects.iter().copied(), &title);
    Some(Figure { name, title, description, height, drawing })
}
