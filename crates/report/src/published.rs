//! A publication's figures beside those of runs, for every output.

use punctual_core::published::{Citation, PublishedLatency};
use punctual_core::run::LoadedRun;
use punctual_core::schema::{Better, Cell, CostSection, Unit};
use serde::Serialize;

use crate::words;

/// Runs beside a publication.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublishedBeside {
    /// The publication.
    pub citation: Citation,
    /// The machines that it measured.
    pub platforms: Vec<String>,
    /// The names of the runs.
    pub runs: Vec<String>,
    /// The kernels that its costs are of.
    pub kernels: Vec<String>,
    /// Costs that a run and the publication have, and those that only the publication has.
    pub costs: Vec<CostBeside>,
    /// What the runs measured in their cells.
    pub measured: Vec<LatencyBeside>,
    /// Published latencies.
    pub published: Vec<PublishedLatency>,
}

/// A cost that was published. Values are in the publication's unit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CostBeside {
    /// Its name in the table of costs.
    pub column: String,
    /// Unit of all values.
    pub unit: String,
    /// The section of the run's metric; absent if no run has it.
    pub section: Option<CostSection>,
    /// What each run measured, without a load.
    pub runs: Vec<Option<f64>>,
    /// What was published of each kernel; absent where that is blank.
    pub published: Vec<Option<f64>>,
    /// What is doubtful about it, each remark once.
    pub doubts: Vec<String>,
}

/// A cell of latencies as a run measured it, ns.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LatencyBeside {
    /// Index of the run.
    pub run: usize,
    /// Key of the cell.
    pub key: String,
    /// Smallest latency.
    pub min_ns: Option<i64>,
    /// Mean latency.
    pub avg_ns: Option<f64>,
    /// Largest latency.
    pub max_ns: Option<i64>,
}

/// Puts runs beside a publication.
#[must_use]
pub fn beside(runs: &[LoadedRun], citation: &Citation) -> PublishedBeside {
    let costs = citation.costs();
    let (mut kernels, mut columns, mut platforms) = (Vec::new(), Vec::new(), Vec::new());
    // What cannot be told to be of a kernel or a column stands beside nothing.
    for cost in costs.iter().filter(|cost| cost.kernel != "?") {
        push_new(&mut kernels, &cost.kernel);
        push_new(&mut columns, &cost.column);
        push_new(&mut platforms, &cost.platform);
    }
    let published = citation.latencies();
    published.iter().for_each(|latency| push_new(&mut platforms, &latency.platform));
    let of_column = |column: &String| {
        let mine = || costs.iter().filter(|cost| cost.column == *column);
        let unit = mine().map(|cost| cost.unit.clone()).next().unwrap_or_default();
        let mut doubts = Vec::new();
        let notes = mine().filter(|cost| cost.value.is_some()).filter_map(|c| c.note.as_ref());
        notes.for_each(|note| push_new(&mut doubts, note));
        let value = |kernel: &String| mine().find(|cost| cost.kernel == *kernel)?.value;
        CostBeside {
            section: runs.iter().find_map(|run| of_run(run, column)).map(|(section, ..)| section),
            runs: runs.iter().map(|run| in_unit(of_run(run, column)?, &unit)).collect(),
            published: kernels.iter().map(value).collect(),
            column: column.clone(),
            unit,
            doubts,
        }
    };
    let found = columns.iter().map(of_column);
    let found = found.filter(|cost| cost.runs.iter().chain(&cost.published).any(Option::is_some));
    let mut costs: Vec<_> = found.collect();
    let order = |cost: &CostBeside| words::SECTIONS.iter().position(|s| Some(*s) == cost.section);
    costs.sort_by_key(|cost| order(cost).unwrap_or(usize::MAX));
    PublishedBeside {
        citation: *citation,
        platforms,
        runs: words::run_names(runs),
        kernels,
        costs,
        measured: measured(runs),
        published,
    }
}

fn push_new(list: &mut Vec<String>, text: &str) {
    if !list.iter().any(|known| known == text) {
        list.push(text.to_owned());
    }
}

/// CostSection, unit and value of a column that a run has measured without a load.
fn of_run(run: &LoadedRun, column: &str) -> Option<(CostSection, Unit, f64)> {
    let idle = run.run.cells.iter().filter(|cell| cell.load == punctual_core::key::NO_LOAD);
    idle.filter_map(Cell::cost)
        .find(|cost| cost.column.as_deref() == Some(column))
        .and_then(|cost| Some((cost.section, cost.unit, cost.value?)))
}

