//! The recorder: what a probe's thread does with each sample.
//!
//! Architecture invariant: between two samples there is no lock, no allocation,
//! no system call, no print, no floating point, no dynamic dispatch, and no loop
//! but the insertion of one of the worst samples.

use std::sync::Arc;

use punctual_core::block::{BLOCK_NS, Moments, Outlier};
use punctual_core::histogram::{COARSE_BINS, COARSE_SHIFT, SignedHistogram, bin_of};
use punctual_core::stats::Limits;

use crate::ring::{BlockRing, LateRing, RING_BLOCKS, RING_LATE, SLOT_BINS};

/// How many of the worst samples a thread keeps with their times.
pub const WORST: usize = 64;

/// How many samples above the trace threshold a thread keeps at most.
pub const ABOVE_CAP: usize = 16_384;

/// Bytes that recording takes for one thread, its stack aside.
#[must_use]
pub fn state_bytes() -> usize {
    let histograms = 2 * size_of::<u64>() * punctual_core::histogram::BINS;
    let worst = WORST * size_of::<Outlier>();
    BlockRing::<SLOT_BINS>::bytes(RING_BLOCKS)
        + LateRing::bytes(RING_LATE)
        + histograms
        + worst
        + size_of::<Recorder>()
}

/// What the collector reads while the probe runs.
#[derive(Debug)]
pub struct Shared {
    /// Finished blocks.
    pub blocks: BlockRing,
    /// Samples that missed releases.
    pub late: LateRing,
}

impl Shared {
    fn new() -> Self {
        Self { blocks: BlockRing::new(RING_BLOCKS), late: LateRing::new(RING_LATE) }
    }
}

/// Records the samples of one thread.
#[derive(Debug)]
pub struct Recorder {
    shared: Arc<Shared>,
    histogram: SignedHistogram,
    block: Moments,
    /// Instant at which the current block ends, ns of the probe's clock.
    block_end: u64,
    /// Instant at which the current block began, at the latest.
    block_start: u64,
    /// Position of the current block's slot in the ring.
    position: usize,
    published: u64,
    late_pushed: u64,
    epoch: u64,
    limits: Limits,
    worst: Worst,
    above: Vec<Outlier>,
    above_left_out: u64,
    total: Moments,
    late_lost: bool,
}

/// What a thread's recorder holds in the end.
#[derive(Debug)]
pub struct Recording {
    /// Exact results.
    pub moments: Moments,
    /// All samples.
    pub histogram: SignedHistogram,
    /// The worst samples and those above the threshold, in order of time.
    pub outliers: Vec<Outlier>,
    /// Samples above the threshold that the cap left out.
    pub left_out: u64,
    /// Whether the late ring was full once: the corrected distribution comes from the bins.
    pub late_lost: bool,
}

