//! `punctual show`.

use clap::ArgMatches;
use punctual_report::text;

use super::report;
use crate::ending::Ending;
use crate::{output, request, store};

pub fn execute(matches: &ArgMatches) -> anyhow::Result<Ending> {
    let runs = report::runs(matches)?;
    let mut ending = Ending::Done;
    for mut run in runs {
        let recorded = run.run.plan.clone();
        let mut plan = recorded.clone();
        request::judgement(matches, &mut plan);
        if plan != recorded {
            plan.check()?;
            store::judge_again(&mut run, plan);
            ending = Ending::Judged(run.run.verdict.outcome);
        }
        if matches.get_flag("json") {
            // run.json has no place for what is wrong with its own directory.
            run.damage.iter().for_each(|line| output::complain(line));
            output::print_json(&run.run)?;
        } else {
            let lay_out = if matches.get_flag("all") { text::details } else { text::summary };
            output::print(&lay_out(&run, output::width(), output::colour()))?;
        }
    }
    Ok(ending)
}
