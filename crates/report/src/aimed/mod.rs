//! How late a release can be, as releases measured that were aimed: as text, page and figures.

pub(crate) mod found;
mod page;
mod sentence;
mod table;
mod text;

pub use found::passed_over;
pub use page::page;
pub use table::table;
pub use text::text;

use punctual_core::aimed::AimedRun;

use crate::figure::{Figure, aimed as drawn};

/// A figure of each cell that has latencies: the largest of its samples and those of the aimed
/// releases, a row for each run. All have one axis.
#[must_use]
pub fn figures(all: &[AimedRun]) -> Vec<Figure> {
    let cells = found::cells(all);
    cells.iter().filter_map(|cell| drawn::of_cell(cell, &cells)).collect()
}
