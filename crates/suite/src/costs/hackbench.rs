//! The time of groups of senders and receivers, modelled on hackbench.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use punctual_core::schema::{Better, CostSection, Unit};
use punctual_sys::clock::monotonic_ns;
use punctual_sys::fd::wait_readable;
use punctual_sys::limits::raise_open_file_limit;
use punctual_sys::partner::Partner;
use punctual_sys::process::{self, Exit, Pid};

use super::joined::in_words;
use crate::harness::set::available_memory;
use crate::messages::{GROUP_MEMORY, SIDE, StartGate, channel, receive, send};
use crate::registry::cost::{Column, CostEntry, Direct, Method, PEER, Peer, peer_cpus};
use crate::registry::{Choice, Default, Kind, Param, Values};

pub(super) const HACKBENCH: CostEntry = CostEntry {
    name: "time.hackbench",
    summary: "time of groups of 20 senders and 20 receivers that exchange messages",
    help: "In each group 20 processes send messages of 100 bytes to each of 20 others, 100 times \
           over, through AF_UNIX stream pairs or pipes; 10 groups are 400 processes. Timed from the \
           signal at which all begin until the last has ended and been reaped; that they are made is \
           not timed. The processes are forked from one that is a copy of punctual, with its address \
           space, and run on every CPU that punctual may use unless peer says otherwise. Comparable \
           to hackbench of rt-tests with its defaults (-g 10 -l 100 -s 100, processes and sockets), \
           whose seconds are 10^6 us here.",
    meaning: "all groups, from their start until all have ended",
    params: &[
        Param {
            name: "groups",
            kind: Kind::Count { low: 1, high: 1000 },
            default: Default::Value("10"),
            help: "groups of 40 processes",
        },
        Param {
            name: "loops",
            kind: Kind::Count { low: 1, high: 1_000_000 },
            default: Default::Value("100"),
            help: "messages from each sender to each receiver",
        },
        Param {
            name: "ipc",
            kind: Kind::Choice(&[Choice::of("socket", ""), Choice::of("pipe", "")]),
            default: Default::Value("socket"),
            help: "what the messages go through",
        },
        Param { default: Default::Value("any"), ..PEER },
    ],
    needs: &[],
    unit: Unit::Us,
    better: Better::Less,
    section: CostSection::Others,
    columns: &[Column { name: "hackbench", params: &[] }],
    open: |values| Ok(Method::Direct(Box::new(Groups::new(values)?))),
};

/// In the place of a time: a process of the round ended before it was done.
const ENDED_EARLY: u64 = u64::MAX;
/// How long the leader waits for a byte before it looks whether a process has ended.
const LOOK_AROUND: Duration = Duration::from_secs(1);

#[derive(Clone, Copy)]
struct GroupSetup {
    groups: u64,
    loops: u64,
    pipes: bool,
}

/// The process that makes all others; it makes a round for each byte that it is sent.
struct Groups {
    orders: PipeWriter,
    times: PipeReader,
    groups: u64,
    leader: Partner,
}

impl Groups {
    fn new(values: &Values) -> io::Result<Self> {
        let setup = GroupSetup {
            groups: values.number("groups"),
            loops: values.number("loops"),
            pipes: values.text("ipc") == "pipe",
        };
        let (needed, there) =
            (setup.groups.saturating_mul(GROUP_MEMORY), available_memory(Path::new("/proc")));
        if needed > there {
            let text = format!(
                "{} groups may need {needed} bytes of memory, and {there} are available",
                setup.groups
            );
            return Err(io::Error::new(io::ErrorKind::OutOfMemory, text));
        }
        raise_open_file_limit()?;
        let pipe = || io::pipe().map_err(|error| in_words("pipe", &error));
        let ((told, orders), (times, tell)) = (pipe()?, pipe()?);
        let body = || lead(&told, &tell, setup);
        let leader = Partner::fork(&[told.as_fd(), tell.as_fd()], &peer_cpus(values)?, body)?;
        Ok(Self { orders, times, groups: setup.groups, leader })
    }

    /// How long a round took, ns; nothing if one of its processes ended before it was done.
    fn round(&mut self) -> io::Result<Option<u64>> {
        self.orders.write_all(&[1])?;
        let mut ns = [0; 8];
        self.times.read_exact(&mut ns)?;
        Ok(Some(u64::from_ne_bytes(ns)).filter(|ns| *ns != ENDED_EARLY))
    }

