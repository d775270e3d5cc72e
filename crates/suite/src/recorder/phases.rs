//! Samples by phase, for a load that changes on a schedule: a histogram each, exchanged between two
//! blocks, so that recording a sample knows nothing of phases.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use punctual_core::block::Moments;
use punctual_core::histogram::{SignedHistogram, SignedSparse};

use crate::harness::turns::Turns;

/// When which phase is due, and whether its load is at work. The main thread writes it, the threads
/// that measure read it once a second.
#[derive(Debug)]
pub struct PhaseClock {
    /// In seconds.
    turns: Turns,
    /// The turn whose load is at work, phases counted over all repeats, in the upper half, and the
    /// second from which on it is; [`ALWAYS`] if every load is at once.
    at_work: AtomicU64,
}

/// No change takes any time.
const ALWAYS: u64 = u64::MAX;

impl PhaseClock {
    /// A schedule by the lengths of its phases, in seconds. The load of the first one is at work.
    #[must_use]
    pub fn new(seconds: impl Iterator<Item = u64>) -> Self {
        Self { turns: Turns::of(seconds), at_work: AtomicU64::new(0) }
    }

    /// How many phases it has.
    #[must_use]
    pub fn phases(&self) -> usize {
        self.turns.phases()
    }

    /// The load of a turn is at work from a second on. Call it before that second begins: a thread
    /// that has begun it counts it as one in which the load changed.
    pub fn works(&self, turn: u64, from_second: u64) {
        self.at_work.store(turn << 32 | (from_second & u64::from(u32::MAX)), Ordering::Release);
    }

    /// Every load is at work as soon as it is due, as in simulated time.
    pub fn always_works(&self) {
        self.at_work.store(ALWAYS, Ordering::Release);
    }

    /// The place of a second: that of its phase, or behind them all if the load changes in it.
    fn place(&self, second: u64) -> usize {
        let turn = self.turns.at(second);
        let at_work = self.at_work.load(Ordering::Acquire);
        let (of, from) = (at_work >> 32, at_work & u64::from(u32::MAX));
        if at_work == ALWAYS || (of == turn && second >= from) {
            self.turns.phase(turn)
        } else {
            self.turns.phases()
        }
    }
}

/// What a thread recorded in the seconds of one phase.
#[derive(Debug, Clone, Default)]
pub struct PhaseRecording {
    /// Exact results.
    pub moments: Moments,
    /// The samples.
    pub histogram: SignedSparse,
}

/// What a thread recorded by phase, and last in the seconds of the changes.
#[derive(Debug, Clone, Default)]
pub struct PhasesRecorded {
    /// By phase.
    pub each: Vec<PhaseRecording>,
    /// Whether a block had to go on into another phase since nobody took those before it: it counts
    /// for the first one.
    pub mixed: bool,
}

/// The side of one recorder.
#[derive(Debug)]
pub(super) struct ByPhase {
    clock: Arc<PhaseClock>,
    /// Where samples are counted now.
    place: usize,
    /// By place; that of the current one is in the recorder.
    histograms: Vec<SignedHistogram>,
    moments: Vec<Moments>,
    mixed: bool,
}

impl ByPhase {
    pub(super) fn new(clock: Arc<PhaseClock>) -> Self {
        let places = clock.phases() + 1;
        Self {
            clock,
            place: 0,
            histograms: (0..places).map(|_| SignedHistogram::new()).collect(),
            moments: vec![Moments::EMPTY; places],
            mixed: false,
        }
    }

    /// Starts anew with the first phase, whose histogram `current` is; allocates nothing.
    pub(super) fn begin(&mut self, current: &mut SignedHistogram) {
        mem::swap(current, &mut self.histograms[self.place]);
        self.place = 0;
        self.histograms.iter_mut().for_each(SignedHistogram::clear);
        mem::swap(current, &mut self.histograms[0]);
        self.moments.fill(Moments::EMPTY);
        self.mixed = false;
    }

    /// Ends a block; the next one begins in this second.
    #[cold]
    pub(super) fn next(&mut self, block: &Moments, second: u64, current: &mut SignedHistogram) {
        self.moments[self.place].merge(block);
        let place = self.clock.place(second);
        if place != self.place {
            mem::swap(current, &mut self.histograms[self.place]);
            mem::swap(current, &mut self.histograms[place]);
            self.place = place;
        }
    }

    /// Where samples are counted now: the phase, or behind them all.
    pub(super) fn place(&self) -> usize {
        self.place
    }

