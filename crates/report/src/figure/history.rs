//! The history of kernels: a panel for each load, the releases from left to right, a mark for
//! each preemption model.

use punctual_core::compare::Spread;
use punctual_core::history::History;
use punctual_core::preemption::Model;

use super::drawing::{Drawing, Label, Pen, Point};
use super::frame::{BELOW, Frame, LINE, Lines};
use super::latency::label;
use super::legend::Legend;
use super::scale::Scale;
use super::sheet::Figure;
use super::theme::Colour;
use super::typeface;
use crate::words;

/// Height of a panel.
const HEIGHT: f64 = 190.0;
/// Half the side of a mark.
const HALF: f64 = 4.0;

const GRID: Pen = Pen::line("grid", Colour::Grid, 1.0);
const FINE: Pen = Pen::line("fine", Colour::Grid, 0.5);
const SPLIT: Pen = Pen::line("split", Colour::Grid, 1.0);

/// The figure; none if nothing was measured.
pub(crate) fn figure(history: &History) -> Option<Figure> {
    let scale = scale(history)?;
    let mut drawing = Drawing::default();
    let mut above = 0.0;
    for number in 0..history.cells.len() {
        above = panel(&mut drawing, history, number, &scale, above);
    }
    let models = history.models();
    // More would be wider than the figure.
    for three in models.chunks(3) {
        above += LINE;
        let mut row = Legend::at(&mut drawing, above);
        for model in three {
            row.mark(words::preemption_name(*model), |to, at| mark(to, at, form(*model), None));
        }
    }
    above += LINE;
    let mut row = Legend::at(&mut drawing, above);
    let number = models.last().map_or(0, |model| form(*model));
    row.mark("median of the maxima of the boots", |to, at| mark(to, at, number, None));
    row.mark("p99.9", |to, at| p999(to, at, number));
    row.mark("average", |to, at| average(to, at, number, None));
    Some(Figure {
        name: "history".to_owned(),
        title: "Latency by release and preemption model".to_owned(),
        description: description(history),
        height: above + 12.0,
        drawing,
    })
}

/// From the smallest average to the largest maximum, to the next of 1, 2 and 5 times a power of
/// ten.
fn scale(history: &History) -> Option<Scale> {
    let spreads = || history.kernels.iter().flat_map(|kernel| kernel.cells.iter().flatten());
    let low = spreads().filter_map(|spread| Some(spread.avg_ns?.lowest)).min_by(f64::total_cmp)?;
    let high = spreads().filter_map(|spread| Some(spread.max_ns?.highest)).max()? as f64;
    let steps = |value: f64| {
        let power = 10_f64.powf(value.max(1.0).log10().floor());
        [1.0, 2.0, 5.0, 10.0].map(|step| step * power)
    };
    let below = steps(low).into_iter().rev().find(|step| *step <= low).unwrap_or(1.0);
    let above = steps(high).into_iter().find(|step| *step >= high).unwrap_or(high);
    Some(Scale::log(below, above.max(below * 10.0), HEIGHT, 0.0))
}

/// The panel of a cell; returns where it ends.
fn panel(to: &mut Drawing, history: &History, cell: usize, scale: &Scale, above: f64) -> f64 {
    let frame = Frame::standard(HEIGHT, &Lines::default()).moved(above);
    let y = |ns: f64| frame.top + scale.map(ns);
    for tick in scale.ticks(6) {
        let at = y(tick.value);
        to.line((frame.left, at), (frame.right, at), if tick.labelled { GRID } else { FINE });
        if tick.labelled {
            let label = Label::new(label(tick.value), frame.left - 6.0, at);
            to.text(label.end().centred().soft());
        }
    }
    let key = words::key_name(&history.cells[cell]);
    let name = typeface::cut(&key, frame.right - 4.0);
    to.text(Label::new(name, 4.0, frame.top - 18.0).bold());
    let series = history.series();
    let models = history.models();
    let wide = (frame.right - frame.left) / series.len() as f64;
    for (number, name) in series.iter().enumerate() {
        let left = frame.left + wide * number as f64;
        if number > 0 {
            to.line((left, frame.top), (left, frame.bottom), SPLIT);
        }
        let middle = left + wide / 2.0;
        let name = typeface::cut(&words::clean(name), wide);
        to.text(Label::new(name, middle, frame.bottom + 27.0).middle().soft().class("tick"));
    }
    for (number, model) in models.iter().enumerate() {
        let mut path = Vec::new();
        for kernel in history.kernels.iter().filter(|kernel| kernel.model == *model) {
            let Some(place) = series.iter().position(|name| *name == kernel.series) else {
                continue;
            };
            let Some(spread) = kernel.cells.get(cell).and_then(Option::as_ref) else { continue };
            let share = (number as f64 + 1.0) / (models.len() as f64 + 1.0);
            let x = frame.left + wide * (place as f64 + share);
            let note = format!("{} {}", kernel.short_release(), words::preemption_name(*model));
            path.extend(spread.max_ns.map(|max| (x, y(max.median))));
            draw(to, x, spread, form(*model), &y, &note);
        }
        to.lines(vec![path], Pen::line("path", Colour::Curve(form(*model)), 0.8), None);
    }
    frame.border(to);
    frame.bottom + BELOW - LINE
}

