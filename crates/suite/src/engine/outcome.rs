//! What a cell leaves, as records and as `run.json` has it.

use punctual_core::format::{Part, Record};
use punctual_core::histogram::Histogram;
use punctual_core::schema::{Cell, CellState, Condition, LoadWork, Thread};
use punctual_core::stats::{Counts, Recorded, summarise};
use punctual_core::verdict::{Rule, judge_thread};

use super::cell::Prepared;
use super::collector::{Collected, Collector};
use super::store::{CellFiles, RunDir};
use super::thread::ThreadEnd;
use crate::probes::Kind;
use crate::recorder::{Behind, Limits};

/// Everything that the threads and the collector leave: as `run.json` has it, in `cell`, and as
/// the records that come back.
pub(super) fn assemble(
    rule: &Rule,
    prepared: &Prepared,
    cell: &mut Cell,
    ends: &[Option<ThreadEnd>],
    collector: Collector,
    limits: Limits,
) -> Vec<Record> {
    let interval_ns = cell.interval_ns;
    let mut records = Vec::new();
    let mut behinds: Vec<(Behind, u64)> = Vec::new();
    for (collected, end) in collector.threads.into_iter().zip(ends) {
        let Collected { behind, clusters, .. } = collected;
        let lost = end.as_ref().filter(|end| end.recording.late_lost);
        let behind = match (lost, interval_ns) {
            (Some(end), Some(interval)) => {
                Behind::from_bins(&end.recording.histogram, interval, &limits)
            }
            _ => behind,
        };
        behinds.push((behind, clusters));
    }
    let mut all = Vec::new();
    for (number, (end, (behind, clusters))) in (0..).zip(ends.iter().zip(&behinds)) {
        let Some(end) = end else {
            cell.state = CellState::Failed;
            cell.reason = Some(format!("thread {number} panicked; its blocks are kept"));
            continue;
        };
        push_records(&mut records, number, end, &behind.counts);
        let recorded = recorded(end, behind);
        let thread = thread_of(prepared, number, end, behind, *clusters, &recorded, rule, cell);
        cell.threads.push(thread);
        all.push(recorded);
    }
    cell.stats = summarise(&all);
    if let Some(series) = cell.series.first_mut() {
        series.stats = cell.stats.clone();
    }
    cell.warmup_max_ns = ends.iter().flatten().filter_map(|end| end.warmup_max_ns).max();
    note_what_happened(prepared.entry.kind, cell, ends);
    records
}

/// Writes the records of the cell's end; what could not be written is noted in `cell`.
pub(super) fn write(cell: &mut Cell, files: CellFiles, records: &[Record], store: &mut RunDir) {
    let failed = files.failed().map(str::to_owned);
    let finished = files.finish(records, store).err().map(|error| error.to_string());
    if let Some(error) = failed {
        push_note(
            cell,
            "blocks-incomplete",
            format!("{error}: the timeline on disk ends there; all other numbers are complete"),
        );
    }
    if let Some(error) = finished {
        push_note(
            cell,
            "histograms-not-written",
            format!("{error}: the numbers of this cell are in run.json only"),
        );
    }
}

fn recorded<'a>(end: &'a ThreadEnd, behind: &'a Behind) -> Recorded<'a> {
    Recorded {
        moments: &end.recording.moments,
        counts: Counts::Fine(&end.recording.histogram),
        behind: Some(&behind.counts),
        from_bins: end.recording.late_lost,
    }
}

fn push_records(records: &mut Vec<Record>, thread: u32, end: &ThreadEnd, behind: &Histogram) {
    let histogram = &end.recording.histogram;
    for (part, counts) in [
        (Part::Positive, &histogram.positive),
        (Part::Negative, &histogram.negative),
        (Part::Behind, behind),
    ] {
        records.push(Record::Histogram { thread, series: 0, part, counts: counts.clone() });
    }
    records.push(Record::Outliers { thread, samples: end.recording.outliers.clone() });
}

#[allow(clippy::too_many_arguments, reason = "one call; a structure for it would only rename them")]
fn thread_of(
    prepared: &Prepared,
    number: u32,
    end: &ThreadEnd,
    behind: &Behind,
    clusters: u64,
    recorded: &Recorded<'_>,
    rule: &Rule,
    cell: &Cell,
) -> Thread {
    let effective = &end.before;
    let stats = summarise(std::slice::from_ref(recorded));
    let exceedances = end.recording.moments.exceeded + behind.exceeded;
    let verdict = judge_thread(&stats, exceedances, clusters, cell.interval_ns, rule);
    let mut cpus = effective.affinity.iter();
    Thread {
        thread: number,
        cpu: cpus.next().filter(|_| cpus.next().is_none()),
        affinity: effective.affinity.to_string(),
        policy: effective.policy.name().to_owned(),
        priority: effective.priority,
        changed: end.after.as_ref().and_then(|after| effective.change(after)),
        timer_slack_ns: effective.timer_slack_ns.filter(|_| !effective.policy.is_real_time()),
        page_faults: Some(end.page_faults),
        offset_ns: prepared
            .threads
            .threads
            .get(number as usize)
            .map_or(0, |thread| thread.offset_ns),
        max_at_ns: (stats.samples > 0).then_some(end.recording.moments.max_at),
        outliers_left_out: end.recording.left_out,
        exceedance_clusters: clusters,
        stats,
        verdict,
    }
}

fn push_note(cell: &mut Cell, id: &str, text: String) {
    cell.conditions.push(Condition { id: id.to_owned(), text });
}

/// A load `none` under which the CPUs were busier than this was no idle machine.
const IDLE_LIMIT: f64 = 0.1;

fn note_what_happened(kind: Kind, cell: &mut Cell, ends: &[Option<ThreadEnd>]) {
    for (number, end) in ends.iter().enumerate() {
        let Some(end) = end else { continue };
        if let Some(error) = &end.error {
            cell.state = CellState::Failed;
            cell.reason = Some(format!("thread {number}: {error}"));
        }
        for note in &end.notes {
            push_note(cell, &note.id, format!("thread {number}: {}", note.text));
        }
        if end.page_faults > 0 {
            push_note(
                cell,
                "page-faults",
                format!(
                    "thread {number}: {} page faults while it measured: they are in its latencies",
                    end.page_faults
                ),
            );
        }
        if end.recording.late_lost {
            push_note(
                cell,
                "late-ring-full",
                format!(
                    "thread {number}: more late samples in a second than are kept one by one: the \
                     corrected distribution comes from the histogram's bins (within 0.8 %)"
                ),
            );
        }
    }
    let changed: Vec<_> = cell
        .threads
        .iter()
        .filter_map(|t| t.changed.as_ref().map(|change| format!("thread {}: {change}", t.thread)))
        .collect();
    for change in changed {
        push_note(
            cell,
            "thread-changed",
            format!("{change} while it measured: its numbers mix both"),
        );
    }
    if kind == Kind::Periodic
        && cell.load == "none"
        && cell.cpu_utilisation.is_some_and(|busy| busy > IDLE_LIMIT)
    {
        let percent = cell.cpu_utilisation.unwrap_or(0.0) * 100.0;
        push_note(
            cell,
            "not-idle",
            format!("the CPUs were {percent:.0} % busy under load none: something else ran"),
        );
    }
    let troubles: Vec<_> = cell.load_work.iter().filter_map(load_trouble).collect();
    for trouble in troubles {
        push_note(cell, "load-trouble", trouble);
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
