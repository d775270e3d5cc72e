//! Which phase of a schedule is due at an instant, if it repeats.

/// The turns of a schedule: its phases, counted over all repeats. Its times are in the unit of the
/// lengths that it is made of.
#[derive(Debug, Clone)]
pub(crate) struct Turns {
    /// When each phase ends, after the start of the schedule.
    ends: Vec<u64>,
}

impl Turns {
    /// Of phases with these lengths.
    pub(crate) fn of(lengths: impl Iterator<Item = u64>) -> Self {
        let sum = |sum: &mut u64, length: u64| {
            *sum = sum.saturating_add(length);
            Some(*sum)
        };
        Self { ends: lengths.scan(0, sum).collect() }
    }

    /// How many phases there are.
    pub(crate) fn phases(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is more than one.
    pub(super) fn are_several(&self) -> bool {
        self.ends.len() > 1
    }

    /// The number of its phase, from 0.
    pub(crate) fn phase(&self, turn: u64) -> usize {
        usize::try_from(turn % self.ends.len().max(1) as u64).unwrap_or(0)
    }

    /// When a turn ends, after the cell's start.
    pub(super) fn end(&self, turn: u64) -> u64 {
        let once = self.ends.last().copied().unwrap_or(u64::MAX);
        let repeats = turn / self.ends.len().max(1) as u64;
        let within = self.ends.get(self.phase(turn)).copied().unwrap_or(u64::MAX);
        repeats.saturating_mul(once).saturating_add(within)
    }

    /// The turn that is due at an instant after the cell's start.
    pub(crate) fn at(&self, instant: u64) -> u64 {
        let once = self.ends.last().copied().unwrap_or(u64::MAX).max(1);
        let within = self.ends.partition_point(|end| *end <= instant % once);
        (instant / once) * self.ends.len() as u64 + within as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_repeats() {
        let second = punctual_core::units::SECOND_NS;
        let turns = Turns::of([5, 2, 3].into_iter().map(|length| length * second));
        let ends: Vec<_> = (0..7).map(|turn| turns.end(turn) / second).collect();
        assert_eq!(ends, [5, 7, 10, 15, 17, 20, 25]);
        for (at, turn, phase) in
            [(0, 0, 0), (5 * second - 1, 0, 0), (5 * second, 1, 1), (17 * second, 5, 2)]
        {
            assert_eq!((turns.at(at), turns.phase(turn)), (turn, phase));
        }
        let one = Turns::of([u64::MAX].into_iter());
        assert_eq!((one.end(0), one.at(u64::MAX - 1), one.are_several()), (u64::MAX, 0, false));
    }
}
