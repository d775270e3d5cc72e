//! Assembles what a latency cell found into its records and its part of `run.json`.

use std::io;

use punctual_core::block::Spell;
use punctual_core::format::{Part, Record};
use punctual_core::histogram::{SignedSparse, Sparse};
use punctual_core::key::NO_LOAD;
use punctual_core::layout;
use punctual_core::run::{CellData, ThreadData};
use punctual_core::schema::{
    Broke, Cell, CellState, Condition, EPISODES_JOINED, Helper, LoadWork, NOT_IDLE, TRACER, Thread,
};
use punctual_core::stats::{
    BySecond, Counts, Limits, Measured, Recorded, assemble, measured_by_blocks, missed_by_late,
    spells_on_disk, tell_episodes,
};
use punctual_core::units::human_ns;
use punctual_sys::error;

use super::body::Closing;
use super::by_phase::{self, ThreadPhases};
use super::collector::Track;
use super::prepared::ProbeCell;
use super::run_dir::{CellFiles, RunDir};
use super::thread::Fate;
use crate::recorder::Recording;
use crate::registry::probe::{Broken, By, Closed, Pace};

/// What the threads, the session and the collector leave behind.
pub(super) struct Left<'a> {
    pub(super) probe: &'a ProbeCell,
    /// How the threads that measured have ended, then the helpers.
    pub(super) ends: Vec<Fate>,
    /// What is on disk of the cell, for threads that left nothing else; empty without such.
    pub(super) on_disk: CellData,
    /// Limits of the primary series.
    pub(super) limits: Limits,
    /// What the session recorded, by thread.
    pub(super) by_session: Vec<Vec<Recording>>,
    pub(super) tracks: Vec<Track>,
    /// What the blocks of all threads were, second by second.
    pub(super) course: BySecond,
    pub(super) helpers: Vec<String>,
    pub(super) closed: Closed,
    /// Largest sample of the warm-up in a primary series that the session records, ns.
    pub(super) warmup_max_ns: Option<i64>,
}

/// What one series of one thread yielded.
struct Found {
    thread: u32,
    series: u32,
    recording: Recording,
    samples: SignedSparse,
    /// What the missed releases would have seen.
    behind: Sparse,
    /// How many of them were later than the deadline.
    behind_exceeded: u64,
    /// The same by phase of the load.
    phases: Option<ThreadPhases>,
}

