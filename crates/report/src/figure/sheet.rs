//! A figure, and how it stands alone: its title above it, in the type of files.

use super::drawing::{Drawing, Label};
use super::typeface;

/// Width of every figure in its own units; the page scales it.
pub const WIDTH: f64 = 720.0;

/// One figure.
#[derive(Debug, Clone)]
pub struct Figure {
    /// File name without its ending, unique in the report.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// What is to be seen in it, for those who cannot see it.
    pub description: String,
    pub(super) height: f64,
    pub(super) drawing: Drawing,
}

/// A text of a figure and the room that it may take: left, top, right and bottom, units of the
/// figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Text {
    /// The text.
    pub text: String,
    /// Its room in the largest type that a page has, in any usual typeface.
    pub area: [f64; 4],
}

impl Figure {
    /// Its height, units of the figure; it is [`WIDTH`] wide.
    #[must_use]
    pub fn height(&self) -> f64 {
        self.height
    }

    /// Every text in it except its title.
    #[must_use]
    pub fn texts(&self) -> Vec<Text> {
        let room =
            |label: &Label| Text { text: label.text.clone(), area: label.area(typeface::LARGEST) };
        self.drawing.labels().map(room).collect()
    }
}

/// Size of the type of files, units of the figure: 8 points where a figure is as wide as a
/// column and a half of a paper (12.7 cm).
pub const TYPE: f64 = 16.0;
const LINE: f64 = 22.0;
const MARGIN: f64 = 6.0;
/// A title longer than this many lines is cut.
const LINES: usize = 3;

pub struct Sheet {
    /// Room above the figure for the title, units of the figure.
    pub above: f64,
    /// The title and the figure.
    pub drawing: Drawing,
    below: f64,
}

impl Sheet {
    pub fn of(figure: &Figure) -> Self {
        let title = typeface::wrapped(&figure.title, WIDTH - 8.0, TYPE, LINES);
        let above = MARGIN + LINE * title.len() as f64;
        let mut drawing = Drawing::default();
        for (number, line) in title.into_iter().enumerate() {
            let y = LINE * (number as f64 + 1.0) - above;
            drawing.text(Label::new(line, 4.0, y).bold().class("title"));
        }
        drawing.shapes.extend(figure.drawing.shapes.iter().cloned());
        Self { above, drawing, below: figure.height }
    }

    pub fn height(&self) -> f64 {
        self.above + self.below
    }
}
