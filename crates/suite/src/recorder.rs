//! The recorder: what a probe's thread does with each sample.
//!
//! Architecture invariant: between two samples there is no lock, allocation, system call,
//! print, floating point or dynamic dispatch, and there are only short loops: the
//! insertion of one of the worst samples (six steps); once a second, writing the words of a
//! block; and after a stall of dithered releases, noting those that were missed (64 at most).

use std::sync::Arc;

use punctual_core::block::{BLOCK_NS, Moments, Outlier, Spell};
use punctual_core::histogram::{COARSE_SHIFT, SignedHistogram, bin_of};
use punctual_core::schema::{MARKS, Marks};
use punctual_core::stats::{Limits, Refused};
use punctual_ring::{
    BlockRing, Coarse, HeldRing, LateRing, RING_BLOCKS, RING_BLOCKS_ASIDE, RING_HELD, RING_LATE,
    RING_SPELLS, SpellRing,
};

pub mod held;
mod late;
pub mod phases;
mod spells;
mod turn;
mod worst;

use held::{Holding, STOPPABLE_NS};
pub use late::MISSED_EXACTLY;
use phases::{ByPhase, PhaseClock, PhasesRecorded};
use spells::Spells;
pub use turn::Turn;
use worst::Worst;

/// How many of the worst samples a thread keeps, with their times.
pub const WORST: usize = 64;

/// How many samples above the trace threshold a thread keeps at most.
pub const ABOVE_CAP: usize = 16_384;

/// With more threads than this the rings of all series are small.
pub const FEW_THREADS: usize = 64;

/// Seconds for which the ring of a thread's series lasts if the collector is starved: ten minutes for
/// the primary series, 0, of [`FEW_THREADS`] at most, else one.
#[must_use]
pub fn ring_blocks(number: u32, threads: usize) -> usize {
    if number == 0 && threads <= FEW_THREADS { RING_BLOCKS } else { RING_BLOCKS_ASIDE }
}

/// Bytes of a recorder whose ring has room for `blocks` blocks.
#[must_use]
pub fn state_bytes_with(blocks: usize) -> usize {
    // Samples of zero and above, those below, and late ones that the ring refused.
    let histograms = 3 * size_of::<u64>() * punctual_core::histogram::BINS;
    let worst = WORST * size_of::<Outlier>();
    BlockRing::bytes(blocks)
        + LateRing::bytes(RING_LATE)
        + HeldRing::bytes(RING_HELD)
        + SpellRing::bytes(RING_SPELLS)
        + histograms
        + worst
        + size_of::<Recorder>()
}

/// What the collector reads while the probe runs.
#[derive(Debug)]
pub struct Shared {
    /// Finished blocks.
    pub blocks: BlockRing,
    /// Samples that were late enough to miss releases.
    pub late: LateRing,
    /// Samples that may be of a stop; without room if none is held.
    pub held: HeldRing,
    /// Spells in which samples were later than the deadline; all but the last one.
    pub spells: SpellRing,
    /// Whether simulated time waits for the collector.
    pub turn: Turn,
}

impl Shared {
    fn new(blocks: usize, limits: &Limits) -> Self {
        let spells = if limits.deadline == i64::MAX { 0 } else { RING_SPELLS };
        Self {
            blocks: BlockRing::new(blocks),
            late: LateRing::new(RING_LATE),
            held: HeldRing::new(0),
            spells: SpellRing::new(spells),
            turn: Turn::default(),
        }
    }
}