impl Left<'_> {
    /// Fills in `cell`, statistics included.
    pub(super) fn assemble(self, cell: &mut Cell) -> Closing {
        let threads = self.probe.threads.threads.len();
        let (mut ends, helper_ends) = {
            let mut ends = self.ends;
            let helpers = ends.split_off(threads.min(ends.len()));
            (ends, helpers)
        };
        let recordings: Vec<_> = (0..)
            .zip(&mut ends)
            .zip(self.by_session)
            .map(|((number, end), by_session)| of_thread(self.probe, number, end, by_session))
            .collect();
        let mut tracks = self.tracks;
        let seconds = tracks.iter().map(Track::seconds).max().unwrap_or(0);
        let spells = spells(&recordings, &mut tracks);
        let all = behinds(recordings, tracks);
        let last = spells.iter().flat_map(|spells| spells.last.iter().copied().map(Record::Spell));
        let records = all.iter().flat_map(records_of).chain(last).collect();
        let by_thread = |number| all.iter().find(|one| (one.thread, one.series) == (number, 0));
        let by_phase = (0..).zip(&ends).map(|(number, _)| by_thread(number)?.phases.as_ref());
        let by_phase: Vec<_> = by_phase.collect();
        let said = by_phase::tell(cell, &by_phase, &self.on_disk, &self.limits, seconds);
        cell.conditions.extend(said);
        let mut on_disk = self.on_disk.threads;
        on_disk.resize_with(ends.len(), ThreadData::default);
        let mut measured = Vec::new();
        let mut joined = 0;
        let mut late = Vec::new();
        for (((number, fate), on_disk), spells) in (0..).zip(&ends).zip(&mut on_disk).zip(spells) {
            joined += spells.joined;
            measured.push(if fate.end().is_some() {
                late.push(spells.all);
                self.probe.measured(number, fate, &all)
            } else {
                late.push(spells_on_disk(on_disk, number));
                let later = missed_by_late(on_disk.series_mut(0), &self.limits);
                measured_by_blocks(self.probe.thread(number, fate), on_disk, later.unwrap_or(0))
            });
        }
        let names = (0..ends.len()).map(|number| format!("thread {number}"));
        let names: Vec<_> = names.chain(self.helpers.iter().cloned()).collect();
        let helpers = self
            .helpers
            .into_iter()
            .zip(&helper_ends)
            .map(|(name, end)| Helper { name, placement: end.placement() });
        if let Some(latency) = cell.latency_mut() {
            let of_threads = ends.iter().filter_map(|fate| fate.end()?.warmup_max_ns).max();
            latency.warmup_max_ns = of_threads.max(self.warmup_max_ns);
            latency.helpers = helpers.collect();
            assemble(latency, measured);
        }
        if self.limits.deadline != i64::MAX {
            tell_episodes(cell, late, false);
        }
        if joined > 0 {
            if let Some(latency) = cell.latency_mut() {
                latency.episodes.iter_mut().for_each(|all| all.joined = true);
            }
            let text = format!(
                "{joined} times nobody took what was recorded for so long that two spells of \
                 lateness count as one: there were more late episodes than is said"
            );
            note(cell, EPISODES_JOINED, text);
        }
        cell.counters = self.probe.counters(&self.closed.counts);
        cell.conditions.extend(self.closed.notes);
        for (name, end) in names.iter().zip(ends.iter().chain(&helper_ends)) {
            note_thread(cell, name, end);
        }
        let refused: u64 = all.iter().map(|one| one.recording.refused.missed).sum();
        if refused > 0 {
            note(
                cell,
                "late-ring-full",
                format!(
                    "more late samples in a second than are kept one by one: {refused} missed \
                     releases count in the corrected distribution with delays that are up to \
                     0.8 % of their stall too long"
                ),
            );
        }
        if self.probe.entry.pace == Pace::Periodic {
            note_early(cell);
        }
        Closing { records, course: Some(self.course) }
    }
}

/// The recordings of one thread, each with the number of its series.
fn of_thread(
    probe: &ProbeCell,
    number: u32,
    fate: &mut Fate,
    by_session: Vec<Recording>,
) -> Vec<(u32, u32, Recording)> {
    let by_thread = match fate {
        Fate::Ended(end) => std::mem::take(&mut end.recordings),
        Fate::Panicked | Fate::Stuck(_) => Vec::new(),
    };
    let numbers = |side: By| {
        (0..).zip(probe.entry.by()).filter(move |(_, by)| *by == side).map(|(series, _)| series)
    };
    let of_thread = numbers(By::Thread).zip(by_thread);
    let all = of_thread.chain(numbers(By::Session).zip(by_session));
    all.map(|(series, recording)| (number, series, recording)).collect()
}

/// The spells of lateness of one thread.
#[derive(Default)]
struct Lateness {
    all: Vec<Spell>,
    /// The last ones of them, which are not on disk yet.
    last: Vec<Spell>,
    joined: u64,
}

/// The spells of lateness of each thread.
fn spells(recordings: &[Vec<(u32, u32, Recording)>], tracks: &mut [Track]) -> Vec<Lateness> {
    let of_thread = |(thread, recordings): (u32, &Vec<(u32, u32, Recording)>)| {
        let track = tracks.iter_mut().find(|track| (track.thread, track.series) == (thread, 0));
        let primary = recordings.iter().find(|(_, series, _)| *series == 0);
        let last = primary.and_then(|(.., recording)| recording.spell);
        let open = last.map(|spell| Spell { thread, ..spell });
        let (mut all, last) = track.map_or_else(Default::default, |track| {
            (std::mem::take(&mut track.spells), track.pending.last_spells(open))
        });
        all.extend(&last);
        let joined = primary.map_or(0, |(.., recording)| recording.spells_joined);
        Lateness { all, last, joined }
    };
    (0..).zip(recordings).map(of_thread).collect()
}

