//! How long it takes until a latency is exceeded again: the maxima of blocks of time on Gumbel
//! paper, with nothing fitted.
//!
//! The maximum at rank i of n has the probability p = i / (n + 1) and the place -ln(-ln p). For
//! blocks of length L, ln L is added: that is the logarithm of L / -ln p, the return period. Blocks
//! of all lengths then have one axis, and one curve if seconds are independent (E. J. Gumbel,
//! Statistics of Extremes, 1958).

use punctual_core::stats::{clopper_pearson_lower, clopper_pearson_upper};
use punctual_core::units::grouped;

use super::deadline::{colour, deadline, deadline_label};
use super::drawing::{Drawing, Pen, Point};
use super::entry::{Entry, Material, Place};
use super::frame::{BELOW, DEADLINE, Frame, LINE, Lines, Ticks, spaced};
use super::latency::{Axis, Range, label};
use super::legend::Legend;
use super::name;
use super::scale::Scale;
use super::sheet::Figure;
use super::theme::Colour;
use crate::data::primaries;
use crate::subject::Subject;

/// Lengths of blocks, s, with their names and dashes.
const LENGTHS: [(u64, &str, &[f64]); 4] = [
    (1, "1 s", &[]),
    (10, "10 s", &[7.0, 3.0]),
    (60, "1 min", &[2.0, 2.0]),
    (3_600, "1 h", &[10.0, 3.0, 2.0, 3.0]),
];
/// Fewer blocks of a length show no curve.
const LEAST: u64 = 10;
/// The confidence of each end of a band: 95 % in between.
const CONFIDENCE: f64 = 0.975;
/// The axis ends at so many times the length of what was measured.
const BEYOND: f64 = 4.0;
/// So many of the largest maxima are points.
const POINTS: usize = 5;

pub const ENTRY: Entry = Entry { place: Place::Returns, draw };

fn draw(material: &Material<'_>) -> Vec<Figure> {
    material.single.iter().filter_map(|one| figure(one, &material.range(one))).collect()
}

/// The largest latency of every second with samples, by its number, and how many seconds
/// there are.
fn seconds(subject: &Subject<'_>) -> (Vec<(u64, i64)>, u64) {
    let blocks = primaries(subject.data).flat_map(|series| &series.blocks);
    let blocks = blocks.filter(|block| block.moments.count > 0);
    let mut maxima: Vec<(u64, i64)> =
        blocks.map(|block| (block.index, block.moments.max)).collect();
    // Of one thread they are in order.
    maxima.sort();
    let maxima = highest(&maxima, |second| second);
    let last = maxima.last().map_or(0, |(last, _)| last.saturating_add(1));
    (maxima, last)
}

/// The highest of neighbours whose numbers are alike.
fn highest(maxima: &[(u64, i64)], number: impl Fn(u64) -> u64) -> Vec<(u64, i64)> {
    let alike = maxima.chunk_by(|(a, _), (b, _)| number(*a) == number(*b));
    let highest = |all: &[(u64, i64)]| Some((all.first()?.0, all.iter().map(|one| one.1).max()?));
    alike.filter_map(highest).collect()
}

/// The maxima of blocks of one length.
struct Series {
    number: usize,
    /// Those of blocks with samples, ascending.
    maxima: Vec<i64>,
    /// All whole blocks: those without samples have the lowest ranks.
    blocks: u64,
}

impl Series {
    fn of(number: usize, seconds: &[(u64, i64)], last: u64) -> Option<Self> {
        let length = LENGTHS[number].0;
        let blocks = last / length;
        let whole = seconds.partition_point(|(second, _)| *second < blocks * length);
        let by_block = highest(&seconds[..whole], |second| second / length);
        let mut maxima: Vec<i64> = by_block.into_iter().map(|(_, max)| max).collect();
        maxima.sort_unstable();
        let enough = maxima.len() as u64 >= LEAST;
        enough.then_some(Self { number, maxima, blocks })
    }