fn in_unit((_, unit, value): (CostSection, Unit, f64), wanted: &str) -> Option<f64> {
    match (unit, wanted) {
        (Unit::Ns, "us") => Some(value / 1e3),
        (unit, wanted) => (unit.name() == wanted).then_some(value),
    }
}

/// Those of equal keys together, in the order in which keys first occur.
fn measured(runs: &[LoadedRun]) -> Vec<LatencyBeside> {
    let mut all: Vec<_> =
        runs.iter().enumerate().flat_map(|(at, run)| latencies(at, run)).collect();
    let mut keys = Vec::new();
    all.iter().for_each(|one: &LatencyBeside| push_new(&mut keys, &one.key));
    all.sort_by_key(|one| keys.iter().position(|key| *key == one.key));
    all
}

fn latencies(at: usize, run: &LoadedRun) -> impl Iterator<Item = LatencyBeside> {
    run.run.cells.iter().filter_map(move |cell| {
        let stats = &cell.latency().filter(|_| cell.samples() > 0)?.stats;
        Some(LatencyBeside {
            run: at,
            key: cell.key.clone(),
            min_ns: stats.min,
            avg_ns: stats.avg,
            max_ns: stats.max,
        })
    })
}

impl PublishedBeside {
    /// The costs by the head of their section, first those that a run has, each with its name: with
    /// the unit if the head has none.
    #[must_use]
    pub fn parts(&self) -> Vec<(String, Vec<(String, &CostBeside)>)> {
        let parts = self.costs.chunk_by(|a, b| a.section == b.section).map(|costs| {
            let kinds: Vec<_> = costs.iter().map(|cost| kind(&cost.unit)).collect();
            let head = costs
                .first()
                .and_then(|cost| cost.section)
                .map(|section| words::cost_head(section, punctual_core::key::NO_LOAD, &kinds));
            let name = |cost: &CostBeside| match &head {
                Some(head) if head.unit.is_some() => cost.column.clone(),
                _ => format!("{}, {}", cost.column, cost.unit),
            };
            let named = costs.iter().map(|cost| (name(cost), cost)).collect();
            (head.map_or_else(|| UNMEASURED.to_owned(), |head| head.title), named)
        });
        parts.collect()
    }

    /// What is doubtful about single costs: `pipe, UDP: a note`.
    #[must_use]
    pub fn cost_doubts(&self) -> Vec<String> {
        let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
        for cost in &self.costs {
            for doubt in &cost.doubts {
                match found.iter_mut().find(|(known, _)| known == doubt) {
                    Some((_, columns)) => columns.push(&cost.column),
                    None => found.push((doubt, vec![&cost.column])),
                }
            }
        }
        let text = |(doubt, columns): (&str, Vec<&str>)| format!("{}: {doubt}", columns.join(", "));
        found.into_iter().map(text).collect()
    }

    /// The values of a cost: of the runs, and then of the publication's kernels with the digits that
    /// it has. Empty for nothing.
    #[must_use]
    pub fn values(cost: &CostBeside) -> [Vec<String>; 2] {
        let text = |values: &[Option<f64>], write: fn(f64) -> String| {
            values.iter().map(|value| value.map_or_else(String::new, write)).collect()
        };
        [text(&cost.runs, words::digits), text(&cost.published, |value| value.to_string())]
    }

    /// The published latencies by machine, test, load and duration.
    #[must_use]
    pub fn tests(&self) -> Vec<(String, Vec<&PublishedLatency>)> {
        let mut tests: Vec<(String, Vec<&PublishedLatency>)> = Vec::new();
        for latency in &self.published {
            let PublishedLatency { platform, test, load, duration, .. } = latency;
            let duration = Some(duration).filter(|duration| !duration.is_empty());
            let duration = duration.map_or_else(String::new, |duration| format!(", {duration}"));
            let title = format!("{test}, load: {load}{duration}, on {platform}");
            match tests.iter_mut().find(|(known, _)| *known == title) {
                Some((_, latencies)) => latencies.push(latency),
                None => tests.push((title, vec![latency])),
            }
        }
        tests
    }
}

/// The head of costs that no run has.
const UNMEASURED: &str = "Not measured by these runs";

/// A published unit, and which way is better.
fn kind(unit: &str) -> (Unit, Better) {
    match unit {
        "us" => (Unit::Us, Better::Less),
        "MB/s" => (Unit::MegabytesPerSecond, Better::More),
        "MHz" => (Unit::Megahertz, Better::More),
        "bytes" => (Unit::Bytes, Better::More),
        "pages" => (Unit::Pages, Better::More),
        _ => (Unit::Ratio, Better::More),
    }
}
