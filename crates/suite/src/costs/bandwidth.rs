//! Bandwidths of memory: copied, read and written.

use std::hint::black_box;
use std::io;

use punctual_core::schema::{Better, CostSection, Unit};
use punctual_sys::words;

use super::area;
use crate::registry::cost::{Column, CostEntry, Method, Operation};
use crate::registry::{Choice, Default, Kind, Param, Values};

pub(super) const COPY: CostEntry = CostEntry {
    name: "bw.copy",
    summary: "bandwidth of copying memory, by the C library or word by word",
    help: "Copies an area of memory into another one of the same size; each byte counts once. \
           how=libc calls memcpy(3) of the C library that this program is linked with: the static \
           binary brings musl along, whatever the board has, so the same code runs on every kernel. \
           how=hand loads and stores one word of 8 bytes after the other, 16 between two checks of \
           the loop, without vector instructions. Comparable to bcopy (libc) and bcopy (hand) in \
           LMbench's summary, which call the system's C library and copy words of 4 bytes. Areas \
           that fit into a cache are copied there: choose a larger size for the memory behind it.",
    meaning: "one copy of the area",
    params: &[
        Param {
            name: "how",
            kind: Kind::Choice(&[
                Choice::of("libc", "memcpy of the C library"),
                Choice::of("hand", "an unrolled loop over words"),
            ]),
            default: Default::Value("libc"),
            help: "what copies",
        },
        area::size("8M", "size of each of the two areas"),
    ],
    columns: &[
        Column { name: "bw bcopy libc", params: &[] },
        Column { name: "bw bcopy hand", params: &[("how", "hand")] },
    ],
    open: |values| {
        let bytes = values.number("size");
        area::claim_memory(bytes.saturating_mul(2))?;
        let (from, to) = (area::words(bytes, 1)?, area::words(bytes, 0)?);
        let copy = match values.text("how") {
            "hand" => words::copy_by_hand,
            _ => words::copy_by_libc,
        };
        Ok(Method::Timed(Box::new(Copy { from, to, copy })))
    },
    ..BANDWIDTH
};

pub(super) const MEMORY: CostEntry = CostEntry {
    name: "bw.mem",
    summary: "bandwidth of reading memory (sum) or of writing it (store)",
    help: "Goes through an area of memory in words of 8 bytes, 16 between two checks of the loop and \
           without vector instructions: op=read adds them up, op=write stores a value in each. What \
           a CPU reads because it is to write counts for nothing. Comparable to Mem read and Mem \
           write in LMbench's summary, which use words of 4 bytes. An area that fits into a cache is \
           read there: choose a larger size for the memory behind it.",
    meaning: "one pass over the area",
    params: &[
        Param {
            name: "op",
            kind: Kind::Choice(&[Choice::of("read", "sum"), Choice::of("write", "store")]),
            default: Default::Value("read"),
            help: "what is done",
        },
        area::size("8M", "size of the area"),
    ],
    columns: &[
        Column { name: "bw mem read", params: &[] },
        Column { name: "bw mem write", params: &[("op", "write")] },
    ],
    open: |values| {
        let words = claimed(values)?;
        Ok(Method::Timed(match values.text("op") {
            "write" => Box::new(Write { words }),
            _ => Box::new(Read { words }),
        }))
    },
    ..BANDWIDTH
};

/// What they have in common.
const BANDWIDTH: CostEntry = CostEntry {
    name: "",
    summary: "",
    help: "",
    meaning: "",
    params: &[],
    needs: &[],
    unit: Unit::MegabytesPerSecond,
    better: Better::More,
    section: CostSection::Bandwidths,
    columns: &[],
    open: |_| Err(io::ErrorKind::Unsupported.into()),
};

fn claimed(values: &Values) -> io::Result<Vec<u64>> {
    let bytes = values.number("size");
    area::claim_memory(bytes)?;
    area::words(bytes, 1)
}

/// 10^6 bytes a second, of so many words in that time.
pub(super) fn megabytes_per_second(words: usize, ns: f64) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "no area has 2^53 bytes")]
    let bytes = (words * size_of::<u64>()) as f64;
    bytes * 1e3 / ns
}

struct Copy {
    from: Vec<u64>,
    to: Vec<u64>,
    copy: fn(&[u64], &mut [u64]),
}

impl Operation for Copy {
    fn run(&mut self, iterations: u64) -> io::Result<()> {
        for _ in 0..iterations {
            (self.copy)(black_box(&self.from), &mut self.to);
            black_box(&mut self.to);
        }
        Ok(())
    }

    fn empty(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn value(&self, ns: f64) -> f64 {
        megabytes_per_second(self.from.len(), ns)
    }
}

struct Read {
    words: Vec<u64>,
}

impl Operation for Read {
    fn run(&mut self, iterations: u64) -> io::Result<()> {
        for _ in 0..iterations {
            black_box(words::sum(black_box(&self.words)));
        }
        Ok(())
    }

    fn empty(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn value(&self, ns: f64) -> f64 {
        megabytes_per_second(self.words.len(), ns)
    }
}

struct Write {
    words: Vec<u64>,
}

impl Operation for Write {
    fn run(&mut self, iterations: u64) -> io::Result<()> {
        for iteration in 0..iterations {
            words::store(&mut self.words, iteration);
            black_box(&mut self.words);
        }
        Ok(())
    }

    fn empty(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn value(&self, ns: f64) -> f64 {
        megabytes_per_second(self.words.len(), ns)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{fastest, timed, values};
    use super::*;

    #[test]
    fn a_larger_area_takes_longer_and_all_of_it_counts() {
        for (entry, key, words) in
            [(&COPY, "how", ["libc", "hand"]), (&MEMORY, "op", ["read", "write"])]
        {
            for word in words {
                let sizes = ["16K", "256K"];
                let [small, large] =
                    fastest(sizes.map(|size| timed(entry, &[(key, word), ("size", size)])));
                assert!(large > 4.0 * small, "{} {word}: {small} and {large} ns", entry.name);
            }
            // 8 MiB in 8388.608 us.
            assert_eq!(timed(entry, &[]).value(8_388_608.0), 1000.0);
        }
    }

    #[test]
    fn what_is_copied_arrives() {
        let (from, to) = (vec![3; 1000], vec![0; 1000]);
        let mut copy = Copy { from, to, copy: words::copy_by_hand };
        copy.run(1).unwrap();
        assert_eq!(copy.to, copy.from);
    }

    #[test]
    fn an_area_beyond_the_memory_is_an_error() {
        for entry in [&COPY, &MEMORY] {
            let Err(error) = (entry.open)(&values(entry, &[("size", "64T")])) else { panic!() };
            assert!(error.to_string().contains("more than half"), "{error}");
        }
    }
}
