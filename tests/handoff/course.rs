//! What a hand-over consists of, and what is left behind, however the run ends.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use punctual_harness::processes::{signal, signal_to, wait_at_most};
use punctual_harness::{Folder, need, programs, release, root, text, until};

/// The names of the system calls of each side: the one that waits, the one that posts.
const CALLS: [(&str, &[&str], &[&str]); 9] = [
    ("eventfd", &["read"], &["write"]),
    ("pipe", &["read"], &["write"]),
    ("futex", &["futex"], &["futex"]),
    ("sem", &["futex"], &["futex"]),
    ("svsem", &["semop"], &["semop"]),
    ("mqueue", &["mq_timedreceive"], &["mq_timedsend"]),
    ("signal", &["rt_sigsuspend", "rt_sigreturn"], &["tgkill"]),
    ("sigwait", &["rt_sigtimedwait"], &["tgkill"]),
    ("condvar", &["futex"], &["futex"]),
];

/// The system calls of the thread with this name, in order.
fn calls_of(traces: &Path, thread: &str) -> Vec<String> {
    let named = format!("prctl(PR_SET_NAME, \"{thread}\")");
    let trace = fs::read_dir(traces).unwrap().find_map(|entry| {
        let trace = fs::read_to_string(entry.unwrap().path()).unwrap();
        trace.contains(&named).then_some(trace)
    });
    let trace = trace.unwrap_or_else(|| panic!("no trace of {thread}"));
    let name = |line: &str| Some(line.split_once('(')?.0.to_owned());
    trace.lines().filter_map(name).collect()
}

/// The longest row of calls that are all among these.
fn longest_row(calls: &[String], among: &BTreeSet<&str>) -> Vec<String> {
    let rows = calls.split(|call| !among.contains(call.as_str()));
    rows.max_by_key(|row| row.len()).unwrap().to_vec()
}

#[test]
fn no_system_call_but_those_of_the_hand_over() {
    let binary = need!(release());
    need!(programs(&["strace"]));
    const SAMPLES: usize = 200;
    for (by, waits, posts) in CALLS {
        let folder = Folder::new(&format!("calls-{by}"));
        fs::create_dir(folder.path("traces")).unwrap();
        let (probe, samples) = (format!("handoff:by={by}"), SAMPLES.to_string());
        let tool = ["-f", "-ff", "-o", "traces/trace", binary.to_str().unwrap(), "run"];
        let line = [&probe, "-q", "-l", &samples, "--no-warmup", "--no-report", "--out", "r"];
        folder.run("strace", &[&tool[..], &line].concat());
        let engine = &folder.json("r/run.json")["facts"]["engine"];
        let vdso = engine["clock_vdso"].as_bool().expect("facts.engine.clock_vdso");
        let clock = if vdso { &[][..] } else { &["clock_gettime"] };
        for (thread, own, rest) in [
            // What answers, and what waits for the answer, is an eventfd.
            ("probe-0", waits, &["write"][..]),
            ("helper-0", posts, &["clock_nanosleep", "read"]),
        ] {
            let calls = calls_of(&folder.path("traces"), thread);
            let among: BTreeSet<_> = own.iter().chain(rest).chain(clock).copied().collect();
            let row = longest_row(&calls, &among);
            let count = |name: &str| row.iter().filter(|call| *call == name).count();
            println!("{by} {thread}: {} calls, {} {}", row.len(), count(rest[0]), rest[0]);
            assert!(count(rest[0]) >= SAMPLES, "{by} {thread}: {calls:?}");
            assert!(
                own.iter().any(|name| count(name) >= SAMPLES * 9 / 10),
                "{by} {thread}: {row:?}"
            );
            // Two for a condition, and one more if a wait begins late.
            assert!(row.len() <= SAMPLES * 5, "{by} {thread}: {row:?}");
        }
    }
}

/// How long a run may take to end.
const ENDS: Duration = Duration::from_secs(20);

/// A run that is killed if its test fails.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A run that has begun to measure, of an hour.
fn begun(folder: &Folder, binary: &Path, probe: &str) -> Running {
    let line = ["run", probe, "-q", "-D", "1h", "--no-warmup", "--no-report", "--out", "r"];
    let mut command = folder.command(binary);
    let child = command.args(line).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let blocks = || {
        let cells = fs::read_dir(folder.path("r/cells")).into_iter().flatten().flatten();
        cells
            .filter_map(|cell| fs::metadata(cell.path().join("blocks")).ok())
            .map(|file| file.len())
    };
    // A block comes after a second.
    let running = Running(child);
    assert!(until(ENDS, || blocks().any(|bytes| bytes > 200)), "{probe}");
    running
}

/// Whether there are semaphores of this key.
fn are_there(key: &str) -> bool {
    let all = fs::read_to_string("/proc/sysvipc/sem").unwrap();
    all.lines().any(|line| line.split_whitespace().next() == Some(key))
}

