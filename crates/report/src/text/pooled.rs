//! Several runs judged as one, as the terminal shows them.

use punctual_core::verdict::Pooled;

use super::style::{Paint, of_outcome};
use super::wrap::push_wrapped;
use crate::words;

/// What all of the runs together show. `width` in columns.
#[must_use]
pub fn pooled(pooled: &Pooled, width: usize, colour: bool) -> String {
    let paint = Paint::new(colour);
    let mut out = String::new();
    let mut all = words::outcome(pooled.verdict.outcome, true).to_owned();
    let labels = words::labels_pooled(pooled);
    if !labels.is_empty() {
        all.push_str(&format!(" ({})", labels.join(", ")));
    }
    let first = format!("{}  ", paint.apply(&all, of_outcome(pooled.verdict.outcome)));
    let text = format!("{} runs judged as one", pooled.runs.len());
    push_wrapped(&mut out, &text, &first, all.len() + 2, width);
    let of_cells = || pooled.cells.iter().flat_map(|cell| &cell.verdict.because);
    for reason in &pooled.verdict.because {
        if !of_cells().any(|told| told == reason) {
            push_wrapped(&mut out, &words::clean(reason), "  ", 2, width);
        }
    }
    for cell in &pooled.cells {
        let outcome = cell.verdict.outcome;
        let name = words::outcome(outcome, true);
        let first = format!("{}  ", paint.apply(name, of_outcome(outcome)));
        let mut reasons = cell.verdict.because.iter().map(|reason| words::clean(reason));
        let head = reasons.next().unwrap_or_default();
        push_wrapped(&mut out, &head, &first, name.len() + 2, width);
        for reason in reasons {
            push_wrapped(&mut out, &reason, "  ", 2, width);
        }
    }
    for key in &pooled.left_out {
        let text = format!(
            "not every run has {}: it does not count, and forbids a PASS",
            words::key_name(key)
        );
        push_wrapped(&mut out, &text, "  ! ", 4, width);
    }
    if !pooled.conditions.is_empty() {
        let ids = pooled.conditions.iter().map(|(id, runs)| match *runs {
            runs if runs == pooled.runs.len() => words::clean(id).into_owned(),
            runs => format!("{} (in {runs} of {})", words::clean(id), pooled.runs.len()),
        });
        let text = format!(
            "conditions, which `punctual show RUN` explains: {}",
            ids.collect::<Vec<_>>().join(", ")
        );
        push_wrapped(&mut out, &text, "  ! ", 4, width);
    }
    out
}
