//! The latest activation with legs, as a time line: from its release through its legs to its start.

use punctual_core::schema::Series;
use punctual_core::units::human_ns;

use super::drawing::{Drawing, Label, Pen};
use super::entry::{Entry, Material, Place};
use super::frame::{self, Frame, LINE, Lines};
use super::name;
use super::scale::Scale;
use super::sheet::Figure;
use super::stacked::{self, BAR, PartRow, Segment};
use super::theme::Colour;
use super::typeface::{self, LARGEST};
use crate::describe::steal_then;
use crate::latest::{self, LatestLegs};
use crate::subject::Subject;
use crate::words;

pub const ENTRY: Entry = Entry { place: Place::Legs, draw };

/// From the bar to the ends of the marks above it, and their names.
const MARK: f64 = 8.0;
/// Between the names of two marks.
const GAP: f64 = 12.0;
/// Rows of remarks below the table that a sentence may take.
const MOST_ROWS: usize = 4;

const INSTANT: Pen = Pen::line("instant", Colour::Text, 1.4);

fn draw(material: &Material<'_>) -> Vec<Figure> {
    material.single.iter().filter_map(figure).collect()
}

/// What begins at the first instant of a leg, by its meaning: `END minus BEGIN`.
fn begin(series: &Series) -> &'static str {
    let (_, begin) = series.meaning.split_once(" minus ").unwrap_or_default();
    match begin {
        begin if begin.contains("release") => "release",
        begin if begin.contains("handler") => "interrupt",
        _ => "begin",
    }
}

/// The instants between legs: their names, and ns after the first.
fn instants(subject: &Subject<'_>, legs: &[(usize, i64)]) -> Vec<(String, i64)> {
    let series = |index: usize| &subject.latency.series[index];
    let first = legs.first().map_or("begin", |(index, _)| begin(series(*index)));
    let mut at = 0_i64;
    let mut all = vec![(first.to_owned(), 0)];
    for (number, (index, ns)) in legs.iter().enumerate() {
        at = at.saturating_add(*ns);
        let is_last = number + 1 == legs.len();
        let name = words::clean(&series(*index).name).into_owned();
        all.push((if is_last { "start".to_owned() } else { name }, at));
    }
    all
}

fn figure(subject: &Subject<'_>) -> Option<Figure> {
    let found = latest::of(subject.cell, subject.latency, subject.data)?;
    let instants = instants(subject, &found.legs);
    let (_, end) = *instants.last()?;
    let frame = Frame::standard(LINE + MARK + BAR + LINE + 12.0, &Lines::default());
    let scale = stacked::scale(end as f64);
    let mut drawing = Drawing::default();
    let (first, _) = &instants[0];
    let bottom = stacked::axis(&mut drawing, &frame, &scale, &format!("time since the {first}"));
    let about = about(subject, &found);
    drawing.text(Label::new(typeface::cut(&about, frame::RIGHT - 4.0), 4.0, 16.0).soft());
    let top = frame.top + LINE + MARK;
    let text = |index: usize, ns: i64| {
        format!("{} {}", words::clean(&subject.latency.series[index].name), human_ns(ns))
    };
    let parts = found.legs.iter().enumerate().map(|(number, (index, ns))| Segment {
        ns: (*ns).max(0) as f64,
        colour: Colour::Curve(number),
        note: text(*index, *ns),
    });
    stacked::bar(&mut drawing, &parts.collect::<Vec<_>>(), &scale, top);
    marks(&mut drawing, &instants, &scale, top);
    let names = found.legs.iter().zip(&instants);
    let names = names.map(|((index, ns), (_, from))| (*from as f64, *ns as f64, text(*index, *ns)));
    stacked::names(&mut drawing, &names.collect::<Vec<_>>(), &scale, top + BAR + LINE - 4.0);
    frame.border(&mut drawing);
    let rows = rows(subject, &found, &instants);
    let mut height = stacked::table(&mut drawing, ["from", "to", "length"], &rows, bottom);
    let remarks = remarks(subject, &found);
    for remark in &remarks {
        for line in typeface::wrapped(remark, frame::RIGHT - 4.0, LARGEST, MOST_ROWS) {
            drawing.text(Label::new(line, 4.0, height + LINE - 10.0));
            height += LINE;
        }
    }
    let which = match latest::untraced(subject.cell) {
        Some(_) => "latest traced",
        None => "latest",
    };
    let title = format!("The {which} {} · {}", noun(subject), subject.label);
    Some(Figure {
        name: name::of_cell("latest", subject),
        title: name::titled([subject], &title),
        description: name::described(subject, description(&about, &instants, &remarks)),
        height: height + 10.0,
        drawing,
    })
}

