//! The complementary cumulative distribution of every cell: how often an
//! activation was later than a latency.

use punctual_core::units::grouped;

use super::deadline::lines_of;
use super::drawing::{Drawing, Label, Pen, Point};
use super::entry::{Entry, Material, Place};
use super::frame::{BELOW, Frame, LINE, Lines, Ticks, overlap};
use super::latency::Axis;
use super::scale::{Scale, Tick};
use super::sheet::{Figure, WIDTH};
use super::theme::Colour;
use super::typeface::{self, LARGEST};
use super::{frame, name};
use crate::data::Bins;
use crate::subject::Subject;
use crate::words;

/// With the colours of curves these tell 40 of them apart; the mark at the end of each curve
/// tells any number apart, without colour.
const DASHES: [&[f64]; 5] = [&[], &[7.0, 3.0], &[2.0, 2.0], &[10.0, 3.0, 2.0, 3.0], &[14.0, 5.0]];
/// Left end of the names in the legend.
const NAMES: f64 = 84.0;

/// How a curve is distinguished from the others.
struct Look {
    mark: String,
    label: String,
    /// Numbers, from 0, of a colour and of a kind of dashes.
    colour: usize,
    dash: usize,
}

impl Look {
    fn paint(&self, class: &'static str) -> Pen {
        let dash = DASHES[self.dash % DASHES.len()];
        Pen::line(class, Colour::Curve(self.colour), 1.8).dashed(dash)
    }
}

struct Curve {
    look: Look,
    /// Share of the values above a latency, at rising latencies.
    points: Vec<(f64, f64)>,
}

pub const ENTRY: Entry = Entry { place: Place::Overview, draw };

fn draw(material: &Material<'_>) -> Vec<Figure> {
    if material.kernels.is_none() {
        return material.by_probe().iter().filter_map(|group| of_probe(group, material)).collect();
    }
    let cells = material.subjects.chunk_by(|a, b| a.at.1 == b.at.1);
    cells.filter_map(|cell| of_kernels(&cell.iter().collect::<Vec<_>>(), material)).collect()
}

/// The figure of a probe; none if no cell has a distribution. With several runs the
/// colour stands for the cell and the dashes for the run.
fn of_probe(subjects: &[&Subject<'_>], material: &Material<'_>) -> Option<Figure> {
    let probe = &subjects.first()?.latency.probe;
    let mut keys: Vec<&str> = subjects.iter().map(|s| s.cell.key.as_str()).collect();
    keys.dedup();
    let look = |i: usize, subject: &Subject<'_>| Look {
        mark: words::letter(i),
        label: subject.label.clone(),
        colour: keys.iter().position(|key| *key == subject.cell.key).unwrap_or(i),
        dash: if material.several { subject.at.0 } else { i },
    };
    let title = "How often an activation was later";
    let (name, title) = if material.ranges.is_single() {
        ("ccdf".to_owned(), title.to_owned())
    } else {
        (name::of_probe("ccdf", probe), format!("{title} · {}", words::clean(probe)))
    };
    drawn(name, name::titled(subjects.iter().copied(), &title), subjects, material, look)
}

/// The figure of one cell over kernels: both colour and dashes stand for the kernel.
fn of_kernels(subjects: &[&Subject<'_>], material: &Material<'_>) -> Option<Figure> {
    let (first, kernels) = (subjects.first()?, material.kernels?);
    let title = format!("How often an activation was later · {}", words::cell_name(first.cell));
    let look = |_: usize, subject: &Subject<'_>| {
        let kernel = subject.at.0;
        let name = kernels.name(kernel);
        Look {
            // Letters stand for runs.
            mark: (kernel + 1).to_string(),
            label: subject.note.as_ref().map_or(name.to_owned(), |note| format!("{name}, {note}")),
            colour: kernel,
            dash: kernel,
        }
    };
    let title = name::titled(subjects.iter().copied(), &title);
    drawn(name::of_cell("ccdf", first), title, subjects, material, look)
}

