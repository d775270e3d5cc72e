//! Foreign real-time threads that can run before the threads that measure, with the CPU time that
//! they took in a cell.

use std::fs;
use std::path::PathBuf;

use punctual_core::schema::{Condition, Placement, Policy};
use punctual_core::units::human_ns;
use punctual_sys::affinity::CpuSet;
use punctual_sys::clock::Clock;
use punctual_sys::process::Pid;

use super::root::FactsRoot;
use super::tasks::{CpuTime, TICK_NS, Task};

/// Name of the condition for programs.
const ID: &str = "rivals";

/// The threads that the condition names one by one.
const TOLD: usize = 3;

/// What a thread used in a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Took {
    /// Between the start and the end of the cell.
    Whole(CpuTime),
    /// It came, or became a real-time thread, after the start: at most this much, ns.
    AtMost(u64),
    /// It ended before the cell did.
    Unknown,
}

/// One such thread.
#[derive(Debug, Clone)]
struct Rival {
    task: Task,
    cpus: CpuSet,
    /// At the start of the cell.
    before: Option<CpuTime>,
    took: Took,
}

/// The foreign real-time threads of the machine, followed from cell to cell. All threads are looked
/// at between the cells only; those known so far are read once more at both ends of each.
#[derive(Debug)]
pub struct Rivals {
    proc: PathBuf,
    /// This process; `None` if `/proc` is that of another PID namespace, and nothing is told then.
    own: Option<Pid>,
    known: Vec<Rival>,
    /// When the cell began and ended, ns since boot.
    began_ns: u64,
    ended_ns: u64,
}

impl Rivals {
    /// Looks at all threads below the root folder.
    #[must_use]
    pub fn find(root: &FactsRoot) -> Self {
        let proc = root.path("proc");
        let own = fs::read_link(proc.join("self")).ok();
        let own = own.and_then(|link| link.to_str()?.parse().ok());
        let mut rivals = Self { proc, own, known: Vec::new(), began_ns: 0, ended_ns: 0 };
        rivals.known = rivals.all();
        rivals
    }

    /// A cell begins.
    pub fn begin(&mut self) {
        self.began_ns = Clock::Boottime.now_ns();
        for rival in &mut self.known {
            rival.before = rival.task.cpu_time(&self.proc);
        }
        self.known.retain(|rival| rival.before.is_some());
    }

    /// It ends: takes down what those used that were there at its start.
    pub fn end(&mut self) {
        self.ended_ns = Clock::Boottime.now_ns();
        for rival in &mut self.known {
            rival.took = match (rival.before, rival.task.cpu_time(&self.proc)) {
                (Some(before), Some(after)) => Took::Whole(CpuTime {
                    ns: after.ns.saturating_sub(before.ns),
                    exact: before.exact && after.exact,
                }),
                _ => Took::Unknown,
            };
        }
    }

    /// Looks at all threads again, now that nothing measures and no load runs, and tells of those
    /// that could run before one of `probes` in the cell that is over.
    pub fn told(&mut self, probes: &[&Placement], measures: &str) -> Option<Condition> {
        let since_ns = self.ended_ns.saturating_sub(self.began_ns);
        let is = |one: &Task, other: &Task| {
            (one.thread, one.start_ticks) == (other.thread, other.start_ticks)
        };
        let now = self.all();
        // The next cell starts with policies and CPUs as they are now.
        let known = std::mem::replace(&mut self.known, now.clone());
        let is_new = |rival: &Rival| !known.iter().any(|one| is(&one.task, &rival.task));
        let mut new: Vec<Rival> = now.into_iter().filter(is_new).collect();
        for rival in &mut new {
            // No thread runs for longer than the time that passes.
            rival.took = match rival.task.cpu_time(&self.proc) {
                Some(CpuTime { ns, exact }) => {
                    let most_ns = if exact { ns } else { ns.saturating_add(TICK_NS) };
                    Took::AtMost(most_ns.min(since_ns))
                }
                None => Took::Unknown,
            };
        }
        // One that came after the end was not in the cell.
        new.retain(|rival| rival.task.start_ticks.saturating_mul(TICK_NS) <= self.ended_ns);
        let mut found: Vec<(&Rival, CpuSet)> = known
            .iter()
            .chain(&new)
            .filter(|rival| rival.took.is_any())
            .filter_map(|rival| Some((rival, rival.before_any(probes)?)))
            .collect();
        found.sort_by_key(|(rival, _)| std::cmp::Reverse(rival.took.most_ns()));
        condition(&found, measures)
    }

