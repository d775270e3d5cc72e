//! Chains of loads and of additions in which each needs the result of the one before it, so that
//! their time is a latency and no throughput.

use std::hint::black_box;
use std::io;

use crate::region::Region;

/// Loads between two checks of a loop; [`Chase::walk`] makes a multiple of them.
pub const LOADS: u64 = 64;
/// Additions between two checks of the loop, too many for its own instructions to matter.
pub const ADDITIONS: u64 = 1000;
/// Chains that can be followed at the same time, at most.
pub const CHAINS_MAX: usize = 16;

/// A place in a [`Chase`], which holds the address of the next.
type Link = *const u8;

/// Memory of its own with a ring of addresses through it.
#[derive(Debug)]
pub struct Chase {
    memory: Region,
    /// Where the next walk goes on.
    at: Link,
    bytes: usize,
    /// The offsets in the order of the ring.
    ring: Vec<usize>,
    /// Where in it the next chains begin.
    next: usize,
}

impl Chase {
    /// Maps `bytes` of memory without a ring.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub fn new(bytes: usize) -> io::Result<Self> {
        let mut memory = Region::new(bytes)?;
        memory.touch();
        let at = memory.start().cast_const();
        Ok(Self { memory, at, bytes, ring: Vec::new(), next: 0 })
    }

    /// Leads a ring through these offsets, in bytes, in their order. Each must be met once.
    ///
    /// # Errors
    /// `InvalidInput` if there is none, or one that is no multiple of 8 or outside.
    pub fn lay(&mut self, offsets: Vec<usize>) -> io::Result<()> {
        let word = size_of::<Link>();
        let wrong = |at: &usize| !at.is_multiple_of(word) || at.saturating_add(word) > self.bytes;
        if offsets.is_empty() || offsets.iter().any(wrong) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let start = self.memory.start();
        for (index, &from) in offsets.iter().enumerate() {
            let to = offsets[(index + 1) % offsets.len()];
            // SAFETY: both are within the memory, which is ours alone, and aligned.
            unsafe { start.add(from).cast::<Link>().write(start.add(to).cast_const()) };
        }
        // SAFETY: within the memory.
        self.at = unsafe { start.add(offsets[0]).cast_const() };
        (self.ring, self.next) = (offsets, 0);
        Ok(())
    }

    /// Makes at least `loads` loads, [`LOADS`] at a time, from where the last walk ended. Returns
    /// how many.
    ///
    /// # Panics
    /// No ring was laid.
    pub fn walk(&mut self, loads: u64) -> u64 {
        assert!(!self.ring.is_empty(), "a ring is laid before it is walked");
        let rounds = loads.div_ceil(LOADS).max(1);
        // SAFETY: each word of the ring holds the address of another, all in memory that is ours.
        self.at = unsafe { follow(self.at, rounds) };
        rounds * LOADS
    }

    /// Follows `N` chains at the same time, which begin evenly spread over the ring, for at least
    /// `loads` loads each. Returns how many each made.
    ///
    /// # Panics
    /// No ring was laid.
    pub fn walk_parallel<const N: usize>(&mut self, loads: u64) -> u64 {
        assert!(!self.ring.is_empty() && N > 0, "a ring is laid before it is walked");
        let rounds = loads.div_ceil(LOADS).max(1);
        let mut places = self.spread::<N>();
        for _ in 0..rounds {
            for _ in 0..LOADS {
                for place in &mut places {
                    // SAFETY: as in `walk`.
                    *place = unsafe { place.cast::<Link>().read_volatile() };
                }
            }
        }
        black_box(places);
        // Not where this one was: that may be in a cache now.
        let made = usize::try_from(rounds * LOADS).unwrap_or(usize::MAX);
        self.next = self.next.wrapping_add(made) % self.ring.len();
        rounds * LOADS
    }

    /// Places evenly spread over the ring, the first of them at `next`.
    fn spread<const N: usize>(&mut self) -> [Link; N] {
        let count = self.ring.len();
        let start = self.memory.start().cast_const();
        std::array::from_fn(|chain| {
            let offset = self.ring[(self.next + chain * (count / N)) % count];
            // SAFETY: within the memory.
            unsafe { start.add(offset) }
        })
    }
}

