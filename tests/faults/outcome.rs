//! Whether a run with a fault ended as it must.

use std::os::unix::process::ExitStatusExt;

use punctual_harness::count;
use serde_json::Value;

use crate::cases::Case;
use crate::run::{RELEASES, Ran};

/// How a run ended, all of it right but [`Outcome::Wrong`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// The run ended before the call was made so often.
    NotReached,
    /// Exit 0, and everything is there: the call was tried again, or its result not needed.
    Whole,
    /// Exit 0, and what is missing is said, in the record or on stderr.
    Noted,
    /// Exit 4: a cell was skipped, and says why.
    Skipped,
    /// Exit 2, with a message.
    Error,
    /// Ended by the allocator, which had been refused memory.
    OutOfMemory,
    /// Anything else: a hang, a silent loss, a wrong exit status, something left behind.
    Wrong(String),
}

impl Outcome {
    /// Its column in the table.
    pub const NAMES: [&str; 7] = ["unmet", "whole", "noted", "skipped", "error", "memory", "wrong"];

    /// What the columns mean.
    pub const MEANING: &str = "\
unmet    the run ended before the call was made so often, or it was one that cannot fail
whole    exit 0, and everything is there: the call was repeated, or its result not needed
noted    exit 0, and the record or stderr says what is missing
skipped  exit 4, and the record says why
error    exit 2, with a message
memory   ended by the allocator, which had been refused memory
wrong    anything else: it hung, or lost something in silence, or ended with another status, or
         did not read back, or left a process or a folder behind";

    pub fn name(&self) -> &'static str {
        Self::NAMES[match self {
            Self::NotReached => 0,
            Self::Whole => 1,
            Self::Noted => 2,
            Self::Skipped => 3,
            Self::Error => 4,
            Self::OutOfMemory => 5,
            Self::Wrong(_) => 6,
        }]
    }
}

pub fn judge(case: &Case, ran: &Ran) -> Outcome {
    match try_judge(case, ran) {
        Ok(outcome) => outcome,
        Err(what) => Outcome::Wrong(format!("{case}: {what}; stderr: {:?}", ran.stderr.trim())),
    }
}

fn try_judge(case: &Case, ran: &Ran) -> Result<Outcome, String> {
    let status = ran.status.ok_or("it hung")?;
    if !ran.left.is_empty() {
        return Err(format!("processes are left: {:?}", ran.left));
    }
    if !ran.not_restored.is_empty() {
        return Err(format!("not restored: {:?}", ran.not_restored));
    }
    if let Some(read_back) = ran.read_back
        // It ends with the run's verdict if it reads it.
        && !matches!(read_back, (Some(0 | 1 | 3 | 4 | 5), Some(0)))
    {
        return Err(format!("does not read back: show, report ended with {read_back:?}"));
    }
    // To close a folder cannot fail, and std panics at it; strace cannot tell it from a file.
    if !ran.injected || ran.stderr.contains("unexpected error during closedir") {
        return Ok(Outcome::NotReached);
    }
    let record = ran.record.as_ref();
    match status.code() {
        Some(0) => {
            let record = record.ok_or("exit 0 without run.json")?;
            measured(record)?;
            let said = is_said(record, ran);
            nothing_lost_silently(case, ran, said)?;
            Ok(if said { Outcome::Noted } else { Outcome::Whole })
        }
        Some(4) => {
            let cells = record.and_then(|run| run["cells"].as_array()).ok_or("exit 4, no cells")?;
            let skipped = cells.iter().filter(|cell| cell["state"] == "skipped");
            let reasons: Vec<_> = skipped.filter_map(|cell| cell["reason"].as_str()).collect();
            if reasons.is_empty() || reasons.iter().any(|reason| reason.is_empty()) {
                return Err("exit 4, and no cell says why it was skipped".to_owned());
            }
            Ok(Outcome::Skipped)
        }
        Some(2) => {
            let failed = record.filter(|run| run["state"] == "failed");
            let told = failed.is_some_and(|run| tells_why(run, &ran.stdout));
            if !told && !ran.stderr.contains("punctual: ") {
                return Err("exit 2 without a message".to_owned());
            }
            // What stopped the program after a whole run is not in the run's record.
            record.filter(|run| run["state"] == "complete").map_or(Ok(()), measured)?;
            Ok(Outcome::Error)
        }
        // Before main nobody can say anything.
        _ if case.takes_memory() && (record.is_none() || !ran.stderr.is_empty()) => {
            Ok(Outcome::OutOfMemory)
        }
        Some(code) => Err(format!("exit {code}")),
        None => Err(format!("ended by signal {}", status.signal().unwrap_or(0))),
    }
}

/// Whether a cell that has failed gives its reason, and the summary does so too, however it is
/// wrapped.
fn tells_why(run: &Value, summary: &str) -> bool {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let summary = words(summary);
    let cells = run["cells"].as_array().into_iter().flatten();
    let mut reasons = cells.filter_map(|cell| cell["reason"].as_str());
    reasons.any(|reason| !reason.is_empty() && summary.contains(&words(reason)))
}

/// Every cell has every release.
fn measured(run: &Value) -> Result<(), String> {
    if run["state"] != "complete" {
        return Err(format!("the run's state is {}", run["state"]));
    }
    for cell in run["cells"].as_array().ok_or("no cells")? {
        if cell["state"] != "complete" {
            return Err(format!("exit 0, and a cell is {}: {}", cell["state"], cell["reason"]));
        }
        let (scheduled, samples) = (count(cell, "scheduled"), count(cell, "samples"));
        // Who injects them is a debugger, which is known to stop the process.
        let stops = cell["stops"].as_array().into_iter().flatten();
        let left_out: u64 = stops.map(|stop| count(stop, "samples") + count(stop, "missed")).sum();
        if scheduled + left_out != RELEASES || scheduled != samples + count(cell, "missed") {
            return Err(format!("{samples} samples of {scheduled} releases, {RELEASES} asked for"));
        }
    }
    Ok(())
}

/// Whether record or stderr speak of any trouble.
fn is_said(run: &Value, ran: &Ran) -> bool {
    const TROUBLE: [&str; 3] = ["not-written", "incomplete", "load-trouble"];
    let cells = run["cells"].as_array().into_iter().flatten();
    let conditions = cells.flat_map(|cell| cell["conditions"].as_array().into_iter().flatten());
    let ids = conditions.filter_map(|condition| condition["id"].as_str());
    !ran.stderr.trim().is_empty()
        || ids.into_iter().any(|id| TROUBLE.iter().any(|part| id.contains(part)))
}

fn nothing_lost_silently(case: &Case, ran: &Ran, said: bool) -> Result<(), String> {
    if said {
        return Ok(());
    }
    for name in ["blocks", "histograms"] {
        if !ran.files.iter().any(|file| file == name) {
            return Err(format!("exit 0, no {name}, and no word"));
        }
    }
    if !ran.page {
        return Err("exit 0, no whole report.html, and no word".to_owned());
    }
    // After ENOSPC it is tried again, with the room that the run has reserved; run.json and its
    // directory are synced several times, and the last time counts.
    let counts = case.call == "fdatasync" || (case.call == "fsync" && case.last);
    if counts && case.error == "EIO" && !case.scenario.load.contains("disk") {
        return Err("what could not be forced to disk is not said".to_owned());
    }
    Ok(())
}
