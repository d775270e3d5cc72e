//! What `run` was asked to do: a plan, and how to run it.

use std::collections::BTreeMap;

use anyhow::{anyhow, bail};
use clap::ArgMatches;
use clap::parser::ValueSource;
use punctual_core::aim::Aim;
use punctual_core::allowance::Allowance;
use punctual_core::dither::Dither;
use punctual_core::params::{Named, split_list};
use punctual_core::plan::asked::{Asked, AskedError, Names};
use punctual_core::plan::{CellPlan, Plan, Subject, phased};
use punctual_core::units::SECOND_NS;
use punctual_suite::engine::{self, Options, Program, SyncPolicy};
use punctual_suite::harness::phased::PhasedSpec;
use punctual_suite::registry::probe::ProbeEntry;
use punctual_suite::registry::threads::PER_CPU;
use punctual_suite::{costs, loads as known_loads, metrics, probes};

use crate::cli::{self, DEFAULT_DURATION_NS, PROBE_OPTIONS};
use crate::plans;

mod cost;

pub use cost::costs;

/// What a command measures by default.
#[derive(Debug, Clone, Copy)]
pub struct Defaults {
    /// The plan if no probe is given.
    plan: &'static str,
    /// The variant of the plan, if the plan has it.
    variant: Option<&'static str>,
    /// Warm-up of the given probes, ns.
    warmup_ns: Option<u64>,
}

/// The defaults of `run`.
pub const HERE: Defaults = Defaults { plan: plans::DEFAULT, variant: None, warmup_ns: None };

/// The defaults of the lab's commands: a virtual board has no caches to warm, and an hour
/// there takes too long.
pub const LAB: Defaults =
    Defaults { plan: "lab", variant: Some("virtual"), warmup_ns: Some(SECOND_NS / 5) };

/// What `punctual lab history` measures.
pub const HISTORY: Defaults = Defaults { plan: "history", ..LAB };

/// What options of the threads, releases and duration are about if no probe is given, as for a
/// user of cyclictest.
const DEFAULT_PROBE: &str = "wakeup";

/// The plan: first that of `--plan` (the default plan if no probe is given), then every given
/// probe under every load. Options that need a probe mean [`DEFAULT_PROBE`] without one.
///
/// # Errors
/// A message that names what is unknown or does not fit together.
pub fn plan(matches: &ArgMatches, defaults: &Defaults) -> anyhow::Result<Plan> {
    let mut probes: Vec<String> = matches
        .get_many::<String>("probes")
        .into_iter()
        .flatten()
        .flat_map(|text| split_list(text))
        .collect();
    let named_plan = matches.get_one::<String>("plan");
    let costs = given::<String>(matches, "cost");
    let has_default = probes.is_empty() && named_plan.is_none();
    if has_default && costs.is_none() && means_default_probe(matches) {
        probes.push(DEFAULT_PROBE.to_owned());
    }
    let variant = matches.get_one::<String>("variant").map(String::as_str);
    let mut plan = match named_plan {
        Some(name) => named_in(name, variant, defaults)?,
        None if probes.is_empty() && costs.is_none() => plans::load(defaults.plan, None)?,
        None => {
            let plan = Plan::new("command line");
            Plan { warmup_ns: defaults.warmup_ns.unwrap_or(plan.warmup_ns), ..plan }
        }
    };
    if has_default && costs.is_some() {
        cost::refuse_probe_options(matches)?;
    } else if probes.is_empty() {
        let adjustable = named_plan.is_some_and(|name| plans::is_adjustable(name));
        // Whoever names loads and nothing else means the usual measurement under them.
        let takes_loads = adjustable || (has_default && defaults.plan == plans::DEFAULT);
        refuse_cell_options(matches, &plan.name, adjustable, takes_loads)?;
        if takes_loads {
            adjust(matches, &mut plan)?;
        }
    } else {
        plan.cells.extend(cells(matches, &probes)?);
    }
    if let Some(costs) = costs {
        plan.cells.extend(cost::cells(matches, cost::of_option(costs)?)?);
    }
    judgement(matches, &mut plan)?;
    if let Some(warmup) = matches.get_one::<u64>("warmup") {
        plan.warmup_ns = *warmup;
    }
    if matches.get_flag("no-warmup") {
        plan.warmup_ns = 0;
    }
    plan.check()?;
    engine::canonical(&plan).map_err(|error| anyhow!(error))
}

