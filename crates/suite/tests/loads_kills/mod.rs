//! SIGKILL at any moment, of punctual and of a supervisor: nothing lives on.

use std::time::Duration;

use punctual_suite::loads::Containment;

use crate::loads_support::*;
use crate::{NOBODY, ROOT};

/// Processes that left their group, their session and their parent.
pub const ESCAPING: &str = "cmd:setsid sleep 1000 & (setsid sh -c 'setsid sleep 1000 & sleep 1000' &) ; \
                        sleep 1000";
/// SIGKILLs a host at a random moment, `repeats` times.
fn kill_hosts(containments: &[Containment], load: &str, repeats: u32) {
    for &containment in containments {
        for _ in 0..repeats {
            let scratch = Scratch::new("kill");
            let mut host = Host::start(&[], load, containment, &scratch);
            assert_eq!(host.ready, "ready\n", "{}", containment.name());
            let pid = host.pid();
            std::thread::sleep(Duration::from_millis(u64::from(rand() % 200)));
            let before = processes_of(pid).len();
            assert!(before > 5, "{}: {:?}", containment.name(), commands_of(pid));
            host.kill();
            assert_gone(pid, Duration::from_secs(2), containment.name());
        }
    }
}

/// SIGKILLs a host while it starts its load: before, between or after the fork
/// and the exec of a supervisor.
pub fn kill_in_start() {
    for containment in ROOT {
        for _ in 0..10 {
            let scratch = Scratch::new("kill-start");
            let mut host = Host::spawn(&[], "compile+copy+process", containment, &scratch);
            std::thread::sleep(Duration::from_micros(u64::from(rand() % 40_000)));
            let pid = host.pid();
            host.kill();
            // What is not exec'd yet is not found, but lives on for a moment only.
            std::thread::sleep(Duration::from_millis(100));
            assert_gone(pid, Duration::from_millis(1900), containment.name());
        }
    }
}

pub fn kill_of_punctual() {
    kill_hosts(&ROOT, &format!("hackbench:1+{ESCAPING}"), 10);
}

pub fn kill_of_punctual_as_nobody() {
    kill_hosts(&NOBODY, &format!("hackbench:1+{ESCAPING}"), 10);
}

/// SIGKILLs the supervisor of one of two parts.
fn kill_supervisors(containments: &[Containment]) {
    let own = std::process::id();
    for &containment in containments {
        let name = containment.name();
        let scratch = Scratch::new("supervisor");
        let mut set = start(ESCAPING, &scratch, &[containment]).unwrap();
        assert!(processes_of(own).len() > 4, "{name}: {:?}", commands_of(own));
        let mut direct = processes_of(own).into_iter();
        let supervisor = direct.find(|pid| parent_of(*pid) == Some(own)).unwrap();
        kill(supervisor);
        let samples = sample_until(&mut set, name, |parts| parts[0].died.is_some());
        let died = samples[0].died.as_deref().unwrap();
        assert_eq!(died, "its supervisor was lost: killed by SIGKILL", "{name}");
        assert_gone(own, Duration::from_secs(2), name);
        let trouble = set.stop().remove(0).trouble;
        assert_eq!(trouble.as_deref(), Some("its supervisor was lost: killed by SIGKILL"));
    }
    assert_eq!(cgroups_of(std::process::id()), Vec::<std::path::PathBuf>::new());
}

pub fn kill_of_supervisor() {
    kill_supervisors(&ROOT);
}

pub fn kill_of_supervisor_as_nobody() {
    kill_supervisors(&NOBODY);
}
