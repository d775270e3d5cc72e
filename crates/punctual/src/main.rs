//! How late can this Linux be? The command line of punctual.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use ending::Ending;
use punctual_suite::again::started_again;
use punctual_sys::{error, limits, signal};

mod cli;
mod commands;
mod complete;
mod ending;
mod files;
mod output;
mod plans;
mod request;
mod store;
mod temporary;

/// What the main thread needs with some to spare: it ends without a word if it has less.
const STACK_BYTES: u64 = 1 << 20;

/// A panic unwinds, so that the journal and the loads clean up when they are dropped.
fn main() -> ExitCode {
    std::panic::catch_unwind(start).unwrap_or(ExitCode::from(ending::ERROR))
}

fn start() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect();
    if let Some(status) = started_again(&arguments, request::PROGRAM) {
        return ExitCode::from(status);
    }
    if let Err((bytes, error)) = limits::need_stack(STACK_BYTES) {
        output::complain(&format!(
            "the stack of its main thread may not grow beyond {} KiB, and it needs {} (ulimit -s 8192 \
             sets the limit): {}",
            bytes >> 10,
            STACK_BYTES >> 10,
            error::text(&error)
        ));
        return ExitCode::from(ending::ERROR);
    }
    signal::survive_file_size_limit();
    let words: Vec<_> = std::env::args_os().collect();
    if let [_, command, line @ ..] = &words[..]
        && command == complete::COMPLETE
    {
        complete::print(line);
        return ExitCode::SUCCESS;
    }
    let ending = match cli::read(&words) {
        Ok(matches) => commands::execute(&matches),
        Err(error) => {
            output::explain(&error, cli::FIRST);
            let status = u8::try_from(error.exit_code()).unwrap_or(ending::ERROR);
            let status = ending::of_usage(&arguments, status);
            if error.use_stderr() {
                output::fail_as_json(&arguments, status, &output::text_of(&error));
            }
            return ExitCode::from(status);
        }
    };
    match ending {
        Ok(ending) => ExitCode::from(ending.status()),
        Err(error) => {
            let text = format!("{error:#}");
            let status = Ending::of_error(&error).status();
            output::complain(&text);
            output::fail_as_json(&arguments, status, &text);
            ExitCode::from(status)
        }
    }
}
