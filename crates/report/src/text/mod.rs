//! What the terminal shows of runs.

mod compare;
mod cost;
mod detail;
mod spread;
mod style;
mod summary;
mod table;

pub use compare::comparison;
pub(crate) use compare::{difference_text, estimate_texts, estimates_title, unmatched_text};
pub use detail::details;
pub use summary::summary;