/// The latencies of missed releases: as collected, and from bins what the late ring refused.
fn behinds(recordings: Vec<Vec<(u32, u32, Recording)>>, mut tracks: Vec<Track>) -> Vec<Found> {
    let mut all = Vec::new();
    for (thread, series, mut recording) in recordings.into_iter().flatten() {
        let track = tracks.iter_mut().find(|t| (t.thread, t.series) == (thread, series));
        let (behind, by_phase) = track.map_or_else(Default::default, |track| {
            recording.put_back(&mut track.pending.returned, &track.limits);
            track.behind.add_refused(&recording.refused, &track.limits);
            (std::mem::take(&mut track.behind), std::mem::take(&mut track.behind_by_phase))
        });
        let samples = recording.histogram.sparse();
        let phases = recording.phases.take();
        let phases = phases.map(|recorded| ThreadPhases::new(recorded, by_phase));
        let (behind, behind_exceeded) = (behind.counts.sparse(), behind.exceeded);
        all.push(Found { thread, series, recording, samples, behind, behind_exceeded, phases });
    }
    all
}

fn records_of(one: &Found) -> Vec<Record> {
    let Found { thread, series, recording, samples, behind, .. } = one;
    let histogram = |part: Part, counts: &Sparse| Record::Histogram {
        thread: *thread,
        series: *series,
        part,
        counts: counts.clone(),
    };
    vec![
        histogram(Part::Positive, &samples.positive),
        histogram(Part::Negative, &samples.negative),
        histogram(Part::Behind, behind),
        Record::Outliers { thread: *thread, series: *series, samples: recording.outliers.clone() },
    ]
}

impl ProbeCell {
    /// A thread without its statistics.
    fn thread(&self, number: u32, fate: &Fate) -> Thread {
        let planned = self.threads.threads.get(number as usize);
        Thread {
            thread: number,
            placement: fate.placement(),
            offset_ns: planned.map_or(0, |plan| plan.offset_ns),
            ..Thread::default()
        }
    }

    fn measured<'a>(&self, number: u32, fate: &Fate, all: &'a [Found]) -> Measured<'a> {
        let mut own: Vec<_> = all.iter().filter(|one| one.thread == number).collect();
        own.sort_by_key(|one| one.series);
        let primary = own.iter().find(|one| one.series == 0);
        Measured {
            thread: Thread {
                outliers_left_out: primary.map_or(0, |one| one.recording.left_out),
                ..self.thread(number, fate)
            },
            exceedances: primary
                .map_or(0, |one| one.recording.moments.exceeded + one.behind_exceeded),
            series: own.into_iter().map(recorded).collect(),
        }
    }
}

fn recorded(one: &Found) -> Recorded<'_> {
    Recorded {
        moments: one.recording.moments,
        counts: Counts::Fine(&one.samples),
        behind: Some(&one.behind),
        from_bins: one.recording.refused.missed > 0,
    }
}

/// Writes the final records of the cell; what could not be written is noted in `cell`.
pub(super) fn write(cell: &mut Cell, mut files: CellFiles, records: &[Record], store: &mut RunDir) {
    files.sync();
    let failed = files.failed().map(str::to_owned);
    let finished = files.finish(records, store).err().map(|error| error.to_string());
    if let Some(error) = failed {
        note(
            cell,
            "blocks-incomplete",
            format!(
                "{error}: the timeline on disk ends there or has gaps; all other numbers are \
                 complete"
            ),
        );
    }
    if let Some(error) = finished {
        note(
            cell,
            "histograms-not-written",
            format!("{error}: the numbers of this cell are in run.json only"),
        );
    }
}

