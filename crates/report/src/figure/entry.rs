//! What the registry of figures holds.

use punctual_core::compare::Comparison;

use super::latency::{Range, Ranges};
use super::sheet::Figure;
use crate::replicates::Kernels;
use crate::subject::Subject;

/// A kind of figure. It draws what it finds data for, whatever measured it: a registry of
/// figures knows no probe.
pub(crate) struct Entry {
    pub place: Place,
    /// The figures that the material gives; none if it has no such data.
    pub draw: fn(&Material<'_>) -> Vec<Figure>,
}

/// Where in a report a figure stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Over all cells.
    Overview,
    /// What the latencies of every cell consist of.
    Legs,
    /// One histogram for every cell.
    Histograms,
    /// The threads of every cell that has several.
    Threads,
    /// One timeline for every cell.
    Timelines,
    /// How long it takes until latencies are exceeded, and whether that happens in clusters.
    Returns,
    /// Who had which CPU, of every cell where that is known.
    Cpus,
    /// What kernels cost.
    Costs,
}

/// What there is to draw.
pub(crate) struct Material<'a> {
    /// The latencies that the axes of every probe cover.
    pub ranges: Ranges,
    /// The cells with samples: of every run, or of every kernel if kernels have replicates.
    pub subjects: Vec<Subject<'a>>,
    /// The same as single runs: of a kernel with replicates the worst one.
    pub single: Vec<Subject<'a>>,
    /// The runs side by side.
    pub comparison: &'a Comparison,
    /// The kernels, if they are what is shown.
    pub kernels: Option<&'a Kernels<'a>>,
    /// Whether there are several runs.
    pub several: bool,
}

impl<'a> Material<'a> {
    /// The range of a subject's probe.
    pub fn range(&self, subject: &Subject<'_>) -> Range {
        self.ranges.of_probe(&subject.latency.probe)
    }

    /// The subjects of every probe, in the order in which the probes occur.
    pub fn by_probe(&self) -> Vec<Vec<&Subject<'a>>> {
        let mut groups: Vec<Vec<&Subject<'a>>> = Vec::new();
        for subject in &self.subjects {
            let same = |group: &&mut Vec<&Subject<'_>>| {
                group.first().is_some_and(|first| first.latency.probe == subject.latency.probe)
            };
            match groups.iter_mut().find(same) {
                Some(group) => group.push(subject),
                None => groups.push(vec![subject]),
            }
        }
        groups
    }
}
