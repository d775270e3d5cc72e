//! Notes on runs, cells and loads besides their numbers.

use punctual_core::compare::{Method, Replicates};
use punctual_core::key;
use punctual_core::run::LoadedRun;
use punctual_core::schema::{Cell, CellState, CostEnd, Counter, Latency, LoadWork, RunState};
use punctual_core::units::{grouped, human_ns};

use super::clean;
use super::numbers::rate;
use super::phases::part_name;
use crate::data::is_signed;
use crate::latest;

/// How to read the tables of replicates; `noun` is [`super::side_noun`].
#[must_use]
pub fn spread_note(noun: &str) -> String {
    format!(
        "Over the runs of each {noun}: median (lowest to highest), or the median alone. The median \
         of an even number of runs is the mean of the middle two. A ratio is that to the first \
         {noun}: half of all pairs of a run of each have a larger one."
    )
}

/// What the intervals of ratios are by, and when they hold.
#[must_use]
pub fn estimates_note(replicates: &Replicates) -> String {
    let is = |method| replicates.estimates.iter().any(|estimate| estimate.method == method);
    let by = |method| match method {
        Method::RankSum => {
            "By rank sums, with fewer than 6 runs of a kernel: intervals hold if the runs of both \
             kernels differ by a factor only."
        }
        Method::BrunnerMunzel => {
            "By the test of Brunner and Munzel: intervals hold, to a percent or so, however much \
             more the runs of one kernel spread."
        }
    };
    let methods = [Method::BrunnerMunzel, Method::RankSum].into_iter().filter(|method| is(*method));
    methods.map(by).collect::<Vec<_>>().join(" ")
}

/// Notes on a run that did not end as planned, or was not measured by punctual.
#[must_use]
pub fn run_notes(loaded: &LoadedRun) -> Vec<String> {
    let run = &loaded.run;
    let mut notes = Vec::new();
    match run.state {
        RunState::Complete => {}
        RunState::Running => {
            let what = match run.board.lab {
                Some(_) => {
                    "its guest failed or was terminated (see console.log in the run directory)"
                }
                None => "punctual was killed before the run ended",
            };
            notes.push(format!("cut short: {what}; these are the results up to then"));
        }
        RunState::Interrupted => notes.push(
            "interrupted: the plan was not completed; these are the results up to then".to_owned(),
        ),
        RunState::Failed => {
            notes.push(
                "failed: an error ended the run; these are the results up to then".to_owned(),
            );
        }
    }
    if run.origin == punctual_core::schema::Origin::Imported {
        notes.push("imported: measured by another tool, not by punctual".to_owned());
    }
    notes.extend(loaded.damage.iter().map(|text| clean(text).into_owned()));
    notes
}

/// Notes on a cell besides its numbers: how it ended, what was missed, early or
/// left out.
#[must_use]
pub fn cell_notes(cell: &Cell) -> Vec<String> {
    let mut notes = Vec::new();
    let reason = cell.reason.as_deref().map(clean);
    let because = reason.as_deref().map_or_else(String::new, |reason| format!(": {reason}"));
    match cell.state {
        CellState::Complete | CellState::Pending | CellState::Skipped => {}
        CellState::Running => notes.push("cut short while it was measured".to_owned()),
        CellState::Interrupted => notes.push(format!("ended early{because}")),
        CellState::Failed => notes.push(format!("ended by an error{because}")),
        CellState::Recovered => notes.push(
            "recovered after a crash: quantiles are at most 25 % too high, all else is exact"
                .to_owned(),
        ),
    }
    if let Some(latency) = cell.latency() {
        notes.extend(latency_notes(latency));
    }
    notes.extend(stolen(cell));
    notes.extend(cell.conditions.iter().map(|c| {
        let text = latest::note(cell, &c.id, &c.text);
        clean(text.as_deref().unwrap_or(&c.text)).into_owned()
    }));
    notes
}

/// That the hypervisor may be why samples are late, unless a condition says so with the time that it
/// took. Nothing else can be in made-up ones.
fn stolen(cell: &Cell) -> Option<String> {
    if cell.conditions.iter().any(|condition| condition.id == "steal") {
        return None;
    }
    let share = cell.steal.filter(|share| *share > 0.0 && !cell.is_simulated())?;
    let latency = cell.latency().filter(|latency| latency.stats.samples > 0)?;
    Some(format!(
        "the hypervisor gave {:.1} % of the CPUs' time to others (steal): a possible cause of the \
         longest {}",
        share * 100.0,
        clean(&latency.primary.nouns)
    ))
}

