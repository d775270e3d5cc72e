//! Decodes the payload of a frame.

use super::record::kind::{
    ACTOR, BLOCK, HISTOGRAM, INTERVAL, LATE, OUTLIERS, PHASE, SPELL, STOP, SYSTEM, WORK,
};
use super::record::{MAX_COUNT, MAX_SECOND, Part, Record};
use crate::block::{Block, Late, Moments, Outlier, Spell, Strain, System};
use crate::histogram::Sparse;
use crate::interval::{Actor, Interval, MAX_NAME};
use crate::schema::{Stop, StoppedBy};

/// A payload, read from the front.
pub(super) struct Cursor<'a> {
    pub bytes: &'a [u8],
}

impl Cursor<'_> {
    /// The record; `None` if it is of an unknown kind or damaged.
    pub fn record(&mut self) -> Option<Record> {
        match self.byte()? {
            BLOCK => self.block().map(Record::Block),
            LATE => Some(Record::Late(Late {
                thread: self.number()?,
                series: self.number()?,
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
            SYSTEM => self.system().map(Record::System),
            HISTOGRAM => self.histogram(),
            OUTLIERS => {
                let (thread, series) = (self.number()?, self.number()?);
                let length = self.length()?;
                let samples = (0..length)
                    .map(|_| Some(Outlier { at: self.number()?, latency: self.signed_number()? }))
                    .collect::<Option<_>>()?;
                Some(Record::Outliers { thread, series, samples })
            }
            INTERVAL => {
                let (cpu, from) = (self.number()?, self.number::<u64>()?);
                let to = from.checked_add(self.number()?)?;
                Some(Record::Interval(Interval { cpu, from, to, actor: self.number()? }))
            }
            ACTOR => Some(Record::Actor(Actor { number: self.number()?, name: self.text()? })),
            SPELL => {
                let (thread, from) = (self.number()?, self.number::<u64>()?);
                let to = from.checked_add(self.number()?)?;
                let late = self.count().filter(|late| *late > 0)?;
                Some(Record::Spell(Spell { thread, from, to, late }))
            }
            PHASE => {
                let (phase, from) = (self.number()?, self.number::<u64>()?);
                let to = from.checked_add(self.number()?)?;
                Some(Record::Phase { phase, from, to })
            }
            STOP => {
                let (number, from_ns, length_ns) = (self.number()?, self.number()?, self.known()?);
                let by = *StoppedBy::ALL.get(self.number::<usize>()?)?;
                let [samples, missed, max_ns] = [self.number()?, self.number()?, self.number()?];
                let name = self.text()?;
                let stop = Stop { from_ns, length_ns, by, name, samples, missed, max_ns };
                Some(Record::Stop { number, stop })
            }
            _ => None,
        }
    }

    fn text(&mut self) -> Option<String> {
        let length = self.length().filter(|length| *length <= MAX_NAME)?;
        let text = str::from_utf8(self.bytes.get(..length)?).ok()?.to_owned();
        self.bytes = &self.bytes[length..];
        Some(text)
    }

    fn block(&mut self) -> Option<Block> {
        let (thread, series) = (self.number()?, self.number()?);
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
        Some(Block { thread, series, index, moments, coarse })
    }

    fn system(&mut self) -> Option<System> {
        Some(System {
            second: self.second()?,
            busy: self.number()?,
            steal: self.number()?,
            strain: self.strain()?,
        })
    }

    fn strain(&mut self) -> Option<Strain> {
        // Version 2.0 has none.
        if self.bytes.is_empty() {
            return Some(Strain::default());
        }
        Some(Strain {
            interrupts: self.known()?,
            switches: self.known()?,
            pressure: [self.known()?, self.known()?, self.known()?],
        })
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
        let mut counts = Sparse::default();
        // Each takes two bytes or more.
        counts.reserve((self.bytes.len() / 2).min(length));
        let mut bin = 0_usize;
        for _ in 0..length {
            bin = bin.checked_add(self.number()?)?;
            // A bin that occurs twice is damage too.
            if !counts.push(bin, self.count()?) {
                return None;
            }
        }
        Some(Record::Histogram { thread, series, part, counts })
    }

    /// A number that may be unknown.
    fn known<T: TryFrom<u128>>(&mut self) -> Option<Option<T>> {
        match self.unsigned()? {
            0 => Some(None),
            more => T::try_from(more - 1).ok().map(Some),
        }
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

    /// A number of elements. Each takes at least one byte, which bounds the allocation.
    fn length(&mut self) -> Option<usize> {
        self.number::<usize>().filter(|n| *n <= self.bytes.len())
    }
}
