//! Late samples: what they missed, their spells, and what is kept or held of them.

use punctual_core::block::Outlier;

use super::Recorder;

/// How many of the releases that one stall missed are recorded one by one if they are dithered.
/// The longer a stall is, the less one interval matters.
pub const MISSED_EXACTLY: usize = 64;

impl Recorder {
    /// Counts the releases that a sample taken at `now` missed if they were not an interval
    /// apart: how late each would have been served, the first one first. All are of one stall.
    ///
    /// Each of the first [`MISSED_EXACTLY`] is recorded as a start of its own that was an
    /// interval later and missed one release; the others together, as if they had been an
    /// interval apart, so that the delay of each is known to within an interval.
    #[cold]
    #[inline(never)]
    pub fn missed(&mut self, now: u64, mut delays: impl ExactSizeIterator<Item = u64>) {
        let interval = self.limits.interval;
        let mut exactly = 0;
        while let Some(delay) = delays.next() {
            let late = delay.saturating_add(interval);
            // The other half is for the stalls to come.
            let fits = self.holding.holds(now) || self.shared.late.is_half_empty(self.late_pushed);
            if exactly < MISSED_EXACTLY && fits {
                self.late(now, late, 1);
                exactly += 1;
            } else {
                let together = delays.len() as u64 + 1;
                // No less than so many releases take that are an interval apart.
                return self.late(now, late.max(together * interval + 1), together);
            }
        }
    }

    /// Holds a sample for the collector; false in the warm-up, and without room.
    #[cold]
    #[inline(never)]
    pub(super) fn hold(&mut self, now: u64, latency: u64) -> bool {
        if self.block_end == u64::MAX || !self.shared.held.is_there() {
            return false;
        }
        let late = latency > self.limits.deadline.unsigned_abs();
        if late && self.holding.has_room(&self.shared.held) {
            self.spells.close(&self.shared.spells);
        }
        let place = self.phases.as_ref().map_or(0, |phases| phases.place());
        let at = now.saturating_sub(self.epoch);
        let held = self.holding.hold(&self.shared.held, (now, at), latency, place);
        self.counted += u64::from(held);
        held
    }

    /// Notes a sample later than the deadline in its spell of lateness.
    #[cold]
    #[inline(never)]
    pub(super) fn overdue(&mut self, now: u64, latency: u64) {
        // The collector must not see the warm-up.
        if self.block_end == u64::MAX {
            return;
        }
        let to = now.saturating_sub(self.epoch);
        self.spells.add(&self.shared.spells, to.saturating_sub(latency), to);
    }

    #[cold]
    #[inline(never)]
    pub(super) fn late(&mut self, now: u64, latency: u64, missed: u64) {
        let at = now.saturating_sub(self.epoch);
        if self.holding.hold_missed(&self.shared.held, (now, at), latency, missed) {
            return;
        }
        self.block.missed += missed;
        // The collector must not see the warm-up.
        if self.block_end == u64::MAX {
            return;
        }
        self.spells.missed(self.limits.exceeded(latency, missed));
        if self.shared.late.push(self.late_pushed, at, latency, missed) {
            self.late_pushed += 1;
        } else {
            self.refused.add(latency, missed, &self.limits);
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn keep(&mut self, now: u64, latency: i64) {
        if self.above.len() < self.above.capacity() {
            self.above.push(Outlier { at: now.saturating_sub(self.epoch), latency });
        } else {
            self.above_left_out += 1;
        }
    }
}
