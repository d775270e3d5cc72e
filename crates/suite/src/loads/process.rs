//! Processes and threads that start and end without pause.

use std::convert::Infallible;
use std::thread;

use punctual_sys::process::{Exit, fork_worker, wait};

use crate::harness::worker::{LoadError, Worker};
use crate::registry::load::{Form, LoadEntry, Owns, PartForm, jobs, jobs_to_resolve};
use crate::registry::{Default, Kind, Param};

/// Enough for a thread that returns at once, and little to fault in.
const STACK_BYTES: usize = 64 << 10;
const PROCESSES: usize = 0;
const THREADS: usize = 1;

pub(super) const ENTRY: LoadEntry = LoadEntry {
    name: "process",
    summary: "create and end processes and threads continuously",
    help: "Each job forks a process that starts some threads, waits for them and ends; then the \
           next one follows. Modelled on the \"dynamic process\" scenario of Mitsubishi's \
           evaluation. Few processes exist at a time, so no process limit is reached.",
    main_param: "jobs",
    params: &[
        jobs("processes alive at a time"),
        Param {
            name: "threads",
            kind: Kind::Count { low: 0, high: 256 },
            default: Default::Value("4"),
            help: "threads that each process starts",
        },
    ],
    counters: &["processes", "threads"],
    needs: &[],
    form: Form::Part(PartForm {
        resolve: jobs_to_resolve,
        owns: Owns::Nothing,
        steady_from: None,
        run,
    }),
};

fn run(worker: &Worker<'_>) -> Result<Infallible, LoadError> {
    let threads = worker.values().number("threads");
    for _ in 0..worker.values().number("jobs") {
        worker.fork(|worker| create_and_end(worker, threads))?;
    }
    worker.wait_endless()
}

fn create_and_end(worker: &Worker<'_>, threads: u64) -> Result<(), LoadError> {
    loop {
        let pid = fork_worker(|| i32::from(!start_threads(threads)))
            .map_err(|error| LoadError::io("fork", &error))?;
        match wait(pid) {
            Ok(Exit::Code(0)) => {
                worker.add(PROCESSES, 1);
                worker.add(THREADS, threads);
            }
            Ok(Exit::Code(1)) => {
                return Err(LoadError::Failed("a thread could not be started".to_owned()));
            }
            Ok(exit) => return Err(LoadError::Failed(format!("a process was lost: {exit}"))),
            Err(error) => return Err(LoadError::io("wait", &error)),
        }
    }
}

fn start_threads(threads: u64) -> bool {
    let start = |_| thread::Builder::new().stack_size(STACK_BYTES).spawn(|| ()).ok();
    let started: Option<Vec<_>> = (0..threads).map(start).collect();
    started.is_some_and(|all| all.into_iter().all(|thread| thread.join().is_ok()))
}