    /// An error that says of how many processes, and if they do not fit that there may be fewer.
    fn in_words(&self, error: &io::Error) -> io::Error {
        let processes = format!("{} processes", self.groups * 2 * SIDE as u64);
        match error.kind() {
            io::ErrorKind::QuotaExceeded | io::ErrorKind::WouldBlock => {
                in_words(&format!("{processes} (fewer groups have fewer)"), error)
            }
            _ => in_words(&processes, error),
        }
    }
}

impl Direct for Groups {
    fn measure(&mut self) -> io::Result<Option<f64>> {
        let round = self.round();
        let ns = round.map_err(|error| self.in_words(&self.leader.explain(error)))?;
        let early = || self.in_words(&io::Error::other("one of them ended early"));
        let ns = ns.ok_or_else(early)?;
        #[allow(clippy::cast_precision_loss, reason = "below 2^53 ns")]
        Ok(Some(ns as f64 / 1e3))
    }

    fn peers(&self) -> Vec<Peer> {
        vec![Peer { name: "forks the groups".to_owned(), id: self.leader.pid() }]
    }
}

/// The life of the leader. If it is killed, its processes are killed with it.
fn lead(mut told: &PipeReader, mut tell: &PipeWriter, setup: GroupSetup) -> io::Result<()> {
    let mut processes = Vec::new();
    while told.read(&mut [0])? > 0 {
        let round = round(setup, &mut processes);
        if !matches!(round, Ok(Some(_))) {
            // It has one that failed or could not be made, and others that wait for it.
            processes.drain(..).for_each(|pid| drop(process::kill(pid)));
            while process::wait_any().is_ok() {}
        }
        tell.write_all(&round?.unwrap_or(ENDED_EARLY).to_ne_bytes())?;
    }
    Ok(())
}

/// Makes all groups, which it adds to `processes`, lets them run, and returns how long they took,
/// ns; nothing if one of them ended before it was done.
fn round(setup: GroupSetup, processes: &mut Vec<Pid>) -> io::Result<Option<u64>> {
    let (gate, (ready, arrive)) = (StartGate::new()?, io::pipe()?);
    let mut start = |task: &dyn Fn() -> io::Result<()>| {
        let pid = process::fork_worker(|| {
            let arrived = (&arrive).write_all(&[1]).and_then(|()| gate.wait());
            arrived.and_then(|()| task()).map_or(1, |()| 0)
        })?;
        processes.push(pid);
        io::Result::Ok(())
    };
    for _ in 0..setup.groups {
        let mut writers = Vec::with_capacity(SIDE);
        for _ in 0..SIDE {
            let (reader, writer) = channel(setup.pipes)?;
            start(&|| receive(&reader, setup.loops, drop))?;
            writers.push(writer);
        }
        for _ in 0..SIDE {
            start(&|| send(&writers, setup.loops))?;
        }
    }
    if !all_arrive(&ready, processes)? {
        return Ok(None);
    }
    let from = monotonic_ns();
    gate.open()?;
    for _ in 0..processes.len() {
        let (ended, exit) = process::wait_any()?;
        // Its PID may soon be another's.
        processes.retain(|pid| *pid != ended);
        if exit != Exit::Code(0) {
            return Ok(None);
        }
    }
    Ok(Some(monotonic_ns() - from))
}

