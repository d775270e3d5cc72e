//! Real-time threads of other programs that are bound to one CPU: who isolates a CPU for such a
//! thread wants no probe there that runs before it.

use std::fs;
use std::path::Path;

use punctual_core::schema::Policy;
use punctual_sys::process::Pid;

use super::tasks::Task;

/// A real-time thread that may run on one CPU only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// That CPU.
    pub cpu: u32,
    /// Name of the thread, up to 15 bytes.
    pub name: String,
    /// Its number.
    pub thread: Pid,
    /// Policy and priority: `fifo 80`, `rr 1`, `deadline`.
    pub scheduling: String,
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({}, {})", self.name, self.thread, self.scheduling)
    }
}

/// The threads that are bound to one CPU with a real-time policy, by CPU. Left out are threads of
/// the kernel (`migration/3`, `irq/24-eth0`), whose work is that of every board, and those of
/// programs named `punctual…`, which are another run and named as such. `proc` is the folder of
/// /proc; what is hidden there (`hidepid=`, other PID namespaces) is not found. One small file is
/// read for each thread of the machine.
#[must_use]
pub fn bound(proc: &Path) -> Vec<Bound> {
    let own = Pid::try_from(std::process::id()).unwrap_or(0);
    let of = |task: Task| {
        let cpus = task.cpus(proc)?;
        let cpu = cpus.iter().next().filter(|_| cpus.len() == 1)?;
        let scheduling = match task.policy {
            Policy::Deadline => task.policy.name().to_owned(),
            policy => format!("{} {}", policy.name(), task.priority),
        };
        Some(Bound { cpu, name: task.name, thread: task.thread, scheduling })
    };
    let threads = Task::foreign(proc, own).into_iter().filter(|task| !task.of_kernel);
    let threads = threads.filter(|task| !is_punctual(&proc.join(task.process.to_string())));
    let mut found: Vec<Bound> = threads.filter_map(of).collect();
    found.sort_by_key(|one| (one.cpu, one.thread));
    found
}

fn is_punctual(process: &Path) -> bool {
    let line = fs::read(process.join("cmdline")).unwrap_or_default();
    let program = line.split(|&byte| byte == 0).next().unwrap_or_default();
    let program = String::from_utf8_lossy(program);
    let name = Path::new(&*program).file_name().unwrap_or_default();
    name.as_encoded_bytes().starts_with(b"punctual")
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: u64 = 0x0040_0000;
    /// `PF_KTHREAD`.
    const KERNEL_THREAD: u64 = 0x0020_0000;

    fn stat(name: &str, flags: u64, priority: u32, policy: u32) -> String {
        let middle = "7 ".repeat(30);
        format!("({name}) S 1 1 1 0 -1 {flags} {middle}{priority} {policy} 0 0 0")
    }

    #[test]
    fn only_what_is_bound_to_one_cpu_and_is_no_punctual_is_found() {
        let proc = std::env::temp_dir().join(format!("punctual-foreign-{}", std::process::id()));
        let _ = fs::remove_dir_all(&proc);
        let thread = |pid: u32, thread: u32, stat: &str, cpus: &str, line: &str| {
            let process = proc.join(pid.to_string());
            let task = process.join("task").join(thread.to_string());
            fs::create_dir_all(&task).unwrap();
            fs::write(task.join("stat"), format!("{thread} {stat}")).unwrap();
            fs::write(process.join("stat"), format!("{pid} {stat}")).unwrap();
            fs::write(task.join("status"), format!("Name:\tx\nCpus_allowed_list:\t{cpus}\n"))
                .unwrap();
            fs::write(process.join("cmdline"), line.replace(' ', "\0")).unwrap();
        };
        thread(20, 20, &stat("main", USUAL, 0, 0), "0-3", "/opt/rt/app -x");
        thread(20, 21, &stat("cycle", USUAL, 90, 1), "3", "/opt/rt/app -x");
        thread(7, 7, &stat("both", USUAL, 90, 1), "2-3", "both");
        thread(8, 8, &stat("rcuc/2", KERNEL_THREAD, 1, 1), "2", "");
        thread(9, 9, &stat("thread-0", USUAL, 80, 1), "2", "/usr/bin/punctual run wakeup");
        thread(11, 11, &stat("old", USUAL, 5, 2), "1", "old");
        let found: Vec<_> = bound(&proc).iter().map(|one| (one.cpu, one.to_string())).collect();
        let expected = [(1, "old (11, rr 5)".to_owned()), (3, "cycle (21, fifo 90)".to_owned())];
        assert_eq!(found, expected);
        fs::remove_dir_all(&proc).unwrap();
        assert!(bound(&proc).is_empty());
    }
}
