//! `punctual lab check`: one kernel, one limit, and an exit status for `git bisect run`.

use std::path::{Path, PathBuf};

use clap::ArgMatches;
use punctual_core::aimed::{AimedCell, AimedRun, Shot};
use punctual_core::run::LoadedRun;
use punctual_core::schema::{CellState, Outcome};
use punctual_core::sections::Section;
use punctual_core::units::{grouped, human_ns};
use punctual_lab::experiment::{Boots, Experiment, make_folder};
use punctual_lab::kernel::{OfKernel, of_kernel};
use punctual_report::text::push_wrapped;
use punctual_report::{aimed, words};
use serde::Serialize;
use serde_json::json;

use super::run::{boot, load};
use super::sections::Watching;
use super::{aim, asked};
use crate::ending::{Ending, GuestFailure};
use crate::output;
use crate::temporary::Temporary;

/// The result of a check.
struct Judgement {
    /// What weakens it.
    labels: Vec<&'static str>,
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
    /// The latest release that was aimed.
    aimed: Option<WorstAimed>,
    /// Longer sections that were not aimed at.
    passed_over: Vec<PassedOver>,
}

/// How many sections of a cell were passed over, though longer than those that were aimed at.
#[derive(Serialize)]
struct PassedOver {
    cell: String,
    sections: u64,
    /// The same in a sentence.
    because: String,
}

/// The latest of the releases that were aimed in the course of one boot.
#[derive(Serialize)]
struct WorstAimed {
    cell: String,
    latency_ns: u64,
    section: Section,
}

/// What is judged.
struct Measured {
    boots: Boots,
    runs: Vec<LoadedRun>,
    /// What was aimed at in each of the runs, with `--aim`.
    aimed: Vec<AimedRun>,
    noun: Noun,
}

/// Boots a kernel, and aims releases if that is wanted. `None` if it was interrupted.
fn measure(
    experiment: Experiment,
    out: &Path,
    aim: Option<usize>,
    quiet: bool,
) -> anyhow::Result<Option<Measured>> {
    let noun = if experiment.warm { STARTS } else { BOOTS };
    if let Some(count) = aim {
        let watching = Watching::new(experiment, out.to_owned(), aim::LONGEST, quiet)?;
        let shot = aim::shoot(&watching, aim::Wish { count, alone: false });
        // A guest was booted, so QEMU and the machine are in order.
        let Some(found) = shot.map_err(of_kernel)? else { return Ok(None) };
        let (boots, runs, aimed) = (found.boots, found.sampled, found.runs);
        return Ok(Some(Measured { boots, runs, aimed, noun }));
    }
    let ready = experiment.prepare().map_err(of_kernel)?;
    let folder = make_folder(out)?;
    let boots = boot(&experiment, &ready, &folder, quiet)?;
    let runs = load(&boots.done, &folder);
    Ok((!boots.interrupted).then_some(Measured { boots, runs, aimed: Vec::new(), noun }))
}

pub fn execute(matches: &ArgMatches) -> anyhow::Result<Ending> {
    match check(matches) {
        Ok(ending) => Ok(ending),
        Err(error) => {
            output::complain(&format!("{error:#}"));
            Ok(ending_of(&error))
        }
    }
}

/// A kernel that was not built or does not boot cannot be judged, but the next one may be. What is
/// wrong whatever the kernel ends the bisection: it would skip one commit after the other.
fn ending_of(error: &anyhow::Error) -> Ending {
    let is_of_kernel = error.is::<OfKernel>() || error.is::<GuestFailure>();
    if is_of_kernel { Ending::NotJudged } else { Ending::NoCheck }
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
    (experiment.plan.tolerate, experiment.plan.tolerate_episodes) = (None, None);
    experiment.plan.check()?;
    let kept = matches.get_one::<PathBuf>("out");
    let temporary = if kept.is_some() { None } else { Some(Temporary::make()?) };
    let out = match &temporary {
        Some(temporary) => temporary.path().join("check"),
        None => kept.cloned().unwrap_or_default(),
    };
    let json = matches.get_flag("json");
    let quiet = matches.get_flag("quiet") || json;
    let (kernel, warm) = (experiment.kernels[0].name.clone(), experiment.warm);
    let Some(measured) = measure(experiment, &out, aim::asked(matches), quiet)? else {
        return Ok(Ending::Interrupted);
    };
    let judgement = judge(&measured, max_ns);
    if json {
        let boots = judgement.worst.iter().map(|worst| {
            let WorstCell { run, max_ns, cell, aimed, passed_over } = worst;
            json!({
                "run": run, "max_ns": max_ns, "cell": cell, "aimed": aimed,
                "passed_over": passed_over,
            })
        });
        output::print_json(&json!({
            "kernel": kernel,
            "max_ns": max_ns,
            "warm": warm,
            "outcome": judgement.outcome,
            "labels": judgement.labels,
            "because": judgement.because,
            "boots": boots.collect::<Vec<_>>(),
        }))?;
    } else {
        output::print(&sentences(&judgement, &kernel, max_ns, output::line_width()))?;
    }
    Ok(match judgement.outcome {
        Outcome::Pass => Ending::Judged(Outcome::Pass),
        Outcome::Fail => Ending::Judged(Outcome::Fail),
        _ => Ending::NotJudged,
    })
}

