//! What may be claimed from samples: the layers L0 (observed) and L1
//! (distribution-free) of the statistics.
//!
//! Everything is a pure function of counts. The bounds are those of the
//! binomial and the Poisson distribution, exact rather than asymptotic: real-time
//! evidence lives at a handful of exceedances in 10^5 to 10^11 releases, where
//! a normal approximation is worthless.

mod assemble;
mod batches;
mod behind;
mod bounds;
mod brunner_munzel;
mod by_blocks;
mod clustering;
mod drift;
mod episode_rates;
mod episodes;
pub mod extreme;
mod median;
mod median_ratio;
mod pauses;
mod phases;
mod quantile;
mod rank_sum;
mod shifts;
mod special;
mod stopped;
mod student;
mod summary;

pub use assemble::{Measured, assemble};
pub use batches::{LEAST_BATCHES_LATE, LEAST_SECONDS_LATE};
pub use behind::{Behind, Limits, Refused, behind_of};
pub use bounds::{
    beaten_within, clopper_pearson_lower, clopper_pearson_upper, exceedance_rate_upper,
    quantile_ranks, samples_needed, wilks_rank, wilks_samples,
};
pub use brunner_munzel::{BrunnerMunzel, Placements, Studentised};
pub use by_blocks::{measured_by_blocks, missed_by_late};
pub use clustering::{
    Clustering, Exceeding, clusters_more_than_chance, probability_of_seconds, seconds_by_chance,
};
pub use drift::{BySecond, Drift, changes, note_drift};
pub use episode_rates::{EpisodeRatio, are_overdispersed, episode_ratio};
pub use episodes::{
    EPISODE_GAP_NS, LEAST_OBSERVED_NS, LONG_EPISODE_NS, episodes, observed_share,
    spells_of_seconds, spells_on_disk, tell_batches, tell_episodes,
};
pub use median::Median;
pub use median_ratio::{Known, combined, ratio_interval};
pub use pauses::{Pace, Pauses};
pub use phases::{InPhase, late_again, phases_by_blocks, tell_phases};
pub use quantile::{Distribution, Quantile};
pub use rank_sum::{least_p, rank_sum_cdf, replicates_needed};
pub use shifts::{SPREADS_MAY_DIFFER, ShiftTest, Shifts, hodges_lehmann};
pub use stopped::note_stops;
pub use student::{student_p, student_quantile};
pub use summary::{Counts, Recorded, exceedances, summarise};
