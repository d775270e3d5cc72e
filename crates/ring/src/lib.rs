//! The rings between a probe's thread and the collector: one writer, one reader,
//! no lock.
//!
//! Architecture invariant: the collector reads published words only. Words between `tail` and
//! `head` belong to the collector, all others to the probe. Closing a block writes its words
//! and moves `head` with Release; the collector reads with Acquire and returns the words by
//! moving `tail`. These are plain loads and stores: with one writer, a read-modify-write would
//! only add a locked instruction (on aarch64 a call). Each side passes in its own cursor, so
//! it never reads back the word it publishes.

#![forbid(unsafe_code)]

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering};

use punctual_core::block::{Block, CoarseBin, Late, Moments, Spell, coarse_bin};
use punctual_core::histogram::COARSE_BINS;

/// Blocks in the ring of a thread's primary series: enough for a collector that is starved for
/// ten minutes.
pub const RING_BLOCKS: usize = 600;

/// Blocks in the ring of any other series: enough for one minute.
pub const RING_BLOCKS_ASIDE: usize = 60;

/// Late samples that fit between two visits of the collector.
pub const RING_LATE: usize = 1_024;

/// Spells of lateness that fit between two visits of the collector: 54 s of them, as there are at
/// most eleven a second.
pub const RING_SPELLS: usize = 600;

/// Entries of long samples that fit between two visits of the collector: of 128 samples, each with
/// the releases that it missed.
pub const RING_HELD: usize = 256;

/// Coarse bins that the non-negative samples of one second can fill. A thread's latencies do
/// not overlap, so their sum is at most one second, not counting the first, which may have
/// begun earlier.
const BLOCK_BINS: usize = 86;

/// Words of a block before those of its bins.
const WORDS: usize = 13;

/// Words of the longest block: every bin on both sides of zero.
const LONGEST: usize = WORDS + 2 * COARSE_BINS;

/// The coarse histogram of the current block; only the probe uses it.
#[derive(Debug)]
pub struct Coarse {
    above: [u64; COARSE_BINS],
    /// Counts by magnitude of values below zero.
    below: [u64; COARSE_BINS],
}

impl Coarse {
    /// All counts zero.
    pub const EMPTY: Self = Self { above: [0; COARSE_BINS], below: [0; COARSE_BINS] };

    /// Counts a value of zero or above, by the coarse bin of its magnitude.
    #[inline(always)]
    pub fn count_above(&mut self, bin: usize) {
        self.above[bin] += 1;
    }

    /// Counts a value below zero.
    #[inline(always)]
    pub fn count_below(&mut self, bin: usize) {
        self.below[bin] += 1;
    }

    /// Returns and clears the count of a bin.
    fn take(&mut self, bin: CoarseBin) -> u64 {
        let number = usize::from(if bin < 0 { !bin } else { bin }.unsigned_abs());
        std::mem::take(if bin < 0 { &mut self.below[number] } else { &mut self.above[number] })
    }
}

/// A separate cache line, so that writer and reader do not share one.
#[repr(align(64))]
#[derive(Debug)]
struct CacheLine<T>(T);

/// The ring of blocks. Each block takes the words of its moments and one word per non-empty
/// coarse bin.
#[derive(Debug)]
pub struct BlockRing {
    /// Words published so far.
    head: CacheLine<AtomicU64>,
    /// Words that the collector has returned.
    tail: CacheLine<AtomicU64>,
    /// The words; their number is a power of two.
    words: Box<[AtomicU64]>,
}

impl BlockRing {
    /// A ring for at least `blocks` one-second blocks of non-negative samples.
    #[must_use]
    pub fn new(blocks: usize) -> Self {
        Self::of_words(Self::words(blocks))
    }

