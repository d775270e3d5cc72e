//! The latest release of a run in a sentence.

use punctual_core::aimed::{AimedCell, AimedRun, Course, Target};
use punctual_core::key;
use punctual_core::units::grouped;

use super::found::{ALONE, latest, samples};
use crate::explanation::times::length;
use crate::sections::found::between;
use crate::words;

/// The latest of the aimed releases of a run in one course, with its cell; the first of several.
fn latest_of(run: &AimedRun, course: Course) -> Option<(&AimedCell, &Target, u64)> {
    let cells = run.cells.iter().filter(|cell| cell.course == course);
    let found = cells.filter_map(|cell| latest(cell).map(|(target, ns)| (cell, target, ns)));
    found.rev().max_by_key(|(.., ns)| *ns)
}

/// The largest sample of a run with its cell, the first of several.
fn largest_sample(run: &AimedRun) -> Option<(&AimedCell, u64)> {
    let cells = run.cells.iter().filter_map(|cell| Some((cell, cell.sampled_max_ns?)));
    cells.rev().max_by_key(|(_, ns)| *ns)
}

/// How late a release of a run can be, without a full stop.
pub(super) fn sentence(run: &AimedRun) -> String {
    let alone = latest_of(run, Course::Alone);
    let aimed = latest_of(run, Course::Sampled).or(alone);
    match (aimed, largest_sample(run)) {
        // Chance found more than the aim.
        (Some((cell, _, aimed)), Some((of, ns))) if ns > aimed => {
            let course = match cell.course {
                Course::Sampled => String::new(),
                Course::Alone => format!(", {ALONE}"),
            };
            let aimed = length(aimed);
            format!("{}; aimed releases took at most {aimed}{course}", of_samples(of, ns))
        }
        (Some((cell, target, ns)), _) => {
            let mut text = of_target(cell, target, ns);
            let later = alone.filter(|(.., alone)| *alone > ns);
            if let Some((.., ns)) = later {
                text.push_str(&format!("; {} {ALONE}", length(ns)));
            }
            text
        }
        (None, Some((of, ns))) => {
            format!("{}; no aimed release was measured", of_samples(of, ns))
        }
        (None, None) => "no release was measured".to_owned(),
    }
}

fn of_target(cell: &AimedCell, target: &Target, ns: u64) -> String {
    let section = &target.section;
    let (long, between) = (length(section.length_ns), between(&section.from, &section.to));
    let (ns, load) = (length(ns), under(cell));
    let aimed = format!("latest: {ns}, aimed at a section of {long} {between} {load}");
    let sampled = cell.sampled_max_ns.map(|_| samples(cell));
    match (cell.course, sampled) {
        (Course::Sampled, Some(sampled)) => format!("{aimed}; {sampled}"),
        (Course::Sampled, None) => aimed,
        (Course::Alone, Some(sampled)) => format!("{aimed}, {ALONE}; in another course, {sampled}"),
        (Course::Alone, None) => format!("{aimed}, {ALONE}"),
    }
}

fn of_samples(cell: &AimedCell, ns: u64) -> String {
    let plural = if cell.samples == 1 { "" } else { "s" };
    let (count, load) = (grouped(cell.samples), under(cell));
    format!("latest: {}, the largest of {count} sample{plural} {load}", length(ns))
}

fn under(cell: &AimedCell) -> String {
    if cell.load == key::NO_LOAD {
        return "without a load".to_owned();
    }
    format!("under {}", words::load_name(&cell.load))
}
