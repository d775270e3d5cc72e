//! `punctual show`.

use anyhow::ensure;
use clap::ArgMatches;
use punctual_report::text;

use super::judged::judged;
use super::pool;
use crate::ending::Ending;
use crate::{output, store};

pub fn execute(matches: &ArgMatches) -> anyhow::Result<Ending> {
    let names: Vec<&String> = matches.get_many("runs").into_iter().flatten().collect();
    let [name] = names[..] else {
        let of_one = matches.get_flag("all") || matches.get_flag("extremes");
        ensure!(!of_one, "--all and --extremes show one run; several are judged as one");
        return pool::execute(matches);
    };
    let run = judged(matches, &store::find_one(name)?)?;
    if matches.get_flag("json") {
        // run.json cannot record damage of its own directory.
        run.damage.iter().for_each(|line| output::complain(line));
        output::print_json(&run.run)?;
    } else {
        let lay_out = if matches.get_flag("all") { text::details } else { text::summary };
        output::print(&lay_out(&run, output::width(), output::colour()))?;
        if matches.get_flag("extremes") {
            output::print(&text::extremes(&run, output::width()))?;
        }
    }
    Ok(Ending::Judged(run.run.verdict.outcome))
}
