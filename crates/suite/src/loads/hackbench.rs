//! Groups of senders and receivers, modelled on hackbench.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use punctual_sys::{fd, limits};

use crate::harness::worker::{LoadError, Tally, Worker};
use crate::registry::load::{Form, LoadEntry, Machine, PartForm};
use crate::registry::{Choice, Default, Kind, Param, Value, Values};

/// Senders per group, and receivers per group.
const SIDE: usize = 20;
/// Bytes of a message.
const MESSAGE: usize = 100;
/// Memory of a group's 40 tasks (stacks, tables and full socket buffers), rounded up, bytes.
const GROUP_MEMORY: u64 = 32 << 20;
/// Enough for one message and a few calls.
const STACK_BYTES: usize = 64 << 10;
const MESSAGES: usize = 0;
const BYTES: usize = 1;
/// Messages between two updates of the counters.
const BATCH: u64 = 100;

pub(super) const ENTRY: LoadEntry = LoadEntry {
    name: "hackbench",
    summary: "groups of 20 senders and 20 receivers that exchange messages",
    help: "Follows hackbench: in each group 20 senders write messages of 100 bytes to each of 20 \
           receivers, 100 times over; when all are received, all tasks end and are created anew. \
           Uses AF_UNIX stream pairs or pipes, processes or threads. 30 groups are 1200 \
           processes; the default is one group per CPU, limited to a quarter of the memory.",
    main_param: "groups",
    params: &[
        Param {
            name: "groups",
            kind: Kind::Count { low: 1, high: 1000 },
            default: Default::OfMachine("one per CPU, 32 MiB of memory each"),
            help: "groups of 40 processes or threads",
        },
        Param {
            name: "loops",
            kind: Kind::Count { low: 1, high: 1_000_000_000 },
            default: Default::Value("100"),
            help: "messages from each sender to each receiver",
        },
        Param {
            name: "mode",
            kind: Kind::Choice(&[Choice::of("process", ""), Choice::of("thread", "")]),
            default: Default::Value("process"),
            help: "what senders and receivers are",
        },
        Param {
            name: "ipc",
            kind: Kind::Choice(&[Choice::of("socket", ""), Choice::of("pipe", "")]),
            default: Default::Value("socket"),
            help: "what the messages go through",
        },
    ],
    counters: &["messages", "bytes"],
    needs: &[],
    form: Form::Part(PartForm { resolve, scratch: false, steady_from: None, run }),
};

fn resolve(values: &mut Values, machine: &Machine) -> Result<(), String> {
    if !values.is_known("groups") {
        let fitting = machine.memory / 4 / GROUP_MEMORY;
        values.set("groups", Value::Number(machine.cpus.min(fitting).clamp(1, 30)));
    }
    Ok(())
}

#[derive(Debug, Clone, Copy)]
struct Setup {
    groups: usize,
    loops: u64,
    pipes: bool,
}

fn run(worker: &Worker<'_>) -> Result<Infallible, LoadError> {
    let values = worker.values();
    let setup = Setup {
        groups: values.small("groups"),
        loops: values.number("loops"),
        pipes: values.text("ipc") == "pipe",
    };
    let threads = values.text("mode") == "thread";
    limits::raise_open_file_limit().map_err(|error| LoadError::io("file limit", &error))?;
    loop {
        if threads {
            worker.fork(|worker| round_of_threads(worker, setup))?;
        } else {
            round_of_processes(worker, setup)?;
        }
        worker.wait_all()?;
    }
}

/// A channel for the messages to one receiver.
fn channel(setup: Setup) -> Result<(File, File), LoadError> {
    let (reader, writer): (OwnedFd, OwnedFd) = if setup.pipes {
        let made = io::pipe().map_err(|error| LoadError::io("pipe", &error))?;
        (made.0.into(), made.1.into())
    } else {
        let made = UnixStream::pair().map_err(|error| LoadError::io("socketpair", &error))?;
        (made.0.into(), made.1.into())
    };
    Ok((reader.into(), writer.into()))
}

