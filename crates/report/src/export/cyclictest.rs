//! Histograms as `cyclictest -h` prints them: rows of one microsecond, a column per thread.
//! The layout is that of `print_hist` in rt-tests 2.4.

use punctual_core::run::LoadedRun;
use punctual_core::schema::Origin;

use super::histogram::bins;
use super::{Choice, MADE_UP, TrackOf, recordings};
use crate::words::key_name;

/// The most rows that are written if no number is given.
pub const MAX_ROWS: u64 = 10_000;

const US: i64 = 1_000;

/// What is written.
#[derive(Debug, Clone, Copy, Default)]
pub struct CyclictestLayout {
    /// Rows, as for `-h`: latencies from this many microseconds on are overflows. `None`: as
    /// many as the largest latency needs, at most [`MAX_ROWS`].
    pub rows: Option<u64>,
    /// A further column with the sum of all threads, as `-H` prints.
    pub sum: bool,
}

/// One thread, in microseconds.
struct ThreadColumn<'a> {
    counts: Vec<u64>,
    recording: &'a TrackOf<'a>,
    overflows: u64,
    early: u64,
}

/// The histograms of the chosen cells, one after the other. If there are several, a comment
/// names each, and two empty lines are between them, as gnuplot's `index` expects. A comment
/// says of simulated latencies that they are.
///
/// A bin belongs to the row of its largest value. Bins are under 0.8 % wide, so a sample is
/// counted at most that much too high. Samples before their release have no row: if there
/// are any, a comment counts them.
#[must_use]
pub fn cyclictest(run: &LoadedRun, choice: &Choice, layout: CyclictestLayout) -> String {
    let all: Vec<_> = recordings(run, choice).collect();
    let of_cells: Vec<_> = all
        .chunk_by(|a, b| a.cell_number == b.cell_number)
        .filter(|threads| threads.iter().any(|thread| !bins(thread.data).is_empty()))
        .collect();
    let mut text = String::new();
    for threads in &of_cells {
        if let ([first, ..], true) = (threads, of_cells.len() > 1) {
            text.push_str(&format!(
                "# Cell {}: {}\n",
                first.cell_number,
                key_name(&first.cell.key)
            ));
        }
        if threads.first().is_some_and(|thread| thread.origin == Origin::Simulated) {
            text.push_str(MADE_UP);
        }
        text.push_str(&histogram(threads, layout));
        if of_cells.len() > 1 {
            text.push('\n');
        }
    }
    text
}

fn histogram(threads: &[TrackOf<'_>], layout: CyclictestLayout) -> String {
    let longest = threads.iter().filter_map(|thread| thread.thread.stats.max).max().unwrap_or(0);
    let needed = u64::try_from(longest.div_euclid(US)).unwrap_or(0) + 1;
    let rows = layout.rows.unwrap_or(needed.min(MAX_ROWS));
    let columns: Vec<_> = threads.iter().map(|thread| column(thread, rows)).collect();
    let sum = layout.sum && columns.len() > 1;
    let mut text = String::from("# Histogram\n");
    for row in 0..usize::try_from(rows).unwrap_or(usize::MAX) {
        let counts: Vec<_> = columns.iter().map(|column| column.counts[row]).collect();
        let all = sum.then(|| counts.iter().sum::<u64>());
        let fields = counts.iter().copied().chain(all).map(|count| format!("{count:06}"));
        text.push_str(&format!("{row:06} {}\n", fields.collect::<Vec<_>>().join("\t")));
    }
    let in_rows: Vec<u64> = columns.iter().map(|column| column.counts.iter().sum()).collect();
    let all = sum.then(|| in_rows.iter().sum());
    line(&mut text, "Total", in_rows.iter().copied().chain(all).map(|count| format!("{count:09}")));
    let us = |ns: Option<i64>| format!("{:05}", ns.unwrap_or(0).div_euclid(US));
    let stats = || columns.iter().map(|column| &column.recording.thread.stats);
    line(&mut text, "Min Latencies", stats().map(|stats| us(stats.min)));
    #[allow(clippy::cast_possible_truncation, reason = "a mean of i64 values fits, and saturates")]
    let avg = |avg: Option<f64>| us(avg.map(|ns| ns.floor() as i64));
    line(&mut text, "Avg Latencies", stats().map(|stats| avg(stats.avg)));
    let all = sum.then(|| us(Some(longest)));
    line(&mut text, "Max Latencies", stats().map(|stats| us(stats.max)).chain(all));
    let overflows = || columns.iter().map(|column| column.overflows);
    let all = sum.then(|| overflows().sum());
    let fields = overflows().chain(all).map(|count: u64| format!("{count:05}"));
    line(&mut text, "Histogram Overflows", fields);
    text.push_str("# Histogram Overflow at cycle number:\n");
    for column in &columns {
        text.push_str(&overflowed(column, rows));
    }
    if columns.iter().any(|column| column.early > 0) {
        let early = columns.iter().map(|column| format!("{:05}", column.early));
        line(&mut text, "Early, before their release", early);
    }
    text + "\n"
}

fn line(text: &mut String, title: &str, fields: impl Iterator<Item = String>) {
    text.push_str(&format!("# {title}:"));
    fields.for_each(|field| text.push_str(&format!(" {field}")));
    text.push('\n');
}

fn column<'a>(recording: &'a TrackOf<'a>, rows: u64) -> ThreadColumn<'a> {
    let counts = vec![0; usize::try_from(rows).unwrap_or(usize::MAX)];
    let mut column = ThreadColumn { counts, recording, overflows: 0, early: 0 };
    let stats = &recording.thread.stats;
    for bin in bins(recording.data) {
        // The extremes are known exactly.
        let high = stats.max.map_or(bin.high, |max| bin.high.min(max.max(bin.low)));
        let row = usize::try_from(high.div_euclid(US));
        match row.ok().map(|row| column.counts.get_mut(row)) {
            Some(Some(counts)) => *counts += bin.count,
            Some(None) => column.overflows += bin.count,
            None => column.early += bin.count,
        }
    }
    column
}

/// The numbers of the releases beyond the last row, as far as they were kept.
fn overflowed(column: &ThreadColumn<'_>, rows: u64) -> String {
    let TrackOf { thread, latency, data, .. } = column.recording;
    let end = i64::try_from(rows).unwrap_or(i64::MAX).saturating_mul(US);
    let mut cycles: Vec<u64> = match latency.interval_ns {
        Some(interval) if interval > 0 => data
            .outliers
            .iter()
            .filter(|sample| sample.latency >= end)
            .map(|sample| {
                let late = u64::try_from(sample.latency).unwrap_or(0);
                sample.at.saturating_sub(late).saturating_sub(thread.offset_ns) / interval
            })
            .collect(),
        _ => Vec::new(),
    };
    cycles.sort_unstable();
    let mut text = format!("# Thread {}:", thread.thread);
    cycles.iter().for_each(|cycle| text.push_str(&format!(" {cycle:05}")));
    let others = column.overflows.saturating_sub(cycles.len() as u64);
    if others > 0 {
        text.push_str(&format!(" # {others:05} others"));
    }
    text + "\n"
}
