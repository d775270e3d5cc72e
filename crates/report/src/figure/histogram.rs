//! Occurrences over latency, one figure a cell, the maximum marked by a line.

use maud::html;
use punctual_core::histogram::SignedBin;
use punctual_core::units::{grouped, human_ns};

use super::deadline::{deadline, deadline_label};
use super::entry::{Entry, Material, Place};
use super::frame::{Frame, count_label, n};
use super::latency::Axis;
use super::scale::{Scale, Tick};
use super::svg::{Figure, described, file_name};
use crate::data::Bins;
use crate::subject::Subject;

/// Width that a bar should have at least, units of the figure.
const BAR: f64 = 5.0;
/// Least number of recorded bins in a bar of a logarithmic axis. With fewer, neighbours
/// with one bin more or less would make a smooth distribution look like a comb.
const BINS_IN_BAR: f64 = 4.0;
/// Relative width of a recorded bin of the histogram and of the blocks.
const FINE: f64 = 1.0 / 128.0;
const COARSE: f64 = 1.0 / 4.0;

/// One bar: its place and the number of samples in it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Bar {
    slot: f64,
    from: f64,
    to: f64,
    count: u64,
}

pub const ENTRY: Entry = Entry { place: Place::Histograms, draw };

fn draw(material: &Material<'_>) -> Vec<Figure> {
    let Material { subjects, range, kernels, .. } = material;
    // Kernels differ by factors: a linear axis would squeeze the best of them.
    figures(subjects, |from, to| match kernels {
        Some(_) => range.log_axis(from, to),
        None => range.fitting_axis(from, to),
    })
}