/// Marks the cell as ended early by an error.
pub(super) fn failed(cell: &mut Cell, reason: String) {
    cell.state = CellState::Failed;
    cell.reason = Some(reason);
}

/// Records the sample that was above the break value; `epoch_ns` is the cell's start.
pub(super) fn note_break(cell: &mut Cell, limit_ns: i64, epoch_ns: u64, broken: &Broken) {
    let Some(latency) = cell.latency_mut() else { return };
    let thread = broken.thread.unwrap_or_default();
    let of_thread = latency.threads.iter().find(|one| one.thread == thread);
    latency.broke = Some(Broke {
        limit_ns: limit_ns.unsigned_abs(),
        latency_ns: broken.latency_ns,
        thread,
        cpu: of_thread.and_then(|one| one.placement.cpu),
        at_ns: Some(broken.at_ns.saturating_sub(epoch_ns)),
    });
}

/// Says where the trace of a break is, or why it is not there.
pub(super) fn note_trace(cell: &mut Cell, saved: Option<io::Result<()>>) {
    let path = format!("{}/{}/{}", layout::CELLS, cell.dir, layout::TRACE);
    match saved {
        None => {}
        Some(Ok(())) => note(
            cell,
            "trace-saved",
            format!("tracing stopped at the break; its end is in {path} of the run directory"),
        ),
        Some(Err(error)) => note(
            cell,
            "trace-not-saved",
            format!("the trace of the break is not saved: {}", error::text(&error)),
        ),
    }
}

/// Says what is missing of the blocks that were read for a thread that did not end.
pub(super) fn note_read_back(cell: &mut Cell, read: &io::Result<(Vec<u8>, bool)>) {
    let text = match read {
        Ok((_, true)) => return,
        Ok((bytes, false)) => format!(
            "a thread that did not end counts with the first {} MiB of the cell's blocks only",
            bytes.len() >> 20
        ),
        Err(error) => format!(
            "a thread that did not end counts as one without samples: {}",
            error::text(error)
        ),
    };
    note(cell, "blocks-not-read", text);
}

/// Adds a note to one cell.
pub(super) fn note(cell: &mut Cell, id: &str, text: String) {
    cell.conditions.push(Condition { id: id.to_owned(), text });
}

/// What is said of a thread that is left alone because nothing ends it.
pub(super) const STUCK: &str = "did not end within 10 s after it was told to: something keeps it \
from running (a debugger, the kernel, a task of higher priority)";

fn note_thread(cell: &mut Cell, name: &str, fate: &Fate) {
    let end = match fate {
        Fate::Ended(end) => end,
        Fate::Panicked => {
            return failed(cell, format!("{name} panicked at its end; its blocks are kept"));
        }
        Fate::Stuck(before) => {
            let cpus = &before.affinity;
            let text = format!(
                "{name} (CPU {cpus}) {STUCK}; it counts up to its last block, and its last \
                 stall is in no number"
            );
            return failed(cell, text);
        }
    };
    if let Some(error) = &end.error {
        failed(cell, format!("{name}: {error}"));
    }
    for said in &end.notes {
        note(cell, &said.id, format!("{name}: {}", said.text));
    }
    if cell.is_simulated() {
        // What happened to its thread is in no number.
        return;
    }
    if end.page_faults > 0 && !by_kernel(cell) {
        let faults = end.page_faults;
        note(
            cell,
            "page-faults",
            format!("{name}: {faults} page faults while it measured: they are in its latencies"),
        );
    }
    if let Some(change) = end.change() {
        note(
            cell,
            "thread-changed",
            format!("{name}: {change} while it measured: its numbers mix both"),
        );
    }
}

/// Whether threads of the kernel measured instead of those of the cell.
fn by_kernel(cell: &Cell) -> bool {
    cell.conditions.iter().any(|condition| condition.id == TRACER)
}

