//! `punctual-board restore`.

use punctual_suite::knobs;

use crate::PROGRAM;
use crate::ending::Ending;
use crate::line::{Line, flag};
use crate::numbers::say;

/// Undoes what runs left behind that were killed.
pub fn execute(words: &[String]) -> anyhow::Result<Ending> {
    let line = Line::read(words, &[&[flag("dry-run", ' ')]])?;
    let dry_run = line.has("dry-run");
    let report = knobs::restore(dry_run);
    let head = if dry_run { "would be done: " } else { "" };
    let done = report.done.iter().map(|line| format!("{head}{line}\n"));
    let kept = report.kept.iter().map(|line| format!("left alone: {line}\n"));
    let mut out: String = done.chain(kept).collect();
    if out.is_empty() && report.failed.is_empty() {
        out.push_str("nothing to restore\n");
    }
    say(&out)?;
    for line in &report.failed {
        eprintln!("{}: {line}", PROGRAM.name);
    }
    Ok(if report.failed.is_empty() { Ending::Done } else { Ending::Failed })
}
