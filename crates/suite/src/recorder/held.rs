//! Samples so long that a stop of the process may have caused them. They are held: the collector
//! decides, before anything of their second is on disk, whether somebody saw such a stop.

use std::collections::BTreeMap;

use punctual_core::block::{Moments, Outlier, Spell};
use punctual_core::histogram::{SignedSparse, Sparse, bin_of};
use punctual_core::stats::Limits;
use punctual_ring::{HeldRing, SpellRing};

use super::spells::Spells;
use super::{ABOVE_CAP, MISSED_EXACTLY, Recording, WORST};

/// From this latency on a sample may be of a stop, ns: a shorter one says nothing of a user who stopped
/// the program.
pub const STOPPABLE_NS: u64 = 5_000_000;

/// One sample of [`STOPPABLE_NS`] or more, or releases that it missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongSample {
    /// When it was taken, ns after the cell's start.
    pub at: u64,
    /// Its latency, ns; of missed releases, an interval more than the delay of the first one.
    pub latency: u64,
    /// Releases that were missed; 0 of the sample itself.
    pub missed: u64,
    /// Where its thread counts samples: the phase of the load.
    pub place: usize,
}

/// The recorder's side.
#[derive(Debug, Default)]
pub(super) struct Holding {
    pushed: u64,
    /// Instant of the latest sample that is held: what it missed is held with it. `None` if the
    /// latest sample from [`STOPPABLE_NS`] on is not held.
    latest: Option<u64>,
    /// Samples that are held.
    pub(super) samples: u64,
}

impl Holding {
    /// Holds a sample taken at `now`, `at` after the cell's start, if there is room for it and all that
    /// it may have missed; else it counts like any other.
    pub(super) fn hold(
        &mut self,
        ring: &HeldRing,
        (now, at): (u64, u64),
        latency: u64,
        place: usize,
    ) -> bool {
        let held = self.has_room(ring) && ring.push(self.pushed, [at, latency, 0, place as u64]);
        self.pushed += u64::from(held);
        self.samples += u64::from(held);
        self.latest = held.then_some(now);
        held
    }

    /// Whether a sample would be held.
    pub(super) fn has_room(&self, ring: &HeldRing) -> bool {
        ring.has_room(self.pushed + MISSED_EXACTLY as u64 + 1)
    }

    /// Holds releases that the sample taken at `now` missed, if it is held.
    pub(super) fn hold_missed(
        &mut self,
        ring: &HeldRing,
        (now, at): (u64, u64),
        latency: u64,
        missed: u64,
    ) -> bool {
        let held = self.latest == Some(now) && ring.push(self.pushed, [at, latency, missed, 0]);
        self.pushed += u64::from(held);
        held
    }

    /// Whether what a sample taken at `now` missed is held.
    pub(super) fn holds(&self, now: u64) -> bool {
        self.latest == Some(now)
    }
}

/// Takes the oldest entry of a ring of which so many were taken before.
#[must_use]
pub fn take(ring: &HeldRing, taken: u64) -> Option<LongSample> {
    let [at, latency, missed, place] = ring.take(taken)?;
    Some(LongSample { at, latency, missed, place: usize::try_from(place).unwrap_or(usize::MAX) })
}

impl Spells {
    /// Ends the open spell before a late sample that is held, so that the collector knows all spells
    /// before it. It stays open if the ring has no room for it.
    pub(super) fn close(&mut self, ring: &SpellRing) {
        if let Some(open) = &self.open
            && ring.push(self.pushed, open)
        {
            self.pushed += 1;
            self.open = None;
        }
    }
}

/// Moments and bins of the held samples of one phase, or of all.
#[derive(Debug, Default)]
struct Counted {
    moments: Moments,
    bins: BTreeMap<usize, u64>,
}

impl Counted {
    fn add(&mut self, held: &LongSample, deadline: i64) {
        if held.missed > 0 {
            self.moments.missed = self.moments.missed.saturating_add(held.missed);
            return;
        }
        self.moments.insert(held.at, signed(held.latency), deadline);
        *self.bins.entry(bin_of(held.latency)).or_default() += 1;
    }

