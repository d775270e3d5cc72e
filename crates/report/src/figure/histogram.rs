//! Occurrences over latency, one figure a cell, the maximum marked by a line.

use punctual_core::histogram::SignedBin;
use punctual_core::schema::Stats;
use punctual_core::units::{grouped, human_ns};

use super::deadline::{colour, lines_of};
use super::drawing::{Drawing, Pen};
use super::entry::{Entry, Material, Place};
use super::frame::{BELOW, Frame, Lines, Ticks, Upright, count_label};
use super::latency::Axis;
use super::scale::{Scale, Tick};
use super::sheet::Figure;
use super::theme::Colour;
use super::{frame, name};
use crate::data::Bins;
use crate::subject::Subject;

/// Width that a bar should have at least, units of the figure.
const BAR: f64 = 5.0;
/// Least number of recorded bins in a bar of a logarithmic axis. With fewer, neighbours
/// with one bin more or less would make a smooth distribution look like a comb.
const BINS_IN_BAR: f64 = 4.0;
/// The same of a linear axis, at the far end, where recorded bins are widest.
const BINS_IN_LINEAR: f64 = 2.0;
/// Relative width of a recorded bin of the histogram and of the blocks.
const FINE: f64 = 1.0 / 128.0;
const COARSE: f64 = 1.0 / 4.0;

/// Name of the vertical axis.
pub const COUNTS: &str = "occurrences in the width of a bar, logarithmic";

/// One bar: its place and the number of samples in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bar {
    slot: f64,
    pub from: f64,
    pub to: f64,
    pub count: u64,
}

pub const ENTRY: Entry = Entry { place: Place::Histograms, draw };

fn draw(material: &Material<'_>) -> Vec<Figure> {
    material.by_probe().iter().flat_map(|group| figures(group, material)).collect()
}

