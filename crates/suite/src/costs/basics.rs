//! What the memory of the machine is like: the line of its caches, the reach of its TLB, and how
//! many loads it answers at the same time. All of it is measured, nothing is asked of the kernel.

use std::io;

use punctual_core::random::Random;
use punctual_core::schema::{Better, CostSection, Unit};
use punctual_sys::chase::Chase;
use punctual_sys::clock::monotonic_ns;
use punctual_sys::region::page_size;

use super::area;
use super::latency::{ring, shuffle};
use crate::registry::cost::{Column, CostEntry, Direct, Method};

/// A chain is walked as often, and the fastest counts: nothing makes a walk faster than it is.
const WALKS: usize = 5;
/// Loads of a walk, at least.
const LOADS: u64 = 4096;

pub(super) const LINE: CostEntry = CostEntry {
    name: "sys.cacheline",
    summary: "bytes that a CPU's first cache fetches at a time",
    help: "Follows a chain through blocks of 2 KiB in random order, with two loads in each: the second \
           is fast if it is in the line that the first one has fetched. The line is the smallest \
           distance at which the second load takes longer than halfway between 8 bytes and 1 KiB. The \
           blocks are twice as many as it takes for that to differ by 20 %, so they come from the second \
           level, where no prefetcher fetches neighbours into the first. Not measurable where nothing \
           differs, as on a board that is emulated without caches. LMbench finds it by strides.",
    meaning: "the distance from which two loads need two lines",
    unit: Unit::Bytes,
    columns: &[Column { name: "cache line", params: &[] }],
    open: |_| Ok(Method::Direct(Box::new(CacheLine { chase: Chase::new(2 * AREA_MAX)? }))),
    ..BASICS
};

pub(super) const TLB: CostEntry = CostEntry {
    name: "sys.tlb",
    summary: "pages that can be visited in turn without a miss in the first TLB",
    help: "Visits one line in each of n pages at random, again and again, and compares with as many \
           lines that are side by side: where the pages take 15 % longer, n is above what the first \
           level of the TLB holds. The largest n without that is found by doubling and bisection, up \
           to 64 MiB of pages of the smallest size. CPUs that keep neighbouring pages in one entry \
           reach further than they have entries. Not measurable where no n takes longer. Comparable to \
           tlb of LMbench.",
    meaning: "the most pages that take no longer than as many lines side by side",
    unit: Unit::Pages,
    columns: &[Column { name: "tlb", params: &[] }],
    open: |_| {
        let pages = (REACH_MAX / page_size()).min(PAGES_MAX);
        let bytes = pages * page_size();
        area::claim_memory(bytes as u64)?;
        Ok(Method::Direct(Box::new(Tlb { chase: Chase::new(bytes)?, pages })))
    },
    ..BASICS
};

pub(super) const PARALLELISM: CostEntry = CostEntry {
    name: "sys.parallelism",
    summary: "chains of loads that memory answers in the time of one",
    help: "Follows 1 to 16 independent chains at the same time, all through the same area in random \
           order, and tells the largest gain over following them one after the other: about as many \
           loads are answered at the same time. A load that misses the TLB too takes part. Comparable \
           to the memory parallelism of LMbench's par_mem.",
    meaning: "the largest n x t1 / tn, of n chains in time tn",
    params: &[area::size("64M", "size of the area")],
    unit: Unit::Ratio,
    columns: &[Column { name: "mem par", params: &[] }],
    open: |values| {
        let bytes = values.number("size");
        // The order is kept beside the area.
        area::claim_memory(bytes.saturating_add(bytes / LINE_LIKELY as u64 * 16))?;
        let bytes = usize::try_from(bytes).map_err(io::Error::other)?;
        let chase = ring(bytes, LINE_LIKELY, true)?;
        Ok(Method::Direct(Box::new(Parallelism { chase })))
    },
    ..BASICS
};

/// What they have in common.
const BASICS: CostEntry = CostEntry {
    name: "",
    summary: "",
    help: "",
    meaning: "",
    params: &[],
    needs: &[],
    unit: Unit::Ratio,
    better: Better::More,
    section: CostSection::Basics,
    columns: &[],
    open: |_| Err(io::ErrorKind::Unsupported.into()),
};

/// The time of a load of a ring, ns: of the fastest of several walks.
fn of_load(chase: &mut Chase, offsets: Vec<usize>) -> io::Result<f64> {
    let loads = LOADS.max(2 * offsets.len() as u64);
    chase.lay(offsets)?;
    let mut best = f64::INFINITY;
    // The first one finds caches and TLB as the ring before left them.
    chase.walk(loads);
    for _ in 0..WALKS {
        let from = monotonic_ns();
        let walked = chase.walk(loads);
        best = best.min(each(monotonic_ns() - from, walked));
    }
    Ok(best)
}

#[allow(clippy::cast_precision_loss, reason = "a walk is far below 2^53 ns")]
fn each(ns: u64, count: u64) -> f64 {
    ns as f64 / count as f64
}

/// Bytes of a block, half of which is farther than any line is long.
const BLOCK: usize = 2048;
const AREA_MIN: usize = 8 << 10;
/// Above any first cache.
const AREA_MAX: usize = 1 << 20;
/// A load from another level takes longer by this factor, with the load before it.
const OTHER_LEVEL: f64 = 1.2;

struct CacheLine {
    chase: Chase,
}

impl CacheLine {
    /// The time of a load, half of them at this distance from the others.
    fn at(&mut self, area: usize, distance: usize) -> io::Result<f64> {
        let mut blocks: Vec<usize> = (0..area / BLOCK).collect();
        shuffle(&mut blocks, &mut Random::new(1));
        let offsets = blocks.iter().flat_map(|block| [block * BLOCK, block * BLOCK + distance]);
        of_load(&mut self.chase, offsets.collect())
    }