/// A kernel in a panel: average, p99.9 and the maxima of its boots above each other.
fn draw(
    to: &mut Drawing,
    x: f64,
    spread: &Spread,
    number: usize,
    y: &impl Fn(f64) -> f64,
    name: &str,
) {
    let colour = Colour::Curve(number);
    if let (Some(avg), Some(max)) = (spread.avg_ns, spread.max_ns) {
        let stem = Pen::line("stem", Colour::Grid, 1.0);
        to.line((x, y(avg.median)), (x, y(max.lowest as f64)), stem);
    }
    if let Some(avg) = spread.avg_ns {
        let note = format!("{name}: average {}", words::mean_ns(avg.median));
        average(to, (x, y(avg.median)), number, Some(note));
    }
    if let Some(quantile) = spread.p999_ns {
        p999(to, (x, y(quantile.median)), number);
    }
    if let Some(max) = spread.max_ns {
        let reach = Pen::line("reach", colour, 1.6);
        to.line((x, y(max.lowest as f64)), (x, y(max.highest as f64)), reach);
        let note = format!("{name}: max {}", words::span(words::ends(Some(max))));
        mark(to, (x, y(max.median)), number, Some(note));
    }
}

/// The number of a model's form and colour, the same in every history.
fn form(model: Model) -> usize {
    Model::ALL.iter().position(|other| *other == model).unwrap_or(0)
}

/// Each model has its own form, for print and for eyes that see no colours.
pub(super) fn mark(to: &mut Drawing, (x, y): Point, number: usize, note: Option<String>) {
    let colour = Colour::Curve(number);
    let solid = Pen { stroke: Some(Colour::Paper), width: 0.6, ..Pen::area("mark", colour) };
    let open = Pen::line("mark", colour, 1.8).filled(Colour::Paper);
    let square = || {
        let (left, right, top, bottom) = (x - HALF, x + HALF, y - HALF, y + HALF);
        vec![vec![(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]]
    };
    let diamond = || {
        let reach = HALF * 1.4;
        vec![vec![(x, y - reach), (x + reach, y), (x, y + reach), (x - reach, y), (x, y - reach)]]
    };
    match number % 5 {
        0 => to.circle((x, y), HALF, open, note),
        1 => to.lines(square(), open, note),
        2 => to.circle((x, y), HALF, solid, note),
        3 => to.lines(diamond(), open, note),
        _ => to.lines(square(), solid, note),
    }
}

fn p999(to: &mut Drawing, (x, y): Point, number: usize) {
    let pen = Pen::line("p999", Colour::Curve(number), 2.0);
    to.line((x - 5.0, y), (x + 5.0, y), pen);
}

fn average(to: &mut Drawing, at: Point, number: usize, note: Option<String>) {
    to.circle(at, 1.8, Pen::area("average", Colour::Curve(number)), note);
}

/// Every number of the figure, for those who cannot see it.
fn description(history: &History) -> String {
    let mut texts = Vec::new();
    for kernel in &history.kernels {
        let name = format!("{} {}", kernel.short_release(), model(kernel.model));
        for (key, spread) in history.cells.iter().zip(&kernel.cells) {
            let Some(spread) = spread else { continue };
            let max = words::span(words::ends(spread.max_ns));
            texts.push(format!("{}, {name}: max {max}", words::key_name(key)));
        }
    }
    format!(
        "For each load, the releases from left to right on a logarithmic latency axis. {}.",
        texts.join("; ")
    )
}

fn model(model: Model) -> &'static str {
    words::preemption_name(model)
}
