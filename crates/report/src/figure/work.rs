//! The load's work per second as a strip below the timeline: a hole in the load
//! is a hole in the evidence.

use std::collections::BTreeMap;

use maud::{Markup, html};
use punctual_core::run::CellData;
use punctual_core::schema::Cell;

use super::frame::n;
use super::scale::Scale;
use super::svg::shortened;
use crate::words;

const STRIP: f64 = 34.0;
const LABEL: f64 = 22.0;
/// Strips of at most this many parts; a load has rarely more.
const PARTS: usize = 6;

/// All strips of a cell and the height that they take.
pub struct Strips {
    pub body: Markup,
    pub height: f64,
}

/// One strip for each part of the load that was recorded, from `top` down.
/// `seconds` is the width of a column of the timeline.
pub fn strips(cell: &Cell, data: &CellData, top: f64, time: &Scale, seconds: u64) -> Strips {
    let mut parts: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
    // A second after the end of the axis is damage; it would add a column.
    let within = data.work.iter().filter(|(second, _, _)| *second as f64 <= time.high());
    for (second, part, totals) in within {
        let total = totals.first().copied().unwrap_or(0);
        parts.entry(*part).or_default().push((*second, total));
    }
    let list: Vec<_> = parts
        .into_iter()
        .take(PARTS)
        .map(|(part, totals)| (label(cell, part), rates(&totals, seconds)))
        .collect();
    let height = (STRIP + LABEL) * list.len() as f64;
    let body = html! {
        @for (i, (label, columns)) in list.iter().enumerate() {
            (strip(label, columns, top + (STRIP + LABEL) * i as f64, time, seconds))
        }
    };
    Strips { body, height }
}

fn label(cell: &Cell, part: u32) -> String {
    let work = cell.load_work.get(part as usize);
    let name = work.map_or_else(|| format!("load {part}"), |w| words::clean(&w.load).into_owned());
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
/// records spreads the work evenly over it. A restarted counter begins anew.
fn rates(totals: &[(u64, u64)], seconds: u64) -> BTreeMap<u64, Rate> {
    let mut columns: BTreeMap<u64, Rate> = BTreeMap::new();
    let mut before: Option<(u64, u64)> = None;
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
    label: &str,
    columns: &BTreeMap<u64, Rate>,
    top: f64,
    time: &Scale,
    seconds: u64,
) -> Markup {
    let (from, to) = (time.map(time.low()), time.map(time.high()));
    let (upper, lower) = (top + LABEL, top + LABEL + STRIP);
    let mean = |rate: &Rate| {
        if rate.seconds > 0.0 { rate.sum / rate.seconds } else { 0.0 }
    };
    let most = columns.values().map(mean).fold(0.0, f64::max);
    let rate = Scale::exact(0.0, if most > 0.0 { most } else { 1.0 }, lower, upper);
    let place = |column: u64| time.map((column * seconds) as f64);
    let mut path = String::new();
    for (column, value) in columns {
        let (x0, x1) = (n(place(*column)), n(place(column + 1)));
        path.push_str(&format!(
            "M{x0} {}V{}H{x1}V{}Z",
            n(lower),
            n(rate.map(mean(value))),
            n(lower)
        ));
    }
    let holes: Vec<u64> = columns.iter().filter(|(_, rate)| rate.hole).map(|(c, _)| *c).collect();
    html! {
        text class="soft" x=(n(from)) y=(n(upper - 6.0)) {
            (shortened(label, 30)) ", at most " (words::rate("", most).trim_end_matches("/s").trim_end())
            @if !holes.is_empty() { tspan class="maxtext" { " · red: no work" } }
        }
        rect class="band" x=(n(from)) y=(n(upper)) width=(n(to - from)) height=(n(STRIP)) {}
        path class="work" d=(path) {}
        @for column in &holes {
            @let x = place(*column);
            rect class="hole" x=(n(x)) y=(n(upper)) width=(n((place(column + 1) - x).max(1.5))) height=(n(STRIP)) {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_without_work_is_a_hole_in_any_column() {
        let totals: Vec<_> =
            (0..100).map(|s| (s, if s < 50 { s * 10 } else { s * 10 - 10 })).collect();
        let columns = rates(&totals, 10);
        assert_eq!(columns.len(), 10);
        let holes: Vec<_> = columns.iter().filter(|(_, r)| r.hole).map(|(c, _)| *c).collect();
        // Nothing was done in second 0 (the counter starts at 0) nor in second 50.
        assert_eq!(holes, [0, 5]);
        assert_eq!(columns[&3].sum, 100.0);
    }

    #[test]
    fn a_gap_spreads_its_work_and_a_restart_does_not_underflow() {
        let columns = rates(&[(0, 10), (4, 50), (5, 3)], 1);
        assert_eq!(columns[&2].sum, 10.0);
        assert_eq!(columns[&5].sum, 3.0);
        // A gap of a century takes no longer than its columns, which it covers whole.
        let columns = rates(&[(0, 0), (4_000_000_000, 1_000)], 1_000_000_000);
        let seconds: Vec<_> = columns.values().map(|rate| rate.seconds).collect();
        assert_eq!(seconds, [1e9, 1e9, 1e9, 1e9, 1.0]);
    }
}
