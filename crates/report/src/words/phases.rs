//! The phases of a load that changes on a schedule, in words.

use punctual_core::compare::{CHANGES, MatchedCell};
use punctual_core::schema::{Cell, PhaseFound};
use punctual_core::units::{exact_duration, grouped};

use super::clean;
use super::names::{key_name, load_name};

/// A row of the table by phase: what the load was, and what was found in its seconds.
pub struct PhaseRow<'a> {
    /// `phase 1`, or `changes`.
    pub name: String,
    /// The load, with its length.
    pub load: String,
    /// What was found.
    pub found: &'a PhaseFound,
}

/// The phases of a cell, then what was found while the load changed; none of any other cell.
#[must_use]
pub fn phase_rows(cell: &Cell) -> Vec<PhaseRow<'_>> {
    let phases = cell.phases.iter().zip(1..).map(|(phase, number)| PhaseRow {
        name: format!("phase {number}"),
        load: load_name(&phase.load).into_owned(),
        found: &phase.found,
    });
    let changes = cell.changes.iter().filter(|found| found.seconds > 0);
    let changes = changes.map(|found| PhaseRow {
        name: "changes".to_owned(),
        load: "between them".to_owned(),
        found,
    });
    phases.chain(changes).collect()
}

/// Cells side by side, each with its name and with its phases below it.
#[must_use]
pub fn with_phases(cells: &[MatchedCell]) -> Vec<(String, &MatchedCell)> {
    let mut named = Vec::new();
    for cell in cells {
        named.push((key_name(&cell.key), cell));
        // The last one may be that of the changes.
        named.extend(cell.phases.iter().zip(1..).map(|(phase, number)| {
            let name = match phase.key.as_str() {
                CHANGES => "changes between the phases".to_owned(),
                load => format!("phase {number}: {}", load_name(load)),
            };
            (name, phase)
        }));
    }
    named
}

/// The schedule of a cell's load and how its seconds are counted; none of any other cell.
#[must_use]
pub fn schedule_note(cell: &Cell) -> Option<String> {
    let once = cell.phases.iter().fold(0_u64, |sum, phase| sum.saturating_add(phase.for_ns));
    let each = cell.phases.iter().zip(1..).map(|(phase, number)| {
        let turns = match phase.at_work.len() {
            0 => ", never at work".to_owned(),
            1 => String::new(),
            turns => format!(", {} times", grouped(turns as u64)),
        };
        format!("{number} {} for {}{turns}", load_name(&phase.load), exact_duration(phase.for_ns))
    });
    let each: Vec<_> = each.collect();
    (!each.is_empty()).then(|| {
        format!(
            "phases of the load (once in {}): {}; a second in which it changed belongs to none",
            exact_duration(once),
            each.join(" · ")
        )
    })
}

/// The name of a part of a load, with the phase in which it worked if the load changes.
#[must_use]
pub fn part_name(part: &punctual_core::schema::LoadWork) -> String {
    match part.phase {
        Some(number) => format!("{} in phase {}", clean(&part.load), u64::from(number) + 1),
        None => clean(&part.load).into_owned(),
    }
}
