//! `punctual show`.

use clap::ArgMatches;
use punctual_report::text;

use crate::ending::Ending;
use crate::{output, request, store};

pub fn execute(matches: &ArgMatches) -> anyhow::Result<Ending> {
    let names = matches.get_many::<String>("runs").into_iter().flatten();
    let mut ending = Ending::Done;
    for name in names {
        let mut run = store::load(&store::find_one(name)?)?;
        let recorded = run.run.plan.clone();
        let mut plan = recorded.clone();
        request::judgement(matches, &mut plan);
        if plan != recorded {
            plan.check()?;
            store::judge_again(&mut run, plan);
            ending = Ending::Judged(run.run.verdict.outcome);
        }
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
    }
    Ok(ending)
}