    /// The block goes on in this second.
    #[cold]
    pub(super) fn goes_on(&mut self, second: u64) {
        self.mixed |= self.clock.place(second) != self.place;
    }

    /// Ends the last block; `current` then has the samples of all phases.
    pub(super) fn finish(
        mut self,
        block: &Moments,
        current: &mut SignedHistogram,
    ) -> PhasesRecorded {
        self.moments[self.place].merge(block);
        mem::swap(current, &mut self.histograms[self.place]);
        current.clear();
        let each = self.histograms.iter().zip(self.moments).map(|(histogram, moments)| {
            let histogram = histogram.sparse();
            current.merge(&histogram);
            PhaseRecording { moments, histogram }
        });
        PhasesRecorded { each: each.collect(), mixed: self.mixed }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Recorder, Recording};
    use super::*;
    use punctual_core::histogram::Sparse;
    use punctual_core::stats::Limits;
    use punctual_core::units::SECOND_NS;

    /// Two phases of 2 s each; `works` is called before the second that it names.
    fn recorded(works: &[(u64, u64, u64)], seconds: u64) -> Recording {
        let clock = Arc::new(PhaseClock::new([2, 2].into_iter()));
        let mut recorder = Recorder::new(Limits::NONE).by_phase(Arc::clone(&clock));
        recorder.record(5, 999, 0);
        recorder.begin(100);
        for second in 0..seconds {
            for (before, turn, from) in works {
                if *before == second {
                    clock.works(*turn, *from);
                }
            }
            recorder.record(100 + second * SECOND_NS, 10 + second.cast_signed(), 0);
            recorder.record(100 + second * SECOND_NS + 9, -5, 0);
        }
        recorder.finish()
    }

    fn total(counts: &SignedSparse) -> u64 {
        let of = |one: &Sparse| one.iter().map(|(_, count)| count).sum::<u64>();
        of(&counts.positive) + of(&counts.negative)
    }

    fn maxima(recording: &Recording) -> Vec<(u64, i64)> {
        let each = &recording.phases.as_ref().unwrap().each;
        for one in each {
            assert_eq!(total(&one.histogram), one.moments.count);
        }
        each.iter().map(|one| (one.moments.count, one.moments.max)).collect()
    }

    #[test]
    fn samples_count_for_the_phase_whose_load_is_at_work() {
        let none = i64::MIN;
        // Nobody said that the second load works.
        assert_eq!(maxima(&recorded(&[], 4)), [(4, 11), (0, none), (4, 13)]);
        // It works from second 3 on, as it was said within second 2.
        let recording = recorded(&[(3, 1, 3)], 4);
        assert_eq!(maxima(&recording), [(4, 11), (2, 13), (2, 12)]);
        // The schedule repeats, with a change of half a second and one that was told late.
        let recording = recorded(&[(3, 1, 3), (5, 2, 5), (7, 3, 7)], 8);
        assert_eq!(maxima(&recording), [(6, 15), (4, 17), (6, 16)]);
        let total = total(&recording.histogram.sparse());
        assert_eq!((total, recording.moments.count, recording.moments.max), (16, 16, 17));
        // What works is a load of another turn.
        assert_eq!(maxima(&recorded(&[(2, 5, 0)], 4)), [(4, 11), (0, none), (4, 13)]);
    }

    #[test]
    fn in_simulated_time_every_second_belongs_to_a_phase() {
        let clock = Arc::new(PhaseClock::new([2, 3].into_iter()));
        clock.always_works();
        let mut recorder = Recorder::new(Limits::NONE).by_phase(clock);
        recorder.begin(0);
        (0..10).for_each(|second| recorder.record(second * SECOND_NS, 1, 0));
        let counts: Vec<_> = maxima(&recorder.finish()).iter().map(|(count, _)| *count).collect();
        assert_eq!(counts, [4, 6, 0]);
    }

    #[test]
    fn a_block_that_goes_on_into_another_phase_is_told() {
        let clock = Arc::new(PhaseClock::new([2, 2].into_iter()));
        clock.always_works();
        // Nobody takes anything from its ring, which is soon full.
        let mut recorder = Recorder::with_blocks(Limits::NONE, 1).by_phase(clock);
        recorder.begin(0);
        let mut second = 0;
        while recorder.has_room() || second < 4 {
            recorder.record(second * SECOND_NS, 1, 0);
            second += 1;
        }
        (0..1_000).for_each(|more| recorder.record((second + more) * SECOND_NS, 1, 0));
        assert!(recorder.finish().phases.unwrap().mixed);
    }
}
