//! The complementary cumulative distribution of every cell: how often an
//! activation was later than a latency.

use maud::{Markup, html};
use punctual_core::units::grouped;

use super::deadline::{deadline_label, of_subjects};
use super::entry::{Entry, Material, Place};
use super::frame::{Frame, n};
use super::latency::{Axis, Range};
use super::scale::{Scale, Tick};
use super::svg::{Figure, file_name, shortened};
use crate::data::Bins;
use crate::replicates::Kernels;
use crate::subject::Subject;
use crate::words;

/// With the eight colours of the style sheet these tell 40 curves apart; the
/// mark at the end of each curve tells any number apart, without colour.
const DASHES: [&str; 5] = ["none", "7 3", "2 2", "10 3 2 3", "14 5"];
const COLOURS: usize = 8;
const LEGEND_ROW: f64 = 24.0;

/// How a curve is distinguished from the others.
struct Look {
    mark: String,
    label: String,
    /// Numbers, from 0, of a colour and of a kind of dashes.
    colour: usize,
    dash: usize,
}

impl Look {
    fn class(&self) -> String {
        format!("curve c{}", self.colour % COLOURS)
    }

    fn dashes(&self) -> &'static str {
        DASHES[self.dash % DASHES.len()]
    }
}

struct Curve {
    look: Look,
    /// Share of the values above a latency, at rising latencies.
    points: Vec<(f64, f64)>,
}

pub const ENTRY: Entry = Entry { place: Place::Overview, draw };

fn draw(material: &Material<'_>) -> Vec<Figure> {
    let Material { subjects, range, kernels, several, .. } = material;
    let Some(kernels) = kernels else {
        return figure(subjects, range, *several).into_iter().collect();
    };
    let cells = subjects.chunk_by(|a, b| a.at.1 == b.at.1);
    cells.filter_map(|cell| of_kernels(cell, kernels, range)).collect()
}

/// The figure; none if no cell has a distribution. With several runs the
/// colour stands for the cell and the dashes for the run.
fn figure(subjects: &[Subject<'_>], range: &Range, several: bool) -> Option<Figure> {
    let mut keys: Vec<&str> = subjects.iter().map(|s| s.cell.key.as_str()).collect();
    keys.dedup();
    let look = |i: usize, subject: &Subject<'_>| Look {
        mark: words::letter(i),
        label: subject.label.clone(),
        colour: keys.iter().position(|key| *key == subject.cell.key).unwrap_or(i),
        dash: if several { subject.at.0 } else { i },
    };
    let title = "How often an activation was later".to_owned();
    drawn("ccdf".to_owned(), title, subjects, range, look)
}

