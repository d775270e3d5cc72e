//! What costs over those of the first kernel: bars from 1 on a logarithmic axis, each with the
//! interval of its ratio.

use punctual_core::compare::{Against, Comparison, MatchedCost, ToFirst};
use punctual_core::schema::CostSection;

use super::drawing::{Drawing, Label, Pen};
use super::entry::{Entry, Material, Place};
use super::frame::{BELOW, Frame, LINE, Lines, RIGHT, Ticks, spaced};
use super::legend::Legend;
use super::scale::Scale;
use super::sheet::Figure;
use super::theme::Colour;
use super::typeface::{self, LARGEST};
use crate::cost_sides::{self, Side};
use crate::words;
use crate::words::CostHead;

/// Room for the names of costs.
const NAMES: f64 = 206.0;
/// Height of a bar, with what is between it and the next.
const BAR: f64 = 14.0;
/// Half the height of a bar.
const HALF: f64 = 5.0;
/// Above and below the bars of a cost.
const APART: f64 = 4.0;

pub const ENTRY: Entry = Entry { place: Place::Costs, draw };

const ONE: Pen = Pen::line("one", Colour::Text, 1.4);
const WHISKER: Pen = Pen::line("whisker", Colour::Text, 1.2);

fn draw(material: &Material<'_>) -> Vec<Figure> {
    figure(material.comparison).into_iter().collect()
}

/// A logarithmic axis of factors, which ends where the data do.
struct Factors {
    /// Of logarithms.
    scale: Scale,
}

/// Factors that a tick may have, those first that have a label if there is room for few.
const TICKS: [f64; 27] = [
    1.0, 2.0, 0.5, 5.0, 0.2, 10.0, 0.1, 20.0, 50.0, 100.0, 0.05, 0.02, 0.01, 1e3, 1e-3, 1e4, 1e-4,
    1.5, 0.7, 3.0, 0.3, 1.2, 0.8, 1.1, 0.9, 1.05, 0.95,
];

impl Factors {
    fn map(&self, factor: f64) -> f64 {
        self.scale.map(factor.max(f64::MIN_POSITIVE).ln())
    }

    fn ticks(&self) -> Ticks {
        let (low, high) = (self.scale.low(), self.scale.high());
        let inside = TICKS.iter().filter(|tick| low <= tick.ln() && tick.ln() <= high);
        inside.map(|tick| (self.map(*tick), Some(times(*tick)))).collect()
    }
}

/// A bar: what it is of, and how it stands to the first.
struct CostBar {
    side: usize,
    /// Turned so that more than 1 is worse.
    ratio: f64,
    ends: Option<[f64; 2]>,
    is_shown: bool,
}

fn bars(cost: &MatchedCost, sides: &[Side]) -> Vec<CostBar> {
    // A clock rate is neither better nor worse.
    if cost.section == CostSection::Basics {
        return Vec::new();
    }
    let bar = |(number, side): (usize, &Side)| {
        let to_first: ToFirst = side.to_first(cost);
        let ends = to_first.ratio_interval.map(|ends| ends.map(|end| cost.turned(end)));
        // Turned over, the ends change places.
        let ends = ends.map(|[a, b]| [a.min(b), a.max(b)]);
        let is_shown =
            matches!(to_first.against_first, Some(Against::Better) | Some(Against::Worse));
        Some(CostBar { side: number, ratio: cost.turned(to_first.ratio?), ends, is_shown })
    };
    sides.iter().enumerate().skip(1).filter_map(bar).collect()
}

/// The figure; none without a ratio.
fn figure(comparison: &Comparison) -> Option<Figure> {
    let sides = cost_sides::of(comparison);
    let parts = words::compared_parts(&comparison.costs);
    let all: Vec<_> = comparison.costs.iter().flat_map(|cost| bars(cost, &sides)).collect();
    let places = all.iter().flat_map(|bar| bar.ends.into_iter().flatten().chain([bar.ratio]));
    let places: Vec<f64> = places.filter(|place| place.is_finite() && *place > 0.0).collect();
    if all.is_empty() {
        return None;
    }
    let low = places.iter().copied().fold(0.9, f64::min);
    let high = places.iter().copied().fold(1.1, f64::max);
    let scale = Factors { scale: Scale::exact(low.ln() - 0.03, high.ln() + 0.03, NAMES, RIGHT) };
    let height = |costs: &[&MatchedCost]| {
        LINE + costs.iter().map(|cost| row_height(bars(cost, &sides).len())).sum::<f64>()
    };
    let drawn: Vec<_> = parts.iter().filter(|(_, costs)| has_bars(costs, &sides)).collect();
    let total: f64 = drawn.iter().map(|(_, costs)| height(costs)).sum();
    let mut drawing = Drawing::default();
    let frame = Frame { left: NAMES, ..Frame::standard(total + 8.0, &Lines::default()) };
    let name = sides.first().map_or("", |side| side.name.as_str());
    let axis = format!("over {name}; right of 1 is worse");
    let axis = typeface::cut(&axis, RIGHT - 8.0);
    frame.x_axis(&mut drawing, &spaced(scale.ticks(), &[]), &axis);
    let one = scale.map(1.0);
    drawing.line((one, frame.top), (one, frame.bottom), ONE);
    frame.border(&mut drawing);
    let mut top = frame.top + 4.0;
    for (head, costs) in drawn {
        top = part(&mut drawing, (head, costs), &sides, &scale, top);
    }
    let bottom = legend(&mut drawing, &sides, frame.bottom + BELOW + LINE);
    Some(Figure {
        name: "costs".to_owned(),
        title: format!("Costs over those of {name}"),
        description: description(comparison, &sides),
        height: bottom,
        drawing,
    })
}

