//! The collector: once a second it drains the rings of every thread's series to disk and
//! counts the missed releases. It runs in the main thread, which is not real-time.

use std::sync::Arc;

use punctual_core::block::{Block, Late, Moments, Spell};
use punctual_core::format::Record;
use punctual_core::stats::{Behind, BySecond, Limits};

use super::by_phase::{BehindByPhase, PhaseLog};
use super::pending::{Complete, Pending};
use super::run_dir::CellFiles;
use super::stops::Witness;
use crate::recorder::Shared;

/// What was collected of one series of one thread.
#[derive(Debug)]
pub(super) struct Track {
    pub(super) thread: u32,
    pub(super) series: u32,
    shared: Arc<Shared>,
    pub(super) limits: Limits,
    /// What was taken and is not complete.
    pub(super) pending: Pending,
    /// Releases that late samples missed.
    pub(super) behind: Behind,
    /// The same by phase of the load.
    pub(super) behind_by_phase: BehindByPhase,
    /// All blocks so far.
    pub(super) moments: Moments,
    /// The last block.
    pub(super) last: Moments,
    /// Spells of lateness so far; the last ones come with the recording.
    pub(super) spells: Vec<Spell>,
    /// The second after the last block.
    seconds: u64,
}

impl Track {
    pub(super) fn new(thread: u32, series: u32, shared: Arc<Shared>, limits: Limits) -> Self {
        Self {
            thread,
            series,
            shared,
            limits,
            pending: Pending::default(),
            behind: Behind::default(),
            behind_by_phase: BehindByPhase::default(),
            moments: Moments::EMPTY,
            last: Moments::EMPTY,
            spells: Vec::new(),
            seconds: 0,
        }
    }

    /// The second after the last block.
    pub(super) fn seconds(&self) -> u64 {
        self.seconds
    }

    /// Writes what is complete, `all` at the end; returns whether there was anything.
    fn write(
        &mut self,
        files: &mut CellFiles,
        course: &mut BySecond,
        phases: Option<&PhaseLog>,
        all: bool,
    ) -> bool {
        let Complete { late, spells, blocks } =
            self.pending.complete(self.thread, &self.limits, all);
        let any = !(late.is_empty() && spells.is_empty() && blocks.is_empty());
        // On disk before the blocks: whoever reads a cell that was cut short needs them together.
        for late in late {
            self.behind.add(late.latency, late.missed, &self.limits);
            if let Some(log) = phases.filter(|_| self.series == 0) {
                let missed = (late.latency, late.missed);
                self.behind_by_phase.add(log, late.at, missed, &self.limits);
            }
            files.push(&Record::Late(Late { series: self.series, ..late }));
        }
        for spell in spells {
            self.spells.push(spell);
            files.push(&Record::Spell(spell));
        }
        for block in blocks {
            // One that stands for several seconds may come after those of its long samples.
            let index = block.index.max(self.seconds);
            self.moments.merge(&block.moments);
            self.last = block.moments;
            self.seconds = index + 1;
            if self.series == 0 {
                course.add(index, &block.moments, block.moments.exceeded > 0);
            }
            files.push(&Record::Block(Block { series: self.series, index, ..block }));
        }
        any
    }
}

/// Drains all tracks of a cell.
#[derive(Debug, Default)]
pub(super) struct Collector {
    pub(super) tracks: Vec<Track>,
    /// The primary series of all threads.
    pub(super) course: BySecond,
    /// When loads were at work, if the load changes.
    pub(super) phases: Option<PhaseLog>,
}

impl Collector {
    /// Takes what simulated time has published, once all of its threads wait for that or have ended;
    /// returns whether there was anything.
    pub(super) fn drain_in_turn(&mut self, files: &mut CellFiles, witness: &mut Witness) -> bool {
        if !self.tracks.iter().all(|track| track.shared.turn.is_over()) {
            return false;
        }
        let any = self.drain(files, witness, false);
        self.tracks.iter().for_each(|track| track.shared.turn.next());
        any
    }

    /// Takes everything that is published, leaves out what was late by a stop that the witness saw, and
    /// writes the rest, as far as it is complete or, at the end, all; returns whether there was
    /// anything.
    pub(super) fn drain(
        &mut self,
        files: &mut CellFiles,
        witness: &mut Witness,
        all: bool,
    ) -> bool {
        let mut any = false;
        for track in &mut self.tracks {
            any |= track.pending.take(&track.shared, track.thread, &track.limits);
        }
        // Of all threads together, since a stop is of all.
        let samples: Vec<_> =
            self.tracks.iter().flat_map(|track| track.pending.samples()).collect();
        let mut stops = witness.decide(&samples).into_iter();
        for track in &mut self.tracks {
            let of = (track.thread, &track.limits);
            track.pending.decide(of, &mut stops, |stop, held| witness.count(stop, held));
        }
        witness.write(files);
        for track in &mut self.tracks {
            any |= track.write(files, &mut self.course, self.phases.as_ref(), all);
        }
        any
    }

