//! The command line, defined once: help, man pages, completions and argument parsing all come
//! from [`command`].

use clap::{Arg, ArgAction, Command, ValueHint};
use punctual_core::published::CITATIONS;

use crate::commands::By;
use crate::output;

mod args;
mod boards;
mod budget;
mod cost;
mod export;
mod foreign;
mod gone;
mod lab;
mod run;
mod search;
mod typed;

pub use args::spelled;
pub use budget::Budget;
pub use cost::DEFAULT_COST_NS;
pub use run::{DEFAULT_DURATION_NS, PROBE_OPTIONS};
pub use typed::{read, takes_next, takes_value};

/// Width of help on wider terminals, columns.
const HELP_WIDTH: usize = 100;

/// Least width of help, columns. Examples are written for this width: they can still be pasted
/// if the terminal wraps them, but not if clap does.
const LEAST_HELP_WIDTH: usize = 80;

/// The shells that completions are for.
const SHELLS: [&str; 4] = ["bash", "zsh", "fish", "elvish"];

/// What to type first.
pub const FIRST: &str = "A first look, in about a minute:  sudo punctual run\n\
                         All options of a command:         punctual run --help";

/// The command line of `punctual run`. The others' definitions take more instructions than may lie
/// before a first sample.
fn to_run() -> Command {
    bare().subcommand(run::command())
}

/// The whole command line.
pub fn command() -> Command {
    to_run()
        .subcommand(cost::command())
        .subcommand(report())
        .subcommand(compare())
        .subcommand(show())
        .subcommand(pool())
        .subcommand(plan_length())
        .subcommand(export::command())
        .subcommand(list())
        .subcommand(load())
        .subcommand(restore())
        .subcommand(lab::command())
        .subcommand(completions())
        .subcommand(man())
}

fn bare() -> Command {
    Command::new("punctual")
        .version(env!("CARGO_PKG_VERSION"))
        .about("How late can this Linux be? Measures it, and says whether that is good enough")
        .after_help(FIRST)
        .term_width(output::width().clamp(LEAST_HELP_WIDTH, HELP_WIDTH))
        .subcommand_required(true)
        .arg_required_else_help(true)
}

const RUN_HELP: &str = "A run directory, or its run.json; or a run in ./punctual-runs, by its name, by an \
unambiguous prefix of it, or as \"last\"";

const RUNS_HELP: &str = "A run directory, or its run.json; or a run in ./punctual-runs, by its name, by an \
unambiguous prefix of it, or as \"last\"; or a set: a folder of run directories, which stands for \
all of them";

fn runs(help: &'static str, least: usize) -> Arg {
    Arg::new("runs")
        .value_name("RUN")
        .help(help)
        .required(true)
        .num_args(least..)
        .value_hint(ValueHint::DirPath)
}

fn json(help: &'static str) -> Arg {
    Arg::new("json").long("json").help(help).action(ArgAction::SetTrue)
}

fn html(help: &'static str) -> Arg {
    Arg::new("output")
        .short('o')
        .long("output")
        .value_name("FILE")
        .help(help)
        .value_parser(clap::value_parser!(std::path::PathBuf))
        .value_hint(ValueHint::FilePath)
}

fn report() -> Command {
    Command::new("report")
        .about("Write one HTML file about one or more runs: verdict, tables, figures, conditions")
        .arg(runs(RUNS_HELP, 1))
        .arg(html("The HTML file, which is self-contained and works offline").required(true))
        .arg(
            Arg::new("figures")
                .long("figures")
                .value_name("DIR")
                .help("Also write each figure to this folder, as SVG, PDF and PNG")
                .value_parser(clap::value_parser!(std::path::PathBuf))
                .value_hint(ValueHint::DirPath),
        )
        .arg(any_duration())
        .arg(by())
        .arg(Arg::new("title").long("title").value_name("TEXT").help("Title of the report"))
        .arg(
            Arg::new("open")
                .long("open")
                .help("Open the report in the browser")
                .action(ArgAction::SetTrue),
        )
        .arg(json("Print what was written as JSON"))
}

fn by() -> Arg {
    Arg::new("by")
        .long("by")
        .value_name("WHAT")
        .help(
            "Group the runs by this alone: kernel, board, group, date or setting:NAME. By default \
             runs are told apart by kernel, command line, board, group and settings, and by \
             arguments if one is a folder of runs or several joined by +",
        )
        .value_parser(By::parse)
}

fn any_duration() -> Arg {
    Arg::new("any-duration")
        .long("any-duration")
        .help(
            "Also match cells that differ in their duration only. Their quantiles, means and rates \
             are compared; maxima are not, since they grow with the time measured",
        )
        .action(ArgAction::SetTrue)
}

