//! The binary records of a cell: frames that survive a crash and flipped bits.
//!
//! A file is a sequence of frames: marker (2 bytes), length of the payload
//! (u32), CRC-32 of length and payload, payload. The first byte of a payload is
//! its kind; numbers are LEB128, signed ones zigzag. A reader that meets a
//! damaged frame looks for the next whole one: an unreadable record counts as
//! absent, and is counted. docs/run-format.md describes every kind.

use crate::block::{Block, Late, Moments, Outlier};
use crate::histogram::{BINS, Histogram};
use crate::units::SECOND_NS;

const MARKER: [u8; 2] = [0xB5, 0x1A];
const HEAD: usize = 10;
const MAX_PAYLOAD: usize = 1 << 24;
/// More than any counter of a block or bin can reach (a century at 50 kHz); records
/// beyond it are damage, and sums over a run stay within u64.
const MAX_COUNT: u64 = 1 << 48;
/// The seconds of which u64 holds the nanoseconds.
const MAX_SECOND: u64 = u64::MAX / SECOND_NS - 1;

/// Which of a thread's distributions a histogram record holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Samples of zero and above.
    Positive,
    /// Magnitudes of the samples below zero.
    Negative,
    /// What the missed releases would have seen: with `Positive` and `Negative` the corrected distribution.
    Behind,
}

/// One record of a cell's files.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// A finished block.
    Block(Block),
    /// A sample that missed releases.
    Late(Late),
    /// The cumulative work of one part of the load at the end of a second.
    Work {
        /// Seconds since the cell's start.
        second: u64,
        /// Number of the part of the load.
        part: u32,
        /// Its counters, in the order of `load_work[].counters`.
        totals: Vec<u64>,
    },
    /// How the CPUs' time was spent in one second, in thousandths of all CPUs.
    System {
        /// Seconds since the cell's start.
        second: u64,
        /// Not idle.
        busy: u32,
        /// Given to others by the hypervisor.
        steal: u32,
    },
    /// A histogram, lossless.
    Histogram {
        /// Number of the thread.
        thread: u32,
        /// Number of the series.
        series: u32,
        /// Which distribution.
        part: Part,
        /// The counts.
        counts: Histogram,
    },
    /// The worst samples of a thread, latest first is not promised.
    Outliers {
        /// Number of the thread.
        thread: u32,
        /// The samples.
        samples: Vec<Outlier>,
    },
}

const BLOCK: u8 = 1;
const LATE: u8 = 2;
const WORK: u8 = 3;
const SYSTEM: u8 = 4;
const HISTOGRAM: u8 = 5;
const OUTLIERS: u8 = 6;

/// Appends `record` as one frame to `out`.
pub fn encode(record: &Record, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&MARKER);
    out.extend_from_slice(&[0; HEAD - 2]);
    payload(record, out);
    let length = u32::try_from(out.len() - start - HEAD).unwrap_or(u32::MAX).to_le_bytes();
    let crc = checksum(length, &out[start + HEAD..]).to_le_bytes();
    out[start + 2..start + 6].copy_from_slice(&length);
    out[start + 6..start + HEAD].copy_from_slice(&crc);
}

fn checksum(length: [u8; 4], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&length);
    hasher.update(payload);
    hasher.finalize()
}

fn payload(record: &Record, out: &mut Vec<u8>) {
    match record {
        Record::Block(block) => {
            out.push(BLOCK);
            unsigned(out, block.thread);
            unsigned(out, block.index);
            moments(out, &block.moments);
            unsigned(out, block.coarse.len() as u64);
            let mut last = 0;
            for (bin, count) in &block.coarse {
                signed(out, i128::from(*bin) - last);
                unsigned(out, *count);
                last = i128::from(*bin);
            }
        }
        Record::Late(late) => {
            out.push(LATE);
            unsigned(out, late.thread);
            unsigned(out, late.at);
            unsigned(out, late.latency);
            unsigned(out, late.missed);
        }
        Record::Work { second, part, totals } => {
            out.push(WORK);
            unsigned(out, *second);
            unsigned(out, *part);
            unsigned(out, totals.len() as u64);
            for total in totals {
                unsigned(out, *total);
            }
        }
        Record::System { second, busy, steal } => {
            out.push(SYSTEM);
            unsigned(out, *second);
            unsigned(out, *busy);
            unsigned(out, *steal);
        }
        Record::Histogram { thread, series, part, counts } => {
            out.push(HISTOGRAM);
            unsigned(out, *thread);
            unsigned(out, *series);
            out.push(*part as u8);
            unsigned(out, counts.iter().count() as u64);
            let mut last = 0;
            for (bin, count) in counts.iter() {
                unsigned(out, (bin - last) as u64);
                unsigned(out, count);
                last = bin;
            }
        }
        Record::Outliers { thread, samples } => {
            out.push(OUTLIERS);
            unsigned(out, *thread);
            unsigned(out, samples.len() as u64);
            for sample in samples {
                unsigned(out, sample.at);
                signed(out, i128::from(sample.latency));
            }
        }
    }
}

fn moments(out: &mut Vec<u8>, m: &Moments) {
    for value in [m.count, m.missed, m.early, m.exceeded, m.max_at] {
        unsigned(out, value);
    }
    signed(out, i128::from(m.min));
    signed(out, i128::from(m.max));
    signed(out, m.sum);
    unsigned(out, m.sum_sq);
}

fn unsigned(out: &mut Vec<u8>, value: impl Into<u128>) {
    let mut value = value.into();
    while value >= 0x80 {
        out.push((value & 0x7F) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7F) as u8);
}

