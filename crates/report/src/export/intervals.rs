//! Which actor had which CPU, and when: as a table, and as trace events.

use std::collections::BTreeSet;

use punctual_core::interval::Interval;
use punctual_core::run::{CellData, LoadedRun};
use punctual_core::schema::{Cell, Origin};
use serde_json::Value;

use super::{Block, Choice, Field, chosen_cells};
use crate::words::{clean, key_name};

/// Rows that are made at a time.
const ROWS: usize = 4_096;

fn name_of(data: &CellData, actor: u32) -> String {
    match data.actors.get(&actor) {
        Some(name) => clean(name).into_owned(),
        None => format!("actor {actor}"),
    }
}

pub(super) fn blocks<'a>(
    number: usize,
    cell: &'a Cell,
    origin: Origin,
    data: &'a CellData,
) -> impl Iterator<Item = Block> + 'a {
    let row = |one: &Interval| -> Vec<Field> {
        let actor = Field::Text(name_of(data, one.actor));
        vec![u64::from(one.cpu).into(), one.from.into(), one.to.into(), actor]
    };
    let parts = data.intervals.chunks(ROWS);
    let count = parts.len();
    parts.enumerate().map(move |(part, intervals)| Block {
        cell: Some((number, cell.key.clone(), origin)),
        thread: None,
        columns: ["cpu", "from_ns", "to_ns", "actor"].map(str::to_owned).to_vec(),
        rows: intervals.iter().map(row).collect(),
        is_first: part == 0,
        is_last: part + 1 == count,
    })
}

/// The intervals as JSON in the Trace Event Format, which ui.perfetto.dev and chrome://tracing
/// open: a process for each cell, a thread for each CPU, times in us after the start of the cell. Each
/// item is a piece of the text; none if the chosen cells have no intervals.
pub fn trace_events<'a>(
    run: &'a LoadedRun,
    choice: &'a Choice,
) -> impl Iterator<Item = String> + 'a {
    let cells = chosen_cells(run, choice).filter(|(.., data)| !data.intervals.is_empty());
    let pieces = cells.flat_map(|(number, cell, data)| {
        let pid = number - 1;
        std::iter::once(described(pid, cell, data))
            .chain(data.intervals.chunks(ROWS).map(move |part| slices(pid, data, part)))
    });
    let mut pieces = pieces.peekable();
    let (begin, end) = match pieces.peek() {
        Some(_) => (Some("{\"displayTimeUnit\":\"ns\",\"traceEvents\":["), Some("\n]}\n")),
        None => (None, None),
    };
    // Every event follows a comma but the first.
    let pieces = pieces.enumerate().map(|(number, piece)| match number {
        0 => piece.replacen(',', "", 1),
        _ => piece,
    });
    begin.map(str::to_owned).into_iter().chain(pieces).chain(end.map(str::to_owned))
}

/// The names of a cell and of its CPUs.
fn described(pid: usize, cell: &Cell, data: &CellData) -> String {
    let cpus: BTreeSet<u32> = data.intervals.iter().map(|one| one.cpu).collect();
    let meta = |tid: u32, what: &str, name: String| {
        let name = Value::String(name);
        format!(
            ",\n{{\"ph\":\"M\",\"pid\":{pid},\"tid\":{tid},\"ts\":0,\"name\":\"{what}\",\
             \"args\":{{\"name\":{name}}}}}"
        )
    };
    let process = meta(0, "process_name", key_name(&cell.key));
    let threads = cpus.into_iter().map(|cpu| meta(cpu, "thread_name", format!("CPU {cpu}")));
    std::iter::once(process).chain(threads).collect()
}

fn slices(pid: usize, data: &CellData, intervals: &[Interval]) -> String {
    let slice = |one: &Interval| {
        let (name, ts) = (Value::String(name_of(data, one.actor)), us(one.from));
        let (dur, tid) = (us(one.to.saturating_sub(one.from)), one.cpu);
        format!(
            ",\n{{\"ph\":\"X\",\"pid\":{pid},\"tid\":{tid},\"ts\":{ts},\"dur\":{dur},\"name\":{name}}}"
        )
    };
    intervals.iter().map(slice).collect()
}

/// Microseconds to the nanosecond: a float has no room for those of a long run.
fn us(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000, ns % 1_000)
}
