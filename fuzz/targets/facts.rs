//! What the kernel tells in /proc and /sys. The first byte of an input says which
//! file the rest is.

use std::cell::OnceCell;
use std::fs;
use std::path::PathBuf;

use punctual_suite::facts::{
    CpuTimes, Facts, FactsRoot, Interrupts, Measurement, Native, conditions, cpu_times,
};
use punctual_sys::affinity::CpuSet;

/// In the order of their numbers: the seeds hold them.
const FILES: &[&str] = &[
    "proc/interrupts",
    "proc/stat",
    "proc/self/mountinfo",
    "proc/config.gz",
    "proc/self/cgroup",
    "proc/cpuinfo",
    "proc/meminfo",
    "proc/self/status",
    "proc/self/limits",
    "proc/cmdline",
    "proc/loadavg",
    "proc/self/uid_map",
    "sys/devices/system/cpu/online",
    "sys/devices/system/cpu/vulnerabilities/meltdown",
    "sys/kernel/debug/sched/preempt",
    "boot/config-6.1",
    "sys/kernel/notes",
];

/// A tree of files in memory, gone with the process.
struct Tree(PathBuf);

impl Tree {
    fn new() -> Self {
        let path = PathBuf::from(format!("/dev/shm/punctual-fuzz-{}", std::process::id()));
        for file in FILES {
            fs::create_dir_all(path.join(file).parent().unwrap()).unwrap();
        }
        fs::create_dir_all(path.join("proc/sys/kernel")).unwrap();
        fs::write(path.join("proc/sys/kernel/osrelease"), "6.1").unwrap();
        Self(path)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

thread_local!(static TREE: OnceCell<Tree> = const { OnceCell::new() });

fn read(folder: &std::path::Path) {
    let root = FactsRoot::new(folder, Native::default());
    let facts = Facts::read(&root);
    let _ = (facts.board(), facts.groups());
    let _ = conditions(
        &facts,
        &Measurement {
            privileged: true,
            memory_locked: true,
            dma_latency_us: Some(0),
            spins: true,
            reachable: Some(CpuSet::of(0)),
            all_cpus: false,
        },
    );
    let interrupts = Interrupts::read(&root);
    let _ = Interrupts::default().until(&interrupts);
    let _ = interrupts.until(&interrupts);
    for (_, ticks) in cpu_times::per_cpu(&root) {
        let _ = cpu_times::Ticks::default().until(&ticks);
    }
    let _ = CpuTimes::open(&root).and_then(|times| times.read());
}

pub fn target(bytes: &[u8]) {
    let Some((&number, text)) = bytes.split_first() else { return };
    let file = FILES[usize::from(number) % FILES.len()];
    TREE.with(|tree| {
        let folder = &tree.get_or_init(Tree::new).0;
        let path = folder.join(file);
        fs::write(&path, text).unwrap();
        read(folder);
        fs::remove_file(&path).unwrap();
    });
}
