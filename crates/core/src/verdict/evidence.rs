//! What is judged.

use crate::schema::{Episodes, Quantity, Stats};

/// What a thread did, or the threads of a cell together, as far as it is judged.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// Its statistics.
    pub stats: &'a Stats,
    /// Its releases later than the deadline, missed ones included
    /// ([`crate::stats::exceedances`]).
    pub exceedances: u64,
    /// Its period, ns, if it has one, which turns releases into time.
    pub interval_ns: Option<u64>,
    /// What its samples are called.
    pub primary: &'a Quantity,
    /// Its late episodes, if they were recorded.
    pub episodes: Option<&'a Episodes>,
    /// The share of the time in which it would have seen lateness, above 0: less than 1 for a probe
    /// that spins and leaves a margin.
    pub observed_share: f64,
}