fn compare() -> Command {
    Command::new("compare")
        .about("Compare runs: ratios, what else differs, and what may not be concluded")
        .after_help(
            "Cells are matched by probe, parameters, load and duration. Ratios are relative to the \
             first side. Two runs are two sides. If one of several arguments is a folder of runs, or \
             several joined by + (an existing path comes first), each argument is a side: \
             `punctual compare before after`. A folder whose runs differ in kernel, board, group or \
             settings is several sides; what is joined by + is one.\n\
             --exact compares the measured parts: the files of all cells, their entries in \
             run.json, and the interrupts counted meanwhile. Both runs must come from the same \
             virtual board with counted instructions, the same plan and the same phase. Of two \
             sets, runs with the same name are compared.\n\n\
             --not-worse-than judges the runs of every other side by those of the first: the p99.9 \
             and the maximum of each cell, with bounds at 95 % confidence, one-sided. It takes several \
             runs of each side, such as sets of replicates.\n\n\
             Exit status: 0; 2 if a run cannot be read or is given twice, or the runs have no cell in common; 4 if nothing is compared because a run is \
             not a measurement (a guest without instruction counting).\n\
             Exit status with --not-worse-than: 0 every upper bound is at most the factor; 1 a figure \
             is shown to be above it; 3 neither; 4 all runs are of one side.\n\
             Exit status with --exact: 0 identical; 1 not identical; 2 a run cannot be read; 4 \
             refused, because boards, plans or names of runs differ. With several pairs, the worst \
             counts, in the order 2, 1, 4, 0.",
        )
        .arg(runs(RUNS_HELP, 1))
        .arg(
            Arg::new("exact")
                .long("exact")
                .help(
                    "Check whether two runs of a virtual board, or two sets of them, are \
                     identical byte for byte; if not, show the first difference",
                )
                .action(ArgAction::SetTrue)
                .conflicts_with("output"),
        )
        .arg(any_duration().conflicts_with("exact"))
        .arg(by().conflicts_with("exact"))
        .arg(
            Arg::new("not-worse-than")
                .long("not-worse-than")
                .value_name("FACTOR")
                .help(
                    "Judge whether the other sides are at most this factor worse than the first \
                     (e.g. 1.1), and report it by exit status",
                )
                .value_parser(factor)
                .conflicts_with("exact"),
        )
        .arg(
            Arg::new("published")
                .long("published")
                .value_name("CITATION")
                .help(
                    "Also show the figures of a publication beside those of the runs, with what is \
                     doubtful about them; one run is enough then",
                )
                .value_parser(citations())
                .conflicts_with_all(["exact", "not-worse-than"]),
        )
        .arg(json("Print the comparison as JSON"))
        .arg(html("Also write a report of all runs to this HTML file"))
}

/// The publications that are known.
fn citations() -> Vec<&'static str> {
    CITATIONS.iter().map(|citation| citation.name).collect()
}

/// A factor above zero.
fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse::<f64>().ok().filter(|factor| factor.is_finite() && *factor > 0.0);
    factor.ok_or_else(|| "not a factor above 0, such as 1.1".to_owned())
}

fn show() -> Command {
    Command::new("show")
        .about("Show one run: conditions, table, verdict; or judge several as one")
        .after_help(format!(
            "It is judged here and now, by its own plan unless an option says otherwise; several \
             runs are judged as one, as by `punctual pool`. A run that was killed is recovered up to \
             its last finished second: counts, minimum, average and maximum are exact, quantiles are \
             at most 25 % too high.\n\n{}",
            run::EXIT_STATUS
        ))
        .arg(runs(RUN_HELP, 1))
        .arg(json("Print run.json, judged here and now; of several runs what `punctual pool --json` does"))
        .arg(
            Arg::new("all")
                .long("all")
                .help("Also show every cell in detail, its worst samples, and all facts")
                .action(ArgAction::SetTrue)
                .conflicts_with("json"),
        )
        .arg(
            Arg::new("extremes")
                .long("extremes")
                .help(
                    "Also extrapolate: what ten times this run would exceed once on average, if \
                     the samples allow that. It is no part of the verdict",
                )
                .action(ArgAction::SetTrue)
                .conflicts_with("json"),
        )
        .next_help_heading("Judge again")
        .args(args::judgement())
}

