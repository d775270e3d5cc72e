//! Groups of senders and receivers, modelled on hackbench.

use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::thread;

use punctual_sys::limits;

use crate::harness::worker::{LoadError, Tally, Worker};
use crate::messages::{self, GROUP_MEMORY, MESSAGE, SIDE, StartGate};
use crate::registry::load::{Form, LoadEntry, Machine, Owns, PartForm};
use crate::registry::{Choice, Default, Kind, Param, Value, Values};

/// Enough for one message and a few calls.
const STACK_BYTES: usize = 64 << 10;
const MESSAGES: usize = 0;
const BYTES: usize = 1;

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
    form: Form::Part(PartForm { resolve, owns: Owns::Nothing, steady_from: None, run }),
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

fn round_of_processes(worker: &Worker<'_>, setup: Setup) -> Result<(), LoadError> {
    let gate = at_gate(StartGate::new())?;
    for _ in 0..setup.groups {
        let mut writers = Vec::with_capacity(SIDE);
        for _ in 0..SIDE {
            let (reader, writer) = made(setup)?;
            worker.fork(|worker| {
                at_gate(gate.wait())?;
                receiving(worker.tally(), &reader, setup)
            })?;
            writers.push(writer);
        }
        for _ in 0..SIDE {
            worker.fork(|_| {
                at_gate(gate.wait())?;
                sending(&writers, setup)
            })?;
        }
    }
    at_gate(gate.open())
}

fn round_of_threads(worker: &Worker<'_>, setup: Setup) -> Result<(), LoadError> {
    let gate = at_gate(StartGate::new())?;
    let failed = |error| LoadError::io("thread", &error);
    let tally = worker.tally();
    thread::scope(|scope| {
        let mut all = Vec::new();
        let builder = || thread::Builder::new().stack_size(STACK_BYTES);
        for _ in 0..setup.groups {
            let mut writers = Vec::with_capacity(SIDE);
            for _ in 0..SIDE {
                let (reader, writer) = made(setup)?;
                let gate = &gate;
                let task = move || {
                    at_gate(gate.wait())?;
                    receiving(tally, &reader, setup)
                };
                all.push(builder().spawn_scoped(scope, task).map_err(failed)?);
                writers.push(writer);
            }
            let writers = Arc::new(writers);
            for _ in 0..SIDE {
                let (writers, gate) = (Arc::clone(&writers), &gate);
                let task = move || {
                    at_gate(gate.wait())?;
                    sending(&writers, setup)
                };
                all.push(builder().spawn_scoped(scope, task).map_err(failed)?);
            }
        }
        at_gate(gate.open())?;
        for thread in all {
            let lost = |_| Err(LoadError::Failed("a thread panicked".to_owned()));
            thread.join().unwrap_or_else(lost)?;
        }
        Ok(())
    })
}

fn sending(writers: &[File], setup: Setup) -> Result<(), LoadError> {
    messages::send(writers, setup.loops).map_err(|error| LoadError::io("send", &error))
}

fn receiving(tally: Tally<'_>, reader: &File, setup: Setup) -> Result<(), LoadError> {
    let count = |messages: u64| {
        tally.add(MESSAGES, messages);
        tally.add(BYTES, messages * MESSAGE as u64);
    };
    let received = messages::receive(reader, setup.loops, count);
    received.map_err(|error| LoadError::io("receive", &error))
}

fn made(setup: Setup) -> Result<(File, File), LoadError> {
    let name = if setup.pipes { "pipe" } else { "socketpair" };
    messages::channel(setup.pipes).map_err(|error| LoadError::io(name, &error))
}

fn at_gate<T>(done: io::Result<T>) -> Result<T, LoadError> {
    done.map_err(|error| LoadError::io("gate", &error))
}
