//! Who had which CPU, and when: a row for each CPU in the colours of its actors, around the worst
//! sample of the cell.

use std::collections::BTreeMap;
use std::ops::Range;

use punctual_core::interval::Interval;
use punctual_core::run::CellData;
use punctual_core::units::{grouped, human_ns};

use super::drawing::{Drawing, Label, Pen};
use super::entry::{Entry, Material, Place};
use super::frame::{BELOW, Frame, LEFT, LINE, Lines, Ticks, spaced};
use super::longest::{LongestGap, MARK, name_of};
use super::scale::Scale;
use super::sheet::{Figure, WIDTH};
use super::theme::{CURVES, Colour};
use super::typeface::{self, LARGEST};
use super::{frame, name};
use crate::describe::worst_samples;
use crate::subject::Subject;
use crate::words;

pub const ENTRY: Entry = Entry { place: Place::Cpus, draw };

/// What is shown of a longer cell, ns.
const WINDOW_NS: u64 = 40_000_000;

/// Rows of at most this many CPUs.
pub const MOST_CPUS: usize = 32;
/// Height of a row, and the room between two.
const ROW: f64 = 26.0;
const BETWEEN: f64 = 8.0;

/// What is shorter is drawn so wide, or it could not be seen.
const LEAST: f64 = 0.8;

/// Actors with colours of their own; all others share one.
pub const OWN: usize = CURVES.len();

/// Names of actors longer than this are cut, units of the figure.
const NAME: f64 = 220.0;
const KEY: f64 = 14.0;

fn draw(material: &Material<'_>) -> Vec<Figure> {
    material.single.iter().filter_map(figure).collect()
}

/// The time that is shown, ns after the start of the cell: all, or what is around the worst sample.
fn window(subject: &Subject<'_>) -> (Range<u64>, bool) {
    let intervals = &subject.data.intervals;
    let end = intervals.iter().map(|interval| interval.to).max().unwrap_or(0);
    let worst = worst_samples(subject.cell, subject.data, 1);
    let Some((length, at, _)) = worst.first().filter(|_| end > WINDOW_NS) else {
        return (0..end.min(WINDOW_NS), end > WINDOW_NS);
    };
    // A sample is recorded when it is over.
    let length = u64::try_from(*length).unwrap_or(0);
    let shown = WINDOW_NS.max(length.saturating_add(length / 2));
    let from = at.saturating_sub(length / 2).saturating_sub(shown / 2);
    (from..from.saturating_add(shown), true)
}

/// What is drawn of the map.
struct Excerpt<'a> {
    window: Range<u64>,
    cpus: Vec<u32>,
    /// CPUs that there is no row for.
    left_out: usize,
    intervals: Vec<&'a Interval>,
    /// How long every actor had a CPU in the window, ns, the longest first.
    actors: Vec<(u32, u64)>,
    /// Those that have a colour of their own, by number.
    own: Vec<u32>,
}

impl<'a> Excerpt<'a> {
    fn of(data: &'a CellData, window: Range<u64>) -> Self {
        let within = |one: &&Interval| one.from < window.end && one.to > window.start;
        let mut intervals: Vec<_> = data.intervals.iter().filter(within).collect();
        intervals.sort_unstable_by_key(|one| (one.cpu, one.from));
        let mut cpus: Vec<_> = intervals.iter().map(|one| one.cpu).collect();
        cpus.dedup();
        let left_out = cpus.len().saturating_sub(MOST_CPUS);
        cpus.truncate(MOST_CPUS);
        intervals.retain(|one| cpus.contains(&one.cpu));
        let mut times: BTreeMap<u32, u64> = BTreeMap::new();
        for one in &intervals {
            let time = one.to.min(window.end) - one.from.max(window.start);
            *times.entry(one.actor).or_default() += time;
        }
        let mut actors: Vec<_> = times.into_iter().collect();
        actors.sort_by_key(|(actor, time)| (std::cmp::Reverse(*time), *actor));
        let mut own: Vec<_> = actors.iter().take(OWN).map(|(actor, _)| *actor).collect();
        own.sort_unstable();
        Self { window, cpus, left_out, intervals, actors, own }
    }