    fn moments_with(&self, mut moments: Moments) -> Moments {
        let Moments { max, max_at, .. } = moments;
        moments.merge(&self.moments);
        if self.moments.max == max {
            moments.max_at = max_at.min(self.moments.max_at);
        }
        moments
    }
}

/// The held samples of a recorder that were of no stop.
#[derive(Debug, Default)]
pub struct Returned {
    all: Counted,
    by_phase: BTreeMap<usize, Counted>,
    phase: usize,
    worst: Vec<Outlier>,
}

impl Returned {
    /// Adds one; missed releases after the sample that missed them.
    pub fn add(&mut self, held: &LongSample, limits: &Limits) {
        self.all.add(held, limits.deadline);
        if held.missed == 0 {
            self.phase = held.place;
            self.worst.push(Outlier { at: held.at, latency: signed(held.latency) });
            if self.worst.len() >= 2 * (ABOVE_CAP + WORST) {
                keep_worst(&mut self.worst, limits);
            }
        }
        self.by_phase.entry(self.phase).or_default().add(held, limits.deadline);
    }
}

/// Leaves the samples that a recorder keeps; returns how many above the threshold it does not.
fn keep_worst(worst: &mut Vec<Outlier>, limits: &Limits) -> u64 {
    worst.sort_by_key(|one| (std::cmp::Reverse(one.latency), one.at));
    let above = worst.iter().take_while(|one| one.latency > limits.threshold).count();
    let kept = above.clamp(WORST, ABOVE_CAP + WORST);
    worst.truncate(kept);
    above.saturating_sub(kept) as u64
}

impl Recording {
    /// Puts held samples that were of no stop where they had been without holding them.
    pub fn put_back(&mut self, returned: &mut Returned, limits: &Limits) {
        if returned.all.bins.is_empty() {
            return;
        }
        self.moments = returned.all.moments_with(self.moments);
        self.histogram.merge(&sparse(&returned.all.bins));
        self.outliers.append(&mut returned.worst);
        self.left_out += keep_worst(&mut self.outliers, limits);
        self.outliers.sort_by_key(|outlier| outlier.at);
        let Some(phases) = &mut self.phases else { return };
        for (place, counted) in &returned.by_phase {
            if let Some(phase) = phases.each.get_mut(*place) {
                phase.moments = counted.moments_with(phase.moments);
                let positive = merged(&phase.histogram.positive, &counted.bins);
                phase.histogram.positive = positive;
            }
        }
    }
}

fn signed(latency: u64) -> i64 {
    i64::try_from(latency).unwrap_or(i64::MAX)
}

fn sparse(bins: &BTreeMap<usize, u64>) -> SignedSparse {
    let positive = Sparse::of(bins.iter().map(|(bin, count)| (*bin, *count)));
    SignedSparse { positive, ..SignedSparse::default() }
}

fn merged(before: &Sparse, bins: &BTreeMap<usize, u64>) -> Sparse {
    let mut all = bins.clone();
    for (bin, count) in before.iter() {
        *all.entry(bin).or_default() += count;
    }
    Sparse::of(all)
}

/// Joins spells in the order of their ends as `Spells` makes them, whose pieces they are.
#[must_use]
pub fn join_spells(spells: &[Spell]) -> Vec<Spell> {
    use punctual_core::block::{BLOCK_NS, SPELL_GAP_NS};
    let mut all: Vec<Spell> = Vec::with_capacity(spells.len());
    for spell in spells {
        match all.last_mut() {
            Some(last)
                if spell.from <= last.to.saturating_add(SPELL_GAP_NS)
                    && spell.to / BLOCK_NS == last.to / BLOCK_NS =>
            {
                (last.from, last.to) = (last.from.min(spell.from), last.to.max(spell.to));
                last.late = last.late.saturating_add(spell.late);
            }
            _ => all.push(*spell),
        }
    }
    all
}
