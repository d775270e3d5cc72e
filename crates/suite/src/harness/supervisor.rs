//! The supervisor: starts the leader of one part, restarts it when it ends, and ends with all
//! its descendants when punctual goes away.

use std::fs;
use std::io::{self, PipeReader, Read};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use punctual_sys::fd;
use punctual_sys::process::containment::Containment;
use punctual_sys::process::spawn::inherited_shared;
use punctual_sys::process::{self, Exit, Pid};
use punctual_sys::shared::SharedCounters;
use punctual_sys::thread;

use super::containment::kill_cgroup;
use super::order::{END, PartOrder, TROUBLE, has_worked};
use super::procs::kill_descendants;
use super::watcher::{self, CANNOT_WATCH};
use super::worker::{
    CANNOT_START, CONTROL_LINE, DEATHS, GONE_NS, LoadError, RESTARTS, Worker, finish, nanoseconds,
    report,
};
use crate::loads::{compile, find};
use crate::registry::Values;
use crate::registry::load::{Form, LoadEntry, PartForm};
use crate::registry::placement::settle;

/// A leader that fails this often in a row, immediately each time, is given up.
const FAILURES_MAX: u32 = 5;
/// A leader that exits sooner than this counts as an immediate failure.
const AT_ONCE: Duration = Duration::from_secs(1);
/// Wait before the first restart; doubled with every failure in a row.
const RESTART_DELAY: Duration = Duration::from_millis(25);
/// How long the leader's remaining processes may take to die before the restart.
const KILL_LIMIT: Duration = Duration::from_secs(2);

/// Runs the supervisor and returns its exit status. A program calls this first when it is
/// started with [`super::context::LoadContext::self_args`]; `args` are the arguments after
/// those. The process must not have threads yet.
#[must_use]
pub fn supervisor_main(args: &[String]) -> i32 {
    std::panic::set_hook(Box::new(|panic| report(&panic.to_string())));
    let supervision = match args {
        [unit, rest @ ..] if unit == compile::UNIT => return compile::unit_main(rest),
        [order] => Supervision::new(order),
        _ => Err("expected one argument".to_owned()),
    };
    match supervision.and_then(|mut supervision| supervision.run()) {
        Ok(()) => 0,
        Err(reason) => {
            report(&format!("{END}{reason}"));
            1
        }
    }
}

struct Leader {
    pid: Pid,
    report: PipeReader,
    started: Instant,
}

struct Supervision {
    order: PartOrder,
    entry: &'static LoadEntry,
    values: Values,
    part: PartForm,
    containment: Containment,
    counters: SharedCounters,
    failures: u32,
    watcher: Option<Pid>,
}

impl Supervision {
    fn new(order: &str) -> Result<Self, String> {
        let order: PartOrder = serde_json::from_str(order)
            .map_err(|error| format!("not an order for a load: {error}"))?;
        let entry = find(&order.load).ok_or("no such load")?;
        let Form::Part(part) = entry.form else {
            return Err(format!("{} has no process", entry.name));
        };
        let values = entry.read(&order.params)?;
        let containment =
            Containment::from_name(&order.containment).ok_or("no such containment")?;
        let counters = inherited_shared()
            .and_then(SharedCounters::open)
            .map_err(|error| format!("not started by punctual: {error}"))?;
        Ok(Self { order, entry, values, part, containment, counters, failures: 0, watcher: None })
    }

    /// Runs until the lifeline closes. An error is the reason for giving up.
    fn run(&mut self) -> Result<(), String> {
        let plain = |error: io::Error| error.to_string();
        if self.containment.is_namespace() {
            // An exec that gains capabilities has cleared the parent-death signal.
            process::die_with_parent().map_err(plain)?;
        }
        process::become_subreaper().map_err(plain)?;
        let stdin = io::stdin();
        fd::set_nonblocking(io::stdout().as_fd()).map_err(plain)?;
        let events = process::child_events().map_err(plain)?;
        let mut leader = Some(self.start().map_err(plain)?);
        self.watch().map_err(plain)?;
        let mut gone_since = Instant::now();
        let mut restart_at = gone_since;
        loop {
            let timeout = match &leader {
                Some(_) => Duration::from_secs(60),
                None => restart_at.saturating_duration_since(Instant::now()),
            };
            let ready = fd::wait_readable([stdin.as_fd(), events.as_fd()], timeout);
            let [gone, child] = ready.map_err(plain)?;
            if gone {
                self.end_all();
                return Ok(());
            }
            if child {
                fd::drain(events.as_fd());
            }
            while let Ok(Some((pid, exit))) = process::try_wait_any() {
                if self.watcher == Some(pid) {
                    let again = match exit {
                        Exit::Code(CANNOT_WATCH) => Err(io::Error::other("it cannot watch")),
                        _ => self.watch(),
                    };
                    if let Err(error) = again {
                        self.watcher = None;
                        report(&format!("{TROUBLE}no watcher: {error}"));
                    }
                }
                if let Some(ended) = leader.take_if(|leader| leader.pid == pid) {
                    gone_since = Instant::now();
                    // No load ends by itself: a leader that has ended has died.
                    self.counters.add(CONTROL_LINE, DEATHS, 1);
                    restart_at = Instant::now() + self.after(ended, exit)?;
                }
            }
            if leader.is_none() && Instant::now() >= restart_at {
                self.counters.add(CONTROL_LINE, RESTARTS, 1);
                leader = Some(self.start().map_err(plain)?);
                let gone_ns = nanoseconds(gone_since.elapsed());
                self.counters.raise(CONTROL_LINE, GONE_NS, gone_ns);
            }
        }
    }

