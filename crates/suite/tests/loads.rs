//! Every load for real: it works, it says why it does not, and nothing outlives it.
//!
//! The program has a main of its own, since it is also its own supervisors
//! (`__load`), the process that is killed (`__host`) and, as the user nobody or as in a
//! container, the tests with fewer rights (`__unprivileged`, `__contained`).

mod loads_answers;
mod loads_kills;
mod loads_memory;
mod loads_placed;
mod loads_support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, ExitCode};
use std::time::Duration;

use loads_kills::*;
use loads_support::*;
use punctual_harness::processes::{assert_no_load, load_processes, parent_of, signal_to, stat};
use punctual_harness::{Folder, Tmpfs, need, programs, refused, root, until, user_namespaces};
use punctual_suite::harness::Containment;
use punctual_suite::harness::supervisor::supervisor_main;
use punctual_suite::loads::LOADS;
use punctual_sys::error::text;
use punctual_sys::process::{Exit, fork_worker, wait};
use punctual_sys::seccomp::{self, Refusal, TIMER_CREATE, TIMERFD_CREATE};
use punctual_sys::timer::{PosixTimer, TimerFd};

type Test = (&'static str, fn());

const TESTS: &[Test] = &[
    ("every_load_works_and_leaves_nothing", every_load_works),
    ("memory_faults_as_the_kernel_counts", loads_answers::memory),
    ("untar_deletes_what_it_creates", loads_answers::untar),
    ("blockio_waits_for_the_disk", loads_answers::blockio),
    ("tlb_interrupts_other_cpus", loads_answers::tlb),
    ("timers_expire_as_often_as_arithmetic_says", loads_answers::timers),
    ("compile_makes_a_copy_of_a_tree", loads_answers::compile),
    ("osadl_holds_its_rates", loads_answers::osadl),
    ("console_lines_are_in_the_log", loads_answers::console),
    ("oom_kills_are_in_the_log", loads_answers::oom),
    ("syscalls_are_all_refused_and_repeat", loads_answers::syscalls),
    ("signals_are_as_many_as_strace_sees", loads_memory::signals),
    ("cache_walks_all_of_its_working_set", loads_memory::cache),
    ("membw_copies_as_fast_as_memcpy", loads_memory::membw),
    ("a_load_that_cannot_start_says_why", refusals),
    ("a_full_disk_is_named", full_disk),
    ("nothing_outlives_a_kill_of_punctual", kill_of_punctual),
    ("nothing_outlives_a_kill_of_the_supervisor", kill_of_supervisor),
    ("nothing_outlives_a_kill_of_both_at_once", kill_of_both),
    ("nothing_outlives_a_kill_during_the_start", kill_in_start),
    ("a_part_that_is_killed_starts_again", restarts),
    ("a_part_that_keeps_failing_is_given_up", given_up),
    ("a_drop_ends_everything", dropped),
    ("loads_inherit_nothing_real_time", inheritance),
    ("every_load_runs_where_it_is_placed", loads_placed::every_load),
    ("a_load_is_real_time_if_asked", loads_placed::real_time),
    ("a_load_keeps_to_its_control_group", loads_placed::in_a_control_group),
    ("loads_keep_all_cpus_busy", loads_placed::all_cpus_busy),
    ("without_privileges", unprivileged),
    ("in_a_container", contained),
];

const UNPRIVILEGED: &[Test] = &[
    ("the_user_namespace_is_used", user_namespace),
    ("every_load_works_without_privileges", every_load_works_as_nobody),
    ("a_composite_names_the_part_that_is_missing", composite_with_trouble),
    ("nothing_outlives_a_kill_of_punctual", kill_of_punctual_as_nobody),
    ("nothing_outlives_a_kill_of_the_supervisor", kill_of_supervisor_as_nobody),
    ("nothing_outlives_a_kill_of_both_at_once", kill_of_both_as_nobody),
];

/// With the rights and the system calls of a Docker container with SYS_NICE.
const CONTAINED: &[Test] = &[
    ("no_namespace_can_be_made_and_the_step_is_named", refused_namespaces),
    ("loads_work_without_namespaces", every_load_works_contained),
    ("a_process_with_threads_does_not_fork", threads_do_not_fork),
    ("a_system_call_that_is_refused_is_named", refused_calls),
];

const ROOT: [Containment; 3] =
    [Containment::PidNamespace, Containment::Cgroup, Containment::Subreaper];
/// The capabilities that Docker leaves to root by default, with `--cap-add SYS_NICE`.
const DOCKER: &str = "-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,\
                      +net_bind_service,+net_raw,+sys_chroot,+mknod,+audit_write,+setfcap,+sys_nice";

/// Counters of what not every machine has: direct writes, swap, interrupts for other CPUs' TLBs, a
/// console; of timers that were late; and of trees, which not every compile has.
const MAY_BE_ZERO: [&str; 6] =
    ["direct-bytes", "major-faults", "shootdowns", "console-bytes", "merged", "builds"];

/// Loads that need a socket which nobody may not have, the kernel's log, or a control group.
const PRIVILEGED: [&str; 6] = ["flood", "paper", "dohell", "console", "oom", "worst"];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("__load") => {
            let code = supervisor_main(&args[1..]);
            ExitCode::from(u8::try_from(code).unwrap_or(1))
        }
        Some("__host") => {
            host_main(&args[1..]);
            ExitCode::SUCCESS
        }
        Some("__unprivileged") => run(UNPRIVILEGED, &[]),
        Some("__contained") => {
            seccomp::refuse(&Refusal::of_docker()).unwrap();
            run(CONTAINED, &[])
        }
        _ => run(TESTS, &args),
    }
}

