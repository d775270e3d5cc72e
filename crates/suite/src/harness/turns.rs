//! Which phase of a schedule is due at an instant, if it repeats.

use super::phased::PhasedSpec;

/// The turns of a schedule: its phases, counted over all repeats.
#[derive(Debug, Clone)]
pub(super) struct Turns {
    /// When each phase ends, ns after the start of the schedule.
    ends: Vec<u64>,
}

impl Turns {
    pub(super) fn of(spec: &PhasedSpec) -> Self {
        let sum = |sum: &mut u64, for_ns: u64| {
            *sum = sum.saturating_add(for_ns);
            Some(*sum)
        };
        Self { ends: spec.phases().iter().map(|phase| phase.for_ns).scan(0, sum).collect() }
    }

    /// Whether there is more than one.
    pub(super) fn are_several(&self) -> bool {
        self.ends.len() > 1
    }

    /// The number of its phase, from 0.
    pub(super) fn phase(&self, turn: u64) -> usize {
        usize::try_from(turn % self.ends.len().max(1) as u64).unwrap_or(0)
    }

    /// When a turn ends, ns after the cell's start.
    pub(super) fn end_ns(&self, turn: u64) -> u64 {
        let once = self.ends.last().copied().unwrap_or(u64::MAX);
        let repeats = turn / self.ends.len().max(1) as u64;
        let within = self.ends.get(self.phase(turn)).copied().unwrap_or(u64::MAX);
        repeats.saturating_mul(once).saturating_add(within)
    }

    /// The turn that is due at an instant, ns after the cell's start.
    pub(super) fn at(&self, ns: u64) -> u64 {
        let once = self.ends.last().copied().unwrap_or(u64::MAX).max(1);
        let within = self.ends.partition_point(|end| *end <= ns % once);
        (ns / once) * self.ends.len() as u64 + within as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_repeats() {
        let spec = PhasedSpec::parse("none for 5s then copy for 2s then none for 3s").unwrap();
        let turns = Turns::of(&spec);
        let second = punctual_core::units::SECOND_NS;
        let ends: Vec<_> = (0..7).map(|turn| turns.end_ns(turn) / second).collect();
        assert_eq!(ends, [5, 7, 10, 15, 17, 20, 25]);
        for (at, turn, phase) in
            [(0, 0, 0), (5 * second - 1, 0, 0), (5 * second, 1, 1), (17 * second, 5, 2)]
        {
            assert_eq!((turns.at(at), turns.phase(turn)), (turn, phase));
        }
        let one = Turns::of(&PhasedSpec::parse("copy").unwrap());
        assert_eq!((one.end_ns(0), one.at(u64::MAX - 1), one.are_several()), (u64::MAX, 0, false));
    }
}
