//! Processes that the tests look for, wait for and signal: only those that they started,
//! found by a variable that descendants inherit, wherever these have gone.

use std::fs;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

/// Length of a tick of `/proc/PID/stat` on every Linux that std supports.
const TICK: Duration = Duration::from_millis(10);

/// The processes that have a variable, as `NAME=value`, which `is` knows.
pub fn marked(is: impl Fn(&[u8]) -> bool) -> Vec<u32> {
    let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
        environment.split(|&byte| byte == 0).any(&is).then_some(pid)
    });
    pids.collect()
}

/// Number and command line of a process; none if it has gone.
pub fn command_line(pid: u32) -> Option<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    Some(format!("{pid}: {}", String::from_utf8_lossy(&line).replace('\0', " ")))
}

/// The processes of loads that the punctual with this number started.
pub fn load_processes(punctual: u32) -> Vec<u32> {
    let marker = format!("PUNCTUAL_LOAD={punctual}-").into_bytes();
    marked(|pair| pair.starts_with(&marker))
}

/// The command lines of what is left of the loads of a punctual.
pub fn load_commands(punctual: u32) -> Vec<String> {
    load_processes(punctual).into_iter().filter_map(command_line).collect()
}

/// Fails if a process of the loads is there after `limit`; returns how long it took.
#[track_caller]
pub fn assert_no_load(punctual: u32, limit: Duration, what: &str) -> Duration {
    let start = Instant::now();
    while !load_processes(punctual).is_empty() {
        let left = load_commands(punctual);
        assert!(start.elapsed() < limit, "{what}: after {limit:?} there is {left:?}");
        thread::sleep(Duration::from_millis(10));
    }
    start.elapsed()
}

/// Fields of `/proc/PID/stat` after the name, the state first.
pub fn stat(pid: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
    Some(fields.map(str::to_owned).collect())
}

/// The parent of a process.
pub fn parent_of(pid: u32) -> Option<u32> {
    stat(pid)?.get(1)?.parse().ok()
}

/// Sends a signal, by its name without SIG, to a process that this test started.
#[track_caller]
pub fn signal_to(pid: u32, name: &str) {
    let pid = pid.to_string();
    let status = Command::new("kill").args(["-s", name, &pid]).status().unwrap();
    assert!(status.success(), "kill -s {name} {pid}");
}

/// Sends a signal, by its name without SIG.
#[track_caller]
pub fn signal(child: &Child, name: &str) {
    signal_to(child.id(), name);
}

/// How long ago the probe's first thread was started; nothing before that.
pub fn age_of_probe(punctual: u32) -> Option<Duration> {
    let tasks = fs::read_dir(format!("/proc/{punctual}/task")).ok()?;
    let stat = tasks.flatten().find_map(|task| {
        let stat = fs::read_to_string(task.path().join("stat")).ok()?;
        stat.contains("(probe-0)").then_some(stat)
    })?;
    // Field 22 of proc_pid_stat(5), the 20th after the name.
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
        thread::sleep(Duration::from_millis(10));
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
        thread::sleep(Duration::from_millis(5));
    }
}
