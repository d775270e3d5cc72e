//! Both edges of a pulse as an oscilloscope in infinite persistence draws them: how many pulses
//! passed each place is its colour.

use punctual_core::histogram::SignedBin;
use punctual_core::schema::Ideal;
use punctual_core::units::{grouped, human_ns};

use super::density::{key, level};
use super::drawing::{Drawing, Image, Label, Pen};
use super::entry::{Entry, Material, Place};
use super::frame::{BELOW, Frame, LEFT, LINE, Lines, Upright, spaced};
use super::latency::label;
use super::scale::Scale;
use super::sheet::Figure;
use super::theme::Colour;
use super::{frame, name};
use crate::data::Bins;
use crate::subject::Subject;

const COLUMNS: usize = 600;
const ROWS: usize = 40;
/// Rows of each of the two levels; the edges are between them.
const LEVEL: usize = 3;
/// Room on either side of what was measured, as a share of it.
const MARGIN: f64 = 0.06;

const IDEAL: Pen = Pen::line("ideal", Colour::Text, 1.2).dashed(&[3.0, 3.0]);
const ACROSS: &str = "time after the ideal rising edge";

pub const ENTRY: Entry = Entry { place: Place::Histograms, draw };

fn draw(material: &Material<'_>) -> Vec<Figure> {
    let pulses: Vec<_> = material.single.iter().filter_map(Pulses::of).collect();
    let reach = |pulses: &Pulses<'_>| pulses.reach();
    let widest = |a: (f64, f64), b: (f64, f64)| (a.0.min(b.0), a.1.max(b.1));
    let Some(reach) = pulses.iter().map(reach).reduce(widest) else { return Vec::new() };
    pulses.iter().map(|pulses| pulses.figure(reach)).collect()
}

/// The pulses of a cell. Instants are ns after the ideal rising edge.
struct Pulses<'a> {
    subject: &'a Subject<'a>,
    width: f64,
    rises: Vec<SignedBin>,
    /// By how much they are late, as recorded.
    falls: Vec<SignedBin>,
}

impl<'a> Pulses<'a> {
    fn of(subject: &'a Subject<'a>) -> Option<Self> {
        let Some(Ideal::Pulse { width_ns }) = subject.latency.ideal else { return None };
        let rises = Bins::of_samples(subject.latency, subject.data).bins;
        let falls = Bins::of_series(subject.latency, subject.data, 0).bins;
        let any = !rises.is_empty() && !falls.is_empty();
        any.then_some(Self { subject, width: width_ns as f64, rises, falls })
    }

    /// The first and the last instant of an edge, ideal ones included.
    fn reach(&self) -> (f64, f64) {
        let low = self.rises.first().map_or(0.0, |bin| bin.low as f64);
        let ends = [(&self.rises, 0.0), (&self.falls, self.width)];
        let last = |(bins, from): (&Vec<SignedBin>, f64)| {
            bins.last().map_or(from, |bin| from + bin.high as f64)
        };
        (low.min(0.0), ends.map(last).into_iter().fold(self.width, f64::max))
    }

    fn figure(&self, (low, high): (f64, f64)) -> Figure {
        let subject = self.subject;
        let room = (high - low) * MARGIN;
        let time = Scale::exact(low - room, high + room, frame::LEFT, frame::RIGHT);
        let ideal = |at: f64, name: &str| Upright {
            x: time.map(at),
            paint: IDEAL,
            label: format!("ideal {name}"),
        };
        let lines = Lines::of(vec![ideal(0.0, "rise"), ideal(self.width, "fall")]);
        let frame = Frame::standard(200.0, &lines);
        let mut drawing = Drawing::default();
        let ticks = time.ticks(7).into_iter();
        let ticks = ticks.map(|tick| (time.map(tick.value), Some(label(tick.value))));
        frame.x_axis(&mut drawing, &spaced(ticks.collect(), &[]), ACROSS);
        let level = (frame.bottom - frame.top) * LEVEL as f64 / ROWS as f64 / 2.0;
        let levels = [(frame.top + level, "high"), (frame.bottom - level, "low")];
        frame.y_axis(
            &mut drawing,
            &levels.map(|(y, name)| (y, Some(name.to_owned()))).to_vec(),
            "output",
        );
        if let Some(note) = &subject.note {
            frame.note(&mut drawing, note, "output");
        }
        let Frame { left, right, top, bottom } = frame;
        let total = self.rises.iter().fold(0_u64, |sum, bin| sum.saturating_add(bin.count));
        let rises = columns(&self.rises, 0.0, &time);
        let levels = pixels(&rises, &columns(&self.falls, self.width, &time), total);
        drawing.image(Image { levels, width: COLUMNS, left, top, right, bottom });
        frame.verticals(&mut drawing, &lines);
        frame.border(&mut drawing);
        let y = frame.bottom + BELOW + LINE;
        key(&mut drawing, total, "pulses", y);
        let edges = [("rise", &self.rises), ("fall", &self.falls)].map(|(name, bins)| {
            let end = |bin: Option<&SignedBin>, at: fn(&SignedBin) -> i64| {
                bin.map_or_else(String::new, |bin| human_ns(at(bin)))
            };
            let (least, most) =
                (end(bins.first(), |bin| bin.low), end(bins.last(), |bin| bin.high));
            format!("{name} {least} to {most} late")
        });
        let text = edges.join(", ");
        drawing.text(Label::new(&text, LEFT, y + LINE).soft());
        Figure {
            name: name::of_cell("persistence", subject),
            title: name::titled([subject], &format!("Pulse · {}", subject.label)),
            description: name::described(
                subject,
                format!(
                    "{} pulses over each other, each drawn as it was measured: {text}. The colour is \
                     the number of pulses that passed a place, logarithmic. The ideal pulse begins at \
                     0 and ends at {}.",
                    grouped(total),
                    label(self.width),
                ),
            ),
            height: y + LINE + 10.0,
            drawing,
        }
    }
}

