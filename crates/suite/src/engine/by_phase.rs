//! What was found in each phase of a load that changes on a schedule.

use std::collections::BTreeMap;

use punctual_core::format::Record;
use punctual_core::histogram::Sparse;
use punctual_core::run::CellData;
use punctual_core::schema::{Cell, Condition};
use punctual_core::stats::{
    Behind, Counts, InPhase, Limits, Recorded, phases_by_blocks, tell_phases,
};
use punctual_core::units::SECOND_NS;

use super::run_dir::CellFiles;
use crate::harness::phases::Began;
use crate::recorder::phases::PhasesRecorded;

/// The seconds in which loads were at work, as far as the cell has come.
#[derive(Debug, Clone, Default)]
pub(super) struct PhaseLog {
    /// First second, the one after the last, place of the phase; in the order of time.
    spans: Vec<(u64, u64, usize)>,
    /// The place of the changes.
    changes: usize,
}

impl PhaseLog {
    pub(super) fn new(phases: usize) -> Self {
        Self { spans: Vec::new(), changes: phases }
    }

    pub(super) fn works(&mut self, began: &Began) {
        let seconds = |ns: u64| ns.div_ceil(SECOND_NS);
        let (from, to) = (seconds(began.at_work.from_ns), seconds(began.at_work.to_ns));
        self.spans.push((from, to, usize::try_from(began.phase).unwrap_or(self.changes)));
    }

    fn place(&self, second: u64) -> usize {
        let span = self.spans.iter().rev().find(|(from, ..)| *from <= second);
        span.filter(|(_, to, _)| second < *to).map_or(self.changes, |(.., place)| *place)
    }
}

/// What missed releases of a thread would have seen, by phase.
#[derive(Debug, Default)]
pub(super) struct BehindByPhase(BTreeMap<usize, Behind>);

impl BehindByPhase {
    /// Adds a sample taken `at`, ns after the cell's start.
    pub(super) fn add(
        &mut self,
        log: &PhaseLog,
        at: u64,
        (latency, missed): (u64, u64),
        limits: &Limits,
    ) {
        let place = log.place(at / SECOND_NS);
        self.0.entry(place).or_default().add(latency, missed, limits);
    }
}

/// What one thread recorded by phase.
#[derive(Debug, Default)]
pub(super) struct ThreadPhases {
    recorded: PhasesRecorded,
    /// By phase: what missed releases would have seen, and how many of them were late; `None` if
    /// that is not known of all.
    behind: Vec<Option<(Sparse, u64)>>,
}

impl ThreadPhases {
    pub(super) fn new(recorded: PhasesRecorded, mut behind: BehindByPhase) -> Self {
        let known = recorded.each.iter().enumerate().map(|(place, one)| {
            let behind = behind.0.remove(&place).unwrap_or_default();
            let all = behind.counts.total() == one.moments.missed;
            all.then(|| (behind.counts.sparse(), behind.exceeded))
        });
        Self { behind: known.collect(), recorded }
    }

    fn recorded(&self, place: usize) -> Option<Recorded<'_>> {
        let one = self.recorded.each.get(place)?;
        Some(Recorded {
            moments: one.moments,
            counts: Counts::Fine(&one.histogram),
            behind: self.behind.get(place)?.as_ref().map(|(counts, _)| counts),
            from_bins: false,
        })
    }

    fn late(&self, place: usize) -> Option<u64> {
        let (_, missed) = self.behind.get(place)?.as_ref()?;
        Some(self.recorded.each.get(place)?.moments.exceeded.saturating_add(*missed))
    }
}

/// Puts into `cell` what its threads found in each phase in the `seconds` for which it measured;
/// with a thread that left nothing (`None`), what is on disk of all. Returns what is to be said of
/// that.
pub(super) fn tell(
    cell: &mut Cell,
    threads: &[Option<&ThreadPhases>],
    on_disk: &CellData,
    limits: &Limits,
    seconds: u64,
) -> Option<Condition> {
    if cell.phases.is_empty() {
        return None;
    }
    let Some(threads) = threads.iter().copied().collect::<Option<Vec<_>>>() else {
        phases_by_blocks(cell, on_disk, limits);
        return None;
    };
    let found = |place: usize| InPhase {
        recorded: threads.iter().filter_map(|thread| thread.recorded(place)).collect(),
        late: threads
            .iter()
            .map(|thread| thread.late(place))
            .sum::<Option<u64>>()
            .filter(|_| limits.deadline != i64::MAX),
    };
    let found: Vec<_> = (0..=cell.phases.len()).map(found).collect();
    tell_phases(cell, &found, seconds.saturating_mul(SECOND_NS).min(cell.duration_ns));
    let mixed = threads.iter().any(|thread| thread.recorded.mixed);
    mixed.then(|| Condition {
        id: "phases-mixed".to_owned(),
        text: "nobody took what was recorded for so long that seconds of one phase count for \
               another: the numbers by phase mix them, all others are exact"
            .to_owned(),
    })
}

/// What is written when the load of a phase is at work.
pub(super) fn record(began: &Began, files: &mut CellFiles) {
    let at = began.at_work;
    if at.from_ns < at.to_ns {
        files.push(&Record::Phase { phase: began.phase, from: at.from_ns, to: at.to_ns });
    }
}