#[test]
fn semaphores_of_a_killed_run_are_removed_by_restore() {
    let binary = need!(release());
    let folder = Folder::new("svsem");
    let key = |text: &str| {
        let (_, rest) = text.split_once("semaphores of key ").unwrap_or_else(|| panic!("{text}"));
        rest.split_whitespace().next().unwrap().to_owned()
    };
    let restore = |args: &[&str]| {
        let output = folder.command(&binary).arg("restore").args(args).output().unwrap();
        text(&output.stdout) + &text(&output.stderr)
    };
    let mut child = begun(&folder, &binary, "handoff:by=svsem,threads=3");
    child.0.kill().unwrap();
    child.0.wait().unwrap();
    let key = key(&restore(&["--dry-run"]));
    assert!(are_there(&key));
    restore(&[]);
    assert!(!are_there(&key));
}

#[test]
fn nothing_is_left_of_what_a_run_waits_with() {
    let binary = need!(release());
    for by in ["svsem", "mqueue"] {
        let folder = Folder::new(by);
        let before = fs::read_to_string("/proc/sysvipc/sem").unwrap();
        let mut child = begun(&folder, &binary, &format!("handoff:by={by}"));
        if by == "mqueue" {
            let open = fs::read_dir(format!("/proc/{}/fd", child.0.id())).unwrap();
            let links = open.filter_map(|fd| fs::read_link(fd.ok()?.path()).ok());
            let links = links.map(|to| to.to_string_lossy().into_owned());
            let queues: Vec<_> = links.filter(|to| to.starts_with("/punctual-")).collect();
            assert!(queues.len() == 1 && queues[0].ends_with(" (deleted)"), "{queues:?}");
        } else {
            assert_ne!(fs::read_to_string("/proc/sysvipc/sem").unwrap(), before);
        }
        signal(&child.0, "INT");
        assert_eq!(wait_at_most(&mut child.0, ENDS, by).code(), Some(130));
        assert_eq!(fs::read_to_string("/proc/sysvipc/sem").unwrap(), before);
    }
}

/// The process that posts, as a child of punctual.
fn poster_of(punctual: u32) -> Option<u32> {
    let path = format!("/proc/{punctual}/task/{punctual}/children");
    let children = fs::read_to_string(path).unwrap_or_default();
    let mut children = children.split_whitespace().filter_map(|pid| pid.parse().ok());
    children.find(|pid: &u32| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name == "punctual-posts\n"
    })
}

fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

#[test]
fn a_posting_process_has_the_scheduling_of_its_thread_and_ends_with_the_run() {
    let binary = need!(release());
    need!(root());
    for (by, end) in [("futex", "INT"), ("condvar", "KILL"), ("sem", "TERM")] {
        let folder = Folder::new("processes");
        let probe = format!("handoff:by={by},between=processes,affinity=0,priority=7");
        let mut child = begun(&folder, &binary, &probe);
        let poster = poster_of(child.0.id()).expect("a process that posts");
        let status = fs::read_to_string(format!("/proc/{poster}/status")).unwrap();
        assert!(status.contains("Cpus_allowed_list:\t0\n"), "{status}");
        let shown = text(&folder.run("chrt", &["-p", &poster.to_string()]).stdout);
        assert!(shown.contains("SCHED_FIFO") && shown.contains(": 7"), "{shown}");
        signal(&child.0, end);
        wait_at_most(&mut child.0, ENDS, by);
        assert!(until(Duration::from_secs(2), || !is_alive(poster)), "{by} {end}");
        if end != "KILL" {
            let cell = &folder.json("r/run.json")["cells"][0];
            assert!(cell["samples"].as_u64().unwrap() > 500, "{by}: {cell}");
        }
    }
}

#[test]
fn a_posting_process_that_is_killed_fails_the_cell_and_says_so() {
    let binary = need!(release());
    let folder = Folder::new("killed");
    let mut child = begun(&folder, &binary, "handoff:by=pipe,between=processes,policy=other");
    signal_to(poster_of(child.0.id()).expect("a process that posts"), "KILL");
    let status = wait_at_most(&mut child.0, ENDS, "punctual");
    let cell = &folder.json("r/run.json")["cells"][0];
    let said = cell.to_string();
    assert!(said.contains("the process that posts has ended"), "{status} {said}");
    assert_ne!(status.code(), Some(0));
    assert!(cell["samples"].as_u64().unwrap() > 500, "{said}");
}

#[test]
fn what_cannot_be_had_is_skipped_with_its_remedy() {
    let binary = need!(release());
    need!(root());
    need!(programs(&["setpriv", "prlimit", "unshare"]));
    let binary = binary.to_str().unwrap();
    let line = "-D 100ms --no-warmup --no-report --json --out";
    for (by, script, remedy) in [
        ("mqueue", "setpriv --bounding-set=-sys_resource prlimit --msgqueue=0", "ulimit -q"),
        ("svsem", "echo 250 0 32 0 > /proc/sys/kernel/sem; exec", "semget: No space left"),
    ] {
        let folder = Folder::new("skipped");
        let command = format!("{script} {binary} run handoff:by={by} {line} r");
        let ended = folder.try_run("unshare", &["--ipc", "sh", "-c", &command]);
        let said = text(&ended.stdout);
        assert_eq!(ended.status.code(), Some(4), "{by}: {said} {}", text(&ended.stderr));
        let run: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
        let reason = run["cells"][0]["reason"].as_str().unwrap_or_default();
        assert!(reason.contains(remedy), "{by}: {reason}");
    }
}
