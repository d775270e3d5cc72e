//! Complementary cumulative distributions: the share of the values above a value, on logarithmic
//! axes.

use super::drawing::{Drawing, Label, Pen, Point};
use super::frame::{BELOW, Frame, LINE, Lines, Ticks, Upright, overlap};
use super::latency::Axis;
use super::scale::{Scale, Tick};
use super::sheet::WIDTH;
use super::theme::Colour;
use super::typeface::{self, LARGEST};
use crate::data::Bins;

/// With the colours of curves these tell 40 of them apart; the mark at the end of each curve
/// tells any number apart, without colour.
const DASHES: [&[f64]; 5] = [&[], &[7.0, 3.0], &[2.0, 2.0], &[10.0, 3.0, 2.0, 3.0], &[14.0, 5.0]];
/// Left end of the names in the legend.
const NAMES: f64 = 84.0;

/// How a curve is distinguished from the others.
pub struct Look {
    pub mark: String,
    pub label: String,
    /// Numbers, from 0, of a colour and of a kind of dashes.
    pub colour: usize,
    pub dash: usize,
}

impl Look {
    fn paint(&self, class: &'static str) -> Pen {
        let dash = DASHES[self.dash % DASHES.len()];
        Pen::line(class, Colour::Curve(self.colour), 1.8).dashed(dash)
    }
}

/// A distribution.
pub struct Curve {
    pub look: Look,
    /// Share of the values above a value in ns, at rising values.
    pub points: Vec<(f64, f64)>,
    /// A value to compare it with, ns, and what it is.
    pub spot: Option<(f64, String)>,
}

impl Curve {
    /// The share of the values above one.
    fn share(&self, ns: f64) -> f64 {
        let before = self.points.iter().take_while(|(at, _)| *at <= ns);
        before.last().map_or(1.0, |(_, share)| *share)
    }

    fn end(&self) -> (f64, f64) {
        self.points.last().copied().unwrap_or((1.0, 1.0))
    }
}

/// A spot of a curve.
pub const fn spot(colour: Colour) -> Pen {
    Pen::line("spot", colour, 1.8).filled(Colour::Paper)
}

/// Radius of a spot.
pub const SPOT: f64 = 4.0;

/// A share that curves are compared with.
pub struct Level {
    pub share: f64,
    pub paint: Pen,
    pub label: String,
}

/// Curves on common axes.
pub struct Chart<'a> {
    pub curves: &'a [Curve],
    pub axis: Axis,
    /// Lines across all curves.
    pub lines: Vec<Upright>,
    /// Lines across the shares.
    pub levels: Vec<Level>,
    /// What the horizontal axis and the vertical one show.
    pub names: [&'a str; 2],
}

impl Chart<'_> {
    /// The curves and their names; and how high that is.
    pub fn draw(self) -> (Drawing, f64) {
        let Self { curves, axis, lines, levels, names: [across, upward] } = self;
        let lines = Lines::of(lines);
        let frame = Frame::standard(300.0, &lines);
        let least = curves.iter().flat_map(|c| &c.points).map(|(_, p)| *p);
        let least = least.chain(levels.iter().map(|level| level.share));
        let shares = Scale::log(least.fold(1.0, f64::min) * 0.8, 1.0, frame.bottom, frame.top);
        let mut drawing = Drawing::default();
        axis.draw(&mut drawing, frame, 7, across);
        frame.y_axis(&mut drawing, &share_ticks(&shares), upward);
        frame.verticals(&mut drawing, &lines);
        let taken = across_at(&mut drawing, &levels, frame, &shares);
        for curve in curves {
            let note = format!("{} {}", curve.look.mark, curve.look.label);
            let line = steps(curve, &axis, &shares);
            drawing.lines(vec![line], curve.look.paint("curve"), Some(note));
        }
        frame.border(&mut drawing);
        spots(&mut drawing, curves, &axis, &shares);
        marks(&mut drawing, curves, frame, &axis, &shares, taken);
        let height = legend(&mut drawing, curves, frame.bottom + BELOW);
        (drawing, height)
    }
}

/// Lines across the shares, each with its label at the left; returns the room of the labels.
fn across_at(to: &mut Drawing, levels: &[Level], frame: Frame, shares: &Scale) -> Vec<[f64; 4]> {
    let mut taken: Vec<[f64; 4]> = Vec::new();
    for Level { share, paint, label } in levels {
        let y = shares.map(*share);
        to.line((frame.left, y), (frame.right, y), *paint);
        let at = |x: f64, y: f64| {
            let colour = paint.stroke.unwrap_or(Colour::Text);
            Label::new(label, x, y).colour(colour).bold()
        };
        let places = [frame.left + 6.0, frame.left + 220.0]
            .into_iter()
            .flat_map(|x| [y + 18.0, y - 6.0].map(|y| at(x, y)));
        let free = |label: &Label| {
            let area = label.area(LARGEST);
            let inside = area[1] >= frame.top && area[3] <= frame.bottom;
            inside && taken.iter().all(|other| !overlap(other, &area))
        };
        if let Some(label) = places.into_iter().find(free) {
            taken.push(label.area(LARGEST));
            to.text(label);
        }
    }
    taken
}

/// The spots on their curves. Behind the end of one a thin line leads to its spot.
fn spots(to: &mut Drawing, curves: &[Curve], axis: &Axis, shares: &Scale) {
    for curve in curves {
        let Some((ns, note)) = &curve.spot else { continue };
        let colour = Colour::Curve(curve.look.colour);
        let at = (axis.map(*ns), shares.map(curve.share(*ns)));
        let (end, _) = curve.end();
        if *ns > end {
            to.line((axis.map(end), at.1), at, Pen::line("lead", colour, 0.6));
        }
        to.circle(at, SPOT, spot(colour), Some(note.clone()));
    }
}

