//! Spells of lateness, as the thread makes them that measures.

use punctual_core::block::{BLOCK_NS, SPELL_GAP_NS, Spell};
use punctual_ring::SpellRing;

/// Spells of lateness, of which one at most is open. One ends with its second, however close the
/// next late activation is: else frequent lateness were one spell, and how much of it was in which
/// second would not be known.
#[derive(Debug)]
pub(super) struct Spells {
    pub(super) open: Option<Spell>,
    /// When the second of the open one's first start ends, ns after the cell's start.
    second_ends: u64,
    /// Spells that are in the ring.
    pub(super) pushed: u64,
    /// Spells that go on in the open one, since the ring had no room for that.
    pub(super) joined: u64,
}

impl Spells {
    pub(super) const NONE: Self = Self { open: None, second_ends: 0, pushed: 0, joined: 0 };

    /// Adds a late activation, released at `from` and started at `to`, ns after the cell's start.
    pub(super) fn add(&mut self, ring: &SpellRing, from: u64, to: u64) {
        if let Some(open) = &mut self.open {
            let apart = from > open.to.saturating_add(SPELL_GAP_NS);
            let goes_on = !apart && to < self.second_ends;
            if goes_on || !ring.push(self.pushed, open) {
                self.joined += u64::from(apart);
                (open.from, open.to) = (open.from.min(from), open.to.max(to));
                open.late += 1;
                return;
            }
            self.pushed += 1;
        }
        self.open = Some(Spell { thread: 0, from, to, late: 1 });
        self.second_ends = (to / BLOCK_NS).saturating_add(1).saturating_mul(BLOCK_NS);
    }

    /// Whether the open one can be pushed.
    pub(super) fn have_room(&self, ring: &SpellRing) -> bool {
        ring.has_room(self.pushed)
    }

    /// Adds releases later than the deadline that the latest activation missed.
    pub(super) fn missed(&mut self, late: u64) {
        if let Some(open) = &mut self.open {
            open.late = open.late.saturating_add(late);
        }
    }
}
