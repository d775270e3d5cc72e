//! The whole run of a cell: seconds by latency, the number of samples as
//! colour, the maximum of every column as a line, the worst samples as points.

use maud::{Markup, html};
use punctual_core::units::{SECOND_NS, grouped, human_ns};

use super::deadline::{deadline, deadline_label};
use super::density::Columns;
use super::entry::{Entry, Material, Place};
use super::frame::{Frame, LEFT, count_label, n};
use super::latency::{Axis, Range};
use super::raster::{LEVELS, colour, data_uri};
use super::scale::{Scale, Tick};
use super::svg::{Figure, described, file_name};
use super::work;
use crate::data::primaries;
use crate::describe::worst_samples;
use crate::subject::Subject;
use crate::words;

/// Columns of the image: as many as the figure is wide, so none is lost when it is
/// drawn.
const COLUMNS: u64 = 600;
const ROWS: usize = 200;
/// How many of the worst samples are drawn as points.
const POINTS: usize = 32;

pub const ENTRY: Entry = Entry { place: Place::Timelines, draw };

fn draw(material: &Material<'_>) -> Vec<Figure> {
    material.single.iter().filter_map(|subject| figure(subject, &material.range)).collect()
}

/// The timeline of a cell; none if no block was recorded.
fn figure(subject: &Subject<'_>, range: &Range) -> Option<Figure> {
    let Subject { cell, data, .. } = subject;
    if primaries(data).all(|series| series.blocks.is_empty()) {
        return None;
    }
    let frame = Frame::standard(220.0);
    let axis = range.log_axis(frame.bottom, frame.top);
    let columns = Columns::of(data, cell.duration_ns.div_ceil(SECOND_NS), COLUMNS);
    let length = columns.seconds * columns.list.len() as u64;
    let time = Scale::exact(0.0, length as f64, frame.left, frame.right);
    let strips = work::strips(cell, data, frame.bottom + 10.0, &time, columns.seconds);
    let below = Frame { bottom: frame.bottom + 10.0 + strips.height, ..frame };
    let below = if strips.height > 0.0 { below } else { frame };
    let body = html! {
        @if let Some(band) = axis.early() { (frame.band((frame.left, frame.right), band)) }
        (below.x_axis(&time_ticks(&time), "time since the start of the cell"))
        (frame.y_axis(&axis.ticks(6), "latency"))
        @if let Some(note) = &subject.note { (frame.note(note)) }
        (image(&columns, &axis, frame))
        path class="maxline" d=(maxima(&columns, &axis, &time)) {
            title { "maximum of every " (columns.seconds) " s" }
        }
        @for (latency, at, cpu) in worst_samples(cell, data, POINTS) {
            circle class="point" cx=(n(time.map(at as f64 / SECOND_NS as f64))) cy=(n(axis.map(latency as f64))) r="2.6" {
                title { (human_ns(latency)) " at " (words::instant(at)) ", CPU " (cpu) }
            }
        }
        @if let Some(ns) = deadline(subject.run) {
            (frame.horizontal(axis.map(ns), "deadline", &deadline_label(ns)))
        }
        (frame.border())
        (strips.body)
        (legend(columns.most(), below.bottom + 66.0))
    };
    let max = subject.latency.stats.max.map_or_else(|| "none".to_owned(), human_ns);
    Some(Figure {
        name: file_name("timeline", subject),
        title: format!("Timeline · {}", subject.label),
        description: described(
            subject,
            format!(
                "{} samples over {}, {} s in a column; the maximum of each column is a line, the {POINTS} \
             worst samples are points. The largest latency is {max}.",
                grouped(subject.latency.stats.samples),
                words::duration(cell.duration_ns),
                columns.seconds,
            ),
        ),
        height: below.bottom + 86.0,
        body,
    })
}

fn image(columns: &Columns, axis: &Axis, frame: Frame) -> Markup {
    let pixels = columns.pixels(axis, frame.top, frame.bottom, ROWS, columns.most());
    let width = u32::try_from(columns.list.len()).unwrap_or(u32::MAX);
    html! {
        @match data_uri(&pixels, width) {
            Ok(uri) => image href=(uri) x=(n(frame.left)) y=(n(frame.top))
                width=(n(frame.right - frame.left)) height=(n(frame.bottom - frame.top))
                preserveAspectRatio="none" style="image-rendering:pixelated" {},
            Err(error) => text x=(n(frame.left + 8.0)) y=(n(frame.top + 40.0)) { "no image: " (error) },
        }
    }
}

/// The maximum of every column as steps, with a gap wherever there is no sample.
fn maxima(columns: &Columns, axis: &Axis, time: &Scale) -> String {
    let mut path = String::new();
    let mut drawing = false;
    let mut x = 0;
    for column in &columns.list {
        let (from, to) = (time.map(x as f64), time.map((x + columns.seconds) as f64));
        if let Some((_, max)) = column.extremes {
            let y = n(axis.map(max as f64));
            if drawing {
                path.push_str(&format!("V{y}H{}", n(to)));
            } else {
                path.push_str(&format!("M{} {y}H{}", n(from), n(to)));
            }
        }
        drawing = column.extremes.is_some();
        x += columns.seconds;
    }
    path
}

/// Ticks of a time axis: round numbers of seconds, minutes, hours or days.
fn time_ticks(time: &Scale) -> Vec<(f64, Option<String>)> {
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

/// The colour scale, from one sample to the most in one place.
fn legend(most: u64, y: f64) -> Markup {
    let (left, width) = (LEFT, 200.0);
    let step = width / f64::from(LEVELS - 1);
    let scale = Scale::exact(0.0, 1.0, left, left + width);
    let count = Tick { value: most as f64, labelled: true };
    html! {
        @for level in 1..LEVELS {
            @let [r, g, b] = colour(level);
            rect x=(n(scale.map(f64::from(level - 1) / f64::from(LEVELS - 1)))) y=(n(y - 10.0))
                width=(n(step + 0.3)) height="12" fill=(format!("#{r:02x}{g:02x}{b:02x}")) {}
        }
        text class="soft" x=(n(left - 6.0)) y=(n(y)) text-anchor="end" { "1" }
        text class="soft" x=(n(left + width + 6.0)) y=(n(y)) { (count_label(count.value)) " samples" }
        path class="maxline" d=(format!("M{} {}h26", n(left + 360.0), n(y - 4.0))) {}
        text class="soft" x=(n(left + 394.0)) y=(n(y)) { "max" }
        circle class="point" cx=(n(left + 470.0)) cy=(n(y - 4.0)) r="3" {}
        text class="soft" x=(n(left + 482.0)) y=(n(y)) { "worst samples" }
    }
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
