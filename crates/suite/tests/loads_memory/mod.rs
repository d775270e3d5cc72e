//! Work in memory and between threads, which only the kernel sees from outside: by what pages it
//! finds referenced, by ptrace, and by CPU time.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use punctual_harness::processes::{assert_no_load, load_processes, stat};
use punctual_harness::{need, programs, until};
use punctual_suite::harness::set::LoadSet;
use punctual_suite::registry::{Kind, Value};

use crate::loads_support::*;

/// The worker: the process that used most CPU time, by fields 14 and 15 of proc(5).
fn worker() -> u32 {
    let all = load_processes(std::process::id()).into_iter();
    all.max_by_key(|pid| cpu_ticks(*pid)).unwrap()
}

fn cpu_ticks(pid: u32) -> u64 {
    stat(pid).map_or(0, |stat| stat[11].parse::<u64>().unwrap() + stat[12].parse::<u64>().unwrap())
}

/// The parameter `size` of a load.
fn size_of(set: &LoadSet) -> u64 {
    match (Kind::Size { low: 0 }).parse(&set.described()[0].params["size"]) {
        Ok(Value::Number(bytes)) => bytes,
        other => panic!("{other:?}"),
    }
}

/// Bytes of a process's anonymous memory with these rights that were referenced since
/// `clear_refs`.
fn referenced(pid: u32, rights: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps")).unwrap();
    let mut counts = false;
    let mut bytes = 0;
    for line in text.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        if words[0].contains('-') && !words[0].ends_with(':') {
            counts = words[1] == rights && words.len() == 5;
        } else if counts && words[0] == "Referenced:" {
            bytes += words[1].parse::<u64>().unwrap() << 10;
        }
    }
    bytes
}

/// Whether it references so many bytes again within ten seconds.
fn references_again(pid: u32, rights: &str, wanted: u64) -> bool {
    fs::write(format!("/proc/{pid}/clear_refs"), "1").unwrap();
    let mut found = 0;
    let all = until(Duration::from_secs(10), || {
        found = referenced(pid, rights);
        found >= wanted
    });
    println!("{found} bytes {rights} referenced again, of {wanted}");
    all
}

pub fn cache() {
    let scratch = Scratch::new("cache");
    let mut set = begin("cache:jobs=1", &scratch);
    set.mark_start();
    std::thread::sleep(Duration::from_millis(500));
    let pid = worker();
    set.sample();
    let size = size_of(&set);
    assert!(references_again(pid, "rw-p", size), "all of the largest working set");
    let counted = counters(&set.stop(), "cache");
    assert!(counted["data-lines"] > size / 64, "more than once: {counted:?}");
    assert_no_load(std::process::id(), Duration::ZERO, "cache");
}

/// Bytes that memcpy writes in a second of CPU time, from one half of a memory to the other.
fn by_memcpy(size: usize) -> f64 {
    let mut memory = vec![1_u8; size];
    let (mut from, mut to) = memory.split_at_mut(size / 2);
    let own = || cpu_ticks(std::process::id());
    let (mut bytes, before, begin) = (0, own(), Instant::now());
    while begin.elapsed() < Duration::from_secs(1) {
        std::hint::black_box(&mut *to).copy_from_slice(std::hint::black_box(&*from));
        std::mem::swap(&mut from, &mut to);
        bytes += size / 2;
    }
    bytes as f64 / ((own() - before) as f64 / 100.0)
}

pub fn membw() {
    let mut ratios = Vec::new();
    for _ in 0..5 {
        let scratch = Scratch::new("membw");
        let mut set = begin("membw:jobs=1", &scratch);
        let size = size_of(&set);
        let pid = worker();
        if ratios.is_empty() {
            assert!(references_again(pid, "rw-p", size), "both halves");
        }
        let before = cpu_ticks(pid);
        set.mark_start();
        std::thread::sleep(Duration::from_secs(1));
        set.sample();
        let used = (cpu_ticks(pid) - before) as f64 / 100.0;
        let counted = counters(&set.stop(), "membw");
        // One of the two may be read before, and the other after a copy.
        assert!(counted["bytes-read"].abs_diff(counted["bytes-written"]) <= size, "{counted:?}");
        ratios.push(
            counted["bytes-written"] as f64 / used / by_memcpy(usize::try_from(size).unwrap()),
        );
    }
    ratios.sort_by(f64::total_cmp);
    println!("bytes per second of CPU time, of those of memcpy: {ratios:.2?}");
    assert!((0.67..1.5).contains(&ratios[2]), "{ratios:?}");
}

pub fn signals() {
    need!(programs(&["strace"]));
    let scratch = Scratch::new("signals");
    let mut set = begin("signals:jobs=1,threads=3", &scratch);
    let out = scratch.path().join("trace");
    let pid = worker().to_string();
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-e", "trace=tgkill", "-e", "signal=SIGUSR1", "-o"]).arg(&out);
    let mut tracer = strace.args(["-p", &pid]).stderr(Stdio::null()).spawn().unwrap();
    let traced = || fs::read_to_string(&out).unwrap_or_default();
    assert!(until(Duration::from_secs(10), || traced().lines().count() > 1_000));
    let before = traced().lines().count();
    set.mark_start();
    std::thread::sleep(Duration::from_secs(2));
    let text = traced();
    set.sample();
    let counted = counters(&set.stop(), "signals");
    let _ = tracer.kill();
    tracer.wait().unwrap();
    let seen = |what: &str| text.lines().skip(before).filter(|line| line.contains(what)).count();
    let (handled, sent) = (seen("--- SIGUSR1"), seen("tgkill("));
    println!("{counted:?}; strace saw {handled} handled, {sent} sent");
    // The counter is behind by up to 50 ms, and strace writes what it saw in blocks.
    let near = |count: u64, seen: usize| (0.75..1.34).contains(&(count as f64 / seen as f64));
    assert!(near(counted["signals"], handled) && near(counted["wakeups"], sent));
    assert_no_load(std::process::id(), Duration::from_secs(2), "signals");
}
