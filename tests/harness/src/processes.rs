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

/// How much longer than others a process may be there that has been killed, but waits for a CPU to
/// end on.
const LONGER: u32 = 10;

/// A process that should have gone: its command line, its state, where in the kernel it waits,
/// and whether a SIGKILL is on its way; none if it has gone.
pub fn described(pid: u32) -> Option<String> {
    let line = command_line(pid)?;
    let of = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let status = of("status");
    let state = field(&status, "State:");
    let wait = of("wchan");
    let killed = if is_killed(&status) { ", SIGKILL pending" } else { "" };
    Some(format!("{line}({state}, parent {}, in {wait:?}{killed})", field(&status, "PPid:")))
}

fn field<'a>(status: &'a str, name: &str) -> &'a str {
    let value = status.lines().find_map(|line| line.strip_prefix(name));
    value.unwrap_or_default().trim()
}

/// Whether a process has a SIGKILL on its way, by its `/proc/PID/status`.
fn is_killed(status: &str) -> bool {
    let pending = ["SigPnd:", "ShdPnd:"].map(|name| field(status, name));
    pending.iter().any(|mask| u64::from_str_radix(mask, 16).is_ok_and(has_kill))
}

/// Whether a process has been killed and only lacks a CPU to end on.
fn is_ending(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    is_killed(&status) && field(&status, "State:").starts_with('R')
}

/// Whether SIGKILL is in a mask of signals of proc_pid_status(5).
fn has_kill(mask: u64) -> bool {
    mask & 1 << (9 - 1) != 0
}

/// The processes of loads that the punctual with this number started.
pub fn load_processes(punctual: u32) -> Vec<u32> {
    let marker = format!("PUNCTUAL_LOAD={punctual}-").into_bytes();
    marked(|pair| pair.starts_with(&marker))
}

/// What is left of the loads of a punctual, described.
pub fn load_commands(punctual: u32) -> Vec<String> {
    load_processes(punctual).into_iter().filter_map(described).collect()
}

/// Looks in two seconds, at least: if there were fewer the machine stood still, for loads too.
const LOOKS: u32 = 40;

/// Fails if a process of the loads is there after `limit`, or after ten times that if it was
/// killed and waits for a CPU to end on; returns how long it took.
#[track_caller]
pub fn assert_no_load(punctual: u32, limit: Duration, what: &str) -> Duration {
    let start = Instant::now();
    let mut looks = 0;
    loop {
        looks += 1;
        // Where the machine is busy a look takes seconds: what it found was there at its
        // beginning, not at its end.
        let age = start.elapsed();
        let mut left = load_processes(punctual);
        if left.is_empty() {
            return age;
        }
        if age < limit * LONGER {
            left.retain(|&pid| !is_ending(pid));
        }
        let left: Vec<String> = left.into_iter().filter_map(described).collect();
        let is_over = age >= limit && (limit.is_zero() || looks > LOOKS);
        assert!(!is_over || left.is_empty(), "{what}: after {age:?} there is {left:?}");
        thread::sleep(Duration::from_millis(10));
    }
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

/// How long the first thread of a process was ready without a CPU: the second number of
/// `/proc/PID/schedstat` (Documentation/scheduler/sched-stats.rst), ns.
pub fn waited_for_cpu(pid: u32) -> Duration {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
    let wait = text.split_ascii_whitespace().nth(1).and_then(|number| number.parse().ok());
    Duration::from_nanos(wait.unwrap_or_default())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_should_have_gone_is_described() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let start = Instant::now();
        // Until its exec is over it is a copy of this test.
        while !command_line(child.id()).is_some_and(|line| line.contains("sleep 60")) {
            assert!(start.elapsed() < Duration::from_secs(20));
            thread::sleep(Duration::from_millis(5));
        }
        let said = described(child.id()).unwrap();
        assert!(said.contains(&format!("parent {}", std::process::id())), "{said}");
        assert!(!said.contains("SIGKILL"), "{said}");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(described(child.id()), None);
        assert!(has_kill(0x100) && has_kill(0x4300) && !has_kill(0xfeff));
    }
}