    fn pen(&self, class: &'static str, width: f64) -> Pen {
        Pen::line(class, Colour::Curve(self.number), width)
    }

    /// The return period of a maximum, s, by the probability that a block is below it.
    fn period(&self, p: f64) -> f64 {
        LENGTHS[self.number].0 as f64 / -p.ln()
    }

    /// The rank of the maximum at this index, from 1.
    fn rank(&self, index: usize) -> u64 {
        self.blocks - self.maxima.len() as u64 + index as u64 + 1
    }

    fn at(&self, index: usize) -> f64 {
        self.period(self.rank(index) as f64 / (self.blocks + 1) as f64)
    }

    /// The places where the true return period is with a probability of 95 %: the probability
    /// at rank i of n has a beta distribution with i and n - i + 1.
    fn band(&self, index: usize) -> [f64; 2] {
        let (rank, n) = (self.rank(index), self.blocks);
        [clopper_pearson_lower(rank, n, CONFIDENCE), clopper_pearson_upper(rank - 1, n, CONFIDENCE)]
            .map(|p| self.period(p))
    }

    /// The maxima that are so far apart on paper, and the last ones.
    fn spread(&self, time: &Scale, axis: &Axis, apart: f64) -> Vec<usize> {
        let at = |index: usize| (time.map(self.at(index)), axis.map(self.maxima[index] as f64));
        let last = self.maxima.len().saturating_sub(POINTS);
        let mut kept = Vec::new();
        let mut next = 0;
        while next < last {
            kept.push(next);
            // Both places only grow, and so does the distance.
            let (x, y) = at(next);
            let near = |index: usize| {
                if index >= last {
                    return false;
                }
                let there = at(index);
                (there.0 - x).hypot(there.1 - y) < apart
            };
            let mut step = 1;
            while near(next + step) {
                step *= 2;
            }
            let (mut here, mut beyond) = (next + step / 2, next + step);
            while here + 1 < beyond {
                let middle = usize::midpoint(here, beyond);
                if near(middle) { here = middle } else { beyond = middle }
            }
            next = beyond;
        }
        kept.extend(last..self.maxima.len());
        kept
    }
}

/// The figure; none of a deterministic board, whose blocks are no sample of anything, or with too
/// few blocks.
fn figure(subject: &Subject<'_>, range: &Range) -> Option<Figure> {
    if subject.run.board.is_deterministic() {
        return None;
    }
    let (maxima, last) = seconds(subject);
    let all: Vec<Series> =
        (0..LENGTHS.len()).filter_map(|number| Series::of(number, &maxima, last)).collect();
    let first = all.first()?;
    let frame = Frame::standard(260.0, &Lines::default());
    let axis = range.axis(frame.bottom, frame.top);
    let time = Scale::log(first.at(0), last as f64 * BEYOND, frame.left, frame.right);
    let mut drawing = Drawing::default();
    if let Some((low, high)) = axis.band() {
        frame.band(&mut drawing, [frame.left, high, frame.right, low]);
    }
    for series in &all {
        bands(&mut drawing, series, &time, &axis);
    }
    frame.x_axis(
        &mut drawing,
        &periods(&time),
        "return period: exceeded once in this time on average",
    );
    frame.y_axis(&mut drawing, &axis.ticks(6), "maximum of a block");
    if let Some(note) = &subject.note {
        frame.note(&mut drawing, note, "maximum of a block");
    }
    let deadline = deadline(subject.run);
    if let Some(ns) = deadline {
        let y = axis.map(ns);
        drawing.line((frame.left, y), (frame.right, y), DEADLINE);
    }
    for series in &all {
        curve(&mut drawing, subject, series, &time, &axis);
    }
    frame.border(&mut drawing);
    let height = legend(&mut drawing, &all, deadline, frame.bottom + BELOW);
    let list: Vec<_> = all
        .iter()
        .map(|one| format!("{} of {}", grouped(one.blocks), LENGTHS[one.number].1))
        .collect();
    Some(Figure {
        name: name::of_cell("returns", subject),
        title: name::titled([subject], &format!("Return levels · {}", subject.label)),
        description: name::described(
            subject,
            format!(
                "Maxima of blocks ({}) on Gumbel paper by their return period, with the order \
                 statistics' 95 % and nothing fitted. The largest maximum is {}.",
                list.join(", "),
                first.maxima.last().map_or_else(String::new, |max| label(*max as f64)),
            ),
        ),
        height,
        drawing,
    })
}

