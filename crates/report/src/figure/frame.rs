//! The rectangle that a figure draws in, its axes and the lines across it.

use super::drawing::{Anchor, Drawing, Label, Pen};
use super::sheet::WIDTH;
use super::theme::Colour;
use super::typeface::{self, LARGEST};

/// A plotting area, in units of the figure.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
}

/// Left end of every plotting area: room for labels such as `100 us`.
pub const LEFT: f64 = 84.0;
/// Right end of every plotting area: room for half of the last tick's label.
pub const RIGHT: f64 = WIDTH - 40.0;
/// Top of a plotting area below the name of its vertical axis.
const TOP: f64 = 34.0;
/// Height of a line of text.
pub const LINE: f64 = 22.0;
/// From the bottom of a plotting area to the end of its horizontal axis' name.
pub const BELOW: f64 = 58.0;

const GRID: Pen = Pen::line("grid", Colour::Grid, 1.0);
const FINE: Pen = Pen::line("fine", Colour::Grid, 0.5);
pub const DEADLINE: Pen = Pen::line("deadline", Colour::Deadline, 1.6).dashed(&[7.0, 4.0]);

/// Places on an axis, with a label or without.
pub type Ticks = Vec<(f64, Option<String>)>;

impl Frame {
    /// An area of this height, below the name of its vertical axis and the labels of lines.
    pub fn standard(height: f64, lines: &Lines) -> Self {
        let top = TOP + LINE * lines.rows() as f64;
        Self { left: LEFT, right: RIGHT, top, bottom: top + height }
    }

    /// The same area further down.
    pub fn moved(&self, by: f64) -> Self {
        Self { top: self.top + by, bottom: self.bottom + by, ..*self }
    }

    /// The border.
    pub fn border(&self, to: &mut Drawing) {
        let Self { left, right, top, bottom } = *self;
        let corners = vec![(left, top), (right, top), (right, bottom), (left, bottom), (left, top)];
        to.lines(vec![corners], Pen::line("frame", Colour::Soft, 1.0), None);
    }

    /// Horizontal axis: grid lines, labels and the axis' name below.
    pub fn x_axis(&self, to: &mut Drawing, ticks: &Ticks, name: &str) {
        self.x_ticks(to, ticks);
        to.text(Label::new(name, self.right, self.bottom + 49.0).end().soft());
    }

    /// Grid lines and labels of the horizontal axis.
    pub fn x_ticks(&self, to: &mut Drawing, ticks: &Ticks) {
        for (x, label) in ticks {
            to.line((*x, self.top), (*x, self.bottom), grid(label));
            if let Some(label) = label {
                to.text(tick(label, *x, self.bottom));
            }
        }
    }

    /// Vertical axis: grid lines, labels and the axis' name above its upper end.
    pub fn y_axis(&self, to: &mut Drawing, ticks: &Ticks, name: &str) {
        self.y_ticks(to, ticks);
        to.text(Label::new(name, 4.0, 16.0).soft());
    }

    /// Grid lines and labels of the vertical axis.
    pub fn y_ticks(&self, to: &mut Drawing, ticks: &Ticks) {
        for (y, label) in ticks {
            to.line((self.left, *y), (self.right, *y), grid(label));
            if let Some(label) = label {
                to.text(Label::new(label, self.left - 6.0, *y).end().centred().soft());
            }
        }
    }

    /// A remark above the right end, as far as the name of the vertical axis leaves it room.
    pub fn note(&self, to: &mut Drawing, text: &str, name: &str) {
        let taken = typeface::room(name, LARGEST, false) + 20.0;
        let text = typeface::cut(text, self.right - 4.0 - taken);
        to.text(Label::new(text, self.right, 16.0).end().soft());
    }

    /// The shaded part of an axis for what is below it.
    pub fn band(&self, to: &mut Drawing, area: [f64; 4]) {
        to.rects(&[area], Pen::area("band", Colour::Panel));
    }

    /// Vertical lines, each from its label down.
    pub fn verticals(&self, to: &mut Drawing, lines: &Lines) {
        self.verticals_within(to, lines, &[(self.top, self.bottom)]);
    }

    /// Vertical lines that are drawn between these heights only: what is between is text.
    pub fn verticals_within(&self, to: &mut Drawing, lines: &Lines, parts: &[(f64, f64)]) {
        for placed in &lines.placed {
            let base = self.top - 6.0 - LINE * placed.row as f64;
            let mut pieces = vec![(base + 5.0, self.top)];
            pieces.extend_from_slice(parts);
            let x = placed.line.x;
            let pieces = pieces.into_iter().map(|(from, end)| vec![(x, from), (x, end)]);
            to.lines(pieces.collect(), placed.line.paint, None);
        }
        for placed in &lines.placed {
            let y = self.top - 6.0 - LINE * placed.row as f64;
            let colour = placed.line.paint.stroke.unwrap_or(Colour::Text);
            let label = Label::new(&placed.line.label, placed.x, y).colour(colour).bold();
            to.text(Label { anchor: placed.anchor, ..label });
        }
    }
}

fn tick(label: &str, x: f64, bottom: f64) -> Label {
    Label::new(label, x, bottom + 27.0).middle().soft().class("tick")
}

fn grid(label: &Option<String>) -> Pen {
    if label.is_some() { GRID } else { FINE }
}