fn noun(subject: &Subject<'_>) -> String {
    words::clean(&subject.latency.primary.noun).into_owned()
}

/// Which activation it is: `3.060 ms, thread 1 on CPU 1, 4.218 s after the start of the cell`.
fn about(subject: &Subject<'_>, found: &LatestLegs) -> String {
    let thread = subject.latency.threads.get(found.thread);
    let cpu = thread.map_or_else(String::new, |one| format!(" on CPU {}", words::cpu_name(one)));
    let at = found.at.map_or_else(String::new, |at| {
        format!(", {} after the start of the cell", words::instant(at))
    });
    format!("{}, thread {}{cpu}{at}", human_ns(found.latency_ns), found.thread)
}

/// Marks above the bar, with names as far as they have room: the ends first, then those of the
/// longest legs.
fn marks(to: &mut Drawing, instants: &[(String, i64)], scale: &Scale, top: f64) {
    let after = |number: usize| {
        let (_, at) = instants[number];
        instants.get(number + 1).map_or(0, |(_, next)| next - at)
    };
    let mut order: Vec<usize> = (1..instants.len().saturating_sub(1)).collect();
    order.sort_by_key(|number| std::cmp::Reverse(after(*number)));
    let mut taken: Vec<(f64, f64)> = Vec::new();
    for number in [0, instants.len() - 1].into_iter().chain(order) {
        let (name, at) = &instants[number];
        let x = scale.map(*at as f64);
        to.line((x, top - MARK), (x, top), INSTANT);
        let room = typeface::room(name, LARGEST, false);
        let left = (x - room / 2.0).max(frame::LEFT + 4.0).min(frame::RIGHT - 4.0 - room);
        if taken.iter().all(|(from, end)| left + room + GAP < *from || *end + GAP < left) {
            taken.push((left, left + room));
            to.text(Label::new(name, left, top - MARK - 4.0).class("instant"));
        }
    }
}

fn rows(subject: &Subject<'_>, found: &LatestLegs, instants: &[(String, i64)]) -> Vec<PartRow> {
    let longest = found.legs.iter().map(|(_, ns)| *ns).max();
    let rows = found.legs.iter().zip(instants.windows(2)).enumerate();
    let rows = rows.map(|(number, ((index, ns), ends))| PartRow {
        colour: Some(Colour::Curve(number)),
        name: words::clean(&subject.latency.series[*index].name).into_owned(),
        values: [short(ends[0].1), short(ends[1].1), human_ns(*ns)],
        bold: (Some(*ns) == longest).then_some(2),
        head: false,
    });
    rows.collect()
}

fn short(ns: i64) -> String {
    if ns == 0 { "0".to_owned() } else { human_ns(ns) }
}

/// What had the CPU, and what is not known.
fn remarks(subject: &Subject<'_>, found: &LatestLegs) -> Vec<String> {
    let why = found.why.as_ref().map(|why| sentence(&words::clean(why)));
    let steal = found.at.and_then(|at| steal_then(subject.cell, subject.data, at));
    let steal = steal.map(|text| sentence(&text));
    let later = latest::untraced(subject.cell).map(|(ns, thread)| {
        let noun = noun(subject);
        format!("The latest {noun}, {} of thread {thread}, has no legs in the trace.", human_ns(ns))
    });
    let rounded = found.is_rounded.then(|| {
        "Not all legs are among the worst samples of their series: lengths are rounded as in the \
         note, and instants are their sums."
            .to_owned()
    });
    [why, steal, later, rounded].into_iter().flatten().collect()
}

/// A text as a sentence: the note has only a clause.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(char::to_uppercase).into_iter().flatten();
    first.chain(letters).chain(['.']).collect()
}

fn description(about: &str, instants: &[(String, i64)], remarks: &[String]) -> String {
    let all: Vec<_> = instants.iter().map(|(name, at)| format!("{name} {}", short(*at))).collect();
    let remarks = remarks.join(" ");
    format!("{about}: {}. {remarks}", all.join(", ")).trim_end().to_owned()
}