/// The histograms of a probe, with the same axes.
fn figures(subjects: &[&Subject<'_>], material: &Material<'_>) -> Vec<Figure> {
    let Some(first) = subjects.first() else { return Vec::new() };
    let axis = material.range(first).axis(frame::LEFT, frame::RIGHT);
    let bars: Vec<_> =
        subjects.iter().map(|s| rebinned(&Bins::of_samples(s.latency, s.data), &axis)).collect();
    let most = bars.iter().flatten().map(|bar| bar.count).max().unwrap_or(1);
    subjects
        .iter()
        .zip(&bars)
        .filter(|(_, bars)| !bars.is_empty())
        .map(|(subject, bars)| figure(subject, bars, &axis, most))
        .collect()
}

/// The scale of counts. It begins at one half: a bar of a single sample must have a height.
pub fn counts(frame: Frame, most: u64) -> Scale {
    Scale::log(0.5, most as f64 * 1.1, frame.bottom, frame.top)
}

/// The axes of a figure of counts over latency, and the note on its cell.
pub fn ground(
    subject: &Subject<'_>,
    axis: &Axis,
    frame: Frame,
    counts: &Scale,
    name: &str,
) -> Drawing {
    let mut drawing = Drawing::default();
    axis.draw(&mut drawing, frame, 7, &axis.quantity(subject.latency));
    frame.y_axis(&mut drawing, &count_ticks(counts), name);
    if let Some(note) = &subject.note {
        frame.note(&mut drawing, note, name);
    }
    drawing
}

fn count_ticks(counts: &Scale) -> Ticks {
    let tick = |t: Tick| (counts.map(t.value), t.labelled.then(|| count_label(t.value)));
    counts.ticks(6).into_iter().filter(|t| t.value >= 1.0).map(tick).collect()
}

fn figure(subject: &Subject<'_>, bars: &[Bar], axis: &Axis, most: u64) -> Figure {
    let stats = &subject.latency.stats;
    let mut lines = lines_of(&[subject], axis);
    lines.extend(stats.max.map(|max| {
        let colour = colour(subject.run, max as f64, Colour::Text);
        let paint = Pen::line("maxline", colour, 1.5);
        Upright { x: axis.map(max as f64), paint, label: format!("max {}", human_ns(max)) }
    }));
    let lines = Lines::of(lines);
    let frame = Frame::standard(210.0, &lines);
    let counts = counts(frame, most);
    let mut drawing = ground(subject, axis, frame, &counts, COUNTS);
    let rect = |bar: &Bar| {
        // A bar cut at an extreme may be a hair wide: it must be seen all the same.
        let from = bar.from.min(bar.to - 1.5).max(frame.left);
        [from, counts.map(bar.count as f64), bar.to, frame.bottom]
    };
    let rects: Vec<_> = bars.iter().map(rect).collect();
    let paint = Pen { stroke: Some(Colour::Data), width: 0.4, ..Pen::area("count", Colour::Data) };
    drawing.rects(&rects, paint);
    frame.verticals(&mut drawing, &lines);
    frame.border(&mut drawing);
    let value = |ns: Option<i64>| ns.map_or_else(|| "none".to_owned(), human_ns);
    Figure {
        name: name::of_cell("histogram", subject),
        title: name::titled([subject], &format!("Histogram · {}", subject.label)),
        description: name::described(
            subject,
            format!(
                "{} samples from {} to {}{}; 99 % of them are at most {}. Both axes are the same in \
                 all histograms of this probe.",
                grouped(stats.samples),
                value(stats.min),
                value(stats.max),
                below(stats, axis),
                value(stats.p99),
            ),
        ),
        height: frame.bottom + BELOW,
        drawing,
    }
}

/// How many are below zero, of values with a sign.
fn below(stats: &Stats, axis: &Axis) -> String {
    match axis.zero() {
        Some(_) => format!(", {} of them below zero", grouped(stats.early)),
        None => String::new(),
    }
}

/// Combines recorded bins into bars of equal width on paper: counts in bars of unequal width
/// would draw steps that are not in the data. No recorded bin is cut, so every bar is a true
/// count: a bin belongs to the bar that its low end is in.
pub fn rebinned(distribution: &Bins, axis: &Axis) -> Vec<Bar> {
    let width = bar_width(axis, distribution.coarse);
    let mut bars: Vec<Bar> = Vec::new();
    for bin in &distribution.bins {
        let bar = bar(bin, axis, width);
        match bars.last_mut() {
            Some(last) if last.slot == bar.slot => {
                last.to = last.to.max(bar.to);
                last.count += bar.count;
            }
            Some(last) => {
                let from = bar.from.max(last.to);
                bars.push(Bar { from, to: bar.to.max(from), ..bar });
            }
            None => bars.push(bar),
        }
    }
    // The outermost bars end at the extremes, which are known exactly.
    if let (Some(first), Some(bin)) = (bars.first_mut(), distribution.bins.first())
        && first.slot.is_finite()
    {
        first.from = first.from.max(axis.map(bin.low as f64)).min(first.to);
    }
    if let (Some(last), Some(bin)) = (bars.last_mut(), distribution.bins.last())
        && last.slot.is_finite()
    {
        last.to = last.to.min(axis.map(bin.high as f64)).max(last.from);
    }
    bars
}

fn bar_width(axis: &Axis, coarse: bool) -> f64 {
    let (scale, relative) = (axis.scale(), if coarse { COARSE } else { FINE });
    let high = scale.high();
    if axis.zero().is_some() {
        let unit = (scale.map(high) - scale.map(scale.low())) / (high - scale.low());
        let bin = unit * relative * high.max(-scale.low());
        return (bin * if coarse { 1.0 } else { BINS_IN_LINEAR }).max(BAR);
    }
    let bin = scale.map(high) - scale.map(high / (1.0 + relative));
    (bin * if coarse { 1.0 } else { BINS_IN_BAR }).max(BAR)
}

/// The bar that a recorded bin belongs to.
fn bar(bin: &SignedBin, axis: &Axis, width: f64) -> Bar {
    let (count, start) = (bin.count, axis.scale().low());
    if let Some((from, to)) = axis.band().filter(|_| (bin.high as f64) < start) {
        let (from, to) = (from + 6.0, to - 6.0);
        return Bar { slot: f64::NEG_INFINITY, from, to, count };
    }
    // A bin contains whole nanoseconds: it ends where the next one begins.
    let (low, end) = (axis.map((bin.low as f64).max(start)), axis.map(bin.high as f64 + 1.0));
    // No bar has both samples below zero and others.
    let origin = axis.zero().unwrap_or(0.0);
    let slot = ((low - origin) / width).floor();
    let wide = end - low > width;
    let place = |slot: f64| origin + slot * width;
    let (from, to) = if wide { (low, end) } else { (place(slot), place(slot + 1.0)) };
    Bar { slot, from, to, count }
}

#[cfg(test)]
mod tests {
    use super::super::latency::Range;
    use super::*;
    use proptest::prelude::*;
    use punctual_core::histogram::SignedHistogram;

    fn bars_of(values: &[i64], range: &Range) -> Vec<Bar> {
        let mut histogram = SignedHistogram::new();
        values.iter().for_each(|v| histogram.record(*v));
        let bins = histogram.sparse().bins().collect();
        rebinned(&Bins { bins, coarse: false }, &range.axis(0.0, 600.0))
    }

    proptest! {
        #[test]
        fn rebinning_loses_nothing(values in prop::collection::vec(-5_000_i64..10_000_000, 1..300)) {
            for high in [10_000, 10_000_000] {
                let values: Vec<_> = values.iter().map(|v| v % high).collect();
                let bars = bars_of(&values, &Range::spanning(-5_000, high));
                prop_assert_eq!(bars.iter().map(|bar| bar.count).sum::<u64>(), values.len() as u64);
                for pair in bars.windows(2) {
                    prop_assert!(pair[0].to <= pair[1].from + 1e-9, "{:?}", pair);
                }
            }
        }
    }

    #[test]
    fn an_even_spread_gives_even_bars() {
        // Evenly spread on the logarithmic axis: 1 us to 1 ms.
        let values: Vec<i64> = (0..100_000)
            .map(|i| 10_f64.powf(3.0 + 3.0 * f64::from(i) / 100_000.0).round().to_string())
            .filter_map(|text| text.parse().ok())
            .collect();
        let bars = bars_of(&values, &Range::spanning(1_000, 1_000_000));
        check_even(&bars);
    }

    fn check_even(bars: &[Bar]) {
        assert!(bars.len() > 30, "{}", bars.len());
        let inner = &bars[1..bars.len() - 1];
        let mean = inner.iter().map(|bar| bar.count).sum::<u64>() / inner.len() as u64;
        for bar in inner {
            assert!((mean / 2..=mean * 3 / 2).contains(&bar.count), "{bar:?} against {mean}");
        }
    }
}