/// Follows [`LOADS`] links `rounds` times.
///
/// # Safety
/// `at` must hold the address of another link, and so on.
#[inline(always)]
unsafe fn follow(mut at: Link, rounds: u64) -> Link {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    for _ in 0..rounds {
        // SAFETY: reads words that the caller vouches for, and nothing else.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            std::arch::asm!(
                ".rept 64", "mov {at}, qword ptr [{at}]", ".endr",
                at = inout(reg) at, options(nostack, readonly, preserves_flags)
            );
            #[cfg(target_arch = "aarch64")]
            std::arch::asm!(
                ".rept 64", "ldr {at}, [{at}]", ".endr",
                at = inout(reg) at, options(nostack, readonly, preserves_flags)
            );
        }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    for _ in 0..rounds * LOADS {
        // SAFETY: the caller vouches for it.
        at = unsafe { at.cast::<Link>().read_volatile() };
    }
    at
}

/// Whether [`add_up`] is known to take a cycle an addition on this architecture.
pub const CYCLES_ARE_KNOWN: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// Makes [`ADDITIONS`] additions `times` times, each of a register to the result of the one
/// before, which takes one cycle on every CPU that is likely to be met. The number that is added
/// is in a register too: some CPUs add constants while they rename registers, in no time.
pub fn add_up(times: u64) -> u64 {
    let (mut sum, one) = (black_box(0_u64), black_box(1_u64));
    for _ in 0..times {
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        // SAFETY: adds registers.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            std::arch::asm!(
                ".rept 1000", "add {sum}, {one}", ".endr",
                sum = inout(reg) sum, one = in(reg) one, options(nostack, nomem, pure)
            );
            #[cfg(target_arch = "aarch64")]
            std::arch::asm!(
                ".rept 1000", "add {sum}, {sum}, {one}", ".endr",
                sum = inout(reg) sum, one = in(reg) one, options(nostack, nomem, pure)
            );
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        for _ in 0..ADDITIONS {
            sum = black_box(sum.wrapping_add(one));
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_meets_every_place_in_order_and_goes_on_where_it_ended() {
        let mut chase = Chase::new(1 << 16).unwrap();
        // 65 places: a walk of 64 loads ends one before where it began.
        let offsets: Vec<usize> = (0..65).map(|n| n * 7 % 65 * 64).collect();
        chase.lay(offsets.clone()).unwrap();
        let start = chase.memory.start().cast_const();
        let offset = |chase: &Chase| chase.at.addr() - start.addr();
        assert_eq!(offset(&chase), offsets[0]);
        assert_eq!(chase.walk(1), 64);
        assert_eq!(offset(&chase), offsets[64]);
        assert_eq!(chase.walk(65), 128);
        assert_eq!(offset(&chase), offsets[(64 + 128) % 65]);
        assert_eq!(chase.walk_parallel::<4>(100), 128);
        assert_eq!(chase.next, 128 % 65);
        let places = chase.spread::<5>().map(|place| place.addr() - start.addr());
        let index = |offset| offsets.iter().position(|one| *one == offset).unwrap();
        for pair in places.windows(2) {
            assert_eq!((index(pair[1]) + 65 - index(pair[0])) % 65, 13);
        }
    }

    #[test]
    fn a_ring_lies_within_its_memory() {
        let mut chase = Chase::new(4096).unwrap();
        for wrong in [vec![], vec![4], vec![0, 4096], vec![usize::MAX - 7]] {
            assert!(chase.lay(wrong).is_err());
        }
        chase.lay(vec![4088]).unwrap();
        chase.walk(1);
    }

    #[test]
    fn every_addition_is_made() {
        assert_eq!(add_up(3), 3 * ADDITIONS);
    }
}
