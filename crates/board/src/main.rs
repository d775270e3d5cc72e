//! What measures, and nothing else: the program that boards run.
//!
//! It judges nothing and explains nothing, so that it changes only when measuring changes: its bytes
//! are part of every course of a virtual board. `punctual show` and `punctual report` judge and
//! explain what it writes, on any machine.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use ending::Ending;
use punctual_suite::again::started_again;
use punctual_suite::engine::Program;
use punctual_sys::signal;

mod ending;
mod follow;
mod help;
mod line;
mod list;
mod load;
mod numbers;
mod request;
mod restore;
mod run;

/// This program, as its records name it. Its version is its own: that of a release would change it.
const PROGRAM: Program = Program { name: "punctual-board", version: env!("CARGO_PKG_VERSION") };

/// A panic unwinds, so that the journal and the loads clean up when they are dropped.
fn main() -> ExitCode {
    std::panic::catch_unwind(start).unwrap_or(ExitCode::from(ending::ERROR))
}

fn start() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect();
    if let Some(status) = started_again(&arguments, PROGRAM) {
        return ExitCode::from(status);
    }
    signal::survive_file_size_limit();
    let ending = execute(arguments.get(1..).unwrap_or(&[])).unwrap_or_else(|error| {
        eprintln!("{}: {error:#}", PROGRAM.name);
        Ending::Failed
    });
    ExitCode::from(ending.status())
}

fn execute(words: &[String]) -> anyhow::Result<Ending> {
    let (command, words) = words.split_first().map_or(("--help", words), |(c, w)| (c, w));
    match command {
        "-h" | "--help" | "help" => help::print(),
        "-V" | "--version" => {
            numbers::say(&format!("{} {}\n", PROGRAM.name, PROGRAM.version)).map(|()| Ending::Done)
        }
        "run" => run::probes(words),
        "cost" => run::costs(words),
        "load" => load::execute(words),
        "list" => list::execute(words),
        "restore" => restore::execute(words),
        other => anyhow::bail!(
            "there is no command \"{other}\": run, load, cost, restore, list; \
             {} --help says more",
            PROGRAM.name
        ),
    }
}
