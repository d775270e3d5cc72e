//! The data of a run as tables, for spreadsheets, gnuplot and programs.
//!
//! A table is a list of [`Block`]s, one per cell and thread; [`render`] writes them in a
//! [`Format`]. [`cyclictest`] writes a histogram exactly as that program does.

mod costs;
mod cyclictest;
mod histogram;
mod intervals;
mod load;
mod phases;
mod render;
mod timeline;
mod worst;

use punctual_core::run::{CellData, LoadedRun};
use punctual_core::schema::{Cell, Latency, Origin, Thread, Unit};

pub use cyclictest::{CyclictestLayout, MAX_ROWS, cyclictest};
pub use intervals::trace_events;
pub use render::{Format, render};

use crate::data::cells;

/// A comment above data that were not measured.
const MADE_UP: &str = "# SIMULATED: these latencies are made up\n";

/// What is exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exported {
    /// Bins of the histogram: samples, and missed releases by the delay they had.
    Histogram,
    /// Every second of every thread.
    Timeline,
    /// Every phase of a load that changes on a schedule, of every thread.
    Phases,
    /// The worst samples, and those above the threshold of the run.
    Worst,
    /// The work of the loads in every second, and the use of the CPUs.
    Load,
    /// Which actor had which CPU, and when.
    Intervals,
    /// What each cost came to.
    Costs,
}

/// Which cells and series.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// Only the cell of this number, from 1; `None`: all.
    pub cell: Option<usize>,
    /// Name of the series; `None`: the primary one.
    pub series: Option<String>,
}

/// A field of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Field {
    /// A name.
    Text(String),
    /// A whole number.
    Integer(i128),
    /// A mean.
    Mean(f64),
    /// Any other number, with all of its digits.
    Number(f64),
    /// Not known.
    Absent,
}

impl From<u64> for Field {
    fn from(value: u64) -> Self {
        Self::Integer(value.into())
    }
}

impl From<i64> for Field {
    fn from(value: i64) -> Self {
        Self::Integer(value.into())
    }
}

/// Number of a cell, from 1, its key, and whether its latencies were measured, imported or made up.
pub type OfCell = (usize, String, Origin);

/// The rows of one thread of one cell, of a load, of a part of a map, or of all costs.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// The cell; `None` for a table of many, whose rows name theirs.
    pub cell: Option<OfCell>,
    /// The thread and its CPUs; `None` for a table that is not by thread.
    pub thread: Option<(u32, String)>,
    /// Names of the columns; those of quantities end in their unit.
    pub columns: Vec<String>,
    /// The rows, as long as `columns`.
    pub rows: Vec<Vec<Field>>,
    /// Whether no other block of the same rows comes before it.
    pub is_first: bool,
    /// Whether none comes after it.
    pub is_last: bool,
}

/// The table's blocks. They are made one after the other, because those of a long run are
/// large. Cells without such data have none.
pub fn blocks<'a>(
    run: &'a LoadedRun,
    table: Exported,
    choice: &'a Choice,
) -> Box<dyn Iterator<Item = Block> + 'a> {
    if table == Exported::Load {
        let chosen = chosen_cells(run, choice);
        return Box::new(chosen.filter_map(|(number, cell, data)| {
            load::block(number, cell, origin_of(run, cell), data)
        }));
    }
    if table == Exported::Intervals {
        let chosen = chosen_cells(run, choice);
        return Box::new(chosen.flat_map(|(number, cell, data)| {
            intervals::blocks(number, cell, origin_of(run, cell), data)
        }));
    }
    if table == Exported::Costs {
        return Box::new(costs::block(run, choice).into_iter());
    }
    Box::new(recordings(run, choice).filter_map(move |recording| match table {
        Exported::Histogram => histogram::block(&recording),
        Exported::Timeline => timeline::block(&recording),
        Exported::Phases => phases::block(&recording),
        Exported::Worst | Exported::Load | Exported::Intervals | Exported::Costs => {
            worst::block(&recording)
        }
    }))
}

/// What one thread recorded of the chosen series.
struct TrackOf<'a> {
    cell_number: usize,
    cell: &'a Cell,
    origin: Origin,
    latency: &'a Latency,
    thread: &'a Thread,
    data: &'a punctual_core::run::SeriesData,
    unit: Unit,
    is_primary: bool,
}

impl TrackOf<'_> {
    fn block(&self, columns: &[&str], rows: Vec<Vec<Field>>) -> Option<Block> {
        let unit = self.unit.name();
        // In a name of a column a slash would be a division, for gnuplot among others.
        let unit = unit.replace('/', "_per_");
        (!rows.is_empty()).then(|| Block {
            cell: Some((self.cell_number, self.cell.key.clone(), self.origin)),
            thread: Some((self.thread.thread, self.thread.placement.affinity.clone())),
            columns: columns.iter().map(|name| name.replace("UNIT", &unit)).collect(),
            rows,
            is_first: true,
            is_last: true,
        })
    }
}

fn origin_of(run: &LoadedRun, cell: &Cell) -> Origin {
    if cell.is_simulated() { Origin::Simulated } else { run.run.origin }
}

fn chosen_cells<'a>(
    run: &'a LoadedRun,
    choice: &'a Choice,
) -> impl Iterator<Item = (usize, &'a Cell, &'a CellData)> {
    let numbered = (1..).zip(cells(run)).map(|(number, (cell, data))| (number, cell, data));
    numbered.filter(|(number, ..)| choice.cell.is_none_or(|chosen| chosen == *number))
}

fn recordings<'a>(run: &'a LoadedRun, choice: &'a Choice) -> impl Iterator<Item = TrackOf<'a>> {
    chosen_cells(run, choice).flat_map(move |(cell_number, cell, data)| {
        let latency = cell.latency();
        let series = latency.and_then(|latency| series_of(latency, choice.series.as_deref()));
        let of_cell = latency.zip(series).into_iter();
        of_cell.flat_map(move |(latency, (number, unit))| {
            let threads = latency.threads.iter().zip(&data.threads);
            threads.map(move |(thread, recorded)| TrackOf {
                cell_number,
                cell,
                origin: origin_of(run, cell),
                latency,
                thread,
                data: recorded.series(number),
                unit,
                is_primary: number == 0,
            })
        })
    })
}

/// The number and unit of a series of a cell.
fn series_of(latency: &Latency, name: Option<&str>) -> Option<(usize, Unit)> {
    match name {
        None => Some((0, Unit::Ns)),
        Some(name) if name == latency.primary.name => Some((0, Unit::Ns)),
        Some(name) => (1..)
            .zip(&latency.series)
            .find(|(_, series)| series.name == name)
            .map(|(number, series)| (number, series.unit)),
    }
}

/// The names of all series of the run, each once.
#[must_use]
pub fn series_names(run: &LoadedRun) -> Vec<String> {
    let mut names = Vec::new();
    for latency in run.run.cells.iter().filter_map(Cell::latency) {
        let others = latency.series.iter().map(|series| &series.name);
        for name in [&latency.primary.name].into_iter().chain(others) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
    }
    names
}

/// Numbers of the chosen cells that were cut short: their bins are those of whole seconds,
/// under 25 % wide, and their worst samples are not known.
#[must_use]
pub fn cut_short(run: &LoadedRun, choice: &Choice) -> Vec<usize> {
    let coarse = recordings(run, choice).filter(|recording| {
        recording.data.histogram.is_none() && !recording.data.blocks.is_empty()
    });
    let mut numbers: Vec<_> = coarse.map(|recording| recording.cell_number).collect();
    numbers.dedup();
    numbers
}
