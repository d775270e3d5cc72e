//! Where loads run, as the kernel says it.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use punctual_harness::need;
use punctual_harness::processes::{assert_no_load, load_processes, parent_of, stat};
use punctual_suite::facts::CpuTimes;
use punctual_suite::facts::FactsRoot;
use punctual_suite::harness::Containment;
use punctual_suite::harness::spec::LoadSpec;
use punctual_sys::affinity;

use crate::loads_support::*;
use crate::texts;

/// Fields 41, 40, 19, 14 and 15 of proc(5), from 0.
const POLICY: usize = 38;
const PRIORITY: usize = 37;
const NICE: usize = 16;
const USED: [usize; 2] = [11, 12];

/// The processes of this process's load, without the supervisors.
fn placed() -> Vec<u32> {
    let own = std::process::id();
    let all = load_processes(own);
    all.into_iter().filter(|pid| parent_of(*pid).is_some_and(|parent| parent != own)).collect()
}

fn status(pid: u32, thread: &str, field: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{thread}/status")).ok()?;
    text.lines().find_map(|line| Some(line.strip_prefix(field)?.trim().to_owned()))
}

/// The CPUs that the threads of a process may run on.
fn cpus_of(pid: u32) -> BTreeSet<String> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let names = threads.filter_map(|thread| thread.file_name().into_string().ok());
    names.filter_map(|thread| status(pid, &thread, "Cpus_allowed_list:")).collect()
}

