//! A run that goes on with one that was cut short.

use std::path::Path;

use punctual_core::layout;
use punctual_core::schema::{
    BoardIdentity, Cell, CellState, Condition, Continuation, Outcome, Run, RunState, same_hardware,
};
use punctual_core::units::{grouped, human_ns};
use punctual_sys::error;

use super::prepared::Prepared;
use super::run_dir::RunDir;

/// What must be the same, by what it is called. The tool too: another version may measure
/// something else.
fn differences(before: &Run, now: &Run) -> Vec<String> {
    let board = |run: &Run| {
        let board = &run.board;
        format!("{} ({}, {} CPUs, {})", board.name, board.cpu_model, board.cpus, board.fingerprint)
    };
    let kernel = |run: &Run| {
        let kernel = &run.kernel;
        format!("{} {} {}", kernel.release, kernel.version, kernel.command_line)
    };
    let hardware = |run: &Run| {
        let known: Vec<_> = run.board.identity.iter().map(BoardIdentity::to_string).collect();
        known.join(", ")
    };
    let is_other = same_hardware(&before.board.identity, &now.board.identity) == Some(false);
    let rights = |run: &Run| if run.privileged { "real-time" } else { "not real-time" }.to_owned();
    let pairs = [
        ("machine", board(before), board(now)),
        ("kernel", kernel(before), kernel(now)),
        ("plan", before.plan_hash.clone(), now.plan_hash.clone()),
        ("version of punctual", before.tool.version.clone(), now.tool.version.clone()),
        ("scheduling", rights(before), rights(now)),
    ];
    let of_hardware =
        is_other.then(|| ("identity of the machine", hardware(before), hardware(now)));
    let differ = pairs.into_iter().chain(of_hardware).filter(|(_, before, now)| before != now);
    differ.map(|(what, before, now)| format!("the {what} was {before}, and is {now}")).collect()
}

/// Whether a cell stays as it is. One that has missed its deadline or was broken off stays so,
/// however short it was: measuring again until it passes would be no test.
fn is_kept(cell: &Cell) -> bool {
    let decided = matches!(cell.verdict.outcome, Outcome::Fail | Outcome::Break);
    cell.state == CellState::Complete || decided
}

/// The cells that are still to be measured.
pub(super) fn left<'a>(
    cells: &'a [Prepared],
    before: Option<&'a Run>,
) -> impl Iterator<Item = &'a Prepared> {
    let known = move |number: usize| before.and_then(|before| before.cells.get(number));
    let left = cells.iter().enumerate();
    left.filter(move |(number, _)| !known(*number).is_some_and(is_kept)).map(|(_, cell)| cell)
}

/// Whether `before` is still the record of the run, whose lock is now held by `store`.
///
/// # Errors
/// Another process has continued it after it was read, or it cannot be read.
pub(super) fn check_unchanged(before: &Run, store: &RunDir) -> Result<(), String> {
    let refuse = |why: &str| format!("cannot continue {}: {why}", store.path().display());
    let text = store.read_run().map_err(|why| refuse(&error::text(&why)))?;
    let run: serde_json::Value =
        serde_json::from_slice(&text).map_err(|why| refuse(&format!("run.json: {why}")))?;
    let times = run.get("continued").and_then(|times| times.as_array()).map_or(0, Vec::len);
    if times == before.continued.len() {
        return Ok(());
    }
    Err(refuse("another punctual has continued it meanwhile; try again"))
}

/// The record of a run that goes on with `before` in `dir`: its finished cells, and the others
/// as `now` has planned them.
///
/// # Errors
/// Why it cannot go on; the message names what differs.
pub(super) fn merge(before: &Run, now: Run, dir: &Path) -> Result<Run, String> {
    let refuse = |why: String| {
        Err(format!("cannot continue {}: {why}; measure anew without --continue", dir.display()))
    };
    let differ = differences(before, &now);
    if !differ.is_empty() {
        return refuse(differ.join("; "));
    }
    if before.cells.len() != now.cells.len() {
        return refuse("its cells are not those of its plan".to_owned());
    }
    let kept = before.cells.iter().filter(|cell| is_kept(cell)).count();
    if kept == before.cells.len() {
        return refuse("every cell has its result, and nothing is left to measure".to_owned());
    }
    let cells = before.cells.iter().zip(now.cells);
    let cells = cells.map(
        |(before, now)| if is_kept(before) { before.clone() } else { again(before, now, dir) },
    );
    let mut run =
        Run { state: RunState::Running, ended: None, cells: cells.collect(), ..before.clone() };
    for condition in now.conditions {
        if run.conditions.iter().all(|known| known.id != condition.id) {
            run.conditions.push(condition);
        }
    }
    run.continued.push(Continuation { started: now.started, kept, command: now.tool.command });
    Ok(run)
}

/// A cell that is measured again, in a folder of its own beside what was cut short.
fn again(before: &Cell, now: Cell, dir: &Path) -> Cell {
    let cells = dir.join(layout::CELLS);
    let folder = layout::unused(&cells, &now.dir, Path::exists);
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let mut cell = Cell { dir: name.unwrap_or_else(|| now.dir.clone()), ..now };
    cell.conditions.extend(before.conditions.iter().filter(|c| c.id == CUT).cloned());
    if before.is_measured() {
        let max =
            before.max_ns().map_or_else(String::new, |max| format!(", max {}", human_ns(max)));
        let text = format!(
            "a first try was cut short after {} samples{max}: they are in cells/{} and not in \
             these numbers",
            grouped(before.samples()),
            before.dir,
        );
        cell.conditions.push(Condition { id: CUT.to_owned(), text });
    }
    cell
}

/// Id of the condition of a cell that was measured again.
const CUT: &str = "measured-again";