fn drawn(
    name: String,
    title: String,
    subjects: &[&Subject<'_>],
    material: &Material<'_>,
    look: impl Fn(usize, &Subject<'_>) -> Look,
) -> Option<Figure> {
    let curves: Vec<_> = subjects
        .iter()
        .map(|s| (s, Bins::corrected(s.latency, s.data)))
        .filter(|(_, distribution)| !distribution.bins.is_empty())
        .enumerate()
        .map(|(i, (s, distribution))| Curve { look: look(i, s), points: points(&distribution) })
        .collect();
    let first = subjects.first().filter(|_| !curves.is_empty())?;
    let axis = material.range(first).axis(frame::LEFT, frame::RIGHT);
    let lines = Lines::of(lines_of(subjects, &axis));
    let frame = Frame::standard(300.0, &lines);
    let least = curves.iter().flat_map(|c| &c.points).map(|(_, p)| *p);
    let shares = Scale::log(least.fold(1.0, f64::min) * 0.8, 1.0, frame.bottom, frame.top);
    let mut drawing = Drawing::default();
    axis.draw(&mut drawing, frame, 7, "latency");
    frame.y_axis(&mut drawing, &share_ticks(&shares), "share of activations that were later");
    frame.verticals(&mut drawing, &lines);
    for curve in &curves {
        let note = format!("{} {}", curve.look.mark, curve.look.label);
        let line = steps(curve, &axis, &shares);
        drawing.lines(vec![line], curve.look.paint("curve"), Some(note));
    }
    frame.border(&mut drawing);
    marks(&mut drawing, &curves, frame, &axis, &shares);
    let height = legend(&mut drawing, &curves, frame.bottom + BELOW);
    Some(Figure { name, title, description: description(&curves, subjects), height, drawing })
}

/// The names of the curves below `above`; returns where they end.
fn legend(to: &mut Drawing, curves: &[Curve], above: f64) -> f64 {
    let mut y = above;
    for curve in curves {
        let name = format!("{}  {}", curve.look.mark, curve.look.label);
        for (number, line) in
            typeface::wrapped(&name, WIDTH - NAMES - 4.0, LARGEST, 3).into_iter().enumerate()
        {
            y += LINE;
            if number == 0 {
                let middle = y - 5.0;
                to.line((14.0, middle), (NAMES - 14.0, middle), curve.look.paint("curve"));
            }
            to.text(Label::new(line, NAMES, y));
        }
    }
    y + 10.0
}

fn description(curves: &[Curve], subjects: &[&Subject<'_>]) -> String {
    let labels: Vec<_> =
        curves.iter().map(|c| format!("{} {}", c.look.mark, c.look.label)).collect();
    let missed: u64 = subjects.iter().map(|s| s.latency.stats.missed).sum();
    format!(
        "Complementary cumulative distribution of every cell on logarithmic axes: {}. \
         {} missed periods are counted with their actual delay.",
        labels.join("; "),
        grouped(missed)
    )
}

/// At the end of each bin the share of values above it, and last, at the
/// maximum, the share of one value: zero has no place on this axis.
fn points(distribution: &Bins) -> Vec<(f64, f64)> {
    let total = distribution.total() as f64;
    let mut above = distribution.total();
    let mut points = vec![(f64::NEG_INFINITY, 1.0)];
    points.extend(distribution.bins.first().map(|bin| (bin.low as f64, 1.0)));
    for bin in &distribution.bins {
        above = above.saturating_sub(bin.count);
        points.push((bin.high as f64, above.max(1) as f64 / total));
    }
    points
}

fn steps(curve: &Curve, axis: &Axis, shares: &Scale) -> Vec<Point> {
    let mut path: Vec<Point> = Vec::new();
    for (i, (ns, share)) in curve.points.iter().enumerate() {
        let (x, y) = (axis.map(*ns), shares.map(*share));
        let end = i + 1 == curve.points.len();
        // Steps smaller than half a unit cannot be seen; the last one must stay exact.
        match path.last().copied() {
            None => path.push((x, y)),
            Some(last) if end || (x - last.0).abs() >= 0.5 || (y - last.1).abs() >= 0.5 => {
                path.extend([(x, last.1), (x, y)]);
            }
            Some(_) => {}
        }
    }
    path
}

/// Letters at the ends of the curves. One that has no room there is moved, and a thin line leads
/// to its end.
fn marks(to: &mut Drawing, curves: &[Curve], frame: Frame, axis: &Axis, shares: &Scale) {
    let mut taken: Vec<[f64; 4]> = Vec::new();
    for curve in curves {
        let (ns, share) = curve.points.last().copied().unwrap_or((1.0, 1.0));
        let end = (axis.map(ns), shares.map(share));
        let colour = Colour::Curve(curve.look.colour);
        let label = |(x, y): Point| {
            Label::new(&curve.look.mark, x, y).middle().bold().colour(colour).class("mark")
        };
        let half = typeface::room(&curve.look.mark, LARGEST, true) / 2.0 + 3.0;
        let places = (0..40).flat_map(|column| {
            let x = (end.0 + half + 4.0).min(frame.right - half) - 2.0 * half * f64::from(column);
            let y = (end.1 - 6.0).min(frame.bottom - 6.0);
            (0..30).map(move |row| (x, y - 19.0 * f64::from(row)))
        });
        let free = |at: &Point| {
            let area = label(*at).area(LARGEST);
            let inside = area[1] >= frame.top && area[0] >= frame.left;
            inside && taken.iter().all(|other| !overlap(other, &area))
        };
        let Some(at) = places.into_iter().find(free) else { continue };
        if (at.0 - end.0).hypot(at.1 - end.1) > 2.0 * half + 12.0 {
            to.line(end, (at.0, at.1 + 3.0), Pen::line("lead", colour, 0.6));
        }
        taken.push(label(at).area(LARGEST));
        to.text(label(at));
    }
}

fn share_ticks(shares: &Scale) -> Ticks {
    let label = |t: &Tick| t.labelled.then(|| share_label(t.value));
    shares.ticks(7).iter().map(|t| (shares.map(t.value), label(t))).collect()
}

/// `1`, `1e-1`, `5e-3`: one notation over all decades.
fn share_label(share: f64) -> String {
    if share > 0.999 { "1".to_owned() } else { format!("{share:.0e}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::histogram::SignedBin;

    #[test]
    fn the_curve_ends_with_one_value_at_the_maximum() {
        let bin = |low, high, count| SignedBin { low, high, count };
        let d =
            Bins { bins: vec![bin(-5, -1, 1), bin(10, 10, 98), bin(500, 503, 1)], coarse: false };
        let points = points(&d);
        assert_eq!(points[1..], [(-5.0, 1.0), (-1.0, 0.99), (10.0, 0.01), (503.0, 0.01)]);
    }

    #[test]
    fn shares_have_one_notation() {
        for (share, text) in
            [(1.0, "1"), (0.1, "1e-1"), (0.02, "2e-2"), (1e-3, "1e-3"), (5e-8, "5e-8")]
        {
            assert_eq!(share_label(share), text);
        }
    }
}
