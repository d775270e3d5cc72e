//! The rings between a probe's thread and the collector: one writer, one reader,
//! no lock.
//!
//! Architecture invariant: the collector reads published slots only. The slot at
//! `head` belongs to the probe, which counts into it directly; closing a block
//! writes a dozen words and moves `head` with Release. The collector reads with
//! Acquire, clears the slot, and gives it back by moving `tail`. Counters are
//! plain loads and stores: with one writer a read-modify-write would only cost a
//! locked instruction (on aarch64 a call). Each side passes in its own
//! cursor, so it never reads back the word it publishes.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use punctual_core::block::{Block, CoarseBin, Late, Moments};
use punctual_core::histogram::COARSE_BINS;

/// Coarse bins of a slot: values of zero and above, then magnitudes below zero.
pub const SLOT_BINS: usize = 2 * COARSE_BINS;

/// Blocks that a ring holds: a collector may be starved for ten minutes.
pub const RING_BLOCKS: usize = 600;

/// Late samples that a ring holds between two visits of the collector.
pub const RING_LATE: usize = 1_024;

/// A cache line of its own, so that writer and reader do not share one.
#[repr(align(64))]
#[derive(Debug)]
struct Line<T>(T);

const WORDS: usize = 12;

#[derive(Debug)]
struct Slot<const BINS: usize> {
    words: [AtomicU64; WORDS],
    coarse: [AtomicU32; BINS],
}

/// The ring of blocks.
#[derive(Debug)]
pub struct BlockRing<const BINS: usize = SLOT_BINS> {
    /// Blocks published so far.
    head: Line<AtomicU64>,
    /// Blocks that the collector has given back.
    tail: Line<AtomicU64>,
    slots: Box<[Slot<BINS>]>,
}

impl<const BINS: usize> BlockRing<BINS> {
    /// A ring of `slots` slots, all clear.
    #[must_use]
    pub fn new(slots: usize) -> Self {
        let slot = |_| Slot {
            words: std::array::from_fn(|_| AtomicU64::new(0)),
            coarse: std::array::from_fn(|_| AtomicU32::new(0)),
        };
        Self {
            head: Line(AtomicU64::new(0)),
            tail: Line(AtomicU64::new(0)),
            slots: (0..slots).map(slot).collect(),
        }
    }

    /// Bytes of a ring of `slots` slots.
    #[must_use]
    pub const fn bytes(slots: usize) -> usize {
        slots * size_of::<Slot<BINS>>() + size_of::<Self>()
    }

    fn slot(&self, number: u64) -> &Slot<BINS> {
        &self.slots[usize::try_from(number).unwrap_or(0) % self.slots.len()]
    }

    /// Position of the slot for the block numbered `number`; kept by the writer.
    #[must_use]
    pub fn position(&self, number: u64) -> usize {
        usize::try_from(number).unwrap_or(0) % self.slots.len()
    }

    /// Writer: counts one value in the coarse bin `bin` of the slot at `position`.
    #[inline(always)]
    pub fn count(&self, position: usize, bin: usize) {
        let counter = &self.slots[position].coarse[bin];
        counter.store(counter.load(Ordering::Relaxed).saturating_add(1), Ordering::Relaxed);
    }

    /// Writer, with `published` blocks behind it: whether there is a slot for the block
    /// after the current one.
    #[must_use]
    pub fn has_room(&self, published: u64) -> bool {
        published + 1 - self.tail.0.load(Ordering::Acquire) < self.slots.len() as u64
    }

    /// Writer: publishes the current block where there is room for another one.
    /// Without room the block goes on, and false comes back.
    pub fn publish(&self, published: u64, index: u64, moments: &Moments) -> bool {
        if !self.has_room(published) {
            return false;
        }
        self.close(published, index, moments);
        true
    }

    /// Writer: publishes the last block; no other follows.
    pub fn close(&self, published: u64, index: u64, moments: &Moments) {
        let slot = self.slot(published);
        for (word, value) in slot.words.iter().zip(to_words(index, moments)) {
            word.store(value, Ordering::Relaxed);
        }
        self.head.0.store(published + 1, Ordering::Release);
    }

    /// Writer, before anything is published: clears the first slot (the warm-up's counts).
    pub fn clear_first(&self) {
        self.slot(0).coarse.iter().for_each(|count| count.store(0, Ordering::Relaxed));
    }

