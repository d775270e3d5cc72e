//! Processes: made, replaced by a program, and reaped.
//!
//! Who forks is a program of one page ([`Program::Forks`]) and not punctual, which has more memory
//! than most programs and in each version another amount: a fork copies the page tables of all of
//! it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use punctual_core::schema::{Better, CostSection, Unit};
use punctual_sys::affinity::{self, CpuSet};
use punctual_sys::process::{Pid, bind_to_this};
use punctual_sys::tiny::Program;

use super::apart::{Apart, Scale, timed};
use super::calls::named;
use crate::registry::cost::{Column, CostEntry, Method, PEER, peer_cpus};
use crate::registry::{Choice, Default, Kind, Param, Values};

pub(super) const FORK: CostEntry = CostEntry {
    name: "lat.fork",
    summary: "fork of a small process whose child exits, and the wait for it (fork proc)",
    help: "A program of one page, which has no library and maps nothing but itself and its stack, \
forks; the child exits at once, and the parent waits for it. It is the least that a fork takes: each \
mapping and each page that a process has of its own adds to it. Comparable to fork proc in LMbench's \
summary, where a C program forks that has the mappings of a C library.",
    meaning: "one fork, exit and wait4",
    params: &[],
    needs: &[],
    unit: Unit::Us,
    better: Better::Less,
    section: CostSection::Processor,
    columns: &[Column { name: "fork proc", params: &[] }],
    open: |_| opened(Starts::Nothing),
};

pub(super) const EXEC: CostEntry = CostEntry {
    name: "lat.exec",
    summary: "fork, execve of a trivial program in the child, and the wait (exec proc)",
    help: "As lat.fork, but the child becomes another program of one page, which exits. That is a \
static executable in memory (memfd_create(2)), started by its name in /proc, so neither a disk \
nor a dynamic loader has a part in it. Comparable to exec proc in LMbench's summary, where the program \
is a C program, mostly a dynamically linked one: its loader then takes as long as all the rest.",
    meaning: "one fork, execve, exit and wait4",
    params: &[],
    needs: &[],
    unit: Unit::Us,
    better: Better::Less,
    section: CostSection::Processor,
    columns: &[Column { name: "exec proc", params: &[] }],
    open: |_| opened(Starts::Program),
};

pub(super) const SH: CostEntry = CostEntry {
    name: "lat.sh",
    summary: "fork, /bin/sh that starts a trivial program, and the wait (sh proc)",
    help: "As lat.exec, but the child becomes /bin/sh -c with the program as its command. It is the \
board's own shell, with all that it reads and maps when it starts: compare boards that have the same \
one. Comparable to sh proc in LMbench's summary.",
    meaning: "one fork, execve of /bin/sh -c PROGRAM, exit and wait4",
    params: &[],
    needs: &[],
    unit: Unit::Us,
    better: Better::Less,
    section: CostSection::Processor,
    columns: &[Column { name: "sh proc", params: &[] }],
    open: |_| opened(Starts::Shell),
};

pub(super) const RATE: CostEntry = CostEntry {
    name: "rate.process",
    summary: "processes that can be made, run to their exit and reaped a second",
    help: "Programs of one page, as in lat.fork, fork at the same time, each bound to one of the CPUs: \
each has one child at a time, which exits at once, and waits for it. The value is the number of \
children a second of all of them, until the last has made its share. With one CPU and one job it says \
the same as lat.fork; with more of them it shows what they take from each other.",
    meaning: "children forked, exited and waited for, of all jobs together",
    params: &[
        Param {
            name: "jobs",
            kind: Kind::Or(
                &[Choice::of("each", "one for each of the CPUs")],
                &Kind::Count { low: 1, high: 1024 },
            ),
            default: Default::Value("each"),
            help: "programs that fork",
        },
        Param {
            default: Default::Value("any"),
            help: "CPUs that the programs are bound to, one each",
            ..PEER
        },
    ],
    needs: &[],
    unit: Unit::PerSecond,
    better: Better::More,
    section: CostSection::Others,
    columns: &[Column { name: "processes", params: &[] }],
    open: open_rate,
};

/// What children become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Starts {
    Nothing,
    Program,
    Shell,
}

fn opened(starts: Starts) -> io::Result<Method> {
    timed(None, Scale::Us(1.0), move || {
        Ok(Forks { pids: Vec::new(), jobs: vec![Job::start(starts, None)?] }.noted())
    })
}

fn open_rate(values: &Values) -> io::Result<Method> {
    let cpus: Vec<u32> = peer_cpus(values)?.iter().collect();
    let jobs = values.known_number("jobs").map_or(Ok(cpus.len()), usize::try_from);
    let jobs = jobs.map_err(io::Error::other)?;
    #[allow(clippy::cast_precision_loss, reason = "at most 1024")]
    let scale = Scale::Rate(jobs as f64);
    timed(None, scale, move || {
        let job = |cpu: &u32| Job::start(Starts::Nothing, Some(*cpu));
        let jobs = cpus.iter().cycle().take(jobs).map(job);
        Ok(Forks { pids: Vec::new(), jobs: jobs.collect::<io::Result<_>>()? }.noted())
    })
}

/// A program that forks on request. Dropping it ends and reaps it.
struct Job {
    child: Child,
    orders: ChildStdin,
    answers: ChildStdout,
    /// What it executes; and its children, by their descriptors.
    _files: [File; 2],
}

