//! The threads of a machine that have a real-time policy, found with one small file for each.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use punctual_core::schema::Policy;
use punctual_sys::affinity::CpuSet;
use punctual_sys::process::Pid;

use crate::procfs::{Stat, values};

/// A tick of `/proc/PID/stat`, ns: 1/`USER_HZ` on all architectures that punctual supports.
pub(super) const TICK_NS: u64 = 10_000_000;

/// `PF_KTHREAD` of the kernel's `include/linux/sched.h`.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// A line of `stat` has a name of at most 15 bytes and 51 numbers.
const LINE_BYTES: usize = 2_048;

/// Parents that are looked at before a thread counts as foreign.
const GENERATIONS: usize = 64;

/// A thread as its line in `/proc/PID/task/TID/stat` describes it (proc_pid_stat(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Task {
    /// Its process.
    pub(super) process: Pid,
    /// Its own number.
    pub(super) thread: Pid,
    /// The kernel's name for it, which any program may choose.
    pub(super) name: String,
    pub(super) policy: Policy,
    /// 1 to 99; 0 for `SCHED_DEADLINE`.
    pub(super) priority: u32,
    /// Whether it is the kernel's own.
    pub(super) of_kernel: bool,
    /// When it started, ticks since boot: with its number, what tells it from all others.
    pub(super) start_ticks: u64,
    parent: Pid,
    /// Threads of its process.
    threads: u64,
    cpu_ticks: u64,
}

impl Task {
    /// Every thread with a real-time policy that is foreign to the process `own`: neither its own
    /// nor of a process that descends from it. Threads that the kernel has for each CPU
    /// (`migration/0`, `rcuc/1`) are left out: what they do belongs to the kernel that is measured.
    pub(super) fn foreign(proc: &Path, own: Pid) -> Vec<Self> {
        let mut found = Vec::new();
        let mut buffer = [0; LINE_BYTES];
        for process in numbers(proc).into_iter().filter(|&process| process != own) {
            let folder = proc.join(process.to_string());
            let Some(first) = Self::read(&folder.join("stat"), process, &mut buffer) else {
                continue;
            };
            if first.threads < 2 {
                found.extend(first.into_real_time());
                continue;
            }
            let folder = folder.join("task");
            for thread in numbers(&folder) {
                let stat = folder.join(thread.to_string()).join("stat");
                let task = Self::read(&stat, process, &mut buffer);
                found.extend(task.and_then(Self::into_real_time));
            }
        }
        found.retain(|task| !task.is_per_cpu() && !descends(proc, own, task.parent));
        found
    }

    /// `None` if it has ended.
    fn read(stat: &Path, process: Pid, buffer: &mut [u8]) -> Option<Self> {
        let length = File::open(stat).ok()?.read(buffer).ok()?;
        Self::parse(process, buffer.get(..length)?)
    }

    fn parse(process: Pid, line: &[u8]) -> Option<Self> {
        // The name is in parentheses and may itself contain parentheses and spaces.
        let open = line.iter().position(|&byte| byte == b'(')?;
        let close = line.iter().rposition(|&byte| byte == b')')?;
        let mut task = Self {
            process,
            thread: decimal(line.get(..open)?.trim_ascii())?,
            name: String::new(),
            policy: Policy::Other,
            priority: 0,
            of_kernel: false,
            start_ticks: 0,
            parent: 0,
            threads: 0,
            cpu_ticks: 0,
        };
        let fields = line.get(close + 1..)?.split(|&byte| byte == b' ').skip(1);
        // The first one is the state, which is the third of the line.
        for (number, field) in (3..).zip(fields) {
            match number {
                3 if matches!(field, b"Z" | b"X" | b"x") => return None,
                4 => task.parent = decimal(field)?,
                9 => task.of_kernel = decimal::<u64>(field)? & KERNEL_THREAD != 0,
                14 | 15 => task.cpu_ticks = task.cpu_ticks.checked_add(decimal(field)?)?,
                20 => task.threads = decimal(field)?,
                22 => task.start_ticks = decimal(field)?,
                40 => task.priority = decimal(field)?,
                41 => {
                    task.policy = match decimal::<u32>(field.trim_ascii())? {
                        1 => Policy::Fifo,
                        2 => Policy::Rr,
                        6 => Policy::Deadline,
                        _ => Policy::Other,
                    };
                    task.name = match task.policy {
                        // Of thousands, only those that are told of need it.
                        Policy::Other => String::new(),
                        _ => String::from_utf8_lossy(line.get(open + 1..close)?).into_owned(),
                    };
                    return Some(task);
                }
                _ => {}
            }
        }
        None
    }

    fn into_real_time(self) -> Option<Self> {
        (self.policy != Policy::Other).then_some(self)
    }

    /// Whether the kernel has one such thread for each CPU: their names end with `/` and a number,
    /// those of interrupts (`irq/24-eth0`) do not.
    fn is_per_cpu(&self) -> bool {
        let number = self.name.rsplit_once('/').map(|(_, number)| number);
        self.of_kernel
            && number.is_some_and(|text| {
                !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
            })
    }