fn latency_notes(latency: &Latency) -> Vec<String> {
    let mut notes = Vec::new();
    let stats = &latency.stats;
    if stats.missed > 0 {
        let corrected = stats.corrected.p999.map_or_else(String::new, |p999| {
            format!("; counted with their actual delay, p99.9 is {}", human_ns(p999))
        });
        notes.push(format!(
            "{} of {} releases missed{corrected}",
            grouped(stats.missed),
            grouped(stats.scheduled)
        ));
    }
    if is_signed(stats) {
        let least =
            stats.min.map_or_else(String::new, |min| format!(", the least {}", human_ns(min)));
        notes.push(format!(
            "{} of {} {} below zero{least}",
            grouped(stats.early),
            grouped(stats.samples),
            clean(&latency.primary.nouns)
        ));
    } else if stats.early > 0 {
        let least = stats.min.map_or_else(String::new, |min| {
            format!(", the earliest by {}", human_ns(min.saturating_neg()))
        });
        notes.push(format!("{} samples early{least}", grouped(stats.early)));
    }
    for thread in &latency.threads {
        if let Some(changed) = &thread.placement.changed {
            notes.push(format!("thread {}: {}", thread.thread, clean(changed)));
        }
    }
    for helper in &latency.helpers {
        if let Some(changed) = &helper.placement.changed {
            notes.push(format!("{}: {}", clean(&helper.name), clean(changed)));
        }
    }
    notes
}

/// A counter: how many of what.
#[must_use]
pub fn counter(counter: &Counter) -> String {
    format!("{} {} ({})", grouped(counter.total), clean(&counter.name), clean(&counter.meaning))
}

/// The counters of a cell that counted anything, marked if that makes its numbers suspect.
pub fn counter_notes(cell: &Cell) -> impl Iterator<Item = String> {
    cell.counters.iter().filter(|one| one.total > 0).map(|one| {
        let mark = if one.is_bad() { "! " } else { "" };
        format!("{mark}{}", counter(one))
    })
}

/// Why a cell has no numbers; none if it has some.
#[must_use]
pub fn absence(cell: &Cell) -> Option<String> {
    let reason = || {
        let reason = cell.reason.as_deref().unwrap_or("no reason recorded");
        clean(reason).into_owned()
    };
    let nothing = if cell.cost().is_some() { "no value" } else { "no samples" };
    match cell.state {
        CellState::Skipped => Some(format!("SKIPPED: {}", reason())),
        CellState::Pending => Some("not started".to_owned()),
        _ if cell.is_measured() || is_below_measurable(cell) => None,
        CellState::Failed => Some(format!("{nothing}: {}", reason())),
        _ => Some(nothing.to_owned()),
    }
}

fn is_below_measurable(cell: &Cell) -> bool {
    cell.cost().is_some_and(|cost| cost.end == Some(CostEnd::NotMeasurable))
}

/// The parts of a cell's load; the load `none` has none.
pub fn parts(cell: &Cell) -> impl Iterator<Item = &LoadWork> {
    cell.load_work.iter().filter(|part| part.load != key::NO_LOAD || part.trouble.is_some())
}

/// What the load of a cell did, in a line; none for the load `none`.
#[must_use]
pub fn load_note(cell: &Cell) -> Option<String> {
    let parts: Vec<_> = parts(cell).map(work).collect();
    (!parts.is_empty()).then(|| format!("load: {}", parts.join(" · ")))
}

/// What keeps the processes of a load together, by the name that is recorded.
#[must_use]
pub fn containment(name: &str) -> String {
    match name {
        "pid-namespace" => "contained in a PID namespace".to_owned(),
        "user-namespace" => "contained in a user namespace".to_owned(),
        "cgroup" => "contained in a cgroup".to_owned(),
        "subreaper" => "contained by a subreaper".to_owned(),
        "none" => "not contained".to_owned(),
        name => format!("contained by {}", clean(name)),
    }
}

/// What a part of the load did: `hackbench 41.2 MB/s, 512 forks/s`.
#[must_use]
pub fn work(part: &LoadWork) -> String {
    let rates: Vec<_> =
        part.counters.iter().map(|counter| rate(&counter.name, counter.per_second)).collect();
    let mut text = format!("{} {}", part_name(part), rates.join(", "));
    if part.idle_seconds > 0 {
        text.push_str(&format!(", idle for {} s", grouped(part.idle_seconds)));
    }
    if part.restarts > 0 {
        text.push_str(&format!(", restarted {} times", grouped(part.restarts)));
    }
    if part.deaths > 0 {
        text.push_str(&format!(", died {} times", grouped(part.deaths)));
    }
    if let Some(trouble) = &part.trouble {
        text.push_str(&format!(" ({})", clean(trouble)));
    }
    text
}

/// Texts of several runs, each once, in their order.
pub fn once<'a>(texts: impl IntoIterator<Item = &'a String>) -> Vec<&'a str> {
    let mut known: Vec<&str> = Vec::new();
    for text in texts {
        if !known.contains(&text.as_str()) {
            known.push(text);
        }
    }
    known
}
