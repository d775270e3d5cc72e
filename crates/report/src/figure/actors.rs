//! For how long the actors had each CPU: a bar for each CPU, the actor with the most time first.
//! When they had it is a figure of its own (`cpus.rs`).

use std::collections::BTreeMap;

use punctual_core::run::CellData;
use punctual_core::units::{SECOND_NS, grouped, human_ns};

use super::cpus::{MOST_CPUS, OWN};
use super::drawing::{Drawing, Label};
use super::entry::{Entry, Material, Place};
use super::frame::{Frame, Lines};
use super::had::{self, Had};
use super::longest::name_of;
use super::name;
use super::sheet::Figure;
use super::stacked::{self, BAR, PartRow, Segment};
use super::theme::Colour;
use crate::subject::Subject;
use crate::words;

pub const ENTRY: Entry = Entry { place: Place::Cpus, draw };

/// Between the bars of two CPUs.
const BETWEEN: f64 = 8.0;

fn draw(material: &Material<'_>) -> Vec<Figure> {
    material.single.iter().filter_map(figure).collect()
}

/// What the actors had of the CPUs.
struct Shares {
    cpus: BTreeMap<u32, BTreeMap<u32, Had>>,
    /// CPUs that there is no bar for.
    left_out: usize,
    /// On all CPUs with bars, the longest time first.
    actors: Vec<(u32, Had)>,
}

impl Shares {
    fn of(data: &CellData) -> Self {
        let cpus = had::by_cpu(data);
        let left_out = cpus.len().saturating_sub(MOST_CPUS);
        let cpus: BTreeMap<_, _> = cpus.into_iter().take(MOST_CPUS).collect();
        let mut all: BTreeMap<u32, Had> = BTreeMap::new();
        for (actor, had) in cpus.values().flatten() {
            all.entry(*actor).or_default().add(*had);
        }
        let mut actors: Vec<_> = all.into_iter().collect();
        actors.sort_by_key(|(actor, had)| (std::cmp::Reverse(had.ns), *actor));
        Self { cpus, left_out, actors }
    }

    fn own(&self) -> &[(u32, Had)] {
        &self.actors[..self.actors.len().min(OWN)]
    }

    /// Those that share a colour, and how many they are.
    fn others(&self) -> (Had, usize) {
        let others = self.actors.get(OWN..).unwrap_or_default();
        let mut all = Had::default();
        others.iter().for_each(|(_, had)| all.add(*had));
        (all, others.len())
    }

    /// The parts of a CPU's bar.
    fn parts(&self, data: &CellData, cpu: &BTreeMap<u32, Had>) -> Vec<Segment> {
        let part = |ns: u64, name: &str, colour| Segment {
            ns: ns as f64,
            colour,
            note: format!("{name}: {}", length(ns)),
        };
        let of = |actor: &u32| cpu.get(actor).map_or(0, |had| had.ns);
        let own = self.own().iter().enumerate();
        let own = own.map(|(number, (actor, _))| {
            part(of(actor), &name_of(data, *actor), Colour::Curve(number))
        });
        let others = self.actors.iter().skip(OWN).map(|(actor, _)| of(actor));
        let others = part(others.fold(0, u64::saturating_add), "others", Colour::Minor);
        own.chain([others]).filter(|part| part.ns > 0.0).collect()
    }

    fn rows(&self, data: &CellData) -> Vec<PartRow> {
        let longest = self.actors.iter().map(|(_, had)| had.longest).max();
        let row = |name: String, had: &Had, colour| PartRow {
            colour: Some(colour),
            name,
            values: [length(had.ns), grouped(had.times), length(had.longest)],
            bold: (Some(had.longest) == longest).then_some(2),
            head: false,
        };
        let own = self.own().iter().enumerate();
        let own = own
            .map(|(number, (actor, had))| row(name_of(data, *actor), had, Colour::Curve(number)));
        let mut rows: Vec<_> = own.collect();
        let (others, count) = self.others();
        if count > 0 {
            rows.push(row(format!("{count} others"), &others, Colour::Minor));
        }
        if self.left_out > 0 {
            let name = format!("{} more CPUs are not shown", self.left_out);
            rows.push(PartRow { name, ..PartRow::default() });
        }
        rows
    }
}

/// As a table has room for it: a day's map has a day for each CPU.
fn length(ns: u64) -> String {
    if ns >= 1_000 * SECOND_NS {
        return format!("{} s", grouped(ns / SECOND_NS));
    }
    human_ns(i64::try_from(ns).unwrap_or(i64::MAX))
}

fn figure(subject: &Subject<'_>) -> Option<Figure> {
    let shares = Shares::of(subject.data);
    let bars: Vec<_> =
        shares.cpus.iter().map(|(cpu, had)| (cpu, shares.parts(subject.data, had))).collect();
    let sum = |parts: &[Segment]| parts.iter().map(|part| part.ns).sum::<f64>();
    let longest = bars.iter().map(|(_, parts)| sum(parts)).fold(0.0, f64::max);
    if longest <= 0.0 {
        return None;
    }
    let frame = Frame::standard(bars.len() as f64 * (BAR + BETWEEN) + BETWEEN, &Lines::default());
    let scale = stacked::scale(longest);
    let mut drawing = Drawing::default();
    let took = words::duration(subject.cell.duration_ns);
    let axis = format!("recorded time, in a cell of {took}");
    let bottom = stacked::axis(&mut drawing, &frame, &scale, &axis);
    drawing.text(Label::new("CPU", 4.0, 16.0).soft());
    if let Some(note) = &subject.note {
        frame.note(&mut drawing, note, "CPU");
    }
    let mut top = frame.top + BETWEEN;
    for (cpu, parts) in &bars {
        let label = Label::new(cpu.to_string(), frame.left - 6.0, top + BAR / 2.0);
        drawing.text(label.end().centred().soft());
        stacked::bar(&mut drawing, parts, &scale, top);
        top += BAR + BETWEEN;
    }
    frame.border(&mut drawing);
    let rows = shares.rows(subject.data);
    let height = stacked::table(&mut drawing, ["in all", "times", "longest"], &rows, bottom);
    Some(Figure {
        name: name::of_cell("actors", subject),
        title: name::titled(
            [subject],
            &format!("Who had the CPUs, and for how long · {}", subject.label),
        ),
        description: name::described(subject, description(&shares, subject.data)),
        height,
        drawing,
    })
}

fn description(shares: &Shares, data: &CellData) -> String {
    let of = |(actor, had): &(u32, Had)| {
        let (all, longest) = (length(had.ns), length(had.longest));
        format!("{} {all} ({longest} at most)", name_of(data, *actor))
    };
    let actors: Vec<_> = shares.own().iter().map(of).collect();
    format!("A bar for each of {} CPUs; in all: {}.", shares.cpus.len(), actors.join(", "))
}