/// Holds all tasks back until every one has been created.
#[derive(Debug)]
struct StartGate {
    waiting: io::PipeReader,
    opener: io::PipeWriter,
}

impl StartGate {
    fn new() -> Result<Self, LoadError> {
        let (waiting, opener) = io::pipe().map_err(|error| LoadError::io("pipe", &error))?;
        Ok(Self { waiting, opener })
    }

    /// Nobody reads the byte, so it lets everyone pass.
    fn open(&self) -> Result<(), LoadError> {
        let written = (&self.opener).write_all(&[0]);
        written.map_err(|error| LoadError::io("gate", &error))
    }

    fn wait(&self) -> Result<(), LoadError> {
        loop {
            let ready = fd::wait_readable([self.waiting.as_fd()], Duration::from_secs(60));
            if ready.map_err(|error| LoadError::io("gate", &error))?[0] {
                return Ok(());
            }
        }
    }
}

fn round_of_processes(worker: &Worker<'_>, setup: Setup) -> Result<(), LoadError> {
    let gate = StartGate::new()?;
    for _ in 0..setup.groups {
        let mut writers = Vec::with_capacity(SIDE);
        for _ in 0..SIDE {
            let (reader, writer) = channel(setup)?;
            worker.fork(|worker| {
                gate.wait()?;
                receive(worker.tally(), &reader, setup)
            })?;
            writers.push(writer);
        }
        for _ in 0..SIDE {
            worker.fork(|_| {
                gate.wait()?;
                send(&writers, setup)
            })?;
        }
    }
    gate.open()
}

fn round_of_threads(worker: &Worker<'_>, setup: Setup) -> Result<(), LoadError> {
    let gate = StartGate::new()?;
    let failed = |error| LoadError::io("thread", &error);
    let tally = worker.tally();
    thread::scope(|scope| {
        let mut all = Vec::new();
        let builder = || thread::Builder::new().stack_size(STACK_BYTES);
        for _ in 0..setup.groups {
            let mut writers = Vec::with_capacity(SIDE);
            for _ in 0..SIDE {
                let (reader, writer) = channel(setup)?;
                let gate = &gate;
                let task = move || {
                    gate.wait()?;
                    receive(tally, &reader, setup)
                };
                all.push(builder().spawn_scoped(scope, task).map_err(failed)?);
                writers.push(writer);
            }
            let writers = Arc::new(writers);
            for _ in 0..SIDE {
                let (writers, gate) = (Arc::clone(&writers), &gate);
                let task = move || {
                    gate.wait()?;
                    send(&writers, setup)
                };
                all.push(builder().spawn_scoped(scope, task).map_err(failed)?);
            }
        }
        gate.open()?;
        for thread in all {
            let lost = |_| Err(LoadError::Failed("a thread panicked".to_owned()));
            thread.join().unwrap_or_else(lost)?;
        }
        Ok(())
    })
}

fn send(writers: &[File], setup: Setup) -> Result<(), LoadError> {
    let message = [0; MESSAGE];
    for _ in 0..setup.loops {
        for mut writer in writers {
            let sent = writer.write_all(&message);
            sent.map_err(|error| LoadError::io("send", &error))?;
        }
    }
    Ok(())
}

fn receive(tally: Tally<'_>, mut reader: &File, setup: Setup) -> Result<(), LoadError> {
    let mut message = [0; MESSAGE];
    let mut left = setup.loops * SIDE as u64;
    while left > 0 {
        let batch = left.min(BATCH);
        for _ in 0..batch {
            let received = reader.read_exact(&mut message);
            received.map_err(|error| LoadError::io("receive", &error))?;
        }
        tally.add(MESSAGES, batch);
        tally.add(BYTES, batch * MESSAGE as u64);
        left -= batch;
    }
    Ok(())
}
