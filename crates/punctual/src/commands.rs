//! The commands.

use clap::ArgMatches;

use crate::ending::Ending;

mod address;
mod between;
mod by;
mod compare;
mod cost;
mod draw;
mod export;
mod judged;
mod lab;
mod list;
mod live;
mod load;
mod manual;
mod plan_length;
mod pool;
mod progress;
mod report;
mod restore;
mod resume;
mod run;
mod series;
mod show;
mod signalled;

pub use by::By;

/// Executes the requested command.
///
/// # Errors
/// Why it stopped, worded for people.
pub fn execute(matches: &ArgMatches) -> anyhow::Result<Ending> {
    let Some((name, matches)) = matches.subcommand() else {
        return Ok(Ending::Done);
    };
    match name {
        "run" => run::execute(matches),
        "cost" => cost::execute(matches),
        "report" => report::execute(matches),
        "compare" => compare::execute(matches),
        "export" => export::execute(matches),
        "show" => show::execute(matches),
        "pool" => pool::execute(matches),
        "plan-length" => plan_length::execute(matches),
        "list" => list::execute(matches),
        "load" => load::execute(matches),
        "lab" => lab::execute(matches),
        "restore" => restore::execute(matches),
        "completions" => manual::completions(matches),
        "man" => manual::pages(matches),
        other => anyhow::bail!("the command {other} is not connected"),
    }
}
