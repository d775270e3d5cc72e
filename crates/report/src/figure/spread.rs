//! Replicates side by side: what every run of a kernel measured, on one axis for
//! all cells and kernels.

use punctual_core::compare::{MatchedCell, Spread};
use punctual_core::schema::Run;
use punctual_core::units::human_ns;

use super::bars::quantity;
use super::deadline::{colour, lines, missed};
use super::drawing::{Drawing, Label, Pen};
use super::entry::{Entry, Material, Place};
use super::frame;
use super::frame::{BELOW, Frame, LINE, Lines};
use super::latency::Axis;
use super::legend::Legend;
use super::name;
use super::sheet::Figure;
use super::theme::Colour;
use super::typeface::{self, LARGEST};
use crate::replicates::Kernels;
use crate::words;

/// Height of a kernel: its name above its points.
const ROW: f64 = 42.0;
/// Room in a row between a name and the value on its right.
const GAP: f64 = 24.0;

pub const ENTRY: Entry = Entry { place: Place::Overview, draw };

const MEAN: Pen = Pen::line("mean", Colour::Data, 1.2).filled(Colour::Paper);
const MEDIAN: Pen = Pen::line("median", Colour::Text, 2.0);
pub(super) const REACH: Pen = Pen::line("reach", Colour::Data, 1.0);

pub(super) fn dot(colour: Colour) -> Pen {
    Pen { stroke: Some(Colour::Paper), width: 0.6, ..Pen::area("dot", colour) }
}

fn draw(material: &Material<'_>) -> Vec<Figure> {
    let kernels = material.kernels.into_iter();
    kernels.filter_map(|kernels| figure(kernels, material)).collect()
}

/// The probe of a cell that has samples.
fn probe<'a>(kernels: &Kernels<'a>, cell: &MatchedCell) -> Option<&'a str> {
    let mut rows = cell.rows.iter().filter(|row| row.samples > 0);
    rows.find_map(|row| {
        let cell = kernels.runs.get(row.run)?.run.cells.get(row.cell)?;
        Some(cell.latency()?.probe.as_str())
    })
}

/// The figure; none if no cell has samples.
fn figure(kernels: &Kernels<'_>, material: &Material<'_>) -> Option<Figure> {
    let mut groups: Vec<(&str, Vec<&MatchedCell>)> = Vec::new();
    for cell in kernels.comparison.cells.iter().filter(|cell| kernels.has_samples(cell)) {
        let Some(probe) = probe(kernels, cell) else { continue };
        match groups.iter_mut().find(|(known, _)| *known == probe) {
            Some((_, cells)) => cells.push(cell),
            None => groups.push((probe, vec![cell])),
        }
    }
    if groups.is_empty() {
        return None;
    }
    let mut drawing = Drawing::default();
    let mut bottom = 0.0;
    for (probe, cells) in &groups {
        bottom = panel(&mut drawing, kernels, material, probe, cells, bottom);
    }
    let runs = kernels.runs.iter().map(|loaded| &loaded.run);
    let late = runs.flat_map(|run| run.cells.iter().map(move |cell| (run, cell.max_ns())));
    let late = late.into_iter().any(|(run, max)| max.is_some_and(|ns| missed(run, ns as f64)));
    bottom = legend(&mut drawing, bottom + LINE, late);
    let cells = groups.iter().flat_map(|(_, cells)| cells);
    let is_linear =
        |(probe, _): &(&str, _)| material.ranges.of_probe(probe).axis(0.0, 1.0).zero().is_some();
    let axis = match groups.iter().any(is_linear) {
        true => "an axis for each probe",
        false => "a logarithmic latency axis",
    };
    let texts: Vec<_> = cells
        .flat_map(|cell| {
            cell.spreads.iter().zip(&kernels.names).map(|(spread, name)| {
                let max = words::span(words::ends(spread.max_ns));
                let (cell, runs) = (words::key_name(&cell.key), words::runs(spread.runs));
                format!("{cell}, {name}: max {max} over {runs}")
            })
        })
        .collect();
    Some(Figure {
        name: "spread".to_owned(),
        title: name::titled(&material.subjects, "Spread over the runs of each kernel"),
        description: format!(
            "The maximum and the average of every run on {axis}. {}.",
            texts.join("; ")
        ),
        height: bottom,
        drawing,
    })
}

