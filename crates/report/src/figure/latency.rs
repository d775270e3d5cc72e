//! The latency axis that all figures of a report share.

use punctual_core::run::LoadedRun;

use super::scale::{Scale, Tick};
use crate::data::{self, Bins};

/// The latencies that a report has to show: what its axes must cover.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Range {
    low: Option<i64>,
    high: Option<i64>,
    smallest_positive: Option<i64>,
}

impl Range {
    /// All latencies and deadlines of the runs.
    #[must_use]
    pub fn of(runs: &[LoadedRun]) -> Self {
        let mut range = Self::default();
        for run in runs {
            let deadline = run.run.verdict.deadline_ns.or(run.run.plan.deadline_ns);
            range.include(deadline.and_then(|d| i64::try_from(d).ok()));
            for (cell, data) in data::cells(run) {
                let Some(latency) = cell.latency() else { continue };
                range.include(latency.stats.min);
                range.include(latency.stats.max);
                for bin in Bins::corrected(latency, data).bins {
                    range.include(Some(bin.low));
                    range.include(Some(bin.high));
                }
            }
        }
        range
    }

    #[cfg(test)]
    pub(super) fn spanning(low: i64, high: i64) -> Self {
        let mut range = Self::default();
        for value in [low, high] {
            range.include(Some(value));
        }
        range
    }

    fn include(&mut self, value: Option<i64>) {
        let Some(value) = value else { return };
        self.low = Some(self.low.map_or(value, |low| low.min(value)));
        self.high = Some(self.high.map_or(value, |high| high.max(value)));
        if value > 0 {
            let least = self.smallest_positive.unwrap_or(value);
            self.smallest_positive = Some(least.min(value));
        }
    }

    /// Whether there is any latency at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.high.is_none()
    }

    /// A logarithmic axis from one place to another. If there are latencies of zero
    /// and below, a band at its start stands for all of them.
    #[must_use]
    pub fn log_axis(&self, from: f64, to: f64) -> Axis {
        let low = self.smallest_positive.unwrap_or(1);
        let high = self.high.unwrap_or(1).max(low);
        let early = self.low.is_some_and(|low| low < 1);
        let start = if early { from + EARLY_BAND * (to - from).signum() } else { from };
        Axis {
            // A line on the border could not be seen.
            scale: Scale::log(low as f64, high as f64 * HEADROOM, start, to),
            early_from: early.then_some(from),
        }
    }

    /// A logarithmic axis if the latencies span more than two decades, else
    /// a linear one. One choice for the whole report.
    #[must_use]
    pub fn fitting_axis(&self, from: f64, to: f64) -> Axis {
        let low = self.smallest_positive.unwrap_or(1);
        let high = self.high.unwrap_or(1).max(low);
        if high / 100 > low {
            return self.log_axis(from, to);
        }
        let low = self.low.unwrap_or(0).min(low);
        let room = (high as f64 - low as f64) * (HEADROOM - 1.0) / 2.0;
        Axis { scale: Scale::linear(low as f64, high as f64 + room, from, to), early_from: None }
    }
}

/// Room above the maximum, as a factor on a logarithmic axis.
const HEADROOM: f64 = 1.1;

/// Length of the band for latencies of zero and below, units of the figure.
const EARLY_BAND: f64 = 44.0;

/// A latency axis: a scale in nanoseconds, with a band for values that it cannot show.
#[derive(Debug, Clone, Copy)]
pub struct Axis {
    scale: Scale,
    early_from: Option<f64>,
}

impl Axis {
    /// The place of a latency in ns. On a logarithmic axis latencies of zero and
    /// below land in the middle of the early band.
    #[must_use]
    pub fn map(&self, ns: f64) -> f64 {
        match self.early_from {
            Some(from) if ns < 1.0 => (from + self.start()) / 2.0,
            _ => self.scale.map(ns),
        }
    }

    /// The two ends of the early band, if there is one.
    #[must_use]
    pub fn early(&self) -> Option<(f64, f64)> {
        self.early_from.map(|from| (from, self.start()))
    }

    /// The scale next to the early band.
    #[must_use]
    pub fn scale(&self) -> &Scale {
        &self.scale
    }

    fn start(&self) -> f64 {
        self.scale.map(self.scale.low())
    }

    /// Places and labels of the ticks, `most` labels at most.
    #[must_use]
    pub fn ticks(&self, most: usize) -> Vec<(f64, Option<String>)> {
        let mut ticks = Vec::new();
        if let Some((from, to)) = self.early() {
            ticks.push(((from + to) / 2.0, Some("early".to_owned())));
        }
        let tick = |t: Tick| (self.scale.map(t.value), t.labelled.then(|| label(t.value)));
        ticks.extend(self.scale.ticks(most).into_iter().map(tick));
        ticks
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

    fn range(values: &[i64]) -> Range {
        let mut range = Range::default();
        values.iter().for_each(|v| range.include(Some(*v)));
        range
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
        let axis = range(&[-5_000, 0, 200, 1_000_000]).log_axis(100.0, 600.0);
        let (from, to) = axis.early().unwrap();
        assert!(from < axis.map(-5_000.0) && axis.map(0.0) < to && to <= axis.map(200.0));
        assert!(range(&[1, 1_000]).log_axis(0.0, 1.0).early().is_none());
    }

    #[test]
    fn a_narrow_range_is_linear_and_holds_negative_values() {
        let axis = range(&[-5_000, 200, 20_000]).fitting_axis(0.0, 100.0);
        assert!(axis.early().is_none());
        assert!(axis.map(-5_000.0) < axis.map(0.0) && axis.map(0.0) < axis.map(20_000.0));
    }
}