/// Records the samples of one thread.
#[derive(Debug)]
pub struct Recorder {
    /// Instant at which the current block ends, ns of the probe's clock.
    block_end: u64,
    /// Samples from here on, ...
    usual_from: u64,
    /// ... this many ns wide, are usual: within the block's extremes, not among the worst,
    /// below deadline and threshold, and not early. They change only counts and sums.
    usual_width: u64,
    block: Moments,
    histogram: SignedHistogram,
    coarse: Coarse,
    shared: Arc<Shared>,
    /// Latest instant at which the current block can have begun, ns of the probe's clock.
    block_start: u64,
    /// Words published to the ring of blocks.
    written: u64,
    late_pushed: u64,
    spells: Spells,
    epoch: u64,
    limits: Limits,
    worst: Worst,
    above: Vec<Outlier>,
    above_left_out: u64,
    total: Moments,
    holding: Holding,
    /// Samples of finished blocks, and those that are held.
    counted: u64,
    /// Late samples that the ring had no room for.
    refused: Refused,
    /// Whether its series is the primary one of its thread.
    is_primary: bool,
    /// Samples by the phase of the load.
    phases: Option<Box<ByPhase>>,
}

/// The results of a thread's recorder.
#[derive(Debug)]
pub struct Recording {
    /// Exact results.
    pub moments: Moments,
    /// All samples.
    pub histogram: SignedHistogram,
    /// The worst samples and those above the threshold, ordered by time.
    pub outliers: Vec<Outlier>,
    /// Number of samples above the threshold that did not fit.
    pub left_out: u64,
    /// Late samples that the ring had no room for.
    pub refused: Refused,
    /// The spell of lateness that was still open, if there is one.
    pub spell: Option<Spell>,
    /// How many spells had to go on because the ring had no room for them.
    pub spells_joined: u64,
    /// Samples by the phase of the load; `None` if it does not change.
    pub phases: Option<PhasesRecorded>,
}

/// The same for those who read this program's file.
#[derive(Clone, Copy)]
#[repr(C)]
struct Seen {
    /// By which it is found there.
    name: [[u8; 8]; 2],
    begin: fn(&mut Recorder, u64) -> Option<i64>,
    sample: fn(&mut Recorder, u64, i64),
    end: fn(Recorder) -> Recording,
}

#[used]
static SEEN: Seen =
    Seen { name: MARKS, begin: Recorder::begin, sample: Recorder::notable, end: Recorder::finish };

