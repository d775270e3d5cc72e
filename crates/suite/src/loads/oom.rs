//! Processes that exceed the memory of their control group, which the kernel kills.

use std::convert::Infallible;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use punctual_sys::process::wait;
use punctual_sys::region::Region;

use crate::harness::memory_group::MemoryGroup;
use crate::harness::worker::{LoadError, Worker};
use crate::registry::load::{Form, LoadEntry, Machine, Owns, PartForm};
use crate::registry::need::{MEMORY_GROUP, NO_PANIC_ON_OOM};
use crate::registry::{Default, Kind, Param, Values};

const KILLS: usize = 0;

pub(super) const ENTRY: LoadEntry = LoadEntry {
    name: "oom",
    summary: "processes that the kernel kills for the memory limit of their control group",
    help: "Starts one process after the other that exceeds the limit of a control group of its own \
           (memory.max, or memory.limit_in_bytes of version 1), until the kernel's OOM killer ends it: \
           it receives into shared memory from a socket, page after page. The machine's memory does \
           not run out, and nothing else is in the group. The kernel reports each kill in its log, at \
           most 10 in 5 s, and prints the stack of the process with interrupts off (dump_stack_lvl), \
           on PREEMPT_RT too. kills counts those that the group has counted (oom_kill). The log keeps \
           the reports, and so may files of the machine's log daemon. Needs a vm.panic_on_oom other \
           than 2, with which the kernel would panic instead.",
    main_param: "rate",
    params: &[
        Param {
            name: "rate",
            kind: Kind::Count { low: 1, high: 1000 },
            default: Default::Value("2"),
            help: "processes per second",
        },
        Param {
            name: "limit",
            kind: Kind::Size { low: 1 << 18 },
            default: Default::Value("1M"),
            help: "memory of the group; each process asks for four times as much",
        },
    ],
    counters: &["kills"],
    needs: &[MEMORY_GROUP, NO_PANIC_ON_OOM],
    form: Form::Part(PartForm { resolve, owns: Owns::MemoryGroup, steady_from: None, run }),
};

fn resolve(values: &mut Values, machine: &Machine) -> Result<(), String> {
    let limit = values.number("limit");
    // Four times as much is asked for: the machine is not to run out before the group.
    if limit > machine.memory / 8 {
        return Err(format!("limit={limit}: more than an eighth of the available memory"));
    }
    Ok(())
}

fn run(worker: &Worker<'_>) -> Result<Infallible, LoadError> {
    let group = worker.memory_group()?;
    // Again here: as a part of a composite it starts whatever the machine has.
    if !(NO_PANIC_ON_OOM.met)() {
        return Err(LoadError::CannotStart(format!("needs {}", NO_PANIC_ON_OOM.what)));
    }
    let bytes = worker.values().small::<usize>("limit").saturating_mul(4);
    let pause = Duration::from_secs(1) / worker.values().small("rate");
    let failed = |error| LoadError::io(group.path().display(), &error);
    let mut due = Instant::now();
    let mut before = group.kills().map_err(failed)?;
    loop {
        let pid = worker.fork(|_| exceed(group, bytes))?;
        let exit = wait(pid).map_err(|error| LoadError::io("wait", &error))?;
        let now = group.kills().map_err(failed)?;
        worker.add(KILLS, now - before);
        if now == before {
            let group = group.path().display();
            return Err(LoadError::Failed(format!("{group}: the kernel killed nothing: {exit}")));
        }
        before = now;
        due += pause;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        // What was late is not made up for.
        due = due.max(Instant::now());
    }
}

/// Has the kernel write to more pages than the group has room for. Each comes from a socket into
/// shared memory, so the stack that the kernel prints is deep.
fn exceed(group: &MemoryGroup, bytes: usize) -> Result<(), LoadError> {
    let failed = |error| LoadError::io(group.path().display(), &error);
    let socket = |error| LoadError::io("socketpair", &error);
    let (mut here, mut there) = UnixStream::pair().map_err(socket)?;
    group.enter().map_err(failed)?;
    let mut region = Region::shared(bytes).map_err(|error| LoadError::io("memory", &error))?;
    for page in region.pages() {
        here.write_all(&[1]).map_err(socket)?;
        there.read_exact(&mut page[..1]).map_err(socket)?;
    }
    Err(LoadError::Failed(format!("{}: its limit did not hold", group.path().display())))
}
