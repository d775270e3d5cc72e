//! Latencies of memory: chains of loads, each of which needs the address that the one before it
//! loaded.

use std::io;

use punctual_core::random::Random;
use punctual_core::schema::{Better, CostSection, Unit};
use punctual_sys::chase::{Chase, LOADS};
use punctual_sys::region::page_size;

use super::area;
use crate::registry::cost::{CostEntry, Method, Operation};
use crate::registry::{Choice, Default, Kind, Param, Values};

/// The places of the smallest ring; fewer would be a pattern that any CPU foresees.
const PLACES_MIN: u64 = 2;

pub(super) const MEMORY: CostEntry = CostEntry {
    name: "lat.mem",
    summary: "latency of a load from an area of memory, by its size and stride",
    help: "Follows a ring of addresses through an area of memory, one every stride bytes: each load \
           needs what the one before it loaded. order=random visits the pages at random, and the \
           places of a page at random before it leaves it, so no prefetcher helps and misses of the TLB \
           are spread over a page's places; order=back goes through the area back to front, which \
           prefetchers know. Pages are of the smallest size. Comparable to lat_mem_rd of LMbench, with \
           order=random to its -t. Sizes of the caches show where the latency rises: try 16K, 256K, 4M, \
           64M.",
    meaning: "one load, which waits for the one before",
    params: &[
        area::size("8M", "size of the area"),
        Param {
            name: "stride",
            kind: Kind::Size { low: 8 },
            default: Default::Value("64"),
            help: "distance of neighbouring places, a multiple of 8",
        },
        Param {
            name: "order",
            kind: Kind::Choice(&[
                Choice::of("random", "no order that a prefetcher could know"),
                Choice::of("back", "back to front"),
            ]),
            default: Default::Value("random"),
            help: "order of the loads",
        },
    ],
    needs: &[],
    unit: Unit::Ns,
    better: Better::Less,
    section: CostSection::MemoryLatencies,
    columns: &[],
    open: |values| Ok(Method::Timed(Box::new(Loads { chase: laid(values)? }))),
};

fn laid(values: &Values) -> io::Result<Chase> {
    let (bytes, stride) = (values.number("size"), values.number("stride"));
    let places = bytes / stride;
    if !stride.is_multiple_of(8) || places < PLACES_MIN {
        let text = format!("stride={stride} must be a multiple of 8 and at most half of the size");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    // The order is kept beside the area.
    area::claim_memory(bytes.saturating_add(places.saturating_mul(16)))?;
    let [bytes, stride] = [bytes, stride].map(|number| usize::try_from(number).unwrap_or(0));
    ring(bytes, stride, values.text("order") == "random")
}

/// Memory with a ring through every place.
pub(super) fn ring(bytes: usize, stride: usize, random: bool) -> io::Result<Chase> {
    let offsets = if random { at_random(bytes, stride) } else { back_to_front(bytes, stride) };
    let mut chase = Chase::new(bytes)?;
    chase.lay(offsets)?;
    Ok(chase)
}

fn back_to_front(bytes: usize, stride: usize) -> Vec<usize> {
    (0..bytes / stride).rev().map(|place| place * stride).collect()
}

/// The places of a page one after another, each page and place at random.
fn at_random(bytes: usize, stride: usize) -> Vec<usize> {
    let mut random = Random::new(1);
    let in_page = (page_size() / stride).max(1);
    let places: Vec<usize> = (0..bytes / stride).map(|place| place * stride).collect();
    let mut pages: Vec<Vec<usize>> = places.chunks(in_page).map(<[usize]>::to_vec).collect();
    shuffle(&mut pages, &mut random);
    pages.iter_mut().for_each(|page| shuffle(page, &mut random));
    pages.concat()
}

/// Puts all in an order that is as likely as any other (Fisher and Yates).
pub(super) fn shuffle<T>(all: &mut [T], random: &mut Random) {
    for last in (1..all.len()).rev() {
        let other = usize::try_from(random.below(last as u64 + 1)).unwrap_or(0);
        all.swap(last, other);
    }
}

/// An iteration is [`LOADS`] loads.
struct Loads {
    chase: Chase,
}

impl Operation for Loads {
    fn run(&mut self, iterations: u64) -> io::Result<()> {
        self.chase.walk(iterations.saturating_mul(LOADS));
        Ok(())
    }

    fn empty(&mut self, _: u64) -> io::Result<()> {
        // The loop runs while loads are waited for.
        Ok(())
    }

    fn value(&self, ns: f64) -> f64 {
        ns / LOADS as f64
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{nanoseconds, timed, values};
    use super::*;

    #[test]
    fn every_place_is_met_once_and_pages_are_left_when_they_are_done() {
        let bytes = 16 * page_size();
        let mut orders = [at_random(bytes, 64), back_to_front(bytes, 64)];
        assert_ne!(orders[0], orders[1]);
        let in_page = page_size() / 64;
        for page in orders[0].chunks(in_page) {
            assert!(page.iter().all(|at| at / page_size() == page[0] / page_size()));
            assert!(!page.is_sorted() && !page.iter().rev().is_sorted());
        }
        orders.iter_mut().for_each(|order| order.sort_unstable());
        assert_eq!(orders[0], orders[1]);
        assert_eq!(orders[0].len(), bytes / 64);
        // Strides above a page.
        assert_eq!(at_random(bytes, 4 * page_size()).len(), 4);
    }

    #[test]
    fn a_load_from_beyond_the_caches_takes_longer() {
        let load = |given: &[(&str, &str)], iterations| {
            let mut operation = timed(&MEMORY, given);
            operation.run(10).unwrap();
            let ns = nanoseconds(&mut *operation, iterations);
            operation.value(ns)
        };
        let near = load(&[("size", "4K")], 2000);
        let far = load(&[("size", "64M")], 500);
        if far < 2.0 * near {
            punctual_harness::refused("this machine has no caches");
        }
        assert!(near > 0.05, "{near} ns are less than a cycle");
        let order = load(&[("size", "64M"), ("order", "back"), ("stride", "8")], 500);
        assert!(order < far, "{order} ns in order, {far} ns at random");
    }

    #[test]
    fn strides_that_cannot_be_are_refused() {
        for given in [[("size", "4K"), ("stride", "4K")], [("size", "4K"), ("stride", "12")]] {
            let Err(error) = laid(&values(&MEMORY, &given)) else { panic!("{given:?}") };
            assert!(error.to_string().contains("must be a multiple of 8"), "{error}");
        }
        let Err(error) = laid(&values(&MEMORY, &[("size", "64T")])) else { panic!() };
        assert!(error.to_string().contains("more than half"), "{error}");
    }
}
