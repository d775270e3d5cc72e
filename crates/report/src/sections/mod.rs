//! When a kernel could not react, as text, page and figures.

mod between;
mod compare;
mod coverage;
pub(crate) mod found;
mod page;
mod sentence;
mod text;

pub use compare::comparison;
pub use page::page;
pub use text::text;

use punctual_core::sections::Sections;

use crate::figure::{Figure, sections as drawn};

/// Two figures of each kind of section in each cell: how long they were, a curve for each run,
/// and the longest over time, a panel for each run. All have one axis of lengths.
#[must_use]
pub fn figures(all: &[Sections]) -> Vec<Figure> {
    let kinds = found::kinds(all);
    kinds.iter().flat_map(|kind| drawn::of_kind(kind, &kinds)).collect()
}
