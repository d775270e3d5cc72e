//! Why samples of a run were late, as text, page, figures and trace.

mod against;
mod holder;
mod holds;
mod page;
mod perfetto;
mod remedy;
mod sentence;
mod site;
mod text;
pub(crate) mod threads;
mod timers;
pub(crate) mod times;

pub use against::text_against;
pub use page::page;
pub use perfetto::perfetto;
pub use remedy::Remedy;
pub use sentence::{Cause, cause};
pub use text::text;

use punctual_core::explanation::Explanation;

use crate::figure::{Figure, flame};

/// Two figures of every sample: its functions over time, and its time by stack.
#[must_use]
pub fn figures(explanation: &Explanation) -> Vec<Figure> {
    let mut all = Vec::new();
    for (number, cell) in explanation.cells.iter().enumerate() {
        for rank in 0..cell.samples.len() {
            all.extend(flame::of_sample(cell, (number, rank)));
        }
    }
    all
}