fn signed(out: &mut Vec<u8>, value: i128) {
    #[allow(clippy::cast_sign_loss, reason = "zigzag keeps every bit")]
    unsigned(out, ((value << 1) ^ (value >> 127)) as u128);
}

/// Reads the frames of a file; damaged stretches are passed over and counted.
#[derive(Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Stretches that were not whole frames, the torn end of a file included.
    pub damaged: u64,
    in_damage: bool,
}

impl<'a> Reader<'a> {
    /// Starts at the first byte of a file.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, damaged: 0, in_damage: false }
    }

    fn frame(&self) -> Option<&'a [u8]> {
        let head = self.bytes.get(self.at..self.at + HEAD)?;
        if head[..2] != MARKER {
            return None;
        }
        let length: [u8; 4] = head[2..6].try_into().ok()?;
        let size = u32::from_le_bytes(length) as usize;
        if size > MAX_PAYLOAD {
            return None;
        }
        let payload = self.bytes.get(self.at + HEAD..self.at + HEAD + size)?;
        (checksum(length, payload).to_le_bytes() == head[6..HEAD]).then_some(payload)
    }
}

impl Iterator for Reader<'_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        while self.at < self.bytes.len() {
            let Some(payload) = self.frame() else {
                if !self.in_damage {
                    self.damaged += 1;
                    self.in_damage = true;
                }
                self.at += 1;
                continue;
            };
            self.at += HEAD + payload.len();
            self.in_damage = false;
            if let Some(record) = (Cursor { bytes: payload }).record() {
                return Some(record);
            }
            // A kind that a later minor version added is not damage.
            let known = payload.first().is_some_and(|kind| (BLOCK..=OUTLIERS).contains(kind));
            self.damaged += u64::from(known);
        }
        None
    }
}

struct Cursor<'a> {
    bytes: &'a [u8],
}

impl Cursor<'_> {
    fn record(&mut self) -> Option<Record> {
        match self.byte()? {
            BLOCK => self.block().map(Record::Block),
            LATE => Some(Record::Late(Late {
                thread: self.number()?,
                at: self.number()?,
                latency: self.number()?,
                missed: self.count()?,
            })),
            WORK => {
                let (second, part) = (self.second()?, self.number()?);
                let length = self.length()?;
                let totals = (0..length).map(|_| self.number()).collect::<Option<_>>()?;
                Some(Record::Work { second, part, totals })
            }
            SYSTEM => Some(Record::System {
                second: self.second()?,
                busy: self.number()?,
                steal: self.number()?,
            }),
            HISTOGRAM => self.histogram(),
            OUTLIERS => {
                let thread = self.number()?;
                let length = self.length()?;
                let samples = (0..length)
                    .map(|_| Some(Outlier { at: self.number()?, latency: self.signed_number()? }))
                    .collect::<Option<_>>()?;
                Some(Record::Outliers { thread, samples })
            }
            _ => None,
        }
    }

    fn block(&mut self) -> Option<Block> {
        let thread = self.number()?;
        let index = self.second()?;
        let [count, missed, early, exceeded] =
            [self.count()?, self.count()?, self.count()?, self.count()?];
        let max_at = self.number()?;
        let (min, max) = (self.signed_number()?, self.signed_number()?);
        let (sum, sum_sq) = (self.signed()?, self.unsigned()?);
        let length = self.length()?;
        let mut bin = 0_i64;
        let mut coarse = Vec::with_capacity(length);
        for _ in 0..length {
            bin = bin.checked_add(self.signed_number()?)?;
            let number = i16::try_from(bin).ok()?;
            if !(-232..232).contains(&number) {
                return None;
            }
            coarse.push((number, self.number()?));
        }
        let moments = Moments { count, missed, early, exceeded, min, max, max_at, sum, sum_sq };
        Some(Block { thread, index, moments, coarse })
    }

    fn histogram(&mut self) -> Option<Record> {
        let (thread, series) = (self.number()?, self.number()?);
        let part = match self.byte()? {
            0 => Part::Positive,
            1 => Part::Negative,
            2 => Part::Behind,
            _ => return None,
        };
        let length = self.length()?;
        let mut counts = Histogram::new();
        let mut bin = 0_usize;
        for number in 0..length {
            let step: usize = self.number()?;
            bin = bin.checked_add(step)?;
            // A bin that comes twice is damage too.
            if bin >= BINS || number > 0 && step == 0 {
                return None;
            }
            counts.add(bin, self.count()?);
        }
        Some(Record::Histogram { thread, series, part, counts })
    }

    fn count(&mut self) -> Option<u64> {
        self.number().filter(|count| *count <= MAX_COUNT)
    }

    fn second(&mut self) -> Option<u64> {
        self.number().filter(|second| *second <= MAX_SECOND)
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    fn unsigned(&mut self) -> Option<u128> {
        let mut value = 0_u128;
        for shift in (0..).step_by(7) {
            let byte = self.byte()?;
            let bits = u128::from(byte & 0x7F);
            if shift >= 128 || bits << shift >> shift != bits {
                return None;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    #[allow(clippy::cast_possible_wrap, reason = "zigzag keeps every bit")]
    fn signed(&mut self) -> Option<i128> {
        let value = self.unsigned()?;
        Some((value >> 1) as i128 ^ -((value & 1) as i128))
    }

    fn number<T: TryFrom<u128>>(&mut self) -> Option<T> {
        T::try_from(self.unsigned()?).ok()
    }

    fn signed_number(&mut self) -> Option<i64> {
        i64::try_from(self.signed()?).ok()
    }

    /// A number of elements: each takes a byte at least, which bounds what is allocated.
    fn length(&mut self) -> Option<usize> {
        self.number::<usize>().filter(|n| *n <= self.bytes.len())
    }
}

#[cfg(test)]
mod tests;
