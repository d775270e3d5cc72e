//! How late a release can be in one cell over runs: the largest of the samples, and what the aimed
//! releases measured.

use punctual_core::units::SECOND_NS;

use super::curves::{SPOT, spot};
use super::drawing::{Drawing, Label, Pen};
use super::frame::{self, BELOW, Frame, LINE};
use super::latency::{Axis, Range};
use super::legend::Legend;
use super::name;
use super::sections::at_least_one;
use super::sheet::Figure;
use super::spread::{REACH, dot};
use super::theme::Colour;
use super::typeface::{self, LARGEST};
use crate::aimed::found::{AimedFrom, SameCourse, aimed_ns, cell_name};
use crate::explanation::times::length;
use crate::sections::found::between;

/// Height of a run: its name above its marks.
const ROW: f64 = 46.0;
/// Top of the plotting area.
const TOP: f64 = 8.0;
/// Room in a row between a name and the value on its right.
const GAP: f64 = 24.0;

/// The largest of the samples.
const SAMPLED: Pen = spot(Colour::Text);

/// The longest latency that is told from longer ones, ns: an hour. Labels of longer ones would be
/// wider than their room.
const LONGEST: i64 = 3_600 * SECOND_NS.cast_signed();

/// The figure of a cell, with the axis that those of all cells share; none without a latency.
pub(crate) fn of_cell(same: &SameCourse<'_>, all: &[SameCourse<'_>]) -> Option<Figure> {
    latencies(same).next()?;
    let range = range(all);
    let axis = range.axis(frame::LEFT, frame::RIGHT);
    let bottom = TOP + ROW * same.runs.len() as f64 + 8.0;
    let frame = Frame { left: frame::LEFT, right: frame::RIGHT, top: TOP, bottom };
    let mut drawing = Drawing::default();
    axis.draw(&mut drawing, frame, 6, "latency, logarithmic");
    for (number, one) in same.runs.iter().enumerate() {
        row(&mut drawing, one, &axis, frame, TOP + ROW * number as f64);
    }
    frame.border(&mut drawing);
    let y = bottom + BELOW + LINE;
    let mut legend = Legend::at(&mut drawing, y);
    legend.mark("aimed release", |to, at| to.circle(at, 3.6, dot(Colour::Data), None));
    legend.mark("largest of the samples", |to, at| to.circle(at, SPOT, SAMPLED, None));
    let name = cell_name(same.key, same.course);
    Some(Figure {
        name: name::of_load("aimed", same.number, same.load),
        title: format!("How late a release can be · {name}"),
        description: format!(
            "The largest latency of the samples and those of the aimed releases on a logarithmic \
             latency axis. {}.",
            same.runs.iter().map(described).collect::<Vec<_>>().join("; ")
        ),
        height: y + 10.0,
        drawing,
    })
}

/// All that the figure of a cell has to show, ns.
fn latencies(same: &SameCourse<'_>) -> impl Iterator<Item = i64> {
    let cells = same.runs.iter().map(|one| one.cell);
    let ns = cells.flat_map(|cell| {
        let aimed = cell.targets.iter().filter_map(|target| target.latency_ns());
        aimed.chain(cell.sampled_max_ns)
    });
    ns.map(shown)
}

/// What the axis can show.
fn shown(ns: u64) -> i64 {
    at_least_one(ns).min(LONGEST)
}

fn range(all: &[SameCourse<'_>]) -> Range {
    let ends = all.iter().flat_map(latencies);
    let ends = ends.fold((i64::MAX, 1), |(low, high), ns| (low.min(ns), high.max(ns)));
    Range::spanning(ends.0.min(ends.1), ends.1)
}

/// `aimed 591.7 us`.
fn value(one: &AimedFrom<'_>) -> String {
    match aimed_ns(one.cell) {
        Some(ns) => format!("aimed {}", length(ns)),
        None => "none measured".to_owned(),
    }
}

/// A run in words, for those who cannot see it.
fn described(one: &AimedFrom<'_>) -> String {
    let sampled = one.cell.sampled_max_ns.map(|ns| format!(", samples at most {}", length(ns)));
    let (name, value) = (&one.name, value(one));
    format!("{name}: {value}{}", sampled.unwrap_or_default())
}

fn row(to: &mut Drawing, one: &AimedFrom<'_>, axis: &Axis, frame: Frame, top: f64) {
    let value = value(one);
    let room = frame.right - frame.left - 12.0 - GAP - typeface::room(&value, LARGEST, true);
    let y = top + 18.0;
    to.text(Label::new(typeface::cut(&one.name, room), frame.left + 6.0, y).soft());
    to.text(Label::new(value, frame.right - 6.0, y).end().bold());
    let middle = top + 34.0;
    let x = |ns: u64| axis.map(shown(ns) as f64);
    let sampled = one.cell.sampled_max_ns;
    if let Some((sampled, aimed)) = sampled.zip(aimed_ns(one.cell)) {
        to.line((x(sampled), middle), (x(aimed), middle), REACH);
    }
    for (number, target) in one.cell.targets.iter().enumerate() {
        let Some(ns) = target.latency_ns() else { continue };
        // Equal values are drawn above each other: otherwise they could not be counted.
        let y = middle + [0.0, -4.0, 4.0, -2.0, 2.0][number % 5];
        let section = &target.section;
        let [aimed, long] = [ns, section.length_ns].map(length);
        let between = between(&section.from, &section.to);
        let note = format!("{}: {aimed}, aimed at a section of {long} {between}", one.name);
        to.circle((x(ns), y), 3.6, dot(Colour::Data), Some(note));
    }
    if let Some(ns) = sampled {
        let note = format!("{}: the samples found at most {}", one.name, length(ns));
        to.circle((x(ns), middle), SPOT, SAMPLED, Some(note));
    }
}