/// The figure of one cell over kernels: both colour and dashes stand for the kernel.
fn of_kernels(subjects: &[Subject<'_>], kernels: &Kernels<'_>, range: &Range) -> Option<Figure> {
    let first = subjects.first()?;
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
    drawn(file_name("ccdf", first), title, subjects, range, look)
}

fn drawn(
    name: String,
    title: String,
    subjects: &[Subject<'_>],
    range: &Range,
    look: impl Fn(usize, &Subject<'_>) -> Look,
) -> Option<Figure> {
    let curves: Vec<_> = subjects
        .iter()
        .map(|s| (s, Bins::corrected(s.latency, s.data)))
        .filter(|(_, distribution)| !distribution.bins.is_empty())
        .enumerate()
        .map(|(i, (s, distribution))| Curve { look: look(i, s), points: points(&distribution) })
        .collect();
    if curves.is_empty() {
        return None;
    }
    let frame = Frame::standard(300.0);
    let axis = range.log_axis(frame.left, frame.right);
    let least = curves.iter().flat_map(|c| &c.points).map(|(_, p)| *p);
    let shares = Scale::log(least.fold(1.0, f64::min) * 0.8, 1.0, frame.bottom, frame.top);
    let deadlines = of_subjects(subjects);
    let legend = frame.bottom + 72.0;
    let body = html! {
        @if let Some(band) = axis.early() { (frame.band(band, (frame.top, frame.bottom))) }
        (frame.y_axis(&share_ticks(&shares), "share of activations that were later"))
        (frame.x_axis(&axis.ticks(7), "latency"))
        @for (i, ns) in deadlines.iter().enumerate() {
            (frame.vertical(axis.map(*ns), "deadline", &deadline_label(*ns), i as f64))
        }
        @for curve in &curves { (line(curve, &axis, &shares)) }
        (marks(&curves, frame, &axis, &shares))
        (frame.border())
        @for (i, curve) in curves.iter().enumerate() {
            @let y = legend + LEGEND_ROW * i as f64;
            path class=(curve.look.class()) stroke-dasharray=(curve.look.dashes())
                d=(format!("M14 {}H64", n(y - 4.0))) {}
            text x="76" y=(n(y)) { (curve.look.mark) "  " (shortened(&curve.look.label, 56)) }
        }
    };
    Some(Figure {
        name,
        title,
        description: description(&curves, subjects),
        height: legend + LEGEND_ROW * curves.len() as f64,
        body,
    })
}

fn description(curves: &[Curve], subjects: &[Subject<'_>]) -> String {
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

fn line(curve: &Curve, axis: &Axis, shares: &Scale) -> Markup {
    let mut path = String::new();
    let mut last = (f64::NAN, f64::NAN);
    for (i, (ns, share)) in curve.points.iter().enumerate() {
        let (x, y) = (axis.map(*ns), shares.map(*share));
        let end = i + 1 == curve.points.len();
        // Steps smaller than half a unit cannot be seen; the last one must stay exact.
        if i == 0 {
            path.push_str(&format!("M{} {}", n(x), n(y)));
        } else if end || (x - last.0).abs() >= 0.5 || (y - last.1).abs() >= 0.5 {
            path.push_str(&format!("H{}V{}", n(x), n(y)));
        } else {
            continue;
        }
        last = (x, y);
    }
    html! {
        path class=(curve.look.class()) stroke-dasharray=(curve.look.dashes()) d=(path) {
            title { (curve.look.mark) " " (curve.look.label) }
        }
    }
}

/// Letters at the ends of the curves, moved apart if they would overlap.
fn marks(curves: &[Curve], frame: Frame, axis: &Axis, shares: &Scale) -> Markup {
    const ROOM: (f64, f64) = (16.0, 18.0);
    let mut placed: Vec<(f64, f64)> = Vec::new();
    for curve in curves {
        let (ns, share) = curve.points.last().copied().unwrap_or((1.0, 1.0));
        let x = (axis.map(ns) + 9.0).min(frame.right - 8.0);
        let mut y = shares.map(share) - 6.0;
        while let Some((_, taken)) =
            placed.iter().find(|(px, py)| (px - x).abs() < ROOM.0 && (py - y).abs() < ROOM.1)
        {
            y = taken - ROOM.1;
        }
        placed.push((x, y));
    }
    html! {
        @for (curve, (x, y)) in curves.iter().zip(&placed) {
            text class="halo name" x=(n(*x)) y=(n(*y)) text-anchor="middle" { (curve.look.mark) }
        }
    }
}

fn share_ticks(shares: &Scale) -> Vec<(f64, Option<String>)> {
    let label = |t: &Tick| t.labelled.then(|| share_label(t.value));
    shares.ticks(7).iter().map(|t| (shares.map(t.value), label(t))).collect()
}

/// `1`, `0.1`, `0.05`, then `1e-3`.
fn share_label(share: f64) -> String {
    if share >= 0.009_999 {
        let text = format!("{share:.3}");
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    format!("{share:.0e}")
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
    fn shares_read_well() {
        for (share, text) in
            [(1.0, "1"), (0.1, "0.1"), (0.02, "0.02"), (1e-3, "1e-3"), (5e-8, "5e-8")]
        {
            assert_eq!(share_label(share), text);
        }
    }
}