    /// Seconds of the cell for which every thread has published its block.
    pub(super) fn seconds(&self) -> u64 {
        self.primary().map(|track| track.seconds).min().unwrap_or(0)
    }

    /// The primary series of each thread.
    pub(super) fn primary(&self) -> impl Iterator<Item = &Track> {
        self.tracks.iter().filter(|track| track.series == 0)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use std::sync::atomic::{AtomicU32, Ordering};

    use proptest::prelude::*;
    use punctual_core::format::Reader;
    use punctual_core::histogram::SignedSparse;
    use punctual_core::units::SECOND_NS;

    use super::super::run_dir::RunDir;
    use super::*;
    use crate::recorder::Recorder;
    use crate::recorder::phases::PhaseClock;

    #[test]
    fn a_late_sample_is_on_disk_before_the_block_that_counts_it() {
        let path = std::env::temp_dir().join(format!("punctual-collector-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        let mut files = RunDir::create(&path).unwrap().cell("00-x").unwrap();
        let limits = Limits { interval: 1_000_000, ..Limits::NONE };
        let mut recorder = Recorder::new(limits);
        let track = Track::new(0, 0, recorder.shared(), limits);
        let mut collector = Collector { tracks: vec![track], ..Collector::default() };
        recorder.begin(0);
        recorder.record(5, 3_000_000, 3);
        // Its second is over.
        recorder.record(SECOND_NS + 5, 1, 0);
        assert!(collector.drain(&mut files, &mut Witness::new(0), false));
        let (bytes, _) = files.read_back(1 << 20).unwrap();
        let kind = |record| match record {
            Record::Late(late) => ("late", late.missed),
            Record::Block(block) => ("block", block.moments.missed),
            other => panic!("{other:?}"),
        };
        assert_eq!(Reader::new(&bytes).map(kind).collect::<Vec<_>>(), [("late", 3), ("block", 3)]);
        fs::remove_dir_all(&path).unwrap();
    }

    /// What a run has in the end, by thread and series.
    #[derive(Debug, PartialEq)]
    struct Whole {
        records: Vec<Record>,
        spells: Vec<Vec<Spell>>,
        totals: Vec<(Moments, SignedSparse, Vec<i64>, u64)>,
        phases: Vec<Vec<(Moments, SignedSparse)>>,
        behind: Vec<Behind>,
        course: Vec<(Moments, Moments, u64)>,
    }

    /// A sample of a track: when it was taken, its latency and the releases that it missed.
    type Sample = (u64, i64, u64);

    /// Records samples, drained after each so many of them, with recorders that hold long ones or not.
    fn whole(
        tracks: &[Vec<Sample>; 3],
        limits: Limits,
        every: usize,
        holds: bool,
        witness: &mut Witness,
    ) -> Whole {
        static RUNS: AtomicU32 = AtomicU32::new(0);
        let number = RUNS.fetch_add(1, Ordering::Relaxed);
        let name = format!("punctual-held-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        let mut files = RunDir::create(&path).unwrap().cell("00-x").unwrap();
        let clock = Arc::new(PhaseClock::new([2, 1].into_iter()));
        clock.always_works();
        // Two threads, one with a second series.
        let places = [(0, 0, limits), (0, 1, Limits::NONE), (1, 0, limits)];
        let mut recorders = places.map(|(_, series, limits)| {
            let recorder = Recorder::of_series(series, 2, limits, Some(&clock));
            if holds { recorder.holding() } else { recorder }
        });
        let track = |(place, recorder): (&(u32, u32, Limits), &Recorder)| {
            Track::new(place.0, place.1, recorder.shared(), place.2)
        };
        let all = places.iter().zip(&recorders).map(track).collect();
        let mut collector = Collector { tracks: all, ..Collector::default() };
        for recorder in &mut recorders {
            recorder.begin(0);
        }
        let most = tracks.iter().map(Vec::len).max().unwrap_or(0);
        for number in 0..most {
            for (recorder, samples) in recorders.iter_mut().zip(tracks) {
                if let Some((at, latency, missed)) = samples.get(number) {
                    recorder.record(*at, *latency, *missed);
                }
            }
            if number % every == 0 {
                collector.drain(&mut files, witness, false);
            }
        }
        assert_eq!(
            recorders.each_ref().map(Recorder::samples),
            tracks.each_ref().map(|samples| samples.len() as u64)
        );
        let mut recordings = recorders.map(Recorder::finish);
        collector.drain(&mut files, witness, true);
        let (bytes, _) = files.read_back(64 << 20).unwrap();
        fs::remove_dir_all(&path).unwrap();
        for (track, recording) in collector.tracks.iter_mut().zip(&mut recordings) {
            recording.put_back(&mut track.pending.returned, &track.limits);
            let last = track.pending.last_spells(recording.spell);
            track.spells.extend(last.into_iter().map(|one| Spell { thread: track.thread, ..one }));
        }
        // Each kind in its own order, and by series.
        let mut records: Vec<_> =
            Reader::new(&bytes).filter(|one| !matches!(one, Record::Spell(_))).collect();
        records.sort_by_key(|one| match one {
            Record::Late(late) => (0, late.thread, late.series),
            Record::Block(block) => (1, block.thread, block.series),
            _ => (2, 0, 0),
        });
        let of_tracks = || collector.tracks.iter();
        Whole {
            records,
            spells: of_tracks().map(|track| track.spells.clone()).collect(),
            behind: of_tracks().map(|track| track.behind.clone()).collect(),
            course: of_tracks().map(|track| (track.moments, track.last, track.seconds)).collect(),
            totals: recordings
                .iter()
                .map(|one| {
                    let mut worst: Vec<_> = one.outliers.iter().map(|one| one.latency).collect();
                    worst.sort_unstable();
                    (one.moments, one.histogram.sparse(), worst, one.left_out)
                })
                .collect(),
            phases: recordings
                .into_iter()
                .map(|one| {
                    let each = one.phases.map_or_else(Vec::new, |phases| phases.each);
                    each.into_iter().map(|one| (one.moments, one.histogram)).collect()
                })
                .collect(),
        }
    }

    const INTERVAL_NS: u64 = 2_000_000;

    /// Samples of a schedule whose releases are late by these times, and rarely far apart.
    fn samples() -> impl Strategy<Value = Vec<Sample>> {
        let latency = prop_oneof![
            8 => -9_000..1_000_000_i64,
            2 => 1_000_000..5_000_000_i64,
            1 => 5_000_000..400_000_000_i64,
            1 => 5_000_000..9_000_000_i64,
        ];
        let pause = prop_oneof![20 => 0..3_u64, 1 => 0..700_u64];
        prop::collection::vec((latency, pause), 1..300).prop_map(|drawn| {
            let mut release = 10_000_u64;
            let sample = |(latency, pause): (i64, u64)| {
                let missed = latency.max(0).unsigned_abs() / INTERVAL_NS;
                let at = release + 10_000;
                let sample = (at.saturating_add_signed(latency), latency, missed);
                release += (missed + 1 + pause) * INTERVAL_NS;
                sample
            };
            drawn.into_iter().map(sample).collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_run_without_stops_is_the_same_whether_long_samples_are_held_or_not(
            tracks in [samples(), samples(), samples()],
            deadline in prop_oneof![Just(1_500_000), Just(20_000_000), Just(i64::MAX)],
            threshold in prop_oneof![Just(3_000_000), Just(6_000_000), Just(i64::MAX)],
            every in 1_usize..60,
        ) {
            let limits = Limits { deadline, threshold, interval: INTERVAL_NS };
            let mut witness = Witness::new(0);
            let held = whole(&tracks, limits, every, true, &mut witness);
            prop_assert_eq!(held, whole(&tracks, limits, every, false, &mut witness));
        }
    }

    #[test]
    fn what_was_late_by_a_stop_is_in_no_number_and_counted_as_left_out() {
        let ms = 1_000_000;
        let limits = Limits { deadline: 3_000_000, threshold: 1_000_000, interval: ms };
        // Two threads are stopped from 1.1 s to 3.1 s; the second one was late before.
        let of = |late: u64| {
            let mut all: Vec<Sample> = vec![(900 * ms, 9_500_000, 9)];
            all.extend((901..1_100).map(|at| (at * ms, 1_000, 0)));
            all.push((3_100 * ms + late, (2_000 * ms + late).cast_signed(), 2_000));
            all.extend((3_101..3_200).map(|at| (at * ms, 1_000, 0)));
            all
        };
        let mut witness = Witness::new(0);
        witness.was_continued_between(1_050 * ms, 3_101 * ms);
        let tracks = [of(1), vec![(5, 5, 0)], of(2)];
        let found = whole(&tracks, limits, 1, true, &mut witness);
        let (moments, ..) = &found.totals[0];
        assert_eq!((moments.count, moments.missed, moments.max), (299, 9, 9_500_000));
        assert_eq!(found.spells[0].len(), 1);
        assert_eq!(found.behind[2].counts.total(), 9);
        let stop = found.records.iter().rev().find_map(|one| match one {
            Record::Stop { number: 0, stop } => Some(stop.clone()),
            _ => None,
        });
        let stop = stop.unwrap();
        assert_eq!((stop.samples, stop.missed, stop.max_ns), (2, 4_000, 2_000 * ms + 2));
        assert_eq!((stop.from_ns, stop.length_ns), (1_100 * ms, Some(2_000 * ms + 2)));
        // Nobody saw it: all of it counts.
        let found = whole(&tracks, limits, 1, true, &mut Witness::new(0));
        let (moments, ..) = &found.totals[0];
        assert_eq!((moments.missed, moments.max), (2_009, (2_000 * ms + 1).cast_signed()));
        assert_eq!(moments.exceeded, 2);
    }
}
