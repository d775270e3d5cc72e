//! Blocks, summed up to the columns of a timeline.

use punctual_core::block::{CoarseBin, coarse_range};
use punctual_core::run::SeriesData;

use super::drawing::{Drawing, Label};
use super::frame::{LEFT, count_label};
use super::latency::Axis;
use super::raster::{LEVELS, ramp};
use super::typeface::{self, LARGEST};

/// The columns of a timeline: equal numbers of seconds, in order.
#[derive(Debug, Clone)]
pub struct TimeColumns {
    /// Seconds in one column.
    pub seconds: u64,
    /// All columns; those without a sample are empty.
    pub list: Vec<Column>,
}

/// What all threads of a cell recorded of a series within the seconds of one column.
#[derive(Debug, Clone, Default)]
pub struct Column {
    /// Extremes of the samples, ns.
    pub extremes: Option<(i64, i64)>,
    /// Ascending.
    counts: Vec<(CoarseBin, u64)>,
}

impl TimeColumns {
    /// Sums the blocks of all threads up to at most `most` columns for `length`
    /// seconds. Extremes are kept, not averaged.
    pub fn of<'a>(
        all: impl Iterator<Item = &'a SeriesData> + Clone,
        length: u64,
        most: u64,
    ) -> Self {
        let last = all.clone().flat_map(|series| &series.blocks).map(|b| b.index + 1).max();
        let length = length.max(last.unwrap_or(1)).max(1);
        let seconds = length.div_ceil(most.max(1));
        let number = usize::try_from(length.div_ceil(seconds)).unwrap_or(1);
        let mut list = vec![Column::default(); number];
        for block in all.flat_map(|series| &series.blocks) {
            let at = usize::try_from(block.index / seconds).unwrap_or(usize::MAX);
            let Some(column) = list.get_mut(at).filter(|_| block.moments.count > 0) else {
                continue;
            };
            let (min, max) = (block.moments.min, block.moments.max);
            column.extremes =
                Some(column.extremes.map_or((min, max), |(a, b)| (a.min(min), b.max(max))));
            for (bin, count) in &block.coarse {
                match column.counts.binary_search_by_key(bin, |(bin, _)| *bin) {
                    Ok(at) => column.counts[at].1 += u64::from(*count),
                    Err(at) => column.counts.insert(at, (*bin, u64::from(*count))),
                }
            }
        }
        Self { seconds, list }
    }

    /// The largest count of a bin in a column: the top of the colour scale.
    pub fn most(&self) -> u64 {
        let counts = self.list.iter().flat_map(|column| &column.counts);
        counts.map(|(_, count)| *count).max().unwrap_or(0)
    }

    /// The image: one pixel a column, `rows` from the top of the axis (at place
    /// `top`) to its bottom. `most` samples have the last colour.
    pub fn pixels(&self, axis: &Axis, top: f64, bottom: f64, rows: usize, most: u64) -> Vec<u8> {
        let width = self.list.len();
        let mut pixels = vec![0; width * rows];
        let row = |place: f64| row_of((place - top) / (bottom - top), rows);
        for (x, column) in self.list.iter().enumerate() {
            let Some((min, max)) = column.extremes else {
                continue;
            };
            for (bin, count) in &column.counts {
                let (low, high) = coarse_range(*bin);
                // A bin reaches past the samples in it; the extremes are exact.
                let (low, high) = (low.max(min).min(high), high.min(max).max(low));
                let (first, last) = (row(axis.map(high as f64)), row(axis.map(low as f64)));
                let level = level(*count as f64, most);
                for y in first..=last {
                    if let Some(pixel) = pixels.get_mut(y * width + x) {
                        *pixel = level.max(*pixel);
                    }
                }
            }
        }
        pixels
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, and the row is clamped"
)]
fn row_of(share: f64, rows: usize) -> usize {
    ((share * rows as f64).floor() as usize).min(rows.saturating_sub(1))
}

/// The palette level of a count: 1 for one sample, the last for `most`.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the share is between 0 and 1"
)]
pub fn level(count: f64, most: u64) -> u8 {
    let share = if most > 1 { count.max(1.0).ln() / (most as f64).ln() } else { 0.0 };
    1 + (share.clamp(0.0, 1.0) * f64::from(LEVELS - 2)).round() as u8
}

/// The colour scale, from one to the most in one place; returns where it ends.
pub fn key(to: &mut Drawing, most: u64, nouns: &str, y: f64) -> f64 {
    const RAMP: f64 = 120.0;
    let step = RAMP / f64::from(LEVELS - 1);
    for level in 1..LEVELS {
        let left = LEFT + step * f64::from(level - 1);
        to.rects(&[[left, y - 13.0, left + step + 0.3, y + 1.0]], ramp(level));
    }
    to.text(Label::new("1", LEFT - 6.0, y).end().soft());
    let text = format!("{} {nouns}", count_label(most as f64));
    let x = LEFT + RAMP + 6.0;
    to.text(Label::new(&text, x, y).soft());
    x + typeface::room(&text, LARGEST, false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use punctual_core::block::{Block, Moments, coarse_bin};

    fn data(values: &[(u64, i64)]) -> SeriesData {
        let block = |(index, value): &(u64, i64)| Block {
            thread: 0,
            series: 0,
            index: *index,
            moments: Moments { count: 1, min: *value, max: *value, ..Moments::EMPTY },
            coarse: vec![(coarse_bin(*value), 1)],
        };
        let blocks = values.iter().map(block).collect();
        SeriesData { blocks, ..SeriesData::default() }
    }

    proptest! {
        #[test]
        fn no_maximum_is_lost(values in prop::collection::vec((0_u64..86_400, -100_i64..1_000_000_000), 1..200)) {
            let columns = TimeColumns::of(std::iter::once(&data(&values)), 86_400, 870);
            prop_assert!(columns.list.len() <= 870);
            for (second, value) in &values {
                let column = &columns.list[usize::try_from(second / columns.seconds).unwrap()];
                let (min, max) = column.extremes.unwrap();
                prop_assert!(min <= *value && *value <= max);
            }
            let counted: u64 = columns.list.iter().flat_map(|c| &c.counts).map(|(_, count)| count).sum();
            prop_assert_eq!(counted, values.len() as u64);
        }
    }

    #[test]
    fn one_sample_has_the_first_colour_and_most_the_last() {
        assert_eq!((level(1.0, 1000), level(1000.0, 1000), level(1.0, 1)), (1, LEVELS - 1, 1));
    }
}
