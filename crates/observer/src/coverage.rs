//! Which blocks of the kernel were executed: a bit for each address that its code can have. So it
//! does not matter how often QEMU translates a block, or how often the block is executed.
//!
//! A kernel and its modules lie within 2 GiB on both architectures
//! (Documentation/arch/x86/x86_64/mm.rst, Documentation/arch/arm64/memory.rst).

use core::mem::take;

/// Words of bits for 2 GiB. Only those are in memory that have code near them.
pub const WORDS: usize = 1 << 25;

/// Words of [`Coverage`]'s index of these words.
pub const INDEX: usize = WORDS / PAGE / 64;

/// Words that have one bit in the index.
const PAGE: usize = 64;

/// The blocks that were executed, by the address of their first instruction.
#[derive(Debug)]
pub struct Coverage<'a> {
    /// The first address that there is a bit for.
    start: u64,
    words: &'a mut [u64],
    /// Which pages of words are not all zero.
    index: &'a mut [u64],
}

impl<'a> Coverage<'a> {
    /// No block so far, of those from an address on, which is a multiple of 64. Both are zero;
    /// [`WORDS`] and [`INDEX`] words are enough for all.
    #[must_use]
    pub const fn new(start: u64, words: &'a mut [u64], index: &'a mut [u64]) -> Self {
        Self { start, words, index }
    }

    /// Notes nothing.
    #[must_use]
    pub const fn none() -> Self {
        Self::new(0, &mut [], &mut [])
    }

    /// A block is executed. Those outside of what there are words for are not noted.
    #[inline(always)]
    pub fn note(&mut self, address: u64) {
        let place = usize::try_from(address.wrapping_sub(self.start) / 64).unwrap_or(usize::MAX);
        let Some(word) = self.words.get_mut(place) else { return };
        let is_first = *word == 0;
        *word |= 1 << (address % 64);
        if is_first {
            self.enter(place / PAGE);
        }
    }

    #[cold]
    fn enter(&mut self, page: usize) {
        if let Some(word) = self.index.get_mut(page / 64) {
            *word |= 1 << (page % 64);
        }
    }

    /// Passes the address of each block to `f`, in ascending order, and forgets them.
    pub fn drain(&mut self, mut f: impl FnMut(u64)) {
        for (group, pages) in self.index.iter_mut().enumerate() {
            for page in bits(take(pages)) {
                let first = (group * 64 + page) * PAGE;
                let words = self.words.get_mut(first..).unwrap_or_default();
                for (number, word) in words.iter_mut().take(PAGE).enumerate() {
                    for bit in bits(take(word)) {
                        f(self.start.wrapping_add(((first + number) * 64 + bit) as u64));
                    }
                }
            }
        }
    }
}

/// The places of the bits that are one, in ascending order.
fn bits(word: u64) -> impl Iterator<Item = usize> {
    let rest = |word: &u64| Some(word & word.wrapping_sub(1));
    let words = core::iter::successors(Some(word), rest).take_while(|word| *word != 0);
    words.map(|word| word.trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 0xffff_ffff_8000_0000;

    fn drained(coverage: &mut Coverage) -> Vec<u64> {
        let mut all = Vec::new();
        coverage.drain(|address| all.push(address));
        all
    }

    #[test]
    fn each_block_is_noted_once_until_all_are_forgotten() {
        let (mut words, mut index) = (vec![0; 130 * PAGE], vec![0; 3]);
        let end = START + 130 * PAGE as u64 * 64;
        let mut coverage = Coverage::new(START, &mut words, &mut index);
        let blocks = [START, START + 1, START + 63, START + 64, START + 0x1000, end - 1];
        for _ in 0..2 {
            for block in blocks.iter().rev().chain(&blocks) {
                coverage.note(*block);
            }
            assert_eq!(drained(&mut coverage), blocks);
            assert!(drained(&mut coverage).is_empty());
        }
    }

    #[test]
    fn what_is_elsewhere_is_not_noted() {
        let (mut words, mut index) = (vec![0; PAGE], vec![0; 1]);
        let mut coverage = Coverage::new(START, &mut words, &mut index);
        for block in [0, 0x40_1000, START - 1, START + PAGE as u64 * 64, u64::MAX] {
            coverage.note(block);
        }
        assert!(drained(&mut coverage).is_empty());
        let mut none = Coverage::none();
        none.note(START);
        assert!(drained(&mut none).is_empty());
    }

    #[test]
    fn there_are_words_for_the_last_address() {
        assert_eq!(START + (WORDS as u64 * 64 - 1), u64::MAX);
        assert_eq!(INDEX * 64 * PAGE, WORDS);
    }
}
