//! Work whose amount the kernel, another program or arithmetic knows too.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use punctual_core::schema::LoadWork;
use punctual_harness::processes::{assert_no_load, load_processes, stat};
use punctual_harness::{need, programs, root, until};
use punctual_suite::harness::Containment;
use punctual_sys::{fd, storage};

use crate::loads_support::*;

/// Runs a load for so long, with something to look at shortly before its end.
fn work_of<T>(text: &str, seconds: f64, look: impl FnOnce() -> T) -> (Vec<LoadWork>, f64, T) {
    let scratch = Scratch::new("answers");
    let mut set = begin(text, &scratch);
    set.mark_start();
    let start = Instant::now();
    std::thread::sleep(Duration::from_secs_f64(seconds));
    let seen = look();
    set.sample();
    let took = start.elapsed().as_secs_f64();
    let work = set.stop();
    assert_eq!(work[0].trouble, None, "{text}");
    assert_eq!(work[0].deaths, 0, "{text}");
    (work, took, seen)
}

/// The sum of a value over the processes of this process's load.
fn sum(of: impl Fn(u32) -> Option<u64>) -> u64 {
    load_processes(std::process::id()).into_iter().filter_map(of).sum()
}

pub fn memory() {
    let faults = || sum(|pid| stat(pid)?.get(7)?.parse().ok());
    let (work, _, by_kernel) = work_of("memory:jobs=1,size=1M", 1.0, faults);
    let counted = counters(&work, "memory");
    println!("{counted:?}, {by_kernel} by the kernel");
    assert!(counted["minor-faults"] <= by_kernel + by_kernel / 20, "those of its regions alone");
    assert!(counted["minor-faults"] > by_kernel / 2, "those before the measurement too");
    // Every page of private and shared memory faults once. A file's are found in memory many at
    // a time, and are then copied one by one.
    let pages = counted["pages"];
    let faults = counted["minor-faults"] as f64;
    assert!((0.95..1.5).contains(&(faults / pages as f64)), "{counted:?}");
    let regions = counted["private"] + counted["shared"] + counted["file"];
    // They are counted one after the other.
    let of_region = (1 << 20) / punctual_sys::region::page_size() as u64;
    assert!(pages.abs_diff(regions * of_region) <= of_region, "{counted:?}");
}

pub fn untar() {
    let (work, ..) = work_of("untar:files=100,size=1K", 1.0, || ());
    let counted = counters(&work, "untar");
    let (created, deleted) = (counted["files-created"], counted["files-deleted"]);
    println!("{counted:?}");
    assert!(created > 100 && created.abs_diff(deleted) <= 100, "at most one tree is there");
}

pub fn blockio() {
    if storage::room(&std::env::temp_dir()).is_ok_and(|room| room.in_memory) {
        return println!("skipped: {} is in memory", std::env::temp_dir().display());
    }
    let written = |pid| {
        let io = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
        io.lines().find_map(|line| line.strip_prefix("write_bytes: "))?.parse().ok()
    };
    let scratch = Scratch::new("blockio");
    let mut set = start("blockio:file=256K", &scratch, &[Containment::Subreaper]).unwrap();
    let before = sum(written);
    set.mark_start();
    std::thread::sleep(Duration::from_secs(1));
    set.sample();
    let by_kernel = sum(written) - before;
    let counted = counters(&set.stop(), "blockio");
    println!("{counted:?}, {by_kernel} by the kernel");
    // They are counted one after the other.
    assert!(counted["bytes-written"].abs_diff(counted["writes"] * 4096) <= 4096, "{counted:?}");
    // Each write has reached the disk before it is counted.
    assert!(by_kernel + 8192 >= counted["bytes-written"], "{by_kernel} {counted:?}");
}

