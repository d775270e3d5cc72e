//! `punctual-board run` and `cost`.

use punctual_core::judge::Unjudged;
use punctual_core::plan::Plan;
use punctual_suite::engine::{self, Finished};
use punctual_sys::signal::Signals;

use crate::ending::Ending;
use crate::follow::Follow;
use crate::line::Line;
use crate::{PROGRAM, numbers, request};

/// Measures latencies.
pub fn probes(words: &[String]) -> anyhow::Result<Ending> {
    let line = Line::read(words, &[request::BOTH, request::PARAMS, request::PROBES])?;
    measure(&request::probes(&line)?, &line)
}

/// Measures costs.
pub fn costs(words: &[String]) -> anyhow::Result<Ending> {
    let line = Line::read(words, &[request::BOTH])?;
    measure(&request::costs(&line)?, &line)
}

fn measure(plan: &Plan, line: &Line) -> anyhow::Result<Ending> {
    let options = request::options(line)?;
    let mut follow = Follow::new(plan, line.has("quiet"));
    let finished = engine::run(plan, &options, &Unjudged, &mut follow)?;
    follow.clear();
    let Finished { run, dir, signals, ended_by, not_written } = finished;
    if let Some(reason) = &not_written {
        eprintln!("{}: run.json could not be written: {reason}", PROGRAM.name);
    }
    let told = if line.has("json") {
        serde_json::to_string_pretty(&run)? + "\n"
    } else {
        numbers::of(&run) + &format!("{}\n", dir.path().display())
    };
    let said = numbers::say(&told);
    let ending = Ending::of(&run, ended_by.is_some() || came(&signals), not_written.is_none());
    // A late signal must not replace the exit status: the mask stays until the process ends.
    std::mem::forget(signals);
    said.map(|()| ending)
}

/// Whether a signal that ends a run has come meanwhile.
fn came(signals: &Signals) -> bool {
    std::iter::from_fn(|| signals.wait(0)).filter(|signal| signal.ends()).count() > 0
}
