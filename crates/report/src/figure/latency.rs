//! The latency axis that all figures of a kind of quantity share.

use std::collections::BTreeMap;

use punctual_core::run::{CellData, LoadedRun};
use punctual_core::schema::{Ideal, Latency, Unit};

use super::drawing::{Drawing, Pen};
use super::frame::{Frame, Ticks, spaced};
use super::scale::{Scale, Tick};
use super::theme::Colour;
use crate::data::{self, Bins};
use crate::words;

/// The ranges of a report: one for every probe, since a reading of the clock and a wake-up
/// differ by decades and are never compared.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ranges(BTreeMap<String, Range>);

impl Ranges {
    /// Of all latencies and deadlines of the runs.
    pub fn of(runs: &[LoadedRun]) -> Self {
        let mut ranges: BTreeMap<String, Range> = BTreeMap::new();
        for run in runs {
            let deadline = run.run.verdict.deadline_ns.or(run.run.plan.deadline_ns);
            for (cell, data) in data::cells(run) {
                let Some(latency) = cell.latency().filter(|l| l.stats.samples > 0) else {
                    continue;
                };
                let range = ranges.entry(latency.probe.clone()).or_default();
                range.include_cell(latency, data);
                let deadline = deadline.and_then(|ns| i64::try_from(ns).ok());
                range.high = range.high.max(deadline.unwrap_or(1));
            }
        }
        Self(ranges)
    }

    /// The range of a probe's latencies.
    pub fn of_probe(&self, probe: &str) -> Range {
        self.0.get(probe).copied().unwrap_or_default()
    }

    /// Whether there is one axis for all.
    pub fn is_single(&self) -> bool {
        self.0.len() <= 1
    }
}

/// The latencies that an axis has to show.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// The smallest latency, ns.
    least: i64,
    /// The smallest latency above zero, ns.
    positive: i64,
    /// Where the data begin: all but 0.1 % of every cell are at least this, ns. Above zero.
    bulk: i64,
    high: i64,
    /// Whether a cell has more below zero than a band may stand for.
    signed: bool,
}

impl Default for Range {
    fn default() -> Self {
        Self { least: i64::MAX, positive: i64::MAX, bulk: i64::MAX, high: 1, signed: false }
    }
}

impl Range {
    fn include_cell(&mut self, latency: &Latency, data: &CellData) {
        let bins = Bins::corrected(latency, data);
        let total = bins.total();
        let mut counted = 0;
        let mut bulk = None;
        for bin in &bins.bins {
            self.include(bin.low);
            self.include(bin.high);
            counted += bin.count;
            if bulk.is_none() && counted > total / 1_000 && bin.high > 0 {
                bulk = Some(bin.low.max(1));
            }
        }
        for value in [latency.stats.min, latency.stats.max].into_iter().flatten() {
            self.include(value);
        }
        if let Some(Ideal::Interval { ns, limit_ns }) = latency.ideal {
            let parts = latency.series.iter().filter(|series| series.unit == Unit::Ns);
            let parts = parts.filter_map(|series| series.stats.min);
            let lines = [ns, limit_ns].map(|ns| i64::try_from(ns).unwrap_or(i64::MAX));
            parts.chain(lines).for_each(|value| self.include(value));
        }
        self.signed |= data::is_signed(&latency.stats);
        let least = latency.stats.min.or(latency.stats.max).unwrap_or(1).max(1);
        self.bulk = self.bulk.min(bulk.unwrap_or(least));
    }

    fn include(&mut self, value: i64) {
        self.least = self.least.min(value);
        self.high = self.high.max(value);
        if value > 0 {
            self.positive = self.positive.min(value);
        }
    }

    /// Of values from one to another.
    pub(super) fn spanning(low: i64, high: i64) -> Self {
        let mut range = Self::default();
        range.include(low);
        range.include(high);
        range.bulk = range.positive;
        range
    }

