//! What others take from a cell: real-time threads that may run before the probe, limits of control
//! groups, a scheduler that is loaded.

use std::fs;
use std::os::unix::fs::symlink;

use punctual_core::schema::{Placement, Policy};
use punctual_suite::facts::{Facts, GroupLimits, Rivals};

use crate::fixtures::Board;
use crate::{GOOD, ids, text};

const FIFO: u32 = 1;
const RR: u32 = 2;
const DEADLINE: u32 = 6;
const KERNEL_THREAD: u32 = 0x0020_0000;
/// This process.
const OWN: u32 = 70;

/// A thread of a board.
#[derive(Clone, Copy)]
struct Thread {
    process: u32,
    thread: u32,
    name: &'static str,
    parent: u32,
    flags: u32,
    policy: u32,
    priority: u32,
    cpus: &'static str,
    /// Threads of its process.
    of: u32,
    ticks: u64,
}

const MULTIPATHD: Thread = Thread {
    process: 410,
    thread: 412,
    name: "multipathd",
    parent: 1,
    flags: 0,
    policy: RR,
    priority: 99,
    cpus: "0-1",
    of: 2,
    ticks: 100,
};

impl Thread {
    /// Writes what `/proc` says of it.
    fn on(self, board: &Board) {
        let Self { process, thread, name, parent, flags, policy, priority, cpus, of, ticks } = self;
        let line = format!(
            "{thread} ({name}) S {parent} 1 1 0 -1 {flags} 0 0 0 0 {ticks} 0 0 0 -100 0 {of} 0 9 0 \
             0 0 1 1 0 0 0 0 0 0 0 0 0 0 17 1 {priority} {policy} 0 0 0 0 0 0 0 0 0 0 0\n"
        );
        let folder = format!("proc/{process}/task/{thread}");
        board.write(&format!("{folder}/stat"), &line);
        board.write(&format!("{folder}/status"), format!("Cpus_allowed_list:\t{cpus}\n"));
        if process == thread || of > 1 {
            // The first thread of multipathd is an ordinary one.
            let first = if process == thread { line } else { line.replace(" 99 2 ", " 0 0 ") };
            board.write(&format!("proc/{process}/stat"), first);
        }
    }

    /// The same with CPU time to the nanosecond.
    fn used(self, board: &Board, ns: u64) {
        self.on(board);
        let file = format!("proc/{}/task/{}/schedstat", self.process, self.thread);
        board.write(&file, format!("{ns} 5 6\n"));
    }
}

fn board() -> Board {
    let board = Board::new("nosmt");
    let _ = fs::remove_dir_all(board.folder.join("proc/self"));
    fs::create_dir_all(board.folder.join(format!("proc/{OWN}"))).unwrap();
    symlink(OWN.to_string(), board.folder.join("proc/self")).unwrap();
    board
}

fn probe(policy: Policy, priority: u32, cpus: &str) -> Placement {
    Placement { policy, priority, affinity: cpus.to_owned(), ..Placement::default() }
}

/// What is said of a cell in which a thread uses 310 ms.
fn said(thread: Thread, probe: &Placement) -> String {
    let board = board();
    thread.used(&board, 7_000_000);
    let mut rivals = Rivals::find(&board.root());
    thread.used(&board, 17_000_000);
    rivals.begin();
    thread.used(&board, 327_000_000);
    rivals.end();
    thread.used(&board, 999_000_000);
    rivals.told(&[probe], "the probe").map_or_else(String::new, |condition| {
        assert_eq!(condition.id, "rivals");
        condition.text
    })
}

#[test]
fn a_thread_that_may_run_before_the_probe_is_named_with_its_cpu_time() {
    let said = said(MULTIPATHD, &probe(Policy::Fifo, 80, "1-3"));
    assert_eq!(
        said,
        "multipathd-412 (SCHED_RR 99) may run before the probe on CPU 1: it used 310.000 ms of CPU \
         in this cell; stop such threads or bind them to other CPUs (taskset -pc)"
    );
}

