//! Indices: several costs of a run as one number, the weighted geometric mean of how much faster
//! than a published machine it is. They are punctual's own: what they put together resembles what
//! UnixBench and AIM's suites do, but neither their programs nor their scales are used, and their
//! results compare with nothing but themselves.

use serde::Serialize;

use crate::key::NO_LOAD;
use crate::published;
use crate::schema::{Better, Cell, Cost, Run};
use crate::stats::{Known, combined};

/// The publication and the kernel that the value 100 stands for.
pub const BASELINE: (&str, &str) = ("koolwal-geode", "2.6.26-vl-custom");

/// The value of the baseline.
const OF_BASELINE: f64 = 100.0;

/// What an index consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Index {
    /// Its name.
    pub name: &'static str,
    /// What it resembles, and what it is not.
    pub summary: &'static str,
    /// Its parts.
    pub parts: &'static [IndexPart],
}

/// A part of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexPart {
    /// The column of the table of costs.
    pub column: &'static str,
    /// Its weight; only their ratios count.
    pub weight: u32,
}

const fn part(column: &'static str, weight: u32) -> IndexPart {
    IndexPart { column, weight }
}

/// Every index.
pub static INDICES: &[Index] = &[
    Index {
        name: "index.unix",
        summary: "system calls, a pipe, switches, processes and a file, as UnixBench has them; \
                  punctual's own, not UnixBench",
        parts: &[
            part("null call", 1),
            part("bw pipe", 1),
            part("2p/0K", 1),
            part("fork proc", 1),
            part("exec proc", 1),
            part("sh proc", 1),
            part("bw file reread", 1),
        ],
    },
    // Five subjects of one weight each: files, processes, signals, memory, communication. TCP is
    // left out since the publication's column cannot be assigned.
    Index {
        name: "index.aim",
        summary: "files, processes, signals, memory and communication, as AIM's suites mix them; \
                  punctual's own, not AIM",
        parts: &[
            part("stat", 4),
            part("open/close", 4),
            part("bw file reread", 4),
            part("fork proc", 4),
            part("exec proc", 4),
            part("sh proc", 4),
            part("sig inst", 6),
            part("sig hdl", 6),
            part("mmap", 4),
            part("page fault", 4),
            part("bw bcopy libc", 4),
            part("pipe", 3),
            part("AF_UNIX", 3),
            part("UDP", 3),
            part("bw pipe", 3),
        ],
    },
];

/// An index of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IndexValue {
    /// Name of the index.
    pub name: &'static str,
    /// The load under which its parts were measured.
    pub load: String,
    /// The index: 100 for the baseline, twice as much if everything is twice as fast. Absent if a
    /// part is missing.
    pub value: Option<f64>,
    /// Lower end of its interval, from those of its parts; absent if one of them has none.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// How many parts it has.
    pub parts: usize,
    /// Columns of the parts that the run has no value of.
    pub missing: Vec<&'static str>,
}

/// The indices of a run, for each load under which it has a part of one; first without a load.
#[must_use]
pub fn of_run(run: &Run) -> Vec<IndexValue> {
    let mut loads: Vec<&str> = Vec::new();
    for cell in run.cells.iter().filter(|cell| value_of(cell).is_some()) {
        if !loads.contains(&cell.load.as_str()) {
            loads.push(&cell.load);
        }
    }
    if loads.is_empty() {
        return Vec::new();
    }
    loads.sort_by_key(|load| *load != NO_LOAD);
    let baseline = baseline();
    let of_load = |load: &str| {
        let cells: Vec<&Cell> = run.cells.iter().filter(|cell| cell.load == load).collect();
        INDICES.iter().map(|index| of_cells(index, load, &cells, &baseline)).collect::<Vec<_>>()
    };
    let found = loads.into_iter().flat_map(of_load);
    found.filter(|index| index.missing.len() < index.parts).collect()
}

/// Column, unit and value.
type Base = (String, String, f64);

fn baseline() -> Vec<Base> {
    let (citation, kernel) = BASELINE;
    let costs = published::find(citation).map(published::Citation::costs).unwrap_or_default();
    let costs = costs.into_iter().filter(|cost| cost.kernel == kernel);
    costs.filter_map(|cost| Some((cost.column, cost.unit, cost.value?))).collect()
}

fn value_of(cell: &Cell) -> Option<(&Cost, f64)> {
    let cost = cell.cost()?;
    Some((cost, cost.value.filter(|value| *value > 0.0)?))
}

fn of_cells(index: &Index, load: &str, cells: &[&Cell], baseline: &[Base]) -> IndexValue {
    let weights: f64 = index.parts.iter().map(|part| f64::from(part.weight)).sum();
    let (mut missing, mut logs) = (Vec::new(), 0.0);
    let mut known: Option<Vec<(f64, Known)>> = Some(Vec::new());
    for part in index.parts {
        let Some((cost, ratio)) = of_part(part, cells, baseline) else {
            missing.push(part.column);
            continue;
        };
        let share = f64::from(part.weight) / weights;
        let power = if cost.better == Better::More { share } else { -share };
        logs += power * ratio.ln();
        let ends = cost.value.zip(cost.low.zip(cost.high));
        match (&mut known, ends) {
            (Some(known), Some((value, (low, high)))) => known.push((power, [low, value, high])),
            _ => known = None,
        }
    }
    let value = Some(logs.exp() * OF_BASELINE).filter(|_| missing.is_empty());
    let width = value.and_then(|_| combined(&known?));
    IndexValue {
        name: index.name,
        load: load.to_owned(),
        value,
        low: value.zip(width).map(|(value, [low, _])| value * low),
        high: value.zip(width).map(|(value, [_, high])| value * high),
        parts: index.parts.len(),
        missing,
    }
}

/// A part as it was measured, and over the baseline.
fn of_part<'a>(part: &IndexPart, cells: &[&'a Cell], baseline: &[Base]) -> Option<(&'a Cost, f64)> {
    let found = cells.iter().filter_map(|cell| value_of(cell));
    let (cost, value) =
        found.into_iter().find(|(cost, _)| cost.column.as_deref() == Some(part.column))?;
    let (_, unit, base) = baseline.iter().find(|(column, ..)| column == part.column)?;
    (cost.unit.name() == unit).then(|| (cost, value / base))
}

#[cfg(test)]
mod tests;
