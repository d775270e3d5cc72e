//! Process groups: what a command has started, as far as it has stayed in the command's group.

use std::io;

use crate::error::check;
use crate::process::Pid;

/// Asks every process of a group to end (SIGTERM).
///
/// # Errors
/// `InvalidInput` for 1 and less, which name this process's own group or every process; `ESRCH` if
/// the group is empty; otherwise those of kill(2).
pub fn terminate(group: Pid) -> io::Result<()> {
    send(group, libc::SIGTERM)
}

/// Ends every process of a group (SIGKILL).
///
/// # Errors
/// Those of [`terminate`].
pub fn kill(group: Pid) -> io::Result<()> {
    send(group, libc::SIGKILL)
}

fn send(group: Pid, signal: libc::c_int) -> io::Result<()> {
    if group <= 1 {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    // SAFETY: kill takes plain numbers; a negative one below -1 names one group.
    check(unsafe { libc::kill(-group, signal) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::Command;

    #[test]
    fn a_group_ends_and_no_other_process_does() {
        type End = fn(Pid) -> io::Result<()>;
        for (end, signal) in [(terminate as End, libc::SIGTERM), (kill as End, libc::SIGKILL)] {
            let mut child = Command::new("sleep").arg("600").process_group(0).spawn().unwrap();
            end(Pid::try_from(child.id()).unwrap()).unwrap();
            assert_eq!(child.wait().unwrap().signal(), Some(signal));
        }
        for group in [1, 0, -1, Pid::MIN] {
            assert_eq!(kill(group).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
    }
}
