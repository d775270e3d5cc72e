//! A sample of an explanation: its functions over time below its legs, and its time by stack.
//!
//! Both are drawn as every other figure is. The crate inferno (0.12, without default features 17
//! crates) draws stacks too, but as SVG only, and without an axis of time.

use punctual_core::explanation::{Explained, ExplainedCell};
use punctual_core::units::human_ns;

use super::drawing::{Drawing, Label, Pen, Shape};
use super::frame::{BELOW, Frame, LEFT, LINE, RIGHT, Ticks, spaced};
use super::latency::label;
use super::legend::Legend;
use super::scale::Scale;
use super::sheet::Figure;
use super::stacks::{Content, Nested, merged, over_time, thinned};
use super::theme::Colour;
use super::typeface::{self, LARGEST};
use crate::explanation::threads::slices;
use crate::explanation::times::{
    IDLE, Names, Section, foremost, length, longest, own_all, percent, rank_name, sections,
    stretches, switch_ns,
};
use crate::words;

/// Height of a row of boxes, with the gap below them.
const ROW: f64 = 20.0;
/// Between two boxes; less where they are narrow.
const GAP: f64 = 0.6;
/// Boxes that would be narrower are not drawn.
const LEAST: f64 = 0.3;
/// Most boxes of a figure: each is some 130 bytes of a page.
const MOST: usize = 1_800;
/// Shorter pieces of a name say nothing, characters.
const LEAST_NAME: usize = 5;
/// Left of a name in its box.
const INSIDE: f64 = 3.0;

const BOX: Pen = Pen::area("frame", Colour::Grid);
const SEVERAL: Pen = Pen::area("several", Colour::Panel);
const ASLEEP: Pen = Pen { fill: Some(Colour::Panel), ..Pen::line("asleep", Colour::Minor, 0.8) };
const LEG: Pen = Pen { fill: Some(Colour::Panel), ..Pen::line("leg", Colour::Soft, 0.8) };
const LONGEST: Pen = Pen { fill: Some(Colour::Grid), ..Pen::line("leg", Colour::Text, 1.8) };
const HELD: Pen = Pen { fill: Some(Colour::Panel), ..Pen::line("held", Colour::Text, 0.8) };
const END: Pen = Pen::line("end", Colour::Soft, 0.8).dashed(&[2.0, 3.0]);

/// The figures of a sample, by the numbers of its cell and of its own; none if nothing ran.
pub(crate) fn of_sample(cell: &ExplainedCell, at: (usize, usize)) -> Vec<Figure> {
    let Some(sample) = cell.samples.get(at.1) else { return Vec::new() };
    let end = stretches(sample, 0, u64::MAX).last().map_or(0, |last| last.to);
    let end = end.max(sections(sample).last().map_or(0, |last| last.to));
    if end == 0 {
        return Vec::new();
    }
    let names = Names::of(&sample.functions);
    let whole = own_all(sample);
    let total: u64 = whole.iter().map(|(_, ns)| *ns).sum();
    let named = foremost(&whole, total);
    let title = format!("{} · {}", words::key_name(&cell.key), rank_name(cell, at.1));
    let one = Sample { sample, names, named, total, end, title };
    let name = |kind: &str| format!("{kind}-{:02}-{:02}", at.0, at.1);
    vec![one.timeline(name("sample")), one.stacks(name("stacks"))]
}

/// A sample that is being drawn.
struct Sample<'a> {
    sample: &'a Explained,
    names: Names,
    /// The functions in colour, with their own time.
    named: Vec<(String, u64)>,
    /// Time of all functions, ns.
    total: u64,
    /// End of the time axis, ns.
    end: u64,
    title: String,
}

