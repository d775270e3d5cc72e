//! The command between two runs of a series.

use std::io;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use punctual_sys::process::{Pid, bind_to_this};
use punctual_sys::signal::{Signal, Signals};
use punctual_sys::{error, group};

/// How often the command is asked whether it has ended.
const PAUSE: Duration = Duration::from_millis(10);
const PAUSE_NS: u64 = 10_000_000;

/// How long the command may take to end once it was told to.
const GRACE: Duration = Duration::from_secs(2);

/// What became of the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Went {
    /// It ended with status 0.
    Well,
    /// It did not, or was not started: why.
    Wrong(String),
    /// A signal came that ends the series; the command and what is left of its process group
    /// were ended.
    Interrupted,
}

/// Has `sh -c` execute a command and waits for its end. It reads nothing, and what it prints goes
/// to stderr, since stdout has the result of the series. It is killed if this process is; what it
/// has started itself then goes on.
pub fn execute(command: &str, signals: &Signals) -> Went {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).stdin(Stdio::null()).stdout(io::stderr());
    bind_to_this(&mut shell);
    let mut child = match shell.spawn() {
        Ok(child) => child,
        Err(error) => return Went::Wrong(format!("sh cannot be started: {}", error::text(&error))),
    };
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Went::Well,
            Ok(Some(status)) => return Went::Wrong(format!("it ended with {status}")),
            Ok(None) => {}
            Err(error) => {
                end(&mut child);
                return Went::Wrong(error::text(&error));
            }
        }
        if signals.wait(PAUSE_NS).is_some_and(Signal::ends) {
            end(&mut child);
            return Went::Interrupted;
        }
    }
}

/// Ends the command with its process group: it is asked to, and killed if it does not.
fn end(child: &mut Child) {
    // The shell was made the leader of a group.
    let Ok(of_command) = Pid::try_from(child.id()) else { return };
    let _ = group::terminate(of_command);
    let told = Instant::now();
    while told.elapsed() < GRACE && matches!(child.try_wait(), Ok(None)) {
        thread::sleep(PAUSE);
    }
    // The number is nobody else's as long as anything is left of the group.
    let _ = group::kill(of_command);
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_went_well_if_its_status_is_0() {
        thread::spawn(|| {
            let signals = Signals::block().unwrap();
            assert_eq!(execute("cat", &signals), Went::Well, "there is nothing to read");
            let wrong = |text: &str| Went::Wrong(text.to_owned());
            assert_eq!(execute("exit 3", &signals), wrong("it ended with exit status: 3"));
            let killed = execute("kill -9 $$", &signals);
            assert!(matches!(&killed, Went::Wrong(why) if why.contains("signal: 9")), "{killed:?}");
        })
        .join()
        .unwrap();
    }
}
