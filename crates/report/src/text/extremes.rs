//! What may lie beyond the samples, as the terminal shows it.

use punctual_core::run::LoadedRun;
use punctual_core::stats::extreme;

use super::wrap::push_wrapped;
use crate::words;

/// The extrapolation of every thread, or why there is none. `width` in columns.
#[must_use]
pub fn extremes(loaded: &LoadedRun, width: usize) -> String {
    let mut out = String::new();
    if loaded.run.board.is_deterministic() {
        let text = "no extrapolation: on this virtual board a run is all that its seed and phase can \
                    give; vary them, or aim a release (punctual lab aim)";
        push_wrapped(&mut out, text, "  ", 2, width);
        return out;
    }
    for (cell, data) in loaded.run.cells.iter().zip(&loaded.cells) {
        if cell.samples() == 0 {
            continue;
        }
        if !cell.phases.is_empty() {
            let text = "no extrapolation: its load changes on a schedule; measure each load in a \
                        cell of its own";
            push_wrapped(&mut out, &words::key_name(&cell.key), "  ", 2, width);
            push_wrapped(&mut out, text, "    ", 4, width);
            continue;
        }
        let answers = extreme::from_cell(data, 0);
        let several = answers.len() > 1;
        for (number, answer) in answers.iter().enumerate() {
            let thread = if several { format!(", thread {number}") } else { String::new() };
            let title = format!("{}{thread}", words::key_name(&cell.key));
            push_wrapped(&mut out, &title, "  ", 2, width);
            for sentence in answer.sentences() {
                push_wrapped(&mut out, &sentence, "    ", 4, width);
            }
        }
    }
    out
}
