//! The trade: how late each kernel is at worst, over what it costs.

use punctual_core::compare::{Comparison, Trade};
use punctual_core::key::{BETWEEN, load_name};
use punctual_core::units::human_ns;

use super::drawing::{Drawing, Pen};
use super::entry::{Entry, Material, Place};
use super::frame::{BELOW, Frame, LEFT, LINE, Lines, RIGHT, spaced};
use super::history::mark;
use super::latency::label;
use super::legend::Legend;
use super::scale::Scale;
use super::sheet::Figure;
use super::theme::Colour;
use super::typeface;
use crate::words;

const HEIGHT: f64 = 260.0;
/// The axis of costs reaches at least so far to either side of 1.
const LEAST_COST: f64 = 0.1;

pub const ENTRY: Entry = Entry { place: Place::Costs, draw };

const ONE: Pen = Pen::line("one", Colour::Soft, 1.0).dashed(&[4.0, 4.0]);

fn draw(material: &Material<'_>) -> Vec<Figure> {
    figure(material.comparison).into_iter().collect()
}

fn figure(comparison: &Comparison) -> Option<Figure> {
    let trade = &comparison.trade;
    let first = trade.first()?;
    let names = words::kernel_names(&comparison.groups);
    let maxima = || trade.iter().map(|one| one.max_ns.max(1) as f64);
    let (least, most) = (maxima().fold(f64::MAX, f64::min), maxima().fold(1.0, f64::max));
    let costs = || trade.iter().map(|one| one.cost);
    let reach = costs().map(|cost| (cost - 1.0).abs()).fold(LEAST_COST, f64::max) * 1.15;
    let low = (costs().fold(1.0 - LEAST_COST, f64::min)).min(1.0 - reach / 4.0).max(0.0);
    let high = costs().fold(1.0 + LEAST_COST, f64::max) + reach / 8.0;
    let across = Scale::exact(low, high, LEFT, RIGHT);
    let upward = Scale::log(least / 1.2, most * 1.2, HEIGHT, 0.0);
    let mut drawing = Drawing::default();
    let frame = Frame::standard(HEIGHT, &Lines::default());
    let ticks = across.ticks(6).into_iter();
    let ticks =
        ticks.map(|t| (across.map(t.value), t.labelled.then(|| words::ratio(Some(t.value)))));
    let base = names.first().map_or("", String::as_str);
    let name = format!("costs over those of {base}, geometric mean of {}", first.costs);
    let name = typeface::cut(&name, RIGHT - 8.0);
    frame.x_axis(&mut drawing, &spaced(ticks.collect(), &[]), &name);
    let ticks = upward.ticks(7).into_iter();
    let ticks =
        ticks.map(|t| (frame.top + upward.map(t.value), t.labelled.then(|| label(t.value))));
    frame.y_axis(&mut drawing, &ticks.collect(), "largest latency, logarithmic");
    let one = across.map(1.0);
    drawing.line((one, frame.top), (one, frame.bottom), ONE);
    frame.border(&mut drawing);
    for (number, point) in trade.iter().enumerate() {
        let at = (across.map(point.cost), frame.top + upward.map(point.max_ns.max(1) as f64));
        let note = text(&names, point);
        mark(&mut drawing, at, number, Some(note));
    }
    let mut y = frame.bottom + BELOW + LINE;
    for (number, point) in trade.iter().enumerate() {
        let text = typeface::cut(&text(&names, point), RIGHT - LEFT);
        Legend::at(&mut drawing, y).mark(&text, |to, at| mark(to, at, number, None));
        y += LINE;
    }
    let texts: Vec<_> = trade.iter().map(|point| text(&names, point)).collect();
    Some(Figure {
        name: "trade".to_owned(),
        title: "The trade: largest latency and cost of each kernel".to_owned(),
        description: format!("Down is earlier, left is cheaper. {}.", texts.join("; ")),
        height: y - 8.0,
        drawing,
    })
}

/// `PREEMPT_RT: 36.9 us (hackbench), cost 1.210`.
fn text(names: &[String], point: &Trade) -> String {
    let name = names.get(point.group).map_or("", String::as_str);
    let (cost, latest) = (words::cost_ratio(Some(point.cost)), human_ns(point.max_ns));
    let load = point.key.split(BETWEEN).nth(1).map_or("", load_name);
    format!("{name}: {latest} ({}), cost {cost}", words::clean(load))
}