    /// An axis from one place to another: linear with zero on it for signed values, else
    /// logarithmic. A logarithmic one begins where the data do; a band at its
    /// start stands for everything smaller: latencies of zero and below, and the few that are
    /// more than a decade smaller than the rest.
    #[must_use]
    pub fn axis(&self, from: f64, to: f64) -> Axis {
        if self.signed {
            let ends = [self.least.min(0), self.high.max(1)].map(|ns| ns as f64 * HEADROOM);
            return Axis { scale: Scale::exact(ends[0], ends[1], from, to), under: None };
        }
        let bulk = self.bulk.min(self.high).max(1);
        let low = if self.positive >= bulk / 10 { self.positive.min(bulk) } else { bulk };
        // A line on the border could not be seen.
        let high = self.high as f64 * HEADROOM;
        let alone = Scale::log(low as f64, high, from, to);
        if self.least as f64 >= alone.low() || self.least == i64::MAX {
            return Axis { scale: alone, under: None };
        }
        let start = from + BAND * (to - from).signum();
        let scale = Scale::log(low as f64, high, start, to);
        let early = self.positive as f64 >= alone.low();
        Axis { scale, under: Some(Under { from, early }) }
    }
}

/// Room above the maximum, as a factor.
const HEADROOM: f64 = 1.1;

/// Length of the band for what is below the axis, units of the figure.
const BAND: f64 = 84.0;

/// The band below the start of an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Under {
    from: f64,
    /// Whether all that is in it is zero or below.
    early: bool,
}

const ZERO: Pen = Pen::line("zero", Colour::Soft, 1.2);

/// A latency axis: a scale in nanoseconds, linear with zero inside, or logarithmic with a band for
/// values that it cannot show.
#[derive(Debug, Clone, Copy)]
pub struct Axis {
    scale: Scale,
    under: Option<Under>,
}

impl Axis {
    /// The place of a latency in ns. What is below the scale is in the middle of the band.
    #[must_use]
    pub fn map(&self, ns: f64) -> f64 {
        match self.under {
            Some(under) if ns < self.scale.low() => (under.from + self.start()) / 2.0,
            _ => self.scale.map(ns),
        }
    }

    /// The two ends of the band, if there is one.
    #[must_use]
    pub fn band(&self) -> Option<(f64, f64)> {
        self.under.map(|under| (under.from, self.start()))
    }

    /// The scale next to the band.
    #[must_use]
    pub fn scale(&self) -> &Scale {
        &self.scale
    }

    /// The place of zero; none on a logarithmic axis.
    #[must_use]
    pub fn zero(&self) -> Option<f64> {
        (self.scale.low() <= 0.0).then(|| self.scale.map(0.0))
    }

    /// What it shows of a cell, in a few words.
    pub(super) fn quantity(&self, latency: &Latency) -> String {
        match self.zero() {
            Some(_) => format!("{}, linear", words::clean(&latency.primary.name)),
            None => "latency".to_owned(),
        }
    }

    fn start(&self) -> f64 {
        self.scale.map(self.scale.low())
    }

    /// Places and labels of the ticks, `most` labels at most besides those of the band and the
    /// ends.
    #[must_use]
    pub fn ticks(&self, most: usize) -> Ticks {
        let mut ticks = Vec::new();
        if let Some(under) = self.under {
            let name = if under.early {
                "early".to_owned()
            } else {
                format!("< {}", label(self.scale.low()))
            };
            ticks.push(((under.from + self.start()) / 2.0, Some(name)));
        }
        let text = |ns: f64| if ns == 0.0 { "0".to_owned() } else { label(ns) };
        let tick = |t: Tick| (self.scale.map(t.value), t.labelled.then(|| text(t.value)));
        ticks.extend(self.scale.ticks(most).into_iter().map(tick));
        ticks
    }

