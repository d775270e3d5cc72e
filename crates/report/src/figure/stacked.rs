//! Bars of parts that add up, from zero on an axis of time, and the table of the parts below.

use super::drawing::{Drawing, Label, Pen};
use super::frame::{BELOW, Frame, LEFT, LINE, RIGHT, spaced};
use super::scale::Scale;
use super::theme::Colour;
use super::typeface::{self, LARGEST};

/// Height of a bar.
pub const BAR: f64 = 22.0;
/// Side of the square that shows a part's colour in the table, and its place.
const MARK: f64 = 14.0;
const MARKS: f64 = 24.0;
/// Left end of the names of parts in the table.
const NAMES: f64 = 48.0;
/// Room for a column of values, and the right ends of all.
const COLUMN: f64 = 118.0;
const ENDS: [f64; 3] = [RIGHT - 2.0 * COLUMN, RIGHT - COLUMN, RIGHT];
/// Above a line that heads others.
const APART: f64 = 6.0;
/// From the border to a name beside it.
const INSIDE: f64 = 6.0;
/// Between two names.
const GAP: f64 = 10.0;

/// An axis from zero to the longest bar, ns, with a little room behind it.
pub fn scale(longest: f64) -> Scale {
    Scale::exact(0.0, longest.max(1.0) * 1.02, LEFT, RIGHT)
}

/// Draws the axis below the bars; returns where it ends.
pub fn axis(to: &mut Drawing, frame: &Frame, scale: &Scale, name: &str) -> f64 {
    let (unit, suffix) = match scale.high() {
        v if v < 1e3 => (1.0, "ns"),
        v if v < 1e6 => (1e3, "us"),
        v if v < 1e9 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    let label = |ns: f64| {
        let text = format!("{:.3}", ns / unit);
        format!("{} {suffix}", text.trim_end_matches('0').trim_end_matches('.'))
    };
    let ticks = scale.ticks(6).into_iter();
    let ticks = ticks.map(|tick| (scale.map(tick.value), Some(label(tick.value)))).collect();
    frame.x_axis(to, &spaced(ticks, &[]), name);
    frame.bottom + BELOW
}

/// A part of a bar.
pub struct Segment {
    /// Its length, ns, not below zero.
    pub ns: f64,
    pub colour: Colour,
    pub note: String,
}

/// A bar that begins at zero, one part after the other.
pub fn bar(to: &mut Drawing, parts: &[Segment], scale: &Scale, top: f64) {
    let mut sum = 0.0;
    for part in parts {
        let from = scale.map(sum);
        sum += part.ns;
        let area = [from, top, scale.map(sum), top + BAR];
        to.rect(area, Pen::area("part", part.colour), Some(part.note.clone()));
    }
}

/// A line of the table.
#[derive(Default)]
pub struct PartRow {
    /// Of a part.
    pub colour: Option<Colour>,
    pub name: String,
    /// In the order of the table's heads; none if the line is a name alone.
    pub values: [String; 3],
    /// The value that matters most.
    pub bold: Option<usize>,
    /// Whether the name is that of what follows.
    pub head: bool,
}

/// The table of parts below `above`; returns where it ends.
pub fn table(to: &mut Drawing, heads: [&str; 3], rows: &[PartRow], above: f64) -> f64 {
    let mut y = above + LINE;
    for (head, end) in heads.iter().zip(ENDS) {
        to.text(Label::new(*head, end, y).end().soft());
    }
    for row in rows {
        y += LINE + if row.head { APART } else { 0.0 };
        if let Some(colour) = row.colour {
            to.rects(&[[MARKS, y - 12.0, MARKS + MARK, y + 2.0]], Pen::area("key", colour));
        }
        let left = if row.head { 4.0 } else { NAMES };
        let is_alone = row.values.iter().all(String::is_empty);
        let end = if is_alone { RIGHT } else { ENDS[0] - COLUMN };
        let name = typeface::cut(&row.name, end - left);
        to.text(Label::new(name, left, y).bold_if(row.head));
        for (number, (value, end)) in row.values.iter().zip(ENDS).enumerate() {
            if !value.is_empty() {
                to.text(Label::new(value, end, y).end().bold_if(row.bold == Some(number)));
            }
        }
    }
    y + 10.0
}

/// Names of parts, each with its start and its length, ns, below their bar on the baseline `y`: the
/// longest part has its own, others where there is room from their start on.
pub fn names(to: &mut Drawing, parts: &[(f64, f64, String)], scale: &Scale, y: f64) {
    let mut order: Vec<_> = parts.iter().collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut taken: Vec<(f64, f64)> = Vec::new();
    for (from, _, text) in order {
        let start = scale.map(*from).max(LEFT + INSIDE);
        let is_longest = taken.is_empty();
        let text = typeface::cut(text, RIGHT - LEFT - 2.0 * INSIDE);
        let room = typeface::room(&text, LARGEST, false);
        let left = start.min(RIGHT - INSIDE - room);
        let free = taken.iter().all(|(from, to)| left + room + GAP < *from || *to + GAP < left);
        if is_longest || free && left >= start {
            taken.push((left, left + room));
            to.text(Label::new(text, left, y).class("name"));
        }
    }
}
