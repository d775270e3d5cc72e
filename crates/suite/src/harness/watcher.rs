//! The watcher of a part that is not in a PID namespace: a second process that sees the end of
//! punctual, in case the supervisor is killed at the same time.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::parent_id;
use std::time::Duration;

use punctual_sys::fd;

use super::containment::kill_cgroup;
use super::order::PartOrder;
use super::procs::{MARKER, kill_marked, until};

/// Exit status if it cannot watch, as the next one could not either.
pub(super) const CANNOT_WATCH: i32 = 1;

/// How long the supervisor may take to end the part, and how long processes that fork meanwhile
/// are killed again.
const KILL_LIMIT: Duration = Duration::from_secs(2);

/// Waits for the end of the lifeline, which the supervisor has passed on, and ends the part.
/// `supervisor` is the PID of the process that forked this one, which may have ended since.
/// Returns the exit status.
pub(super) fn main(order: &PartOrder, supervisor: u32) -> i32 {
    // Otherwise punctual would not see the end of the supervisor in the status pipe.
    if fd::replace_stdout(io::stdin().as_fd()).is_err() {
        return CANNOT_WATCH;
    }
    let lifeline = io::stdin();
    loop {
        match fd::wait_readable([lifeline.as_fd()], Duration::from_secs(60)) {
            Ok([true]) => break,
            Ok([false]) => {}
            Err(_) => return CANNOT_WATCH,
        }
    }
    // The supervisor sees the end too, and finds more: descendants without the marker.
    until(KILL_LIMIT, || parent_id() != supervisor);
    if let Some(cgroup) = &order.cgroup {
        // This process is in it too.
        kill_cgroup(cgroup);
    }
    if let Ok(marker) = std::env::var(MARKER) {
        kill_marked(&marker, KILL_LIMIT);
    }
    0
}
