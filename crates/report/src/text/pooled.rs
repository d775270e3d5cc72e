//! Several runs judged as one, as the terminal shows them.

use punctual_core::verdict::Pooled;

use super::style::{Paint, of_outcome};
use super::summary::lead;
use super::wrap::push_wrapped;
use crate::words;

/// What all of the runs together show. `width` in columns.
#[must_use]
pub fn pooled(pooled: &Pooled, width: usize, colour: bool) -> String {
    let paint = Paint::new(colour);
    let mut out = String::new();
    let outcome = pooled.verdict.outcome;
    let all = words::labelled(words::outcome(outcome, true), &words::labels_pooled(pooled));
    let (first, indent) = lead(&mut out, all, of_outcome(outcome), width, paint);
    let mut reasons = pooled.verdict.because.iter();
    let share = reasons.next().map_or_else(String::new, |share| words::clean(share).into_owned());
    push_wrapped(&mut out, &share, &first, indent, width);
    let of_cells = || pooled.cells.iter().flat_map(|cell| &cell.verdict.because);
    for reason in reasons {
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
        let text = format!("not every run has {}: that forbids a PASS", words::key_name(key));
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
