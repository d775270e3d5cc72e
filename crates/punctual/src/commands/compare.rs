//! `punctual compare`.

use std::path::PathBuf;

use clap::ArgMatches;
use punctual_core::compare::compare;
use punctual_report::text;

use super::report;
use crate::ending::Ending;
use crate::output;

pub fn execute(matches: &ArgMatches) -> anyhow::Result<Ending> {
    let runs = report::runs(matches)?;
    let comparison = compare(&runs);
    if let Some(path) = matches.get_one::<PathBuf>("output") {
        report::write(&runs, path, None)?;
    }
    if matches.get_flag("json") {
        output::print_json(&comparison)?;
    } else {
        output::print(&text::comparison(&comparison, output::width(), output::colour()))?;
    }
    Ok(Ending::Done)
}
