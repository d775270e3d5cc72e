//! What the terminal shows of runs.

mod compare;
mod compared_costs;
mod cost;
mod detail;
mod extremes;
mod legs;
mod margin;
mod phases;
mod pooled;
mod published;
mod spread;
mod style;
mod summary;
mod table;
mod wrap;

pub use compare::comparison;
pub(crate) use compare::{
    difference_text, episodes_text, estimate_texts, estimates_title, unmatched_texts,
};
pub use cost::costs;
pub use detail::{details, timings};
pub use extremes::extremes;
pub use legs::legs;
pub use margin::margin;
pub use pooled::pooled;
pub use published::published;
pub use style::{Paint, Style};
pub use summary::summary;
pub use table::{Align, Table};
pub use wrap::{cut, fitted, push_pairs, push_parts, push_styled, push_wrapped, wrap};
