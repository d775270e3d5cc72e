//! The command line, defined once: help, man pages, completions and the reading
//! of arguments all come from [`command`].

use clap::{Arg, ArgAction, Command, ValueHint};

mod args;
mod lab;
mod run;

pub use args::spelled;
pub use run::PROBE_OPTIONS;

/// The command that a load's supervisor is started with; no part of the interface.
pub const LOAD_SUPERVISOR: &str = "__load";

/// Columns that help is wrapped at where the terminal is wider.
const HELP_WIDTH: usize = 100;

/// The whole command line.
pub fn command() -> Command {
    Command::new("punctual")
        .version(env!("CARGO_PKG_VERSION"))
        .about("How late can this Linux be? Measures it, and says whether that is good enough")
        .after_help(
            "A first look, in about a minute:  sudo punctual run\n\
             All options of a command:         punctual run --help",
        )
        .max_term_width(HELP_WIDTH)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(run::command())
        .subcommand(report())
        .subcommand(compare())
        .subcommand(show())
        .subcommand(list())
        .subcommand(load())
        .subcommand(restore())
        .subcommand(lab::command())
        .subcommand(completions())
        .subcommand(man())
}

const RUN_HELP: &str = "A run directory; or a run below ./punctual-runs by its name, the \
beginning of its name where only one run has it, or \"last\"";

const RUNS_HELP: &str = "A run directory; or a run below ./punctual-runs by its name, the \
beginning of its name where only one run has it, or \"last\"; or a set: a folder that holds run \
directories, which stands for all of them";

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
        .about("Make one HTML file of one or more runs: verdict, tables, figures, conditions")
        .arg(runs(RUNS_HELP, 1))
        .arg(html("The HTML file; it needs no other file and no network").required(true))
        .arg(
            Arg::new("figures")
                .long("figures")
                .value_name("DIR")
                .help("Also write each figure as an SVG file to this folder")
                .value_parser(clap::value_parser!(std::path::PathBuf))
                .value_hint(ValueHint::DirPath),
        )
        .arg(Arg::new("title").long("title").value_name("TEXT").help("Title of the report"))
        .arg(json("Print what was written as JSON"))
}

fn compare() -> Command {
    Command::new("compare")
        .about("Put runs side by side: ratios, in what else they differ, what may not be concluded")
        .after_help(
            "Cells are matched by probe, parameters, load and duration; the first run is what the \
             others are divided by.\n\
             With --exact the measured parts are compared: the files of all cells, their entries in \
             run.json, and the interrupts meanwhile. Both must be of one virtual board with counted \
             instructions, one plan and one phase. Of two sets the runs of equal names are \
             compared.\n\
             Exit status: 0; 2 where a run cannot be read; 4 where a run is no measurement (a guest \
             that ran freely), so that nothing is compared.\n\
             Exit status with --exact: 0 identical, 1 not identical, 4 refused since the boards, \
             plans or names of runs differ, 2 where a run cannot be read; of several pairs the \
             worst, in the order 2, 1, 4, 0.",
        )
        .arg(runs(RUNS_HELP, 1))
        .arg(
            Arg::new("exact")
                .long("exact")
                .help(
                    "Say whether two runs of a virtual board, or two sets of them, are identical \
                     byte for byte, and where they first differ",
                )
                .action(ArgAction::SetTrue)
                .conflicts_with("output"),
        )
        .arg(json("Print the comparison as JSON"))
        .arg(html("Also write a report of all runs to this HTML file"))
}

fn show() -> Command {
    Command::new("show")
        .about("Show one run: conditions, table, verdict")
        .after_help(
            "A run that was killed is rebuilt from what was recorded up to then: counts, minimum, \
             average and maximum are exact, quantiles within 25 %.\n\
             Exit status: 0, or 2 where the run cannot be read; with a judgement asked for here, \
             that of the judgement, as for `punctual run`.",
        )
        .arg(runs(RUN_HELP, 1).num_args(1))
        .arg(json("Print run.json as it stands, or as it is judged here"))
        .arg(
            Arg::new("all")
                .long("all")
                .help("Also every cell in detail, its worst samples, and all facts")
                .action(ArgAction::SetTrue)
                .conflicts_with("json"),
        )
        .next_help_heading("Judge again")
        .args(args::judgement())
}

fn list() -> Command {
    Command::new("list")
        .about("List probes, loads, plans or runs; or explain one of them")
        .after_help("Examples:\n  punctual list loads\n  punctual list hackbench\n  punctual list runs --json")
        .arg(
            Arg::new("what")
                .value_name("WHAT")
                .help("probes, loads, costs, plans, runs, or the name of one of them [default: all but runs]"),
        )
        .arg(
            Arg::new("planned")
                .long("planned")
                .help("Only the probes and loads that a later version brings")
                .action(ArgAction::SetTrue)
                .conflicts_with("what"),
        )
        .arg(json("Print the list as JSON"))
}

fn load() -> Command {
    Command::new("load")
        .about("Run only the load, and print the work that it does each second")
        .after_help(
            "Examples:\n  punctual load paper -D 1m\n  punctual load hackbench:groups=4+flood -D 10\n\
             Exit status: 0, 2 where a load died, 4 where it could not start, 130 interrupted.",
        )
        .arg(
            Arg::new("load")
                .value_name("LOAD")
                .help("The load; + joins loads that run together, parameters ride on the name")
                .required(true),
        )
        .arg(
            Arg::new("duration")
                .short('D')
                .long("duration")
                .value_name("TIME")
                .help("How long; a bare number is seconds [default: 10s]")
                .default_value("10s")
                .hide_default_value(true)
                .value_parser(args::positive_seconds),
        )
        .arg(json("Print the work as JSON at the end, and nothing else"))
}

fn restore() -> Command {
    Command::new("restore")
        .about("Undo what a killed punctual has left: settings, folders, control groups")
        .arg(
            Arg::new("dry-run")
                .long("dry-run")
                .help("Say what would be undone, and undo nothing")
                .action(ArgAction::SetTrue),
        )
        .arg(json("Print what was done as JSON"))
}

fn completions() -> Command {
    Command::new("completions")
        .about("Print completions for a shell")
        .after_help("Example: punctual completions bash > /etc/bash_completion.d/punctual")
        .arg(
            Arg::new("shell")
                .value_name("SHELL")
                .required(true)
                .value_parser(["bash", "zsh", "fish"]),
        )
}

fn man() -> Command {
    Command::new("man").about("Write the man pages to a folder, or print that of punctual(1)").arg(
        Arg::new("dir")
            .value_name("DIR")
            .help("Folder that the pages of all commands are written to")
            .value_parser(clap::value_parser!(std::path::PathBuf))
            .value_hint(ValueHint::DirPath),
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn definitions_hold_together() {
        super::command().debug_assert();
    }
}