/// Waits until each process has sent a byte; not if one of them has ended, which the pipe does not
/// tell, as all others hold its other end.
fn all_arrive(mut ready: &PipeReader, processes: &mut Vec<Pid>) -> io::Result<bool> {
    for _ in 0..processes.len() {
        while !wait_readable([ready.as_fd()], LOOK_AROUND)?[0] {
            if let Some((ended, _)) = process::try_wait_any()? {
                // Its PID may soon be another's.
                processes.retain(|pid| *pid != ended);
                return Ok(false);
            }
        }
        ready.read_exact(&mut [0])?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{gone, values};
    use super::*;

    fn groups(given: &[(&str, &str)]) -> io::Result<Groups> {
        Groups::new(&values(&HACKBENCH, given))
    }

    #[test]
    fn every_process_of_a_round_ends_and_more_messages_take_longer() {
        for ipc in ["socket", "pipe"] {
            let [few, many] = ["1", "1000"].map(|loops| {
                let mut groups =
                    groups(&[("groups", "1"), ("loops", loops), ("ipc", ipc)]).unwrap();
                let times = [(); 3].map(|()| groups.measure().unwrap().unwrap());
                let id = groups.leader.pid();
                let children = format!("/proc/{id}/task/{id}/children");
                if let Ok(left) = std::fs::read_to_string(children) {
                    assert_eq!(left, "", "processes are left after a round");
                }
                drop(groups);
                assert!(gone(id));
                times.into_iter().fold(f64::INFINITY, f64::min)
            });
            assert!(many > 1.5 * few, "{ipc}: {many} us of 1000 loops, {few} us of one");
        }
    }

    #[test]
    fn the_end_of_the_leader_is_told() {
        let mut led = groups(&[("groups", "1")]).unwrap();
        process::kill(led.leader.pid()).unwrap();
        let said = led.measure().unwrap_err().to_string();
        assert_eq!(said, "40 processes: the other process killed by SIGKILL");
    }

    #[test]
    fn one_that_ends_before_it_arrives_is_noticed() {
        let cpus = punctual_sys::affinity::get().unwrap();
        let ((ready, arrive), (mut noticed, tell)) = (io::pipe().unwrap(), io::pipe().unwrap());
        // In a process without threads, which may fork as the leader does, and which holds the
        // other end of the pipe as the leader does.
        let leads = || {
            let arrives = process::fork_worker(|| (&arrive).write_all(&[1]).map_or(1, |()| 0))?;
            process::wait(arrives)?;
            let mut processes = vec![arrives, process::fork_worker(|| 3)?];
            let all = all_arrive(&ready, &mut processes)?;
            (&tell).write_all(&[u8::from(all), u8::try_from(processes.len()).unwrap_or(0)])
        };
        let kept = [ready.as_fd(), arrive.as_fd(), tell.as_fd()];
        let _leader = Partner::fork(&kept, &cpus, leads).unwrap();
        assert!(wait_readable([noticed.as_fd()], Duration::from_secs(30)).unwrap()[0]);
        let mut said = [9; 2];
        noticed.read_exact(&mut said).unwrap();
        assert_eq!(said, [0, 1]);
    }

    #[test]
    fn too_many_files_are_a_limit_and_not_a_failure() {
        let groups = groups(&[("groups", "1")]).unwrap();
        let full =
            io::Error::new(io::ErrorKind::QuotaExceeded, "Too many open files (os error 24)");
        let error = groups.in_words(&full);
        assert_eq!(error.kind(), io::ErrorKind::QuotaExceeded);
        let said = error.to_string();
        let expected = "40 processes (fewer groups have fewer): Too many open files";
        assert_eq!(said, expected);
    }

    #[test]
    fn a_round_that_fails_leaves_no_process() {
        // In a process of its own, which must have no other children, and too few descriptors.
        let cpus = punctual_sys::affinity::get().unwrap();
        let fails = || {
            let setup = GroupSetup { groups: 1, loops: 1, pipes: true };
            let (told, orders) = io::pipe()?;
            let (_, tell) = io::pipe()?;
            (&orders).write_all(&[1])?;
            let mut held = Vec::new();
            while let Ok(pipe) = io::pipe() {
                held.push(pipe);
            }
            // Enough for a few receivers.
            held.truncate(held.len() - 6);
            let failed = lead(&told, &tell, setup).is_err();
            drop(held);
            let left = process::try_wait_any();
            if failed && left.is_err() { Ok(()) } else { Err(io::ErrorKind::Other.into()) }
        };
        // To use up all descriptors takes long if there may be many: closed when it has ended.
        let (ended, held) = io::pipe().unwrap();
        let alone = Partner::fork(&[held.as_fd()], &cpus, fails).unwrap();
        drop(held);
        assert!(wait_readable([ended.as_fd()], Duration::from_secs(30)).unwrap()[0]);
        let said = alone.explain(io::ErrorKind::TimedOut.into()).to_string();
        assert_eq!(said, "the other process exited with status 0");
    }

    #[test]
    fn what_does_not_fit_is_told() {
        if available_memory(Path::new("/proc")) < 1000 * GROUP_MEMORY {
            let said = groups(&[("groups", "1000")]).err().unwrap().to_string();
            assert!(said.ends_with("are available"), "{said}");
        }
    }
}