impl Sample<'_> {
    fn timeline(&self, name: String) -> Figure {
        let scale = Scale::exact(0.0, self.end as f64, LEFT, RIGHT);
        let list = over_time(stretches(self.sample, 0, u64::MAX), switch_ns(self.sample));
        let list = thinned(&list, narrowest(self.end), MOST);
        let mut drawing = Drawing::default();
        let mut above = Drawing::default();
        let below = self.legs(&mut above, &scale);
        let top = self.held(&mut above, &scale, below);
        let top = self.threads(&mut above, &scale, top);
        let frame = self.boxes(&mut drawing, &list, &scale, top);
        axis(&mut drawing, &frame, &scale, "time since the release");
        for section in sections(self.sample).iter().filter(|section| section.to < self.end) {
            let x = scale.map(section.to as f64);
            above.line((x, 6.0 + ROW), (x, frame.bottom), END);
        }
        let labels = labels(&mut drawing);
        drawing.shapes.extend(above.shapes);
        drawing.shapes.extend(labels);
        Figure {
            name,
            title: format!("Over time · {}", self.title),
            description: self.description(),
            height: self.legend(&mut drawing, frame.bottom + BELOW),
            drawing,
        }
    }

    fn stacks(&self, name: String) -> Figure {
        let scale = Scale::exact(0.0, self.total as f64, LEFT, RIGHT);
        let list = merged(stretches(self.sample, 0, u64::MAX), &self.names);
        let list = thinned(&list, narrowest(self.total), MOST);
        let mut drawing = Drawing::default();
        let frame = self.boxes(&mut drawing, &list, &scale, 6.0);
        axis(&mut drawing, &frame, &scale, "time in all, by stack");
        let labels = labels(&mut drawing);
        drawing.shapes.extend(labels);
        Figure {
            name,
            title: format!("By stack · {}", self.title),
            description: format!("All calls merged by their callers. {}", self.description()),
            height: self.legend(&mut drawing, frame.bottom + BELOW),
            drawing,
        }
    }

    /// The legs in a band; returns where it ends.
    fn legs(&self, to: &mut Drawing, scale: &Scale) -> f64 {
        let (top, bottom) = (6.0, 6.0 + ROW + 2.0);
        beside(to, "legs", (top + bottom) / 2.0);
        let longest = longest(self.sample);
        // The longest is drawn last: its outline covers those of its neighbours.
        let mut sections: Vec<Section> =
            sections(self.sample).into_iter().filter(|section| section.ns() > 0).collect();
        sections.sort_by_key(|section| Some(*section) == longest);
        for section in sections {
            let is_longest = Some(section) == longest;
            let (left, right) = (scale.map(section.from as f64), scale.map(section.to as f64));
            let name = words::leg_name(section.until);
            let whole = format!("{name} {}", length(section.ns()));
            let pen = if is_longest { LONGEST } else { LEG };
            to.rect([left, top, right, bottom], pen, Some(whole.clone()));
            let room = right - left - 2.0 * INSIDE;
            let fits = |text: &&str| typeface::room(text, LARGEST, is_longest) <= room;
            if let Some(text) = [whole.as_str(), name].into_iter().find(fits) {
                let label = Label::new(text, left + INSIDE, (top + bottom) / 2.0).centred();
                to.text(label.bold_if(is_longest));
            }
        }
        bottom + 4.0
    }

    /// What held the kernel, each in a row; returns where they end.
    fn held(&self, to: &mut Drawing, scale: &Scale, mut top: f64) -> f64 {
        /// More would fill the page.
        const ROWS: usize = 6;
        for (number, held) in self.sample.held.iter().take(ROWS).enumerate() {
            let place = |ns: i64| scale.map(u64::try_from(ns).unwrap_or(0) as f64);
            let (left, right) = (held.from_ns.map_or(LEFT, place), place(held.to_ns));
            if right <= left {
                continue;
            }
            let bottom = top + ROW + 1.0;
            if number == 0 {
                beside(to, "held", (top + bottom) / 2.0);
            }
            let name = words::hold_name(held.how);
            let from = held.from_ns.map_or_else(|| "before what is known".to_owned(), human_ns);
            let note = format!("{name} from {from} to {}", human_ns(held.to_ns));
            to.rect([left, top, right, bottom], HELD, Some(note));
            if typeface::room(name, LARGEST, false) <= right - left - 2.0 * INSIDE {
                to.text(Label::new(name, left + INSIDE, (top + bottom) / 2.0).centred());
            }
            top = bottom + 3.0;
        }
        top + 3.0
    }

    /// Which threads had the CPU, in a row; returns where it ends.
    fn threads(&self, to: &mut Drawing, scale: &Scale, top: f64) -> f64 {
        let least = narrowest(self.end);
        let mut slices = slices(self.sample);
        slices.retain(|(from, end, _)| end - from >= least);
        if slices.is_empty() {
            return top;
        }
        let bottom = top + ROW + 1.0;
        beside(to, "thread", (top + bottom) / 2.0);
        for (from, end, name) in slices.iter().take(MOST) {
            let (left, right) = (scale.map(*from as f64), scale.map(*end as f64));
            let note = format!("{name}: {}", length(end - from));
            to.rect([left, top, right, bottom], LEG, Some(note));
            let text = typeface::cut(name, right - left - 2.0 * INSIDE);
            if text == *name || text.chars().count() > LEAST_NAME {
                to.text(Label::new(text, left + INSIDE, (top + bottom) / 2.0).centred());
            }
        }
        bottom + 6.0
    }

    /// Nested boxes, callers above; returns the area that they take.
    fn boxes(&self, to: &mut Drawing, list: &[Nested], scale: &Scale, top: f64) -> Frame {
        let bottom = top + ROW * depth(list).max(1) as f64;
        let frame = Frame { left: LEFT, right: RIGHT, top, bottom };
        beside(to, "stack", top + ROW / 2.0);
        self.row(to, list, scale, top);
        frame
    }

    fn row(&self, to: &mut Drawing, list: &[Nested], scale: &Scale, top: f64) {
        for one in list {
            let (left, right) = (scale.map(one.from as f64), scale.map(one.to as f64));
            let gap = GAP.min((right - left) / 8.0);
            let (name, pen) = self.look(one.content);
            let area = [left, top, right - gap, top + ROW - 1.0];
            to.rect(area, pen, Some(note(&name, one)));
            let text = typeface::cut(&name, right - left - 2.0 * INSIDE);
            if text == name || text.chars().count() > LEAST_NAME {
                let middle = top + (ROW - 1.0) / 2.0;
                to.text(Label::new(text, left + INSIDE, middle).centred());
            }
            self.row(to, &one.inner, scale, top + ROW);
        }
    }

    fn look(&self, content: Content) -> (String, Pen) {
        match content {
            Content::Idle => ("idle".to_owned(), ASLEEP),
            Content::Several(calls) => (format!("{calls} short calls"), SEVERAL),
            Content::Function(number) => {
                let name = self.names.get(number);
                let tint = self.named.iter().position(|(named, _)| named == name);
                let pen = tint.map_or(BOX, |tint| Pen::area("frame", Colour::Tint(tint)));
                (name.to_owned(), pen)
            }
        }
    }

    /// The functions in colour with their share; returns the height of the figure.
    fn legend(&self, to: &mut Drawing, mut above: f64) -> f64 {
        for (number, (name, ns)) in self.named.iter().enumerate() {
            above += LINE;
            let text = format!("{name}: {} itself, {}", percent(*ns, self.total), length(*ns));
            let text = typeface::cut(&text, RIGHT - LEFT);
            Legend::at(to, above).mark(&text, |to, (x, y)| {
                let area = [x - 6.0, y - 6.0, x + 6.0, y + 6.0];
                to.rect(area, Pen::area("mark", Colour::Tint(number)), None);
            });
        }
        above + 10.0
    }

    /// Legs and functions in words, for those who cannot see them.
    fn description(&self) -> String {
        let sections = sections(self.sample);
        let legs: Vec<_> = sections
            .iter()
            .map(|section| format!("{} {}", words::leg_name(section.until), length(section.ns())))
            .collect();
        let own: Vec<_> = self
            .named
            .iter()
            .map(|(name, ns)| format!("{name} {}", percent(*ns, self.total)))
            .collect();
        let idle = if self.sample.idle { " The CPU was idle at the release." } else { "" };
        let own = if own.is_empty() { IDLE.to_owned() } else { own.join(", ") };
        format!("Legs: {}. Most own time: {own}.{idle}", legs.join(", "))
    }
}