/// The image of so many pulses, of which these numbers rise and fall in each column: in the rows of
/// the edges how many edges are there, in those of a level how many pulses have it there.
fn pixels(rises: &[f64], falls: &[f64], total: u64) -> Vec<u8> {
    let mut pixels = vec![0; COLUMNS * ROWS];
    let mut high = 0.0;
    for (x, (rise, fall)) in rises.iter().zip(falls).enumerate() {
        // A pulse that rises in the column is low in a part of it, as is one that falls.
        let (at_high, at_low) = (high + rise, total as f64 - high + fall);
        high += rise - fall;
        for y in 0..ROWS {
            let passed = match y {
                y if y < LEVEL => at_high,
                y if y >= ROWS - LEVEL => at_low,
                _ => rise + fall,
            };
            if passed >= LEAST {
                pixels[y * COLUMNS + x] = level(passed, total);
            }
        }
    }
    pixels
}

/// Less than this is none: parts of a count that is spread over columns do not add up exactly.
const LEAST: f64 = 1e-3;

/// How many edges are in each column; those of a bin are spread evenly over what it covers.
fn columns(bins: &[SignedBin], from: f64, time: &Scale) -> Vec<f64> {
    let place =
        |ns: i64| column((time.map(from + ns as f64) - frame::LEFT) / (frame::RIGHT - frame::LEFT));
    let mut counts = vec![0.0; COLUMNS];
    for bin in bins {
        let (first, last) = (place(bin.low), place(bin.high.max(bin.low)));
        let each = bin.count as f64 / (last - first + 1) as f64;
        counts[first..=last].iter_mut().for_each(|count| *count += each);
    }
    counts
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, and the column is clamped"
)]
fn column(share: f64) -> usize {
    ((share * COLUMNS as f64) as usize).min(COLUMNS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten ns in a column.
    fn time() -> Scale {
        Scale::exact(0.0, 10.0 * COLUMNS as f64, frame::LEFT, frame::RIGHT)
    }

    #[test]
    fn every_pulse_is_low_high_and_low_again() {
        // Ten pulses from column 100 to 300, one from 150 to 400.
        let time = time();
        let bin = |column: i64, count| {
            let at = column * 10 + 5;
            SignedBin { low: at, high: at, count }
        };
        let rises = columns(&[bin(100, 10), bin(150, 1)], 0.0, &time);
        let falls = columns(&[bin(50, 10), bin(150, 1)], 2_500.0, &time);
        let pixels = pixels(&rises, &falls, 11);
        let at = |x: usize| [0, ROWS / 2, ROWS - 1].map(|y| pixels[y * COLUMNS + x]);
        let [all, ten, one] = [11.0, 10.0, 1.0].map(|count| level(count, 11));
        for (x, levels) in [
            (50, [0, 0, all]),
            (100, [ten, ten, all]),
            (120, [ten, 0, one]),
            (150, [all, one, one]),
            (200, [all, 0, 0]),
            (300, [all, ten, ten]),
            (350, [one, 0, ten]),
            (400, [one, one, all]),
            (500, [0, 0, all]),
        ] {
            assert_eq!(at(x), levels, "column {x}");
        }
    }

    #[test]
    fn the_edges_of_a_bin_are_spread_over_its_columns() {
        let counts = columns(&[SignedBin { low: 105, high: 135, count: 8 }], 0.0, &time());
        assert_eq!(counts[9..15], [0.0, 2.0, 2.0, 2.0, 2.0, 0.0]);
    }
}
