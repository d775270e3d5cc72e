//! Operations that are timed in a process of their own, which has one thread: an [`Agent`].
//!
//! In punctual itself, which has threads, each use of a descriptor counts its users, and a signal
//! to the process goes to any thread. The timed thread sends an order and waits for the answer; so
//! it does for what is subtracted, and the two cancel out.

use std::io;
use std::path::{Path, PathBuf};

use punctual_sys::agent::{Agent, End, Work};
use punctual_sys::clock::monotonic_ns;
use punctual_sys::process::Pid;

use crate::knobs::{RestoreReport, remove_abandoned};
use crate::registry::cost::{Direct, IS_TIMED, Method, Operation, Peer, loop_alone};

/// An operation, as its agent carries it out; see [`Operation`].
pub(super) trait Apart {
    fn prepare(&mut self, _iterations: u64) -> io::Result<()> {
        Ok(())
    }

    fn run(&mut self, iterations: u64) -> io::Result<()>;

    fn empty(&mut self, iterations: u64) -> io::Result<()> {
        loop_alone(iterations);
        Ok(())
    }

    fn tidy(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Other processes that take part, as long as the agent does.
    fn others(&self) -> &[Pid] {
        &[]
    }
}

/// What is worked out from several times, in its agent.
pub(super) trait Once {
    /// The value, in the unit of the entry.
    fn measure(&mut self) -> io::Result<f64>;
}

/// How a value follows from the time of an iteration.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scale {
    /// It is the time, us, of one of so many operations.
    Us(f64),
    /// It is the number of operations a second, of which an iteration has so many.
    Rate(f64),
}

const PREPARE: u8 = 0;
const RUN: u8 = 1;
const EMPTY: u8 = 2;
const TIDY: u8 = 3;
const OTHER: u8 = 4;
const MEASURE: u8 = 5;

/// Times what `make` makes in an agent, which leaves something only in `folder`, if anywhere.
///
/// # Errors
/// Those of [`Agent::fork`] and of `make`.
pub(super) fn timed<A: Apart>(
    folder: Option<&Path>,
    scale: Scale,
    make: impl FnOnce() -> io::Result<A>,
) -> io::Result<Method> {
    let agent = InAgent::fork(folder, scale, || Ok(Looped(make()?)))?;
    Ok(Method::Timed(Box::new(agent.with_others()?)))
}

/// Works out what `make` makes in an agent, which leaves something only in `folder`, if anywhere.
///
/// # Errors
/// Those of [`Agent::fork`] and of `make`.
pub(super) fn worked_out<O: Once>(
    folder: Option<&Path>,
    make: impl FnOnce() -> io::Result<O>,
) -> io::Result<Method> {
    let agent = InAgent::fork(folder, Scale::Us(1.0), || Ok(WorkedOut(make()?)))?;
    Ok(Method::Direct(Box::new(agent)))
}

/// The time that `work` takes, ns.
pub(super) fn ns_of(work: impl FnOnce() -> io::Result<()>) -> io::Result<f64> {
    let from = monotonic_ns();
    work()?;
    #[allow(clippy::cast_precision_loss, reason = "far below 2^53 ns")]
    Ok((monotonic_ns() - from) as f64)
}

struct Looped<A>(A);

impl<A: Apart> Work for Looped<A> {
    fn carry_out(&mut self, order: u8, count: u64) -> io::Result<u64> {
        let Self(what) = self;
        match order {
            PREPARE => what.prepare(count)?,
            RUN => what.run(count)?,
            EMPTY => what.empty(count)?,
            TIDY => what.tidy()?,
            OTHER => {
                let at = usize::try_from(count).ok();
                let pid = at.and_then(|at| what.others().get(at)).copied();
                return Ok(pid.and_then(|pid| u64::try_from(pid).ok()).unwrap_or(0));
            }
            _ => return Err(io::ErrorKind::InvalidInput.into()),
        }
        Ok(0)
    }
}

struct WorkedOut<O>(O);

impl<O: Once> Work for WorkedOut<O> {
    fn carry_out(&mut self, _: u8, _: u64) -> io::Result<u64> {
        self.0.measure().map(f64::to_bits)
    }
}

struct InAgent {
    // Dropped in this order.
    agent: Agent,
    _left: Option<AgentFolder>,
    scale: Scale,
    others: Vec<Pid>,
}

/// A folder in which an agent makes its own. If the agent was killed, that is still there.
struct AgentFolder(PathBuf);

impl Drop for AgentFolder {
    fn drop(&mut self) {
        // What cannot be removed is found by `punctual restore`.
        remove_abandoned(&self.0, false, &mut RestoreReport::default());
    }
}

impl InAgent {
    fn fork<W: Work>(
        folder: Option<&Path>,
        scale: Scale,
        make: impl FnOnce() -> io::Result<W>,
    ) -> io::Result<Self> {
        let end = if folder.is_some() { End::AfterOrder } else { End::AtOnce };
        let agent = Agent::fork(end, make)?;
        let left = folder.map(|folder| AgentFolder(folder.to_owned()));
        Ok(Self { agent, _left: left, scale, others: Vec::new() })
    }

    fn with_others(mut self) -> io::Result<Self> {
        for at in 0.. {
            match Pid::try_from(self.agent.order(OTHER, at)?) {
                Ok(pid) if pid > 0 => self.others.push(pid),
                _ => break,
            }
        }
        Ok(self)
    }

    fn all(&self) -> Vec<Peer> {
        let peer = |name: &str, id| Peer { name: name.to_owned(), id };
        let others = self.others.iter().map(|pid| peer("takes part", *pid));
        [peer(IS_TIMED, self.agent.pid())].into_iter().chain(others).collect()
    }
}