/// The time that is as wide as the narrowest box, ns.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
fn narrowest(end: u64) -> u64 {
    (end as f64 * LEAST / (RIGHT - LEFT)).ceil() as u64
}

/// How deep boxes are nested.
fn depth(list: &[Nested]) -> usize {
    list.iter().map(|one| 1 + depth(&one.inner)).max().unwrap_or(0)
}

/// What a box says to those who point at it.
fn note(name: &str, one: &Nested) -> String {
    let (from, to) = (length(one.from), length(one.to));
    let own = match one.content {
        Content::Function(_) if one.own != one.ns() => format!(", {} itself", length(one.own)),
        _ => String::new(),
    };
    format!("{name}: {} ns{own}, {from} to {to}", one.ns())
}

/// What a row has, left of it.
fn beside(to: &mut Drawing, name: &str, middle: f64) {
    to.text(Label::new(name, LEFT - 6.0, middle).end().centred().soft());
}

/// Ticks and the name of the time axis, without lines across the boxes.
fn axis(to: &mut Drawing, frame: &Frame, scale: &Scale, name: &str) {
    let bottom = Frame { top: frame.bottom, bottom: frame.bottom + 5.0, ..*frame };
    to.line((frame.left, frame.bottom), (frame.right, frame.bottom), AXIS);
    let ticks: Ticks = scale
        .ticks(6)
        .iter()
        .map(|tick| (scale.map(tick.value), Some(label(tick.value))))
        .collect();
    bottom.x_axis(to, &spaced(ticks, &[]), name);
}

const AXIS: Pen = Pen::line("axis", Colour::Soft, 1.0);

/// Takes the texts out of a drawing, to be drawn above lines.
fn labels(from: &mut Drawing) -> Vec<Shape> {
    let is_text = |shape: &Shape| matches!(shape, Shape::Text(_));
    let (texts, others) = std::mem::take(&mut from.shapes).into_iter().partition(is_text);
    from.shapes = others;
    texts
}
