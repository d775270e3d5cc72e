//! The phases of a cell whose load changes on a schedule.

use serde::{Deserialize, Serialize};

use super::stats::{Stats, in_ns};
use crate::units::SECOND_NS;

/// One phase of a cell's load, in the order of the schedule.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadPhase {
    /// The load in canonical form.
    pub load: String,
    /// How long it lasts each time, from the end of the one before, ns.
    pub for_ns: u64,
    /// When its load was at work, in the order of time: several times if the schedule repeats.
    pub at_work: Vec<AtWork>,
    /// What the threads found in its seconds.
    #[serde(flatten)]
    pub found: PhaseFound,
}

/// A stretch in which the load of a phase was at work: from the instant at which every part of it
/// had shown that to the one at which it was to end, by the schedule or with the cell. Both by
/// `CLOCK_MONOTONIC`, ns after the cell's start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtWork {
    /// When it had begun.
    pub from_ns: u64,
    /// When it was to end.
    pub to_ns: u64,
}

/// What all threads found in some seconds of a cell, in the primary series.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseFound {
    /// How many seconds these are: those that began while the load was at work, and no others.
    pub seconds: u64,
    /// Statistics of the samples that were taken in them.
    #[serde(flatten, with = "in_ns")]
    pub stats: Stats,
    /// Instant (`CLOCK_MONOTONIC`) of the largest sample, ns after the cell's start.
    #[serde(default)]
    pub max_at_ns: Option<u64>,
    /// Activations later than the deadline, missed ones included; `None` without a deadline, or
    /// if that is not known.
    #[serde(default)]
    pub late: Option<u64>,
}

/// Where an instant of a cell lies in the schedule of its load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PhaseAt<'a> {
    /// In a second of this phase, numbered from 1.
    Phase(usize, &'a LoadPhase),
    /// In a second in which the load changed, or was not at work.
    Change,
}

/// Which phase each second of a cell belongs to.
#[derive(Debug, Clone, Default)]
pub struct PhaseSeconds {
    /// First second, the one after the last, number of the phase from 0; in the order of time.
    spans: Vec<(u64, u64, usize)>,
}

impl AtWork {
    /// The first second that began in it, and the first one that did not.
    fn seconds(&self) -> (u64, u64) {
        (self.from_ns.div_ceil(SECOND_NS), self.to_ns.div_ceil(SECOND_NS))
    }
}

impl LoadPhase {
    /// For how long its load was at work, ns.
    #[must_use]
    pub fn worked_ns(&self) -> u64 {
        let each = self.at_work.iter().map(|one| one.to_ns.saturating_sub(one.from_ns));
        each.fold(0, u64::saturating_add)
    }

    /// How many seconds began while its load was at work.
    #[must_use]
    pub fn seconds(&self) -> u64 {
        let each = self.at_work.iter().map(AtWork::seconds);
        each.fold(0, |sum, (from, to)| sum.saturating_add(to.saturating_sub(from)))
    }
}

impl PhaseSeconds {
    /// The seconds of some phases.
    #[must_use]
    pub fn of(phases: &[LoadPhase]) -> Self {
        let each = phases.iter().enumerate().flat_map(|(number, phase)| {
            phase.at_work.iter().map(move |one| (one.seconds(), number))
        });
        let mut spans: Vec<_> = each.map(|((from, to), number)| (from, to, number)).collect();
        spans.sort_unstable();
        Self { spans }
    }

    /// The number of the phase that a second belongs to, from 0; `None` if the load changed in it.
    #[must_use]
    pub fn phase_of(&self, second: u64) -> Option<usize> {
        let after = self.spans.partition_point(|(from, ..)| *from <= second);
        let (_, to, number) = *self.spans.get(after.checked_sub(1)?)?;
        (second < to).then_some(number)
    }
}

impl<'a> PhaseAt<'a> {
    /// Where an instant lies in the schedule of these phases, ns after the cell's start; `None`
    /// without any.
    #[must_use]
    pub fn of(phases: &'a [LoadPhase], at_ns: u64) -> Option<Self> {
        if phases.is_empty() {
            return None;
        }
        let number = PhaseSeconds::of(phases).phase_of(at_ns / SECOND_NS);
        let phase = number.and_then(|number| Some((number + 1, phases.get(number)?)));
        Some(phase.map_or(Self::Change, |(number, phase)| Self::Phase(number, phase)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_belongs_to_the_load_that_was_at_work_when_it_began() {
        let at = |from_ns, to_ns| AtWork { from_ns, to_ns };
        let second = SECOND_NS;
        let phases = [
            LoadPhase {
                at_work: vec![at(0, 2 * second), at(4 * second + 1, 6 * second)],
                ..LoadPhase::default()
            },
            LoadPhase {
                at_work: vec![at(3 * second, 4 * second), at(6 * second + 9, 7 * second + 5)],
                ..LoadPhase::default()
            },
        ];
        let seconds = PhaseSeconds::of(&phases);
        let numbers: Vec<_> = (0..10).map(|one| seconds.phase_of(one)).collect();
        let (a, b) = (Some(0), Some(1));
        // The cell was cut short within second 7.
        assert_eq!(numbers, [a, a, None, b, None, a, None, b, None, None]);
        assert_eq!([phases[0].seconds(), phases[1].seconds()], [3, 2]);
        assert_eq!(phases[0].worked_ns(), 4 * second - 1);
        assert_eq!(PhaseSeconds::of(&[]).phase_of(0), None);
    }
}
