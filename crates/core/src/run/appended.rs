//! `cells.jsonl`: the cells of a run whose `run.json` is too large to be rewritten for each of them.

use serde::{Deserialize, Serialize};

use super::limits::has_too_many_values;
use crate::schema::{Cell, Run, RunState};

/// A line of the file, as it is written.
#[derive(Serialize)]
struct Line<'a> {
    number: usize,
    cell: &'a Cell,
}

/// A line of the file, as it is read.
#[derive(Deserialize)]
struct ReadLine {
    number: usize,
    cell: Cell,
}

/// The line that says what the cell with this number has become. It begins with a new line, so that
/// what is left of one that could not be written ends before it.
///
/// # Errors
/// There is no such cell, or it cannot be written as JSON.
pub fn line_of(run: &Run, number: usize) -> serde_json::Result<Vec<u8>> {
    let cell = run.cells.get(number).ok_or_else(|| serde::ser::Error::custom("no such cell"))?;
    let mut line = vec![b'\n'];
    serde_json::to_writer(&mut line, &Line { number, cell })?;
    Ok(line)
}

/// Puts into a run that was cut short what its cells have become since its `run.json` was written. A
/// line that is damaged, or of another cell than `run.json` has, says nothing; so does the whole file
/// for a run that has ended.
pub fn put_in(run: &mut Run, bytes: &[u8]) {
    if run.state != RunState::Running || has_too_many_values(bytes) {
        return;
    }
    for line in bytes.split(|byte| *byte == b'\n') {
        let Ok(ReadLine { number, cell }) = serde_json::from_slice(line) else { continue };
        match run.cells.get_mut(number) {
            Some(known) if known.key == cell.key => *known = cell,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::CellState;

    fn run() -> Run {
        let text = include_str!("../../../../fuzz/seeds/run_json/simulated");
        let mut run: Run = serde_json::from_str(text).unwrap();
        run.state = RunState::Running;
        let mut second = run.cells[0].clone();
        second.key.push('2');
        run.cells.push(second);
        run.cells.iter_mut().for_each(|cell| cell.state = CellState::Pending);
        run
    }

    #[test]
    fn the_last_line_of_a_cell_counts_and_what_is_torn_does_not() {
        let mut written = run();
        let mut bytes = Vec::new();
        written.cells[1].state = CellState::Running;
        bytes.extend(line_of(&written, 1).unwrap());
        // The disk was full.
        let torn = line_of(&written, 0).unwrap();
        bytes.extend(&torn[..torn.len() / 2]);
        written.cells[1].state = CellState::Complete;
        bytes.extend(line_of(&written, 1).unwrap());
        let mut read = run();
        put_in(&mut read, &bytes);
        assert_eq!(read, written);
        // Killed while it wrote.
        let mut read = run();
        put_in(&mut read, &bytes[..bytes.len() - 1]);
        assert_eq!(
            [0, 1].map(|cell| read.cells[cell].state),
            [CellState::Pending, CellState::Running]
        );
        assert!(line_of(&written, written.cells.len()).is_err());
    }

    #[test]
    fn cells_of_another_run_are_left_out_and_a_run_that_has_ended_is_as_it_is() {
        let mut other = run();
        other.cells[1].state = CellState::Complete;
        let bytes = line_of(&other, 1).unwrap();
        let mut ended = run();
        ended.state = RunState::Complete;
        put_in(&mut ended, &bytes);
        assert_eq!(ended.cells[1].state, CellState::Pending);
        other.cells[1].key.push('x');
        let mut read = run();
        put_in(&mut read, &line_of(&other, 1).unwrap());
        assert_eq!(read, run());
    }
}