/// A sample above the limit is bad whatever else happened, unless something ran that was not
/// meant to, or the turns of several CPUs explain it. A kernel is good only if everything was measured completely.
fn judge(measured: &Measured, limit_ns: u64) -> Judgement {
    let Measured { boots, runs, aimed, noun } = measured;
    let mut worst: Vec<WorstCell> = runs.iter().map(worst_of).collect();
    for ((worst, run), aimed) in worst.iter_mut().zip(runs).zip(aimed) {
        worst.aimed = aimed_of(run, aimed);
        worst.passed_over = passed_over(aimed);
    }
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
        .chain(aimed.iter().flat_map(unmeasured_aims))
        .chain(runs.iter().flat_map(|loaded| loaded.run.unrest()))
        .collect();
    because.dedup();
    let outcomes = || runs.iter().map(|loaded| loaded.run.verdict.outcome);
    let mut judged = runs.iter().flat_map(|loaded| loaded.run.cells_at_rest());
    let outcome = outcome_of(
        judged.any(|cell| cell.verdict.outcome == Outcome::Fail),
        worst.iter().any(|worst| worst.is_aimed_above(limit_ns)),
        because.is_empty() && !runs.is_empty() && outcomes().all(|o| o == Outcome::Pass),
    );
    if outcome == Outcome::Inconclusive {
        let mut verdicts = runs.iter().map(|loaded| &loaded.run.verdict);
        let open = verdicts.find(|verdict| verdict.outcome != Outcome::Pass);
        because.extend(open.iter().flat_map(|verdict| verdict.because.clone()));
    }
    let mut labels = words::labels_of(&runs.iter().map(|loaded| &loaded.run).collect::<Vec<_>>());
    // Every board of a check is a virtual one.
    labels.retain(|label| *label != words::VIRTUAL_MACHINE);
    Judgement { labels, noun: *noun, outcome, because, worst }
}

/// Of samples above the limit, aimed releases above it, and whether everything was measured.
fn outcome_of(samples_above: bool, aimed_above: bool, whole: bool) -> Outcome {
    match (samples_above || aimed_above, whole) {
        (true, _) => Outcome::Fail,
        (false, true) => Outcome::Pass,
        (false, false) => Outcome::Inconclusive,
    }
}

/// Why aimed releases prove nothing that were not measured.
fn unmeasured_aims(run: &AimedRun) -> impl Iterator<Item = String> {
    run.cells.iter().flat_map(|cell| {
        // What was aimed again has been measured.
        let first = cell.targets.iter().filter(|target| target.round == 1);
        first.filter_map(|target| match &target.measured {
            Shot::Failed { why } => {
                let number = grouped(target.number);
                Some(format!("{}: aimed release {number}: {why}", words::key_name(&cell.key)))
            }
            Shot::Measured { .. } => None,
        })
    })
}

/// What the aimed releases of a run say nothing about.
fn passed_over(run: &AimedRun) -> Vec<PassedOver> {
    let of_cell = |cell: &AimedCell| {
        let because = aimed::passed_over(cell)?;
        Some(PassedOver { cell: cell.key.clone(), sections: cell.passed_over, because })
    };
    run.cells.iter().filter_map(of_cell).collect()
}

/// The latest aimed release of cells that were at rest.
fn aimed_of(loaded: &LoadedRun, aimed: &AimedRun) -> Option<WorstAimed> {
    let is_at_rest = |key: &str| loaded.run.cells_at_rest().any(|cell| cell.key == key);
    let cells = aimed.cells.iter().filter(|cell| is_at_rest(&cell.key));
    let measured = cells.flat_map(|cell| {
        cell.targets.iter().filter_map(|target| {
            let (cell, section) = (cell.key.clone(), target.section.clone());
            Some(WorstAimed { cell, latency_ns: target.latency_ns()?, section })
        })
    });
    measured.max_by_key(|aimed| aimed.latency_ns)
}