/// The names of the curves below `above`; returns where they end.
fn legend(to: &mut Drawing, curves: &[Curve], above: f64) -> f64 {
    let mut y = above;
    for curve in curves {
        let name = format!("{}  {}", curve.look.mark, curve.look.label);
        for (number, line) in
            typeface::wrapped(&name, WIDTH - NAMES - 4.0, LARGEST, 3).into_iter().enumerate()
        {
            y += LINE;
            if number == 0 {
                let middle = y - 5.0;
                to.line((14.0, middle), (NAMES - 14.0, middle), curve.look.paint("curve"));
            }
            to.text(Label::new(line, NAMES, y));
        }
    }
    y + 10.0
}

/// At the end of each bin the share of values above it, and last, at the
/// maximum, the share of one value: zero has no place on this axis.
pub fn points(distribution: &Bins) -> Vec<(f64, f64)> {
    let total = distribution.total() as f64;
    let mut above = distribution.total();
    let mut points = vec![(f64::NEG_INFINITY, 1.0)];
    points.extend(distribution.bins.first().map(|bin| (bin.low as f64, 1.0)));
    for bin in &distribution.bins {
        above = above.saturating_sub(bin.count);
        points.push((bin.high as f64, above.max(1) as f64 / total));
    }
    points
}

fn steps(curve: &Curve, axis: &Axis, shares: &Scale) -> Vec<Point> {
    let mut path: Vec<Point> = Vec::new();
    for (i, (ns, share)) in curve.points.iter().enumerate() {
        let (x, y) = (axis.map(*ns), shares.map(*share));
        let end = i + 1 == curve.points.len();
        // Steps smaller than half a unit cannot be seen; the last one must stay exact.
        match path.last().copied() {
            None => path.push((x, y)),
            Some(last) if end || (x - last.0).abs() >= 0.5 || (y - last.1).abs() >= 0.5 => {
                path.extend([(x, last.1), (x, y)]);
            }
            Some(_) => {}
        }
    }
    path
}

/// Letters at the ends of the curves. One that has no room there is moved, and a thin line leads
/// to its end.
fn marks(
    to: &mut Drawing,
    curves: &[Curve],
    frame: Frame,
    axis: &Axis,
    shares: &Scale,
    mut taken: Vec<[f64; 4]>,
) {
    for curve in curves {
        let (ns, share) = curve.end();
        let end = (axis.map(ns), shares.map(share));
        let colour = Colour::Curve(curve.look.colour);
        let label = |(x, y): Point| {
            Label::new(&curve.look.mark, x, y).middle().bold().colour(colour).class("mark")
        };
        let half = typeface::room(&curve.look.mark, LARGEST, true) / 2.0 + 3.0;
        let places = (0..40).flat_map(|column| {
            let x = (end.0 + half + 4.0).min(frame.right - half) - 2.0 * half * f64::from(column);
            let y = (end.1 - 6.0).min(frame.bottom - 6.0);
            (0..30).map(move |row| (x, y - 19.0 * f64::from(row)))
        });
        let free = |at: &Point| {
            let area = label(*at).area(LARGEST);
            let inside = area[1] >= frame.top && area[0] >= frame.left;
            inside && taken.iter().all(|other| !overlap(other, &area))
        };
        let Some(at) = places.into_iter().find(free) else { continue };
        if (at.0 - end.0).hypot(at.1 - end.1) > 2.0 * half + 12.0 {
            to.line(end, (at.0, at.1 + 3.0), Pen::line("lead", colour, 0.6));
        }
        taken.push(label(at).area(LARGEST));
        to.text(label(at));
    }
}

fn share_ticks(shares: &Scale) -> Ticks {
    let label = |t: &Tick| t.labelled.then(|| share_label(t.value));
    shares.ticks(7).iter().map(|t| (shares.map(t.value), label(t))).collect()
}

/// `1`, `1e-1`, `5e-3`: one notation over all decades.
fn share_label(share: f64) -> String {
    if share > 0.999 { "1".to_owned() } else { format!("{share:.0e}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::histogram::SignedBin;

    #[test]
    fn the_curve_ends_with_one_value_at_the_maximum() {
        let bin = |low, high, count| SignedBin { low, high, count };
        let d =
            Bins { bins: vec![bin(-5, -1, 1), bin(10, 10, 98), bin(500, 503, 1)], coarse: false };
        let points = points(&d);
        assert_eq!(points[1..], [(-5.0, 1.0), (-1.0, 0.99), (10.0, 0.01), (503.0, 0.01)]);
    }

    #[test]
    fn shares_have_one_notation() {
        for (share, text) in
            [(1.0, "1"), (0.1, "1e-1"), (0.02, "2e-2"), (1e-3, "1e-3"), (5e-8, "5e-8")]
        {
            assert_eq!(share_label(share), text);
        }
    }

    #[test]
    fn a_spot_is_on_its_curve() {
        let look = Look { mark: "A".to_owned(), label: String::new(), colour: 0, dash: 0 };
        let points = vec![(f64::NEG_INFINITY, 1.0), (10.0, 1.0), (20.0, 0.1), (30.0, 0.01)];
        let curve = Curve { look, points, spot: None };
        let shares = [5.0, 19.0, 20.0, 29.0, 30.0, 400.0].map(|ns| curve.share(ns));
        assert_eq!(shares, [1.0, 1.0, 0.1, 0.1, 0.01, 0.01]);
    }
}
