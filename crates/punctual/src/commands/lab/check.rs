//! `punctual lab check`: one kernel, one limit, and an exit status for `git bisect run`.

use std::fs;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::ArgMatches;
use punctual_core::run::LoadedRun;
use punctual_core::schema::{CellState, Outcome};
use punctual_core::units::human_ns;
use punctual_lab::experiment::{Boots, make_folder};
use punctual_report::text::push_wrapped;
use punctual_report::words;
use serde_json::json;

use super::asked;
use super::run::{boot, load};
use crate::ending::Ending;
use crate::output;

/// The result of a check.
struct Judgement {
    /// What there were several of, such as `boots`.
    noun: Noun,
    outcome: Outcome,
    because: Vec<String>,
    worst: Vec<WorstCell>,
}

/// What one run of a check is called, and several.
type Noun = [&'static str; 2];

const BOOTS: Noun = ["boot", "boots"];

/// On a warm board only one kernel was booted, once.
const STARTS: Noun = ["start", "starts from one boot"];

/// The largest sample of one boot.
struct WorstCell {
    run: String,
    max_ns: Option<i64>,
    cell: String,
}

pub fn execute(matches: &ArgMatches) -> anyhow::Result<Ending> {
    // A kernel that is missing or unreadable cannot be judged, but the next one may be.
    match check(matches) {
        Ok(ending) => Ok(ending),
        Err(error) => {
            output::complain(&format!("{error:#}"));
            Ok(Ending::NotJudged)
        }
    }
}

fn check(matches: &ArgMatches) -> anyhow::Result<Ending> {
    let mut experiment = asked::experiment(matches)?;
    anyhow::ensure!(
        experiment.kernels.len() == 1,
        "lab check judges one kernel; {} are given: `punctual lab run` compares several",
        experiment.kernels.len()
    );
    let max_ns = matches.get_one::<u64>("max").copied().unwrap_or_default();
    experiment.plan.deadline_ns = Some(max_ns);
    experiment.plan.tolerate = None;
    experiment.plan.check()?;
    let kept = matches.get_one::<PathBuf>("out");
    let out = kept.cloned().unwrap_or_else(temporary_folder);
    let ready = experiment.prepare()?;
    let folder = Folder { path: make_folder(&out)?, kept: kept.is_some() };
    let json = matches.get_flag("json");
    let quiet = matches.get_flag("quiet") || json;
    let boots = boot(&experiment, &ready, &folder.path, quiet)?;
    if boots.interrupted {
        return Ok(Ending::Interrupted);
    }
    let runs = load(&boots.done, &folder.path);
    let noun = if experiment.warm { STARTS } else { BOOTS };
    let judgement = judge(noun, &boots, &runs);
    if json {
        let boots = judgement
            .worst
            .iter()
            .map(|worst| json!({"run": worst.run, "max_ns": worst.max_ns, "cell": worst.cell}));
        output::print_json(&json!({
            "kernel": experiment.kernels[0].name,
            "max_ns": max_ns,
            "warm": experiment.warm,
            "outcome": judgement.outcome,
            "because": judgement.because,
            "boots": boots.collect::<Vec<_>>(),
        }))?;
    } else {
        let kernel = &experiment.kernels[0].name;
        output::print(&sentences(&judgement, kernel, max_ns, output::line_width()))?;
    }
    Ok(match judgement.outcome {
        Outcome::Pass => Ending::Judged(Outcome::Pass),
        Outcome::Fail => Ending::Judged(Outcome::Fail),
        _ => Ending::NotJudged,
    })
}

/// A sample above the limit is bad whatever else happened, unless something ran that was not
/// meant to, or the turns of several CPUs explain it. A kernel is good only if everything was measured completely.
fn judge(noun: Noun, boots: &Boots, runs: &[LoadedRun]) -> Judgement {
    let worst: Vec<WorstCell> = runs.iter().map(worst_of).collect();
    let failed = boots.done.iter().flat_map(|done| {
        done.end.troubles.iter().map(|trouble| format!("{}: {trouble}", done.place.name))
    });
    let unmeasured = runs.iter().flat_map(|loaded| {
        let cells = loaded.run.cells.iter().filter(|cell| cell.state != CellState::Complete);
        cells.map(|cell| {
            let reason = cell.reason.as_deref().unwrap_or("it was not measured to its end");
            format!("{}: {reason}", words::key_name(&cell.key))
        })
    });
    let mut because: Vec<String> = failed
        .chain(unmeasured)
        .chain(runs.iter().flat_map(|loaded| loaded.run.unrest()))
        .collect();
    because.dedup();
    let outcomes = || runs.iter().map(|loaded| loaded.run.verdict.outcome);
    let mut judged = runs.iter().flat_map(|loaded| loaded.run.cells_at_rest());
    let outcome = if judged.any(|cell| cell.verdict.outcome == Outcome::Fail) {
        Outcome::Fail
    } else if because.is_empty() && !runs.is_empty() && outcomes().all(|o| o == Outcome::Pass) {
        Outcome::Pass
    } else {
        let mut verdicts = runs.iter().map(|loaded| &loaded.run.verdict);
        let open = verdicts.find(|verdict| verdict.outcome != Outcome::Pass);
        because.extend(open.iter().flat_map(|verdict| verdict.because.clone()));
        Outcome::Inconclusive
    };
    Judgement { noun, outcome, because, worst }
}

fn worst_of(loaded: &LoadedRun) -> WorstCell {
    let worst = loaded.run.cells_at_rest().max_by_key(|cell| cell.max_ns());
    WorstCell {
        run: loaded.run.run_id.clone(),
        max_ns: worst.and_then(|cell| cell.max_ns()),
        cell: worst.map(|cell| cell.key.clone()).unwrap_or_default(),
    }
}

fn sentences(judgement: &Judgement, kernel: &str, limit_ns: u64, width: usize) -> String {
    let [one, several] = judgement.noun;
    let mut text = String::new();
    for (number, worst) in judgement.worst.iter().enumerate() {
        let max = worst.max_ns.map_or_else(|| "nothing to judge".to_owned(), human_ns);
        let cell = match worst.cell.as_str() {
            "" => String::new(),
            key => format!(", {}", words::key_name(key)),
        };
        let line = format!("{one} {number}: max {max}{cell}");
        push_wrapped(&mut text, &line, "  ", 4, width);
    }
    let limit = human_ns(i64::try_from(limit_ns).unwrap_or(i64::MAX));
    let boots = judgement.worst.len();
    let last = match judgement.outcome {
        Outcome::Pass => format!("good: {kernel}: at most {limit} in each of {boots} {several}"),
        Outcome::Fail => {
            let over = judgement.worst.iter().filter(|worst| {
                worst.max_ns.is_some_and(|max| u64::try_from(max).is_ok_and(|max| max > limit_ns))
            });
            format!("bad: {kernel}: above {limit} in {} of {boots} {several}", over.count())
        }
        _ => format!("cannot be judged: {kernel}: {}", judgement.because.join("; ")),
    };
    push_wrapped(&mut text, &last, "", 2, width);
    text
}

/// The folder of a check's runs; removed at the end unless it was requested.
struct Folder {
    path: PathBuf,
    kept: bool,
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.kept {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

fn temporary_folder() -> PathBuf {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    std::env::temp_dir().join(format!("punctual-check-{}-{}", std::process::id(), now.as_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_a_check_is_wider_than_the_terminal() {
        let worst = |number: u32, max_ns| WorstCell {
            run: format!("r{number}"),
            max_ns,
            cell: "wakeup:threads=2,policy=rr,interval=250us @ none @ 10s".to_owned(),
        };
        let because =
            vec!["debian-rt-r1: no kernel said anything for 60 s: boot failed".to_owned()];
        for outcome in [Outcome::Pass, Outcome::Fail, Outcome::Inconclusive] {
            let judgement = Judgement {
                noun: STARTS,
                outcome,
                because: because.clone(),
                worst: vec![worst(0, Some(81_500)), worst(1, None)],
            };
            for width in [60, 80, 120] {
                let kernel = "/usr/src/linux-6.18.44/arch/x86/boot/bzImage";
                let text = sentences(&judgement, kernel, 50_000, width);
                assert!(text.lines().all(|line| line.len() <= width), "{width}: {text}");
                assert!(text.contains(" @ idle @ 10s") && !text.contains("none"), "{text}");
            }
        }
    }
}