fn run(tests: &[Test], args: &[String]) -> ExitCode {
    if args.iter().any(|arg| arg == "--list") {
        tests.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let filters: Vec<_> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let mut failed = 0;
    for (name, test) in tests {
        if !filters.is_empty() && !filters.iter().any(|filter| name.contains(*filter)) {
            continue;
        }
        let start = std::time::Instant::now();
        let passed = catch_unwind(AssertUnwindSafe(test)).is_ok();
        failed += u32::from(!passed);
        let outcome = if passed { "ok" } else { "FAILED" };
        println!("test {name} ... {outcome} ({:.1} s)", start.elapsed().as_secs_f64());
    }
    ExitCode::from(u8::from(failed > 0))
}

/// Runs a load for a second and checks its work and what it leaves.
fn check_load(text: &str, containments: &[Containment]) {
    let scratch = Scratch::new("load");
    let mut set = start(text, &scratch, containments).unwrap_or_else(|e| panic!("{text}: {e}"));
    set.mark_start();
    // As the collector does: once a second; the timers of `worst` expire every 2 s.
    std::thread::sleep(Duration::from_millis(if text == "worst" { 2_200 } else { 1_000 }));
    for part in set.sample() {
        assert_eq!(part.died, None, "{text}: {}", part.load);
    }
    let work = set.stop();
    for part in &work {
        let name = format!("{text}: {}", part.load);
        assert_eq!(part.trouble, None, "{name}");
        assert_eq!(part.idle_seconds, 0, "{name}");
        // Of a big file only the first blocks are written after a second.
        let big = text == "dohell" && part.load == "disk";
        let shown = if big { 1 } else { part.counters.len() };
        let must = |name: &str| !MAY_BE_ZERO.contains(&name);
        for counter in part.counters[..shown].iter().filter(|c| must(&c.name)) {
            assert!(counter.total > 0, "{name}: {counter:?}");
            let most = counter.total as f64 / 0.9;
            assert!((0.0..most).contains(&counter.per_second), "{name}: {counter:?}");
        }
        let expected = if part.load == "none" { "none" } else { containments[0].name() };
        assert_eq!(part.containment, expected, "{name}");
    }
    assert_no_load(std::process::id(), Duration::ZERO, text);
    assert_eq!(scratch.entries(), Vec::<String>::new(), "{text}");
    assert_eq!(cgroups_of(std::process::id()), Vec::<std::path::PathBuf>::new(), "{text}");
}

/// Every entry of the registry, and the forms that its parameters give it.
fn texts() -> Vec<String> {
    let mut texts: Vec<String> = LOADS
        .iter()
        .map(|entry| match entry.name {
            "cmd" => "cmd:i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done".to_owned(),
            "disk" => "disk:size=4M,reserve=0".to_owned(),
            "untar" => "untar:files=50".to_owned(),
            // Not on the console of the machine that runs the tests.
            "console" => "console:tty=/dev/null".to_owned(),
            name => name.to_owned(),
        })
        .collect();
    texts.extend(
        [
            "hackbench:1,mode=thread",
            "hackbench:1,mode=process,ipc=pipe,loops=10",
            "hackbench:1,mode=thread,ipc=pipe,nice=19",
            "flood:udp",
            "flood:tcp",
            "copy:2+process:1,threads=2",
        ]
        .map(str::to_owned),
    );
    texts
}

fn every_load_works() {
    for text in texts() {
        check_load(&text, &ROOT);
    }
    for containment in [Containment::Cgroup, Containment::Subreaper] {
        check_load("hackbench:1", &[containment]);
    }
}

fn refusals() {
    let scratch = Scratch::new("refusals");
    for (text, expected) in [
        ("cmd:echo out of luck >&2; exit 3", "exit 3\" exited with status 3: out of luck (5 times"),
        ("cmd:/no/such/program", "exited with status 127: /bin/sh"),
        ("cmd:", "no command given; write cmd:COMMAND"),
        ("cmd:kill -9 $$", "killed by SIGKILL"),
        ("disk:/no/such/dir", "disk: /no/such/dir: No such file or directory"),
        ("oom:limit=900T", "more than an eighth of the available memory"),
        ("disk:size=900T", "No space left on device besides the reserve"),
        ("disk:size=lots", "disk: size=lots: write a size in bytes"),
        ("compile:dir=/proc", "cannot make /proc/punctual-load-"),
        ("compile:tree=/etc", "compile: tree=/etc: there is no Makefile"),
        ("tree:/proc", "tree: /proc: the kernel's own files (/proc, /sys, /dev) are not walked"),
        ("tree:/etc/passwd", "tree: /etc/passwd: Not a directory"),
        ("hackbench:0", "groups=0: must be a whole number from 1 to 1000"),
        ("hackbench:mode=fiber", "mode=fiber: must be process or thread"),
        ("copy+flood:ipx", "flood: proto=ipx: must be icmp, udp or tcp"),
    ] {
        let Err(error) = start(text, &scratch, &ROOT) else {
            panic!("{text} has started");
        };
        assert!(error.contains(expected), "{text}: {error}");
        assert_no_load(std::process::id(), Duration::ZERO, text);
    }
    assert_eq!(scratch.entries(), Vec::<String>::new());
}

fn full_disk() {
    need!(root());
    let scratch = Scratch::new("full");
    let folder = Folder::new("tmpfs");
    let tmpfs = Tmpfs::mount(&folder.path("small"), "1M");
    let dir = tmpfs.path().to_str().unwrap();
    tmpfs.fill();
    let error = start(&format!("disk:{dir},reserve=0"), &scratch, &ROOT).unwrap_err();
    let expected = format!("disk: {dir}: No space left on device");
    assert!(error.starts_with(&expected), "{error}");
    for load in ["untar:dir=", "blockio:", "memory:jobs=1,dir=", "osadl:dir="] {
        let error = start(&format!("{load}{dir}"), &scratch, &ROOT).unwrap_err();
        let (name, _) = load.split_once(':').unwrap();
        let expected = format!("{name}: {dir}: No space left on device besides the reserve");
        assert!(error.starts_with(&expected), "{error}");
    }
    // Here the writes themselves fail.
    let error = start(&format!("compile:dir={dir}"), &scratch, &ROOT).unwrap_err();
    assert!(error.contains("No space left on device"), "{error}");
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(entries.collect::<Vec<_>>(), ["filler"]);
}

fn restarts() {
    let own = std::process::id();
    for containment in ROOT {
        let name = containment.name();
        let scratch = Scratch::new("restarts");
        let mut set = start("hackbench:1", &scratch, &[containment]).unwrap();
        set.mark_start();
        let mut leader = None;
        until(Duration::from_secs(20), || {
            let all = load_processes(own);
            let of = |parent| all.iter().copied().find(|pid| parent_of(*pid) == Some(parent));
            // A watcher beside it has no children.
            leader = of(own).and_then(|supervisor| {
                let below = all.iter().copied().filter(|pid| parent_of(*pid) == Some(supervisor));
                below.into_iter().find(|pid| of(*pid).is_some())
            });
            leader.is_some()
        });
        signal_to(leader.expect("a load has a process with children"), "KILL");
        let before = sample_until(&mut set, name, |parts| parts[0].restarts == 1);
        let done = before[0].counters[0].1;
        sample_until(&mut set, name, |parts| parts[0].counters[0].1 > done + 10_000);
        let work = set.stop();
        assert_eq!((work[0].restarts, work[0].deaths), (1, 1), "{name}");
        assert!(work[0].gone_ns > 0, "{name}: until it was started again");
        assert_eq!(work[0].trouble.as_deref(), Some("killed by SIGKILL"), "{name}");
        assert_no_load(own, Duration::ZERO, name);
    }
}

fn given_up() {
    let scratch = Scratch::new("given-up");
    let flag = scratch.path().join("flag");
    let text = format!("copy+cmd:test ! -e {} && sleep 0.4", flag.display());
    let mut set = start(&text, &scratch, &ROOT).unwrap();
    set.mark_start();
    fs::write(&flag, "").unwrap();
    sample_until(&mut set, "given up", |parts| parts[1].died.is_some());
    let samples = set.sample();
    assert_eq!(samples[0].died, None);
    std::thread::sleep(Duration::from_millis(1100));
    set.sample();
    let work = set.stop();
    let trouble = work[1].trouble.as_deref().unwrap_or("");
    assert!(trouble.contains("exited with status 1 (5 times at once)"), "{trouble}");
    assert!(work[1].idle_seconds >= 1, "{work:?}");
    assert!(work[1].deaths >= 5 && work[1].gone_ns >= 1_000_000_000, "{work:?}");
    assert!(counters(&work, "copy")["bytes"] > 0 && work[0].trouble.is_none(), "{work:?}");
    fs::remove_file(flag).unwrap();
    assert_eq!(scratch.entries(), Vec::<String>::new());
}

fn dropped() {
    let scratch = Scratch::new("drop");
    for containment in ROOT {
        let text = format!("compile+{ESCAPING}");
        let set = start(&text, &scratch, &[containment]).unwrap();
        assert!(!load_processes(std::process::id()).is_empty());
        drop(set);
        assert_no_load(std::process::id(), Duration::ZERO, containment.name());
        assert_eq!(scratch.entries(), Vec::<String>::new());
    }
    assert_eq!(cgroups_of(std::process::id()), Vec::<std::path::PathBuf>::new());
}

fn inheritance() {
    let scratch = Scratch::new("inheritance");
    // Nothing of this may reach the loads: a policy, a nice value, a blocked signal.
    let before = ["chrt", "-f", "10", "env", "--block-signal=TERM", "--ignore-signal=HUP"];
    let host = Host::start(&before, "hackbench:1", Containment::PidNamespace, &scratch);
    assert_eq!(host.ready, "ready\n");
    assert_eq!(stat(host.pid()).unwrap()[38], "1", "the host is not SCHED_FIFO");
    // Only what a caller may want of its loads is passed on: nice values above 0.
    let nice: i32 = stat(std::process::id()).unwrap()[16].parse().unwrap();
    let nice = nice.max(0).to_string();
    let mut seen = 0;
    // Those of a busy machine are not all there yet when it says that it is ready.
    until(Duration::from_secs(20), || {
        seen =
            load_processes(host.pid()).into_iter().filter(|pid| is_untouched(*pid, &nice)).count();
        seen > 10
    });
    assert!(seen > 10, "{seen}");
}

/// Whether a process of a load is still there. If so nothing of its caller has reached it.
fn is_untouched(pid: u32, nice: &str) -> bool {
    let (Some(stat), Ok(status), Ok(score)) = (
        stat(pid),
        fs::read_to_string(format!("/proc/{pid}/status")),
        fs::read_to_string(format!("/proc/{pid}/oom_score_adj")),
    ) else {
        return false;
    };
    let slack = fs::read_to_string(format!("/proc/{pid}/timerslack_ns"));
    // Fields 41, 40 and 19 of proc(5): policy, real-time priority, nice.
    assert_eq!((&*stat[38], &*stat[37], &*stat[16]), ("0", "0", nice));
    assert_eq!(slack.unwrap_or("50000\n".into()).trim(), "50000");
    assert!(["999", "1000"].contains(&score.trim()), "{score}");
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    let mask = |name| u64::from_str_radix(field(name).trim(), 16).unwrap();
    assert_eq!(mask("SigBlk:\t") & 1 << 14, 0, "SIGTERM is blocked");
    assert_eq!(mask("SigIgn:\t") & 1, 0, "SIGHUP is ignored");
    true
}

fn unprivileged() {
    need!(root());
    need!(programs(&["setpriv"]));
    let own = std::env::current_exe().unwrap();
    let user = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let status = Command::new("setpriv").args(user).arg(own).arg("__unprivileged").status();
    assert!(status.unwrap().success());
}

/// What contains a load of nobody here, the strongest first.
fn nobody() -> Vec<Containment> {
    let namespace = user_namespaces().is_ok().then_some(Containment::UserNamespace);
    namespace.into_iter().chain([Containment::Subreaper]).collect()
}

fn contained() {
    need!(root());
    need!(programs(&["setpriv"]));
    let own = std::env::current_exe().unwrap();
    let caps = [format!("--bounding-set={DOCKER}"), "--inh-caps=-all".to_owned()];
    let status = Command::new("setpriv").args(caps).arg(own).arg("__contained").status();
    assert!(status.unwrap().success());
}

fn refused_namespaces() {
    let scratch = Scratch::new("refused");
    for containment in [Containment::PidNamespace, Containment::UserNamespace] {
        let error = start("copy", &scratch, &[containment]).unwrap_err();
        let name = containment.name();
        let expected = format!("copy: no supervisor ({name}: clone: Operation not permitted)");
        assert_eq!(error, expected);
    }
}

fn every_load_works_contained() {
    for text in ["paper", "process", "disk:size=4M,reserve=0", "hackbench:1,mode=thread", ESCAPING]
    {
        let scratch = Scratch::new("contained");
        let mut set = start(text, &scratch, &Containment::ALL).unwrap();
        set.mark_start();
        std::thread::sleep(Duration::from_secs(1));
        for part in set.stop() {
            assert!(["cgroup", "subreaper"].contains(&&*part.containment), "{part:?}");
            assert_eq!((part.trouble, part.deaths), (None, 0), "{text}");
            let worked = part.counters.iter().any(|counter| counter.total > 0);
            assert!(worked || text == ESCAPING, "{text}: {:?}", part.counters);
        }
        assert_no_load(std::process::id(), Duration::ZERO, text);
    }
}

fn threads_do_not_fork() {
    // This first: /proc shows a thread for a moment after it was joined.
    let pid = fork_worker(|| 7).unwrap();
    assert_eq!(wait(pid).unwrap(), Exit::Code(7));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let error = fork_worker(|| 0).unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
        });
    });
}