    /// Reader, with `taken` blocks behind it: takes the oldest published block.
    pub fn take(&self, taken: u64, thread: u32) -> Option<Block> {
        if taken == self.head.0.load(Ordering::Acquire) {
            return None;
        }
        let slot = self.slot(taken);
        let words: [u64; WORDS] = std::array::from_fn(|i| slot.words[i].load(Ordering::Relaxed));
        let (index, moments) = from_words(&words);
        let mut coarse = Vec::new();
        let (above, below) = slot.coarse.split_at(BINS / 2);
        // From the lowest value to the highest: the mirror is read backwards.
        for (bin, count) in below.iter().enumerate().rev() {
            take_count(count, || -1 - number(bin), &mut coarse);
        }
        for (bin, count) in above.iter().enumerate() {
            take_count(count, || number(bin), &mut coarse);
        }
        self.tail.0.store(taken + 1, Ordering::Release);
        Some(Block { thread, series: 0, index, moments, coarse })
    }
}

#[inline(always)]
fn take_count(count: &AtomicU32, bin: impl FnOnce() -> CoarseBin, to: &mut Vec<(CoarseBin, u32)>) {
    let counted = count.load(Ordering::Relaxed);
    if counted != 0 {
        to.push((bin(), counted));
        count.store(0, Ordering::Relaxed);
    }
}

fn number(bin: usize) -> CoarseBin {
    CoarseBin::try_from(bin).unwrap_or(CoarseBin::MAX)
}

#[allow(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "halves keep every bit")]
fn to_words(index: u64, m: &Moments) -> [u64; WORDS] {
    let sum = m.sum as u128;
    [
        index,
        m.count,
        m.missed,
        m.early,
        m.exceeded,
        m.min.cast_unsigned(),
        m.max.cast_unsigned(),
        m.max_at,
        sum as u64,
        (sum >> 64) as u64,
        m.sum_sq as u64,
        (m.sum_sq >> 64) as u64,
    ]
}

#[allow(clippy::cast_possible_wrap, reason = "halves keep every bit")]
fn from_words(words: &[u64; WORDS]) -> (u64, Moments) {
    let [
        index,
        count,
        missed,
        early,
        exceeded,
        min,
        max,
        max_at,
        sum_low,
        sum_high,
        sq_low,
        sq_high,
    ] = *words;
    let wide = |low: u64, high: u64| u128::from(low) | u128::from(high) << 64;
    let moments = Moments {
        count,
        missed,
        early,
        exceeded,
        min: min.cast_signed(),
        max: max.cast_signed(),
        max_at,
        sum: wide(sum_low, sum_high) as i128,
        sum_sq: wide(sq_low, sq_high),
    };
    (index, moments)
}

/// The ring of late samples. When it is full the sample is not pushed, and the
/// corrected distribution is made from the histogram's bins instead.
#[derive(Debug)]
pub struct LateRing {
    head: Line<AtomicU64>,
    tail: Line<AtomicU64>,
    entries: Box<[[AtomicU64; 3]]>,
}

impl LateRing {
    /// A ring of `entries` entries.
    #[must_use]
    pub fn new(entries: usize) -> Self {
        Self {
            head: Line(AtomicU64::new(0)),
            tail: Line(AtomicU64::new(0)),
            entries: (0..entries).map(|_| std::array::from_fn(|_| AtomicU64::new(0))).collect(),
        }
    }

    /// Bytes of a ring of `entries` entries.
    #[must_use]
    pub const fn bytes(entries: usize) -> usize {
        entries * size_of::<[AtomicU64; 3]>() + size_of::<Self>()
    }

    fn entry(&self, number: u64) -> &[AtomicU64; 3] {
        &self.entries[usize::try_from(number).unwrap_or(0) % self.entries.len()]
    }

    /// Writer, with `pushed` samples behind it: pushes a sample; false where the ring is full.
    pub fn push(&self, pushed: u64, at: u64, latency: u64, missed: u64) -> bool {
        if pushed - self.tail.0.load(Ordering::Acquire) == self.entries.len() as u64 {
            return false;
        }
        for (word, value) in self.entry(pushed).iter().zip([at, latency, missed]) {
            word.store(value, Ordering::Relaxed);
        }
        self.head.0.store(pushed + 1, Ordering::Release);
        true
    }

