//! The cases: which system call fails, how, and where in a run.

use std::collections::BTreeMap;
use std::fmt;

/// A run that faults are injected into.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    pub load: &'static str,
    pub timer: &'static str,
    /// Whether every thread and every process of the loads meets the fault, or only the main
    /// thread, which starts, collects and writes.
    pub everywhere: bool,
}

/// Together: every way to wait, loads with and without a folder, of one process and of many.
pub const SCENARIOS: [Scenario; 7] = [
    Scenario { load: "none", timer: "nanosleep", everywhere: true },
    Scenario { load: "none", timer: "posix", everywhere: true },
    Scenario { load: "none", timer: "timerfd", everywhere: true },
    Scenario { load: "none", timer: "relative", everywhere: true },
    Scenario { load: "hackbench:1+cmd:sleep 0.05", timer: "nanosleep", everywhere: false },
    Scenario { load: "disk:size=4M", timer: "nanosleep", everywhere: true },
    Scenario { load: "compile+tree+copy+flood+process", timer: "nanosleep", everywhere: false },
];

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whom = if self.everywhere { "all" } else { "main" };
        write!(f, "{}, {}, {whom}", self.load, self.timer)
    }
}

/// One injected fault.
#[derive(Debug, Clone)]
pub struct Case {
    pub scenario: Scenario,
    pub call: String,
    pub error: &'static str,
    /// The first, second, … such call of each traced thread fails.
    pub when: u32,
    /// Whether it is the last one of the thread that makes most of them.
    pub last: bool,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} no. {} ({})", self.call, self.error, self.when, self.scenario)
    }
}

impl Case {
    /// The argument of `strace -e`.
    pub fn injection(&self) -> String {
        format!("inject={}:error={}:when={}", self.call, self.error, self.when)
    }

    /// Whether the kernel refuses memory, which no allocator of a static binary survives.
    pub fn takes_memory(&self) -> bool {
        matches!(self.call.as_str(), "mmap" | "brk" | "mremap" | "mprotect" | "madvise")
    }
}

/// What a call may fail with, as its man page has it; nothing for what cannot fail.
fn errors(call: &str) -> &'static [&'static str] {
    match call {
        "exit" | "exit_group" | "rt_sigreturn" | "restart_syscall" | "execve" | "arch_prctl"
        | "set_tid_address" | "getpid" | "gettid" | "getuid" | "geteuid" | "getgid" | "getegid"
        | "getppid" | "umask" | "vfork" => &[],
        // Not on what they are called for here: terminals that are none, handlers of signals.
        "ioctl" | "rt_sigaction" | "rt_sigprocmask" | "sigaltstack" => &[],
        // strace would let a wake-up fail too, which cannot be, and is a lost one.
        "futex" => &[],
        "open" | "openat" | "openat2" | "creat" => &["EMFILE", "EACCES", "EIO"],
        "write" | "writev" | "pwrite64" | "ftruncate" | "fallocate" => &["ENOSPC", "EIO", "EINTR"],
        "read" | "readv" | "pread64" | "getdents64" | "readlink" | "readlinkat" => {
            &["EIO", "EINTR"]
        }
        "fsync" | "fdatasync" | "sync_file_range" => &["EIO", "ENOSPC"],
        "rename" | "renameat" | "renameat2" | "mkdir" | "mkdirat" | "link" | "symlink" => {
            &["EIO", "ENOSPC", "EROFS"]
        }
        "unlink" | "unlinkat" | "rmdir" | "chmod" | "fchmod" | "chown" => &["EIO", "EROFS"],
        "mmap" | "brk" | "mremap" | "mprotect" | "madvise" | "munmap" => &["ENOMEM"],
        "mlock" | "mlock2" | "mlockall" => &["ENOMEM", "EPERM"],
        "clone" | "clone3" | "fork" => &["EAGAIN", "EPERM", "ENOMEM"],
        "poll" | "ppoll" | "epoll_wait" | "epoll_pwait" | "wait4" | "waitid" => {
            &["EINTR", "ENOMEM"]
        }
        "clock_nanosleep" | "nanosleep" | "rt_sigtimedwait" => &["EINTR"],
        "getrandom" => &["EINTR"],
        "recvfrom" | "recvmsg" => &["EINTR", "ENOMEM"],
        "close" => &["EIO"],
        "stat" | "fstat" | "lstat" | "newfstatat" | "statx" | "access" | "faccessat2" => {
            &["EACCES", "EIO"]
        }
        "socket" | "socketpair" | "pipe" | "pipe2" | "eventfd2" | "timerfd_create"
        | "signalfd4" | "memfd_create" | "dup" | "dup2" | "dup3" | "pidfd_open" => {
            &["EMFILE", "ENOMEM"]
        }
        "timer_create" | "timer_settime" | "timerfd_settime" => &["EAGAIN", "ENOMEM"],
        _ => &["EPERM", "ENOMEM"],
    }
}

/// Every call that a scenario makes, at its first, second, middle and last time, with each of
/// its errors. `most` is how often the busiest traced thread makes it.
pub fn cases(scenario: Scenario, most: &BTreeMap<String, u32>) -> Vec<Case> {
    let mut all = Vec::new();
    for (call, &most) in most {
        let mut times = vec![1, 2, most.div_ceil(2), most];
        times.retain(|&when| (1..=most).contains(&when));
        times.sort_unstable();
        times.dedup();
        for error in errors(call) {
            all.extend(times.iter().map(|&when| {
                let (call, last) = (call.clone(), when == most);
                Case { scenario, call, error, when, last }
            }));
        }
    }
    all
}

/// As many of the cases as asked for, evenly from all of them; always the same ones.
pub fn sample(all: Vec<Case>, most: usize) -> Vec<Case> {
    let length = all.len();
    let kept = all.into_iter().enumerate();
    kept.filter(|(at, _)| at * most / length != (at + 1) * most / length)
        .map(|(_, case)| case)
        .collect()
}

/// How often the busiest thread makes each call, from what `strace -f` wrote.
pub fn counts(trace: &str) -> BTreeMap<String, u32> {
    let mut each: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    for line in trace.lines() {
        let (thread, rest) = match line.split_once(' ') {
            Some((pid, rest)) if pid.parse::<u32>().is_ok() => (pid, rest.trim_start()),
            _ => ("", line),
        };
        let Some((call, _)) = rest.split_once('(') else {
            continue;
        };
        if call
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        {
            *each.entry((thread, call)).or_default() += 1;
        }
    }
    let mut most: BTreeMap<String, u32> = BTreeMap::new();
    for ((_, call), times) in each {
        let most = most.entry(call.to_owned()).or_default();
        *most = (*most).max(times);
    }
    most
}
