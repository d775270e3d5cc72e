//! Figures as SVG. All figures of a report share one latency axis, so that
//! cells and kernels can be compared by eye.

mod bars;
mod ccdf;
mod density;
mod frame;
mod histogram;
mod latency;
mod raster;
mod scale;
mod spread;
mod timeline;
mod work;

use maud::{Markup, PreEscaped, html};
use punctual_core::run::LoadedRun;
use punctual_core::schema::{Cell, Run};

pub use latency::{Axis, Range};
pub use scale::{Scale, Tick};

use crate::kernels::Kernels;
use crate::{data, words};

/// Colours and strokes, for light, dark and paper. One text for the page and
/// for figures in files of their own.
pub(crate) const STYLE: &str = include_str!("style.css");

/// Width of every figure in its own units; the page scales it.
pub const WIDTH: f64 = 720.0;

/// One figure.
#[derive(Debug, Clone)]
pub struct Figure {
    /// File name without its ending, unique in the report.
    pub name: String,
    /// What it shows, drawn at its head and read out by screen readers.
    pub title: String,
    /// What is to be seen in it, for those who cannot see it.
    pub description: String,
    height: f64,
    body: Markup,
}

impl Figure {
    /// The figure for a page that holds the style sheet already.
    #[must_use]
    pub fn inline(&self) -> Markup {
        self.svg(None)
    }

    /// The figure as a file of its own: style sheet and background included.
    #[must_use]
    pub fn file(&self) -> String {
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n",
            self.svg(Some(STYLE)).into_string()
        )
    }

    fn svg(&self, style: Option<&str>) -> Markup {
        let (title, desc) = (format!("{}-title", self.name), format!("{}-desc", self.name));
        html! {
            svg class="figure" xmlns="http://www.w3.org/2000/svg" role="img"
                viewBox=(format!("0 0 {WIDTH} {:.0}", self.height))
                aria-labelledby=(format!("{title} {desc}")) {
                title id=(title) { (self.title) }
                desc id=(desc) { (self.description) }
                @if let Some(style) = style {
                    style { (PreEscaped(style)) }
                    rect class="back" width="100%" height="100%" {}
                }
                text class="name" x="4" y="18" { (shortened(&self.title, 62)) }
                (self.body)
            }
        }
    }
}

/// A cell of one of the runs, with what figures need of both.
pub(crate) struct Subject<'a> {
    pub run: &'a Run,
    pub cell: &'a Cell,
    pub data: &'a punctual_core::run::CellData,
    /// Number of the run and of the cell in it, from 0.
    pub at: (usize, usize),
    /// Kernel and cell, or the cell alone where there is one run.
    pub label: String,
    /// Which runs it stands for, where that is not the one run that is named.
    pub note: Option<String>,
}

/// The latency cells that have samples: those of equal keys side by side.
pub(crate) fn subjects(runs: &[LoadedRun]) -> Vec<Subject<'_>> {
    let names = words::run_names(runs);
    let mut keys: Vec<&str> = Vec::new();
    let mut list = Vec::new();
    for (r, run) in runs.iter().enumerate() {
        for (c, (cell, data)) in data::cells(run).enumerate() {
            if cell.kind == "cost" || cell.stats.samples == 0 {
                continue;
            }
            if !keys.contains(&cell.key.as_str()) {
                keys.push(&cell.key);
            }
            let label = match names.get(r) {
                Some(name) if runs.len() > 1 => format!("{} · {name}", words::cell_name(cell)),
                _ => words::cell_name(cell),
            };
            list.push(Subject { run: &run.run, cell, data, at: (r, c), label, note: None });
        }
    }
    list.sort_by_key(|s| keys.iter().position(|key| *key == s.cell.key));
    list
}

pub(crate) fn deadline(run: &Run) -> Option<f64> {
    run.verdict.deadline_ns.or(run.plan.deadline_ns).map(|ns| ns as f64)
}

/// `deadline 200 us`: shorter than a measured latency, since it is a round number.
pub(crate) fn deadline_label(ns: f64) -> String {
    format!("deadline {}", latency::label(ns))
}

/// The figures of a report, in the order in which it shows them.
#[derive(Default)]
pub(crate) struct Set {
    /// Over all cells: bars, or the spread of replicates; then the complementary
    /// distributions.
    pub overview: Vec<Figure>,
    /// One histogram for every cell.
    pub histograms: Vec<Figure>,
    /// One timeline for every cell.
    pub timelines: Vec<Figure>,
}

/// The figures of runs that stand for themselves.
pub(crate) fn set(runs: &[LoadedRun]) -> Set {
    let subjects = subjects(runs);
    let range = Range::of(runs);
    if subjects.is_empty() || range.is_empty() {
        return Set::default();
    }
    let overview =
        [Some(bars::figure(&subjects, &range)), ccdf::figure(&subjects, &range, runs.len() > 1)];
    Set {
        overview: overview.into_iter().flatten().collect(),
        histograms: histogram::figures(&subjects, |from, to| range.fitting_axis(from, to)),
        timelines: subjects
            .iter()
            .filter_map(|subject| timeline::figure(subject, &range))
            .collect(),
    }
}

/// The figures of kernels with replicates: distributions over all runs of a
/// kernel, timelines of its worst run.
pub(crate) fn set_by_kernel(kernels: &Kernels<'_>) -> Set {
    let pooled = kernels.pooled();
    let range = Range::of(kernels.runs);
    if range.is_empty() {
        return Set::default();
    }
    let mut overview: Vec<_> = spread::figure(kernels, &range).into_iter().collect();
    let cells = pooled.chunk_by(|a, b| a.at.1 == b.at.1);
    overview.extend(cells.filter_map(|cell| ccdf::of_kernels(cell, kernels, &range)));
    let worst = kernels.worst();
    Set {
        overview,
        // Kernels lie apart by factors: a linear axis would squeeze the best of them.
        histograms: histogram::figures(&pooled, |from, to| range.log_axis(from, to)),
        timelines: worst.iter().filter_map(|s| timeline::figure(s, &range)).collect(),
    }
}

/// Every figure of a report as `(file name, SVG text)`, each complete in itself.
#[must_use]
pub fn files(runs: &[LoadedRun]) -> Vec<(String, String)> {
    let set = Kernels::of(runs).map_or_else(|| set(runs), |kernels| set_by_kernel(&kernels));
    set.overview
        .iter()
        .chain(&set.histograms)
        .chain(&set.timelines)
        .map(|figure| (format!("{}.svg", figure.name), figure.file()))
        .collect()
}

/// A file name for a figure of one cell: unique by its numbers, readable by its words.
pub(crate) fn file_name(kind: &str, subject: &Subject<'_>) -> String {
    let (run, cell) = subject.at;
    let name: String = format!("{}-{}", subject.cell.probe, subject.cell.load)
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(40)
        .collect();
    format!("{kind}-{run}-{cell:02}-{}", name.trim_end_matches('-'))
}

/// A description with the subject's note.
pub(crate) fn described(subject: &Subject<'_>, text: String) -> String {
    match &subject.note {
        Some(note) => format!("{text} Shown: {note}."),
        None => text,
    }
}

pub(crate) fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let head: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", head.trim_end())
}
