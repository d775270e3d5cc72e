//! The collector: once a second it drains the rings of every thread's series to disk and
//! counts the missed releases. It runs in the main thread, which is not real-time.

use std::sync::Arc;

use punctual_core::block::{Moments, Spell};
use punctual_core::format::Record;
use punctual_core::stats::{Behind, BySecond, Limits};

use super::by_phase::{BehindByPhase, PhaseLog};
use super::run_dir::CellFiles;
use crate::recorder::Shared;

/// What was collected of one series of one thread.
#[derive(Debug)]
pub(super) struct Track {
    pub(super) thread: u32,
    pub(super) series: u32,
    shared: Arc<Shared>,
    pub(super) limits: Limits,
    /// Words taken from the ring of blocks.
    words_taken: u64,
    late_taken: u64,
    /// Releases that late samples missed.
    pub(super) behind: Behind,
    /// The same by phase of the load.
    pub(super) behind_by_phase: BehindByPhase,
    /// All blocks so far.
    pub(super) moments: Moments,
    /// The last block.
    pub(super) last: Moments,
    spells_taken: u64,
    /// Spells of lateness so far; the last one comes with the recording.
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
            words_taken: 0,
            late_taken: 0,
            behind: Behind::default(),
            behind_by_phase: BehindByPhase::default(),
            moments: Moments::EMPTY,
            last: Moments::EMPTY,
            spells_taken: 0,
            spells: Vec::new(),
            seconds: 0,
        }
    }

    /// The second after the last block.
    pub(super) fn seconds(&self) -> u64 {
        self.seconds
    }

    fn drain(
        &mut self,
        files: &mut CellFiles,
        course: &mut BySecond,
        phases: Option<&PhaseLog>,
    ) -> bool {
        let mut blocks = Vec::new();
        while let Some(block) = self.shared.blocks.take(&mut self.words_taken, self.thread) {
            blocks.push(block);
        }
        // After the blocks, so that every late sample of theirs is there, and on disk first:
        // whoever reads a cell that was cut short needs them together.
        let mut any = !blocks.is_empty();
        while let Some(late) = self.shared.late.take(self.late_taken, self.thread) {
            self.late_taken += 1;
            self.behind.add(late.latency, late.missed, &self.limits);
            if let Some(log) = phases.filter(|_| self.series == 0) {
                let late = (late.at, (late.latency, late.missed));
                self.behind_by_phase.add(log, late.0, late.1, &self.limits);
            }
            files.push(&Record::Late(punctual_core::block::Late { series: self.series, ..late }));
            any = true;
        }
        while let Some(spell) = self.shared.spells.take(self.spells_taken, self.thread) {
            self.spells_taken += 1;
            self.spells.push(spell);
            files.push(&Record::Spell(spell));
            any = true;
        }
        for block in blocks {
            self.moments.merge(&block.moments);
            self.last = block.moments;
            self.seconds = block.index + 1;
            if self.series == 0 {
                course.add(block.index, &block.moments, block.moments.exceeded > 0);
            }
            files
                .push(&Record::Block(punctual_core::block::Block { series: self.series, ..block }));
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
    pub(super) fn drain_in_turn(&mut self, files: &mut CellFiles) -> bool {
        if !self.tracks.iter().all(|track| track.shared.turn.is_over()) {
            return false;
        }
        let any = self.drain(files);
        self.tracks.iter().for_each(|track| track.shared.turn.next());
        any
    }

    /// Takes everything that is published; returns whether there was anything.
    pub(super) fn drain(&mut self, files: &mut CellFiles) -> bool {
        let mut any = false;
        for track in &mut self.tracks {
            any |= track.drain(files, &mut self.course, self.phases.as_ref());
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

    use punctual_core::format::Reader;
    use punctual_core::units::SECOND_NS;

    use super::super::run_dir::RunDir;
    use super::*;
    use crate::recorder::Recorder;

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
        assert!(collector.drain(&mut files));
        let (bytes, _) = files.read_back(1 << 20).unwrap();
        let kind = |record| match record {
            Record::Late(late) => ("late", late.missed),
            Record::Block(block) => ("block", block.moments.missed),
            other => panic!("{other:?}"),
        };
        assert_eq!(Reader::new(&bytes).map(kind).collect::<Vec<_>>(), [("late", 3), ("block", 3)]);
        fs::remove_dir_all(&path).unwrap();
    }
}
