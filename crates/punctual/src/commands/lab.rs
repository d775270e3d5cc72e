//! `punctual lab`.

use clap::ArgMatches;

use crate::ending::Ending;

mod asked;
mod check;
mod history;
mod kernels;
mod progress;
mod run;

/// Executes the requested subcommand.
///
/// # Errors
/// Why it stopped; nothing has been booted.
pub fn execute(matches: &ArgMatches) -> anyhow::Result<Ending> {
    let Some((name, matches)) = matches.subcommand() else {
        return Ok(Ending::Done);
    };
    match name {
        "run" => run::execute(matches),
        "check" => check::execute(matches),
        "history" => history::execute(matches),
        "kernels" => kernels::list(matches),
        "fetch" => kernels::fetch(matches),
        other => anyhow::bail!("the command lab {other} is not connected"),
    }
}
