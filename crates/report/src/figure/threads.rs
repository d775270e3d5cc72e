//! Every thread of a cell: its histogram as a line of steps and its maximum in a box, the form
//! of OSADL's latency plots. Of very many threads, their maxima side by side.

use punctual_core::run::ThreadData;
use punctual_core::schema::Thread;
use punctual_core::units::human_ns;

use super::deadline::{colour, lines_of};
use super::drawing::{Drawing, Label, Pen, Point};
use super::entry::{Entry, Material, Place};
use super::frame::{BELOW, Frame, LINE, Lines, Upright, spaced};
use super::histogram::{Bar, counts, ground, rebinned};
use super::latency::{Axis, Range};
use super::scale::Scale;
use super::sheet::{Figure, WIDTH};
use super::theme::Colour;
use super::typeface::{self, LARGEST};
use super::{frame, name};
use crate::data::Bins;
use crate::subject::Subject;
use crate::words;

/// Lines of more threads than this could not be told apart.
const MOST: usize = 64;
const DASHES: [&[f64]; 4] = [&[], &[6.0, 2.0], &[2.0, 2.0], &[9.0, 2.0, 2.0, 2.0]];
/// Length of the piece of a line before its name.
const SAMPLE: f64 = 24.0;
const COUNTS: &str = "occurrences by thread, logarithmic";

pub const ENTRY: Entry = Entry { place: Place::Threads, draw };

fn draw(material: &Material<'_>) -> Vec<Figure> {
    material.single.iter().filter_map(|one| figure(one, &material.range(one))).collect()
}

/// A thread that has samples.
struct One<'a> {
    name: String,
    max: i64,
    late: bool,
    worst: bool,
    data: Option<&'a ThreadData>,
    thread: &'a Thread,
}

impl One<'_> {
    fn text(&self) -> String {
        format!("{}  {}", self.name, human_ns(self.max))
    }

    /// The colour of its name and maximum.
    fn colour(&self) -> Colour {
        if self.late { Colour::Late } else { Colour::Text }
    }

    fn paint(&self, number: usize) -> Pen {
        let (colours, width) = (super::theme::CURVES.len(), if self.worst { 2.6 } else { 1.2 });
        let dash = DASHES[number / colours % DASHES.len()];
        Pen::line("thread", Colour::Curve(number), width).dashed(dash)
    }
}

/// The threads of a cell that have samples. A thread is called by its CPU if it has one for
/// itself.
fn threads<'a>(subject: &Subject<'a>) -> Vec<One<'a>> {
    let all = &subject.latency.threads;
    let worst = all.iter().filter_map(|thread| thread.stats.max).max();
    let mut cpus: Vec<_> = all.iter().map(|thread| thread.placement.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let own = cpus.len() == all.len() && cpus.iter().all(Option::is_some);
    let one = |(number, thread): (usize, &'a Thread)| {
        let max = thread.stats.max.filter(|_| thread.stats.samples > 0)?;
        let cpu = words::cpu_name(thread);
        let name = if own {
            format!("CPU {cpu}")
        } else {
            format!("thread {} (CPU {cpu})", thread.thread)
        };
        let late = colour(subject.run, max as f64, Colour::Text) == Colour::Late;
        let data = subject.data.threads.get(number);
        Some(One { name, max, late, worst: Some(max) == worst, data, thread })
    };
    all.iter().enumerate().filter_map(one).collect()
}

/// The figure; none of a cell with one thread.
fn figure(subject: &Subject<'_>, range: &Range) -> Option<Figure> {
    let threads = threads(subject);
    let worst = threads.iter().find(|one| one.worst).filter(|_| threads.len() > 1)?;
    let (drawing, height) = if threads.len() > MOST {
        strip(subject, &threads, range)
    } else {
        steps(subject, &threads, range)?
    };
    let list: Vec<_> =
        threads.iter().map(|one| format!("{} {}", one.name, human_ns(one.max))).collect();
    Some(Figure {
        name: name::of_cell("threads", subject),
        title: name::titled([subject], &format!("Threads · {}", subject.label)),
        description: name::described(
            subject,
            format!(
                "{} threads; the largest latency, {}, is of {}. Maxima: {}.",
                threads.len(),
                human_ns(worst.max),
                worst.name,
                list.join(", ")
            ),
        ),
        height,
        drawing,
    })
}

/// A line of steps for each thread; none if nothing was recorded of them.
fn steps(subject: &Subject<'_>, threads: &[One<'_>], range: &Range) -> Option<(Drawing, f64)> {
    let axis = range.axis(frame::LEFT, frame::RIGHT);
    let bars = |one: &One<'_>| {
        let bins =
            one.data.map(|data| Bins::of_thread(&one.thread.stats, data)).unwrap_or_default();
        rebinned(&bins, &axis)
    };
    let bars: Vec<Vec<Bar>> = threads.iter().map(bars).collect();
    let most = bars.iter().flatten().map(|bar| bar.count).max()?;
    let lines = Lines::of(lines_of(&[subject], &axis));
    let frame = Frame::standard(240.0, &lines);
    let counts = counts(frame, most);
    let mut drawing = ground(subject, &axis, frame, &counts, COUNTS);
    frame.verticals(&mut drawing, &lines);
    // The worst one is drawn last, above the others.
    let mut order: Vec<usize> = (0..threads.len()).collect();
    order.sort_by_key(|i| threads[*i].worst);
    for i in order {
        let note = Some(threads[i].text());
        drawing.lines(outline(&bars[i], frame, &counts), threads[i].paint(i), note);
    }
    frame.border(&mut drawing);
    let height = maxima(&mut drawing, threads, frame.bottom + BELOW);
    Some((drawing, height))
}