    fn all(&self) -> Vec<Rival> {
        let tasks = self.own.map(|own| Task::foreign(&self.proc, own)).unwrap_or_default();
        let rival = |task: Task| {
            let cpus = task.cpus(&self.proc)?;
            Some(Rival { task, cpus, before: None, took: Took::Unknown })
        };
        tasks.into_iter().filter_map(rival).collect()
    }
}

impl Took {
    /// Whether it may have delayed anything.
    fn is_any(self) -> bool {
        match self {
            // Less than a tick shows as none.
            Self::Whole(time) => time.ns > 0 || !time.exact,
            Self::AtMost(ns) => ns > 0,
            Self::Unknown => true,
        }
    }

    fn most_ns(self) -> u64 {
        match self {
            Self::Whole(CpuTime { ns, .. }) | Self::AtMost(ns) => ns,
            Self::Unknown => 0,
        }
    }

    fn words(self) -> String {
        let time = |ns: u64| human_ns(i64::try_from(ns).unwrap_or(i64::MAX));
        match self {
            Self::Whole(CpuTime { ns: 0, .. }) => {
                format!("it used less than {} of CPU in this cell", time(TICK_NS))
            }
            Self::Whole(CpuTime { ns, .. }) => format!("it used {} of CPU in this cell", time(ns)),
            Self::AtMost(ns) => {
                format!("it was no rival before this cell and used at most {} of CPU", time(ns))
            }
            Self::Unknown => "it ended in this cell, and what it used is not known".to_owned(),
        }
    }
}

impl Rival {
    /// The CPUs on which it can run before one of the probes, if there are any.
    fn before_any(&self, probes: &[&Placement]) -> Option<CpuSet> {
        let before = probes.iter().filter(|probe| self.is_before(probe));
        let cpus = before.filter_map(|probe| CpuSet::parse(&probe.affinity));
        let cpus: CpuSet = cpus.flat_map(|set| set.iter().collect::<Vec<_>>()).collect();
        let shared = self.cpus.without(&self.cpus.without(&cpus));
        (!shared.is_empty()).then_some(shared)
    }

    /// Whether the scheduler lets it run first, or not stop for the probe.
    fn is_before(&self, probe: &Placement) -> bool {
        let task = &self.task;
        match (task.policy, probe.policy) {
            (Policy::Deadline, Policy::Unknown) => false,
            (Policy::Deadline, _) => true,
            // The kernel's own threads are what is measured, unless they were raised above the
            // probe.
            (_, Policy::Fifo | Policy::Rr) if task.of_kernel => task.priority > probe.priority,
            (_, Policy::Fifo | Policy::Rr) => task.priority >= probe.priority,
            (_, Policy::Other | Policy::Batch | Policy::Idle) => !task.of_kernel,
            (_, Policy::Deadline | Policy::Unknown) => false,
        }
    }

    fn words(&self, cpus: &CpuSet, measures: &str) -> String {
        let task = &self.task;
        let policy = match task.policy {
            Policy::Deadline => "SCHED_DEADLINE".to_owned(),
            Policy::Rr => format!("SCHED_RR {}", task.priority),
            _ => format!("SCHED_FIFO {}", task.priority),
        };
        format!(
            "{}-{} ({policy}) may run before {measures} on CPU {cpus}: {}",
            task.name,
            task.thread,
            self.took.words()
        )
    }
}

fn condition(found: &[(&Rival, CpuSet)], measures: &str) -> Option<Condition> {
    let (told, rest) = found.split_at(found.len().min(TOLD));
    let told: Vec<_> = told.iter().map(|(rival, cpus)| rival.words(cpus, measures)).collect();
    let more = match rest.len() {
        0 => String::new(),
        more => format!("; and {more} more, none of which is known to have used more"),
    };
    (!told.is_empty()).then(|| Condition {
        id: ID.to_owned(),
        text: format!(
            "{}{more}; stop such threads or bind them to other CPUs (taskset -pc)",
            told.join("; ")
        ),
    })
}
