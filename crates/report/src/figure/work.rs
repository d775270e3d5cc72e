//! The load's work per second as a strip below the timeline: a hole in the load
//! is a hole in the evidence.

use std::collections::BTreeMap;

use punctual_core::key;
use punctual_core::schema::Cell;
use punctual_core::units::SECOND_NS;

use super::drawing::{Drawing, Label, Pen, Point};
use super::scale::Scale;
use super::theme::Colour;
use super::typeface;
use crate::subject::Subject;
use crate::words;

const STRIP: f64 = 34.0;
const LABEL: f64 = 28.0;
/// Strips of at most this many parts; a load has rarely more.
const PARTS: usize = 6;
/// Distance of the lines of a hatched area.
const HATCH: f64 = 6.0;

/// One strip for each part of the load that was recorded, below `above`; returns where they end.
/// `seconds` is the width of a column of the timeline. An idle cell has no strip.
pub fn strips(
    to: &mut Drawing,
    subject: &Subject<'_>,
    above: f64,
    time: &Scale,
    seconds: u64,
) -> f64 {
    let Subject { cell, data, .. } = subject;
    if cell.load == key::NO_LOAD {
        return above;
    }
    let mut parts: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
    // A second after the end of the axis is damage; it would add a column.
    let within = data.work.iter().filter(|(second, _, _)| (*second as f64) < time.high());
    for (second, part, totals) in within {
        // A phase without a load counts nothing.
        let Some(total) = totals.first().copied() else { continue };
        parts.entry(*part).or_default().push((*second, total));
    }
    let mut top = above;
    for (part, mut totals) in parts.into_iter().take(PARTS) {
        totals.extend(rest(cell, part, &totals));
        let columns = by_turn(cell, part, totals, seconds);
        strip(to, &label(cell, part), &columns, top, time, seconds);
        top += LABEL + STRIP;
    }
    top
}

/// What a part of the load did after its last record: it is recorded once a second, so the last
/// second is not. None if the cell was cut short: nobody knows.
fn rest(cell: &Cell, part: u32, totals: &[(u64, u64)]) -> Option<(u64, u64)> {
    let end = match cell.load_work.get(part as usize)?.phase {
        None => cell.duration_ns,
        Some(phase) => cell.phases.get(usize::try_from(phase).ok()?)?.at_work.last()?.to_ns,
    };
    let last = end.div_ceil(SECOND_NS).checked_sub(1)?;
    let (second, before) = totals.last()?;
    let total = cell.load_work.get(part as usize)?.counters.first()?.total;
    (*second < last && total >= *before).then_some((last, total))
}

/// Work per second in every column. A part of a phase has none between its turns.
fn by_turn(cell: &Cell, part: u32, totals: Vec<(u64, u64)>, seconds: u64) -> BTreeMap<u64, Rate> {
    let work = cell.load_work.get(part as usize);
    let phase = work.and_then(|work| cell.phases.get(usize::try_from(work.phase?).ok()?));
    let Some(phase) = phase else { return rates(None, &totals, seconds) };
    let mut columns: BTreeMap<u64, Rate> = BTreeMap::new();
    let mut before = None;
    let mut left = &totals[..];
    for turn in &phase.at_work {
        let end = left.partition_point(|(second, _)| *second < turn.to_ns.div_ceil(SECOND_NS));
        let (own, rest) = left.split_at(end);
        left = rest;
        let first = turn.from_ns / SECOND_NS;
        // As if it had been looked at just before.
        let base = before.map(|total| (first.saturating_sub(1), total)).filter(|_| first > 0);
        for (number, rate) in rates(base, own, seconds) {
            let column = columns.entry(number).or_default();
            column.sum += rate.sum;
            column.seconds += rate.seconds;
            column.hole |= rate.hole;
        }
        before = own.last().map(|(_, total)| *total).or(before);
    }
    columns
}

fn label(cell: &Cell, part: u32) -> String {
    let work = cell.load_work.get(part as usize);
    let name = work.map_or_else(|| format!("load {part}"), words::part_name);
    match work.and_then(|w| w.counters.first()) {
        Some(counter) => format!("{name}: {}/s", words::clean(&counter.name)),
        None => format!("{name}: work/s"),
    }
}

/// Work of one column: the mean rate, and whether a whole second went without any.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Rate {
    sum: f64,
    seconds: f64,
    hole: bool,
}