/// The upper edge of bars, down to the axis at every gap.
fn outline(bars: &[Bar], frame: Frame, counts: &Scale) -> Vec<Vec<Point>> {
    let mut lines: Vec<Vec<Point>> = Vec::new();
    for bar in bars {
        let from = bar.from.min(bar.to - 1.0).max(frame.left);
        let y = counts.map(bar.count as f64);
        let last =
            lines.last_mut().filter(|line| line.last().is_some_and(|(end, _)| from - end < 0.5));
        match last {
            Some(line) => line.extend([(from, y), (bar.to, y)]),
            None => lines.push(vec![(from, frame.bottom), (from, y), (bar.to, y)]),
        }
    }
    for line in &mut lines {
        line.extend(line.last().map(|(end, _)| (*end, frame.bottom)));
    }
    lines
}

/// The box of maxima below `above`, the worst one bold; returns where it ends.
fn maxima(to: &mut Drawing, threads: &[One<'_>], above: f64) -> f64 {
    let room = |one: &One<'_>| typeface::room(&one.text(), LARGEST, true);
    let widest = threads.iter().map(room).fold(1.0, f64::max) + SAMPLE + 24.0;
    let (left, right) = (6.0, WIDTH - 4.0);
    let columns =
        (1..=threads.len()).rev().find(|n| widest * *n as f64 <= right - left).unwrap_or(1);
    let rows = threads.len().div_ceil(columns);
    let wide = (right - left) / columns as f64;
    let bottom = above + LINE * (rows as f64 + 1.0) + 10.0;
    to.rects(
        &[[2.0, above + 2.0, WIDTH - 2.0, bottom - 2.0]],
        Pen::line("frame", Colour::Grid, 1.0),
    );
    to.text(Label::new("maximum", left + 4.0, above + LINE - 3.0).soft());
    for (number, one) in threads.iter().enumerate() {
        // Down the columns, as tables of CPUs are read.
        let x = left + 4.0 + wide * (number / rows) as f64;
        let y = above + LINE * ((number % rows) as f64 + 2.0) - 2.0;
        to.line((x, y - 5.0), (x + SAMPLE, y - 5.0), one.paint(number));
        let label = Label::new(one.text(), x + SAMPLE + 6.0, y).colour(one.colour());
        to.text(label.bold_if(one.worst).class("maximum"));
    }
    bottom
}

/// The maxima of very many threads side by side.
fn strip(subject: &Subject<'_>, threads: &[One<'_>], range: &Range) -> (Drawing, f64) {
    let number = threads.len() as f64;
    let x = Scale::exact(-0.5, number - 0.5, frame::LEFT, frame::RIGHT);
    let worst = threads.iter().position(|one| one.worst).unwrap_or(0);
    let line = threads.get(worst).map(|one| Upright {
        x: x.map(worst as f64),
        paint: Pen::line("worst", one.colour(), 0.8),
        label: format!("max {}", one.text()),
    });
    let lines = Lines::of(line.into_iter().collect());
    let frame = Frame::standard(220.0, &lines);
    let axis: Axis = range.axis(frame.bottom, frame.top);
    let mut drawing = Drawing::default();
    if let Some((low, high)) = axis.band() {
        frame.band(&mut drawing, [frame.left, high, frame.right, low]);
    }
    let ticks =
        x.ticks(8).into_iter().map(|tick| (x.map(tick.value), Some(tick.value.to_string())));
    frame.x_axis(&mut drawing, &spaced(ticks.collect(), &[]), "thread");
    frame.y_axis(&mut drawing, &axis.ticks(6), "maximum of every thread");
    let deadline = super::deadline::deadline(subject.run);
    if let Some(ns) = deadline {
        let y = axis.map(ns);
        drawing.line((frame.left, y), (frame.right, y), frame::DEADLINE);
    }
    frame.verticals(&mut drawing, &lines);
    for (i, one) in threads.iter().enumerate() {
        let radius = if one.worst { 4.0 } else { 2.2 };
        let fill = if one.late { Colour::Late } else { Colour::Data };
        let at = (x.map(i as f64), axis.map(one.max as f64));
        drawing.circle(at, radius, Pen::area("dot", fill), Some(one.text()));
    }
    frame.border(&mut drawing);
    let mut height = frame.bottom + BELOW;
    if let Some(ns) = deadline {
        height += LINE;
        drawing.line(
            (frame.left, height - 5.0),
            (frame.left + 34.0, height - 5.0),
            frame::DEADLINE,
        );
        let text = super::deadline::deadline_label(ns);
        drawing.text(Label::new(text, frame.left + 42.0, height).colour(Colour::Deadline).bold());
        height += 10.0;
    }
    (drawing, height)
}