/// The two ends of what each rank's return period may be.
fn bands(to: &mut Drawing, series: &Series, time: &Scale, axis: &Axis) {
    let ends: Vec<([f64; 2], f64)> = series
        .spread(time, axis, 20.0)
        .into_iter()
        .map(|index| {
            (series.band(index).map(|at| time.map(at)), axis.map(series.maxima[index] as f64))
        })
        .collect();
    let side = |end: usize| ends.iter().map(|(at, y)| (at[end], *y)).collect::<Vec<Point>>();
    to.lines(vec![side(0), side(1)], series.pen("band", 0.7).dashed(&[1.0, 2.0]), None);
}

fn curve(to: &mut Drawing, subject: &Subject<'_>, series: &Series, time: &Scale, axis: &Axis) {
    let kept = series.spread(time, axis, 0.7);
    let at = |index: usize| (time.map(series.at(index)), axis.map(series.maxima[index] as f64));
    let (_, name, dash) = LENGTHS[series.number];
    let path = kept.iter().map(|index| at(*index)).collect();
    to.lines(vec![path], series.pen("curve", 1.8).dashed(dash), Some(format!("blocks of {name}")));
    for index in series.maxima.len().saturating_sub(POINTS)..series.maxima.len() {
        let note = format!(
            "{}, rank {} of {}",
            label(series.maxima[index] as f64),
            series.rank(index),
            series.blocks
        );
        let max = series.maxima[index] as f64;
        let paint = colour(subject.run, max, Colour::Curve(series.number));
        let pen = Pen::line("point", paint, 1.3).filled(Colour::Paper);
        to.circle(at(index), 2.6, pen, Some(note));
    }
}

fn periods(time: &Scale) -> Ticks {
    const TIMES: [(f64, &str); 12] = [
        (0.01, "10 ms"),
        (0.1, "0.1 s"),
        (1.0, "1 s"),
        (10.0, "10 s"),
        (60.0, "1 min"),
        (600.0, "10 min"),
        (3_600.0, "1 h"),
        (36_000.0, "10 h"),
        (172_800.0, "2 d"),
        (1_728_000.0, "20 d"),
        (17_280_000.0, "200 d"),
        (172_800_000.0, "2000 d"),
    ];
    let inside = |at: f64| at >= time.low() && at <= time.high();
    let ticks = TIMES.iter().filter(|(at, _)| inside(*at));
    spaced(ticks.map(|(at, name)| (time.map(*at), Some((*name).to_owned()))).collect(), &[])
}

/// What the lines are; returns where it ends.
fn legend(to: &mut Drawing, all: &[Series], deadline: Option<f64>, above: f64) -> f64 {
    let mut y = above + LINE;
    let mut row = Legend::at(to, y);
    let line =
        |to: &mut Drawing, (x, y): Point, pen: Pen| to.line((x - 10.0, y), (x + 4.0, y), pen);
    for series in all {
        let (_, name, dash) = LENGTHS[series.number];
        row.mark(&format!("{name} ({})", grouped(series.blocks)), |to, at| {
            line(to, at, series.pen("curve", 1.8).dashed(dash));
        });
    }
    y += LINE;
    let mut row = Legend::at(to, y);
    row.mark("95 % of each rank", |to, at| {
        line(to, at, all[0].pen("band", 0.7).dashed(&[1.0, 2.0]));
    });
    if let Some(ns) = deadline {
        row.mark(&deadline_label(ns), |to, at| line(to, at, DEADLINE));
    }
    y + 10.0
}
