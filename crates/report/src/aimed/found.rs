//! What runs have of the same cell and course, and how aimed releases are put into words.

use punctual_core::aimed::{AimedCell, AimedRun, Course, Target};
use punctual_core::units::{grouped, human_ns};

use crate::explanation::times::length;
use crate::words;

/// What the course of releases is called that had none before them.
pub(crate) const ALONE: &str = "alone: without the other releases";

/// Why their latencies may be larger or smaller than any in the run.
pub(super) const OTHER_COURSE: &str = "These latencies belong to another course than the samples.";

/// The aimed releases of one cell and course, run by run. Those of another course prove nothing
/// of this one, so they are not side by side.
#[derive(Debug)]
pub(crate) struct SameCourse<'a> {
    /// Its number among those of all runs.
    pub number: usize,
    pub key: &'a str,
    pub load: &'a str,
    pub course: Course,
    /// Only the runs that have it.
    pub runs: Vec<AimedFrom<'a>>,
}

/// What one run has of a cell.
#[derive(Debug)]
pub(crate) struct AimedFrom<'a> {
    /// Its number among all runs.
    pub run: usize,
    /// A short name that tells the runs apart.
    pub name: String,
    pub cell: &'a AimedCell,
}

/// Names of runs: of their kernels, which is what runs of this kind differ in.
pub(super) fn names(all: &[AimedRun]) -> Vec<String> {
    let kernels: Vec<_> = all.iter().map(|one| (one.model, one.release.as_str())).collect();
    words::model_names(&kernels)
}

/// Every cell and course that some run has.
pub(crate) fn cells<'a>(all: &'a [AimedRun]) -> Vec<SameCourse<'a>> {
    let names = names(all);
    let is_same = |a: &AimedCell, b: &AimedCell| a.key == b.key && a.course == b.course;
    let mut known: Vec<&AimedCell> = Vec::new();
    for cell in all.iter().flat_map(|one| &one.cells) {
        if !known.iter().any(|known| is_same(known, cell)) {
            known.push(cell);
        }
    }
    let same = |(number, first): (usize, &'a AimedCell)| {
        let runs = all.iter().zip(&names).enumerate().filter_map(|(run, (one, name))| {
            let cell = one.cells.iter().find(|cell| is_same(cell, first))?;
            Some(AimedFrom { run, name: name.clone(), cell })
        });
        let AimedCell { key, load, course, .. } = first;
        SameCourse { number, key, load, course: *course, runs: runs.collect() }
    };
    known.into_iter().enumerate().map(same).collect()
}

/// `wakeup @ hackbench @ 2s`, followed by the course if it is not that of the samples.
pub(crate) fn cell_name(key: &str, course: Course) -> String {
    let key = words::key_name(key);
    match course {
        Course::Sampled => key,
        Course::Alone => format!("{key}, {ALONE}"),
    }
}

/// The latest of the aimed releases of a cell, the first of several.
pub(crate) fn latest(cell: &AimedCell) -> Option<(&Target, u64)> {
    let measured = cell.targets.iter().filter_map(|one| Some((one, one.latency_ns()?)));
    measured.rev().max_by_key(|(_, ns)| *ns)
}

/// What the latest of them measured, ns.
pub(crate) fn aimed_ns(cell: &AimedCell) -> Option<u64> {
    latest(cell).map(|(_, ns)| ns)
}

/// The latest of them over the largest sample.
pub(super) fn ratio(cell: &AimedCell) -> String {
    let sampled = cell.sampled_max_ns.filter(|ns| *ns > 0);
    words::ratio(aimed_ns(cell).zip(sampled).map(|(aimed, sampled)| aimed as f64 / sampled as f64))
}

/// How much later a release was than predicted: `+1.6 us`.
pub(super) fn difference(target: &Target) -> Option<String> {
    let ns = i128::from(target.latency_ns()?) - i128::from(target.predicted_ns);
    let sign = if ns > 0 { "+" } else { "" };
    let most = if ns < 0 { i64::MIN } else { i64::MAX };
    Some(format!("{sign}{}", human_ns(i64::try_from(ns).unwrap_or(most))))
}

/// Which round it is, if the release before it in its cell was aimed at the same; none if it is the
/// first.
pub(super) fn again(target: &Target) -> Option<String> {
    let round = (target.round > 1).then_some(target.round)?;
    Some(format!("round {round}: aimed again, in the course of the release above"))
}

/// `2,000 samples found at most 437.0 us`.
pub(super) fn samples(cell: &AimedCell) -> String {
    let plural = if cell.samples == 1 { "" } else { "s" };
    let count = match cell.samples {
        0 => "no".to_owned(),
        samples => grouped(samples),
    };
    let most = cell.sampled_max_ns.map(|ns| format!(" found at most {}", length(ns)));
    format!("{count} sample{plural}{}", most.unwrap_or_default())
}

/// What was not aimed at although it is longer; none if there is no such section.
#[must_use]
pub fn passed_over(cell: &AimedCell) -> Option<String> {
    let (sections, were) = match cell.passed_over {
        0 => return None,
        1 => ("section", "was"),
        _ => ("sections", "were"),
    };
    let count = grouped(cell.passed_over);
    Some(format!(
        "{count} longer {sections} {were} passed over: the CPU was idle both before and after, so \
         the time is not known exactly"
    ))
}

/// Why a release proves nothing.
pub(super) fn reason(why: &str) -> String {
    if why.trim().is_empty() {
        return "no reason recorded".to_owned();
    }
    words::clean(why).into_owned()
}
