//! `punctual compare`.

use std::path::PathBuf;

use anyhow::bail;
use clap::ArgMatches;
use punctual_core::compare::{
    Comparison, Margin, Standing, compare, compare_any_duration, not_worse, warm_against_cold,
};
use punctual_core::published;
use punctual_core::run::LoadedRun;
use punctual_core::schema::Outcome;
use punctual_report::published::{PublishedBeside, beside};
use punctual_report::{Options, text, words};
use serde::Serialize;

use super::report;
use crate::ending::Ending;
use crate::output;

mod exact;

pub use exact::compared;

pub fn execute(matches: &ArgMatches) -> anyhow::Result<Ending> {
    if matches.get_flag("exact") {
        return exact::execute(matches);
    }
    let runs = report::runs(matches)?;
    let cited = matches.get_one::<String>("published");
    let citation = cited.and_then(|name| published::find(name));
    if let [only] = &runs[..]
        && citation.is_none()
    {
        bail!("{}: one run is nothing to compare; name others too", words::clean(&only.run.run_id));
    }
    let json = matches.get_flag("json");
    let refused = runs.iter().filter_map(no_measurement).chain(warm_against_cold(&runs));
    let refused: Vec<String> = refused.collect();
    if !refused.is_empty() {
        refused.iter().for_each(|line| output::complain(line));
        if json {
            output::print_json(&serde_json::json!({ "refused": refused }))?;
        }
        return Ok(Ending::Refused);
    }
    let any_duration = matches.get_flag("any-duration");
    let comparison = if any_duration { compare_any_duration(&runs) } else { compare(&runs) };
    if let Some(path) = matches.get_one::<PathBuf>("output") {
        let published = citation.copied();
        report::write(&runs, path, &Options { title: None, any_duration, published })?;
    }
    let limit = matches.get_one::<f64>("not-worse-than");
    let judged = limit
        .filter(|_| comparison.groups.len() > 1)
        .map(|limit| not_worse(&runs, &comparison, *limit));
    let beside = citation.map(|citation| beside(&runs, citation));
    if json {
        output::print_json(&JudgedComparison {
            comparison: &comparison,
            not_worse_than: judged.as_ref(),
            published: beside.as_ref(),
        })?;
    } else {
        let (width, colour) = (output::width(), output::colour());
        if runs.len() > 1 {
            output::print(&text::comparison(&comparison, width, colour))?;
            output::print(&text::legs(&runs, width, colour))?;
        }
        if let Some(beside) = &beside {
            let gap = if runs.len() > 1 { "\n" } else { "" };
            output::print(&format!("{gap}{}", text::published(beside, width, colour)))?;
        }
        if let Some(judged) = &judged {
            output::print(&text::margin(judged, &comparison, width, colour))?;
        }
    }
    let nothing = comparison.cells.is_empty() && comparison.costs.is_empty();
    if nothing && runs.len() > 1 && beside.is_none() {
        bail!(
            "these runs have no cell in common, so nothing is compared: give them the same probes, \
             parameters, loads and durations (--any-duration matches cells of other durations)"
        );
    }
    Ok(match (limit, judged) {
        (None, _) => Ending::Done,
        (Some(_), None) => {
            output::complain(
                "all runs are of one side, so there is no other to be judged: give two folders, or \
                 --by",
            );
            Ending::Refused
        }
        (Some(_), Some(judged)) => Ending::Judged(match judged.outcome {
            Standing::NotWorse => Outcome::Pass,
            Standing::Inconclusive => Outcome::Inconclusive,
            Standing::Worse => Outcome::Fail,
        }),
    })
}

/// A comparison, and the judgement and the publication that were asked for.
#[derive(Serialize)]
struct JudgedComparison<'a> {
    #[serde(flatten)]
    comparison: &'a Comparison,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_worse_than: Option<&'a Margin>,
    #[serde(skip_serializing_if = "Option::is_none")]
    published: Option<&'a PublishedBeside>,
}

fn no_measurement(loaded: &LoadedRun) -> Option<String> {
    loaded.run.board.is_plumbing().then(|| {
        format!(
            "{}: not a measurement: the guest ran without instruction counting, so its latencies \
             are host noise; it is not compared, but `punctual show` shows it",
            words::clean(&loaded.run.run_id)
        )
    })
}