impl Recorder {
    /// Allocates everything that recording needs: about 1.3 MB, most of it ring.
    /// Samples count as warm-up until [`Recorder::begin`].
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let keeps = if limits.threshold == i64::MAX { 0 } else { ABOVE_CAP };
        Self {
            shared: Arc::new(Shared::new()),
            histogram: SignedHistogram::new(),
            block: Moments::EMPTY,
            block_end: u64::MAX,
            block_start: 0,
            position: 0,
            published: 0,
            late_pushed: 0,
            epoch: 0,
            limits,
            worst: Worst::new(),
            above: Vec::with_capacity(keeps),
            above_left_out: 0,
            total: Moments::EMPTY,
            late_lost: false,
        }
    }

    /// The collector's side.
    #[must_use]
    pub fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Ends the warm-up and returns its extreme: all that is recorded from here on counts,
    /// in blocks of one second from `epoch` (ns of the probe's clock).
    ///
    /// Invariant: it asks for no memory. A real-time thread that maps or unmaps waits for
    /// whoever holds the address space, a thread of no priority under a load among them.
    pub fn begin(&mut self, epoch: u64) -> Option<i64> {
        let warmup_max = (self.block.count > 0).then_some(self.block.max);
        self.histogram.clear();
        self.shared.blocks.clear_first();
        self.block = Moments::EMPTY;
        self.worst.clear();
        self.above.clear();
        self.above_left_out = 0;
        self.late_lost = false;
        self.epoch = epoch;
        self.block_start = epoch;
        self.block_end = epoch.saturating_add(BLOCK_NS);
        warmup_max
    }

    /// Samples recorded since [`Recorder::begin`].
    #[inline(always)]
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.total.count + self.block.count
    }

    /// Whether the block that is due can be published; a simulation waits for the collector here.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.shared.blocks.has_room(self.published)
    }

    /// When the current block ends, ns of the probe's clock.
    #[inline(always)]
    #[must_use]
    pub fn block_end(&self) -> u64 {
        self.block_end
    }

    /// Records one sample: taken at `now`, `latency` late (signed), with `missed`
    /// releases passed behind it.
    #[inline(always)]
    pub fn record(&mut self, now: u64, latency: i64, missed: u64) {
        if now >= self.block_end {
            self.next_block(now);
        }
        let magnitude = latency.unsigned_abs();
        let bin = bin_of(magnitude);
        let block = &mut self.block;
        block.count += 1;
        block.sum += i128::from(latency);
        block.sum_sq += u128::from(magnitude) * u128::from(magnitude);
        block.min = block.min.min(latency);
        if latency >= 0 {
            self.histogram.positive.record_bin(bin);
            self.shared.blocks.count(self.position, bin >> COARSE_SHIFT);
        } else {
            block.early += 1;
            self.histogram.negative.record_bin(bin);
            self.shared.blocks.count(self.position, COARSE_BINS + (bin >> COARSE_SHIFT));
        }
        if latency > block.max {
            block.max = latency;
            block.max_at = now.saturating_sub(self.epoch);
        }
        if latency > self.worst.floor {
            self.worst.insert(now.saturating_sub(self.epoch), latency);
        }
        if latency > self.limits.deadline {
            block.exceeded += 1;
        }
        if missed > 0 {
            self.late(now, magnitude, missed);
        }
        if latency > self.limits.threshold {
            self.keep(now, latency);
        }
    }

    #[cold]
    #[inline(never)]
    fn next_block(&mut self, now: u64) {
        let elapsed = now.saturating_sub(self.epoch) / BLOCK_NS;
        let index = self.block_start.saturating_sub(self.epoch) / BLOCK_NS;
        if self.block.count == 0 || self.shared.blocks.publish(self.published, index, &self.block) {
            if self.block.count > 0 {
                self.published += 1;
                self.position = self.shared.blocks.position(self.published);
            }
            self.total.merge(&self.block);
            self.block = Moments::EMPTY;
            self.block_start = self.epoch + elapsed * BLOCK_NS;
        }
        self.block_end = self.epoch.saturating_add((elapsed + 1).saturating_mul(BLOCK_NS));
    }

    #[cold]
    #[inline(never)]
    fn late(&mut self, now: u64, latency: u64, missed: u64) {
        self.block.missed += missed;
        // The collector sees nothing of the warm-up.
        if self.block_end == u64::MAX {
            return;
        }
        let at = now.saturating_sub(self.epoch);
        if self.shared.late.push(self.late_pushed, at, latency, missed) {
            self.late_pushed += 1;
        } else {
            self.late_lost = true;
        }
    }

    #[cold]
    #[inline(never)]
    fn keep(&mut self, now: u64, latency: i64) {
        if self.above.len() < self.above.capacity() {
            self.above.push(Outlier { at: now.saturating_sub(self.epoch), latency });
        } else {
            self.above_left_out += 1;
        }
    }

    /// Publishes the last block and gives everything out.
    #[must_use]
    pub fn finish(mut self) -> Recording {
        if self.block.count > 0 {
            let index = self.block_start.saturating_sub(self.epoch) / BLOCK_NS;
            self.shared.blocks.close(self.published, index, &self.block);
            self.total.merge(&self.block);
        }
        let mut outliers = self.worst.kept;
        outliers
            .retain(|worst| worst.latency <= self.limits.threshold || !self.above.contains(worst));
        outliers.append(&mut self.above);
        outliers.sort_by_key(|outlier| outlier.at);
        Recording {
            moments: self.total,
            histogram: self.histogram,
            outliers,
            left_out: self.above_left_out,
            late_lost: self.late_lost,
        }
    }
}

/// The worst samples, in no order, and the least of them once there are [`WORST`].
#[derive(Debug)]
struct Worst {
    kept: Vec<Outlier>,
    floor: i64,
    least: usize,
}

impl Worst {
    fn new() -> Self {
        Self { kept: Vec::with_capacity(WORST), floor: i64::MIN, least: 0 }
    }

    fn clear(&mut self) {
        self.kept.clear();
        self.floor = i64::MIN;
        self.least = 0;
    }

