//! What a program that measures is started again for: by itself, or as the init of a board.

use crate::engine::Program;
use crate::harness::{LOAD_SUPERVISOR, supervisor};
use crate::init;

/// Does what a program with these arguments was started again for; returns its exit status, or
/// `None` if a user has started it. Call it before anything else.
#[must_use]
pub fn started_again(arguments: &[String], program: Program) -> Option<u8> {
    // First, because a load's supervisor forks and must not have threads.
    if let [_, command, order @ ..] = arguments
        && command == LOAD_SUPERVISOR
    {
        return Some(status(supervisor::supervisor_main(order)));
    }
    // After the check for supervisors, which are process 1 of their namespaces too.
    if init::is_init() {
        init::init_main();
        return Some(1);
    }
    match arguments {
        [_, command] if command == init::MEASURE => Some(status(init::measure_main(program))),
        _ => None,
    }
}

fn status(status: i32) -> u8 {
    u8::try_from(status).unwrap_or(1)
}