    fn colour(&self, actor: u32) -> Colour {
        match self.own.iter().position(|own| *own == actor) {
            Some(number) => Colour::Curve(number),
            None => Colour::Minor,
        }
    }

    /// The row of a gap's CPU, if the gap is in the window.
    fn row_of(&self, gap: &LongestGap) -> Option<usize> {
        let is_in = gap.from < self.window.end && gap.to > self.window.start;
        self.cpus.iter().position(|cpu| is_in && *cpu == gap.cpu)
    }

    fn time_of(&self, actor: u32) -> u64 {
        let mut all = self.actors.iter();
        all.find(|(number, _)| *number == actor).map_or(0, |(_, time)| *time)
    }
}

fn figure(subject: &Subject<'_>) -> Option<Figure> {
    let (window, is_part) = window(subject);
    let shown = Excerpt::of(subject.data, window);
    if shown.intervals.is_empty() {
        return None;
    }
    let rows = shown.cpus.len() as f64;
    let time =
        Scale::exact(shown.window.start as f64, shown.window.end as f64, frame::LEFT, frame::RIGHT);
    let longest = LongestGap::of(subject);
    let marked = longest.as_ref().and_then(|gap| Some((gap, shown.row_of(gap)?)));
    let label = |(gap, _): &(&LongestGap, usize)| gap.line(subject, &time);
    let lines = Lines::of(marked.iter().map(label).collect());
    let frame = Frame::standard(rows * (ROW + BETWEEN) + BETWEEN, &lines);
    let mut drawing = Drawing::default();
    let begin = shown.window.start;
    let axis = match begin {
        0 => "time since the start of the cell".to_owned(),
        _ => format!("time since {} after the start of the cell", words::instant(begin)),
    };
    frame.x_axis(&mut drawing, &spaced(ticks(&shown.window, &frame), &[]), &axis);
    drawing.text(Label::new("CPU", 4.0, 16.0).soft());
    if let Some(note) = &subject.note {
        frame.note(&mut drawing, note, "CPU");
    }
    let top = |row: usize| frame.top + BETWEEN + row as f64 * (ROW + BETWEEN);
    for (row, cpu) in shown.cpus.iter().enumerate() {
        let middle = top(row) + ROW / 2.0;
        drawing.text(Label::new(cpu.to_string(), frame.left - 6.0, middle).end().centred().soft());
        drawing.rects(
            &[[frame.left, top(row), frame.right, top(row) + ROW]],
            Pen::area("band", Colour::Panel),
        );
    }
    // Those that had a CPU for the shortest time are on top.
    for (actor, _) in &shown.actors {
        let rects = rects(&shown, *actor, &time, &top);
        drawing.rects(&rects, Pen::area("actor", shown.colour(*actor)));
    }
    if let Some((gap, row)) = marked {
        let [left, right] = gap.ends(&time);
        frame.verticals_within(&mut drawing, &lines, &[(frame.top, top(row))]);
        drawing.rect([left, top(row), right, top(row) + ROW], MARK, Some(gap.text(subject)));
    }
    frame.border(&mut drawing);
    let bottom = legend(&mut drawing, &shown, subject.data, frame.bottom + BELOW);
    let bottom = remark(&mut drawing, longest.as_ref(), subject, bottom);
    let length = words::duration(shown.window.end - shown.window.start);
    let what = match is_part {
        true => {
            format!("{length} around the longest {}", words::clean(&subject.latency.primary.noun))
        }
        false => length,
    };
    Some(Figure {
        name: name::of_cell("cpus", subject),
        title: name::titled([subject], &format!("Who had which CPU, {what} · {}", subject.label)),
        description: name::described(subject, description(&shown, subject, longest.as_ref())),
        height: bottom,
        drawing,
    })
}