impl Recorder {
    /// A recorder of a thread's primary series, whose ring lasts ten minutes if the collector
    /// is starved. Samples count as warm-up until [`Recorder::begin`].
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self::with_blocks(limits, RING_BLOCKS)
    }

    /// A recorder of the series `number` of one of so many `threads`, whose ring lasts for
    /// [`ring_blocks`]; by the phases of the load if it is the primary series and there are any.
    #[must_use]
    pub fn of_series(
        number: u32,
        threads: usize,
        limits: Limits,
        clock: Option<&Arc<PhaseClock>>,
    ) -> Self {
        let recorder = Self::with_blocks(limits, ring_blocks(number, threads));
        let recorder = Self { is_primary: number == 0, ..recorder };
        match clock.filter(|_| number == 0) {
            Some(clock) => recorder.by_phase(Arc::clone(clock)),
            None => recorder,
        }
    }

    /// Holds samples of [`STOPPABLE_NS`] and more for the collector, while there is room: see
    /// [`held`]. For what measures real time; call it before [`Recorder::shared`].
    #[must_use]
    pub fn holding(mut self) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.held = HeldRing::new(RING_HELD);
        }
        self
    }

    /// A recorder whose ring lasts `blocks` seconds. Allocates all memory that recording
    /// needs; [`state_bytes_with`] tells how much.
    #[must_use]
    pub fn with_blocks(limits: Limits, blocks: usize) -> Self {
        let keeps = if limits.threshold == i64::MAX { 0 } else { ABOVE_CAP };
        Self {
            shared: Arc::new(Shared::new(blocks, &limits)),
            histogram: SignedHistogram::new(),
            coarse: Coarse::EMPTY,
            block: Moments::EMPTY,
            usual_from: 0,
            usual_width: 0,
            block_end: u64::MAX,
            block_start: 0,
            written: 0,
            late_pushed: 0,
            spells: Spells::NONE,
            epoch: 0,
            limits,
            worst: Worst::new(),
            above: Vec::with_capacity(keeps),
            above_left_out: 0,
            total: Moments::EMPTY,
            holding: Holding::default(),
            counted: 0,
            refused: Refused::default(),
            is_primary: true,
            phases: None,
        }
    }

    /// Counts samples by the phases of the load too, each in a histogram of its own, which is
    /// allocated here.
    #[must_use]
    pub fn by_phase(self, clock: Arc<PhaseClock>) -> Self {
        Self { phases: Some(Box::new(ByPhase::new(clock))), ..self }
    }

    /// The collector's side.
    #[must_use]
    pub fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Where this program can be seen at work from outside, as addresses of its code.
    #[must_use]
    pub fn marks() -> Marks {
        let Seen { begin, sample, end, .. } = SEEN;
        let [begin, sample, end] = [begin as usize, sample as usize, end as usize];
        Marks { begin: begin as u64, sample: sample as u64, end: end as u64 }
    }

    /// Ends the warm-up and returns its largest latency. Samples count from now on, in blocks
    /// of one second from `epoch` (ns of the probe's clock).
    ///
    /// Invariant: it does not allocate. A real-time thread that maps or unmaps memory waits
    /// for the lock on the address space, which a low-priority thread under load may be
    /// holding.
    #[inline(never)]
    pub fn begin(&mut self, epoch: u64) -> Option<i64> {
        let warmup_max = (self.block.count > 0).then_some(self.block.max);
        self.histogram.clear();
        if let Some(phases) = &mut self.phases {
            phases.begin(&mut self.histogram);
        }
        self.coarse = Coarse::EMPTY;
        self.block = Moments::EMPTY;
        self.usual_width = 0;
        self.worst.clear();
        self.above.clear();
        self.above_left_out = 0;
        self.refused.clear();
        self.epoch = epoch;
        self.block_start = epoch;
        self.block_end = epoch.saturating_add(BLOCK_NS);
        warmup_max
    }

    /// Samples recorded since [`Recorder::begin`].
    #[inline(always)]
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.counted + self.block.count
    }

    /// Whether whatever the next sample publishes can be published: a block, a spell of lateness, a
    /// late sample. A simulation waits for that.
    #[must_use]
    pub fn has_room(&self) -> bool {
        let Shared { blocks, late, spells, .. } = &*self.shared;
        let others = late.has_room(self.late_pushed) && self.spells.have_room(spells);
        others && blocks.has_room(self.written)
    }

    /// Up to which latency a sample publishes neither a spell nor a late sample, ns.
    #[must_use]
    pub fn unpublished_ns(&self) -> i64 {
        let interval = i64::try_from(self.limits.interval).unwrap_or(i64::MAX);
        self.limits.deadline.min(interval)
    }

    /// When the current block ends, ns of the probe's clock.
    #[inline(always)]
    #[must_use]
    pub fn block_end(&self) -> u64 {
        self.block_end
    }

    /// Records one sample taken at `now`, with its signed `latency` and the number of releases
    /// it `missed`.
    #[inline(always)]
    pub fn record(&mut self, now: u64, latency: i64, missed: u64) {
        if now >= self.block_end {
            self.next_block(now);
        }
        let value = latency.cast_unsigned();
        // Values below `usual_from` wrap around, so early samples appear far outside.
        if value.wrapping_sub(self.usual_from) < self.usual_width {
            self.count_above(value);
            self.block.sum += i128::from(value);
        } else if self.is_primary {
            self.notable(now, latency);
        } else {
            self.note(now, latency);
        }
        if missed > 0 {
            self.late(now, latency.unsigned_abs(), missed);
        }
    }

    #[inline(always)]
    fn count_above(&mut self, value: u64) {
        let bin = bin_of(value);
        self.histogram.positive.record_bin(bin);
        self.coarse.count_above(bin >> COARSE_SHIFT);
        self.block.count += 1;
        self.block.sum_sq += u128::from(value) * u128::from(value);
    }

    fn count_below(&mut self, magnitude: u64) {
        let bin = bin_of(magnitude);
        self.histogram.negative.record_bin(bin);
        self.coarse.count_below(bin >> COARSE_SHIFT);
        self.block.count += 1;
        self.block.early += 1;
        self.block.sum_sq += u128::from(magnitude) * u128::from(magnitude);
    }

    /// Handles a sample that may change more than counts: a few per second, and every early one.
    /// Of the primary series this is where they are seen from outside, one after the other.
    #[inline(never)]
    fn notable(&mut self, now: u64, latency: i64) {
        self.note(now, latency);
    }

    #[inline(never)]
    fn note(&mut self, now: u64, latency: i64) {
        if latency >= STOPPABLE_NS.cast_signed() && self.hold(now, latency.unsigned_abs()) {
            return;
        }
        if latency >= 0 {
            self.count_above(latency.unsigned_abs());
        } else {
            self.count_below(latency.unsigned_abs());
        }
        let block = &mut self.block;
        block.sum += i128::from(latency);
        block.min = block.min.min(latency);
        if latency > block.max {
            block.max = latency;
            block.max_at = now.saturating_sub(self.epoch);
        }
        if latency > self.limits.deadline {
            block.exceeded += 1;
            self.overdue(now, latency.unsigned_abs());
        }
        if latency > self.worst.floor {
            self.worst.insert(now.saturating_sub(self.epoch), latency);
        }
        if latency > self.limits.threshold {
            self.keep(now, latency);
        }
        self.find_usual();
    }

    fn find_usual(&mut self) {
        let Limits { deadline, threshold, .. } = self.limits;
        let from = self.block.min.max(0);
        let to = self.block.max.min(self.worst.floor).min(deadline).min(threshold);
        self.usual_from = from.unsigned_abs();
        self.usual_width = if to < from { 0 } else { to.abs_diff(from) + 1 };
    }

    #[cold]
    #[inline(never)]
    fn next_block(&mut self, now: u64) {
        let elapsed = now.saturating_sub(self.epoch) / BLOCK_NS;
        if self.block.count == 0 || self.publish() {
            if let Some(phases) = &mut self.phases {
                phases.next(&self.block, elapsed, &mut self.histogram);
            }
            self.total.merge(&self.block);
            self.counted += self.block.count;
            self.block = Moments::EMPTY;
            self.usual_width = 0;
            self.block_start = self.epoch + elapsed * BLOCK_NS;
        } else if let Some(phases) = &mut self.phases {
            phases.goes_on(elapsed);
        }
        self.block_end = self.epoch.saturating_add((elapsed + 1).saturating_mul(BLOCK_NS));
    }

    /// Publishes the current block; false if the ring has no room for it.
    fn publish(&mut self) -> bool {
        let index = self.index();
        let blocks = &self.shared.blocks;
        match blocks.publish(self.written, index, &self.block, &mut self.coarse) {
            Some(written) => self.written = written,
            None => return false,
        }
        true
    }

    /// The second of the current block.
    fn index(&self) -> u64 {
        self.block_start.saturating_sub(self.epoch) / BLOCK_NS
    }

    /// Publishes the last block and returns the results.
    #[must_use]
    #[inline(never)]
    pub fn finish(mut self) -> Recording {
        if self.block.count > 0 {
            let index = self.index();
            self.shared.blocks.close(self.written, index, &self.block, &mut self.coarse);
            self.total.merge(&self.block);
        }
        let phases = self.phases.take();
        let phases = phases.map(|phases| phases.finish(&self.block, &mut self.histogram));
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
            refused: self.refused,
            spell: self.spells.open,
            spells_joined: self.spells.joined,
            phases,
        }
    }
}

#[cfg(test)]
mod tests;
