//! The latency history of kernels, as text, page, figure and data.

mod csv;
mod page;
mod table;

pub use csv::csv;
pub use page::page;
pub use table::text;

use punctual_core::history::History;

use crate::figure::{self, Figure};

/// The figure of a history; none if nothing was measured.
#[must_use]
pub fn figure(history: &History) -> Option<Figure> {
    figure::history::figure(history)
}

/// What one has to know to read the numbers.
const READ: &str = "Each figure is the median over the boots, those of the maximum with the \
    lowest and the highest boot. The average under no load is the path of a wake-up: with \
    counted instructions it is its length. Between two releases the compiler and the \
    distribution's configuration may have changed as well.";
