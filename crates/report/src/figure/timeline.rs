//! The whole run of a cell: seconds by latency, the number of samples as
//! colour, the maximum of every column as a line, the worst samples as points.

use punctual_core::run::CellData;
use punctual_core::schema::{Cell, Ideal, Unit};
use punctual_core::units::{SECOND_NS, grouped, human_ns};

use super::deadline::{colour, deadline, deadline_label, missed};
use super::density::{TimeColumns, key};
use super::drawing::{Drawing, Image, Label, Pen, Point};
use super::entry::{Entry, Material, Place};
use super::frame::{BELOW, DEADLINE, Frame, LEFT, LINE, Lines, Ticks, spaced};
use super::latency::{Axis, Range, label};
use super::scale::Scale;
use super::sheet::Figure;
use super::theme::Colour;
use super::typeface::{self, LARGEST};
use super::{bands, name, work};
use crate::data::{others, primaries};
use crate::describe::worst_samples;
use crate::subject::Subject;
use crate::words;

/// Columns of the image: as many as the figure is wide, so none is lost when it is
/// drawn.
const COLUMNS: u64 = 600;
const ROWS: usize = 200;
/// How many of the worst samples are drawn as points.
pub(super) const POINTS: usize = 32;

/// A figure of fewer columns shows no course of time.
const LEAST_COLUMNS: u64 = 10;
/// What a report says of cells that have no timeline since they are too short.
pub const TOO_SHORT: &str = "Cells of less than 10 s have no timeline: each of its columns is at \
    least a second.";

pub const ENTRY: Entry = Entry { place: Place::Timelines, draw };

pub(super) const MAXIMA: Pen = Pen::line("maxline", Colour::Text, 1.3);

fn draw(material: &Material<'_>) -> Vec<Figure> {
    material.single.iter().filter_map(|one| figure(one, &material.range(one))).collect()
}

/// Whether a cell has blocks, but not of enough seconds for a timeline.
pub fn is_too_short(cell: &Cell, data: &CellData) -> bool {
    let blocks = || primaries(data).flat_map(|series| &series.blocks);
    let last = blocks().map(|block| block.index + 1).max();
    last.is_some_and(|last| last.max(seconds(cell)) < LEAST_COLUMNS)
}

fn seconds(cell: &Cell) -> u64 {
    cell.duration_ns.div_ceil(SECOND_NS)
}

