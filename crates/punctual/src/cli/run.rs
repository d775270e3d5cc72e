//! The command `run`.

use std::path::PathBuf;

use clap::{Arg, ArgAction, Command, ValueHint};
use punctual_core::plan::Plan;
use punctual_core::units::{BareNumber, SECOND_NS, exact_duration};
use punctual_suite::registry::Param;
use punctual_suite::registry::placement::PLACE_PARAMS;
use punctual_suite::{loads, probes};

use super::args::{duration, judgement, positive_seconds};
use crate::plans::PLANS;

/// Default duration of a cell, ns.
pub const DEFAULT_DURATION_NS: u64 = 10 * SECOND_NS;

/// An option that sets a parameter of the given probes.
pub struct ProbeOption {
    /// The parameter, which is also the long name of the option.
    pub name: &'static str,
    short: Option<char>,
    /// Text to append to the parameter's help.
    note: &'static str,
}

const fn option(name: &'static str, short: Option<char>, note: &'static str) -> ProbeOption {
    ProbeOption { name, short, note }
}

/// The options that set probe parameters; the registry defines their values.
pub static PROBE_OPTIONS: &[ProbeOption] = &[
    option("threads", Some('t'), "; bare -t means per-cpu"),
    option("priority", Some('p'), ""),
    option("interval", Some('i'), "; a bare number is in microseconds"),
    option("affinity", Some('a'), "; bare -a means auto"),
    option("policy", None, ""),
    option("timer", None, ""),
    option("aligned", None, "; a bare number is in microseconds"),
];

/// What each verdict means, and how a command ends by it.
pub(super) const EXIT_STATUS: &str = "\
Exit status:
    0  PASS: never later than the deadline, for long enough to show that
       lateness begins at most as often as was asked, under this load; of a
       soft deadline, no more lateness than is allowed; or nothing to judge
    1  FAIL: later than the deadline; of a soft one, more than is allowed
    2  usage error, or an error of punctual or of the board
    3  INCONCLUSIVE: neither is shown; it says what is missing
    4  SKIPPED: a prerequisite of something that was asked for is missing
    5  BREAK: a sample was above the break value, and no deadline was missed
  130  interrupted; what was measured is kept and reported
The worst cell counts, in the order FAIL, BREAK, INCONCLUSIVE, SKIPPED, PASS.";

const EXAMPLES: &str = r#"Examples:
  sudo punctual run
      the standard plan, about a minute
  sudo punctual run --deadline 200us
      the same, judged against 200 us
  sudo punctual run wakeup -t per-cpu -i 250 -D 1h --deadline 100us \
      --load none,hackbench+flood
      two cells, an hour each: idle, and under two loads together
  sudo punctual run wakeup:timer=posix wakeup -D 1m --load paper
      two cells under the papers' load, the first with POSIX timers
  sudo punctual run --replicates 5 --between "sleep 60"
      the standard plan five times, judged as one
  punctual run sim:stall=3ms,stall-every=5000 -D 1h --deadline 1ms
      simulated time: shows what a result looks like, measures nothing"#;

/// The command `run`.
pub fn command() -> Command {
    Command::new("run")
        .about("Measure this machine, idle and under load, and judge it against a deadline")
        .long_about(
            "Measure this machine, idle and under load, and judge it against a deadline.\n\n\
             Every probe runs under every load; each pair is a cell. If no probe is given, the \
             standard plan runs, under the loads of --load if there are any. Results are kept in a \
             new run directory, summarised on stdout and drawn in report.html.\n\n\
             -t, -p, -i, -a, --policy, --timer and --aligned set parameters of every probe given \
             that has them. A parameter after a probe's own name takes precedence.",
        )
        .after_help(format!("{EXAMPLES}\n\n{EXIT_STATUS}\n\nEverything on one page: --help"))
        .after_long_help(format!("{}\n\n{EXIT_STATUS}\n\n{EXAMPLES}", registries()))
        .next_help_heading("What to measure")
        .args(what())
        .next_help_heading("Threads and releases (parameters of the probes given)")
        .args(probe_options())
        .arg(
            flag("mlockall", "Lock memory: always done, accepted because cyclictest has it")
                .short('m'),
        )
        .next_help_heading("Judgement")
        .args(judgement())
        .next_help_heading("How to measure")
        .args(how())
        .args(series())
        .next_help_heading("Output")
        .args(output())
}

