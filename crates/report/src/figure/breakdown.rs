//! What the mean of a cell's samples is made up of: a bar of the means of its legs, one after the
//! other. Means add up; the quantiles and maxima of legs do not, so they stand in a table.

use punctual_core::schema::{Role, Series, Stats, Unit};
use punctual_core::units::{grouped, human_ns};

use super::drawing::{Drawing, Label};
use super::entry::{Entry, Material, Place};
use super::frame::{Frame, LINE, Lines};
use super::scale::Scale;
use super::sheet::Figure;
use super::stacked::{self, BAR, PartRow, Segment};
use super::theme::Colour;
use super::typeface::{self, LARGEST};
use super::{frame, name};
use crate::subject::Subject;
use crate::words;

pub const ENTRY: Entry = Entry { place: Place::Legs, draw };

/// Below the names of legs.
const BETWEEN: f64 = 10.0;
/// Between the label of a bar and its sum.
const GAP: f64 = 24.0;

const ABOUT: &str = "Means add up, p99.9 and maxima do not.";

/// A cell of which legs are known.
struct Cell<'a, 'b> {
    subject: &'b Subject<'a>,
    /// In the order of time, with their means, ns.
    legs: Vec<(&'a Series, f64)>,
}

impl<'a, 'b> Cell<'a, 'b> {
    fn of(subject: &'b Subject<'a>) -> Option<Self> {
        let legs = subject.latency.series.iter();
        let legs = legs.filter(|series| series.role == Role::Leg && series.unit == Unit::Ns);
        let legs: Vec<_> = legs.filter_map(|leg| Some((leg, mean(&leg.stats)?))).collect();
        (!legs.is_empty()).then_some(Self { subject, legs })
    }

    fn sum(&self) -> f64 {
        self.legs.iter().map(|(_, ns)| ns).sum()
    }