/// The timeline of a cell; none if no block was recorded, or too few.
fn figure(subject: &Subject<'_>, range: &Range) -> Option<Figure> {
    let Subject { cell, data, .. } = subject;
    if primaries(data).all(|series| series.blocks.is_empty()) || is_too_short(cell, data) {
        return None;
    }
    let frame = bands::below(Frame::standard(220.0, &Lines::default()), cell);
    let axis = range.axis(frame.bottom, frame.top);
    let columns = TimeColumns::of(primaries(data), seconds(cell), COLUMNS);
    let length = columns.seconds * columns.list.len() as u64;
    let time = Scale::exact(0.0, length as f64, frame.left, frame.right);
    let mut drawing = Drawing::default();
    let mut strips = Drawing::default();
    let bottom = work::strips(&mut strips, subject, frame.bottom, &time, columns.seconds);
    let below = Frame { bottom, ..frame };
    if let Some((low, high)) = axis.band() {
        frame.band(&mut drawing, [frame.left, high, frame.right, low]);
    }
    below.x_axis(&mut drawing, &spaced(time_ticks(&time), &[]), "time since the start of the cell");
    let quantity = match subject.latency.ideal {
        Some(_) => "time".to_owned(),
        None => axis.quantity(subject.latency),
    };
    frame.y_axis(&mut drawing, &axis.ticks(6), &quantity);
    if let Some(note) = &subject.note {
        frame.note(&mut drawing, note, &quantity);
    }
    bands::bands(&mut drawing, cell, &frame, &time);
    let Frame { left, right, top, .. } = frame;
    let levels = columns.pixels(&axis, top, frame.bottom, ROWS, columns.most());
    let width = columns.list.len();
    drawing.image(Image { levels, width, left, top, right, bottom: frame.bottom });
    let note = format!("maximum of every {} s", columns.seconds);
    drawing.lines(maxima(&columns, &axis, &time), MAXIMA, Some(note));
    for (latency, at, cpu) in worst_samples(cell, data, POINTS) {
        let place = (time.map(at as f64 / SECOND_NS as f64), axis.map(latency as f64));
        let note = format!("{} at {}, CPU {cpu}", human_ns(latency), words::instant(at));
        let paint = point(colour(subject.run, latency as f64, Colour::Text));
        drawing.circle(place, 2.6, paint, Some(note));
    }
    let deadline = deadline(subject.run);
    if let Some(ns) = deadline {
        let y = axis.map(ns);
        drawing.line((left, y), (right, y), DEADLINE);
    }
    let parts = intervals(&mut drawing, subject, &frame, &axis, &time);
    frame.border(&mut drawing);
    drawing.shapes.extend(strips.shapes);
    let max = subject.latency.stats.max;
    let late = max.is_some_and(|ns| missed(subject.run, ns as f64));
    let deadline = deadline.map(|ns| (ns, late));
    let height = legend(&mut drawing, columns.most(), deadline, below.bottom + BELOW);
    let height = named(&mut drawing, &parts, height);
    let height = bands::named(&mut drawing, cell, &time, height);
    let max = max.map_or_else(|| "none".to_owned(), human_ns);
    Some(Figure {
        name: name::of_cell("timeline", subject),
        title: name::titled([subject], &format!("Timeline · {}", subject.label)),
        description: name::described(
            subject,
            format!(
                "{} samples over {}, {} s in a column; the maximum of each column is a line, the {POINTS} \
             worst samples are points. The largest latency is {max}.",
                grouped(subject.latency.stats.samples),
                words::duration(cell.duration_ns),
                columns.seconds,
            ),
        ),
        height,
        drawing,
    })
}

pub(super) fn point(colour: Colour) -> Pen {
    Pen::line("point", colour, 1.3).filled(Colour::Paper)
}

/// The maximum of every column as steps, with a gap wherever there is no sample.
fn maxima(columns: &TimeColumns, axis: &Axis, time: &Scale) -> Vec<Vec<Point>> {
    let mut lines: Vec<Vec<Point>> = Vec::new();
    let mut drawing = false;
    let mut x = 0;
    for column in &columns.list {
        let (from, to) = (time.map(x as f64), time.map((x + columns.seconds) as f64));
        if let Some((_, max)) = column.extremes {
            let y = axis.map(max as f64);
            if !drawing {
                lines.push(Vec::new());
            }
            if let Some(line) = lines.last_mut() {
                line.extend([(from, y), (to, y)]);
            }
        }
        drawing = column.extremes.is_some();
        x += columns.seconds;
    }
    lines
}

const IDEAL: Pen = Pen::line("ideal", Colour::Text, 1.2).dashed(&[3.0, 3.0]);
const LIMIT: Pen = Pen::line("limit", Colour::Deadline, 1.6);

/// Of samples that are intervals: the ideal one, the limit, and the maxima of the series that are
/// parts of them. Returns what each line is called.
fn intervals(
    to: &mut Drawing,
    subject: &Subject<'_>,
    frame: &Frame,
    axis: &Axis,
    time: &Scale,
) -> Vec<(Pen, String)> {
    let Some(Ideal::Interval { ns, limit_ns }) = subject.latency.ideal else { return Vec::new() };
    let mut named = Vec::new();
    for (value, paint, name) in [(ns, IDEAL, "ideal"), (limit_ns, LIMIT, "limit")] {
        let y = axis.map(value as f64);
        to.line((frame.left, y), (frame.right, y), paint);
        named.push((paint, format!("{name} {}", label(value as f64))));
    }
    for (number, series) in subject.latency.series.iter().enumerate() {
        if series.unit == Unit::Ns {
            let recorded = others(subject.data, number);
            let columns = TimeColumns::of(recorded, seconds(subject.cell), COLUMNS);
            let paint = Pen::line("part", Colour::Curve(number), 1.3);
            to.lines(maxima(&columns, axis, time), paint, None);
            named.push((paint, format!("{}, max", series.name)));
        }
    }
    named
}

