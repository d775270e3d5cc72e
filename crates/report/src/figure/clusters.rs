//! Whether what exceeds a threshold comes singly: the extremal index by threshold, with the range
//! that chance gives.

use punctual_core::stats::{Clustering, Exceeding, clusters_more_than_chance};
use punctual_core::units::grouped;

use super::deadline::{colour, lines_of};
use super::drawing::{Drawing, Pen, Point};
use super::entry::{Entry, Material, Place};
use super::frame::{self, BELOW, Frame, LINE, Lines};
use super::latency::{Range, label};
use super::legend::Legend;
use super::name;
use super::scale::Scale;
use super::sheet::Figure;
use super::theme::Colour;
use crate::data::primaries;
use crate::subject::Subject;

/// Fewer seconds show no cluster.
const LEAST_SECONDS: u64 = 20;
/// Fewer thresholds show no course.
const LEAST: usize = 3;
/// The axis ends at least, and at most, here.
const TOP: (f64, f64) = (1.2, 2.0);

const INDEX: Pen = Pen::line("index", Colour::Data, 1.8);
const CHANCE: Pen = Pen::area("chance", Colour::Grid);

pub const ENTRY: Entry = Entry { place: Place::Returns, draw };

fn draw(material: &Material<'_>) -> Vec<Figure> {
    material.single.iter().filter_map(|one| figure(one, &material.range(one))).collect()
}

/// A threshold with its index.
struct Indexed {
    above: f64,
    index: f64,
    /// The 95 % of single exceedances.
    chance: (f64, f64),
    clusters: bool,
    exceeding: Exceeding,
}

fn indexed(all: &Clustering) -> Vec<Indexed> {
    let one = |exceeding: &Exceeding| {
        Some(Indexed {
            above: exceeding.above_ns as f64,
            index: all.extremal_index(exceeding)?,
            chance: all.index_by_chance(exceeding)?,
            clusters: clusters_more_than_chance(exceeding.seconds, all.seconds, exceeding.samples),
            exceeding: *exceeding,
        })
    };
    all.thresholds.iter().filter_map(one).collect()
}

/// The figure; none of a deterministic board, or if too few thresholds are exceeded in some
/// seconds and not in others.
fn figure(subject: &Subject<'_>, range: &Range) -> Option<Figure> {
    let all = Clustering::of(primaries(subject.data).flat_map(|series| &series.blocks));
    let list = indexed(&all);
    let short = all.seconds < LEAST_SECONDS || list.len() < LEAST;
    if short || subject.run.board.is_deterministic() {
        return None;
    }
    let axis = range.axis(frame::LEFT, frame::RIGHT);
    let lines = Lines::of(lines_of(&[subject], &axis));
    let frame = Frame::standard(200.0, &lines);
    let most = list.iter().map(|one| one.index).fold(TOP.0, f64::max).min(TOP.1);
    let scale = Scale::exact(0.0, most, frame.bottom, frame.top);
    let at = |one: &Indexed, value: f64| (axis.map(one.above), scale.map(value));
    let mut drawing = Drawing::default();
    let columns: Vec<[f64; 4]> = list
        .windows(2)
        .map(|pair| {
            let (left, low) = at(&pair[0], pair[0].chance.0);
            let (right, high) = (axis.map(pair[1].above), scale.map(pair[0].chance.1));
            [left, high, right, low]
        })
        .collect();
    drawing.rects(&columns, CHANCE);
    axis.draw(&mut drawing, frame, 7, "threshold");
    let ticks = scale.ticks(5).into_iter();
    let ticks = ticks.map(|t| (scale.map(t.value), Some(format!("{:.1}", t.value))));
    frame.y_axis(&mut drawing, &ticks.collect(), "extremal index");
    if let Some(note) = &subject.note {
        frame.note(&mut drawing, note, "extremal index");
    }
    frame.verticals(&mut drawing, &lines);
    let path: Vec<Point> = list.iter().map(|one| at(one, one.index)).collect();
    drawing.lines(vec![path], INDEX, None);
    for one in &list {
        let Exceeding { samples, seconds, .. } = one.exceeding;
        let note = format!(
            "{} above {} in {} of {} s: {:.2}",
            grouped(samples),
            label(one.above),
            grouped(seconds),
            grouped(all.seconds),
            one.index
        );
        // The smallest sample above the threshold is 1 ns above it.
        let paint = colour(subject.run, one.above + 1.0, Colour::Data);
        point(&mut drawing, at(one, one.index), one.clusters, paint, Some(note));
    }
    frame.border(&mut drawing);
    let above = frame.bottom + BELOW + LINE;
    let mut row = Legend::at(&mut drawing, above);
    row.mark("in clusters (p < 0.01)", |to, at| point(to, at, true, Colour::Data, None));
    row.mark("singly, as far as is known", |to, at| point(to, at, false, Colour::Data, None));
    let y = above + LINE;
    Legend::at(&mut drawing, y).mark("95 % of what comes singly", |to, (x, y)| {
        to.rects(&[[x - 6.0, y - 5.0, x + 6.0, y + 5.0]], CHANCE);
    });
    Some(Figure {
        name: name::of_cell("clusters", subject),
        title: name::titled([subject], &format!("Extremal index · {}", subject.label)),
        description: name::described(subject, description(&list)),
        height: y + 10.0,
        drawing,
    })
}

fn point(to: &mut Drawing, at: Point, clusters: bool, colour: Colour, note: Option<String>) {
    let fill = if clusters { colour } else { Colour::Paper };
    to.circle(at, 3.0, Pen::line("point", colour, 1.3).filled(fill), note);
}

fn description(list: &[Indexed]) -> String {
    let clusters = list.iter().filter(|one| one.clusters);
    let least = clusters.reduce(|a, b| if b.index < a.index { b } else { a });
    let found = match least {
        Some(one) => format!(
            "Above {} they cluster most: {:.2}, so {:.1} come together on average.",
            label(one.above),
            one.index,
            1.0 / one.index
        ),
        None => "Above none of them do samples cluster more than by chance.".to_owned(),
    };
    format!(
        "The extremal index of samples above {} thresholds, 1 if they come singly. {found}",
        list.len()
    )
}