    fn near_and_far(&mut self, area: usize) -> io::Result<(f64, f64)> {
        Ok((self.at(area, 8)?, self.at(area, BLOCK / 2)?))
    }
}

impl Direct for CacheLine {
    fn measure(&mut self) -> io::Result<Option<f64>> {
        let differ = |(near, far): (f64, f64)| far > OTHER_LEVEL * near;
        let mut area = AREA_MIN;
        while !differ(self.near_and_far(area)?) {
            area *= 2;
            if area > AREA_MAX {
                return Ok(None);
            }
        }
        let (near, far) = self.near_and_far(2 * area)?;
        if !differ((near, far)) {
            return Ok(None);
        }
        let mut distance = 16;
        while distance < BLOCK / 2 {
            if self.at(2 * area, distance)? > f64::midpoint(near, far) {
                #[allow(clippy::cast_precision_loss, reason = "below 1024")]
                return Ok(Some(distance as f64));
            }
            distance *= 2;
        }
        Ok(None)
    }
}

/// The length of a line that most CPUs have: how far apart the lines are that are to be others,
/// and to fill the sets of a cache evenly.
const LINE_LIKELY: usize = 64;
/// Most memory that is visited for the TLB.
const REACH_MAX: usize = 64 << 20;
const PAGES_MAX: usize = 4096;
const PAGES_MIN: usize = 4;
/// How much longer a load takes that misses in the TLB, at least.
const MISS: f64 = 1.15;

struct Tlb {
    chase: Chase,
    pages: usize,
}

impl Tlb {
    /// Whether so many pages take longer than as many lines side by side.
    fn misses(&mut self, pages: usize) -> io::Result<bool> {
        let mut order: Vec<usize> = (0..pages).collect();
        shuffle(&mut order, &mut Random::new(1));
        let page = page_size();
        let spread = order.iter().map(|at| at * page + at * LINE_LIKELY % page).collect();
        let dense = order.iter().map(|at| at * LINE_LIKELY).collect();
        Ok(of_load(&mut self.chase, spread)? > MISS * of_load(&mut self.chase, dense)?)
    }
}

impl Direct for Tlb {
    fn measure(&mut self) -> io::Result<Option<f64>> {
        let mut above = PAGES_MIN;
        while !self.misses(above)? {
            above *= 2;
            if above > self.pages {
                return Ok(None);
            }
        }
        let mut held = above / 2;
        while above - held > 1 {
            let middle = usize::midpoint(held, above);
            if self.misses(middle)? {
                above = middle;
            } else {
                held = middle;
            }
        }
        #[allow(clippy::cast_precision_loss, reason = "at most 4096")]
        Ok(Some(held as f64))
    }
}

/// Walks of so many chains, each through other places.
const PARALLEL_WALKS: usize = 3;

struct Parallelism {
    chase: Chase,
}

impl Parallelism {
    /// The time of one load in each of `N` chains, ns: of the fastest of some walks, since one
    /// that lost the CPU would make a gain of any size.
    fn of<const N: usize>(&mut self) -> f64 {
        let walk = || {
            let from = monotonic_ns();
            let walked = self.chase.walk_parallel::<N>(LOADS);
            each(monotonic_ns() - from, walked)
        };
        std::iter::repeat_with(walk).take(PARALLEL_WALKS).fold(f64::INFINITY, f64::min)
    }
}

impl Direct for Parallelism {
    fn measure(&mut self) -> io::Result<Option<f64>> {
        let one = self.of::<1>();
        let gains = [
            2.0 * one / self.of::<2>(),
            4.0 * one / self.of::<4>(),
            6.0 * one / self.of::<6>(),
            8.0 * one / self.of::<8>(),
            10.0 * one / self.of::<10>(),
            12.0 * one / self.of::<12>(),
            16.0 * one / self.of::<16>(),
        ];
        Ok(Some(gains.into_iter().fold(1.0, f64::max)))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::testing::values;
    use super::*;

    /// The median of several measurements.
    fn measured(entry: &CostEntry, given: &[(&str, &str)]) -> Option<f64> {
        let Method::Direct(mut direct) = (entry.open)(&values(entry, given)).unwrap() else {
            panic!("{} is worked out", entry.name)
        };
        let mut all: Vec<f64> = (0..9).filter_map(|_| direct.measure().unwrap()).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied()
    }

    #[test]
    fn the_line_is_the_one_that_the_kernel_knows() {
        let file = "/sys/devices/system/cpu/cpu0/cache/index0/coherency_line_size";
        let known = fs::read_to_string(file).ok().and_then(|text| text.trim().parse::<f64>().ok());
        match (measured(&LINE, &[]), known) {
            (Some(line), Some(known)) => assert_eq!(line, known),
            (line, known) => {
                punctual_harness::refused(&format!("{line:?} was found, {known:?} is known"));
            }
        }
    }

    #[test]
    fn the_reach_of_the_tlb_is_one_that_a_cpu_could_have() {
        match measured(&TLB, &[]) {
            Some(pages) => assert!((8.0..4096.0).contains(&pages), "{pages} pages"),
            None => punctual_harness::refused("no TLB was found"),
        }
    }

    #[test]
    fn memory_answers_one_load_at_a_time_or_more() {
        let ratio = measured(&PARALLELISM, &[("size", "16M")]).unwrap();
        assert!((1.0..=16.5).contains(&ratio), "{ratio}");
    }
}