/// Gives the cells of a plan the duration and the loads that are given. A cell is at least as
/// long as the schedule of its load.
fn adjust(matches: &ArgMatches, plan: &mut Plan) -> anyhow::Result<()> {
    let duration = matches.get_one::<u64>("duration").copied();
    let loads = is_given(matches, "load").then(|| loads(matches));
    plan.adjust(duration, loads.as_deref());
    for cell in &mut plan.cells {
        cell.load = placed(matches, &cell.load)?;
        if duration.is_none() {
            cell.duration_ns = cell.duration_ns.max(phased::duration_ns(&cell.load, None, 0));
        }
    }
    Ok(())
}

/// A plan in the requested variant, otherwise in the command's default variant if it has that.
fn named_in(name: &str, variant: Option<&str>, defaults: &Defaults) -> anyhow::Result<Plan> {
    if variant.is_none()
        && defaults.variant.is_some()
        && let Ok(plan) = plans::load(name, defaults.variant)
    {
        return Ok(plan);
    }
    plans::load(name, variant)
}

/// The value of an option that the command may not have.
fn given<'a, T: Clone + Send + Sync + 'static>(matches: &'a ArgMatches, id: &str) -> Option<&'a T> {
    matches.try_get_one(id).ok().flatten()
}

/// Replaces the plan's rule by the one given on the command line.
///
/// # Errors
/// The options do not fit together, or to the plan.
pub fn judgement(matches: &ArgMatches, plan: &mut Plan) -> Result<(), AskedError> {
    if let Some(deadline) = given::<u64>(matches, "deadline") {
        plan.deadline_ns = Some(*deadline);
    }
    if let Some(confidence) = given::<f64>(matches, "confidence") {
        plan.confidence = *confidence;
    }
    let asked = Asked {
        at_most: given::<Allowance>(matches, "at-most").copied(),
        allow: given::<Allowance>(matches, "allow").copied(),
        singly: given::<bool>(matches, "singly").is_some_and(|singly| *singly),
    };
    plan.ask(&asked, Names::OPTIONS)
}

/// This program, as its records name it.
pub const PROGRAM: Program = Program { name: "punctual", version: env!("CARGO_PKG_VERSION") };

/// How to run the plan.
pub fn options(matches: &ArgMatches) -> Options {
    let text = |id: &str| given::<String>(matches, id).cloned();
    let ns = |id: &str| given::<u64>(matches, id).copied();
    let flag = |id: &str| given::<bool>(matches, id).copied().unwrap_or_default();
    Options {
        out: matches.get_one("out").cloned(),
        board_name: text("board-name"),
        dma_latency_us: given::<Option<u32>>(matches, "dma-latency").copied().flatten(),
        break_ns: ns("break"),
        threshold_ns: ns("keep-above"),
        sync: if text("sync").as_deref() == Some("block") {
            SyncPolicy::Block
        } else {
            SyncPolicy::Cell
        },
        group: text("group"),
        replicate: matches.get_one("replicate").copied(),
        runs: 1,
        phase_ns: ns("phase").unwrap_or(0),
        dither: ns("dither").map(Dither::of_seed),
        aim: Aim::NONE,
        force: flag("force"),
        all_cpus: flag("all-cpus"),
        require_rt: flag("require-rt"),
        continued: None,
        program: PROGRAM,
        virtual_board: None,
        tool_sha256: None,
        conditions: Vec::new(),
    }
}

/// Whether an option is given that makes sense only with a probe.
fn means_default_probe(matches: &ArgMatches) -> bool {
    let ids = PROBE_OPTIONS.iter().map(|option| option.name);
    let mut ids = ids.chain(["duration", "loops", "break"]);
    // A command of the lab has no break value.
    matches.get_flag("smp") || ids.any(|id| matches.try_contains_id(id).unwrap_or(false))
}

fn is_given(matches: &ArgMatches, id: &str) -> bool {
    matches.value_source(id) == Some(ValueSource::CommandLine)
}

/// A plan defines its cells completely, unless it is adjustable. An option that would have no effect
/// is an error, not a surprise.
fn refuse_cell_options(
    matches: &ArgMatches,
    plan: &str,
    adjustable: bool,
    takes_loads: bool,
) -> anyhow::Result<()> {
    let ids = PROBE_OPTIONS.iter().map(|option| option.name).chain(["smp", "loops"]);
    let of_loads: &[&str] = if takes_loads { &[] } else { &["load", "load-cpus"] };
    let of_time: &[&str] = if adjustable { &[] } else { &["duration"] };
    let mut ids = ids.chain(of_loads.iter().chain(of_time).copied());
    let Some(id) = ids.find(|id| is_given(matches, id)) else {
        return Ok(());
    };
    let option = spelled(id);
    bail!(
        "{option} needs a probe, such as `wakeup {option} …`: \
         it does not change the cells of the plan \"{plan}\""
    )
}

/// An option as users write it: the short form if there is one.
fn spelled(id: &str) -> String {
    let command = cli::command();
    let run = command.find_subcommand("run");
    let arg = run.and_then(|run| run.get_arguments().find(|arg| arg.get_id() == id));
    arg.map_or_else(|| format!("--{id}"), cli::spelled)
}

fn loads(matches: &ArgMatches) -> Vec<String> {
    let list = split_list(matches.get_one::<String>("load").map_or("none", String::as_str));
    list.iter().map(|load| load.trim().to_owned()).collect()
}

/// The loads of the command line, where they are to run.
fn placed_loads(matches: &ArgMatches) -> anyhow::Result<Vec<String>> {
    let loads = loads(matches);
    if given::<String>(matches, "load-cpus").is_some() && loads.iter().all(|load| load == "none") {
        bail!("--load-cpus needs a load, such as --load hackbench");
    }
    loads.iter().map(|load| placed(matches, load)).collect()
}

/// A load with the CPUs of `--load-cpus`, if they are given.
///
/// # Errors
/// What is wrong with the load or the CPUs.
pub fn placed(matches: &ArgMatches, load: &str) -> anyhow::Result<String> {
    let Some(cpus) = given::<String>(matches, "load-cpus") else {
        return Ok(load.to_owned());
    };
    // On the command line a comma would end the parameter.
    let cpus = cpus.replace(',', "+");
    PhasedSpec::with(load, "cpus", &cpus).map_err(|error| anyhow!("--load-cpus: {error}"))
}

fn cells(matches: &ArgMatches, probes: &[String]) -> anyhow::Result<Vec<CellPlan>> {
    let probes = probes
        .iter()
        .map(|text| named(text))
        .collect::<anyhow::Result<Vec<(Named, Option<&ProbeEntry>)>>>()?;
    let smp = matches.get_flag("smp").then(|| ("threads", PER_CPU.to_owned()));
    let given: BTreeMap<&str, String> = PROBE_OPTIONS
        .iter()
        .filter_map(|option| {
            let text = matches.get_one::<String>(option.name)?;
            // On the command line a comma would end the parameter.
            Some((option.name, text.replace(',', "+")))
        })
        .chain(smp)
        .collect();
    for name in given.keys() {
        if !probes.iter().any(|(named, entry)| takes(named, *entry, name)) {
            let list: Vec<_> = probes.iter().map(|(named, _)| named.name.as_str()).collect();
            let knows = probes::there().filter(|entry| has(entry, name)).map(|entry| entry.name);
            bail!(
                "{}: {} has no parameter \"{name}\"; probes that have it: {}",
                spelled(name),
                list.join(", "),
                knows.collect::<Vec<_>>().join(", ")
            );
        }
    }
    let samples = matches.get_one::<u64>("loops").copied();
    let is_cost = |name: &str| costs::find(name).is_ok();
    if samples.is_some() && probes.iter().all(|(named, _)| is_cost(&named.name)) {
        bail!(
            "{}: a cost is repeated until it is known well enough, or for --duration; only probes \
             have samples",
            spelled("loops")
        );
    }
    let loads = placed_loads(matches)?;
    let mut cells = Vec::new();
    for (mut named, entry) in probes {
        let taken: Vec<_> = given.iter().filter(|(name, _)| takes(&named, entry, name)).collect();
        for (name, text) in taken {
            named.params.entry((*name).to_owned()).or_insert_with(|| text.clone());
        }
        let given = matches.get_one::<u64>("duration").copied();
        let usual = samples
            .and_then(|samples| engine::long_enough_ns(&named, samples))
            .map_or(DEFAULT_DURATION_NS, |ns| ns.max(DEFAULT_DURATION_NS));
        cells.extend(loads.iter().map(|load| CellPlan {
            subject: subject(&named.name),
            params: named.params.clone(),
            load: load.clone(),
            duration_ns: phased::duration_ns(load, given, usual),
            samples: samples.filter(|_| !is_cost(&named.name)),
            available: false,
        }));
    }
    Ok(cells)
}

/// A probe with its parameters. The entry is `None` for a cost, which has no threads and
/// releases. A probe that is only planned is an error here; a plan may name it.
fn named(text: &str) -> anyhow::Result<(Named, Option<&'static ProbeEntry>)> {
    let named = Named::parse(text, "").map_err(|error| anyhow!("probe \"{text}\": {error}"))?;
    if probes::find(&named.name).is_err() && known_loads::find(&named.name).is_some() {
        bail!(of_load(text, &named.name));
    }
    if probes::find(&named.name).is_err()
        && let Some(cost) = metrics::named(text).map_err(|error| anyhow!(error))?
    {
        return Ok((cost, None));
    }
    if probes::find(&named.name).is_err() && plans::find(&named.name).is_some() {
        bail!("\"{0}\" is a plan: write --plan {0}", named.name);
    }
    let entry = probes::find(&named.name).map_err(|error| anyhow!(error))?;
    if entry.is_planned() {
        bail!(
            "the probe {} is planned, not in this version; `punctual list probes` names those \
             that are there",
            named.name
        );
    }
    Ok((named, Some(entry)))
}

/// What to write instead of a load that stands in the place of a probe. One name may be that of a
/// load and of a cost, and neither is meant more than the other.
fn of_load(text: &str, name: &str) -> String {
    match metrics::named(text) {
        Ok(Some(cost)) => format!(
            "\"{name}\" is a load and a cost: --load {text} measures under this load, and the probe \
             {cost} is the cost"
        ),
        _ => format!("\"{name}\" is a load: write --load {text}"),
    }
}

fn subject(name: &str) -> Subject {
    match costs::find(name) {
        Ok(_) => Subject::Cost(name.to_owned()),
        Err(_) => Subject::Probe(name.to_owned()),
    }
}

/// Whether an option becomes a parameter of the probe; costs have none of them.
fn takes(named: &Named, entry: Option<&ProbeEntry>, name: &str) -> bool {
    costs::find(&named.name).is_err() && entry.is_none_or(|entry| has(entry, name))
}

fn has(entry: &ProbeEntry, name: &str) -> bool {
    entry.all_params().iter().any(|param| param.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> anyhow::Result<Plan> {
        let words = ["punctual", "run"].into_iter().chain(line.split_whitespace());
        let words: Vec<_> = words.map(std::ffi::OsString::from).collect();
        let matches = cli::read(&words)?;
        plan(matches.subcommand().unwrap().1, &HERE)
    }

    fn keys(line: &str) -> Vec<String> {
        read(line).unwrap().cells.iter().map(CellPlan::key).collect()
    }

    #[test]
    fn cells_are_probes_under_loads_in_order() {
        assert_eq!(
            keys("wakeup clock:margin=20% --load none,hackbench:groups=4,loops=20+flood -D 5"),
            [
                "wakeup @ none @ 5s",
                "wakeup @ flood+hackbench:groups=4,loops=20 @ 5s",
                "clock:margin=20% @ none @ 5s",
                "clock:margin=20% @ flood+hackbench:groups=4,loops=20 @ 5s",
            ]
        );
    }

    #[test]
    fn a_load_that_changes_on_a_schedule_is_one_cell_as_long_as_the_schedule() {
        let load = "none,none for 5s then tree+hackbench:groups=4,loops=20 for 10s";
        let keys = |more: &[&str]| -> anyhow::Result<Vec<String>> {
            let words = [&["punctual", "run", "wakeup", "--load", load], more].concat();
            let words: Vec<_> = words.into_iter().map(std::ffi::OsString::from).collect();
            let plan = plan(cli::read(&words)?.subcommand().unwrap().1, &HERE)?;
            Ok(plan.cells.iter().map(CellPlan::key).collect())
        };
        let phased = "none for 5s then hackbench:groups=4,loops=20+tree for 10s";
        let of = |plain: &str, length: &str| {
            ["wakeup @ none @ ".to_owned() + plain, format!("wakeup @ {phased} @ {length}")]
        };
        assert_eq!(keys(&[]).unwrap(), of("10s", "15s"));
        assert_eq!(keys(&["-D", "1m"]).unwrap(), of("1min", "1min"));
        let said = keys(&["-D", "14s"]).unwrap_err().to_string();
        assert!(said.contains("takes 15s; measure for that long"), "{said}");
    }

    #[test]
    fn options_become_parameters_of_probes_that_have_them() {
        assert_eq!(
            keys("wakeup:interval=2ms wakeup clock -i 500 -a 0-1,3 --timer posix"),
            [
                "wakeup:affinity=0-1+3,interval=2ms,timer=posix @ none @ 10s",
                "wakeup:affinity=0-1+3,interval=500us,timer=posix @ none @ 10s",
                "clock:affinity=0-1+3 @ none @ 10s",
            ]
        );
    }

    #[test]
    fn options_of_threads_releases_and_duration_mean_wakeup() {
        for (line, key) in [
            ("-p 70", "wakeup:priority=70 @ none @ 10s"),
            ("-i 200", "wakeup:interval=200us @ none @ 10s"),
            ("-t 2", "wakeup:threads=2 @ none @ 10s"),
            ("-t", "wakeup:threads=per-cpu @ none @ 10s"),
            ("-a 0", "wakeup:affinity=0 @ none @ 10s"),
            ("-a", "wakeup:affinity=auto @ none @ 10s"),
            ("-l 9", "wakeup @ none @ 10s @ 9 samples"),
            ("-D 5", "wakeup @ none @ 5s"),
            ("-b 100", "wakeup @ none @ 10s"),
            ("-S", "wakeup:threads=per-cpu @ none @ 10s"),
            (
                "-m -Sp90 -i200 -q -D 5m",
                "wakeup:interval=200us,priority=90,threads=per-cpu @ none @ 5min",
            ),
            ("-S --load paper", "wakeup:threads=per-cpu @ paper @ 10s"),
        ] {
            assert_eq!(keys(line), [key], "{line}");
        }
        assert_eq!(keys("-S clock"), ["clock:threads=per-cpu @ none @ 10s"]);
        // What does not say how to measure leaves the standard plan.
        for line in ["", "--deadline 1ms", "-q", "-m", "--no-warmup"] {
            assert_eq!(read(line).unwrap().name, plans::DEFAULT, "{line}");
        }
        for line in ["-S --plan standard", "-D 5 --plan lab", "--plan lab --load paper", "-S -t 2"]
        {
            assert!(read(line).is_err(), "{line}");
        }
    }

    #[test]
    fn loads_alone_are_those_of_the_standard_plan() {
        let keys = |words: &[&str]| -> Vec<String> {
            let words = ["punctual", "run"].iter().chain(words).map(std::ffi::OsString::from);
            let words: Vec<_> = words.collect();
            let plan = plan(cli::read(&words).unwrap().subcommand().unwrap().1, &HERE).unwrap();
            assert_eq!((&*plan.name, plan.deadline_ns), (plans::DEFAULT, Some(1_000_000)));
            plan.cells.iter().map(CellPlan::key).collect()
        };
        let key = |load: &str, length: &str| format!("wakeup:threads=per-cpu @ {load} @ {length}");
        assert_eq!(keys(&["--load", "flood"]), [key("flood", "30s")]);
        assert_eq!(keys(&["--load", "paper,none"]), [key("paper", "30s"), key("none", "30s")]);
        assert_eq!(keys(&["--load", "flood", "--load-cpus", "0"]), [key("flood:cpus=0", "30s")]);
        for (first, length) in [("5s", "30s"), ("1min", "70s")] {
            let load = format!("none for {first} then flood for 10s");
            assert_eq!(keys(&["--load", &load]), [key(&load, length)], "{load}");
        }
        let lab = |line: &str| {
            let words: Vec<_> = line.split_whitespace().map(std::ffi::OsString::from).collect();
            let matches = cli::read(&words).unwrap();
            plan(matches.subcommand().unwrap().1.subcommand().unwrap().1, &LAB)
        };
        assert!(lab("punctual lab run --load paper").is_err(), "its plan is frozen");
    }

    #[test]
    fn a_load_in_the_place_of_a_probe_is_answered_with_its_option() {
        for (line, expected) in [
            ("paper", "\"paper\" is a load: write --load paper"),
            (
                "wakeup hackbench",
                "\"hackbench\" is a load and a cost: --load hackbench measures under this load, and \
                 the probe time.hackbench is the cost",
            ),
        ] {
            assert_eq!(read(line).unwrap_err().to_string(), expected, "{line}");
        }
        assert_eq!(keys("time.hackbench"), ["time.hackbench @ none @ 10s"]);
    }

    #[test]
    fn an_adjustable_plan_takes_durations_and_loads_and_nothing_else() {
        let plan = read("--plan full -D 2s --load none,hackbench").unwrap();
        let whole = read("--plan full").unwrap();
        assert_eq!(plan.cells.len(), 2 * whole.cells.len());
        assert!(plan.cells.iter().all(|cell| cell.duration_ns == 2 * SECOND_NS));
        assert_eq!(
            (plan.cells[0].load.as_str(), plan.cells[1].load.as_str()),
            ("none", "hackbench")
        );
        assert!(read("--plan full -t 2").is_err() && read("--plan full -l 9").is_err());
        // Those of a given probe do not change the plan.
        assert!(keys("--plan full sim -D 2s").iter().any(|key| key == "clock @ none @ 5s"));
    }

    #[test]
    fn a_planned_probe_is_an_error_with_words() {
        for line in ["respond-net", "wakeup respond-net:rate=9 -t 1 -D 1", "respond-net -l 9"] {
            let error = read(line).unwrap_err().to_string();
            assert!(error.starts_with("the probe respond-net is planned"), "{line}: {error}");
        }
        assert!(read("rtd").is_err());
    }

    #[test]
    fn a_variant_is_one_of_the_plan() {
        let plan = read("--plan koolwal-geode --variant virtual").unwrap();
        assert_eq!(plan.name, "koolwal-geode, variant virtual");
        let error = read("--plan koolwal-geode --variant x").unwrap_err();
        assert!(format!("{error:#}").contains("it has: virtual"), "{error:#}");
        assert!(read("--variant virtual").is_err(), "a variant needs a plan");
    }

    #[test]
    fn one_measurement_has_one_key() {
        for line in ["wakeup", "wakeup -i 1000 -t 1", "wakeup:interval=1000us,timer=nanosleep"] {
            assert_eq!(keys(line), ["wakeup @ none @ 10s"], "{line}");
        }
        assert_eq!(keys("wakeup -i 60s"), ["wakeup:interval=60s @ none @ 10s"]);
        assert_eq!(keys("wakeup -p 80"), ["wakeup:priority=80 @ none @ 10s"]);
    }

    #[test]
    fn samples_alone_have_time_enough() {
        assert_eq!(keys("wakeup -l 100000"), ["wakeup @ none @ 200s @ 100000 samples"]);
        assert_eq!(keys("wakeup -l 9 -D 1"), ["wakeup @ none @ 1s @ 9 samples"]);
        assert_eq!(keys("clock -l 9"), ["clock @ none @ 10s @ 9 samples"]);
    }

    #[test]
    fn a_cost_has_no_samples_to_end_after() {
        assert_eq!(
            keys("wakeup lat.syscall -l 9 -D 1"),
            ["wakeup @ none @ 1s @ 9 samples", "lat.syscall @ none @ 1s"]
        );
        let error = read("lat.syscall -l 9").unwrap_err().to_string();
        assert!(error.starts_with("-l: a cost"), "{error}");
    }

    #[test]
    fn a_plan_is_judged_as_the_command_line_says() {
        let plan = read("--deadline 200us --no-warmup --confidence 0.99").unwrap();
        assert_eq!(plan.name, plans::DEFAULT);
        assert_eq!((plan.deadline_ns, plan.warmup_ns), (Some(200_000), 0));
        assert_eq!(plan.confidence.to_bits(), 0.99_f64.to_bits());
        assert_eq!(keys("--plan standard sim -D 3").len(), 3);
    }
}
