//! A thread that never came to its end, known only by its blocks and its late samples.

use super::assemble::Measured;
use super::behind::{Behind, Limits};
use super::summary::Recorded;
use crate::block::Late;
use crate::histogram::Sparse;
use crate::run::{SeriesData, ThreadData};
use crate::schema::Thread;

/// What a thread leaves of which only blocks are there: exact counts, extremes, mean and
/// deviation up to the last of them, and quantiles to the width of their coarse bins. `later`
/// of its missed releases were later than the deadline ([`missed_by_late`]).
#[must_use]
pub fn measured_by_blocks(thread: Thread, data: &ThreadData, later: u64) -> Measured<'_> {
    let primary = data.primary();
    Measured {
        thread,
        series: data.series.iter().map(Recorded::of).collect(),
        exceedances: primary.moments().exceeded.saturating_add(later),
    }
}

/// Adds to a series what its missed releases would have seen, from its late samples; returns
/// how many of them were later than the deadline, or `None` if that is not known.
pub fn missed_by_late(series: &mut SeriesData, limits: &Limits) -> Option<u64> {
    let missed = series.moments().missed;
    if limits.interval == 0 {
        return (missed == 0).then_some(0);
    }
    let late = within_blocks(&series.late, missed)?;
    // A histogram is large: none for nothing, as there may be thousands of series.
    if late.is_empty() {
        series.behind = Some(Sparse::default());
        return Some(0);
    }
    let behind = Behind::from_late(late, limits);
    series.behind = Some(behind.counts.sparse());
    Some(behind.exceeded)
}

/// The late samples that belong to finished blocks: those of the unfinished last second reach
/// the disk before their block. `None` if some were lost.
fn within_blocks(late: &[Late], missed: u64) -> Option<&[Late]> {
    let mut sum = 0_u64;
    let mut count = 0;
    while sum < missed {
        sum = sum.saturating_add(late.get(count)?.missed);
        count += 1;
    }
    (sum == missed).then(|| &late[..count])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late(missed: u64) -> Late {
        Late { thread: 0, series: 0, at: 0, latency: 1_000_000 * missed, missed }
    }

    #[test]
    fn late_samples_of_an_unfinished_second_do_not_count() {
        let all = [late(3), late(4), late(5)];
        assert_eq!(within_blocks(&all, 7), Some(&all[..2]));
        assert_eq!(within_blocks(&all, 0), Some(&all[..0]));
        assert_eq!(within_blocks(&all, 12), Some(&all[..]));
    }

    #[test]
    fn lost_late_samples_are_not_made_up() {
        assert_eq!(within_blocks(&[late(3), late(4)], 5), None);
        assert_eq!(within_blocks(&[], 5), None);
    }
}
