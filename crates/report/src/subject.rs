//! A cell as figures and tables show it.

use punctual_core::run::CellData;
use punctual_core::schema::{Cell, Latency, Run};

/// A cell of latencies of one of the runs, with what figures need of both.
pub(crate) struct Subject<'a> {
    pub run: &'a Run,
    pub cell: &'a Cell,
    pub latency: &'a Latency,
    pub data: &'a CellData,
    /// Number of the run and of the cell in it, from 0.
    pub at: (usize, usize),
    /// Kernel and cell, or the cell alone if there is one run.
    pub label: String,
    /// Which runs it stands for, if that is not the one run that is named.
    pub note: Option<String>,
}