    /// Samples of which all legs are known.
    fn known(&self) -> u64 {
        self.legs.iter().map(|(leg, _)| leg.stats.samples).min().unwrap_or(0)
    }
}

/// The mean as a length: a leg that is early on the whole has none.
fn mean(stats: &Stats) -> Option<f64> {
    stats.avg.map(|ns| ns.clamp(0.0, i64::MAX as f64))
}

fn draw(material: &Material<'_>) -> Vec<Figure> {
    let groups = material.by_probe().into_iter();
    let cells = groups.map(|group| group.into_iter().filter_map(Cell::of).collect::<Vec<_>>());
    cells.filter_map(|cells| figure(&cells)).collect()
}

fn figure(cells: &[Cell<'_, '_>]) -> Option<Figure> {
    let first = cells.first()?.subject;
    let width = frame::RIGHT - frame::LEFT - 12.0;
    let labels: Vec<_> = cells
        .iter()
        .map(|cell| {
            let sum = format!("{} in all", words::mean_ns(cell.sum()));
            let room = width - GAP - typeface::room(&sum, LARGEST, true);
            (typeface::wrapped(&cell.subject.label, room, LARGEST, 3), sum)
        })
        .collect();
    let height = |label: &[String]| LINE * (label.len() as f64 + 1.0) + BAR + BETWEEN;
    let all = labels.iter().map(|(label, _)| height(label)).sum();
    let frame = Frame::standard(all, &Lines::default());
    let scale = stacked::scale(cells.iter().map(Cell::sum).fold(0.0, f64::max));
    let mut drawing = Drawing::default();
    let bottom =
        stacked::axis(&mut drawing, &frame, &scale, "means of the legs, one after the other");
    drawing.text(Label::new(ABOUT, 4.0, 16.0).soft());
    if let Some(note) = &first.note {
        frame.note(&mut drawing, note, ABOUT);
    }
    let mut top = frame.top;
    for (cell, (label, sum)) in cells.iter().zip(&labels) {
        for (number, line) in label.iter().enumerate() {
            let y = top + LINE * (number as f64 + 1.0) - 4.0;
            drawing.text(Label::new(line, frame.left + 6.0, y));
        }
        drawing.text(Label::new(sum, frame.right - 6.0, top + LINE - 4.0).end().bold());
        bar(&mut drawing, cell, &scale, top + LINE * label.len() as f64 + 2.0);
        top += height(label);
    }
    frame.border(&mut drawing);
    let rows: Vec<_> = cells.iter().flat_map(rows).collect();
    let height = stacked::table(&mut drawing, ["mean", "p99.9", "max"], &rows, bottom);
    let noun = words::clean(&first.latency.primary.noun);
    let probe = words::clean(&first.latency.probe);
    let title = format!("What the mean {noun} consists of · {probe}");
    Some(Figure {
        name: name::of_probe("breakdown", &first.latency.probe),
        title: name::titled(cells.iter().map(|cell| cell.subject), &title),
        description: name::described(first, description(cells)),
        height,
        drawing,
    })
}

fn bar(to: &mut Drawing, cell: &Cell<'_, '_>, scale: &Scale, top: f64) {
    let text =
        |leg: &Series, ns: f64| format!("{} {}", words::clean(&leg.name), words::mean_ns(ns));
    let parts = cell.legs.iter().enumerate().map(|(number, (leg, ns))| Segment {
        ns: *ns,
        colour: Colour::Curve(number),
        note: text(leg, *ns),
    });
    stacked::bar(to, &parts.collect::<Vec<_>>(), scale, top);
    let mut from = 0.0;
    let names = cell.legs.iter().map(|(leg, ns)| {
        from += ns;
        (from - ns, *ns, text(leg, *ns))
    });
    stacked::names(to, &names.collect::<Vec<_>>(), scale, top + BAR + LINE - 5.0);
}

fn values(stats: &Stats) -> [String; 3] {
    let of = |ns: Option<i64>| ns.map_or_else(|| "-".to_owned(), human_ns);
    [stats.avg.map_or_else(|| "-".to_owned(), words::mean_ns), of(stats.p999), of(stats.max)]
}

/// The table of a cell: the leg with the longest maximum has it in bold.
fn rows(cell: &Cell<'_, '_>) -> Vec<PartRow> {
    let latency = cell.subject.latency;
    let max = cell.legs.iter().filter_map(|(leg, _)| leg.stats.max).max();
    let mut rows =
        vec![PartRow { name: cell.subject.label.clone(), head: true, ..PartRow::default() }];
    rows.extend(cell.legs.iter().enumerate().map(|(number, (leg, _))| PartRow {
        colour: Some(Colour::Curve(number)),
        name: words::clean(&leg.name).into_owned(),
        values: values(&leg.stats),
        bold: (leg.stats.max == max).then_some(2),
        head: false,
    }));
    rows.push(PartRow {
        name: words::clean(&latency.primary.name).into_owned(),
        values: values(&latency.stats),
        ..PartRow::default()
    });
    let (known, all) = (cell.known(), latency.stats.samples);
    if known < all {
        let nouns = words::clean(&latency.primary.nouns);
        let name = format!("The legs are those of {} of {} {nouns}.", grouped(known), grouped(all));
        rows.push(PartRow { name, ..PartRow::default() });
    }
    rows
}

fn description(cells: &[Cell<'_, '_>]) -> String {
    let of = |cell: &Cell<'_, '_>| {
        let leg = |(leg, ns): &(&Series, f64)| {
            let [_, p999, max] = values(&leg.stats);
            let (name, mean) = (words::clean(&leg.name), words::mean_ns(*ns));
            format!("{name} {mean} (p99.9 {p999}, max {max})")
        };
        let legs: Vec<_> = cell.legs.iter().map(leg).collect();
        format!("{}: {}", cell.subject.label, legs.join(", "))
    };
    let cells: Vec<_> = cells.iter().map(of).collect();
    format!(
        "A bar for each cell: the means of its legs in the order of time. {}.",
        cells.join("; ")
    )
}
