//! A recorded run, judged as its command line asks.

use std::path::Path;

use clap::ArgMatches;
use punctual_core::run::LoadedRun;

use crate::{request, store};

/// Reads a run and judges it by its plan, or by what the options say instead.
///
/// # Errors
/// It cannot be read, or the options make no rule.
pub fn judged(matches: &ArgMatches, dir: &Path) -> anyhow::Result<LoadedRun> {
    let mut run = store::load(dir)?;
    let mut plan = run.run.plan.clone();
    request::judgement(matches, &mut plan)?;
    if plan != run.run.plan {
        plan.check()?;
        store::judge_again(&mut run, plan);
    }
    Ok(run)
}
