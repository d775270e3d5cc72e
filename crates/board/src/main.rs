//! What measures, and nothing else: the program that boards run.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use punctual_suite::{harness, init};

fn main() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect();
    if let [_, command, order @ ..] = &arguments[..]
        && command == "__load"
    {
        let status = harness::supervisor::supervisor_main(order);
        return ExitCode::from(u8::try_from(status).unwrap_or(1));
    }
    if init::is_init() {
        init::init_main();
        return ExitCode::FAILURE;
    }
    if let [_, command] = &arguments[..]
        && command == init::MEASURE
    {
        return ExitCode::from(u8::try_from(init::measure_main()).unwrap_or(1));
    }
    ExitCode::SUCCESS
}
