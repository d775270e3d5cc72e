//! The latency history of kernels: what each release measured with each preemption model, the
//! oldest release first.

use serde::Serialize;

use crate::compare::{KernelRuns, Spread, compare};
use crate::preemption::Model;
use crate::release::{series_of, version_key};
use crate::run::LoadedRun;

/// Kernels on one board under the same loads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct History {
    /// Keys of the cells with samples, in the order of the plan.
    pub cells: Vec<String>,
    /// The kernels, by release and then by model.
    pub kernels: Vec<HistoryKernel>,
    /// The boards that they ran on, such as `QEMU 7.2.22, x86_64, 1 CPU`; one, if all is well.
    pub boards: Vec<String>,
    /// What may not be concluded.
    pub caveats: Vec<String>,
}

/// A kernel with one preemption model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HistoryKernel {
    /// The first two numbers of its version, such as `6.12`.
    pub series: String,
    /// `uname -r`.
    pub release: String,
    /// `uname -v`, with the version of the package and its date.
    pub version: String,
    /// Its preemption model.
    pub model: Model,
    /// How often it was booted.
    pub boots: usize,
    /// What it measured, in the order of [`History::cells`]; `None` without samples.
    pub cells: Vec<Option<Spread>>,
}

impl History {
    /// The history that these runs are.
    #[must_use]
    pub fn of(runs: &[LoadedRun]) -> Self {
        // A comparison is of two at least; what is given twice counts once.
        let twice = if let [run] = runs { vec![run.clone(), run.clone()] } else { Vec::new() };
        let mut comparison = compare(if twice.is_empty() { runs } else { &twice });
        let measured = |spread: &&Spread| spread.runs > 0;
        comparison.cells.retain(|cell| cell.spreads.iter().any(|spread| measured(&spread)));
        let kernel = |(number, group): (usize, &KernelRuns)| {
            let first = group.runs.first().and_then(|run| runs.get(*run));
            let spread = |spreads: &[Spread]| spreads.get(number).filter(measured).cloned();
            HistoryKernel {
                series: series_of(&group.kernel).to_owned(),
                release: group.kernel.clone(),
                version: first.map_or_else(String::new, |run| run.run.kernel.version.clone()),
                model: group.preemption,
                boots: group.runs.len(),
                cells: comparison.cells.iter().map(|cell| spread(&cell.spreads)).collect(),
            }
        };
        let mut kernels: Vec<_> = comparison.groups.iter().enumerate().map(kernel).collect();
        kernels.sort_by(|a, b| {
            let by_release = version_key(&a.release).cmp(&version_key(&b.release));
            by_release.then(a.model.cmp(&b.model))
        });
        Self {
            cells: comparison.cells.iter().map(|cell| cell.key.clone()).collect(),
            kernels,
            boards: boards(runs),
            caveats: if twice.is_empty() { comparison.caveats } else { Vec::new() },
        }
    }

    /// The series, the oldest first.
    #[must_use]
    pub fn series(&self) -> Vec<&str> {
        let mut all: Vec<&str> = self.kernels.iter().map(|kernel| kernel.series.as_str()).collect();
        all.dedup();
        all
    }

    /// The models that a kernel has, in the order of [`Model::ALL`].
    #[must_use]
    pub fn models(&self) -> Vec<Model> {
        let there = |model: &Model| self.kernels.iter().any(|kernel| kernel.model == *model);
        Model::ALL.into_iter().filter(there).collect()
    }
}

/// Each virtual board once, in words.
fn boards(runs: &[LoadedRun]) -> Vec<String> {
    let labs = runs.iter().filter_map(|run| run.run.board.lab.as_ref());
    let mut all: Vec<String> = labs
        .map(|lab| {
            let cpus = if lab.cpus == 1 { "CPU" } else { "CPUs" };
            format!("QEMU {}, {}, {} {cpus}", lab.qemu, lab.arch, lab.cpus)
        })
        .collect();
    all.sort();
    all.dedup();
    all
}

impl HistoryKernel {
    /// The release without the architecture and the model, which are elsewhere:
    /// `6.12.117+deb13` of `6.12.117+deb13-rt-amd64`.
    #[must_use]
    pub fn short_release(&self) -> &str {
        let release = self.release.as_str();
        let plain = ["-amd64", "-arm64"].iter().find_map(|arch| release.strip_suffix(arch));
        let plain = plain.unwrap_or(release);
        plain.strip_suffix("-rt").unwrap_or(plain)
    }
}
