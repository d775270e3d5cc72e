//! `punctual pool`, and `punctual show` of several runs.

use clap::ArgMatches;
use punctual_core::verdict::pool;
use punctual_report::text;

use super::judged::judged;
use crate::ending::Ending;
use crate::{output, store};

pub fn execute(matches: &ArgMatches) -> anyhow::Result<Ending> {
    let names = matches.get_many::<String>("runs").into_iter().flatten();
    let mut runs = Vec::new();
    for name in names {
        for dir in store::find_all(name)? {
            let run = judged(matches, &dir)?;
            run.damage.iter().for_each(|line| output::complain(line));
            // Its samples are not needed any more, and there may be hundreds of runs.
            runs.push(run.run);
        }
    }
    let pooled = pool(&runs.iter().collect::<Vec<_>>())?;
    if matches.get_flag("json") {
        output::print_json(&pooled)?;
    } else {
        output::print(&text::pooled(&pooled, output::width(), output::colour()))?;
    }
    Ok(Ending::Judged(pooled.verdict.outcome))
}
