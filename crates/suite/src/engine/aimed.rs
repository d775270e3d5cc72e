//! A run with an aimed release: whether there can be one, and what the record says of it.
//!
//! Until that release all is as in the run without it, instruction for instruction on a virtual
//! board: what is asked before takes the same steps whatever is aimed at, and if nothing is. So
//! the record says nothing of it before its cell has ended, which is as true until then.

use std::hint::black_box;

use punctual_core::aim::Aim;
use punctual_core::dither::Dither;
use punctual_core::judge::Judge;
use punctual_core::key::key_name;
use punctual_core::schema::{CellState, Condition, Run};
use punctual_core::units::{exact_duration, grouped};

use super::prepared::{Measures, Prepared};

/// Why the cells have no such release to aim, or cannot move it there; `None` if they can, and
/// without an aim.
pub(super) fn refused(aim: Aim, cells: &[Prepared], dither: Option<&Dither>) -> Option<String> {
    let mut takes = false;
    for (number, cell) in cells.iter().enumerate() {
        takes |= black_box(cell.takes(aim, dither)) & black_box(aim.in_cell(number).is_some());
    }
    (black_box(aim.is_some()) & black_box(!takes)).then(|| why_not(aim, cells))
}

impl Prepared {
    /// Whether the aim could be one at this cell.
    fn takes(&self, aim: Aim, dither: Option<&Dither>) -> bool {
        let Measures::Probe(probe) = &self.measures else { return false };
        let (interval, duration) = (probe.threads.interval_ns.max(1), self.plan.duration_ns);
        let index = aim.release.wrapping_sub(1);
        let is_there =
            black_box(index < duration.div_ceil(interval)) & black_box(aim.at_ns < duration);
        let before = index.wrapping_sub(1);
        let offset = dither.map_or(0, |dither| dither.offset_ns(before, interval));
        let due_before = before.wrapping_mul(interval).wrapping_add(offset);
        let is_after = black_box(index == 0) | black_box(due_before < aim.at_ns);
        let is_single = probe.threads.threads.len() == 1;
        // Else the compiler leaves out what no longer matters, and takes fewer instructions.
        black_box(probe.is_dithered())
            & black_box(is_single)
            & black_box(is_there)
            & black_box(is_after)
    }
}

fn why_not(aim: Aim, cells: &[Prepared]) -> String {
    let refuse = |why: &str| format!("it cannot be aimed at {}: {why}", aim.words());
    let aimed = cells.iter().enumerate().find(|(number, _)| aim.in_cell(*number).is_some());
    let Some((_, cell)) = aimed else {
        return refuse(&format!("the plan has {} cells, counted from 0", cells.len()));
    };
    let key = cell.plan.key();
    match &cell.measures {
        Measures::Probe(probe) if probe.is_dithered() && probe.threads.threads.len() == 1 => {
            refuse(&format!(
                "both the release and that instant must be within the {} of {}, and the instant \
                 after the release before",
                exact_duration(cell.plan.duration_ns),
                key_name(&key)
            ))
        }
        Measures::Probe(probe) if probe.is_dithered() => refuse(&format!(
            "{} has {} threads, and only the releases of a single one can be aimed",
            key_name(&key),
            probe.threads.threads.len()
        )),
        _ => refuse(&format!(
            "{} does not wait for each release by itself, as wakeup does with timer=nanosleep or \
             relative",
            key_name(&key)
        )),
    }
}

/// Says that a run had an aimed release, whose cell, the one with this index, has ended; the
/// cells after it are not measured.
pub(super) fn record(aim: Aim, number: usize, run: &mut Run, judge: &dyn Judge) {
    let cell = &run.cells[number];
    let key = key_name(&cell.key);
    let due = cell.latency().map_or(0, |latency| latency.stats.scheduled);
    let release = grouped(aim.release);
    let text = if due < aim.release {
        format!("aimed: {key} ended before its release {release}, which was to be at {}", aim.at())
    } else {
        format!(
            "aimed: release {release} at {} of {key}; the course after it is another one",
            aim.at()
        )
    };
    let reason = format!("the run ends with the aimed release of {key}");
    for later in number + 1..run.cells.len() {
        let cell = &mut run.cells[later];
        if cell.state == CellState::Pending {
            (cell.state, cell.reason) = (CellState::Skipped, Some(reason.clone()));
            judge.cell(run, later, None);
        }
    }
    run.aim = Some(aim);
    run.conditions.push(Condition { id: "aimed".to_owned(), text });
}
