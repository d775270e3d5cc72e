//! SIGKILL at any moment, of punctual and of a supervisor: nothing lives on.

use std::time::Duration;

use punctual_harness::processes::{
    assert_no_load, load_commands, load_processes, parent_of, signal_to,
};
use punctual_suite::harness::Containment;
use punctual_suite::loads::LOADS;
use punctual_sys::process::kill_if;

use crate::loads_support::*;
use crate::{PRIVILEGED, ROOT, nobody};

/// How long a process may outlive what was killed.
const SURVIVAL: Duration = Duration::from_secs(2);

/// Processes that left their group, their session and their parent.
pub const ESCAPING: &str = "cmd:setsid sleep 1000 & (setsid sh -c 'setsid sleep 1000 & sleep 1000' &) ; \
                        sleep 1000";
/// SIGKILLs a host at a random moment, once under every load.
fn kill_hosts(containments: &[Containment], loads: &[String]) {
    for &containment in containments {
        for load in loads {
            let what = format!("{} in {}", load, containment.name());
            let scratch = Scratch::new("kill");
            // Under a storm a machine may stand still for longer than a start may take.
            let mut starts = (0..3).map(|_| Host::start(&[], load, containment, &scratch));
            let is_up = |host: &Host| host.ready == "ready\n" || !host.ready.contains("no sign of");
            let mut host = starts.find(is_up).unwrap_or_else(|| panic!("{what}: no start"));
            assert_eq!(host.ready, "ready\n", "{what}");
            let pid = host.pid();
            std::thread::sleep(Duration::from_millis(u64::from(rand() % 200)));
            let before = load_processes(pid).len();
            assert!(before > 4, "{what}: {:?}", load_commands(pid));
            host.kill();
            assert_no_load(pid, SURVIVAL, &what);
        }
    }
}

/// Every load that `can` run, each with processes that escape.
fn escaping(can: impl Fn(&str) -> bool) -> Vec<String> {
    let all = LOADS.iter().map(|entry| entry.name).filter(|name| can(name));
    let with = |name| match name {
        // The escaping processes are the command of the one, and all there is beside the other.
        "none" | "cmd" => ESCAPING.to_owned(),
        // Not on the console of the machine that runs the tests.
        "console" => format!("console:tty=/dev/null+{ESCAPING}"),
        name => format!("{name}+{ESCAPING}"),
    };
    all.map(with).collect()
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
            assert_no_load(pid, SURVIVAL, containment.name());
        }
    }
}

pub fn kill_of_punctual() {
    kill_hosts(&ROOT, &escaping(|_| true));
}

pub fn kill_of_punctual_as_nobody() {
    kill_hosts(&nobody(), &escaping(|name| !PRIVILEGED.contains(&name)));
}

/// SIGKILLs a host and then its supervisor: at the same time, before it can end the rest, and in
/// the midst of that.
fn kill_both(containments: &[Containment]) {
    const PAUSES_MAX_US: [u32; 5] = [0, 1_000, 2_000, 4_000, 8_000];
    let rounds = containments.iter().flat_map(|one| PAUSES_MAX_US.map(|most| (*one, most)));
    for (containment, most) in rounds {
        let pause_us = rand() % (most + 1);
        let what = format!("{} in {pause_us} us", containment.name());
        let scratch = Scratch::new("both");
        let mut host = Host::start(&[], ESCAPING, containment, &scratch);
        assert_eq!(host.ready, "ready\n", "{what}");
        let pid = host.pid();
        let all = load_processes(pid);
        let supervisor = all.iter().find(|load| parent_of(**load) == Some(pid)).copied().unwrap();
        assert!(all.len() > 4, "{what}: {:?}", load_commands(pid));
        host.kill();
        std::thread::sleep(Duration::from_micros(pause_us.into()));
        // It may have ended by now.
        let _ =
            kill_if(supervisor.try_into().unwrap(), || load_processes(pid).contains(&supervisor));
        assert_no_load(pid, SURVIVAL, &what);
    }
}

pub fn kill_of_both() {
    kill_both(&ROOT);
}

pub fn kill_of_both_as_nobody() {
    kill_both(&nobody());
}

/// SIGKILLs the supervisor of one of two parts.
fn kill_supervisors(containments: &[Containment]) {
    let own = std::process::id();
    for &containment in containments {
        let name = containment.name();
        let scratch = Scratch::new("supervisor");
        let mut set = start(ESCAPING, &scratch, &[containment]).unwrap();
        assert!(load_processes(own).len() > 4, "{name}: {:?}", load_commands(own));
        let mut direct = load_processes(own).into_iter();
        let supervisor = direct.find(|pid| parent_of(*pid) == Some(own)).unwrap();
        signal_to(supervisor, "KILL");
        let samples = sample_until(&mut set, name, |parts| parts[0].died.is_some());
        let died = samples[0].died.as_deref().unwrap();
        assert_eq!(died, "its supervisor was lost: killed by SIGKILL", "{name}");
        assert_no_load(own, SURVIVAL, name);
        let trouble = set.stop().remove(0).trouble;
        assert_eq!(trouble.as_deref(), Some("its supervisor was lost: killed by SIGKILL"));
    }
    assert_eq!(cgroups_of(std::process::id()), Vec::<std::path::PathBuf>::new());
}

pub fn kill_of_supervisor() {
    kill_supervisors(&ROOT);
}

pub fn kill_of_supervisor_as_nobody() {
    kill_supervisors(&nobody());
}
