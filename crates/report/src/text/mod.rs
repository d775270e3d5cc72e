//! What the terminal shows of runs.

mod detail;
mod style;
mod summary;
mod table;

pub use detail::details;
pub use summary::summary;