    #[cold]
    #[inline(never)]
    fn insert(&mut self, at: u64, latency: i64) {
        let sample = Outlier { at, latency };
        if self.kept.len() < WORST {
            self.kept.push(sample);
            if self.kept.len() < WORST {
                return;
            }
        } else {
            self.kept[self.least] = sample;
        }
        self.floor = i64::MAX;
        for (place, kept) in self.kept.iter().enumerate() {
            if kept.latency < self.floor {
                (self.floor, self.least) = (kept.latency, place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Nine years: the sum of squares holds 4,096 such samples.
    const YEARS: i64 = 1 << 58;

    fn record_all(
        values: &[(u64, i64)],
        limits: Limits,
    ) -> (Recording, Vec<punctual_core::block::Block>) {
        let mut recorder = Recorder::new(limits);
        let shared = recorder.shared();
        recorder.record(5, 999, 0);
        assert_eq!(recorder.begin(1_000), Some(999));
        for (at, latency) in values {
            recorder.record(1_000 + at, *latency, 0);
        }
        let recording = recorder.finish();
        let blocks = (0..).map_while(|taken| shared.blocks.take(taken, 0)).collect();
        (recording, blocks)
    }

    #[test]
    fn a_block_is_a_second_and_a_gap_shows_in_the_indices() {
        let s = BLOCK_NS;
        let (recording, blocks) = record_all(
            &[(0, 5), (s - 1, 7), (s, 6), (5 * s + 3, 9), (5 * s + 4, -1)],
            Limits::NONE,
        );
        let seen: Vec<_> =
            blocks.iter().map(|b| (b.index, b.moments.count, b.moments.max)).collect();
        assert_eq!(seen, [(0, 2, 7), (1, 1, 6), (5, 2, 9)]);
        assert_eq!(recording.moments.count, 5);
        assert_eq!((recording.moments.max_at, recording.moments.early), (5 * s + 3, 1));
    }

    #[test]
    fn a_starved_collector_loses_nothing() {
        let values: Vec<_> = (0..2 * RING_BLOCKS as u64).map(|s| (s * BLOCK_NS, 10)).collect();
        let (recording, blocks) = record_all(&values, Limits::NONE);
        assert_eq!(recording.moments.count, values.len() as u64);
        assert_eq!(blocks.len(), RING_BLOCKS);
        assert_eq!(blocks.iter().map(|b| b.moments.count).sum::<u64>(), values.len() as u64);
        assert_eq!(blocks.last().unwrap().coarse, [(0, u32::try_from(RING_BLOCKS).unwrap() + 1)]);
    }

    #[test]
    fn exceedances_and_the_threshold_are_exact() {
        let limits = Limits { deadline: 100, threshold: 100 };
        let values: Vec<_> =
            (0..ABOVE_CAP as u64 + 300).map(|i| (i, if i < 200 { 100 } else { 101 })).collect();
        let (recording, _) = record_all(&values, limits);
        assert_eq!(recording.moments.exceeded, ABOVE_CAP as u64 + 100);
        assert_eq!(recording.left_out, 100);
    }

    proptest! {
        #[test]
        fn a_recording_holds_every_sample(
            values in prop::collection::vec((0_u64..40 * BLOCK_NS, -YEARS..YEARS), 1..400),
        ) {
            let mut values = values;
            values.sort_by_key(|(at, _)| *at);
            let (recording, blocks) = record_all(&values, Limits::NONE);
            let mut all = Moments::EMPTY;
            blocks.iter().for_each(|block| all.merge(&block.moments));
            prop_assert_eq!(all, recording.moments);
            prop_assert_eq!(recording.histogram.total(), values.len() as u64);
            prop_assert_eq!(all.sum, values.iter().map(|(_, v)| i128::from(*v)).sum::<i128>());
            for block in &blocks {
                prop_assert_eq!(block.coarse.iter().map(|(_, n)| u64::from(*n)).sum::<u64>(), block.moments.count);
            }
            let mut worst: Vec<_> = values.iter().map(|(_, v)| *v).collect();
            worst.sort_unstable_by(|a, b| b.cmp(a));
            worst.truncate(WORST);
            let mut kept: Vec<_> = recording.outliers.iter().map(|o| o.latency).collect();
            kept.sort_unstable_by(|a, b| b.cmp(a));
            prop_assert_eq!(kept, worst);
        }
    }
}