    /// The CPUs that it may run on.
    pub(super) fn cpus(&self, proc: &Path) -> Option<CpuSet> {
        let status = fs::read_to_string(self.folder(proc).join("status")).ok()?;
        CpuSet::parse(values(&status, "Cpus_allowed_list").next()?)
    }

    /// CPU time of its whole life, ns, in steps of a tick if the kernel has no `CONFIG_SCHED_INFO`.
    /// `None` if it has ended; its number may have gone to another thread since.
    pub(super) fn cpu_time(&self, proc: &Path) -> Option<CpuTime> {
        let folder = self.folder(proc);
        let now = Self::read(&folder.join("stat"), self.process, &mut [0; LINE_BYTES])?;
        if now.start_ticks != self.start_ticks {
            return None;
        }
        let exact = fs::read(folder.join("schedstat")).ok();
        let exact = exact.and_then(|text| decimal(text.split(|&byte| byte == b' ').next()?));
        let by_ticks = now.cpu_ticks.saturating_mul(TICK_NS);
        Some(CpuTime { ns: exact.unwrap_or(by_ticks), exact: exact.is_some() })
    }

    fn folder(&self, proc: &Path) -> PathBuf {
        proc.join(format!("{}/task/{}", self.process, self.thread))
    }
}

/// CPU time of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CpuTime {
    pub(super) ns: u64,
    /// Whether it is that of the scheduler rather than whole ticks.
    pub(super) exact: bool,
}

/// The entries of a folder whose names are numbers, ascending.
fn numbers(folder: &Path) -> Vec<Pid> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<Pid> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    found.sort_unstable();
    found
}

fn descends(proc: &Path, own: Pid, mut parent: Pid) -> bool {
    for _ in 0..GENERATIONS {
        if parent == own {
            return true;
        }
        match Stat::read(proc, parent) {
            Some(stat) if parent > 1 => parent = stat.parent,
            _ => return false,
        }
    }
    false
}

fn decimal<T: std::str::FromStr>(digits: &[u8]) -> Option<T> {
    str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of Linux 6.1, of a thread with a policy and a priority.
    fn line(name: &str, flags: u64, priority: u32, policy: u32) -> String {
        format!(
            "412 ({name}) S 40 412 412 0 -1 {flags} 1 2 3 4 30 1 7 7 -100 0 5 0 9 1000 20 \
             18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 {priority} {policy} 0 0 0 0 0 0 0 0 \
             0 0 0\n"
        )
    }

    #[test]
    fn policy_and_priority_are_fields_40_and_41() {
        let task = Task::parse(412, line("multi (path) d", 4_194_304, 99, 2).as_bytes()).unwrap();
        let expected = Task {
            process: 412,
            thread: 412,
            name: "multi (path) d".to_owned(),
            policy: Policy::Rr,
            priority: 99,
            of_kernel: false,
            start_ticks: 9,
            parent: 40,
            threads: 5,
            cpu_ticks: 31,
        };
        assert_eq!(task, expected);
        for (number, policy) in [(1, Policy::Fifo), (6, Policy::Deadline), (7, Policy::Other)] {
            let found = Task::parse(1, line("a", 0, 0, number).as_bytes()).unwrap();
            assert_eq!(found.policy, policy, "{number}");
        }
        let zombie = line("a", 0, 99, 1).replace(") S ", ") Z ");
        assert_eq!(Task::parse(1, zombie.as_bytes()), None);
        let whole = line("a) 1 (", 0, 99, 1);
        for cut in 0..whole.rfind(" 1 0 0").unwrap() {
            assert_eq!(Task::parse(1, &whole.as_bytes()[..cut]), None, "{cut}");
        }
    }

    #[test]
    fn threads_that_the_kernel_has_for_each_cpu_are_known_by_their_names() {
        let per_cpu = |name: &str, flags| {
            Task::parse(1, line(name, flags, 99, 1).as_bytes()).unwrap().is_per_cpu()
        };
        for name in ["migration/0", "rcuc/11", "irq_work/3"] {
            assert!(per_cpu(name, KERNEL_THREAD), "{name}");
            assert!(!per_cpu(name, 0), "{name} is what a program calls itself");
        }
        for name in ["irq/24-eth0", "watchdogd", "sugov:0", "x/", "irq/24-s-"] {
            assert!(!per_cpu(name, KERNEL_THREAD), "{name}");
        }
    }

    #[test]
    fn this_process_is_not_foreign_to_its_parent() {
        let own = Pid::try_from(std::process::id()).unwrap();
        let proc = Path::new("/proc");
        assert!(descends(proc, own, own));
        let parent = Stat::read(proc, own).unwrap().parent;
        assert!(descends(proc, parent, own));
        assert!(!descends(proc, own, parent));
        let task = Task::read(&proc.join("self/stat"), own, &mut [0; LINE_BYTES]).unwrap();
        assert!(task.cpu_time(proc).is_some() && !task.cpus(proc).unwrap().is_empty());
        let gone = Task { start_ticks: task.start_ticks + 1, ..task };
        assert_eq!(gone.cpu_time(proc), None, "another thread has its number");
    }
}