fn rects(
    shown: &Excerpt<'_>,
    actor: u32,
    time: &Scale,
    top: &impl Fn(usize) -> f64,
) -> Vec<[f64; 4]> {
    let mut rects: Vec<[f64; 4]> = Vec::new();
    for one in shown.intervals.iter().filter(|one| one.actor == actor) {
        let Some(row) = shown.cpus.iter().position(|cpu| *cpu == one.cpu) else { continue };
        let (left, right) = (time.map(one.from as f64), time.map(one.to as f64));
        let (right, y) = (right.max(left + LEAST).min(time.map(time.high())), top(row));
        match rects.last_mut() {
            // Together they are one shape: as many as the row has places, whatever there is.
            Some(before) if before[1].to_bits() == y.to_bits() && left <= before[2] => {
                before[2] = before[2].max(right);
            }
            _ => rects.push([left, y, right, y + ROW]),
        }
    }
    rects
}

/// Ticks from the start of the window: an instant of a long run would have no room.
fn ticks(window: &Range<u64>, frame: &Frame) -> Ticks {
    let ms = (window.end - window.start) as f64 / 1e6;
    let scale = Scale::exact(0.0, ms, frame.left, frame.right);
    let label = |ms: f64| {
        let text = format!("{ms:.3}");
        format!("{} ms", text.trim_end_matches('0').trim_end_matches('.'))
    };
    scale.ticks(5).iter().map(|tick| (scale.map(tick.value), Some(label(tick.value)))).collect()
}

/// The actors, and how long each had a CPU; returns where they end.
fn legend(to: &mut Drawing, shown: &Excerpt<'_>, data: &CellData, above: f64) -> f64 {
    let mut entries: Vec<(String, Colour)> = Vec::new();
    for actor in &shown.own {
        let time = human_ns(i64::try_from(shown.time_of(*actor)).unwrap_or(i64::MAX));
        let name = typeface::cut(&name_of(data, *actor), NAME);
        entries.push((format!("{name}: {time}"), shown.colour(*actor)));
    }
    if shown.actors.len() > OWN {
        entries.push((format!("{} others", shown.actors.len() - OWN), Colour::Minor));
    }
    if shown.left_out > 0 {
        entries.push((format!("{} more CPUs are not shown", shown.left_out), Colour::Paper));
    }
    let (mut x, mut y) = (LEFT, above + LINE);
    for (text, colour) in entries {
        let room = typeface::room(&text, LARGEST, false);
        if x > LEFT && x + KEY + 6.0 + room > WIDTH {
            (x, y) = (LEFT, y + LINE);
        }
        to.rects(&[[x, y - 11.0, x + KEY, y + 1.0]], Pen::area("actor", colour));
        to.text(Label::new(&text, x + KEY + 6.0, y).soft());
        x += KEY + 6.0 + room + 20.0;
    }
    y + 10.0
}

/// That a hypervisor may have had the CPU, below the legend; returns where it ends.
fn remark(
    to: &mut Drawing,
    longest: Option<&LongestGap>,
    subject: &Subject<'_>,
    above: f64,
) -> f64 {
    let steal = longest.and_then(|gap| gap.steal(subject));
    let text = steal.map_or_else(String::new, |text| {
        format!("Longest {}: {text}.", words::clean(&subject.latency.primary.noun))
    });
    let lines = typeface::wrapped(&text, WIDTH - LEFT - 4.0, LARGEST, 3);
    let mut y = above;
    for line in lines.into_iter().filter(|line| !line.is_empty()) {
        to.text(Label::new(line, LEFT, y + LINE - 10.0).soft());
        y += LINE;
    }
    y
}

fn description(shown: &Excerpt<'_>, subject: &Subject<'_>, longest: Option<&LongestGap>) -> String {
    let data = subject.data;
    let gap = longest.map_or_else(String::new, |gap| {
        let steal = gap.steal(subject).map_or_else(String::new, |text| format!("; {text}"));
        format!(" The {}{steal}.", gap.text(subject))
    });
    let of = |(actor, time): &(u32, u64)| {
        let time = human_ns(i64::try_from(*time).unwrap_or(i64::MAX));
        format!("{} {time}", name_of(data, *actor))
    };
    let actors: Vec<_> = shown.actors.iter().take(OWN).map(of).collect();
    format!(
        "{} intervals on {} CPUs from {} to {}; time on them: {}.{gap}",
        grouped(shown.intervals.len() as u64),
        shown.cpus.len(),
        words::instant(shown.window.start),
        words::instant(shown.window.end),
        actors.join(", ")
    )
}