    /// Starts the watcher, which ends the load if punctual and this process are killed at once.
    /// A PID namespace needs none.
    fn watch(&mut self) -> io::Result<()> {
        if self.containment.is_namespace() {
            return Ok(());
        }
        let supervisor = std::process::id();
        let watched = process::fork_watcher(|| watcher::main(&self.order, supervisor));
        self.watcher = Some(watched?);
        Ok(())
    }

    fn start(&self) -> io::Result<Leader> {
        let (report, writer) = io::pipe()?;
        fd::set_nonblocking(report.as_fd())?;
        fd::set_nonblocking(writer.as_fd())?;
        let pid = process::fork_worker(|| {
            // A separate pipe, so that punctual sees the end of this supervisor in the status
            // pipe.
            if fd::replace_stdout(writer.as_fd()).is_err() {
                return process::PANICKED;
            }
            // If this is refused, the OOM killer ranks the leader with its supervisor.
            let _ = fs::write("/proc/self/oom_score_adj", "1000");
            thread::set_name(self.entry.name);
            let order = &self.order;
            let owned = (order.scratch.as_deref(), order.memory_group.as_ref());
            let worker = Worker::leader(&self.values, owned, &order.self_args, &self.counters)
                .binding(&order.in_turn);
            let settled = settle(&self.values, &order.inherited).map_err(LoadError::CannotStart);
            finish(settled.and_then(|()| (self.part.run)(&worker).map(|never| match never {})))
        })?;
        Ok(Leader { pid, report, started: Instant::now() })
    }

    /// After a leader has ended: how long to wait before the next one, or the reason to give up.
    fn after(&mut self, leader: Leader, exit: Exit) -> Result<Duration, String> {
        let reason = first_line(leader.report).unwrap_or_else(|| exit.to_string());
        if !self.kill_rest() {
            return Err(format!("{reason}; some of its processes cannot be killed"));
        }
        if exit == Exit::Code(CANNOT_START) && !self.has_worked() {
            self.end_all();
            return Err(reason);
        }
        self.failures = if leader.started.elapsed() < AT_ONCE { self.failures + 1 } else { 1 };
        if self.failures >= FAILURES_MAX {
            self.end_all();
            return Err(format!("{reason} ({FAILURES_MAX} times at once)"));
        }
        report(&format!("{TROUBLE}{reason}"));
        Ok(RESTART_DELAY * (1 << self.failures))
    }

    fn has_worked(&self) -> bool {
        has_worked(self.entry, &self.counters)
    }

    fn kill_rest(&self) -> bool {
        if !self.containment.is_namespace() {
            return kill_descendants(self.watcher, KILL_LIMIT);
        }
        let _ = process::kill_rest_of_namespace();
        super::procs::until(KILL_LIMIT, || {
            // Fails once no children are left.
            while let Ok(found) = process::try_wait_any() {
                if found.is_none() {
                    return false;
                }
            }
            true
        })
    }

    /// A PID namespace needs nothing here: it ends with this process.
    fn end_all(&self) {
        if let Some(cgroup) = &self.order.cgroup {
            // This process is in the cgroup too.
            kill_cgroup(cgroup);
        } else if self.containment == Containment::Subreaper {
            // The watcher last: it ends the others if this process is killed meanwhile.
            kill_descendants(self.watcher, KILL_LIMIT);
            kill_descendants(None, KILL_LIMIT);
        }
    }
}

/// The first thing that a leader or its workers reported: it is the cause of the rest.
fn first_line(mut report: PipeReader) -> Option<String> {
    let mut text = Vec::new();
    // Ends with `WouldBlock` if a process that is being killed still has the other end open.
    let _ = report.read_to_end(&mut text);
    let text = String::from_utf8_lossy(&text);
    text.lines().find(|line| !line.is_empty()).map(str::to_owned)
}