/// A row that names lines; returns where it ends.
fn named(to: &mut Drawing, lines: &[(Pen, String)], above: f64) -> f64 {
    if lines.is_empty() {
        return above;
    }
    let (mut x, y) = (LEFT, above - 10.0 + LINE);
    for (paint, name) in lines {
        to.line((x, y - 5.0), (x + 24.0, y - 5.0), *paint);
        to.text(Label::new(name, x + 30.0, y).soft());
        x += 30.0 + typeface::room(name, LARGEST, false) + 20.0;
    }
    y + 10.0
}

/// Ticks of a time axis: round numbers of seconds, minutes, hours or days.
pub(super) fn time_ticks(time: &Scale) -> Ticks {
    const STEPS: [f64; 22] = [
        0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_200.0,
        1_800.0, 3_600.0, 7_200.0, 10_800.0, 21_600.0, 43_200.0, 86_400.0, 172_800.0,
    ];
    let fits = |step: &&f64| time.high() / **step <= 7.0;
    let step = STEPS.iter().find(fits).copied();
    let ticks = match step {
        Some(step) => time.multiples(step),
        None => time.ticks(7),
    };
    ticks
        .iter()
        .map(|t| (time.map(t.value), Some(time_label(t.value, step.unwrap_or(86_400.0)))))
        .collect()
}

fn time_label(seconds: f64, step: f64) -> String {
    let (unit, name) = match step {
        s if s >= 86_400.0 => (86_400.0, "d"),
        s if s >= 3_600.0 => (3_600.0, "h"),
        s if s >= 60.0 => (60.0, "min"),
        _ => (1.0, "s"),
    };
    let text = format!("{:.1}", seconds / unit);
    format!("{} {name}", text.trim_end_matches(".0"))
}

/// The colour scale, from one sample to the most in one place, and what else is drawn: the
/// deadline, and whether something missed it. Returns where it ends.
fn legend(to: &mut Drawing, most: u64, deadline: Option<(f64, bool)>, above: f64) -> f64 {
    let y = above + LINE;
    let middle = y - 5.0;
    let mut x = key(to, most, "samples", y) + 20.0;
    to.line((x, middle), (x + 24.0, middle), MAXIMA);
    to.text(Label::new("max", x + 30.0, y).soft());
    x += 30.0 + typeface::room("max", LARGEST, false) + 20.0;
    to.circle((x, middle), 3.0, point(Colour::Text), None);
    to.text(Label::new("worst samples", x + 10.0, y).soft());
    let Some((ns, late)) = deadline else { return y + 10.0 };
    let y = y + LINE;
    to.line((LEFT, y - 5.0), (LEFT + 34.0, y - 5.0), DEADLINE);
    let text = deadline_label(ns);
    to.text(Label::new(&text, LEFT + 42.0, y).colour(Colour::Deadline).bold());
    if late {
        let x = LEFT + 42.0 + typeface::room(&text, LARGEST, true) + 24.0;
        to.circle((x, y - 5.0), 3.0, point(Colour::Late), None);
        to.text(Label::new("later than that", x + 10.0, y).soft());
    }
    y + 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_axes_use_hours_where_they_are_long() {
        let labels = |length: f64| -> Vec<String> {
            time_ticks(&Scale::exact(0.0, length, 0.0, 600.0))
                .into_iter()
                .filter_map(|(_, label)| label)
                .collect()
        };
        assert_eq!(labels(86_400.0), ["0 h", "6 h", "12 h", "18 h", "24 h"]);
        assert_eq!(labels(10.0), ["0 s", "2 s", "4 s", "6 s", "8 s", "10 s"]);
        assert_eq!(labels(1.0), ["0 s", "0.2 s", "0.4 s", "0.6 s", "0.8 s", "1 s"]);
        assert_eq!(labels(600.0), ["0 min", "2 min", "4 min", "6 min", "8 min", "10 min"]);
    }
}