fn pool() -> Command {
    Command::new("pool")
        .about("Judge several runs of one kernel on one board as one")
        .after_help(format!(
            "A PASS needs each run to pass by itself, and so to be long enough: boots differ, so \
             their times do not add up. What several runs add is the share of runs that may be late. \
             With a soft deadline it is a FAIL if more runs fail than chance explains. Decide on the \
             number of runs beforehand. Runs of different kernels, boards or rules are refused, with \
             status 2.\n\n{}\n\n\
             Examples:\n  punctual pool a b c --deadline 200us\n  \
             punctual pool nightly --deadline 1ms --allow 1/h",
            run::EXIT_STATUS
        ))
        .arg(runs(RUNS_HELP, 1))
        .arg(json("Print the judgement as JSON"))
        .next_help_heading("Judge by")
        .args(args::judgement())
}

fn plan_length() -> Command {
    Command::new("plan-length")
        .about("Say how long to measure for the evidence that is wanted")
        .after_help(
            "Examples:\n  punctual plan-length --at-most 1/h\n  \
             punctual plan-length --allow 6/min --late 3\n  \
             punctual plan-length --singly --at-most 0.0001% --interval 100us",
        )
        .args(args::length())
        .arg(json("Print the answer as JSON"))
}

fn list() -> Command {
    Command::new("list")
        .about("List probes, loads, plans or runs, or explain one of them")
        .after_help("Examples:\n  punctual list loads\n  punctual list hackbench\n  punctual list --planned\n  punctual list runs\n  punctual list runs /var/tmp/boards --json")
        .arg(
            Arg::new("what")
                .value_name("WHAT")
                .help("probes, loads, costs, plans, runs, or the name of one of them [default: all but runs]"),
        )
        .arg(
            Arg::new("folders")
                .value_name("DIR")
                .help(
                    "For runs: run directories, or folders of runs or of sets of them \
                     [default: ./punctual-runs]",
                )
                .num_args(0..)
                .value_parser(clap::value_parser!(std::path::PathBuf))
                .value_hint(ValueHint::DirPath),
        )
        .arg(
            Arg::new("planned")
                .long("planned")
                .help("List only probes that are planned for a later version")
                .action(ArgAction::SetTrue)
                .conflicts_with("what"),
        )
        .arg(json("Print the list as JSON"))
}

fn load() -> Command {
    Command::new("load")
        .about("Run only a load, and print the work it does each second")
        .after_help(
            "Examples:\n  punctual load paper -D 1m\n  punctual load hackbench:groups=4+flood -D 10\n  \
             punctual load hackbench:nice=5,cgroup=/sys/fs/cgroup/tests --load-cpus 0-1\n\n\
             Exit status: 0; 2 if a load died; 4 if it could not start; 130 if interrupted.",
        )
        .arg(
            Arg::new("load")
                .value_name("LOAD")
                .help(
                    "The load. + joins loads that run together; parameters follow the name, such \
                     as hackbench:groups=4; \"none for 5s then paper for 10s\" changes it",
                )
                .required(true),
        )
        .arg(run::load_cpus())
        .arg(
            Arg::new("duration")
                .short('D')
                .long("duration")
                .value_name("TIME")
                .help(
                    "How long to run; a bare number is in seconds [default: 10s, or the phases of \
                     the load once]",
                )
                .value_parser(args::positive_seconds),
        )
        .arg(json("Print only the work, as JSON, at the end"))
}

fn restore() -> Command {
    Command::new("restore")
        .about("Undo what a killed run left behind: settings, folders, control groups")
        .arg(
            Arg::new("dry-run")
                .long("dry-run")
                .help("Show what would be undone, and undo nothing")
                .action(ArgAction::SetTrue),
        )
        .arg(json("Print what was done as JSON"))
}

fn completions() -> Command {
    Command::new("completions")
        .about("Print completions for a shell: options, and names of probes, loads, plans and runs")
        .after_help(
            "Examples:\n  punctual completions bash > /etc/bash_completion.d/punctual\n  \
             punctual completions zsh > ~/.zfunc/_punctual\n  \
             punctual completions fish > ~/.config/fish/completions/punctual.fish\n  \
             punctual completions elvish >> ~/.config/elvish/rc.elv\n\n\
             zsh reads a folder such as ~/.zfunc if ~/.zshrc has it in fpath before compinit.",
        )
        .arg(Arg::new("shell").value_name("SHELL").required(true).value_parser(SHELLS))
}

fn man() -> Command {
    Command::new("man").about("Write all man pages to a folder, or print punctual(1)").arg(
        Arg::new("dir")
            .value_name("DIR")
            .help("Folder to write the pages of all commands to")
            .value_parser(clap::value_parser!(std::path::PathBuf))
            .value_hint(ValueHint::DirPath),
    )
}

#[cfg(test)]
mod tests;
