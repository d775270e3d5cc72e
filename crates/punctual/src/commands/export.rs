//! `punctual export`.

use anyhow::{bail, ensure};
use clap::ArgMatches;
use punctual_core::run::LoadedRun;
use punctual_report::export::{
    Choice, CyclictestLayout, Exported, Format, blocks, cut_short, cyclictest, render,
    series_names, trace_events,
};

use crate::ending::Ending;
use crate::{output, store};

/// An empty file would look like an export that went wrong.
const NOTHING: &str = "nothing of this kind was recorded in the chosen cells";

pub fn execute(matches: &ArgMatches) -> anyhow::Result<Ending> {
    let name = matches.get_one::<String>("runs").map_or("last", String::as_str);
    let run = store::load(&store::find_one(name)?)?;
    let choice = Choice {
        cell: matches.get_one::<u32>("cell").map(|number| *number as usize),
        series: matches.get_one::<String>("series").cloned(),
    };
    let exported = match () {
        () if matches.get_flag("timeline") => Exported::Timeline,
        () if matches.get_flag("phases") => Exported::Phases,
        () if matches.get_flag("worst") => Exported::Worst,
        () if matches.get_flag("load") => Exported::Load,
        () if matches.get_flag("intervals") => Exported::Intervals,
        () if matches.get_flag("costs") => Exported::Costs,
        () => Exported::Histogram,
    };
    check(&run, &choice)?;
    run.damage.iter().for_each(|line| output::complain(line));
    if !matches!(exported, Exported::Load | Exported::Intervals | Exported::Costs) {
        for cell in cut_short(&run, &choice) {
            output::complain(&format!(
                "cell {cell} was cut short: its bins are up to 25 % wide, and its worst samples \
                 are not known"
            ));
        }
    }
    if matches.get_flag("perfetto") {
        let mut pieces = trace_events(&run, &choice).peekable();
        ensure!(pieces.peek().is_some(), NOTHING);
        for piece in pieces {
            output::print(&piece)?;
        }
        return Ok(Ending::Done);
    }
    let format = match () {
        () if matches.get_flag("csv") => Format::Csv,
        () if matches.get_flag("json") => Format::Json,
        () => Format::Text,
    };
    if (exported, format) == (Exported::Histogram, Format::Text) {
        let layout = CyclictestLayout {
            rows: matches.get_one::<u64>("rows").copied(),
            sum: matches.get_flag("sum"),
        };
        let text = cyclictest(&run, &choice, layout);
        ensure!(!text.is_empty(), NOTHING);
        output::print(&text)?;
        return Ok(Ending::Done);
    }
    let mut blocks = blocks(&run, exported, &choice).peekable();
    ensure!(blocks.peek().is_some(), NOTHING);
    for piece in render(blocks, format) {
        output::print(&piece)?;
    }
    Ok(Ending::Done)
}

/// An empty table must not look like a run without samples.
fn check(run: &LoadedRun, choice: &Choice) -> anyhow::Result<()> {
    let cells = run.run.cells.len();
    if let Some(number) = choice.cell
        && number > cells
    {
        let noun = if cells == 1 { "cell" } else { "cells" };
        bail!("--cell {number}: the run has {cells} {noun}");
    }
    let Some(series) = &choice.series else {
        return Ok(());
    };
    let names = series_names(run);
    if !names.contains(series) {
        bail!("--series {series}: the run has no such series; it has: {}", names.join(", "));
    }
    Ok(())
}
