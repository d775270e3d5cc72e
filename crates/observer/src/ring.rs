//! The most recent events, in memory until a sample asks for them.

use crate::event::Event;

/// No count of events comes to this.
const NEVER: usize = usize::MAX;

/// A ring over memory that the caller provides: a power of two of events.
#[derive(Debug)]
pub struct Ring<'a> {
    slots: &'a mut [Event],
    /// Events ever pushed; the next one's slot is this, modulo their number.
    pushed: usize,
    /// Word of the newest event.
    newest: u64,
    /// How many have been pushed when the next one would write over one that is kept.
    full_at: usize,
}

impl<'a> Ring<'a> {
    /// An empty ring over `slots`. The number of events is a power of two; with none at all
    /// nothing is kept.
    #[must_use]
    pub const fn new(slots: &'a mut [Event]) -> Self {
        Self { slots, pushed: 0, newest: 0, full_at: NEVER }
    }

    /// Adds an event, over the oldest one if the ring is full.
    #[inline(always)]
    pub fn push(&mut self, event: Event) {
        let slot = self.pushed & self.slots.len().wrapping_sub(1);
        if let Some(slot) = self.slots.get_mut(slot) {
            *slot = event;
        }
        self.newest = event.word;
        self.pushed = self.pushed.wrapping_add(1);
    }

    /// Adds the start of a block, unless the newest event is the start of the same one: each
    /// iteration of a REP is a block.
    #[inline(always)]
    pub fn push_block(&mut self, event: Event) {
        if event.word != self.newest {
            self.push(event);
        }
    }

    /// All events that it holds, oldest first: those of the first slice, then the others.
    #[must_use]
    pub fn oldest_first(&self) -> (&[Event], &[Event]) {
        let split = self.pushed & self.slots.len().wrapping_sub(1);
        let (newer, older) = self.slots.split_at(split.min(self.slots.len()));
        (if self.pushed < self.slots.len() { &[] } else { older }, newer)
    }

    /// All events that it holds, newest first.
    pub fn newest_first(&self) -> impl Iterator<Item = Event> {
        let (older, newer) = self.oldest_first();
        newer.iter().rev().chain(older.iter().rev()).copied()
    }

    /// The events from this time on and so many before them, oldest first, in two slices.
    #[must_use]
    pub fn since(&self, at: u64, before: usize) -> (&[Event], &[Event]) {
        let (older, newer) = self.oldest_first();
        let count = |slice: &[Event]| slice.partition_point(|event| event.at < at);
        let earlier =
            if count(older) < older.len() { count(older) } else { older.len() + count(newer) };
        let from = earlier.saturating_sub(before);
        let newer = newer.get(from.saturating_sub(older.len())..).unwrap_or_default();
        (older.get(from..).unwrap_or_default(), newer)
    }

    /// Keeps what it holds, and what it takes from here on.
    pub const fn keep(&mut self) {
        if self.full_at == NEVER {
            self.full_at = self.overwritten().saturating_add(self.slots.len());
        }
    }

    /// Keeps nothing any more. Whether it did.
    pub const fn keep_no_more(&mut self) -> bool {
        let has_kept = self.full_at != NEVER;
        self.full_at = NEVER;
        has_kept
    }

