//! `punctual restore`.

use anyhow::Context;
use clap::ArgMatches;
use punctual_suite::knobs;

use crate::ending::Ending;
use crate::output;

pub fn execute(matches: &ArgMatches) -> anyhow::Result<Ending> {
    let dry_run = matches.get_flag("dry-run");
    let report = knobs::restore(dry_run).context("restore")?;
    if matches.get_flag("json") {
        output::print_json(&serde_json::json!({
            "dry_run": dry_run,
            "done": report.done,
            "failed": report.failed,
            "kept": report.kept,
        }))?;
    } else {
        let head = if dry_run { "would be done: " } else { "" };
        let mut text: String = report.done.iter().map(|line| format!("{head}{line}\n")).collect();
        text.extend(report.kept.iter().map(|line| format!("left alone: {line}\n")));
        if text.is_empty() && report.failed.is_empty() {
            text.push_str("nothing to restore\n");
        }
        output::print(&text)?;
    }
    for line in &report.failed {
        output::complain(line);
    }
    Ok(if report.failed.is_empty() { Ending::Done } else { Ending::Failed })
}
