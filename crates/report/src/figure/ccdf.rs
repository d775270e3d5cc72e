//! The complementary cumulative distribution of every cell: how often an
//! activation was later than a latency.

use punctual_core::rate::Rate;
use punctual_core::units::grouped;
use punctual_core::verdict::episode_rate;

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
    let quantity = axis.quantity(first.latency);
    let names = [quantity.as_str(), "share of activations that were later"];
    let levels = levels(subjects);
    let (drawing, height) = Chart { curves: &curves, axis, lines, levels, names }.draw();
    let axes = if axis.zero().is_some() { "a linear axis" } else { "logarithmic axes" };
    let description = description(&curves, subjects, axes);
    Some(Figure { name, title, description, height, drawing })
}

const BOUND: Pen = Pen::line("bound", Colour::Deadline, 1.2).dashed(&[2.0, 3.0]);

/// How often the deadline may be missed, and the upper bound of how often it is: each if it is one
/// for all that is drawn.
fn levels(subjects: &[&Subject<'_>]) -> Vec<Level> {
    let common = |of: fn(&Subject<'_>) -> Option<(f64, String)>| {
        let all: Vec<_> =
            subjects.iter().map(|s| of(s).filter(|(share, _)| *share > 0.0)).collect();
        all.first().cloned().flatten().filter(|one| all.iter().all(|a| a.as_ref() == Some(one)))
    };
    let required = common(|subject| {
        let plan = &subject.run.plan;
        subject.run.verdict.deadline_ns?;
        let by_share = plan.tolerate.or(plan.probability.filter(|_| plan.singly));
        let rate = episode_rate(plan.probability, subject.latency.interval_ns);
        let rate = plan.tolerate_episodes.or(rate).unwrap_or(plan.episodes);
        by_share.map(in_share).or_else(|| in_episodes(rate.per_second(), subject))
    });
    let bound = common(|subject| {
        let verdict = &subject.run.verdict;
        let by_share = verdict.upper_bound.filter(|p| *p < 1.0).map(in_share);
        by_share.or_else(|| in_episodes(verdict.episode_rate_upper?, subject))
    });
    let level = |name: &str, (share, label): (f64, String), paint| Level {
        share,
        paint,
        label: format!("{name} {label}"),
    };
    let required = required.map(|share| level("required", share, DEADLINE));
    let bound = bound.map(|share| level("upper bound", share, BOUND));
    required.into_iter().chain(bound).collect()
}

fn in_share(share: f64) -> (f64, String) {
    (share, format!("{share:.1e}").replace(".0e", "e"))
}

/// A rate of late episodes, per second, as the share of activations that would be late if each were
/// an episode of its own.
fn in_episodes(rate: f64, subject: &Subject<'_>) -> Option<(f64, String)> {
    let interval = subject.latency.interval_ns.filter(|ns| *ns > 0)? as f64 / 1e9;
    Some((rate * interval, Rate::of_per_second(rate)?.to_string()))
}

fn description(curves: &[Curve], subjects: &[&Subject<'_>], axes: &str) -> String {
    let labels: Vec<_> =
        curves.iter().map(|c| format!("{} {}", c.look.mark, c.look.label)).collect();
    let missed: u64 = subjects.iter().map(|s| s.latency.stats.missed).sum();
    format!(
        "Complementary cumulative distribution of every cell on {axes}: {}. \
         {} missed periods are counted with their actual delay.",
        labels.join("; "),
        grouped(missed)
    )
}