impl Operation for InAgent {
    fn prepare(&mut self, iterations: u64) -> io::Result<()> {
        self.agent.order(PREPARE, iterations).map(drop)
    }

    fn run(&mut self, iterations: u64) -> io::Result<()> {
        self.agent.order(RUN, iterations).map(drop)
    }

    fn tidy(&mut self) -> io::Result<()> {
        self.agent.order(TIDY, 0).map(drop)
    }

    fn empty(&mut self, iterations: u64) -> io::Result<()> {
        self.agent.order(EMPTY, iterations).map(drop)
    }

    fn value(&self, ns: f64) -> f64 {
        match self.scale {
            Scale::Us(operations) => ns / operations / 1e3,
            Scale::Rate(operations) => operations * 1e9 / ns,
        }
    }

    fn peers(&self) -> Vec<Peer> {
        self.all()
    }
}

impl Direct for InAgent {
    fn measure(&mut self) -> io::Result<Option<f64>> {
        let value = f64::from_bits(self.agent.order(MEASURE, 0)?);
        Ok(Some(value).filter(|value| value.is_finite()))
    }

    fn peers(&self) -> Vec<Peer> {
        self.all()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::costs;
    use crate::registry::Value;
    use std::collections::BTreeSet;

    /// Reads `name:key=value,…`.
    pub(in crate::costs) fn opened(what: &str) -> io::Result<Method> {
        let named = punctual_core::params::Named::parse(what, "").unwrap();
        let entry = costs::find(&named.name).unwrap();
        let mut values = entry.read(&named.params).unwrap();
        values.set("cpu", Value::Number(0));
        (entry.open)(&values)
    }

    /// The least times of an iteration, run and empty, ns: those that other work has
    /// lengthened least.
    pub(in crate::costs) fn least(operation: &mut dyn Operation, iterations: u64) -> (f64, f64) {
        let (mut run, mut empty) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..9 {
            operation.prepare(iterations).unwrap();
            run = ns_of(|| operation.run(iterations)).unwrap().min(run);
            operation.tidy().unwrap();
            empty = ns_of(|| operation.empty(iterations)).unwrap().min(empty);
        }
        (run / iterations as f64, empty / iterations as f64)
    }

    /// Of a metric, roughly.
    pub(in crate::costs) fn value(what: &str, iterations: u64) -> f64 {
        match opened(what).unwrap() {
            Method::Timed(mut operation) => {
                let (run, empty) = least(&mut *operation, iterations);
                operation.value(run - empty)
            }
            Method::Direct(mut direct) => {
                let values = (0..5).map(|_| direct.measure().unwrap().unwrap_or(0.0));
                values.fold(f64::INFINITY, f64::min)
            }
        }
    }

    fn parents() -> Vec<(Pid, Pid)> {
        let all = std::fs::read_dir("/proc").unwrap();
        let pid = |name: std::ffi::OsString| name.to_str()?.parse::<Pid>().ok();
        let pids = all.filter_map(|entry| pid(entry.ok()?.file_name()));
        let parent = |pid: Pid| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            let (_, rest) = stat.rsplit_once(") ")?;
            Some((pid, rest.split(' ').nth(1)?.parse().ok()?))
        };
        pids.filter_map(parent).collect()
    }

    /// The processes that take part, and all that they have started.
    fn family(peers: &[Peer]) -> BTreeSet<Pid> {
        let mut found: BTreeSet<Pid> = peers.iter().map(|peer| peer.id).collect();
        let all = parents();
        while all.iter().any(|(pid, parent)| found.contains(parent) && found.insert(*pid)) {}
        found
    }

    /// Runs a metric, drops it in the middle, and sees that no process of it is left.
    pub(in crate::costs) fn leaves_nothing(what: &str, processes: usize) {
        let (family, method) = match opened(what).unwrap() {
            Method::Timed(mut operation) => {
                operation.prepare(3).unwrap();
                operation.run(3).unwrap();
                (family(&operation.peers()), Method::Timed(operation))
            }
            Method::Direct(mut direct) => {
                direct.measure().unwrap();
                (family(&direct.peers()), Method::Direct(direct))
            }
        };
        assert!(family.len() >= processes, "{what}: {family:?}");
        drop(method);
        let left = |pid: &&Pid| Path::new(&format!("/proc/{pid}")).exists();
        let left: Vec<_> = family.iter().filter(left).collect();
        assert!(left.is_empty(), "{what}: {left:?} of {family:?}");
    }

    #[test]
    fn a_value_is_that_of_an_operation() {
        let Ok(Method::Timed(twice)) = timed(None, Scale::Us(2.0), || Ok(Spins)) else { panic!() };
        assert_eq!(twice.value(3_000.0), 1.5);
        let Ok(Method::Timed(rate)) = timed(None, Scale::Rate(4.0), || Ok(Spins)) else { panic!() };
        assert_eq!(rate.value(1e6), 4_000.0);
    }

    struct Spins;

    impl Apart for Spins {
        fn run(&mut self, iterations: u64) -> io::Result<()> {
            let end = monotonic_ns() + iterations * 1_000;
            while monotonic_ns() < end {}
            Ok(())
        }
    }

    #[test]
    fn an_agent_takes_as_long_as_what_it_does() {
        let Ok(Method::Timed(mut spins)) = timed(None, Scale::Us(1.0), || Ok(Spins)) else {
            panic!()
        };
        let (run, empty) = least(&mut *spins, 1_000);
        let least = spins.value(run - empty);
        // Generous: other work may have the CPU in between.
        assert!((0.5..10.0).contains(&least), "{least} us");
    }
}
