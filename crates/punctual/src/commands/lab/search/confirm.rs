//! The latest release under the best mix of a search, measured.

use std::fs;
use std::path::Path;

use anyhow::Context;
use punctual_core::search::Confirmed;
use punctual_lab::experiment::Experiment;

use crate::commands::lab::aim::{LONGEST, Wish, shoot};
use crate::commands::lab::sections::Watching;

/// The runs of the aimed releases, in the folder of the search.
const AIMED: &str = "aimed";

/// Aims so many releases of each guest of the best mix, in the courses that the search knows, and
/// says whether a guest failed. `None` if that was interrupted.
///
/// # Errors
/// A guest failed that was watched, or nothing can be written.
pub fn confirm(
    mut experiment: Experiment,
    load: &str,
    out: &Path,
    count: usize,
    quiet: bool,
) -> anyhow::Result<Option<(Vec<Confirmed>, bool)>> {
    let folder = out.join(AIMED);
    if folder.exists() {
        // Of a search that was interrupted, or had a smaller budget.
        fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    if let Some(cell) = experiment.plan.cells.first_mut() {
        load.clone_into(&mut cell.load);
    }
    let names: Vec<String> = experiment.kernels.iter().map(|kernel| kernel.name.clone()).collect();
    let watching = Watching::new(experiment, folder.clone(), LONGEST, quiet)?;
    let Some(aimed) = shoot(&watching, Wish { count, alone: false })? else { return Ok(None) };
    aimed.keep(&folder)?;
    let of = |(done, run): (&punctual_lab::experiment::Done, &punctual_core::aimed::AimedRun)| {
        let cells = run.cells.iter();
        let targets: Vec<_> = cells.clone().flat_map(|cell| &cell.targets).collect();
        Confirmed {
            kernel: names[done.place.kernel].clone(),
            seed: done.place.seed(),
            predicted_ns: targets.iter().map(|target| target.predicted_ns).max(),
            aimed_ns: targets.iter().filter_map(|target| target.latency_ns()).max(),
            sampled_max_ns: cells.filter_map(|cell| cell.sampled_max_ns).max(),
        }
    };
    let confirmed = aimed.boots.done.iter().zip(&aimed.runs).map(of).collect();
    Ok(Some((confirmed, aimed.failed)))
}