fn refused_calls() {
    // What the kernel says if the user's limit of pending signals is reached.
    let call = |call| Refusal { call, bits: 0, errno: 11 };
    let calls = [TIMER_CREATE, TIMERFD_CREATE].map(call);
    seccomp::refuse(&calls).unwrap();
    let said = |error: std::io::Error| text(&error);
    let unavailable = "Resource temporarily unavailable";
    let posix = PosixTimer::new(1, 1).map(drop).map_err(said);
    assert_eq!(posix, Err(format!("timer_create: {unavailable}")));
    let timerfd = TimerFd::new(1, 1).map(drop).map_err(said);
    assert_eq!(timerfd, Err(format!("timerfd_create: {unavailable}")));
}

fn user_namespace() {
    assert!(root().is_err());
    if let Err(reason) = user_namespaces() {
        return refused(&reason);
    }
    let scratch = Scratch::new("namespace");
    let set = start("copy", &scratch, &Containment::ALL).unwrap();
    assert_eq!(set.stop()[0].containment, "user-namespace");
    let set = start("copy", &scratch, &[Containment::PidNamespace, Containment::Subreaper]);
    assert_eq!(set.unwrap().stop()[0].containment, "subreaper");
    let Err(error) = start("copy", &scratch, &[Containment::PidNamespace]) else {
        panic!("a PID namespace without privileges");
    };
    let expected = "copy: no supervisor (pid-namespace: clone: Operation not permitted)";
    assert_eq!(error, expected);
}

fn every_load_works_as_nobody() {
    for text in texts() {
        if PRIVILEGED.contains(&text.split(':').next().unwrap()) && !text.contains("flood:") {
            continue;
        }
        check_load(&text, &nobody());
    }
}

fn composite_with_trouble() {
    let scratch = Scratch::new("composite");
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let refused = start("flood", &scratch, &nobody()).err();
    let error = need!(refused.ok_or("nobody may ping here: see net.ipv4.ping_group_range"));
    let expected = "flood: needs a raw or ping socket (root, or net.ipv4.ping_group_range)";
    assert!(error.starts_with(expected), "{error}");
    let mut set = start("paper", &scratch, &nobody()).unwrap();
    set.mark_start();
    std::thread::sleep(Duration::from_secs(1));
    let work = set.stop();
    for part in &work {
        let trouble = part.trouble.as_deref().unwrap_or("");
        assert_eq!(trouble.contains("raw or ping socket"), part.load == "flood", "{part:?}");
        let worked = part.counters[0].total > 0;
        assert_eq!(worked, part.load != "flood", "{part:?}");
    }
}