/// The ticks of a horizontal axis, with the labels that have room, the first ones first. Ticks in
/// `spare` get a label if there is room left.
pub fn spaced(ticks: Ticks, spare: &[(f64, String)]) -> Ticks {
    let mut taken: Vec<[f64; 4]> = Vec::new();
    let mut fits = |x: f64, label: &str| {
        let area = tick(label, x, 0.0).area(LARGEST);
        let free = taken.iter().all(|other| !overlap(other, &area));
        if free {
            taken.push(area);
        }
        free
    };
    let keep = |(x, label): (f64, Option<String>)| (x, label.filter(|label| fits(x, label)));
    let mut ticks: Ticks = ticks.into_iter().map(keep).collect();
    for (x, label) in spare {
        if fits(*x, label) {
            ticks.push((*x, Some(label.clone())));
        }
    }
    ticks
}

/// Whether two areas, each left, top, right and bottom, have a point in common.
pub fn overlap(a: &[f64; 4], b: &[f64; 4]) -> bool {
    a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
}

/// A vertical line with a label above it.
#[derive(Debug, Clone)]
pub struct Upright {
    pub x: f64,
    pub paint: Pen,
    pub label: String,
}

#[derive(Debug, Clone)]
struct PlacedLabel {
    line: Upright,
    anchor: Anchor,
    x: f64,
    row: usize,
}

impl PlacedLabel {
    /// Left and right end of the label.
    fn reach(&self) -> (f64, f64) {
        let label = Label::new(&self.line.label, self.x, 0.0).bold();
        let [left, _, right, _] = Label { anchor: self.anchor, ..label }.area(LARGEST);
        (left, right)
    }
}

/// Vertical lines whose labels are beside each other if they have room, else above each other.
#[derive(Debug, Clone, Default)]
pub struct Lines {
    placed: Vec<PlacedLabel>,
}

/// Ways to place a label, the best first.
const WAYS: [(Anchor, f64); 3] = [(Anchor::Middle, 0.0), (Anchor::Start, -4.0), (Anchor::End, 4.0)];

impl Lines {
    pub fn of(lines: Vec<Upright>) -> Self {
        let placed: Vec<PlacedLabel> = match side_by_side(&lines, &[]) {
            Some(placed) => placed,
            None => lines.iter().enumerate().map(|(row, line)| alone(line, row)).collect(),
        };
        Self { placed }
    }

    fn rows(&self) -> usize {
        self.placed.iter().map(|placed| placed.row + 1).max().unwrap_or(0)
    }
}

/// In a row of its own a label has room, moved as little as the ends of the area ask for.
fn alone(line: &Upright, row: usize) -> PlacedLabel {
    let half = typeface::room(&line.label, LARGEST, true) / 2.0;
    let x = line.x.min(WIDTH - half).max(LEFT + half);
    PlacedLabel { line: line.clone(), anchor: Anchor::Middle, x, row }
}

/// All labels in one row: none reaches into another one, another's line or an end.
fn side_by_side(lines: &[Upright], before: &[PlacedLabel]) -> Option<Vec<PlacedLabel>> {
    // Every line has three ways: more than a few lines would take too long, and no row.
    if lines.len() > 4 {
        return None;
    }
    let Some(line) = lines.get(before.len()) else { return Some(before.to_vec()) };
    let ways = WAYS.iter().map(|(anchor, shift)| PlacedLabel {
        line: line.clone(),
        anchor: *anchor,
        x: line.x + shift,
        row: 0,
    });
    for placed in ways {
        let (left, right) = placed.reach();
        let inside = left >= LEFT && right <= WIDTH;
        let free = before.iter().all(|other| {
            let (from, to) = other.reach();
            right < from || to < left
        });
        let others = lines.iter().enumerate().filter(|(number, _)| *number != before.len());
        let crossed = others.map(|(_, other)| other.x).any(|x| left <= x && x <= right);
        if inside && free && !crossed {
            let with = [before, &[placed]].concat();
            if let Some(all) = side_by_side(lines, &with) {
                return Some(all);
            }
        }
    }
    None
}

/// A coordinate with a tenth of a unit: finer than any screen shows.
pub fn n(value: f64) -> String {
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

/// A count as a tick is labelled: `1`, `100`, `10 k`, `1 M`.
pub fn count_label(count: f64) -> String {
    let (value, unit) = match count {
        v if v >= 0.999e12 => (v / 1e12, " T"),
        v if v >= 0.999e9 => (v / 1e9, " G"),
        v if v >= 0.999e6 => (v / 1e6, " M"),
        v if v >= 9.99e3 => (v / 1e3, " k"),
        v => (v, ""),
    };
    format!("{value:.0}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(n(12.04), "12");
        assert_eq!(n(-0.26), "-0.3");
        for (count, text) in [(1.0, "1"), (1e3, "1000"), (1e4, "10 k"), (2e6, "2 M"), (1e9, "1 G")]
        {
            assert_eq!(count_label(count), text);
        }
    }

    #[test]
    fn labels_of_lines_never_collide() {
        let line = |x: f64, label: &str| Upright { x, paint: DEADLINE, label: label.to_owned() };
        for (places, rows) in [
            (vec![300.0], 1),
            (vec![300.0, 320.0], 1),
            (vec![100.0, 120.0], 2),
            (vec![670.0, 675.0], 2),
            (vec![90.0, 400.0, 650.0], 1),
            (vec![300.0, 310.0, 320.0], 3),
        ] {
            let lines = Lines::of(places.iter().map(|x| line(*x, "deadline 200 us")).collect());
            assert_eq!(lines.rows(), rows, "{places:?}");
            let mut drawing = Drawing::default();
            Frame::standard(100.0, &lines).verticals(&mut drawing, &lines);
            let areas: Vec<_> = drawing.labels().map(|label| label.area(LARGEST)).collect();
            for (number, area) in areas.iter().enumerate() {
                assert!(area[0] >= LEFT - 1.0 && area[2] <= WIDTH + 1.0, "{places:?}: {area:?}");
                assert!(areas[..number].iter().all(|other| !overlap(other, area)), "{places:?}");
            }
        }
    }
}