pub(super) const LOADS: &str = "\
Loads: , separates cells, + joins loads that run together; \"none for 5s then paper for 10s\" changes \
the load of one cell, and again from the start until its --duration is over";

pub(super) fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).help(help).action(ArgAction::SetTrue)
}

pub(super) fn value(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

pub(super) fn load_cpus() -> Arg {
    let words = PLACE_PARAMS.iter().filter(|param| param.name == "cpus");
    let words = words.flat_map(|param| param.kind.words());
    let words: Vec<_> = words.map(|word| word.value).collect();
    Arg::new("load-cpus").long("load-cpus").value_name("CPUS").help(format!(
        "Where loads run that have no cpus= of their own: a list such as 0-3,8, or {}",
        words.join(", ")
    ))
}

pub(super) fn what() -> Vec<Arg> {
    let plans: Vec<_> = PLANS.iter().map(|plan| plan.name).collect();
    vec![
        Arg::new("probes")
            .value_name("PROBE")
            .help("Probes, with parameters after the name: wakeup, clock:clock=tsc")
            .num_args(0..),
        Arg::new("plan")
            .long("plan")
            .value_name("FILE|NAME")
            .help(format!(
                "Run the cells of a plan, before those of any probes given: a TOML file, or one of {}",
                plans.join(", ")
            ))
            .value_hint(ValueHint::FilePath),
        value("variant", "NAME", "A variant of the plan, with other durations; `punctual list PLAN` names them")
            .requires("plan"),
        value("load", "LIST", LOADS)
            .default_value("none"),
        load_cpus(),
        value("duration", "TIME", "")
            .help(format!(
                "How long to measure each cell; a bare number is in seconds [default: {}; with \
                 -l, long enough for its samples; the phases of a load once]",
                exact_duration(DEFAULT_DURATION_NS)
            ))
            .short('D')
            .value_parser(positive_seconds),
        value("loops", "N", "End a cell after N samples per thread, or after -D, whichever comes first")
            .short('l')
            .value_parser(clap::value_parser!(u64).range(1..)),
    ]
}

/// The parameter that an option sets, as the first probe that has it defines it.
fn param(name: &str) -> Option<Param> {
    let params = probes::there().flat_map(|probe| probe.all_params());
    params.into_iter().find(|param| param.name == name)
}

/// The options that set parameters of the given probes.
pub(super) fn probe_options() -> Vec<Arg> {
    let smp =
        flag("smp", "One thread bound to each CPU, as cyclictest's -S: the same as -t per-cpu")
            .short('S')
            .conflicts_with("threads");
    PROBE_OPTIONS.iter().map(probe_option).chain([smp]).collect()
}

fn probe_option(option: &ProbeOption) -> Arg {
    let arg = Arg::new(option.name).long(option.name);
    let arg = match option.short {
        Some(short) => arg.short(short),
        None => arg,
    };
    let Some(param) = param(option.name) else {
        return arg;
    };
    let mut help = param.full_help();
    if let Some(first) = help.get(..1).map(str::to_uppercase) {
        help.replace_range(..1, &first);
    }
    arg.value_name(param.kind.placeholder())
        .help(format!("{help}{} [default: {}]", option.note, param.default))
}

pub(super) fn how() -> Vec<Arg> {
    vec![
        value("break", "TIME", "End the run at the first sample above this; a bare number is in microseconds")
            .short('b')
            .value_parser(duration(BareNumber::Microseconds)),
        value("warmup", "TIME", "")
            .help(format!(
                "Warm-up before each cell, excluded from all results; a bare number is in \
                 seconds [default: {}]",
                exact_duration(Plan::new("").warmup_ns)
            ))
            .value_parser(duration(BareNumber::Seconds)),
        flag("no-warmup", "Skip the warm-up").conflicts_with("warmup"),
        value("dma-latency", "none|US", "Hold /dev/cpu_dma_latency at this many microseconds, which keeps CPUs out of deep idle states; none leaves it alone")
            .default_value("0")
            .value_parser(dma_latency),
        value("keep-above", "TIME", "Keep every sample above this (with a unit), with its time stamp, and not only the 64 worst")
            .value_parser(duration(BareNumber::Refused)),
        value("sync", "WHEN", "When to force records to disk: cell (a power cut costs the current cell) or block (every second, which disturbs the measurement)")
            .value_parser(["cell", "block"])
            .hide_possible_values(true)
            .default_value("cell"),
        flag("require-rt", "Skip every cell (exit status 4) if real-time scheduling or locked memory is refused, rather than measure without"),
        flag("force", "Allow priority 99, which the kernel uses for its own threads"),
        flag("all-cpus", "Let -t per-cpu measure every CPU that a thread can be bound to: those too that taskset keeps punctual off, and those to which another program has bound a real-time thread"),
    ]
}

/// Several runs, one after the other.
fn series() -> [Arg; 2] {
    [
        value("replicates", "N", "Run the plan N times, each into a folder of its own in --out (DIR/1, DIR/2 and so on), and judge the runs as one; --json then prints one document about all of them")
            .value_parser(clap::value_parser!(u32).range(2..=1000))
            // A break ends a run early, and all runs are to have the same length.
            .conflicts_with_all(["break", "replicate"]),
        value("between", "COMMAND", "What a shell is to do between two replicates, such as \"sleep 60\"; if it fails, the series ends")
            .value_hint(ValueHint::CommandString)
            .requires("replicates"),
    ]
}

/// Microseconds; `None` for the word none.
fn dma_latency(text: &str) -> Result<Option<u32>, String> {
    match text {
        "none" => Ok(None),
        number => number.parse().map(Some).map_err(|_| {
            "must be none or a whole number of microseconds, at most 4294967295".to_owned()
        }),
    }
}

/// The options that determine a run, which one that is continued has already.
fn settings() -> Vec<clap::Id> {
    let args = what().into_iter().chain(judgement()).chain(how()).chain(probe_options());
    let ids = args.map(|arg| arg.get_id().clone());
    let more = ["out", "board-name", "group", "replicate", "phase", "dither"];
    let more = more.into_iter().chain(["replicates", "between"]);
    ids.chain(more.map(clap::Id::from)).collect()
}

pub(super) fn output() -> Vec<Arg> {
    vec![
        value("out", "DIR", "The run directory, which must not exist yet [default: punctual-runs/<UTC time>-<board>-<kernel>]")
            .value_parser(clap::value_parser!(PathBuf))
            .value_hint(ValueHint::DirPath),
        value("continue", "RUN", "Go on with a run that was cut short, with its plan and options: its finished cells stay, the others are measured")
            .value_hint(ValueHint::DirPath)
            .conflicts_with_all(settings()),
        flag("json", "Print only run.json on stdout"),
        flag("quiet", "Show no progress").short('q'),
        flag("live", "Show a table of the threads even if the terminal has no rows for all: then the worst ones [default: if all fit]"),
        flag("no-live", "Show no table of the threads, only the line of progress")
            .conflicts_with("live"),
        flag("no-report", "Do not write report.html"),
        flag("open", "Open the report in the browser at the end").conflicts_with("no-report"),
        value(
            "board-name",
            "NAME",
            "Name of the board, by which compare tells it apart [default: the host name]",
        ),
        value("group", "NAME", "Name of the experiment that this run belongs to"),
        value("replicate", "N", "Number of this run in its group, counted from 0")
            .value_parser(clap::value_parser!(u32)),
        value("phase", "TIME", "Delay before the first release, with a unit, to be varied between replicates")
            .value_parser(duration(BareNumber::Refused)),
        value("dither", "SEED", "Move each release within its interval, by random offsets of this seed: delays with the period of the releases cannot hide [default: releases are exactly an interval apart]")
            .value_parser(clap::value_parser!(u64)),
    ]
}

/// The probes and loads with their parameters, from the registries.
fn registries() -> String {
    let mut text = String::from("Probes and their parameters:");
    for probe in probes::there() {
        text.push_str(&format!("\n  {:9} {}", probe.name, probe.summary));
        for param in probe.params {
            let value = param.kind.placeholder();
            text.push_str(&format!("\n            {}={value} [{}]", param.name, param.default));
        }
    }
    text.push_str("\n\nLoads:");
    for load in loads::LOADS {
        text.push_str(&format!("\n  {:15} {}", load.name, load.summary));
    }
    text + "\n\n`punctual list NAME` explains a probe or load and all its parameters."
}
