//! Processes that the tests look for and signal.

use std::fs;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// Length of a tick of `/proc/PID/stat` on every Linux that std supports.
const TICK: Duration = Duration::from_millis(10);

/// The processes of loads that the punctual with this number started, with their
/// command lines. They are found by what they inherit, wherever they have gone.
pub fn load_processes(punctual: u32) -> Vec<String> {
    let marker = format!("PUNCTUAL_LOAD={punctual}-").into_bytes();
    let marked = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
        environment.split(|&byte| byte == 0).find(|one| one.starts_with(&marker))?;
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        Some(format!("{pid}: {}", String::from_utf8_lossy(&line).replace('\0', " ")))
    });
    marked.collect()
}

/// Fails if a process of the loads is there after `limit`; returns how long it took.
pub fn assert_no_load(punctual: u32, limit: Duration, what: &str) -> Duration {
    let start = Instant::now();
    loop {
        let left = load_processes(punctual);
        if left.is_empty() {
            return start.elapsed();
        }
        assert!(start.elapsed() < limit, "{what}: after {limit:?} there is {left:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Sends a signal by its name without SIG.
pub fn signal(child: &Child, name: &str) {
    let line = format!("kill -s {name} {}", child.id());
    assert!(Command::new("sh").args(["-c", &line]).status().unwrap().success(), "{line}");
}

/// How long ago the probe's first thread was started; nothing before that.
pub fn age_of_probe(punctual: u32) -> Option<Duration> {
    let tasks = fs::read_dir(format!("/proc/{punctual}/task")).ok()?;
    let stat = tasks.flatten().find_map(|task| {
        let stat = fs::read_to_string(task.path().join("stat")).ok()?;
        stat.contains("(probe-0)").then_some(stat)
    })?;
    // Field 22 of proc_pid_stat(5), the 20th behind the name.
    let started: u32 = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let now = Duration::from_secs_f64(uptime.split_whitespace().next()?.parse().ok()?);
    Some(now.saturating_sub(TICK * started))
}

/// Waits until the probe's first thread is this old.
pub fn wait_for_probe(child: &mut Child, age: Duration) {
    let start = Instant::now();
    while age_of_probe(child.id()).is_none_or(|now| now < age) {
        assert!(child.try_wait().unwrap().is_none(), "punctual ended early");
        assert!(start.elapsed() < age + Duration::from_secs(20), "no probe after {age:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits for the end of a process; fails if it is not there after `limit`.
pub fn wait_at_most(child: &mut Child, limit: Duration, what: &str) -> ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if start.elapsed() > limit {
            let _ = child.kill();
            let _ = child.wait();
            panic!("{what}: still there after {limit:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
