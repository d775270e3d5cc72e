//! The marks of a figure in a row, each before its name.

use super::drawing::{Drawing, Label, Point};
use super::frame;
use super::typeface::{self, LARGEST};

/// Half of the room for a mark.
const HALF: f64 = 6.0;
/// Between a mark and its name.
const BEFORE_NAME: f64 = 6.0;
/// Between a name and the next mark.
const BETWEEN: f64 = 20.0;
/// From the baseline of the names up to the middle of the marks.
const RISE: f64 = 5.0;

/// A row of marks that is being drawn.
#[derive(Debug)]
pub struct Legend<'d> {
    to: &'d mut Drawing,
    x: f64,
    y: f64,
}

impl<'d> Legend<'d> {
    /// An empty row with names on the baseline `y`.
    pub fn at(to: &'d mut Drawing, y: f64) -> Self {
        Self { to, x: frame::LEFT, y }
    }

    /// The next mark, drawn around a point, and its name.
    pub fn mark(&mut self, name: &str, draw: impl Fn(&mut Drawing, Point)) {
        draw(self.to, (self.x + HALF, self.y - RISE));
        self.x += 2.0 * HALF + BEFORE_NAME;
        self.to.text(Label::new(name, self.x, self.y).soft());
        self.x += typeface::room(name, LARGEST, false) + BETWEEN;
    }
}