pub fn tlb() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return println!("skipped: one CPU");
    }
    let line = || {
        let text = fs::read_to_string("/proc/interrupts").unwrap();
        let counts = text.lines().find_map(|line| line.trim_start().strip_prefix("TLB:"));
        counts.map(|counts| {
            counts.split_whitespace().map_while(|count| count.parse::<u64>().ok()).sum::<u64>()
        })
    };
    let Some(before) = line() else { return println!("skipped: no TLB line") };
    let (work, _, after) = work_of("tlb:threads=2", 1.0, || line().unwrap());
    let two = counters(&work, "tlb");
    let (work, ..) = work_of("tlb:threads=1", 1.0, || ());
    let one = counters(&work, "tlb");
    println!("{two:?}, {} in /proc/interrupts; one thread: {one:?}", after - before);
    assert!(two["shootdowns"] > 0 && two["shootdowns"] <= after - before, "{two:?}");
    // One thread has nobody to tell: what there is comes from others.
    let share = |of: &BTreeMap<String, u64>| of["shootdowns"] as f64 / of["protections"] as f64;
    assert!(share(&two) > 0.01 && share(&two) > 5.0 * share(&one), "{two:?} {one:?}");
}

pub fn timers() {
    need!(root());
    let armed = || {
        let list = fs::read_to_string("/proc/timer_list").unwrap_or_default();
        list.matches("timerfd_tmrproc").count()
    };
    let before = armed();
    let text = "timers:jobs=1,timers=300,period=5ms";
    // What else runs keeps the load from arming them again, for a while.
    let most = || {
        let looks = (0..500).map(|_| {
            std::thread::sleep(Duration::from_millis(3));
            armed()
        });
        let mut most = 0;
        looks.inspect(|now| most = most.max(*now)).any(|now| now >= before + 150);
        most
    };
    let (work, took, during) = work_of(text, 2.0, most);
    let counted = counters(&work, "timers");
    println!("{counted:?} in {took:.3} s, {before} timers before, {during} during");
    let expected = 300.0 * took / 0.005;
    let periods = (counted["expirations"] + counted["merged"]) as f64;
    // What expired last may not have been read yet.
    assert!((0.8..1.02).contains(&(periods / expected)), "{counted:?}, not {expected}");
    assert!(during >= before + 150, "the kernel has {before} timers before and {during} during it");
}

pub fn compile() {
    need!(programs(&["make"]));
    let tree = Scratch::new("tree");
    let steps = "all: a b c\n%: %.in\n\techo $@\n\t@cat $< > $@\nclean:\n\trm -f a b c\n";
    fs::write(tree.path().join("Makefile"), steps).unwrap();
    for name in ["a.in", "b.in", "c.in"] {
        fs::write(tree.path().join(name), name).unwrap();
    }
    let text = format!("compile:jobs=2,tree={}", tree.path().display());
    let (work, ..) = work_of(&text, 2.0, || ());
    let counted = counters(&work, "compile");
    println!("{counted:?}");
    // The command and what it prints, for each of three files.
    let (units, builds) = (counted["units"], counted["builds"]);
    assert!(builds > 2 && units.abs_diff(6 * builds) <= 6, "{counted:?}");
    let mut left = tree.entries();
    left.sort();
    assert_eq!(left, ["Makefile", "a.in", "b.in", "c.in"], "only the copy is made");
}

pub fn osadl() {
    let (work, took, ()) = work_of("osadl:idle=0ns", 3.0, || ());
    let counted = counters(&work, "osadl");
    println!("{counted:?} in {took:.3} s");
    for (name, rate) in [("network-bytes", 125e3), ("disk-bytes", 1e6), ("memory-bytes", 1e6)] {
        let share = counted[name] as f64 / (rate * took);
        // A disk that is busy with others may hold it up, but nothing makes it faster.
        assert!((0.5..1.05).contains(&share), "{name}: {share} of the rate");
    }
}

/// The texts of the records of the kernel's log since it was opened.
fn texts_of(log: &mut File) -> Vec<String> {
    let mut record = [0; 8192];
    let mut texts = Vec::new();
    while let Ok(length @ 1..) = log.read(&mut record) {
        let text = String::from_utf8_lossy(&record[..length]);
        texts.push(text.split_once(';').unwrap().1.to_owned());
    }
    texts
}

fn end_of_log() -> File {
    let mut log = File::open("/dev/kmsg").unwrap();
    log.seek(SeekFrom::End(0)).unwrap();
    fd::set_nonblocking(log.as_fd()).unwrap();
    log
}