#[test]
fn only_what_the_scheduler_lets_run_first_is_a_rival() {
    let fifo = probe(Policy::Fifo, 80, "0");
    let of = |policy, priority| Thread { policy, priority, ..MULTIPATHD };
    let own = Thread { parent: OWN, ..MULTIPATHD };
    let kernel = |name, priority| Thread {
        name,
        flags: KERNEL_THREAD,
        policy: FIFO,
        priority,
        process: 50,
        thread: 50,
        of: 1,
        ..MULTIPATHD
    };
    let irq = kernel("irq/24-eth0", 80);
    let raised = kernel("irq/24-eth0", 81);
    let deadline = probe(Policy::Deadline, 0, "0");
    let other = probe(Policy::Other, 0, "0");
    for (thread, probe, expected) in [
        (of(FIFO, 80), &fifo, true),
        (of(FIFO, 79), &fifo, false),
        (of(RR, 80), &probe(Policy::Rr, 80, "1"), true),
        (of(DEADLINE, 0), &fifo, true),
        (of(DEADLINE, 0), &deadline, true),
        (of(FIFO, 99), &deadline, false),
        (of(FIFO, 1), &other, true),
        (of(0, 0), &other, false),
        (of(FIFO, 99), &probe(Policy::Fifo, 80, "2"), false),
        (of(FIFO, 99), &probe(Policy::Unknown, 0, "0"), false),
        (own, &fifo, false),
        (irq, &fifo, false),
        (raised, &fifo, true),
        (irq, &other, false),
        (kernel("migration/0", 99), &fifo, false),
    ] {
        let name = format!("{} {} {}", thread.name, thread.policy, thread.priority);
        assert_eq!(!said(thread, probe).is_empty(), expected, "{name} and {probe:?}");
    }
}

#[test]
fn one_that_never_ran_is_none_and_less_than_a_tick_may_be_some() {
    let fifo = probe(Policy::Fifo, 80, "0");
    let board = board();
    MULTIPATHD.used(&board, 5);
    let mut rivals = Rivals::find(&board.root());
    rivals.begin();
    rivals.end();
    assert_eq!(rivals.told(&[&fifo], "the probe"), None);
    // Without CONFIG_SCHED_INFO there are ticks only.
    fs::remove_file(board.folder.join("proc/410/task/412/schedstat")).unwrap();
    rivals.begin();
    rivals.end();
    let said = rivals.told(&[&fifo], "the probe").unwrap().text;
    assert!(said.contains("it used less than 10.000 ms of CPU"), "{said}");
}

#[test]
fn rivals_that_come_and_go_in_a_cell_are_named() {
    let fifo = probe(Policy::Fifo, 80, "0");
    let board = board();
    let late = Thread { process: 600, thread: 600, of: 1, name: "late", ..MULTIPATHD };
    MULTIPATHD.used(&board, 5);
    let mut rivals = Rivals::find(&board.root());
    rivals.begin();
    std::thread::sleep(std::time::Duration::from_millis(2));
    late.used(&board, 1_000_000);
    fs::remove_dir_all(board.folder.join("proc/410")).unwrap();
    rivals.end();
    let said = rivals.told(&[&fifo], "the probe").unwrap().text;
    let came = "late-600 (SCHED_RR 99) may run before the probe on CPU 0: it was no rival before \
                this cell and used at most 1.000 ms of CPU; multipathd-412 ";
    assert!(said.starts_with(came), "{said}");
    assert!(said.contains("it ended in this cell, and what it used is not known"), "{said}");
    // The next cell knows it from the start.
    rivals.begin();
    late.used(&board, 3_000_000);
    rivals.end();
    let said = rivals.told(&[&fifo], "the probe").unwrap().text;
    assert!(said.contains("it used 2.000 ms of CPU in this cell"), "{said}");
    assert!(!said.contains("multipathd"), "{said}");
}

#[test]
fn the_worst_of_many_are_named() {
    let board = board();
    let many: Vec<Thread> = (600..605)
        .map(|number| Thread { process: number, thread: number, of: 1, name: "x", ..MULTIPATHD })
        .collect();
    many.iter().for_each(|one| one.used(&board, 0));
    let mut rivals = Rivals::find(&board.root());
    rivals.begin();
    many.iter().for_each(|one| one.used(&board, u64::from(one.thread - 599) * 1_000_000));
    rivals.end();
    let fifo = probe(Policy::Fifo, 80, "0");
    let said = rivals.told(&[&fifo], "the timed thread").unwrap().text;
    for named in ["x-604", "x-603", "x-602", "before the timed thread", "; and 2 more, "] {
        assert!(said.contains(named), "{said}");
    }
    assert!(!said.contains("x-601"), "{said}");
}

/// A board whose process is in these groups.
fn in_groups(groups: &str, mounts: &str) -> Board {
    let board = Board::new("nosmt");
    board.write("proc/self/cgroup", groups);
    board.write("proc/self/mountinfo", mounts);
    board
}

