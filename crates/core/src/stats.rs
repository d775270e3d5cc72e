//! What may be claimed from samples: the layers L0 (observed) and L1
//! (distribution-free) of the statistics.
//!
//! Everything is a pure function of counts. The bounds are those of the
//! binomial and the Poisson distribution, exact rather than asymptotic: real-time
//! evidence lives at a handful of exceedances in 10^5 to 10^11 releases, where
//! a normal approximation is worthless.

mod assemble;
mod behind;
mod bounds;
mod by_blocks;
pub mod extreme;
mod median;
mod pauses;
mod quantile;
mod special;
mod summary;

pub use assemble::{Measured, assemble};
pub use behind::{Behind, Limits, Refused, behind_of};
pub use bounds::{
    beaten_within, clopper_pearson_lower, clopper_pearson_upper, exceedance_rate_upper,
    quantile_ranks, samples_needed, wilks_rank, wilks_samples,
};
pub use by_blocks::{measured_by_blocks, missed_by_late};
pub use median::Median;
pub use pauses::{Pace, Pauses};
pub use quantile::{Distribution, Quantile};
pub use summary::{Counts, Recorded, clusters, exceedances, summarise};
