//! Replicates side by side: what every run of a kernel measured, on one axis for
//! all cells and kernels.

use maud::{Markup, html};
use punctual_core::compare::{MatchedCell, Spread};
use punctual_core::units::human_ns;

use super::deadline::{all, deadline_label};
use super::entry::{Entry, Material, Place};
use super::frame::{Frame, n};
use super::latency::{Axis, Range};
use super::svg::{Figure, shortened};
use crate::replicates::Kernels;
use crate::words;

/// Height of a cell's name.
const HEAD: f64 = 30.0;
/// Height of a kernel: its name above its points.
const ROW: f64 = 42.0;
/// Height of the labels of the deadlines.
const DEADLINES: f64 = 24.0;

pub const ENTRY: Entry = Entry { place: Place::Overview, draw };

fn draw(material: &Material<'_>) -> Vec<Figure> {
    let kernels = material.kernels.into_iter();
    kernels.filter_map(|kernels| figure(kernels, &material.range)).collect()
}

/// The figure; none if no cell has samples.
fn figure(kernels: &Kernels<'_>, range: &Range) -> Option<Figure> {
    let cells: Vec<&MatchedCell> =
        kernels.comparison.cells.iter().filter(|cell| kernels.has_samples(cell)).collect();
    if cells.is_empty() {
        return None;
    }
    let deadlines = all(kernels.runs.iter().map(|loaded| &loaded.run));
    let cell_height = HEAD + ROW * kernels.names.len() as f64;
    let above = DEADLINES * deadlines.len() as f64;
    let mut frame = Frame::standard(above + cell_height * cells.len() as f64 + 8.0);
    // There is no name of a vertical axis above.
    frame.top -= 22.0;
    frame.bottom -= 22.0;
    frame.left = 34.0;
    let axis = range.log_axis(frame.left, frame.right);
    let legend = frame.bottom + 68.0;
    let body = html! {
        @if let Some(band) = axis.early() { (frame.band(band, (frame.top, frame.bottom))) }
        (frame.x_axis(&axis.ticks(6), "latency, logarithmic"))
        @for (i, ns) in deadlines.iter().enumerate() {
            (frame.vertical(axis.map(*ns), "deadline", &deadline_label(*ns), i as f64))
        }
        @for (i, cell) in cells.iter().enumerate() {
            @let top = frame.top + above + cell_height * i as f64;
            text class="halo name" x=(n(frame.left + 6.0)) y=(n(top + 20.0)) { (shortened(&words::key_name(&cell.key), 60)) }
            @for (k, (spread, name)) in cell.spreads.iter().zip(&kernels.names).enumerate() {
                (kernel(cell, spread, kernels, name, &axis, frame, top + HEAD + ROW * k as f64))
            }
        }
        (frame.border())
        (legend_of(frame.left + 6.0, legend))
    };
    let texts: Vec<_> = cells
        .iter()
        .flat_map(|cell| {
            cell.spreads.iter().zip(&kernels.names).map(|(spread, name)| {
                let max = words::span(words::ends(spread.max_ns));
                format!(
                    "{}, {name}: max {max} over {}",
                    words::key_name(&cell.key),
                    words::runs(spread.runs)
                )
            })
        })
        .collect();
    Some(Figure {
        name: "spread".to_owned(),
        title: "Spread over the runs of each kernel".to_owned(),
        description: format!(
            "The maximum and the average of every run on a logarithmic latency axis. {}.",
            texts.join("; ")
        ),
        height: legend + 10.0,
        body,
    })
}

fn kernel(
    cell: &MatchedCell,
    spread: &Spread,
    kernels: &Kernels<'_>,
    name: &str,
    axis: &Axis,
    frame: Frame,
    top: f64,
) -> Markup {
    let middle = top + 27.0;
    let members = kernels.comparison.groups.get(spread.group).map(|group| &group.runs);
    let rows = || {
        let mine = cell.rows.iter().filter(|row| members.is_some_and(|m| m.contains(&row.run)));
        mine.filter(|row| row.samples > 0).enumerate()
    };
    // Equal values are drawn above each other: otherwise they could not be counted.
    let height = |i: usize| middle + [0.0, -4.0, 4.0, -2.0, 2.0][i % 5];
    let x = |ns: f64| n(axis.map(ns));
    let title = |run: usize| format!("{name}, run {}", words::letter(run));
    html! {
        text class="halo soft" x=(n(frame.left + 6.0)) y=(n(top + 12.0)) { (shortened(name, 30)) }
        @if spread.runs == 0 {
            text class="halo soft" x=(n(frame.right - 6.0)) y=(n(top + 12.0)) text-anchor="end" { "no samples" }
        }
        @if let Some(max) = spread.max_ns {
            text class="halo maxtext" x=(n(frame.right - 6.0)) y=(n(top + 12.0)) text-anchor="end" {
                "max " (words::span(words::ends(Some(max))))
            }
            path class="reach" d=(format!("M{} {}H{}", x(max.lowest as f64), n(middle), x(max.highest as f64))) {}
        }
        @for (i, row) in rows() {
            @if let Some(avg) = row.avg_ns {
                circle class="mean" cx=(x(avg)) cy=(n(height(i))) r="2.4" {
                    title { (title(row.run)) ": average " (words::mean_ns(avg)) }
                }
            }
            @if let Some(max) = row.max_ns {
                circle class="dot" cx=(x(max as f64)) cy=(n(height(i))) r="3.6" {
                    title { (title(row.run)) ": max " (human_ns(max)) }
                }
            }
        }
        @if let Some(max) = spread.max_ns {
            path class="median" d=(format!("M{} {}v18", x(max.median), n(middle - 9.0))) {}
        }
    }
}

fn legend_of(left: f64, y: f64) -> Markup {
    let middle = n(y - 4.0);
    html! {
        circle class="dot" cx=(n(left + 4.0)) cy=(middle) r="3.6" {}
        text class="soft" x=(n(left + 14.0)) y=(n(y)) { "max of a run" }
        path class="median" d=(format!("M{} {}v18", n(left + 164.0), n(y - 13.0))) {}
        text class="soft" x=(n(left + 172.0)) y=(n(y)) { "median of the maxima" }
        circle class="mean" cx=(n(left + 404.0)) cy=(middle) r="2.4" {}
        text class="soft" x=(n(left + 414.0)) y=(n(y)) { "average of a run" }
    }
}
