//! Which experiments can be watched from outside, and where their punctual is seen at work.

use std::path::Path;

use anyhow::ensure;
use punctual_core::schema::Marks;
use punctual_lab::experiment::Experiment;
use punctual_lab::{microscope, program};
use punctual_suite::recorder::Recorder;

/// Where the board's punctual can be seen at work.
///
/// # Errors
/// It is not this program.
pub fn marks(experiment: &Experiment) -> anyhow::Result<Marks> {
    let own = program::find(experiment.board.arch, Some(Path::new("/proc/self/exe")));
    let is_own = own.is_ok_and(|own| own == experiment.program);
    ensure!(
        is_own,
        "what is watched must be this punctual itself: a static one for the board, and no --program"
    );
    Ok(Recorder::marks())
}

/// What boards and cells must be like to be watched: the releases of one thread are told apart.
///
/// # Errors
/// One is not, and which.
pub fn check(experiment: &Experiment) -> anyhow::Result<()> {
    microscope::watchable(&experiment.board)?;
    for cell in &experiment.plan.cells {
        let threads = cell.params.get("threads").map_or("1", String::as_str);
        let is_wakeup = cell.subject.name() == "wakeup";
        ensure!(
            is_wakeup && threads == "1",
            "only the probe wakeup with one thread can be watched, not {}",
            cell.subject.name()
        );
    }
    Ok(())
}