/// Work per second in every column, from cumulative totals. A gap between two
/// records spreads the work evenly over it. A restarted counter begins anew. `before` is an
/// earlier record, if there was one.
fn rates(
    mut before: Option<(u64, u64)>,
    totals: &[(u64, u64)],
    seconds: u64,
) -> BTreeMap<u64, Rate> {
    let mut columns: BTreeMap<u64, Rate> = BTreeMap::new();
    for (second, total) in totals {
        let gap = before.map_or(1, |(s, _)| second.saturating_sub(s)).max(1);
        let done = before.map_or(*total, |(_, t)| total.checked_sub(t).unwrap_or(*total));
        let (first, width) = ((second + 1).saturating_sub(gap), seconds.max(1));
        for number in first / width..=second / width {
            let from = first.max(number * width);
            let held = ((number + 1) * width).min(second + 1).saturating_sub(from) as f64;
            let column = columns.entry(number).or_default();
            column.sum += done as f64 / gap as f64 * held;
            column.seconds += held;
            column.hole |= done == 0;
        }
        before = Some((*second, *total));
    }
    columns
}

fn strip(
    to: &mut Drawing,
    label: &str,
    columns: &BTreeMap<u64, Rate>,
    top: f64,
    time: &Scale,
    seconds: u64,
) {
    let (left, right) = (time.map(time.low()), time.map(time.high()));
    let (upper, lower) = (top + LABEL, top + LABEL + STRIP);
    let mean = |rate: &Rate| {
        if rate.seconds > 0.0 { rate.sum / rate.seconds } else { 0.0 }
    };
    let most = columns.values().map(mean).fold(0.0, f64::max);
    let rate = Scale::exact(0.0, if most > 0.0 { most } else { 1.0 }, lower, upper);
    let place = |column: u64| time.map((column * seconds) as f64);
    let holes: Vec<u64> = columns.iter().filter(|(_, rate)| rate.hole).map(|(c, _)| *c).collect();
    let most = words::rate("", most);
    let mut text = format!(", at most {}", most.trim_end_matches("/s").trim_end());
    if !holes.is_empty() {
        text.push_str(" · hatched: no work");
    }
    let room = typeface::room(&text, typeface::LARGEST, false) + 6.0;
    let name = typeface::cut(label, right - left - room);
    to.text(Label::new(format!("{name}{text}"), left, upper - 6.0).soft());
    to.rects(&[[left, upper, right, lower]], Pen::area("band", Colour::Panel));
    let rect = |(column, value): (&u64, &Rate)| {
        [place(*column), rate.map(mean(value)), place(column + 1), lower]
    };
    let rects: Vec<_> = columns.iter().map(rect).collect();
    to.rects(&rects, Pen::area("work", Colour::Minor));
    let hatched: Vec<_> = holes
        .iter()
        .flat_map(|column| {
            let from = place(*column);
            hatch(from, place(column + 1).max(from + 1.5), upper, lower)
        })
        .collect();
    to.lines(hatched, Pen::line("hole", Colour::Text, 0.8), None);
}

/// Slanted lines in an area, and its left and right edges.
fn hatch(left: f64, right: f64, top: f64, bottom: f64) -> Vec<Vec<Point>> {
    let height = bottom - top;
    let mut lines = vec![vec![(left, top), (left, bottom)], vec![(right, top), (right, bottom)]];
    // Lines of neighbours continue each other: they start at multiples of their distance.
    let mut start = ((left - height) / HATCH).ceil() * HATCH;
    while start < right {
        // From (start, bottom) upward to the right.
        let (from, to) = (start.max(left), (start + height).min(right));
        if from < to {
            lines.push(vec![(from, bottom - (from - start)), (to, bottom - (to - start))]);
        }
        start += HATCH;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_without_work_is_a_hole_in_any_column() {
        let totals: Vec<_> =
            (0..100).map(|s| (s, if s < 50 { s * 10 } else { s * 10 - 10 })).collect();
        let columns = rates(None, &totals, 10);
        assert_eq!(columns.len(), 10);
        let holes: Vec<_> = columns.iter().filter(|(_, r)| r.hole).map(|(c, _)| *c).collect();
        // Nothing was done in second 0 (the counter starts at 0) nor in second 50.
        assert_eq!(holes, [0, 5]);
        assert_eq!(columns[&3].sum, 100.0);
    }

    #[test]
    fn hatching_stays_within_its_area() {
        let lines = hatch(100.0, 131.0, 50.0, 84.0);
        assert!(lines.len() > 6);
        for (x, y) in lines.concat() {
            assert!((100.0..=131.0).contains(&x) && (50.0..=84.0).contains(&y), "{x} {y}");
        }
    }

    #[test]
    fn a_gap_spreads_its_work_and_a_restart_does_not_underflow() {
        let columns = rates(None, &[(0, 10), (4, 50), (5, 3)], 1);
        assert_eq!(columns[&2].sum, 10.0);
        assert_eq!(columns[&5].sum, 3.0);
        // A gap of a century takes no longer than its columns, which it covers whole.
        let columns = rates(None, &[(0, 0), (4_000_000_000, 1_000)], 1_000_000_000);
        let seconds: Vec<_> = columns.values().map(|rate| rate.seconds).collect();
        assert_eq!(seconds, [1e9, 1e9, 1e9, 1e9, 1.0]);
    }
}
