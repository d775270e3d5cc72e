//! Cells of latencies, side by side.

use serde::Serialize;

use super::row::Row;
use super::spread::Spread;

/// One cell as several runs measured it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MatchedCell {
    /// What the cells were matched by; a number follows if a plan contains the
    /// same cell several times.
    pub key: String,
    /// One row for each run that has the cell, in their order.
    pub rows: Vec<Row>,
    /// The same by kernel, one for each of [`super::Comparison::groups`].
    pub spreads: Vec<Spread>,
}
