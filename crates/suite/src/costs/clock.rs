//! The clock rate of the CPU, as a chain of additions has it.

use std::hint::black_box;
use std::io;

use punctual_core::schema::{Better, CostSection, Unit};
use punctual_sys::chase::{ADDITIONS, CYCLES_ARE_KNOWN, add_up};
use punctual_sys::clock::monotonic_ns;

use crate::registry::cost::{Column, CostEntry, Direct, Method};

/// Chains of a burst: long enough for the clock to be read to 10^-3, and so short that a tick of
/// the kernel seldom falls into one.
const CHAINS: u64 = 500;
/// Bursts, of which the fastest counts: nothing makes a CPU faster than it is.
const BURSTS: usize = 5;

pub(super) const CLOCK: CostEntry = CostEntry {
    name: "sys.clock",
    summary: "clock rate of the CPU while it works, by additions that take one cycle each",
    help: "Times bursts of 500 chains of 1000 additions of registers, each of which needs the result \
           of the one before: one cycle each on every CPU of today, whatever else it does at the same \
           time. The fastest of five bursts counts, so that it is the rate at which the CPU ran, with \
           its boost, whoever else had it in between. The loop adds at most 0.2 % on a CPU that starts one instruction in a \
           cycle, and nothing on others. A virtual board that counts instructions has the rate of \
           those.",
    meaning: "additions of one cycle each, in the time of the fastest burst",
    params: &[],
    needs: &[],
    unit: Unit::Megahertz,
    better: Better::More,
    section: CostSection::Basics,
    columns: &[Column { name: "clock", params: &[] }],
    open: |_| {
        if CYCLES_ARE_KNOWN {
            return Ok(Method::Direct(Box::new(Cycles)));
        }
        let text = "what takes one cycle is known of x86_64 and aarch64 only";
        Err(io::Error::new(io::ErrorKind::Unsupported, text))
    },
};

struct Cycles;

impl Direct for Cycles {
    fn measure(&mut self) -> io::Result<Option<f64>> {
        let burst = || {
            let from = monotonic_ns();
            black_box(add_up(CHAINS));
            monotonic_ns() - from
        };
        let best = std::iter::repeat_with(burst).take(BURSTS).min();
        Ok(best.filter(|ns| *ns > 0).map(megahertz))
    }
}

/// Of a burst that took so long.
#[allow(clippy::cast_precision_loss, reason = "a burst is far below 2^53 ns")]
fn megahertz(ns: u64) -> f64 {
    (CHAINS * ADDITIONS) as f64 * 1e3 / ns as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_rate_of_a_cpu_that_could_run_this() {
        let rate = Cycles.measure().unwrap().unwrap();
        // The fastest CPU ever sold is below 10 GHz; a slow emulator is above 10 MHz.
        assert!((10.0..10_000.0).contains(&rate), "{rate} MHz");
        // One addition a nanosecond.
        assert_eq!(megahertz(500_000), 1000.0);
    }
}
