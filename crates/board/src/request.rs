//! What `run` and `cost` were asked to do: a plan, and how to run it.

use std::path::PathBuf;

use anyhow::{Context, anyhow, bail};
use punctual_core::aim::Aim;
use punctual_core::dither::Dither;
use punctual_core::params::{Named, split_list};
use punctual_core::plan::{CellPlan, Plan, Subject, phased};
use punctual_core::units::{BareNumber, SECOND_NS};
use punctual_suite::engine::{self, Options, SyncPolicy};
use punctual_suite::{metrics, probes};

use crate::PROGRAM;
use crate::line::{Line, Opt, flag, value};

/// Duration of a cell of a probe, ns.
const PROBE_NS: u64 = 10 * SECOND_NS;

/// Longest duration of a cost, ns.
const COST_NS: u64 = SECOND_NS;

/// What is measured if no probe is given.
const PROBE: &str = "wakeup";

/// Options of both commands.
pub const BOTH: &[Opt] = &[
    value("load", ' '),
    value("duration", 'D'),
    value("out", ' '),
    value("board-name", ' '),
    value("dma-latency", ' '),
    flag("json", ' '),
    flag("quiet", 'q'),
];

/// Options that set a parameter of every probe given that has it.
pub const PARAMS: &[Opt] = &[
    value("threads", 't'),
    value("priority", 'p'),
    value("interval", 'i'),
    value("affinity", 'a'),
    value("policy", ' '),
    value("timer", ' '),
    value("aligned", ' '),
];

/// Other options of probes.
pub const PROBES: &[Opt] = &[
    value("loops", 'l'),
    value("deadline", ' '),
    value("break", 'b'),
    value("warmup", ' '),
    value("keep-above", ' '),
    value("dither", ' '),
    flag("require-rt", ' '),
    flag("force", ' '),
    flag("all-cpus", ' '),
];

/// The plan of `run`: each probe under each load.
///
/// # Errors
/// What is unknown or does not fit together.
pub fn probes(line: &Line) -> anyhow::Result<Plan> {
    let mut named = line.words.iter().flat_map(|word| split_list(word)).collect::<Vec<_>>();
    if named.is_empty() {
        named.push(PROBE.to_owned());
    }
    let samples = line.number("loops")?;
    let mut plan = Plan {
        deadline_ns: line.time_ns("deadline", BareNumber::Refused)?,
        warmup_ns: line.time_ns("warmup", BareNumber::Seconds)?.unwrap_or(SECOND_NS),
        ..Plan::new("command line")
    };
    for text in named {
        let mut named = Named::parse(&text, "")?;
        let entry = probes::find(&named.name).map_err(|error| anyhow!(error))?;
        let known = entry.all_params();
        for option in PARAMS.iter().filter(|option| line.has(option.name)) {
            if known.iter().all(|param| param.name != option.name) {
                bail!("--{}: {} has no such parameter", option.name, named.name);
            }
            // Between parameters a comma would end this one.
            let value = line.get(option.name).unwrap_or_default().replace(',', "+");
            named.params.entry(option.name.to_owned()).or_insert(value);
        }
        let usual = samples
            .and_then(|samples| engine::long_enough_ns(&named, samples))
            .map_or(PROBE_NS, |ns| ns.max(PROBE_NS));
        let subject = Subject::Probe(named.name.clone());
        push(&mut plan, line, &CellPlan { samples, ..cell(subject, &named) }, usual)?;
    }
    finished(plan)
}

/// The plan of `cost`: each metric under each load.
///
/// # Errors
/// What is unknown or may mean several things.
pub fn costs(line: &Line) -> anyhow::Result<Plan> {
    let mut plan = Plan { warmup_ns: 0, ..Plan::new("cost") };
    let mut metrics = Vec::new();
    for name in line.words.iter().flat_map(|word| split_list(word)) {
        metrics.extend(metrics::asked(name.trim()).map_err(|error| anyhow!(error))?);
    }
    let available = metrics.is_empty();
    if available {
        metrics = metrics::summary();
    }
    for named in metrics {
        let subject = Subject::Cost(named.name.clone());
        push(&mut plan, line, &CellPlan { available, ..cell(subject, &named) }, COST_NS)?;
    }
    finished(plan)
}