/// A thread that waits for its release cannot start before it.
fn note_early(cell: &mut Cell) {
    let early: u64 = cell.threads().iter().map(|thread| thread.stats.early).sum();
    if early > 0 {
        let first = cell.latency().and_then(|latency| latency.stats.min).unwrap_or(0);
        note(
            cell,
            "early-samples",
            format!(
                "{early} samples are before their release, by up to {}: the timer or the clock is \
                 wrong, and latencies of this cell may be too small",
                human_ns(first.saturating_neg())
            ),
        );
    }
}

/// Above this share of CPU time used by others, a machine under load `none` was not idle.
const OTHERS_LIMIT: f64 = 0.2;

/// Notes that something ran under the load `none`. Without /proc/stat nobody knows, and the run's
/// condition [`punctual_core::schema::UNREAD`] says so.
pub(super) fn note_others(cell: &mut Cell) {
    let Some(busy) = cell.cpu_utilisation else { return };
    let others = busy - cell.steal.unwrap_or(0.0) - cell.cpu_own.unwrap_or(0.0);
    if cell.load == NO_LOAD && others > OTHERS_LIMIT && !by_kernel(cell) {
        let percent = others * 100.0;
        note(
            cell,
            NOT_IDLE,
            format!(
                "other processes used {percent:.0} % of the CPUs of a cell that is to be \
                 idle: what was measured is not an idle machine; end them, or name them as a load"
            ),
        );
    }
}

/// Adds a note for each part of the load that went wrong.
pub(super) fn note_load(cell: &mut Cell) {
    let troubles: Vec<_> = cell.load_work.iter().filter_map(load_trouble).collect();
    for trouble in troubles {
        note(cell, "load-trouble", trouble);
    }
}

fn load_trouble(work: &LoadWork) -> Option<String> {
    if let Some(trouble) = &work.trouble {
        return Some(format!("load {}: {trouble}", work.load));
    }
    (work.idle_seconds > 0).then(|| {
        format!("load {}: it did no work in {} s of the measurement", work.load, work.idle_seconds)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::schema::{Latency, Stats, What};
    use punctual_sys::affinity::CpuSet;
    use punctual_sys::sched::Policy;

    use super::super::thread::{Effective, ThreadEnd};

    #[test]
    fn a_sample_before_its_release_is_a_condition() {
        let cell = |early, min| {
            let stats = Stats { early, min: Some(min), ..Stats::default() };
            let threads = vec![Thread { stats: stats.clone(), ..Thread::default() }];
            let what = What::Latency(Latency { stats, threads, ..Latency::default() });
            let mut cell = Cell::new(String::new(), String::new(), "none".to_owned(), 1, what);
            note_early(&mut cell);
            cell.conditions
        };
        assert!(cell(0, 7).is_empty());
        let [condition] = &cell(2, -9_890_000)[..] else { panic!("one condition") };
        assert_eq!(condition.id, "early-samples");
        assert!(
            condition.text.contains("2 samples") && condition.text.contains("9.89"),
            "{condition:?}"
        );
    }

    #[test]
    fn what_happens_to_a_thread_in_simulated_time_is_no_condition() {
        let effective = |policy| Effective {
            policy,
            priority: 0,
            affinity: CpuSet::of(0),
            timer_slack_ns: Some(50_000),
        };
        let fate = Fate::Ended(ThreadEnd {
            recordings: Vec::new(),
            before: effective(Policy::Other),
            after: Some(effective(Policy::Batch)),
            meanwhile: None,
            warmup_max_ns: None,
            page_faults: 3,
            error: None,
            notes: Vec::new(),
        });
        let told = |simulated| {
            let what = What::Latency(Latency { simulated, ..Latency::default() });
            let mut cell = Cell::new(String::new(), String::new(), "none".to_owned(), 1, what);
            note_thread(&mut cell, "thread 0", &fate);
            cell.conditions.into_iter().map(|one| one.id).collect::<Vec<_>>()
        };
        assert_eq!(told(false), ["page-faults", "thread-changed"]);
        assert!(told(true).is_empty());
    }
}