impl Job {
    fn start(starts: Starts, cpu: Option<u32>) -> io::Result<Self> {
        let files = [Program::Forks.file()?, Program::Exits.file()?];
        // Those of this process, which lives on: with /proc/self each child would have the kernel
        // make entries of its own, which are no part of execve.
        let own = format!("/proc/{}/fd", std::process::id());
        let folder = if Path::new(&own).read_dir().is_ok() { &own } else { "/proc/self/fd" };
        let [forks, exits] = files.each_ref().map(|of| format!("{folder}/{}", of.as_raw_fd()));
        let mut command = Command::new(&forks);
        command.arg0("punctual-forks");
        match starts {
            Starts::Nothing => {}
            Starts::Program => {
                command.arg(&exits);
            }
            Starts::Shell => {
                named("/bin/sh", File::open("/bin/sh"))?;
                command.args(["/bin/sh", "-c", &exits]);
            }
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        bind_to_this(&mut command);
        let mut child = started(command.spawn())?;
        let (orders, answers) = (child.stdin.take(), child.stdout.take());
        let (Some(orders), Some(answers)) = (orders, answers) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let mut job = Self { child, orders, answers, _files: files };
        if let Some(cpu) = cpu {
            named("sched_setaffinity", affinity::set_of(job.pid(), &CpuSet::of(cpu)))?;
        }
        // Whether it can at all is known before it is timed.
        job.order(1)?;
        job.answer()?;
        Ok(job)
    }

    fn pid(&self) -> Pid {
        Pid::try_from(self.child.id()).unwrap_or(0)
    }

    fn order(&mut self, count: u64) -> io::Result<()> {
        self.orders.write_all(&count.to_ne_bytes())
    }

    fn answer(&mut self) -> io::Result<()> {
        let mut answer = [0; 8];
        named("the program that forks has ended", self.answers.read_exact(&mut answer))?;
        match i64::from_ne_bytes(answer) {
            0 => Ok(()),
            errno @ i64::MIN..0 => {
                let errno = i32::try_from(-errno).unwrap_or(0);
                named("fork", Err(io::Error::from_raw_os_error(errno)))
            }
            0x7f00 => Err(io::Error::other("the program could not be executed")),
            status => Err(io::Error::other(format!("a child ended with wait status {status:#x}"))),
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        // Its child, if it has one, ends by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Why a program in memory could not be started. Unless there are too many processes, that is
/// because the kernel executes none.
fn started<T>(started: io::Result<T>) -> io::Result<T> {
    let what = match &started {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => "starting a program",
        _ => "starting a program in memory (/proc, vm.memfd_noexec)",
    };
    named(what, started)
}

struct Forks {
    jobs: Vec<Job>,
    pids: Vec<Pid>,
}

impl Forks {
    fn noted(mut self) -> Self {
        self.pids = self.jobs.iter().map(Job::pid).collect();
        self
    }
}

impl Apart for Forks {
    fn run(&mut self, iterations: u64) -> io::Result<()> {
        self.jobs.iter_mut().try_for_each(|job| job.order(iterations))?;
        self.jobs.iter_mut().try_for_each(Job::answer)
    }

    /// The same orders and answers.
    fn empty(&mut self, _: u64) -> io::Result<()> {
        self.run(0)
    }

    fn others(&self) -> &[Pid] {
        &self.pids
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::costs::apart::tests::{leaves_nothing, opened, value};

    #[test]
    fn each_step_takes_longer_than_the_one_before() {
        let mut least = [f64::INFINITY; 3];
        // What else runs lengthens one of them, but not in every round.
        let in_order = (0..10).any(|_| {
            for (least, what) in least.iter_mut().zip(["lat.fork", "lat.exec", "lat.sh"]) {
                *least = value(what, 20).min(*least);
            }
            let [fork, exec, sh] = least;
            0.0 < fork && 1.1 * fork < exec && 1.1 * exec < sh
        });
        assert!(in_order, "{least:?} us");
    }

    #[test]
    fn a_rate_is_that_of_all_jobs() {
        let one = value("rate.process:jobs=1,peer=same", 20);
        // Bound to one CPU, two are not faster than one.
        let two = value("rate.process:jobs=2,peer=same", 20);
        assert!(two > 0.1 * one && two < 10.0 * one, "{one} and {two} a second");
    }

    #[test]
    fn nothing_is_left() {
        for (what, processes) in [("lat.fork", 2), ("lat.exec", 2), ("lat.sh", 2)] {
            leaves_nothing(what, processes);
        }
        leaves_nothing("rate.process:jobs=3", 4);
    }

    #[test]
    fn a_program_that_cannot_be_started_or_is_killed_is_an_error() {
        let mut job = Job::start(Starts::Program, None).unwrap();
        assert_eq!(job.child.kill().ok(), Some(()));
        assert!(job.order(1).and_then(|()| job.answer()).is_err());
        assert!(Job::start(Starts::Nothing, Some(8_191)).is_err(), "there is no such CPU");
        let Err(error) = opened("rate.process:peer=8191") else { panic!("there is no such CPU") };
        assert!(error.to_string().starts_with("sched_setaffinity: "), "{error}");
    }
}