/// `axis` makes the latency axis between two places.
fn figures(subjects: &[Subject<'_>], axis: impl Fn(f64, f64) -> Axis) -> Vec<Figure> {
    let frame = Frame::standard(210.0);
    let axis = axis(frame.left, frame.right);
    let bars: Vec<_> =
        subjects.iter().map(|s| rebinned(&Bins::of_samples(s.latency, s.data), &axis)).collect();
    let most = bars.iter().flatten().map(|bar| bar.count).max().unwrap_or(1);
    // From one half: a bar of a single sample must have a height.
    let counts = Scale::log(0.5, most as f64 * 1.1, frame.bottom, frame.top);
    subjects
        .iter()
        .zip(&bars)
        .filter(|(_, bars)| !bars.is_empty())
        .map(|(subject, bars)| figure(subject, bars, frame, &axis, &counts))
        .collect()
}

fn figure(
    subject: &Subject<'_>,
    bars: &[Bar],
    frame: Frame,
    axis: &Axis,
    counts: &Scale,
) -> Figure {
    let stats = &subject.latency.stats;
    let tick = |t: Tick| (counts.map(t.value), t.labelled.then(|| count_label(t.value)));
    let ticks: Vec<_> = counts.ticks(6).into_iter().filter(|t| t.value >= 1.0).map(tick).collect();
    let body = html! {
        @if let Some(band) = axis.early() { (frame.band(band, (frame.top, frame.bottom))) }
        (frame.y_axis(&ticks, "occurrences in the width of a bar, logarithmic"))
        @if let Some(note) = &subject.note { (frame.note(note)) }
        (frame.x_axis(&axis.ticks(7), "latency"))
        path class="count" d=(outline(bars, frame, counts)) {}
        @if let Some(ns) = deadline(subject.run) {
            (frame.vertical(axis.map(ns), "deadline", &deadline_label(ns), 1.0))
        }
        @if let Some(max) = stats.max {
            (frame.vertical(axis.map(max as f64), "maxline", &format!("max {}", human_ns(max)), 0.0))
        }
        (frame.border())
    };
    let value = |ns: Option<i64>| ns.map_or_else(|| "none".to_owned(), human_ns);
    Figure {
        name: file_name("histogram", subject),
        title: format!("Histogram · {}", subject.label),
        description: described(
            subject,
            format!(
                "{} samples from {} to {}; 99 % of them are at most {}. Both axes are the same in all histograms of this report.",
                grouped(stats.samples),
                value(stats.min),
                value(stats.max),
                value(stats.p99),
            ),
        ),
        height: frame.bottom + 52.0,
        body,
    }
}

fn outline(bars: &[Bar], frame: Frame, counts: &Scale) -> String {
    let mut path = String::new();
    for bar in bars {
        let y = counts.map(bar.count as f64);
        // A bar cut at an extreme may be a hair wide: it must be seen all the same.
        let from = bar.from.min(bar.to - 1.5).max(frame.left);
        let (x0, x1, base) = (n(from), n(bar.to), n(frame.bottom));
        path.push_str(&format!("M{x0} {base}V{}H{x1}V{base}Z", n(y)));
    }
    path
}

/// How latencies are put together to bars of equal width on paper: counts in
/// bars of unequal width would draw steps that are not in the data.
#[derive(Debug, Clone, Copy)]
enum Slots {
    /// A power of two of nanoseconds. Recorded bins are powers of two wide and
    /// start at multiples of their width, so no bar cuts one.
    Linear { ns: i64 },
    /// A width on paper. A recorded bin belongs to the bar that its low end is in.
    Log { width: f64 },
}

impl Slots {
    fn of(axis: &Axis, coarse: bool) -> Self {
        let scale = axis.scale();
        let relative = if coarse { COARSE } else { FINE };
        let high = scale.high();
        if scale.is_log() {
            let bin = scale.map(high) - scale.map(high / (1.0 + relative));
            let bins = if coarse { 1.0 } else { BINS_IN_BAR };
            return Self::Log { width: (bin * bins).max(BAR) };
        }
        let largest = high.abs().max(scale.low().abs());
        let bar = scale.value_at(BAR) - scale.value_at(0.0);
        let wanted = bar.max(largest * relative);
        let ns = (0..62).map(|shift| 1_i64 << shift).find(|ns| *ns as f64 >= wanted);
        Self::Linear { ns: ns.unwrap_or(1 << 62) }
    }

    /// The bar that a recorded bin belongs to.
    fn bar(self, bin: &SignedBin, axis: &Axis) -> Bar {
        let count = bin.count;
        if let Some((from, to)) = axis.early().filter(|_| bin.high < 1) {
            let (from, to) = (from + 6.0, to - 6.0);
            return Bar { slot: f64::NEG_INFINITY, from, to, count };
        }
        match self {
            Self::Linear { ns } => {
                let slot = bin.low.div_euclid(ns) as f64;
                let (from, to) = (axis.map(slot * ns as f64), axis.map((slot + 1.0) * ns as f64));
                Bar { slot, from, to, count }
            }
            Self::Log { width } => {
                // A bin contains whole nanoseconds: it ends where the next one begins.
                let (low, end) = (axis.map(bin.low as f64), axis.map(bin.high as f64 + 1.0));
                let slot = (low / width).floor();
                let wide = end - low > width;
                let (from, to) =
                    if wide { (low, end) } else { (slot * width, (slot + 1.0) * width) };
                Bar { slot, from, to, count }
            }
        }
    }
}

/// Combines recorded bins into bars. No recorded bin is cut, so every bar is a true
/// count.
fn rebinned(distribution: &Bins, axis: &Axis) -> Vec<Bar> {
    let slots = Slots::of(axis, distribution.coarse);
    let mut bars: Vec<Bar> = Vec::new();
    for bin in &distribution.bins {
        let bar = slots.bar(bin, axis);
        match bars.last_mut() {
            Some(last) if last.slot == bar.slot => {
                last.to = last.to.max(bar.to);
                last.count += bar.count;
            }
            Some(last) => {
                let from = bar.from.max(last.to);
                bars.push(Bar { from, ..bar });
            }
            None => bars.push(bar),
        }
    }
    // The outermost bars end at the extremes, which are known exactly.
    if let (Some(first), Some(bin)) = (bars.first_mut(), distribution.bins.first()) {
        first.from = first.from.max(axis.map(bin.low as f64)).min(first.to);
    }
    if let (Some(last), Some(bin)) = (bars.last_mut(), distribution.bins.last()) {
        last.to = last.to.min(axis.map(bin.high as f64)).max(last.from);
    }
    bars
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
        rebinned(&Bins { bins, coarse: false }, &range.fitting_axis(0.0, 600.0))
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

    #[test]
    fn an_even_spread_over_octaves_gives_even_bars_on_a_linear_axis() {
        let values: Vec<i64> = (10_000..90_000).collect();
        check_even(&bars_of(&values, &Range::spanning(10_000, 90_000)));
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