fn has_bars(costs: &[&MatchedCost], sides: &[Side]) -> bool {
    costs.iter().any(|cost| !bars(cost, sides).is_empty())
}

fn row_height(bars: usize) -> f64 {
    if bars == 0 { 0.0 } else { (BAR * bars as f64 + 2.0 * APART).max(LINE) }
}

/// The costs of a section below `top`; returns where they end.
fn part(
    to: &mut Drawing,
    (head, costs): (&CostHead, &[&MatchedCost]),
    sides: &[Side],
    scale: &Factors,
    mut top: f64,
) -> f64 {
    let title = typeface::cut(&head.name, RIGHT - NAMES - 12.0);
    let end = NAMES + 10.0 + typeface::room(&title, LARGEST, true);
    to.rects(&[[NAMES + 4.0, top, end, top + LINE]], Pen::area("ground", Colour::Paper));
    to.text(Label::new(title, NAMES + 6.0, top + LINE - 6.0).bold());
    top += LINE;
    for cost in costs {
        let bars = bars(cost, sides);
        let height = row_height(bars.len());
        if bars.is_empty() {
            continue;
        }
        let name = typeface::cut(&words::clean(cost.name()), NAMES - 20.0);
        to.text(Label::new(name, NAMES - 8.0, top + height / 2.0).end().centred());
        let first = top + height / 2.0 - BAR * (bars.len() as f64 - 1.0) / 2.0;
        for (number, bar) in bars.iter().enumerate() {
            draw_bar(to, bar, cost, sides, scale, first + BAR * number as f64);
        }
        top += height;
    }
    top
}

fn draw_bar(
    to: &mut Drawing,
    bar: &CostBar,
    cost: &MatchedCost,
    sides: &[Side],
    scale: &Factors,
    y: f64,
) {
    let (one, place) = (scale.map(1.0), scale.map(bar.ratio));
    let (left, right) = (one.min(place), one.max(place));
    let name = sides.get(bar.side).map_or("", |side| side.name.as_str());
    let ends = bar.ends.map_or_else(String::new, |[low, high]| {
        format!(" ({} to {})", words::cost_ratio(Some(low)), words::cost_ratio(Some(high)))
    });
    let note = format!("{name}: {} {}{ends}", cost.name(), words::cost_ratio(Some(bar.ratio)));
    let note = words::clean(&note).into_owned();
    to.rect(
        [left, y - HALF, right, y + HALF],
        pen(bar.side, sides.len(), bar.is_shown),
        Some(note),
    );
    if let Some([low, high]) = bar.ends {
        let (from, end) = (scale.map(low), scale.map(high));
        let cap = |x: f64| vec![(x, y - 3.0), (x, y + 3.0)];
        to.lines(vec![vec![(from, y), (end, y)], cap(from), cap(end)], WHISKER, None);
    }
}

/// A bar whose interval includes 1 is hollow: nothing is shown.
fn pen(side: usize, sides: usize, is_shown: bool) -> Pen {
    let colour = if sides > 2 { Colour::Curve(side) } else { Colour::Data };
    if is_shown {
        Pen { stroke: Some(colour), width: 1.0, ..Pen::area("bar", colour) }
    } else {
        Pen::line("hollow", colour, 1.0).filled(Colour::Paper)
    }
}

/// A factor as a tick is labelled: `0.5`, `1`, `20`.
fn times(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Which colour is which kernel, and what a hollow bar is; returns where it ends.
fn legend(to: &mut Drawing, sides: &[Side], mut y: f64) -> f64 {
    let swatch = |to: &mut Drawing, (x, y): (f64, f64), pen| {
        to.rects(&[[x - 6.0, y - HALF, x + 6.0, y + HALF]], pen);
    };
    for (number, side) in sides.iter().enumerate().skip(1) {
        let name = typeface::cut(&side.name, RIGHT - 140.0);
        Legend::at(to, y).mark(&name, |to, at| swatch(to, at, pen(number, sides.len(), true)));
        y += LINE;
    }
    let hollow = "hollow: not shown to differ";
    Legend::at(to, y).mark(hollow, |to, at| swatch(to, at, pen(1, sides.len(), false)));
    y + 12.0
}

fn description(comparison: &Comparison, sides: &[Side]) -> String {
    let texts = comparison.costs.iter().flat_map(|cost| {
        bars(cost, sides).into_iter().map(move |bar| {
            let name = sides.get(bar.side).map_or("", |side| side.name.as_str());
            format!("{}, {name}: {}", cost.name(), words::cost_ratio(Some(bar.ratio)))
        })
    });
    let texts = texts.collect::<Vec<_>>().join("; ");
    let all = format!("How many times worse each cost is, on a logarithmic axis. {texts}.");
    words::clean(&all).into_owned()
}
