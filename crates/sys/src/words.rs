//! Loops over the words of a memory area, one load or store of 8 bytes at a time: the compiler
//! neither leaves any out nor puts vector instructions or a library's call in their place.

use std::ptr;

/// Words that are handled between two checks of the loop.
const UNROLLED: usize = 16;

/// The sum of the words, modulo 2^64.
#[must_use]
pub fn sum(words: &[u64]) -> u64 {
    // SAFETY: the words are valid for their length.
    unsafe { sum_from(words.as_ptr(), words.len()) }
}

/// The sum of `count` words from `from` on.
///
/// # Safety
/// They must be mapped and readable; others may write to them.
pub(crate) unsafe fn sum_from(from: *const u64, count: usize) -> u64 {
    let mut sums = [0_u64; 4];
    let (mut at, whole) = (0, count / UNROLLED * UNROLLED);
    while at < whole {
        for word in 0..UNROLLED {
            // SAFETY: below `count`.
            let value = unsafe { from.add(at + word).read_volatile() };
            sums[word % sums.len()] = sums[word % sums.len()].wrapping_add(value);
        }
        at += UNROLLED;
    }
    for word in whole..count {
        // SAFETY: below `count`.
        sums[0] = sums[0].wrapping_add(unsafe { from.add(word).read_volatile() });
    }
    sums.into_iter().fold(0, u64::wrapping_add)
}

/// Stores `value` in every word.
pub fn store(words: &mut [u64], value: u64) {
    let mut blocks = words.chunks_exact_mut(UNROLLED);
    for block in &mut blocks {
        for word in block {
            // SAFETY: a valid place.
            unsafe { ptr::from_mut(word).write_volatile(value) };
        }
    }
    blocks.into_remainder().iter_mut().for_each(|word| *word = value);
}

/// Copies word by word. The shorter of the two says how many.
pub fn copy_by_hand(from: &[u64], to: &mut [u64]) {
    let count = from.len().min(to.len());
    let (mut sources, mut targets) =
        (from[..count].chunks_exact(UNROLLED), to[..count].chunks_exact_mut(UNROLLED));
    for (source, target) in (&mut sources).zip(&mut targets) {
        for (word, place) in source.iter().zip(target) {
            // SAFETY: valid places.
            unsafe { ptr::from_mut(place).write_volatile(ptr::from_ref(word).read_volatile()) };
        }
    }
    let rest = sources.remainder();
    targets.into_remainder().copy_from_slice(rest);
}

/// Copies with memcpy(3) of the C library that this program is linked with. The shorter of the
/// two says how many.
pub fn copy_by_libc(from: &[u64], to: &mut [u64]) {
    let bytes = size_of::<u64>() * from.len().min(to.len());
    // SAFETY: both are valid for so many bytes, and cannot overlap.
    unsafe { libc::memcpy(to.as_mut_ptr().cast(), from.as_ptr().cast(), bytes) };
}

/// The same memory as bytes.
pub fn bytes_of(words: &mut [u64]) -> &mut [u8] {
    // SAFETY: any byte is valid in a word, and no byte needs more alignment than a word has.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), size_of_val(words)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_summed_stored_and_copied() {
        for count in [0, 1, 15, 16, 17, 32, 1001] {
            let words: Vec<u64> = (0..count).map(|n| n * n + 1).collect();
            assert_eq!(sum(&words), words.iter().sum::<u64>());
            let mut copies = [vec![0; words.len()], vec![0; words.len()]];
            copy_by_hand(&words, &mut copies[0]);
            copy_by_libc(&words, &mut copies[1]);
            assert_eq!(copies, [words.clone(), words.clone()]);
            store(&mut copies[0], 9);
            assert!(copies[0].iter().all(|word| *word == 9));
        }
        assert_eq!(sum(&[u64::MAX, 3]), 2);
        let mut words = [0; 2];
        bytes_of(&mut words)[8..].fill(1);
        assert_eq!(words, [0, 0x0101_0101_0101_0101]);
    }
}
