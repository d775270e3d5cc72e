//! How aimed releases are put down, whichever course they belong to.

use punctual_core::aimed::{AimedCell, Course, Shot, Target};
use punctual_core::block::Outlier;
use punctual_core::run::LoadedRun;
use punctual_core::schema::Cell;
use punctual_lab::microscope::{self, Targets};

/// The samples of a cell's thread.
pub fn samples(run: &LoadedRun, cell: usize) -> &[Outlier] {
    let thread = run.cells.get(cell).and_then(|cell| cell.threads.first());
    thread.map_or(&[], |thread| &thread.primary().outliers)
}

/// The aimed releases of the cell `of`. What was aimed at is in the cell with this index of the run
/// that was watched, and `measured` is what came of each target.
pub fn aimed_cell(
    of: &Cell,
    course: Course,
    (watched, cell): (&LoadedRun, usize),
    targets: &Targets,
    measured: impl IntoIterator<Item = Shot>,
) -> AimedCell {
    AimedCell {
        key: of.key.clone(),
        load: of.load.clone(),
        course,
        samples: samples(watched, cell).len() as u64,
        sampled_max_ns: watched.run.cells[cell].max_ns().and_then(|max| u64::try_from(max).ok()),
        passed_over: targets.passed_over,
        targets: targets.targets.iter().zip(measured).map(target).collect(),
    }
}

fn target((target, measured): (&microscope::Target, Shot)) -> Target {
    Target {
        section: target.section.clone(),
        number: target.aim.release,
        at_ns: target.at_ns,
        predicted_ns: target.predicted_ns,
        measured,
    }
}