    /// Reader, with `taken` samples behind it: takes the oldest sample.
    pub fn take(&self, taken: u64, thread: u32) -> Option<Late> {
        if taken == self.head.0.load(Ordering::Acquire) {
            return None;
        }
        let [at, latency, missed] = self.entry(taken);
        let late = Late {
            thread,
            series: 0,
            at: at.load(Ordering::Relaxed),
            latency: latency.load(Ordering::Relaxed),
            missed: missed.load(Ordering::Relaxed),
        };
        self.tail.0.store(taken + 1, Ordering::Release);
        Some(late)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn one(value: i64) -> Moments {
        Moments {
            count: 1,
            min: value,
            max: value,
            sum: i128::from(value),
            sum_sq: u128::from(value.unsigned_abs()).pow(2),
            ..Moments::EMPTY
        }
    }

    #[test]
    fn blocks_come_back_as_published() {
        let ring = BlockRing::<SLOT_BINS>::new(3);
        for (number, value) in [(0, -5_i64), (1, i64::MAX), (2, i64::MIN), (3, 7)] {
            let position = ring.position(number);
            ring.count(position, usize::try_from(number).unwrap());
            ring.count(position, COARSE_BINS + 1);
            ring.count(position, COARSE_BINS + 1);
            assert!(ring.publish(number, number + 10, &one(value)));
            let block = ring.take(number, 2).unwrap();
            assert_eq!((block.thread, block.index, block.moments), (2, number + 10, one(value)));
            assert_eq!(block.coarse, [(-2, 2), (i16::try_from(number).unwrap(), 1)]);
            assert_eq!(ring.take(number + 1, 2), None);
        }
    }

    #[test]
    fn a_full_ring_keeps_what_it_holds() {
        let ring = BlockRing::<2>::new(3);
        assert!(ring.publish(0, 0, &one(1)) && ring.publish(1, 1, &one(2)));
        assert!(!ring.publish(2, 2, &one(3)));
        assert_eq!(ring.take(0, 0).unwrap().index, 0);
        assert!(ring.publish(2, 4, &one(3)));
        assert_eq!([ring.take(1, 0).unwrap().index, ring.take(2, 0).unwrap().index], [1, 4]);
    }

    #[test]
    fn a_full_late_ring_says_so() {
        let ring = LateRing::new(2);
        assert!(ring.push(0, 1, 10, 3) && ring.push(1, 2, 20, 4) && !ring.push(2, 3, 30, 5));
        assert_eq!(
            ring.take(0, 1),
            Some(Late { thread: 1, series: 0, at: 1, latency: 10, missed: 3 })
        );
        assert!(ring.push(2, 4, 40, 6));
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    #[test]
    fn the_reader_sees_whole_blocks_in_order() {
        loom::model(|| {
            let ring = Arc::new(BlockRing::<2>::new(2));
            let writer = {
                let ring = Arc::clone(&ring);
                thread::spawn(move || {
                    let mut published = 0;
                    for _ in 0..3 {
                        ring.count(ring.position(published), 0);
                        let moments = Moments { count: published + 1, ..Moments::EMPTY };
                        if !ring.publish(published, published, &moments) {
                            break;
                        }
                        published += 1;
                    }
                    published
                })
            };
            let mut taken = 0;
            let mut take = || {
                let block = ring.take(taken, 0)?;
                assert_eq!(block.index, taken);
                assert_eq!(block.moments.count, taken + 1);
                assert_eq!(block.coarse, [(0, 1)]);
                taken += 1;
                Some(())
            };
            let _ = (take(), take());
            let published = writer.join().unwrap();
            while take().is_some() {}
            assert_eq!(taken, published);
        });
    }

    #[test]
    fn late_samples_are_whole() {
        loom::model(|| {
            let ring = Arc::new(LateRing::new(1));
            let writer = {
                let ring = Arc::clone(&ring);
                thread::spawn(move || {
                    (1..=2).fold(0, |pushed, n| pushed + u64::from(ring.push(pushed, n, n, n)))
                })
            };
            let mut taken = 0;
            let mut take = || {
                let late = ring.take(taken, 0)?;
                assert!(late.at > 0 && late.at == late.latency && late.at == late.missed);
                taken += 1;
                Some(())
            };
            let _ = take();
            let pushed = writer.join().unwrap();
            while take().is_some() {}
            assert_eq!(taken, pushed);
        });
    }
}
