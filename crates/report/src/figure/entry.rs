//! What the registry of figures holds.

use super::latency::Range;
use super::svg::Figure;
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
    /// One histogram for every cell.
    Histograms,
    /// One timeline for every cell.
    Timelines,
}

/// What there is to draw. There is at least one latency.
pub(crate) struct Material<'a> {
    /// The latencies that all axes cover.
    pub range: Range,
    /// The cells with samples: of every run, or of every kernel if kernels have replicates.
    pub subjects: Vec<Subject<'a>>,
    /// The same as single runs: of a kernel with replicates the worst one.
    pub single: Vec<Subject<'a>>,
    /// The kernels, if they are what is shown.
    pub kernels: Option<&'a Kernels<'a>>,
    /// Whether there are several runs.
    pub several: bool,
}
