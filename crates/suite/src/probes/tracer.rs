//! The kernel's tracers whose own threads measure, one on each CPU: osnoise, hwlat and timerlat
//! (Documentation/trace/).

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use punctual_core::schema::{Condition, TRACER};
use punctual_sys::sched::{self, Policy};
use punctual_sys::timer::{AbsoluteSleep, Wait};

use crate::facts::Activity;
use crate::recorder::Recorder;
use crate::registry::Choice;
use crate::registry::probe::{ProbeThread, Stage, Stop, Window};
use crate::ring::{Ring, Switches};

pub(super) const EVENTS: Choice = Choice::of("events", "this process's threads measure");

/// A tracer that is on, in an instance of its own.
#[derive(Debug, Clone)]
pub(super) struct Tracer {
    /// As in `available_tracers`.
    name: &'static str,
    /// What the names of its threads begin with; the number of the CPU follows.
    prefix: &'static str,
    /// The policy of its threads and their priority.
    scheduling: (Policy, u32),
    /// The CPU of each thread of the cell.
    cpus: Vec<u32>,
    switches: Switches,
}

impl Tracer {
    /// Starts a tracer with these settings, which are files of tracefs and what to write to them;
    /// its threads run on the CPUs that those of the cell are bound to.
    ///
    /// # Errors
    /// Why it cannot be had, and what would help.
    pub(super) fn start(
        stage: &mut Stage<'_>,
        (name, prefix): (&'static str, &'static str),
        settings: &[(&str, String)],
        kib: u64,
    ) -> Result<(Self, Ring), String> {
        let tracing = stage.root.path(Activity::tracing_folder(stage.root).unwrap_or_default());
        let text = |file: &Path| fs::read_to_string(file).unwrap_or_default();
        let known = text(&tracing.join("available_tracers"));
        if !known.split_whitespace().any(|known| known == name) {
            return Err(format!(
                "this kernel has no {name} tracer (CONFIG_{}_TRACER; Debian's rt kernels have it); \
                 leave out tracer={name}",
                name.to_uppercase()
            ));
        }
        // Their settings are the same for all instances, so they would change under others.
        if let Some((other, folder)) = in_use(&tracing) {
            return Err(format!("the tracer {other} is in use in {folder}"));
        }
        let cpus: Vec<u32> = stage.bound.iter().collect();
        if cpus.len() != stage.threads as usize {
            return Err(format!(
                "tracer={name} measures CPU by CPU: give threads=per-cpu, or an affinity with a CPU \
                 for each thread"
            ));
        }
        let mut set = |file: &str, value: &str| {
            stage.journal.setting(&tracing.join(file), value).map_err(|error| error.to_string())
        };
        for (file, value) in settings {
            // What this kernel cannot do is off.
            if value != "0" || tracing.join(file).exists() {
                set(file, value)?;
            }
        }
        let ring = Ring::with_tracer(stage.root, stage.journal, kib, Some((name, &cpus)))?;
        let switches = ring.switches();
        Ok((Self { name, prefix, scheduling: stage.scheduling, cpus, switches }, ring))
    }

    pub(super) fn cpu(&self, number: u32) -> u32 {
        self.cpus[number as usize]
    }

    /// The name of its thread that does the work of this one.
    pub(super) fn thread_name(&self, number: u32) -> String {
        format!("{}{}", self.prefix, self.cpu(number))
    }

    /// That not this process's threads measure.
    pub(super) fn note(&self) -> Condition {
        let (policy, priority) = self.scheduling;
        let text = format!(
            "the threads {}N of the kernel's {} tracer measure, with policy {} and priority \
             {priority}, not threads of this process",
            self.prefix,
            self.name,
            policy.name()
        );
        Condition { id: TRACER.to_owned(), text }
    }

    /// Gives the thread of the kernel on a CPU the policy and priority of the cell.
    fn schedule(&self, number: u32) -> io::Result<()> {
        let name = self.thread_name(number);
        let (policy, priority) = self.scheduling;
        // Timerlat's threads set a priority of their own when they start.
        for _ in 0..50 {
            if let Some(thread) = thread_of_kernel(&name) {
                sched::set_of(thread, policy, priority)?;
                std::thread::sleep(Duration::from_millis(20));
                if sched::get_of(thread)? == self.scheduling {
                    return Ok(());
                }
            } else {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        Err(io::Error::other(match thread_of_kernel("kthreadd") {
            Some(_) => format!("the kernel has not started its thread {name}"),
            None => format!(
                "its thread {name} cannot be found: /proc shows no thread of the kernel here (a PID \
                 namespace); measure outside it, or without tracer={}",
                self.name
            ),
        }))
    }
}

/// A tracer that is on, and where.
fn in_use(tracing: &Path) -> Option<(String, String)> {
    let instances = fs::read_dir(tracing.join("instances"));
    let others = instances.into_iter().flatten().flatten().map(|entry| entry.path());
    [tracing.to_owned()].into_iter().chain(others).find_map(|folder| {
        let tracer = fs::read_to_string(folder.join("current_tracer")).ok()?;
        let tracer = tracer.trim();
        (tracer != "nop").then(|| (tracer.to_owned(), folder.display().to_string()))
    })
}

/// The number of a thread of the kernel by its name.
fn thread_of_kernel(name: &str) -> Option<i32> {
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    ids.find(|id| {
        let text = |file: &str| fs::read_to_string(format!("/proc/{id}/{file}"));
        // No thread of the kernel has a program; a process may call itself anything.
        text("comm").is_ok_and(|comm| comm.trim() == name)
            && text("cmdline").is_ok_and(|words| words.is_empty())
    })
}

/// Takes the samples of the thread with this number from the trace, until the window ends; `true`
/// if there may be more.
pub(super) type Take = dyn FnMut(&Window, &mut Recorder, &Stop) -> io::Result<bool> + Send;

/// Records what a thread of the kernel measures. It looks once a second: each look is noise itself.
pub(super) struct Relay {
    pub(super) number: u32,
    pub(super) tracer: Tracer,
    pub(super) take: Box<Take>,
}

/// Between two looks at the trace, ns.
pub(super) const LOOK_NS: u64 = 1_000_000_000;

/// How long after the end of a window the trace is looked at, ns.
const SETTLE_NS: u64 = 50_000_000;

impl ProbeThread for Relay {
    fn prepare(&mut self) -> io::Result<()> {
        // The threads of hwlat start with the trace.
        self.tracer.switches.start().map_err(io::Error::other)?;
        self.tracer.schedule(self.number)
    }

    fn run(&mut self, window: &Window, tracks: &mut [Recorder], stop: &Stop) -> io::Result<()> {
        let mut next = window.first;
        loop {
            // What began before the end is to be known.
            next = (next + LOOK_NS).min(window.end.saturating_add(SETTLE_NS));
            AbsoluteSleep.until(next)?;
            let is_over = stop.is_over(window);
            if !(self.take)(window, &mut tracks[0], stop)? || is_over {
                return Ok(());
            }
        }
    }
}
