//! Sections of one kind while they are found: how many, how long, between which addresses.

use std::collections::HashMap;

use punctual_core::histogram::Histogram;
use punctual_observer::event::Event;

/// Instructions in each part of the course of which the longest section is kept: 65 us.
const PART: u64 = 1 << 14;

/// Powers of two that lengths in instructions are told apart by.
const POWERS: usize = 40;

/// One section, in instructions executed; instructions that fault count once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sighting {
    pub(super) from: u64,
    pub(super) to: u64,
    /// How often the CPU had been idle before it began.
    pub(super) idles: u64,
    /// How many samples of its cell had been taken before.
    pub(super) samples: usize,
    /// For how much of it interrupts were off.
    pub(super) off: u64,
    /// When they were on first for a release that is aimed at it.
    pub(super) on: u64,
    /// Address of what began it.
    pub(super) began: u64,
    /// Address of what ended it.
    pub(super) ended: u64,
    /// Whether that only looked whether it is to give way, and went on.
    pub(super) looked: bool,
}

impl Sighting {
    pub(super) const fn length(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }
}

/// What was executed in a section and before.
#[derive(Debug)]
pub(super) struct Recording {
    pub(super) events: Vec<Event>,
    /// When the section began and ended, as these events count.
    pub(super) from: u64,
    pub(super) to: u64,
}

/// The sections between two addresses.
#[derive(Debug, Clone, Copy)]
pub(super) struct Between {
    pub(super) count: u64,
    pub(super) total: u64,
    pub(super) max: u64,
    /// By the power of two that the length in instructions is at least.
    pub(super) powers: [u64; POWERS],
}

/// All sections of one kind.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) count: u64,
    pub(super) total: u64,
    /// In ns.
    pub(super) lengths: Histogram,
    pub(super) between: HashMap<(u64, u64), Between>,
    /// The longest with what was executed, in descending order.
    pub(super) longest: Vec<(Sighting, Recording)>,
    /// The longest of each part of the course, in order.
    pub(super) peaks: Vec<Sighting>,
    wanted: usize,
    instruction_ns: u64,
}

impl Tally {
    /// Keeps so many of the longest.
    pub(super) fn new(wanted: usize, instruction_ns: u64) -> Self {
        Self {
            count: 0,
            total: 0,
            lengths: Histogram::new(),
            between: HashMap::new(),
            longest: Vec::new(),
            peaks: Vec::new(),
            wanted,
            instruction_ns,
        }
    }

    pub(super) fn add(&mut self, found: Sighting, recording: Option<Recording>) {
        let length = found.length();
        self.count += 1;
        self.total += length;
        self.lengths.record(length.saturating_mul(self.instruction_ns));
        let power = (length.max(1).ilog2() as usize).min(POWERS - 1);
        let none = Between { count: 0, total: 0, max: 0, powers: [0; POWERS] };
        let between = self.between.entry((found.began, found.ended)).or_insert(none);
        between.count += 1;
        between.total += length;
        between.max = between.max.max(length);
        between.powers[power] += 1;
        match self.peaks.last_mut() {
            Some(last) if last.from / PART == found.from / PART => {
                if last.length() < length {
                    *last = found;
                }
            }
            _ => self.peaks.push(found),
        }
        if let Some(recording) = recording {
            let place = self.longest.partition_point(|(known, _)| known.length() >= length);
            self.longest.insert(place, (found, recording));
            self.longest.truncate(self.wanted);
        }
    }

    /// The longest, in instructions.
    pub(super) fn max(&self) -> u64 {
        self.peaks.iter().map(Sighting::length).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(from: u64, length: u64, began: u64) -> Sighting {
        Sighting {
            from,
            to: from + length,
            idles: 0,
            samples: 0,
            off: 0,
            on: from,
            began,
            ended: 9,
            looked: false,
        }
    }

    #[test]
    fn everything_is_counted_and_the_longest_are_kept() {
        let mut tally = Tally::new(2, 4);
        let recording = || Some(Recording { events: Vec::new(), from: 0, to: 0 });
        for (from, length, began) in [(0, 100, 1), (200, 700, 1), (1_000, 50, 2), (PART, 300, 1)] {
            tally.add(found(from, length, began), recording());
        }
        tally.add(found(PART + 400, 10, 2), None);
        assert_eq!((tally.count, tally.total, tally.max()), (5, 1_160, 700));
        assert_eq!(tally.lengths.total(), 5);
        let lengths: Vec<u64> = tally.longest.iter().map(|(of, _)| of.length()).collect();
        assert_eq!(lengths, [700, 300]);
        let peaks: Vec<(u64, u64)> = tally.peaks.iter().map(|of| (of.from, of.length())).collect();
        assert_eq!(peaks, [(200, 700), (PART, 300)]);
        let between = tally.between[&(1, 9)];
        assert_eq!((between.count, between.total, between.max), (3, 1_100, 700));
        assert_eq!((between.powers[6], between.powers[8], between.powers[9]), (1, 1, 1));
    }
}
