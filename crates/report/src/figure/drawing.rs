//! What a figure consists of: a few kinds of shapes that every output can draw. A figure is
//! drawn once; `svg.rs`, `pdf.rs` and `png.rs` write it.

use super::theme::Colour;
use super::typeface;

pub type Point = (f64, f64);

/// How an outline is painted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pen {
    /// What it is, as a class in SVG.
    pub class: &'static str,
    pub fill: Option<Colour>,
    pub stroke: Option<Colour>,
    /// Width of the stroke, units of the figure.
    pub width: f64,
    /// Lengths of dashes and gaps in turn; empty for a solid line.
    pub dash: &'static [f64],
}

impl Pen {
    pub const fn line(class: &'static str, colour: Colour, width: f64) -> Self {
        Self { class, fill: None, stroke: Some(colour), width, dash: &[] }
    }

    pub const fn area(class: &'static str, colour: Colour) -> Self {
        Self { class, fill: Some(colour), stroke: None, width: 0.0, dash: &[] }
    }

    pub const fn dashed(self, dash: &'static [f64]) -> Self {
        Self { dash, ..self }
    }

    pub const fn filled(self, colour: Colour) -> Self {
        Self { fill: Some(colour), ..self }
    }
}

/// Which part of a text is at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// A text in one line.
#[derive(Debug, Clone, PartialEq)]
pub struct Label {
    pub text: String,
    /// Its place on the baseline, or at half the height of capitals if it is `centred`.
    pub at: Point,
    pub anchor: Anchor,
    pub colour: Colour,
    pub bold: bool,
    pub centred: bool,
    /// What it is, as a class in SVG.
    pub class: &'static str,
}

impl Label {
    pub fn new(text: impl Into<String>, x: f64, y: f64) -> Self {
        Self {
            text: text.into(),
            at: (x, y),
            anchor: Anchor::Start,
            colour: Colour::Text,
            bold: false,
            centred: false,
            class: "",
        }
    }

    pub fn soft(self) -> Self {
        self.colour(Colour::Soft)
    }

    pub fn colour(self, colour: Colour) -> Self {
        Self { colour, ..self }
    }

    pub fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    pub fn bold_if(self, bold: bool) -> Self {
        Self { bold, ..self }
    }

    pub fn end(self) -> Self {
        Self { anchor: Anchor::End, ..self }
    }

    pub fn middle(self) -> Self {
        Self { anchor: Anchor::Middle, ..self }
    }

    pub fn centred(self) -> Self {
        Self { centred: true, ..self }
    }

    pub fn class(self, class: &'static str) -> Self {
        Self { class, ..self }
    }

    /// The baseline in type of a size.
    pub fn baseline(&self, size: f64) -> f64 {
        if self.centred { self.at.1 + typeface::HALF_CAPITAL * size } else { self.at.1 }
    }

    /// Its left end if it is this wide.
    pub fn left(&self, width: f64) -> f64 {
        match self.anchor {
            Anchor::Start => self.at.0,
            Anchor::Middle => self.at.0 - width / 2.0,
            Anchor::End => self.at.0 - width,
        }
    }

    /// Left, top, right and bottom of what it may take in type of a size in any usual typeface.
    pub fn area(&self, size: f64) -> [f64; 4] {
        let room = typeface::room(&self.text, size, self.bold);
        let left = self.left(room);
        let base = self.baseline(size);
        let (above, below) = (typeface::ASCENT * size, typeface::DESCENT * size);
        [left, base - above, left + room, base + below]
    }
}

/// Pixels of the ramp's levels, row by row from the top; level 0 is transparent.
#[derive(Debug, Clone, PartialEq)]
pub struct Image {
    pub levels: Vec<u8>,
    pub width: usize,
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

impl Image {
    pub fn rows(&self) -> usize {
        self.levels.len().checked_div(self.width).unwrap_or(0)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// Polylines, closed or not, as one outline.
    Path {
        lines: Vec<Vec<Point>>,
        closed: bool,
        paint: Pen,
        note: Option<String>,
    },
    Circle {
        at: Point,
        radius: f64,
        paint: Pen,
        note: Option<String>,
    },
    Text(Label),
    Image(Image),
}

/// The shapes of a figure, from the bottom up. Units are those of the figure; the origin is
/// below the title, at the left.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Drawing {
    pub shapes: Vec<Shape>,
}

impl Drawing {
    /// Polylines. What has no place on paper is left out.
    pub fn lines(&mut self, lines: Vec<Vec<Point>>, paint: Pen, note: Option<String>) {
        self.path(lines, false, paint, note);
    }

    pub fn line(&mut self, from: Point, to: Point, paint: Pen) {
        self.lines(vec![vec![from, to]], paint, None);
    }

    /// Rectangles as one outline, each `left, top, right, bottom`.
    pub fn rects(&mut self, rects: &[[f64; 4]], paint: Pen) {
        let corners = |[l, t, r, b]: &[f64; 4]| vec![(*l, *t), (*r, *t), (*r, *b), (*l, *b)];
        self.path(rects.iter().map(corners).collect(), true, paint, None);
    }

    /// A rectangle, `left, top, right, bottom`, that says what it is.
    pub fn rect(&mut self, [l, t, r, b]: [f64; 4], paint: Pen, note: Option<String>) {
        self.path(vec![vec![(l, t), (r, t), (r, b), (l, b)]], true, paint, note);
    }

    fn path(&mut self, lines: Vec<Vec<Point>>, closed: bool, paint: Pen, note: Option<String>) {
        let lines: Vec<_> = lines.into_iter().filter(|line| line.len() > 1).collect();
        if !lines.is_empty() {
            self.shapes.push(Shape::Path { lines, closed, paint, note });
        }
    }

    pub fn circle(&mut self, at: Point, radius: f64, paint: Pen, note: Option<String>) {
        self.shapes.push(Shape::Circle { at, radius, paint, note });
    }

    pub fn text(&mut self, label: Label) {
        self.shapes.push(Shape::Text(label));
    }

    pub fn image(&mut self, image: Image) {
        self.shapes.push(Shape::Image(image));
    }

    pub fn labels(&self) -> impl Iterator<Item = &Label> {
        self.shapes.iter().filter_map(|shape| match shape {
            Shape::Text(label) => Some(label),
            _ => None,
        })
    }
}
