//! The sections of one kind in one cell over runs: how long they were, and the longest over time.

use punctual_core::explanation::Hold;
use punctual_core::histogram::{SignedBin, bin_high, bin_of};
use punctual_core::sections::{KindSections, SLICES};
use punctual_core::units::{SECOND_NS, grouped};

use super::curves::{Chart, Curve, Look, SPOT, points, spot};
use super::drawing::{Drawing, Label, Pen, Point};
use super::frame::{self, BELOW, Frame, LINE, Ticks, spaced};
use super::latency::{Axis, Range, label};
use super::legend::Legend;
use super::name;
use super::scale::Scale;
use super::sheet::Figure;
use super::theme::Colour;
use super::timeline::{MAXIMA, POINTS, point, time_ticks};
use super::typeface;
use crate::data::Bins;
use crate::explanation::times::length;
use crate::sections::found::{FromRun, SameKind, between, max, sampled, when};
use crate::words;

/// Height of a run over time, and of its name above it.
const PANEL: f64 = 130.0;
const HEAD: f64 = 32.0;

const SLICE: Pen = Pen::area("slice", Colour::Panel);
const SAMPLED: Pen = Pen::line("sampled", Colour::Data, 1.4).dashed(&[7.0, 4.0]);

/// The figures of a kind that has sections, with the axis that those of all kinds share.
pub(crate) fn of_kind(kind: &SameKind<'_>, all: &[SameKind<'_>]) -> Vec<Figure> {
    let range = range(all);
    [lengths(kind, &range), over_time(kind, &range)].into_iter().flatten().collect()
}

/// The lengths of all sections, and the samples that they are compared with.
fn range(all: &[SameKind<'_>]) -> Range {
    let (mut low, mut high) = (i64::MAX, 1);
    for one in all.iter().flat_map(|kind| &kind.runs) {
        let lengths = one.kind.lengths.iter().filter(|(_, count)| *count > 0);
        let lengths =
            lengths.map(|(ns, _)| *ns).chain(one.kind.over_time.iter().map(|(_, ns)| *ns));
        for ns in lengths.chain([one.kind.max_ns]).chain(one.cell.sampled_max_ns).map(at_least_one)
        {
            low = low.min(ns);
            high = high.max(ns);
        }
    }
    Range::spanning(low.min(high), high)
}

/// What a logarithmic axis can show.
pub(super) fn at_least_one(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX).max(1)
}

fn of_file(what: &str, kind: &SameKind<'_>) -> String {
    let hold = match kind.how {
        Hold::Interrupts => "interrupts",
        Hold::Scheduler => "scheduler",
        Hold::Preferred => "preferred",
    };
    name::of_load(&format!("{what}-{hold}"), kind.cell, kind.load)
}

/// The bins of the lengths, the last one up to the longest.
fn bins(kind: &KindSections) -> Bins {
    let mut lengths: Vec<_> = kind.lengths.iter().filter(|(_, count)| *count > 0).collect();
    lengths.sort_unstable();
    let bin = |(low, count): &&(u64, u64)| {
        let (low, high) = (*low, bin_high(bin_of(*low)));
        SignedBin { low: at_least_one(low), high: at_least_one(high), count: *count }
    };
    let mut bins: Vec<_> = lengths.iter().map(bin).collect();
    if let Some(last) = bins.last_mut() {
        last.high = at_least_one(kind.max_ns).clamp(last.low, last.high);
    }
    Bins { bins, coarse: false }
}

/// `PREEMPT_RT, max 31.0 us`.
fn named(one: &FromRun<'_>) -> String {
    match max(one.kind) {
        Some(max) => format!("{}, max {max}", one.name),
        None => format!("{}, none", one.name),
    }
}

