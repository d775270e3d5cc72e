//! The complementary cumulative distribution of every cell: how often an
//! activation was later than a latency.

use punctual_core::schema::Run;
use punctual_core::units::grouped;

use super::curves::{Chart, Curve, Level, Look, points};
use super::deadline::lines_of;
use super::drawing::Pen;
use super::entry::{Entry, Material, Place};
use super::frame::DEADLINE;
use super::sheet::Figure;
use super::theme::Colour;
use super::{frame, name};
use crate::data::Bins;
use crate::subject::Subject;
use crate::words;

pub const ENTRY: Entry = Entry { place: Place::Overview, draw };

fn draw(material: &Material<'_>) -> Vec<Figure> {
    if material.kernels.is_none() {
        return material.by_probe().iter().filter_map(|group| of_probe(group, material)).collect();
    }
    let cells = material.subjects.chunk_by(|a, b| a.at.1 == b.at.1);
    cells.filter_map(|cell| of_kernels(&cell.iter().collect::<Vec<_>>(), material)).collect()
}

/// The figure of a probe; none if no cell has a distribution. With several runs the
/// colour stands for the cell and the dashes for the run.
fn of_probe(subjects: &[&Subject<'_>], material: &Material<'_>) -> Option<Figure> {
    let probe = &subjects.first()?.latency.probe;
    let mut keys: Vec<&str> = subjects.iter().map(|s| s.cell.key.as_str()).collect();
    keys.dedup();
    let look = |i: usize, subject: &Subject<'_>| Look {
        mark: words::letter(i),
        label: subject.label.clone(),
        colour: keys.iter().position(|key| *key == subject.cell.key).unwrap_or(i),
        dash: if material.several { subject.at.0 } else { i },
    };
    let title = "How often an activation was later";
    let (name, title) = if material.ranges.is_single() {
        ("ccdf".to_owned(), title.to_owned())
    } else {
        (name::of_probe("ccdf", probe), format!("{title} · {}", words::clean(probe)))
    };
    drawn(name, name::titled(subjects.iter().copied(), &title), subjects, material, look)
}

/// The figure of one cell over kernels: both colour and dashes stand for the kernel.
fn of_kernels(subjects: &[&Subject<'_>], material: &Material<'_>) -> Option<Figure> {
    let (first, kernels) = (subjects.first()?, material.kernels?);
    let title = format!("How often an activation was later · {}", words::cell_name(first.cell));
    let look = |_: usize, subject: &Subject<'_>| {
        let kernel = subject.at.0;
        let name = kernels.name(kernel);
        Look {
            // Letters stand for runs.
            mark: (kernel + 1).to_string(),
            label: subject.note.as_ref().map_or(name.to_owned(), |note| format!("{name}, {note}")),
            colour: kernel,
            dash: kernel,
        }
    };
    let title = name::titled(subjects.iter().copied(), &title);
    drawn(name::of_cell("ccdf", first), title, subjects, material, look)
}

fn drawn(
    name: String,
    title: String,
    subjects: &[&Subject<'_>],
    material: &Material<'_>,
    look: impl Fn(usize, &Subject<'_>) -> Look,
) -> Option<Figure> {
    let curves: Vec<_> = subjects
        .iter()
        .map(|s| (s, Bins::corrected(s.latency, s.data)))
        .filter(|(_, distribution)| !distribution.bins.is_empty())
        .enumerate()
        .map(|(i, (s, distribution))| Curve {
            look: look(i, s),
            points: points(&distribution),
            spot: None,
        })
        .collect();
    let first = subjects.first().filter(|_| !curves.is_empty())?;
    let axis = material.range(first).axis(frame::LEFT, frame::RIGHT);
    let lines = lines_of(subjects, &axis);
    let names = ["latency", "share of activations that were later"];
    let levels = levels(subjects);
    let (drawing, height) = Chart { curves: &curves, axis, lines, levels, names }.draw();
    Some(Figure { name, title, description: description(&curves, subjects), height, drawing })
}

const BOUND: Pen = Pen::line("bound", Colour::Deadline, 1.2).dashed(&[2.0, 3.0]);

/// How often the deadline may be missed, and the upper bound of how often it is: each if it is one
/// for all that is drawn.
fn levels(subjects: &[&Subject<'_>]) -> Vec<Level> {
    let shares = |of: fn(&Run) -> Option<f64>| {
        let shares: Vec<_> = subjects.iter().map(|s| of(s.run).filter(|p| *p > 0.0)).collect();
        shares.first().copied().flatten().filter(|one| shares.iter().all(|p| *p == Some(*one)))
    };
    let required = shares(|run| {
        let asked = run.plan.tolerate.unwrap_or(run.plan.probability);
        run.verdict.deadline_ns.map(|_| asked)
    });
    let bound = shares(|run| run.verdict.upper_bound.filter(|p| *p < 1.0));
    let level = |name: &str, share: f64, paint| {
        let label = format!("{name} {share:.1e}");
        Level { share, paint, label: label.replace(".0e", "e") }
    };
    let required = required.map(|share| level("required", share, DEADLINE));
    let bound = bound.map(|share| level("upper bound", share, BOUND));
    required.into_iter().chain(bound).collect()
}

fn description(curves: &[Curve], subjects: &[&Subject<'_>]) -> String {
    let labels: Vec<_> =
        curves.iter().map(|c| format!("{} {}", c.look.mark, c.look.label)).collect();
    let missed: u64 = subjects.iter().map(|s| s.latency.stats.missed).sum();
    format!(
        "Complementary cumulative distribution of every cell on logarithmic axes: {}. \
         {} missed periods are counted with their actual delay.",
        labels.join("; "),
        grouped(missed)
    )
}