#[test]
fn what_limits_of_version_2_took_is_told() {
    let board = in_groups(
        "0::/user.slice/a.scope\n",
        "25 1 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
    );
    let group = |name: &str| format!("sys/fs/cgroup/user.slice/{name}");
    board.write(&group("cpu.max"), "5000 100000\n");
    board.write(&group("a.scope/cpu.max"), "max 100000\n");
    board.write(&group("a.scope/memory.max"), "268435456\n");
    board.write(&group("a.scope/memory.high"), "max\n");
    let stat =
        |times: u64, us: u64| format!("usage_usec 9\nnr_throttled {times}\nthrottled_usec {us}\n");
    let events = |max: u64| format!("low 0\nhigh 3\nmax {max}\noom 0\n");
    board.write(&group("cpu.stat"), stat(10, 1_000));
    board.write(&group("a.scope/memory.events.local"), events(4));
    board.write(&group("a.scope/memory.events"), events(400));

    let facts = Facts::read(&board.root());
    let found = facts.scheduler.group_limits.iter();
    let found: Vec<_> = found.map(|one| (&one.group[..], one.knob, &one.value[..])).collect();
    let expected = [
        ("/user.slice", "cpu.max", "5000 100000"),
        ("/user.slice/a.scope", "memory.max", "268435456"),
    ];
    assert_eq!(found, expected);

    let mut limits = GroupLimits::find(&board.root());
    limits.begin();
    limits.end();
    assert_eq!(limits.told("the load"), None, "nothing was taken");
    board.write(&group("cpu.stat"), stat(412, 9_501_000));
    board.write(&group("a.scope/memory.events.local"), events(5));
    limits.end();
    let told = limits.told("the load").unwrap();
    assert_eq!(told.id, "group-limits");
    assert_eq!(
        told.text,
        "cpu.max of /user.slice allows 5 % of a CPU: the load was throttled 402 times in this \
         cell, for 9.500 s (the sum over all CPUs); memory.max of /user.slice/a.scope allows 256 \
         MiB: the load reached it once in this cell, and waited for memory to be freed or was \
         killed; raise it, or run in another control group"
    );
    limits.begin();
    limits.end();
    assert_eq!(limits.told("the load"), None, "what was taken before the cell");
    fs::remove_file(board.folder.join(group("cpu.stat"))).unwrap();
    limits.end();
    let told = limits.told("the load").unwrap().text;
    assert!(told.contains("what it took in this cell cannot be read"), "{told}");
}

#[test]
fn what_limits_of_version_1_took_is_told() {
    let board = in_groups(
        "4:memory:/box\n1:cpu,cpuacct:/q\n0::/\n",
        "32 31 0:29 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
         35 31 0:32 /box /cg/memory rw - cgroup cgroup rw,memory\n\
         41 31 0:38 / /cg/unified rw - cgroup2 cgroup2 rw\n",
    );
    board.write("cg/cpu/cpu.cfs_quota_us", "-1\n");
    board.write("cg/cpu/cpu.cfs_period_us", "100000\n");
    board.write("cg/cpu/cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n");
    board.write("cg/cpu/q/cpu.cfs_quota_us", "250000\n");
    board.write("cg/cpu/q/cpu.cfs_period_us", "100000\n");
    board.write("cg/cpu/q/cpu.stat", "nr_periods 9\nnr_throttled 1\nthrottled_time 7\n");
    board.write("cg/memory/memory.limit_in_bytes", "9223372036854771712\n");
    board.write("cg/memory/memory.failcnt", "0\n");
    let mut limits = GroupLimits::find(&board.root());
    limits.begin();
    board.write("cg/cpu/q/cpu.stat", "nr_periods 19\nnr_throttled 5\nthrottled_time 2000007\n");
    board.write("cg/memory/memory.failcnt", "9\n");
    limits.end();
    let told = limits.told("the load").unwrap().text;
    let expected = "cpu.cfs_quota_us of /q allows 250 % of a CPU: the load was throttled 4 times \
                    in this cell, for 2.000 ms";
    assert!(told.starts_with(expected), "{told}");
    assert!(!told.contains("memory"), "there is no limit: {told}");
    board.write("cg/memory/memory.limit_in_bytes", "104857600\n");
    limits.end();
    let told = limits.told("the load").unwrap().text;
    let expected = "memory.limit_in_bytes of /box allows 100 MiB: the load reached it 9 times";
    assert!(told.contains(expected), "{told}");
}

#[test]
fn a_scheduler_that_is_loaded_is_named() {
    let board = Board::new("nosmt");
    assert_eq!(Facts::read(&board.root()).scheduler.sched_ext, None);
    board.write("sys/kernel/sched_ext/state", "disabled\n");
    let facts = Facts::read(&board.root());
    assert_eq!(facts.scheduler.sched_ext.as_ref().unwrap().state, "disabled");
    assert!(!ids(&facts, &GOOD).contains(&"sched-ext".to_owned()));
    board.write("sys/kernel/sched_ext/state", "enabled\n");
    board.write("sys/kernel/sched_ext/root/ops", "rusty_1.0.4\n");
    let facts = Facts::read(&board.root());
    assert_eq!(facts.scheduler.sched_ext.as_ref().unwrap().ops.as_deref(), Some("rusty_1.0.4"));
    let said = text(&facts, &GOOD, "sched-ext");
    assert!(said.starts_with("the sched_ext scheduler rusty_1.0.4 is loaded: "), "{said}");
}
