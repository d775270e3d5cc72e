//! `punctual cost`.

use clap::ArgMatches;

use super::live::Live;
use super::run::{self, Told};
use crate::ending::Ending;
use crate::request;

pub fn execute(matches: &ArgMatches) -> anyhow::Result<Ending> {
    let plan = request::costs(matches)?;
    let told = if matches.get_flag("verbose") { Told::WithTimings } else { Told::Summary };
    run::measure(matches, &plan, &request::options(matches), Live::Never, told)
}
