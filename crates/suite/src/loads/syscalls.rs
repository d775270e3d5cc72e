//! System calls with wrong arguments.

use std::convert::Infallible;

use punctual_core::random::mix;
use punctual_sys::wrong;

use crate::harness::worker::{LoadError, Worker};
use crate::registry::load::{Form, LoadEntry, Owns, PartForm, jobs, jobs_to_resolve};
use crate::registry::{Default, Kind, Param};

const REFUSED: usize = 0;
/// Calls between two updates of the counter.
const BATCH: u64 = 100;

pub(super) const ENTRY: LoadEntry = LoadEntry {
    name: "syscalls",
    summary: "wrong but harmless arguments to cheap system calls",
    help: "Makes some sixty system calls in random order with random arguments, one of which at \
           least is wrong in a way that lets the kernel refuse the call before it does anything: \
           files that are not open, addresses of the kernel, processes that cannot exist, unknown \
           options. So it drives error paths, as crashme and LTP do, and changes nothing. The same \
           seed makes the same calls. It counts calls that were refused; if one is not, the load \
           ends and names it.",
    main_param: "jobs",
    params: &[
        jobs("number of processes"),
        Param {
            name: "seed",
            kind: Kind::Count { low: 0, high: u64::MAX },
            default: Default::Value("1"),
            help: "chooses the calls and their arguments",
        },
    ],
    counters: &["refused"],
    needs: &[],
    form: Form::Part(PartForm {
        resolve: jobs_to_resolve,
        owns: Owns::Nothing,
        steady_from: None,
        run,
    }),
};

fn run(worker: &Worker<'_>) -> Result<Infallible, LoadError> {
    let seed = worker.values().number("seed");
    for job in 0..worker.values().number("jobs") {
        worker.fork(|worker| {
            let mut state = mix(mix(seed) ^ job);
            let mut random = || {
                state = state.wrapping_add(1);
                mix(state)
            };
            loop {
                for _ in 0..BATCH {
                    wrong::call(&mut random)
                        .map_err(|error| LoadError::Failed(error.to_string()))?;
                }
                worker.add(REFUSED, BATCH);
            }
        })?;
    }
    worker.wait_endless()
}