/// How often sections were longer; none if no run has any.
fn lengths(kind: &SameKind<'_>, range: &Range) -> Option<Figure> {
    let curve = |one: &FromRun<'_>| {
        let bins = bins(one.kind);
        let sampled = sampled(one.cell);
        let look = Look {
            mark: words::letter(one.run),
            label: named(one),
            colour: one.run,
            dash: one.run,
        };
        let note = sampled.map(|ns| format!("{}: the samples found at most {ns}", one.name));
        let spot = one.cell.sampled_max_ns.map(|ns| at_least_one(ns) as f64).zip(note);
        (!bins.bins.is_empty()).then(|| Curve { look, points: points(&bins), spot })
    };
    let curves: Vec<_> = kind.runs.iter().filter_map(curve).collect();
    if curves.is_empty() {
        return None;
    }
    let axis = range.axis(frame::LEFT, frame::RIGHT);
    let names = ["length of a section", "share of sections that were longer"];
    let (mut drawing, mut height) =
        Chart { curves: &curves, axis, lines: Vec::new(), levels: Vec::new(), names }.draw();
    if curves.iter().any(|curve| curve.spot.is_some()) {
        height += LINE - 10.0;
        let pen = spot(Colour::Soft);
        let mark = |to: &mut Drawing, at: Point| to.circle(at, SPOT, pen, None);
        Legend::at(&mut drawing, height).mark("the largest latency of the samples", mark);
        height += 10.0;
    }
    let (key, clause) = (words::key_name(kind.key), words::section_clause(kind.how));
    Some(Figure {
        name: of_file("lengths", kind),
        title: format!("How often a section {clause} was longer · {key}"),
        description: format!(
            "Complementary cumulative distribution of the lengths of sections {clause} on \
             logarithmic axes. {}",
            description(kind)
        ),
        height,
        drawing,
    })
}

/// Every run in words, for those who cannot see it.
fn description(kind: &SameKind<'_>) -> String {
    let run = |one: &FromRun<'_>| {
        let samples =
            sampled(one.cell).map_or_else(String::new, |ns| format!(", samples at most {ns}"));
        format!("{}, {} sections{samples}", named(one), grouped(one.kind.count))
    };
    format!("{}.", kind.runs.iter().map(run).collect::<Vec<_>>().join("; "))
}

/// The longest section of each slice; none if no run has any.
fn over_time(kind: &SameKind<'_>, range: &Range) -> Option<Figure> {
    let runs: Vec<_> = kind.runs.iter().filter(|one| !one.kind.over_time.is_empty()).collect();
    let end = runs.iter().map(|one| end(one)).max()?;
    let mut drawing = Drawing::default();
    let top = 16.0;
    drawing.text(Label::new("longest section of each slice", 4.0, top).soft());
    let mut frame = Frame { left: frame::LEFT, right: frame::RIGHT, top, bottom: top };
    for (number, one) in runs.iter().enumerate() {
        let head = if kind.runs.len() > 1 { HEAD } else { HEAD - 14.0 };
        frame = Frame { top: frame.bottom + head, bottom: frame.bottom + head + PANEL, ..frame };
        if kind.runs.len() > 1 {
            let name = format!("{}  {}", words::letter(one.run), named(one));
            let name = typeface::cut(&name, frame.right - frame.left);
            drawing.text(Label::new(name, frame.left, frame.top - 8.0).bold());
        }
        let axis = range.axis(frame.bottom, frame.top);
        let time = Scale::exact(0.0, end as f64, frame.left, frame.right);
        let panel = Panel { one, frame, axis, time };
        panel.draw(&mut drawing, number + 1 == runs.len());
    }
    let y = frame.bottom + BELOW + LINE;
    let mut legend = Legend::at(&mut drawing, y);
    if runs.iter().any(|one| !one.kind.longest.is_empty()) {
        legend.mark("longest sections", |to, at| to.circle(at, 3.0, point(Colour::Text), None));
    }
    if runs.iter().any(|one| one.cell.sampled_max_ns.is_some()) {
        legend.mark("largest latency of the samples", |to, (x, y)| {
            to.line((x - 10.0, y), (x + 6.0, y), SAMPLED);
        });
    }
    let (key, clause) = (words::key_name(kind.key), words::section_clause(kind.how));
    Some(Figure {
        name: of_file("longest", kind),
        title: format!("The longest sections {clause} over time · {key}"),
        description: format!(
            "The longest section {clause} of each slice of the time watched, on a logarithmic axis. {}",
            description(kind)
        ),
        height: y + 10.0,
        drawing,
    })
}

/// When the last of a run is, ns.
fn end(one: &FromRun<'_>) -> u64 {
    let slices = one.kind.over_time.iter().map(|(at, _)| *at);
    let points = one.kind.longest.iter().map(|section| section.at_ns.max(0).unsigned_abs());
    slices.chain(points).chain([one.cell.watched_ns]).max().unwrap_or(0)
}

/// A run over time.
struct Panel<'a> {
    one: &'a FromRun<'a>,
    frame: Frame,
    axis: Axis,
    time: Scale,
}