/// The cells of a probe below `above`; returns where they end.
fn panel(
    to: &mut Drawing,
    kernels: &Kernels<'_>,
    material: &Material<'_>,
    probe: &str,
    cells: &[&MatchedCell],
    above: f64,
) -> f64 {
    let axis = material.ranges.of_probe(probe).axis(frame::LEFT, frame::RIGHT);
    let mut subjects = material.subjects.iter();
    let first = subjects.find(|subject| subject.latency.probe == probe);
    let quantity = first.map_or_else(String::new, |one| quantity(&axis, one.latency));
    let lines = Lines::of(lines(kernels.runs.iter().map(|loaded| &loaded.run), &axis));
    let width = frame::RIGHT - frame::LEFT - 12.0;
    let head =
        |cell: &MatchedCell| typeface::wrapped(&words::key_name(&cell.key), width, LARGEST, 3);
    let heads: Vec<_> = cells.iter().map(|cell| head(cell)).collect();
    let height =
        |head: &[String]| LINE * head.len() as f64 + 6.0 + ROW * kernels.names.len() as f64;
    let all: f64 = heads.iter().map(|head| height(head)).sum();
    let frame = Frame::standard(all + 8.0, &lines).moved(above);
    axis.draw(to, frame, 6, &quantity);
    if !material.ranges.is_single() {
        to.text(Label::new(words::clean(probe), 4.0, above + 16.0).bold());
    }
    let mut parts = Vec::new();
    let mut top = frame.top;
    for head in &heads {
        let rows = top + LINE * head.len() as f64 + 6.0;
        let row = |k: usize| rows + ROW * k as f64;
        parts.extend((0..kernels.names.len()).map(|k| (row(k) + 18.0, row(k) + ROW)));
        top += height(head);
    }
    frame.verticals_within(to, &lines, &parts);
    top = frame.top;
    for (cell, head) in cells.iter().zip(&heads) {
        for (number, line) in head.iter().enumerate() {
            let y = top + LINE * (number as f64 + 1.0) - 2.0;
            to.text(Label::new(line, frame.left + 6.0, y).bold());
        }
        let rows = top + LINE * head.len() as f64 + 6.0;
        for (k, (spread, name)) in cell.spreads.iter().zip(&kernels.names).enumerate() {
            let row = KernelRow { cell, spread, kernels, name, axis: &axis, frame };
            row.draw(to, rows + ROW * k as f64);
        }
        top += height(head);
    }
    frame.border(to);
    frame.bottom + BELOW
}

/// A kernel in a cell.
struct KernelRow<'a> {
    cell: &'a MatchedCell,
    spread: &'a Spread,
    kernels: &'a Kernels<'a>,
    name: &'a str,
    axis: &'a Axis,
    frame: Frame,
}

impl KernelRow<'_> {
    fn run(&self, number: usize) -> Option<&Run> {
        self.kernels.runs.get(number).map(|loaded| &loaded.run)
    }

    /// The colour of a maximum of a run.
    fn colour(&self, run: usize, max: i64, on_time: Colour) -> Colour {
        self.run(run).map_or(on_time, |run| colour(run, max as f64, on_time))
    }

    fn draw(&self, to: &mut Drawing, top: f64) {
        let Self { cell, spread, kernels, name, axis, frame } = self;
        let members = kernels.comparison.groups.get(spread.group).map(|group| &group.runs);
        let mine = cell.rows.iter().filter(|row| members.is_some_and(|m| m.contains(&row.run)));
        let rows: Vec<_> = mine.filter(|row| row.samples > 0).collect();
        let late = rows.iter().any(|row| {
            let colour = row.max_ns.map(|max| self.colour(row.run, max, Colour::Text));
            colour == Some(Colour::Late)
        });
        let value = match spread.max_ns {
            Some(max) if spread.runs > 0 => format!("max {}", words::span(words::ends(Some(max)))),
            _ => "no samples".to_owned(),
        };
        let room = frame.right - frame.left - 12.0 - GAP - typeface::room(&value, LARGEST, true);
        let y = top + 14.0;
        to.text(Label::new(typeface::cut(name, room), frame.left + 6.0, y).soft());
        let colour = if late { Colour::Late } else { Colour::Text };
        to.text(Label::new(value, frame.right - 6.0, y).end().bold().colour(colour));
        let middle = top + 29.0;
        // Equal values are drawn above each other: otherwise they could not be counted.
        let height = |i: usize| middle + [0.0, -4.0, 4.0, -2.0, 2.0][i % 5];
        if let Some(max) = spread.max_ns {
            let (from, end) = (axis.map(max.lowest as f64), axis.map(max.highest as f64));
            to.line((from, middle), (end, middle), REACH);
        }
        for (i, row) in rows.iter().enumerate() {
            let title = format!("{name}, run {}", words::letter(row.run));
            if let Some(avg) = row.avg_ns {
                let note = format!("{title}: average {}", words::mean_ns(avg));
                to.circle((axis.map(avg), height(i)), 2.4, MEAN, Some(note));
            }
            if let Some(max) = row.max_ns {
                let note = format!("{title}: max {}", human_ns(max));
                let paint = dot(self.colour(row.run, max, Colour::Data));
                to.circle((axis.map(max as f64), height(i)), 3.6, paint, Some(note));
            }
        }
        if let Some(max) = spread.max_ns {
            let x = axis.map(max.median);
            to.line((x, middle - 9.0), (x, middle + 9.0), MEDIAN);
        }
    }
}

/// What the marks are, at a height; returns where it ends.
fn legend(to: &mut Drawing, y: f64, late: bool) -> f64 {
    let mut legend = Legend::at(to, y);
    legend.mark("max of a run", |to, at| to.circle(at, 3.6, dot(Colour::Data), None));
    if late {
        legend.mark("too late", |to, at| to.circle(at, 3.6, dot(Colour::Late), None));
    }
    legend.mark("their median", |to, (x, y)| to.line((x, y - 9.0), (x, y + 9.0), MEDIAN));
    legend.mark("average of a run", |to, at| to.circle(at, 2.4, MEAN, None));
    y + 12.0
}
