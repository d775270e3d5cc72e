//! `punctual lab`.

use clap::ArgMatches;

use crate::ending::Ending;

mod again;
mod aim;
mod alone;
mod asked;
mod check;
mod explain;
mod folder;
mod given;
mod history;
mod kernels;
mod legs;
mod nearer;
mod progress;
mod run;
mod search;
mod sections;
mod shots;
mod watchable;

/// Executes the requested subcommand.
///
/// # Errors
/// Why it stopped; nothing has been booted.
pub fn execute(matches: &ArgMatches) -> anyhow::Result<Ending> {
    let Some((name, matches)) = matches.subcommand() else {
        return Ok(Ending::Done);
    };
    match name {
        "aim" => aim::execute(matches),
        "run" => run::execute(matches),
        "check" => check::execute(matches),
        "explain" => explain::execute(matches),
        "history" => history::execute(matches),
        "kernels" => kernels::list(matches),
        "search" => search::execute(matches),
        "sections" => sections::execute(matches),
        "fetch" => kernels::fetch(matches),
        other => anyhow::bail!("the command lab {other} is not connected"),
    }
}
