//! Maximum, average and minimum of every cell as bars on one logarithmic axis.

use maud::html;
use punctual_core::units::human_ns;

use super::deadline::{deadline_label, of_subjects};
use super::entry::{Entry, Material, Place};
use super::frame::{Frame, n};
use super::latency::Range;
use super::svg::{Figure, WIDTH, shortened};
use crate::subject::Subject;
use crate::words;

/// Height of one cell: its label above three bars.
const ROW: f64 = 56.0;
/// Room right of the axis for the maximum's value.
const VALUE: f64 = 96.0;

pub const ENTRY: Entry = Entry { place: Place::Overview, draw };

/// Kernels with replicates have the spread of their runs instead.
fn draw(material: &Material<'_>) -> Vec<Figure> {
    let Material { subjects, range, kernels, .. } = material;
    if kernels.is_some() || subjects.is_empty() {
        return Vec::new();
    }
    vec![figure(subjects, range)]
}

fn figure(subjects: &[Subject<'_>], range: &Range) -> Figure {
    let mut frame = Frame::standard(ROW * subjects.len() as f64 + 30.0);
    // There is no name of a vertical axis above.
    frame.top -= 22.0;
    frame.bottom -= 22.0;
    frame.left = 14.0;
    frame.right = WIDTH - VALUE;
    let axis = range.log_axis(frame.left, frame.right);
    let deadlines = of_subjects(subjects);
    let body = html! {
        @if let Some(band) = axis.early() { (frame.band(band, (frame.top, frame.bottom))) }
        (frame.x_axis(&axis.ticks(6), "latency, logarithmic: max, avg, min from top to bottom"))
        @for (i, subject) in subjects.iter().enumerate() {
            @let stats = &subject.latency.stats;
            @let top = frame.top + 26.0 + ROW * i as f64;
            text class="halo" x=(n(frame.left + 6.0)) y=(n(top + 14.0)) { (shortened(&subject.label, 56)) }
            @let bars = [
                ("max", stats.max.map(|ns| ns as f64), 12.0, 19.0),
                ("avg", stats.avg, 7.0, 33.0),
                ("min", stats.min.map(|ns| ns as f64), 5.0, 42.0),
            ];
            @for (class, value, height, below) in bars {
                @if let Some(value) = value {
                    @let width = (axis.map(value) - frame.left).max(1.0);
                    rect class=(class) x=(n(frame.left)) y=(n(top + below)) width=(n(width)) height=(n(height)) {
                        title { (subject.label) ": " (class) " " (words::mean_ns(value)) }
                    }
                }
            }
            @if let Some(max) = stats.max {
                text class="halo maxtext" x=(n(axis.map(max as f64) + 6.0)) y=(n(top + 25.0)) dy="0.35em" { (human_ns(max)) }
            }
        }
        @for (i, ns) in deadlines.iter().enumerate() {
            (frame.vertical(axis.map(*ns), "deadline", &deadline_label(*ns), i as f64))
        }
        (frame.border())
    };
    let list: Vec<_> = subjects
        .iter()
        .map(|s| {
            let max = s.latency.stats.max.map_or_else(|| "none".to_owned(), human_ns);
            format!("{}: max {max}", s.label)
        })
        .collect();
    Figure {
        name: "bars".to_owned(),
        title: "Maximum, average and minimum of every cell".to_owned(),
        description: format!("Bars on a logarithmic latency axis. {}.", list.join("; ")),
        height: frame.bottom + 52.0,
        body,
    }
}