/// Every load of the registry runs on the CPU, with the nice value and by the policy that it is
/// told, and so does all that it starts.
pub fn every_load() {
    let cpus: Vec<_> = affinity::get().unwrap().iter().collect();
    let cpu = cpus.last().unwrap().to_string();
    let placed_itself = |text: &String| text == "none" || text.contains("nice=");
    for text in texts().into_iter().filter(|text| !placed_itself(text)) {
        let Ok(mut placed_text) = LoadSpec::with(&text, "cpus", &cpu) else {
            // A command places itself.
            assert!(text.contains("cmd:"), "{text}");
            continue;
        };
        for (param, value) in [("nice", "7"), ("policy", "batch")] {
            placed_text = LoadSpec::with(&placed_text, param, value).unwrap();
        }
        let scratch = Scratch::new("placed");
        let set = begin(&placed_text, &scratch);
        let mut seen = 0;
        for _ in 0..10 {
            for pid in placed() {
                let (cpus, Some(stat)) = (cpus_of(pid), stat(pid)) else { continue };
                assert!(cpus.iter().all(|one| *one == cpu), "{text}: {cpus:?}");
                let nice: i32 = stat[NICE].parse().unwrap();
                assert_eq!((&*stat[POLICY], nice), ("3", 7), "{text}");
                seen += 1;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(seen > 0, "{text}");
        // What was asked for is in the record, and nothing else of the kind.
        for part in set.stop() {
            let given = ["cpus", "nice", "policy", "priority", "cgroup"]
                .map(|name| part.params.get(name).map(String::as_str));
            assert_eq!(given, [Some(&*cpu), Some("7"), Some("batch"), None, None], "{text}");
        }
    }
    assert_no_load(std::process::id(), Duration::ZERO, "placed");
}

pub fn real_time() {
    let scratch = Scratch::new("real-time");
    let set = begin("copy:jobs=1,policy=rr,priority=3", &scratch);
    let found: BTreeSet<_> = placed()
        .into_iter()
        .filter_map(stat)
        .map(|stat| (stat[POLICY].clone(), stat[PRIORITY].clone()))
        .collect();
    assert_eq!(found, [("2".to_owned(), "3".to_owned())].into());
    // Nothing real-time is between punctual and the end of its load.
    let before = Instant::now();
    drop(set);
    assert!(before.elapsed() < Duration::from_secs(10));
    assert_no_load(std::process::id(), Duration::ZERO, "real-time");
}

/// A new control group, with a limit of the number of processes if the kernel has one.
fn control_group() -> Result<(PathBuf, bool), String> {
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    let of = |wanted: &dyn Fn(&[&str]) -> bool| {
        let lines = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let found = lines.into_iter().find(|words| wanted(words));
        found.map(|words| PathBuf::from(words[1]))
    };
    let old = of(&|words| words[2] == "cgroup" && words[3].split(',').any(|one| one == "pids"));
    let parent = old.or_else(|| of(&|words| words[2] == "cgroup2"));
    let parent = parent.ok_or("no control groups are mounted")?;
    let group = parent.join(format!("punctual-test-{}", std::process::id()));
    fs::create_dir(&group).map_err(|error| format!("{}: {error}", group.display()))?;
    let limited = fs::write(group.join("pids.max"), "30").is_ok();
    Ok((group, limited))
}

struct Group(PathBuf);

impl Drop for Group {
    fn drop(&mut self) {
        let gone =
            punctual_harness::until(Duration::from_secs(5), || fs::remove_dir(&self.0).is_ok());
        assert!(gone || std::thread::panicking(), "{} is still used", self.0.display());
    }
}

pub fn in_a_control_group() {
    let (folder, limited) = need!(control_group());
    let group = Group(folder.clone());
    let scratch = Scratch::new("group");
    let text = format!("syscalls:jobs=2,cgroup={}", folder.display());
    let set = begin(&text, &scratch);
    let members = || -> BTreeSet<u32> {
        let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap();
        text.lines().map(|pid| pid.parse().unwrap()).collect()
    };
    assert_eq!(members(), placed().into_iter().collect(), "leader and workers");
    assert!(members().len() >= 3);
    drop(set);
    assert_eq!(members(), BTreeSet::new());
    if limited {
        // 41 processes are more than its limit.
        let text = format!("hackbench:groups=1,cgroup={}", folder.display());
        let error = start(&text, &scratch, &[Containment::PidNamespace]).unwrap_err();
        assert!(error.contains("fork: Resource temporarily unavailable"), "{error}");
    } else {
        println!("the control group has no limit of processes");
    }
    let error = start("syscalls:cgroup=/tmp", &scratch, &[Containment::PidNamespace]).unwrap_err();
    assert!(error.contains("cgroup=/tmp: it is no control group"), "{error}");
    drop(group);
    assert_no_load(std::process::id(), Duration::ZERO, "group");
}

/// Shares of all CPUs' time over a second: not idle, and used by the load.
fn shares() -> (f64, f64) {
    let times = CpuTimes::open(&FactsRoot::live()).unwrap();
    let used = || -> u64 {
        let of = |stat: Vec<String>| {
            USED.iter().map(|one| stat[*one].parse::<u64>().unwrap()).sum::<u64>()
        };
        placed().into_iter().filter_map(stat).map(of).sum()
    };
    let (before, own_before, begin) = (times.read().unwrap(), used(), Instant::now());
    std::thread::sleep(Duration::from_secs(1));
    let (after, own_after, elapsed) = (times.read().unwrap(), used(), begin.elapsed());
    let cpus = std::thread::available_parallelism().unwrap().get();
    let own = own_after.saturating_sub(own_before) as f64 / 100.0;
    (f64::from(before.until(&after).unwrap().busy) / 1e3, own / elapsed.as_secs_f64() / cpus as f64)
}

/// The papers' "100 % busy".
pub fn all_cpus_busy() {
    for text in ["syscalls", "membw", "cache", "faults", "paper"] {
        let scratch = Scratch::new("busy");
        let set = begin(text, &scratch);
        let (busy, own) = shares();
        println!(
            "{text}: CPUs {:.1} % busy, {:.1} % by what still lives of it",
            busy * 100.0,
            own * 100.0
        );
        assert!(busy >= 0.95, "{text}: {busy}");
        // Processes that have ended meanwhile are not seen; other programs may take their share.
        assert!(own > 0.01, "{text}: {own}");
        drop(set);
    }
}