    /// Draws it as the horizontal axis of a frame.
    pub(super) fn draw(&self, to: &mut Drawing, frame: Frame, most: usize, name: &str) {
        if let Some((left, right)) = self.band() {
            frame.band(to, [left, frame.top, right, frame.bottom]);
        }
        if let Some(x) = self.zero() {
            to.line((x, frame.top), (x, frame.bottom), ZERO);
        }
        // The ends carry a label if there is room: a reader asks where an axis begins.
        let ends = [self.scale.low(), self.scale.high()];
        let spare = ends.map(|ns| (self.scale.map(ns), label(ns)));
        // Those of a linear one are no round numbers.
        let spare = if self.zero().is_some() { &[][..] } else { &spare[..] };
        frame.x_axis(to, &spaced(self.ticks(most), spare), name);
    }
}

/// A latency as a tick is labelled: `1 us`, `250 us`, `1.5 ms`.
pub(super) fn label(ns: f64) -> String {
    let (value, unit) = match ns.abs() {
        v if v >= 0.999_999e9 => (ns / 1e9, "s"),
        v if v >= 0.999_999e6 => (ns / 1e6, "ms"),
        v if v >= 0.999_999e3 => (ns / 1e3, "us"),
        _ => (ns, "ns"),
    };
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{} {unit}", if text == "-0" { "0" } else { text })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(values: &[i64], bulk: i64) -> Range {
        let mut range = Range::default();
        values.iter().for_each(|v| range.include(*v));
        Range { bulk, ..range }
    }

    #[test]
    fn labels_carry_their_unit() {
        for (ns, text) in [
            (1.0, "1 ns"),
            (0.0, "0 ns"),
            (1e4, "10 us"),
            (2.5e5, "250 us"),
            (1.5e6, "1.5 ms"),
            (-5e8, "-500 ms"),
            (1e9, "1 s"),
        ] {
            assert_eq!(label(ns), text);
        }
    }

    #[test]
    fn early_samples_have_a_band_of_their_own() {
        let axis = range(&[-5_000, 0, 200, 1_000_000], 200).axis(100.0, 600.0);
        let (from, to) = axis.band().unwrap();
        assert!(from < axis.map(-5_000.0) && axis.map(0.0) < to && to <= axis.map(200.0));
        assert_eq!(axis.ticks(5)[0].1.as_deref(), Some("early"));
        assert!(range(&[1, 1_000], 1).axis(0.0, 1.0).band().is_none());
    }

    #[test]
    fn signed_values_have_a_linear_axis_with_zero_on_it() {
        let signed = Range { signed: true, ..range(&[-40_000, 30_000, 60_000], 1) };
        let axis = signed.axis(100.0, 600.0);
        assert!(axis.band().is_none());
        let places = [-40_000.0, -20_000.0, 0.0, 20_000.0, 40_000.0].map(|ns| axis.map(ns));
        let step = places[1] - places[0];
        assert!(places.windows(2).all(|pair| (pair[1] - pair[0] - step).abs() < 1e-6));
        assert_eq!(axis.zero(), Some(places[2]));
        assert!(
            axis.ticks(7).iter().any(|(at, label)| {
                label.as_deref() == Some("0") && (at - places[2]).abs() < 1e-6
            })
        );
        let log = range(&[200, 1_000_000], 200).axis(100.0, 600.0);
        assert_eq!(log.zero(), None);
    }

    #[test]
    fn an_axis_begins_where_the_data_do() {
        // One sample of 3 ns among wake-ups of 14 us and more.
        let axis = range(&[3, 14_000, 90_000], 14_000).axis(100.0, 600.0);
        assert_eq!((axis.scale().low(), axis.scale().high()), (10_000.0, 100_000.0));
        assert_eq!(axis.ticks(5)[0].1.as_deref(), Some("< 10 us"));
        let (from, to) = axis.band().unwrap();
        assert!(from < axis.map(3.0) && axis.map(3.0) < to);
        // A smallest sample near the others needs no band.
        let axis = range(&[4_000, 14_000, 90_000], 14_000).axis(100.0, 600.0);
        assert!(axis.band().is_none() && axis.scale().low() <= 4_000.0);
    }
}