fn worst_of(loaded: &LoadedRun) -> WorstCell {
    let worst = loaded.run.cells_at_rest().max_by_key(|cell| cell.max_ns());
    WorstCell {
        run: loaded.run.run_id.clone(),
        max_ns: worst.and_then(|cell| cell.max_ns()),
        cell: worst.map(|cell| cell.key.clone()).unwrap_or_default(),
        aimed: None,
        passed_over: Vec::new(),
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
        if let Some(aimed) = &worst.aimed {
            push_wrapped(&mut text, &aimed.sentence(), "    ", 6, width);
        }
        for PassedOver { cell, because, .. } in &worst.passed_over {
            let line = format!("{}: {because}", words::key_name(cell));
            push_wrapped(&mut text, &line, "    ", 6, width);
        }
    }
    let limit = human_ns(i64::try_from(limit_ns).unwrap_or(i64::MAX));
    let boots = judgement.worst.len();
    let called = |word| words::labelled(word, &judgement.labels);
    let last = match judgement.outcome {
        Outcome::Pass => {
            format!("{}: {kernel}: at most {limit} in each of {boots} {several}", called("good"))
        }
        Outcome::Fail => {
            let over = judgement.worst.iter().filter(|worst| {
                let sampled = worst.max_ns.and_then(|max| u64::try_from(max).ok());
                sampled.is_some_and(|max| max > limit_ns) || worst.is_aimed_above(limit_ns)
            });
            let (bad, over) = (called("bad"), over.count());
            format!("{bad}: {kernel}: above {limit} in {over} of {boots} {several}")
        }
        _ => format!("cannot be judged: {kernel}: {}", judgement.because.join("; ")),
    };
    push_wrapped(&mut text, &last, "", 2, width);
    text
}

impl WorstCell {
    fn is_aimed_above(&self, limit_ns: u64) -> bool {
        self.aimed.as_ref().is_some_and(|aimed| aimed.latency_ns > limit_ns)
    }
}

impl WorstAimed {
    /// Such as `aimed: 560.6 us at 556.6 us from exit_mmap to put_files_struct, wakeup @ hackbench`.
    fn sentence(&self) -> String {
        let us = |ns| human_ns(i64::try_from(ns).unwrap_or(i64::MAX));
        let Section { length_ns, from, to, .. } = &self.section;
        let between =
            if from == to { format!("in {from}") } else { format!("from {from} to {to}") };
        let cell = words::key_name(&self.cell);
        format!("aimed: {} at {} {between}, {cell}", us(self.latency_ns), us(*length_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_of_a_kernel_is_skipped() {
        let plain = anyhow::anyhow!("there is no qemu-system-x86_64 on this machine");
        assert_eq!(ending_of(&plain), Ending::NoCheck);
        assert_eq!(ending_of(&of_kernel(plain)), Ending::NotJudged);
        let failed = anyhow::anyhow!(GuestFailure("a panic".to_owned())).context("debian-rt-0");
        assert_eq!(ending_of(&failed), Ending::NotJudged);
    }

    fn worst(number: u32, max_ns: Option<i64>) -> WorstCell {
        WorstCell {
            run: format!("r{number}"),
            max_ns,
            cell: "wakeup:threads=2,policy=rr,interval=250us @ none @ 10s".to_owned(),
            aimed: Some(WorstAimed {
                cell: "wakeup:interval=20ms @ hackbench @ 300ms".to_owned(),
                latency_ns: 811_100,
                section: Section {
                    at_ns: 1,
                    exact: true,
                    length_ns: 800_044,
                    interrupts_off_ns: 0,
                    from: "asm_sysvec_apic_timer_interrupt".to_owned(),
                    to: "preempt_schedule_common".to_owned(),
                    stack: Vec::new(),
                    functions: Vec::new(),
                },
            }),
            passed_over: vec![PassedOver {
                cell: "wakeup:interval=20ms @ none @ 300ms".to_owned(),
                sections: 3,
                because: "3 longer sections were passed over: the CPU was idle".to_owned(),
            }],
        }
    }

    #[test]
    fn an_aimed_release_above_the_limit_is_bad_whatever_was_sampled() {
        let on_time = worst(0, Some(20_000));
        assert!(on_time.is_aimed_above(811_099) && !on_time.is_aimed_above(811_100));
        assert!(!WorstCell { aimed: None, ..worst(0, None) }.is_aimed_above(0));
        for whole in [true, false] {
            assert_eq!(outcome_of(false, true, whole), Outcome::Fail);
        }
        assert_eq!(outcome_of(false, false, false), Outcome::Inconclusive);
        assert_eq!(outcome_of(false, false, true), Outcome::Pass);
        let judgement = Judgement {
            labels: vec!["drift"],
            noun: BOOTS,
            outcome: Outcome::Fail,
            because: vec![],
            worst: vec![on_time],
        };
        let text = sentences(&judgement, "k", 750_000, 80);
        assert!(text.ends_with("bad (drift): k: above 750.0 us in 1 of 1 boots\n"), "{text}");
    }

    #[test]
    fn no_line_of_a_check_is_wider_than_the_terminal() {
        let because =
            vec!["debian-rt-r1: no kernel said anything for 60 s: boot failed".to_owned()];
        for outcome in [Outcome::Pass, Outcome::Fail, Outcome::Inconclusive] {
            let judgement = Judgement {
                labels: Vec::new(),
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
                let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
                let aimed = "aimed: 811.1 us at 800.0 us from asm_sysvec_apic_timer_interrupt to \
                             preempt_schedule_common, wakeup:interval=20ms @ hackbench";
                assert!(words.contains(aimed), "{words}");
                let passed_over = "wakeup:interval=20ms @ idle @ 300ms: 3 longer sections were";
                assert!(words.contains(passed_over), "{words}");
            }
        }
    }
}