pub fn console() {
    need!(root());
    let mut log = end_of_log();
    // No console: the test would print on that of the machine.
    let (work, ..) = work_of("console:tty=/dev/null", 1.0, || ());
    let logged = counters(&work, "console")["lines-logged"];
    let texts = texts_of(&mut log);
    let of = |is: &dyn Fn(&str) -> bool| texts.iter().filter(|text| is(text)).count() as u64;
    let own = of(&|text| text.starts_with("punctual-load: line "));
    let strange = of(&|text| text.contains("load console") && !text.starts_with("punctual-load: "));
    println!("{logged} lines logged, {own} found");
    // Some were written before the measurement began and after it ended.
    assert!(own >= logged && own <= logged + 20 && strange == 0, "{own} of {logged}, {strange}");
    assert!((50..=110).contains(&logged), "{logged}: 100 per second");
}

pub fn oom() {
    need!(root());
    let mut log = end_of_log();
    let (work, ..) = work_of("oom:rate=5", 2.0, || ());
    let kills = counters(&work, "oom")["kills"];
    let texts = texts_of(&mut log);
    let of = |is: &dyn Fn(&str) -> bool| texts.iter().filter(|text| is(text)).count() as u64;
    let killed =
        of(&|text| text.contains("out of memory: Killed process") && text.contains("(oom)"));
    let strange = of(&|text| text.starts_with("Out of memory: Killed process"));
    println!("{kills} kills, {killed} in the log");
    // Some came before the measurement began; the kernel's reports are fewer, but not these lines.
    assert!(killed >= kills && killed <= kills + 3 && strange == 0, "{kills}, {killed}, {strange}");
    assert!((5..=11).contains(&kills), "{kills}: 5 per second");
}

/// The calls of the worker, name and result, in order.
fn traced_calls(seed: u32) -> Vec<String> {
    let scratch = Scratch::new("strace");
    let out = scratch.path().join("calls");
    let load = format!("syscalls:jobs=1,seed={seed}");
    let own = std::env::current_exe().unwrap();
    let mut strace = Command::new("strace");
    strace.args(["-ff", "-qq", "-s0", "-o"]).arg(&out).arg(own);
    strace.args(["__host", &load, Containment::Subreaper.name()]).arg(scratch.path());
    let mut child =
        strace.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // A file for each process. The worker is the one that makes calls without end.
    let calls = || {
        let files = fs::read_dir(scratch.path()).unwrap().flatten();
        let traces = files.filter(|file| file.file_name().to_string_lossy().starts_with("calls."));
        let texts = traces.filter_map(|file| fs::read_to_string(file.path()).ok());
        let lines = |text: String| text.lines().map(str::to_owned).collect::<Vec<_>>();
        texts.map(lines).max_by_key(Vec::len).unwrap_or_default()
    };
    let mut found = Vec::new();
    let enough = until(Duration::from_secs(20), || {
        found = calls();
        found.len() > 4_000
    });
    drop(child.stdin.take());
    child.wait().unwrap();
    assert!(enough, "{} calls", found.len());
    assert_no_load(std::process::id(), Duration::from_secs(2), "strace");
    // What comes before is the start of a process.
    let first = found.iter().position(|call| !call.contains(") = 0") && call.contains("= -1 E"));
    found.split_off(first.unwrap())
}

pub fn syscalls() {
    need!(programs(&["strace"]));
    let calls = traced_calls(7);
    let calls = &calls[..3_000];
    for call in calls {
        assert!(call.contains(" = -1 E"), "not refused: {call}");
    }
    let name = |call: &String| call.split('(').next().unwrap().to_owned();
    let names: std::collections::BTreeSet<_> = calls.iter().map(name).collect();
    println!("{} calls: {names:?}", names.len());
    assert!(names.len() > 50, "{names:?}");
    assert_eq!(calls, &traced_calls(7)[..3_000], "the same seed makes the same calls");
    assert_ne!(calls, &traced_calls(8)[..3_000]);
}