    /// Whether the next event would write over one that is kept.
    #[inline(always)]
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.pushed == self.full_at
    }

    /// Makes room: the oldest quarter of what is kept, oldest first, is kept no longer.
    pub fn let_go(&mut self) -> (&[Event], &[Event]) {
        let len = self.slots.len();
        let count = len / 4;
        let from = self.full_at & len.wrapping_sub(1);
        self.full_at = self.full_at.saturating_add(count);
        let rest = self.slots.get(from..).unwrap_or_default();
        match rest.get(..count) {
            Some(all) => (all, &[]),
            None => (rest, self.slots.get(..count - rest.len()).unwrap_or_default()),
        }
    }

    /// All events that it holds and that have not been let go, oldest first, in two slices.
    #[must_use]
    pub fn kept(&self) -> (&[Event], &[Event]) {
        let (older, newer) = self.oldest_first();
        let first = if self.full_at == NEVER { 0 } else { self.full_at - self.slots.len() };
        let gone = first.saturating_sub(self.overwritten());
        let newer = newer.get(gone.saturating_sub(older.len())..).unwrap_or_default();
        (older.get(gone..).unwrap_or_default(), newer)
    }

    /// Number of events that were written over.
    #[must_use]
    pub const fn overwritten(&self) -> usize {
        self.pushed.saturating_sub(self.slots.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Kind;

    const NOTHING: Event = Event { at: 0, word: 0 };

    fn block(at: u64, address: u64) -> Event {
        Event::new(at, Kind::Block, address)
    }

    fn times(ring: &Ring) -> Vec<u64> {
        let (older, newer) = ring.oldest_first();
        older.iter().chain(newer).map(|event| event.at).collect()
    }

    #[test]
    fn the_newest_events_are_kept_in_order() {
        for slots in [1, 2, 4, 16_usize] {
            let mut memory = vec![NOTHING; slots];
            let mut ring = Ring::new(&mut memory);
            assert!(times(&ring).is_empty());
            for pushed in 1..=50 {
                ring.push(block(pushed, 0));
                let kept = pushed.min(slots as u64);
                let expected: Vec<u64> = (pushed - kept + 1..=pushed).collect();
                assert_eq!(times(&ring), expected, "{slots} slots");
                assert_eq!(ring.overwritten() as u64, pushed - kept);
            }
        }
    }

    #[test]
    fn only_the_same_block_again_is_merged() {
        let mut memory = [NOTHING; 16];
        let mut ring = Ring::new(&mut memory);
        ring.push_block(block(1, 0x10));
        ring.push_block(block(2, 0x10));
        ring.push_block(block(3, 0x20));
        ring.push_block(block(4, 0x10));
        ring.push(Event::new(5, Kind::Clock, 0x10));
        ring.push_block(block(6, 0x10));
        ring.push(Event::new(7, Kind::Clock, 0x10));
        ring.push(Event::new(8, Kind::Clock, 0x10));
        assert_eq!(times(&ring), [1, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn the_newest_are_found_by_time() {
        for pushed in [0, 3, 16, 21, 40] {
            let mut memory = [NOTHING; 16];
            let mut ring = Ring::new(&mut memory);
            (1..=pushed).for_each(|at| ring.push(block(2 * at, at)));
            let all = times(&ring);
            let mut newest: Vec<u64> = ring.newest_first().map(|event| event.at).collect();
            newest.reverse();
            assert_eq!(newest, all);
            for at in 0..90 {
                for before in [0, 1, 5, 99] {
                    let (older, newer) = ring.since(at, before);
                    let found: Vec<u64> = older.iter().chain(newer).map(|event| event.at).collect();
                    let earlier = all.iter().filter(|event| **event < at).count();
                    assert_eq!(
                        found,
                        all[earlier.saturating_sub(before)..],
                        "{pushed} {at} {before}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_is_kept_is_let_go_before_it_is_written_over() {
        for (before, after) in [(0, 0), (0, 16), (3, 14), (16, 1), (21, 100), (40, 7)] {
            let mut memory = [NOTHING; 16];
            let mut ring = Ring::new(&mut memory);
            (1..=before).for_each(|at| ring.push(block(at, at)));
            ring.keep();
            let mut all = Vec::new();
            for at in before + 1..=before + after {
                if ring.is_full() {
                    let (older, newer) = ring.let_go();
                    all.extend(older.iter().chain(newer).map(|event| event.at));
                }
                assert!(!ring.is_full());
                ring.push(block(at, at));
            }
            let spilled = all.len();
            let (older, newer) = ring.kept();
            all.extend(older.iter().chain(newer).map(|event| event.at));
            let first = before.saturating_sub(15).max(1);
            assert_eq!(all, (first..=before + after).collect::<Vec<_>>(), "{before} {after}");
            assert_eq!(spilled > 0, before.min(16) + after > 16, "{before} {after}");
            assert_eq!([ring.keep_no_more(), ring.keep_no_more()], [true, false]);
            let (older, newer) = ring.kept();
            assert_eq!((older, newer), ring.oldest_first());
        }
    }

    #[test]
    fn a_ring_without_slots_keeps_nothing() {
        let mut ring = Ring::new(&mut []);
        ring.push(block(1, 2));
        assert!(times(&ring).is_empty());
    }
}
