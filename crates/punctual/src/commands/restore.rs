//! `punctual restore`.

use clap::ArgMatches;
use punctual_lab::user_cache::remove_leftovers;
use punctual_report::text::push_wrapped;
use punctual_suite::knobs;

use crate::ending::Ending;
use crate::output;

pub fn execute(matches: &ArgMatches) -> anyhow::Result<Ending> {
    let dry_run = matches.get_flag("dry-run");
    let mut report = knobs::restore(dry_run);
    let of_cache = remove_leftovers(dry_run);
    report.done.extend(of_cache.done);
    report.failed.extend(of_cache.failed);
    report.kept.extend(of_cache.kept);
    if matches.get_flag("json") {
        output::print_json(&serde_json::json!({
            "dry_run": dry_run,
            "done": report.done,
            "failed": report.failed,
            "kept": report.kept,
        }))?;
    } else {
        let head = if dry_run { "would be done: " } else { "" };
        let width = output::line_width();
        let mut text = String::new();
        for line in &report.done {
            push_wrapped(&mut text, &format!("{head}{line}"), "", 2, width);
        }
        for line in &report.kept {
            push_wrapped(&mut text, &format!("left alone: {line}"), "", 2, width);
        }
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
