//! Any command.

use std::convert::Infallible;
use std::io::{self, BufRead, BufReader};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use punctual_core::params::COMMAND;
use punctual_sys::process::{self, Exit, Pid};
use punctual_sys::{fd, limits};

use crate::harness::procs::{descendants_usage, reaped_io_bytes};
use crate::harness::worker::{LoadError, Worker};
use crate::registry::load::{Form, LoadEntry, Owns, PartForm, nothing_to_resolve};
use crate::registry::{Default, Kind, Param};

const RUNS: usize = 0;
const CPU_MS: usize = 1;
const IO_BYTES: usize = 2;
/// A command that has run this long counts as started.
const STARTED: Duration = Duration::from_millis(300);
/// How often CPU time and I/O are read: often enough for one figure per second.
const PERIOD: Duration = Duration::from_millis(400);

pub(super) const ENTRY: LoadEntry = LoadEntry {
    name: COMMAND,
    summary: "any command, restarted when it ends",
    help: "cmd:COMMAND runs COMMAND with sh -c in a separate process group, and restarts it once \
           it and everything it left in the background have ended. Everything after the colon is \
           the command. Its input is empty and its output is dropped, except the last line on \
           stderr, which is reported as the reason if it fails. It counts successful runs and the \
           CPU time and I/O (bytes that system calls read and wrote) of the whole process tree; \
           without either for 5 s it counts as idle. A command that fails immediately five times in a \
           row is given up. /proc shows the machine's processes under other PIDs than the command \
           sees. Similar to rteval and jitterdebugger -c.",
    main_param: "command",
    params: &[Param {
        name: "command",
        kind: Kind::Text { value: "COMMAND", check: is_command },
        default: Default::Required,
        help: "what sh -c runs",
    }],
    counters: &["runs", "cpu-ms", "io-bytes"],
    needs: &[],
    form: Form::Part(PartForm {
        resolve: nothing_to_resolve,
        owns: Owns::Nothing,
        steady_from: Some(CPU_MS),
        run,
    }),
};

fn is_command(text: &str) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err("no command given; write cmd:COMMAND".to_owned());
    }
    Ok(())
}

fn run(worker: &Worker<'_>) -> Result<Infallible, LoadError> {
    let command = worker.values().text("command").trim();
    let failed = |error| LoadError::io("adopting orphans", &error);
    // Background processes that the command leaves belong to its run.
    process::become_subreaper().map_err(failed)?;
    let mut meter = Meter::default();
    let mut ended = None;
    loop {
        run_once(worker, command, &mut meter, ended)?;
        worker.add(RUNS, 1);
        ended = Some(Instant::now());
    }
}

/// Runs the command until it and all its descendants have ended. `ended` is when the run before
/// this one did.
fn run_once(
    worker: &Worker<'_>,
    command: &str,
    meter: &mut Meter,
    ended: Option<Instant>,
) -> Result<(), LoadError> {
    let events = process::child_events().map_err(|error| LoadError::io("signalfd", &error))?;
    let mut shell = Command::new("/bin/sh")
        .arg("-c")
        .arg(command)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|error| LoadError::io("/bin/sh", &error))?;
    if let Some(ended) = ended {
        worker.restarted(ended.elapsed());
    }
    let last_words = shell.stderr.take().map(listen).transpose();
    let last_words = last_words.map_err(|error| LoadError::io("a thread for stderr", &error))?;
    let pid = Pid::try_from(shell.id()).unwrap_or(0);
    let started = Instant::now();
    let mut said_ready = false;
    loop {
        match process::try_wait_any() {
            Ok(Some((ended, exit))) if ended == pid && exit != Exit::Code(0) => {
                return Err(failure(command, exit, last_words));
            }
            Ok(Some(_)) => {}
            Ok(None) => {
                let ready = fd::wait_readable([events.as_fd()], PERIOD / 4);
                ready.map_err(|error| LoadError::io("poll", &error))?;
                fd::drain(events.as_fd());
            }
            // No descendant is left.
            Err(_) => break,
        }
        meter.read(worker)?;
        if !said_ready && started.elapsed() >= STARTED {
            worker.ready();
            said_ready = true;
        }
    }
    meter.read(worker)
}

fn failure(command: &str, exit: Exit, last_words: Option<Arc<Mutex<String>>>) -> LoadError {
    // The listener may lag slightly behind the end of the command.
    thread::sleep(Duration::from_millis(10));
    let said = last_words.map_or(String::new(), |words| {
        let words = words.lock().unwrap_or_else(PoisonError::into_inner);
        if words.is_empty() { String::new() } else { format!(": {}", words.as_str()) }
    });
    LoadError::Failed(format!("\"{command}\" {exit}{said}"))
}

/// Keeps the last line that the command writes to stderr.
fn listen(errors: ChildStderr) -> io::Result<Arc<Mutex<String>>> {
    let last = Arc::new(Mutex::new(String::new()));
    let kept = Arc::clone(&last);
    thread::Builder::new().spawn(move || {
        let mut reader = BufReader::new(errors);
        let mut line = Vec::new();
        while let Ok(1..) = reader.read_until(b'\n', &mut line) {
            let text = String::from_utf8_lossy(&line);
            if !text.trim().is_empty() {
                let text = text.trim().chars().take(200).collect();
                *kept.lock().unwrap_or_else(PoisonError::into_inner) = text;
            }
            line.clear();
        }
    })?;
    Ok(last)
}

/// Counts the CPU time and the I/O of the process tree.
#[derive(Debug, Default)]
struct Meter {
    read_at: Option<Instant>,
    counted_ms: u64,
    counted_bytes: u64,
}

impl Meter {
    /// Adds what is new, at most once in [`PERIOD`].
    fn read(&mut self, worker: &Worker<'_>) -> Result<(), LoadError> {
        if self.read_at.is_some_and(|at| at.elapsed() < PERIOD) {
            return Ok(());
        }
        self.read_at = Some(Instant::now());
        let reaped = limits::reaped_cpu_time().map_err(|e| LoadError::io("getrusage", &e))?;
        let usage = descendants_usage();
        let total_ms = u64::try_from((reaped + usage.cpu).as_millis()).unwrap_or(u64::MAX);
        let bytes = usage.io_bytes.saturating_add(reaped_io_bytes());
        for (counter, total, counted) in
            [(CPU_MS, total_ms, &mut self.counted_ms), (IO_BYTES, bytes, &mut self.counted_bytes)]
        {
            // The next call picks up a process that ends between the two readings.
            let new = total.saturating_sub(*counted);
            worker.add(counter, new);
            *counted += new;
        }
        Ok(())
    }
}
