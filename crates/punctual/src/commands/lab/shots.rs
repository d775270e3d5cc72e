//! How aimed releases are put down, whichever course they belong to.

use punctual_core::aimed::{AimedCell, Course, Shot, Target};
use punctual_core::block::Outlier;
use punctual_core::run::LoadedRun;
use punctual_core::schema::Cell;
use punctual_lab::microscope;

/// The samples of a cell's thread.
pub fn samples(run: &LoadedRun, cell: usize) -> &[Outlier] {
    let thread = run.cells.get(cell).and_then(|cell| cell.threads.first());
    thread.map_or(&[], |thread| &thread.primary().outliers)
}

/// The aimed releases of the cell `of`. What was aimed at is in the cell with this index of the run
/// that was watched, and `passed_over` were not.
pub fn aimed_cell(
    of: &Cell,
    course: Course,
    (watched, cell): (&LoadedRun, usize),
    passed_over: u64,
    targets: Vec<Target>,
) -> AimedCell {
    AimedCell {
        key: of.key.clone(),
        load: of.load.clone(),
        course,
        samples: samples(watched, cell).len() as u64,
        sampled_max_ns: watched.run.cells[cell].max_ns().and_then(|max| u64::try_from(max).ok()),
        passed_over,
        targets,
    }
}

/// What came of a release that was aimed in this round.
pub fn target(target: &microscope::Target, round: u32, measured: Shot) -> Target {
    Target {
        section: target.section.clone(),
        number: target.aim.release,
        at_ns: target.at_ns,
        predicted_ns: target.predicted_ns,
        round,
        measured,
    }
}

/// Why a release proves nothing.
pub fn failure(error: &anyhow::Error) -> Shot {
    Shot::Failed { why: format!("{error:#}") }
}