fn cell(subject: Subject, named: &Named) -> CellPlan {
    CellPlan {
        subject,
        params: named.params.clone(),
        load: String::new(),
        duration_ns: 0,
        samples: None,
        available: false,
    }
}

/// Adds the cell under each load.
fn push(plan: &mut Plan, line: &Line, cell: &CellPlan, usual_ns: u64) -> anyhow::Result<()> {
    let given = line.time_ns("duration", BareNumber::Seconds)?;
    for load in split_list(line.get("load").unwrap_or("none")) {
        let load = load.trim().to_owned();
        let duration_ns = phased::duration_ns(&load, given, usual_ns);
        let cell = CellPlan { load, duration_ns, ..cell.clone() };
        if !plan.cells.contains(&cell) {
            plan.cells.push(cell);
        }
    }
    Ok(())
}

fn finished(plan: Plan) -> anyhow::Result<Plan> {
    plan.check()?;
    engine::canonical(&plan).map_err(|error| anyhow!(error))
}

/// How to run it.
///
/// # Errors
/// An option's value is none.
pub fn options(line: &Line) -> anyhow::Result<Options> {
    let dma_latency_us = match line.get("dma-latency") {
        None => Some(0),
        Some("none") => None,
        Some(text) => Some(text.parse().with_context(|| format!("--dma-latency {text}"))?),
    };
    Ok(Options {
        out: line.get("out").map(PathBuf::from),
        board_name: line.get("board-name").map(str::to_owned),
        dma_latency_us,
        break_ns: line.time_ns("break", BareNumber::Microseconds)?,
        threshold_ns: line.time_ns("keep-above", BareNumber::Refused)?,
        sync: SyncPolicy::Cell,
        group: None,
        replicate: None,
        runs: 1,
        phase_ns: 0,
        dither: line.number("dither")?.map(Dither::of_seed),
        aim: Aim::NONE,
        force: line.has("force"),
        all_cpus: line.has("all-cpus"),
        require_rt: line.has("require-rt"),
        continued: None,
        program: PROGRAM,
        virtual_board: None,
        tool_sha256: None,
        conditions: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Line {
        let words: Vec<_> = text.split_whitespace().map(str::to_owned).collect();
        Line::read(&words, &[BOTH, PARAMS, PROBES]).unwrap()
    }

    fn keys(plan: &anyhow::Result<Plan>) -> Vec<String> {
        plan.as_ref().unwrap().cells.iter().map(CellPlan::key).collect()
    }

    #[test]
    fn cells_are_those_that_punctual_would_measure() {
        assert_eq!(keys(&probes(&line(""))), ["wakeup @ none @ 10s"]);
        assert_eq!(
            keys(&probes(&line(
                "wakeup:timer=posix clock -a 0-1,3 -D 5 --load none,hackbench:groups=4+flood"
            ))),
            [
                "wakeup:affinity=0-1+3,timer=posix @ none @ 5s",
                "wakeup:affinity=0-1+3,timer=posix @ flood+hackbench:groups=4 @ 5s",
                "clock:affinity=0-1+3 @ none @ 5s",
                "clock:affinity=0-1+3 @ flood+hackbench:groups=4 @ 5s",
            ]
        );
        assert_eq!(keys(&probes(&line("-l 100000"))), ["wakeup @ none @ 200s @ 100000 samples"]);
        assert_eq!(keys(&costs(&line("lat.syscall"))), ["lat.syscall @ none @ 1s"]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, says) in [
            ("wakup", "wakeup"),
            ("clock -i 100", "--interval: clock has no such parameter"),
            ("--deadline 5", "deadline"),
            ("--warmup 2x", "warmup"),
            ("-D 0", "duration"),
        ] {
            let error = format!("{:#}", probes(&line(text)).unwrap_err());
            assert!(error.contains(says), "{text}: {error}");
        }
        assert!(options(&line("--dma-latency x")).is_err());
        assert_eq!(options(&line("--dma-latency none")).unwrap().dma_latency_us, None);
    }
}
