//! Minimum, average and maximum of every cell as places on one axis a probe. A bar would have to
//! begin somewhere, and a logarithmic axis has no zero.

use punctual_core::schema::Latency;
use punctual_core::units::human_ns;

use super::deadline::{colour, lines_of, missed};
use super::drawing::{Drawing, Label, Pen};
use super::entry::{Entry, Material, Place};
use super::frame;
use super::frame::{BELOW, Frame, LINE, Lines};
use super::latency::Axis;
use super::legend::Legend;
use super::name;
use super::sheet::Figure;
use super::theme::Colour;
use super::typeface::{self, LARGEST};
use crate::subject::Subject;
use crate::words;

/// Room for the range of a cell below its label.
const RANGE: f64 = 26.0;
/// Room between a label and the value on its right.
const GAP: f64 = 24.0;

pub const ENTRY: Entry = Entry { place: Place::Overview, draw };

const SPAN: Pen = Pen::line("span", Colour::Data, 2.0);
const MIN: Pen = Pen::line("min", Colour::Data, 2.0);
const AVG: Pen = Pen::line("avg", Colour::Data, 1.6).filled(Colour::Paper);

/// Kernels with replicates have the spread of their runs instead.
fn draw(material: &Material<'_>) -> Vec<Figure> {
    if material.kernels.is_some() || material.subjects.is_empty() {
        return Vec::new();
    }
    vec![figure(material)]
}

fn figure(material: &Material<'_>) -> Figure {
    let mut drawing = Drawing::default();
    let mut bottom = 0.0;
    for group in material.by_probe() {
        bottom = panel(&mut drawing, material, &group, bottom);
    }
    let is_late = |s: &Subject<'_>| s.latency.stats.max.is_some_and(|ns| missed(s.run, ns as f64));
    bottom = legend(&mut drawing, bottom + LINE, material.subjects.iter().any(is_late));
    let text = |s: &Subject<'_>| {
        let max = s.latency.stats.max.map_or_else(|| "none".to_owned(), human_ns);
        format!("{}: max {max}", s.label)
    };
    let list: Vec<_> = material.subjects.iter().map(text).collect();
    let is_linear = |s: &Subject<'_>| material.range(s).axis(0.0, 1.0).zero().is_some();
    let axis = match material.subjects.iter().any(is_linear) {
        true => "an axis for each probe",
        false => "a logarithmic latency axis",
    };
    Figure {
        name: "bars".to_owned(),
        title: name::titled(&material.subjects, "Minimum, average and maximum of every cell"),
        description: format!("Ranges on {axis}. {}.", list.join("; ")),
        height: bottom,
        drawing,
    }
}

/// The cells of a probe below `above`; returns where they end.
fn panel(to: &mut Drawing, material: &Material<'_>, group: &[&Subject<'_>], above: f64) -> f64 {
    let Some(first) = group.first() else { return above };
    let axis = material.range(first).axis(frame::LEFT, frame::RIGHT);
    let lines = Lines::of(lines_of(group, &axis));
    let width = frame::RIGHT - frame::LEFT - 12.0;
    let rows: Vec<_> = group
        .iter()
        .map(|subject| {
            let value = subject.latency.stats.max.map(|ns| format!("max {}", human_ns(ns)));
            let value = value.unwrap_or_default();
            let room = width - typeface::room(&value, LARGEST, true) - GAP;
            (*subject, value, typeface::wrapped(&subject.label, room, LARGEST, 3))
        })
        .collect();
    let height = |labels: &[String]| LINE * labels.len() as f64 + RANGE;
    let all: f64 = rows.iter().map(|(_, _, labels)| height(labels)).sum();
    let frame = Frame::standard(all + 8.0, &lines).moved(above);
    let name = words::clean(&first.latency.probe).into_owned();
    axis.draw(to, frame, 6, &quantity(&axis, first.latency));
    if !material.ranges.is_single() {
        let name = name::titled(group.iter().copied(), &name);
        to.text(Label::new(name, 4.0, above + 16.0).bold());
    }
    let mut parts = Vec::new();
    let mut top = frame.top + 4.0;
    for (_, _, labels) in &rows {
        top += height(labels);
        parts.push((top - RANGE, top));
    }
    frame.verticals_within(to, &lines, &parts);
    top = frame.top + 4.0;
    for (subject, value, labels) in rows {
        row(to, subject, &axis, top + LINE * labels.len() as f64 + RANGE / 2.0);
        for (number, label) in labels.iter().enumerate() {
            let y = top + LINE * (number as f64 + 1.0) - 5.0;
            to.text(Label::new(label, frame.left + 6.0, y));
        }
        let max = subject.latency.stats.max.unwrap_or(0) as f64;
        let value = Label::new(value, frame.right - 6.0, top + LINE - 5.0).end().bold();
        to.text(value.colour(colour(subject.run, max, Colour::Text)).class("value"));
        top += height(&labels);
    }
    frame.border(to);
    frame.bottom + BELOW
}

/// The name of an axis of ranges.
pub(super) fn quantity(axis: &Axis, latency: &Latency) -> String {
    match axis.zero() {
        Some(_) => axis.quantity(latency),
        None => "latency, logarithmic".to_owned(),
    }
}

fn row(to: &mut Drawing, subject: &Subject<'_>, axis: &Axis, y: f64) {
    let stats = &subject.latency.stats;
    let note = |what: &str, value: f64| {
        Some(format!("{}: {what} {}", subject.label, words::mean_ns(value)))
    };
    let (min, max) = (stats.min.map(|ns| ns as f64), stats.max.map(|ns| ns as f64));
    if let (Some(min), Some(max)) = (min, max) {
        to.line((axis.map(min), y), (axis.map(max), y), SPAN);
    }
    if let Some(min) = min {
        let x = axis.map(min);
        to.lines(vec![vec![(x, y - 6.0), (x, y + 6.0)]], MIN, note("min", min));
    }
    if let Some(avg) = stats.avg {
        to.circle((axis.map(avg), y), 4.0, AVG, note("avg", avg));
    }
    if let Some(max) = max {
        let paint = Pen::area("max", colour(subject.run, max, Colour::Data));
        to.circle((axis.map(max), y), 5.0, paint, note("max", max));
    }
}

/// What the marks are, at a height; returns where it ends.
fn legend(to: &mut Drawing, y: f64, late: bool) -> f64 {
    let mut legend = Legend::at(to, y);
    legend.mark("min", |to, (x, y)| to.line((x, y - 6.0), (x, y + 6.0), MIN));
    legend.mark("avg", |to, at| to.circle(at, 4.0, AVG, None));
    legend.mark("max", |to, at| to.circle(at, 5.0, Pen::area("max", Colour::Data), None));
    if late {
        legend.mark("max later than the deadline", |to, at| {
            to.circle(at, 5.0, Pen::area("max", Colour::Late), None);
        });
    }
    y + 10.0
}
