//! The phases of a load that changes on a schedule, as bands above the timeline.

use punctual_core::schema::{AtWork, Cell, LoadPhase};
use punctual_core::units::SECOND_NS;

use super::drawing::{Drawing, Label, Pen};
use super::frame::{Frame, LEFT, LINE, RIGHT};
use super::scale::Scale;
use super::theme::Colour;
use super::typeface::{self, LARGEST};
use crate::words;

/// Height of a band with the distance to the plotting area.
const HEIGHT: f64 = LINE + 6.0;
/// Between the edges of a band and its name.
const MARGIN: f64 = 5.0;
/// Bands beyond these are not drawn: they would be narrower than a line.
const MOST: usize = 600;
const EDGE: Pen = Pen::line("phase", Colour::Soft, 1.0).dashed(&[2.0, 3.0]);

/// The plotting area with room for the bands above it, if the cell has any.
pub fn below(frame: Frame, cell: &Cell) -> Frame {
    if cell.phases.is_empty() { frame } else { frame.moved(HEIGHT) }
}

/// Draws the bands, and a line down from both ends of each.
pub fn bands(to: &mut Drawing, cell: &Cell, frame: &Frame, time: &Scale) {
    for (number, phase, at) in turns(cell) {
        let (left, right) = ends(at, time);
        let area = [left, frame.top - HEIGHT, right, frame.top - 4.0];
        let name = name(number, phase);
        to.rect(area, Pen::area("phase", Colour::Tint(number)), Some(name.clone()));
        if fits(&name, right - left) {
            let middle = f64::midpoint(area[1], area[3]);
            to.text(Label::new(name, f64::midpoint(left, right), middle).middle().centred());
        }
        for x in [left, right].into_iter().filter(|x| *x > frame.left && *x < frame.right) {
            to.line((x, frame.top - HEIGHT), (x, frame.bottom), EDGE);
        }
    }
}

/// What the bands are, row by row, if one of them has no room for its name; returns where that
/// ends.
pub fn named(to: &mut Drawing, cell: &Cell, time: &Scale, above: f64) -> f64 {
    let unnamed = |(number, phase): &(usize, &LoadPhase)| {
        let widths =
            phase.at_work.iter().map(|at| ends(*at, time)).map(|(left, right)| right - left);
        !widths.into_iter().any(|width| fits(&name(*number, phase), width))
    };
    if !cell.phases.iter().enumerate().any(|one| unnamed(&one)) {
        return above;
    }
    let (mut x, mut y) = (LEFT, above - 10.0 + LINE);
    for (number, phase) in cell.phases.iter().enumerate() {
        let text = typeface::cut(&name(number, phase), RIGHT - LEFT - 40.0);
        let room = 30.0 + typeface::room(&text, LARGEST, false) + 20.0;
        if x > LEFT && x + room > RIGHT {
            (x, y) = (LEFT, y + LINE);
        }
        to.rects(&[[x, y - 13.0, x + 24.0, y + 1.0]], Pen::area("phase", Colour::Tint(number)));
        to.text(Label::new(text, x + 30.0, y).soft());
        x += room;
    }
    y + 10.0
}

/// Every stretch in which a load was at work: number of the phase, the phase, when.
fn turns(cell: &Cell) -> impl Iterator<Item = (usize, &LoadPhase, AtWork)> {
    let phases = cell.phases.iter().enumerate();
    let all = phases.flat_map(|(number, phase)| {
        phase.at_work.iter().take(MOST).map(move |at| (number, phase, *at))
    });
    all.filter(|(.., at)| at.from_ns < at.to_ns)
}

fn name(number: usize, phase: &LoadPhase) -> String {
    format!("{} {}", number + 1, words::load_name(&phase.load))
}

fn fits(name: &str, width: f64) -> bool {
    typeface::room(name, LARGEST, false) + 2.0 * MARGIN <= width
}

/// Left and right end, within the axis.
fn ends(at: AtWork, time: &Scale) -> (f64, f64) {
    let place = |ns: u64| time.map((ns as f64 / SECOND_NS as f64).min(time.high()));
    (place(at.from_ns), place(at.to_ns))
}