impl Panel<'_> {
    /// Only the last panel has labels of times: all have the same.
    fn draw(&self, to: &mut Drawing, is_last: bool) {
        let Self { one, frame, axis, time } = self;
        let slices = self.slices();
        let area = |[left, right, y]: &[f64; 3]| [*left, *y, *right, frame.bottom];
        to.rects(&slices.iter().map(area).collect::<Vec<_>>(), SLICE);
        frame.y_ticks(to, &axis.ticks(4));
        let ticks = ticks(time);
        if is_last {
            frame.x_axis(to, &spaced(ticks, &[]), "time since the first release");
        } else {
            frame.x_ticks(to, &ticks.into_iter().map(|(x, _)| (x, None)).collect());
        }
        if let Some(ns) = one.cell.sampled_max_ns {
            let y = axis.map(at_least_one(ns) as f64);
            to.line((frame.left, y), (frame.right, y), SAMPLED);
        }
        to.lines(steps(&slices), MAXIMA, Some(format!("{}: longest of each slice", one.name)));
        for section in one.kind.longest.iter().take(POINTS) {
            let x = time.map(section.at_ns.max(0) as f64);
            let at = (x, axis.map(at_least_one(section.length_ns) as f64));
            let ends = between(&section.from, &section.to);
            let note = format!("{} {}, {ends}", length(section.length_ns), when(section));
            to.circle(at, 2.6, point(Colour::Text), Some(note));
        }
        frame.border(to);
    }

    /// Both ends of each slice, and its longest section.
    fn slices(&self) -> Vec<[f64; 3]> {
        let mut list = self.one.kind.over_time.clone();
        list.sort_unstable();
        let gaps = list.windows(2).map(|pair| pair[1].0 - pair[0].0).filter(|gap| *gap > 0);
        let usual = (self.one.cell.watched_ns / SLICES as u64).max(1);
        let wide = gaps.min().unwrap_or(usual);
        let slice = |(at, ns): &(u64, u64)| {
            let ends = [*at, at.saturating_add(wide)].map(|ns| self.time.map(ns as f64));
            [ends[0], ends[1], self.axis.map(at_least_one(*ns) as f64)]
        };
        list.iter().map(slice).collect()
    }
}

/// The slices as steps, with a gap wherever one has no section.
fn steps(slices: &[[f64; 3]]) -> Vec<Vec<Point>> {
    let mut lines: Vec<Vec<Point>> = Vec::new();
    let mut before = f64::NEG_INFINITY;
    for [left, right, y] in slices {
        if left - before > 0.01 {
            lines.push(Vec::new());
        }
        if let Some(line) = lines.last_mut() {
            line.extend([(*left, *y), (*right, *y)]);
        }
        before = *right;
    }
    lines
}

/// Ticks of the time, ns.
fn ticks(time: &Scale) -> Ticks {
    /// Shorter times are not labelled in seconds, ns.
    const SHORT: f64 = 0.7 * SECOND_NS as f64;
    if time.high() < SHORT {
        return time.ticks(6).iter().map(|t| (time.map(t.value), Some(label(t.value)))).collect();
    }
    let seconds = SECOND_NS as f64;
    let (from, to) = (time.map(time.low()), time.map(time.high()));
    time_ticks(&Scale::exact(0.0, time.high() / seconds, from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(lengths: &[(u64, u64)], max_ns: u64) -> KindSections {
        KindSections {
            how: Hold::Interrupts,
            count: lengths.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count)),
            total_ns: 0,
            max_ns,
            lengths: lengths.to_vec(),
            over_time: Vec::new(),
            pairs: Vec::new(),
            longest: Vec::new(),
        }
    }

    #[test]
    fn the_last_bin_ends_with_the_longest_section() {
        let bins = bins(&kind(&[(512, 7), (100, 2), (300, 0)], 513));
        let bin = |low, high, count| SignedBin { low, high, count };
        assert_eq!(bins.bins, [bin(100, 100, 2), bin(512, 513, 7)]);
        let points = points(&bins);
        assert_eq!(points.last(), Some(&(513.0, 1.0 / 9.0)));
    }

    #[test]
    fn bins_that_no_file_should_have_are_bins_all_the_same() {
        let bins = bins(&kind(&[(u64::MAX, u64::MAX), (0, u64::MAX)], 0));
        assert_eq!((bins.bins.len(), bins.total()), (2, u64::MAX));
        assert!(bins.bins.iter().all(|bin| 1 <= bin.low && bin.low <= bin.high));
    }

    #[test]
    fn slices_without_a_section_are_gaps() {
        let slices = [[0.0, 1.0, 5.0], [1.0, 2.0, 7.0], [4.0, 5.0, 6.0]];
        let lines = steps(&slices);
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0], [(0.0, 5.0), (1.0, 5.0), (1.0, 7.0), (2.0, 7.0)]);
    }
}