    /// A ring of `words` words, a power of two.
    fn of_words(words: usize) -> Self {
        Self {
            head: CacheLine(AtomicU64::new(0)),
            tail: CacheLine(AtomicU64::new(0)),
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Includes room for the longest block, so that a thread that ends can publish its last one.
    const fn words(blocks: usize) -> usize {
        (blocks * (WORDS + BLOCK_BINS) + 2 * LONGEST).next_power_of_two()
    }

    /// Bytes of a ring for `blocks` blocks.
    #[must_use]
    pub const fn bytes(blocks: usize) -> usize {
        Self::words(blocks) * size_of::<AtomicU64>() + size_of::<Self>()
    }

    #[allow(clippy::cast_possible_truncation, reason = "the mask leaves an index")]
    fn word(&self, position: u64) -> &AtomicU64 {
        &self.words[position as usize & (self.words.len() - 1)]
    }

    /// Writer, with `written` words published: whether `length` more words fit.
    fn fits(&self, written: u64, length: usize) -> bool {
        let used = written - self.tail.0.load(Ordering::Acquire);
        used + length as u64 <= self.words.len() as u64
    }

    /// Writer, with `written` words published: whether any block can be published.
    #[must_use]
    pub fn has_room(&self, written: u64) -> bool {
        self.fits(written, LONGEST + LONGEST)
    }

    /// Writer, with `written` words published: publishes the current block and clears
    /// `coarse`. Returns the new number of published words, or `None` if there is no room; the
    /// block then continues.
    pub fn publish(
        &self,
        written: u64,
        index: u64,
        moments: &Moments,
        coarse: &mut Coarse,
    ) -> Option<u64> {
        let bins = usize::try_from(coarse_bin(moments.max) - coarse_bin(moments.min));
        // Leaves room for a last block.
        let most = WORDS + bins.unwrap_or(0) + 1 + LONGEST;
        self.fits(written, most).then(|| self.close(written, index, moments, coarse))
    }

    /// Writer, with `written` words published: publishes the last block; none follows.
    pub fn close(&self, written: u64, index: u64, moments: &Moments, coarse: &mut Coarse) -> u64 {
        let start = written + WORDS as u64;
        let mut end = start;
        for bin in coarse_bin(moments.min)..=coarse_bin(moments.max) {
            let count = coarse.take(bin);
            if count > 0 {
                self.word(end).store(entry(bin, count), Ordering::Relaxed);
                end += 1;
            }
        }
        for (position, value) in (written..).zip(to_words(index, end - start, moments)) {
            self.word(position).store(value, Ordering::Relaxed);
        }
        self.head.0.store(end, Ordering::Release);
        end
    }

    /// Reader, with `taken` words returned: takes the oldest published block.
    pub fn take(&self, taken: &mut u64, thread: u32) -> Option<Block> {
        if *taken == self.head.0.load(Ordering::Acquire) {
            return None;
        }
        let start = *taken;
        let word = |position: u64| self.word(position).load(Ordering::Relaxed);
        let words: [u64; WORDS] = std::array::from_fn(|i| word(start + i as u64));
        let (index, bins, moments) = from_words(&words);
        let first = start + WORDS as u64;
        *taken = first + bins;
        let coarse = (first..*taken).map(|position| bin_and_count(word(position))).collect();
        self.tail.0.store(*taken, Ordering::Release);
        Some(Block { thread, series: 0, index, moments, coarse })
    }
}

/// The low bits of an entry, which name the bin; the count is above them.
const BIN_BITS: u32 = CoarseBin::BITS;

/// Packs a bin and its count, of which 48 bits are kept: enough for four million per second
/// over a year.
fn entry(bin: CoarseBin, count: u64) -> u64 {
    count.min(u64::MAX >> BIN_BITS) << BIN_BITS | u64::from(bin.cast_unsigned())
}

#[allow(clippy::cast_possible_truncation, reason = "the low bits are the bin")]
fn bin_and_count(entry: u64) -> (CoarseBin, u32) {
    let count = u32::try_from(entry >> BIN_BITS).unwrap_or(u32::MAX);
    ((entry as u16).cast_signed(), count)
}

#[allow(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "halves keep every bit")]
fn to_words(index: u64, bins: u64, m: &Moments) -> [u64; WORDS] {
    let sum = m.sum as u128;
    [
        index,
        bins,
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
fn from_words(words: &[u64; WORDS]) -> (u64, u64, Moments) {
    let [
        index,
        bins,
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
    (index, bins, moments)
}

/// The ring of samples that may be of a stop: when each was taken, its latency, the releases that it
/// missed, and where its thread counts now.
pub type HeldRing = Entries<4>;

/// A ring of entries of `N` words each.
#[derive(Debug)]
pub struct Entries<const N: usize> {
    head: CacheLine<AtomicU64>,
    tail: CacheLine<AtomicU64>,
    entries: Box<[[AtomicU64; N]]>,
}

impl<const N: usize> Entries<N> {
    /// A ring of `entries` entries.
    #[must_use]
    pub fn new(entries: usize) -> Self {
        Self {
            head: CacheLine(AtomicU64::new(0)),
            tail: CacheLine(AtomicU64::new(0)),
            entries: (0..entries).map(|_| std::array::from_fn(|_| AtomicU64::new(0))).collect(),
        }
    }

    /// Bytes of a ring of `entries` entries.
    #[must_use]
    pub const fn bytes(entries: usize) -> usize {
        entries * size_of::<[AtomicU64; N]>() + size_of::<Self>()
    }

    fn entry(&self, number: u64) -> &[AtomicU64; N] {
        &self.entries[usize::try_from(number).unwrap_or(0) % self.entries.len()]
    }

    /// Writer, with `pushed` entries pushed so far: how many the reader has not taken.
    fn held(&self, pushed: u64) -> u64 {
        pushed - self.tail.0.load(Ordering::Acquire)
    }

    /// Writer, with `pushed` entries pushed so far: whether one more fits. One without any room takes
    /// none, and lacks none.
    #[must_use]
    pub fn has_room(&self, pushed: u64) -> bool {
        self.entries.is_empty() || self.held(pushed) < self.entries.len() as u64
    }

    /// Writer, with `pushed` entries pushed so far: pushes an entry; false if the ring is full.
    #[inline]
    pub fn push(&self, pushed: u64, entry: [u64; N]) -> bool {
        if self.held(pushed) == self.entries.len() as u64 {
            return false;
        }
        for (word, value) in self.entry(pushed).iter().zip(entry) {
            word.store(value, Ordering::Relaxed);
        }
        self.head.0.store(pushed + 1, Ordering::Release);
        true
    }

    /// Whether it can hold anything.
    #[must_use]
    pub fn is_there(&self) -> bool {
        !self.entries.is_empty()
    }

    /// Reader, with `taken` entries taken so far: takes the oldest entry.
    pub fn take(&self, taken: u64) -> Option<[u64; N]> {
        if taken == self.head.0.load(Ordering::Acquire) {
            return None;
        }
        let entry = self.entry(taken);
        let words = std::array::from_fn(|word| entry[word].load(Ordering::Relaxed));
        self.tail.0.store(taken + 1, Ordering::Release);
        Some(words)
    }
}

/// The ring of late samples. If it is full the sample is dropped, and the corrected
/// distribution is made from the histogram's bins instead.
#[derive(Debug)]
pub struct LateRing(Entries<3>);

impl LateRing {
    /// A ring of `entries` entries.
    #[must_use]
    pub fn new(entries: usize) -> Self {
        Self(Entries::new(entries))
    }

    /// Bytes of a ring of `entries` entries.
    #[must_use]
    pub const fn bytes(entries: usize) -> usize {
        Entries::<3>::bytes(entries)
    }

    /// Writer, with `pushed` samples pushed so far: whether at least half of the ring is empty.
    pub fn is_half_empty(&self, pushed: u64) -> bool {
        2 * self.0.held(pushed) <= self.0.entries.len() as u64
    }

    /// Writer, with `pushed` samples pushed so far: whether one more fits.
    #[must_use]
    pub fn has_room(&self, pushed: u64) -> bool {
        self.0.has_room(pushed)
    }

    /// Writer, with `pushed` samples pushed so far: pushes a sample; false if the ring is full.
    pub fn push(&self, pushed: u64, at: u64, latency: u64, missed: u64) -> bool {
        self.0.push(pushed, [at, latency, missed])
    }

    /// Reader, with `taken` samples taken so far: takes the oldest sample.
    pub fn take(&self, taken: u64, thread: u32) -> Option<Late> {
        let [at, latency, missed] = self.0.take(taken)?;
        Some(Late { thread, series: 0, at, latency, missed })
    }
}

/// The ring of spells of lateness. If it is full, the spell that is due goes on.
#[derive(Debug)]
pub struct SpellRing(Entries<3>);

impl SpellRing {
    /// A ring of `entries` entries.
    #[must_use]
    pub fn new(entries: usize) -> Self {
        Self(Entries::new(entries))
    }

    /// Bytes of a ring of `entries` entries.
    #[must_use]
    pub const fn bytes(entries: usize) -> usize {
        Entries::<3>::bytes(entries)
    }

    /// Writer, with `pushed` spells pushed so far: whether one more fits.
    #[must_use]
    pub fn has_room(&self, pushed: u64) -> bool {
        self.0.has_room(pushed)
    }

    /// Writer, with `pushed` spells pushed so far: pushes one; false if the ring is full.
    pub fn push(&self, pushed: u64, spell: &Spell) -> bool {
        self.0.push(pushed, [spell.from, spell.to, spell.late])
    }

    /// Reader, with `taken` spells taken so far: takes the oldest one.
    pub fn take(&self, taken: u64, thread: u32) -> Option<Spell> {
        let [from, to, late] = self.0.take(taken)?;
        Some(Spell { thread, from, to, late })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use punctual_core::block::BLOCK_NS;
    use punctual_core::histogram::{COARSE_SHIFT, bin_of, coarse_low};

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

    /// A block of these values.
    fn block_of(values: &[i64]) -> (Moments, Coarse) {
        let (mut moments, mut coarse) = (Moments::EMPTY, Coarse::EMPTY);
        for value in values {
            moments.merge(&one(*value));
            let bin = bin_of(value.unsigned_abs()) >> COARSE_SHIFT;
            if *value < 0 { coarse.count_below(bin) } else { coarse.count_above(bin) }
        }
        (moments, coarse)
    }

    #[test]
    fn blocks_come_back_as_published() {
        let ring = BlockRing::of_words(1 << 10);
        let (mut written, mut taken) = (0, 0);
        let blocks: [&[i64]; 5] =
            [&[-40, -40, 7], &[i64::MAX, i64::MIN], &[i64::MIN, -1], &[0, 500, 500], &[-3]];
        // Often enough that a block wraps around the end of the ring.
        for (index, values) in (10..).zip(blocks.iter().cycle().take(500)) {
            let (moments, mut coarse) = block_of(values);
            written = ring.publish(written, index, &moments, &mut coarse).unwrap();
            assert!(coarse.above.iter().chain(&coarse.below).all(|count| *count == 0));
            let block = ring.take(&mut taken, 2).unwrap();
            assert_eq!((block.thread, block.index, block.moments), (2, index, moments));
            let mut expected: Vec<(CoarseBin, u32)> = Vec::new();
            let mut sorted = values.to_vec();
            sorted.sort_unstable();
            for bin in sorted.into_iter().map(coarse_bin) {
                match expected.last_mut() {
                    Some((last, count)) if *last == bin => *count += 1,
                    _ => expected.push((bin, 1)),
                }
            }
            assert_eq!(block.coarse, expected);
            assert_eq!(ring.take(&mut taken, 2), None);
        }
        assert!(written > 4 << 10);
    }

    #[test]
    fn a_full_ring_keeps_what_it_holds_and_has_room_for_the_last() {
        let ring = BlockRing::of_words(1 << 10);
        let all: Vec<i64> = (0..COARSE_BINS - 4).map(|bin| coarse_low(bin).cast_signed()).collect();
        let (mut written, mut index) = (0, 0);
        loop {
            let (moments, mut coarse) = block_of(&all);
            match ring.publish(written, index, &moments, &mut coarse) {
                Some(now) => (written, index) = (now, index + 1),
                None => break,
            }
        }
        assert_eq!(index, 2);
        // Nothing that did not fit is lost: it stays in the block, which goes on counting.
        let both: Vec<i64> = all.iter().flat_map(|value| [*value, -*value - 1]).collect();
        let (moments, mut coarse) = block_of(&both);
        let end = ring.close(written, index, &moments, &mut coarse);
        assert!(end <= 1 << 10, "{end} words");
        let mut taken = 0;
        let counts: Vec<u64> =
            (0..).map_while(|_| Some(ring.take(&mut taken, 0)?.moments.count)).collect();
        assert_eq!(counts, [all.len() as u64, all.len() as u64, both.len() as u64]);
    }

    #[test]
    fn a_second_fills_no_more_bins_than_a_block_has_room_for() {
        let mut sum = 0;
        let fit = |low: &u64| {
            sum += low;
            sum <= BLOCK_NS
        };
        let bins = (0..COARSE_BINS).map(coarse_low).take_while(fit).count();
        assert_eq!(bins + 1, BLOCK_BINS);
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
            // Room for two blocks of one bin each: the third waits for the reader.
            let ring = Arc::new(BlockRing::of_words(32));
            let writer = {
                let ring = Arc::clone(&ring);
                thread::spawn(move || {
                    let (mut published, mut written) = (0, 0);
                    let mut coarse = Coarse::EMPTY;
                    for _ in 0..3 {
                        coarse.count_above(0);
                        let count = published + 1;
                        let moments = Moments { count, min: 0, max: 0, ..Moments::EMPTY };
                        if !ring.fits(written, WORDS + 1) {
                            break;
                        }
                        written = ring.close(written, published, &moments, &mut coarse);
                        published += 1;
                    }
                    published
                })
            };
            let (mut taken, mut position) = (0, 0);
            let mut take = || {
                let block = ring.take(&mut position, 0)?;
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
