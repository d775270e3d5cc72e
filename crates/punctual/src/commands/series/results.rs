//! What came of a series: its runs judged as one, or compared.

use std::path::{Path, PathBuf};

use punctual_core::compare::compare;
use punctual_core::run::LoadedRun;
use punctual_core::schema::{Cell, Outcome, Run};
use punctual_core::verdict::{PoolError, Pooled, pool};
use punctual_report::{text, words};
use serde_json::{Value, json};

use crate::commands::report::called;
use crate::ending::Ending;
use crate::{output, store};

/// What came of a series.
#[derive(Debug, Default)]
pub(super) struct Results {
    /// A signal asked for an end.
    pub interrupted: bool,
    /// What went wrong.
    pub failed: Option<String>,
    /// The records of the runs, judged here and now, and their folders.
    records: Vec<(PathBuf, Run)>,
    /// The runs judged as one, if they can be.
    pooled: Option<Pooled>,
    /// The runs with their recordings, if they are compared instead.
    compared: Vec<LoadedRun>,
}

/// The largest latency of a run, ns.
pub(super) fn max_ns(run: &Run) -> Option<i64> {
    run.cells.iter().filter_map(Cell::max_ns).max()
}

impl Results {
    /// Judges the runs in these folders as one, as `punctual pool` does. What there is nothing to
    /// judge by, or only one of, is compared.
    pub fn judge(&mut self, dirs: &[PathBuf]) {
        for dir in dirs {
            match store::load(dir) {
                // Its samples are not needed any more, and there may be hundreds of runs.
                Ok(run) => {
                    run.damage.iter().for_each(|line| output::complain(line));
                    self.records.push((dir.clone(), run.run));
                }
                Err(error) => {
                    let text = format!("{error:#}");
                    output::complain(&text);
                    self.failed.get_or_insert(text);
                }
            }
        }
        match pool(&self.records.iter().map(|(_, run)| run).collect::<Vec<_>>()) {
            Ok(pooled) => self.pooled = Some(pooled),
            Err(error) => {
                match error {
                    PoolError::Few | PoolError::NoDeadline | PoolError::NoLatencies => {}
                    PoolError::Kernels(..) | PoolError::Rules(..) | PoolError::Virtual(_) => {
                        let text = format!("the runs cannot be judged as one: {error}");
                        output::complain(&text);
                        self.failed.get_or_insert(text);
                    }
                }
                let dirs: Vec<_> = self.records.iter().map(|(dir, _)| dir.clone()).collect();
                self.compared = dirs.iter().filter_map(|dir| store::load(dir).ok()).collect();
                called(&mut self.compared, &dirs);
            }
        }
    }

    /// Whether there is no run.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Prints the runs as one, or compared; one alone as `punctual run` would.
    ///
    /// # Errors
    /// Those of [`output::print`].
    pub fn print(&self) -> anyhow::Result<()> {
        let (width, colour) = (output::width(), output::colour());
        if let Some(pooled) = &self.pooled {
            return output::print(&text::pooled(pooled, width, colour));
        }
        match &self.compared[..] {
            [] => Ok(()),
            [run] => output::print(&text::summary(run, width, colour)),
            runs => output::print(&text::comparison(&compare(runs), width, colour)),
        }
    }

    /// The one document of `--json`, about the series in the folder `out`.
    pub fn document(&self, out: &Path) -> Value {
        let runs = self.records.iter().map(|(dir, run)| {
            json!({
                "run": dir.to_string_lossy(),
                "run_id": run.run_id,
                "replicate": run.replicate,
                "outcome": run.verdict.outcome,
                "labels": words::labels(run),
                "max_ns": max_ns(run),
            })
        });
        json!({
            "out": out.to_string_lossy(),
            "interrupted": self.interrupted,
            "error": self.failed,
            "runs": runs.collect::<Vec<_>>(),
            "pooled": self.pooled,
            "comparison": (self.compared.len() > 1).then(|| compare(&self.compared)),
        })
    }

    /// A signal comes first, then an error, then the verdict: of all runs as one, or the worst.
    pub fn ending(&self) -> Ending {
        if self.interrupted {
            return Ending::Interrupted;
        }
        if self.failed.is_some() {
            return Ending::Failed;
        }
        let worst = || self.records.iter().map(|(_, run)| run.verdict.outcome).max();
        let outcome = self.pooled.as_ref().map(|pooled| pooled.verdict.outcome).or_else(worst);
        Ending::Judged(outcome.unwrap_or(Outcome::None))
    }
}
