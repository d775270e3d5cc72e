//! What the terminal shows of runs.

mod compare;
mod detail;
mod style;
mod summary;
mod table;

pub use compare::comparison;
pub(crate) use compare::{difference_text, estimate_texts, estimates_title};
pub use detail::details;
pub use summary::summary;
