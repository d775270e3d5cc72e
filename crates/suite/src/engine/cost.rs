//! The body of a cost cell: one thread, bound to one CPU, that times an operation.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};

use punctual_core::schema::{
    Better, Cell, CellState, Cost, CostEnd, Helper, Placement, Unit, What,
};
use punctual_core::stats::Median;
use punctual_sys::affinity::{self, CpuSet};
use punctual_sys::clock::{Clock, granularity_ns, monotonic_ns};
use punctual_sys::memory;
use punctual_sys::signal::Nudge;

use super::advice::advised;
use super::api::ThreadProgress;
use super::body::{Body, Closing, Times};
use super::outcome::{STUCK, failed};
use super::prepared::CostCell;
use super::run_dir::CellFiles;
use super::stops::Witness;
use super::thread::{Effective, NudgeAtEnd};
use super::timing::{self, CONFIDENCE, Clockwork, Timed};
use crate::knobs::Journal;
use crate::registry::Values;
use crate::registry::cost::{CostEntry, IS_TIMED, Method, Peer};
use crate::registry::probe::Stop;

/// Enough for an operation that forks or maps. Only what is touched takes memory, as that of costs
/// is not locked.
const STACK_BYTES: usize = 1 << 20;

/// A cost cell that is being measured.
pub(super) struct CostBody {
    entry: &'static CostEntry,
    /// Instructions per microsecond, if they are counted.
    mips: Option<u32>,
    stop: Arc<Stop>,
    repeated: Arc<AtomicU64>,
    seen: u64,
    handle: JoinHandle<Result<Costed, NoCost>>,
    times: Times,
}

/// What the timed thread found.
struct Costed {
    timed: Timed,
    /// The repetitions in the unit of the entry.
    in_unit: Vec<f64>,
    /// Value, ends of its interval and bound in the unit of the entry.
    value: Option<f64>,
    interval: Option<(f64, f64)>,
    bound: Option<f64>,
    placement: Placement,
    helpers: Vec<Helper>,
}

/// Why it found nothing.
enum NoCost {
    /// The machine does not have or does not allow what it needs.
    Refused(io::Error),
    /// Something went wrong.
    Failed(io::Error),
}

impl NoCost {
    /// While it ran. What is forbidden or used up then is refused as well as at the start.
    fn while_running(error: io::Error) -> Self {
        use io::ErrorKind as Kind;
        let refused = [
            // EPERM and EACCES, ENOSYS and EOPNOTSUPP: also what a seccomp filter answers.
            Kind::PermissionDenied,
            Kind::Unsupported,
            Kind::OutOfMemory,
            Kind::StorageFull,
            Kind::QuotaExceeded,
            Kind::ReadOnlyFilesystem,
            // EAGAIN of fork(2): too many processes.
            Kind::WouldBlock,
        ];
        if refused.contains(&error.kind()) { Self::Refused(error) } else { Self::Failed(error) }
    }
}

/// Real time, read from CLOCK_MONOTONIC; over when the cell's duration has passed.
struct Real {
    end_ns: u64,
    step_ns: u64,
    stop: Arc<Stop>,
    repeated: Arc<AtomicU64>,
}

impl Clockwork for Real {
    fn now_ns(&self) -> u64 {
        monotonic_ns()
    }

    fn step_ns(&self) -> u64 {
        self.step_ns
    }

    fn is_over(&self) -> bool {
        monotonic_ns() >= self.end_ns
    }

    fn is_stopped(&self) -> bool {
        self.stop.is_set()
    }

    fn repeated(&self) {
        self.repeated.fetch_add(1, Ordering::Relaxed);
    }
}

impl CostBody {
    /// Starts the thread, on a board that executes `mips` instructions per microsecond if it counts
    /// them.
    ///
    /// # Errors
    /// Why the cell is skipped.
    pub(super) fn start(
        cell: &CostCell,
        duration_ns: u64,
        mips: Option<u32>,
        nudge: Nudge,
    ) -> Result<Self, String> {
        let stop = Arc::new(Stop::default());
        let repeated = Arc::new(AtomicU64::new(0));
        let step_ns = granularity_ns(Clock::Monotonic);
        let epoch = monotonic_ns();
        let end_ns = epoch.saturating_add(duration_ns);
        let clock =
            Real { end_ns, step_ns, stop: Arc::clone(&stop), repeated: Arc::clone(&repeated) };
        let (entry, values) = (cell.entry, cell.settled.clone());
        let handle = Builder::new()
            .name("cost".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                let _nudge = NudgeAtEnd(nudge);
                measure(entry, &values, &clock)
            })
            .map_err(|error| format!("a thread cannot be started: {}", advised(&error, entry)))?;
        let times =
            Times { warmup_end: epoch, epoch, end: u64::MAX, simulated: false, pause_ns: 0 };
        Ok(Self { entry, mips, stop, repeated, seen: 0, handle, times })
    }
}

fn measure(entry: &CostEntry, values: &Values, clock: &Real) -> Result<Costed, NoCost> {
    affinity::set(&CpuSet::of(values.small("cpu"))).map_err(NoCost::Refused)?;
    let mut method = (entry.open)(values).map_err(NoCost::Refused)?;
    let before = Effective::read().map_err(NoCost::Failed)?;
    let (peers, faults) = (placed(peers(&method)), memory::thread_faults());
    let timed = match &mut method {
        Method::Timed(operation) => timing::time(&mut **operation, clock),
        Method::Direct(direct) => timing::values(&mut **direct, clock),
    };
    let timed = timed.map_err(NoCost::while_running)?;
    let later = memory::thread_faults();
    let after = Effective::read().map_err(NoCost::Failed)?;
    let timed_here = peers.iter().all(|(peer, _)| peer.name != IS_TIMED);
    let placement = Placement {
        changed: before.change(&after),
        page_faults: Some((later.0 - faults.0) + (later.1 - faults.1)).filter(|_| timed_here),
        ..before.placement()
    };
    let in_unit = |ns: f64| match &method {
        Method::Timed(operation) => operation.value(ns),
        Method::Direct(_) => ns,
    };
    let measurable = timed.end != Some(CostEnd::NotMeasurable);
    let median = timed.median.filter(|_| measurable);
    let ends = |(low, high)| {
        let (low, high) = (in_unit(low), in_unit(high));
        // Of a rate, the longer time is the lower value.
        (low.min(high), low.max(high))
    };
    Ok(Costed {
        // A rate of no time at all is no number.
        in_unit: timed.repetitions.iter().copied().map(in_unit).filter(finite).collect(),
        value: median.map(|median| in_unit(median.value)).filter(finite),
        interval: median.and_then(|median| median.interval).map(ends),
        bound: timed.bound.map(in_unit).filter(finite),
        helpers: helpers(peers, placed(self::peers(&method))),
        timed,
        placement,
    })
}

fn finite(value: &f64) -> bool {
    value.is_finite()
}

fn peers(method: &Method) -> Vec<Peer> {
    match method {
        Method::Timed(operation) => operation.peers(),
        Method::Direct(direct) => direct.peers(),
    }
}

/// Where they run; without those that have ended.
fn placed(peers: Vec<Peer>) -> Vec<(Peer, Effective)> {
    let placed = peers.into_iter().map(|peer| Some((Effective::read_of(peer.id).ok()?, peer)));
    placed.flatten().map(|(effective, peer)| (peer, effective)).collect()
}

/// Those at the end, or those at the start if all have ended, with what has changed meanwhile.
fn helpers(before: Vec<(Peer, Effective)>, after: Vec<(Peer, Effective)>) -> Vec<Helper> {
    let record = |(peer, effective): &(Peer, Effective)| {
        let first = before.iter().find(|(other, _)| other == peer);
        let first = first.map_or(effective, |(_, first)| first);
        let placement = Placement { changed: first.change(effective), ..first.placement() };
        Helper { name: peer.name.clone(), placement }
    };
    (if after.is_empty() { &before } else { &after }).iter().map(record).collect()
}

impl Body for CostBody {
    fn times(&self) -> Times {
        self.times
    }

    fn ended(&self) -> bool {
        self.handle.is_finished()
    }

    fn stop(&self) {
        self.stop.set();
    }

    fn is_stopping(&self) -> bool {
        self.stop.is_set()
    }

    fn collect(&mut self, _: &mut CellFiles, _: &mut Witness) -> io::Result<bool> {
        let repeated = self.repeated.load(Ordering::Relaxed);
        let news = repeated != self.seen;
        self.seen = repeated;
        Ok(news)
    }

    fn so_far(&self) -> Vec<ThreadProgress> {
        Vec::new()
    }

    fn finish(
        self: Box<Self>,
        _: &mut CellFiles,
        cell: &mut Cell,
        _: &mut Journal,
        witness: &mut Witness,
    ) -> Closing {
        witness.tell(cell);
        if !self.handle.is_finished() {
            failed(cell, format!("the operation {STUCK}"));
            return NOTHING;
        }
        let panicked = || io::Error::other("the thread panicked");
        let ended = self.handle.join().unwrap_or_else(|_| Err(NoCost::Failed(panicked())));
        match (ended, &mut cell.what) {
            (Ok(measured), What::Cost(cost)) => fill(cost, self.entry, measured, self.mips),
            (Err(NoCost::Failed(error)), _) => failed(cell, error.to_string()),
            (Err(NoCost::Refused(error)), _) => {
                cell.state = CellState::Skipped;
                cell.reason = Some(advised(&error, self.entry));
            }
            (Ok(_), _) => {}
        }
        NOTHING
    }
}

const NOTHING: Closing = Closing { records: Vec::new(), course: None };

fn fill(cost: &mut Cost, entry: &CostEntry, measured: Costed, mips: Option<u32>) {
    let Costed { timed, in_unit, value, interval, bound, placement, helpers } = measured;
    cost.unit = entry.unit;
    cost.value = value;
    (cost.low, cost.high) = (interval.map(|ends| ends.0), interval.map(|ends| ends.1));
    if bound.is_some() {
        (cost.low, cost.high) = match entry.better {
            Better::Less => (None, bound),
            Better::More => (bound, None),
        };
    }
    cost.spread = value.and_then(|_| Median::of(&in_unit, CONFIDENCE)?.spread);
    cost.confidence = CONFIDENCE;
    cost.iterations = timed.iterations;
    cost.repetitions = in_unit;
    cost.end = timed.end;
    let ns = match entry.unit {
        Unit::Ns => value,
        Unit::Us => value.map(|us| us * 1e3),
        _ => None,
    };
    cost.instructions = ns.zip(mips).map(|(ns, mips)| ns * f64::from(mips) / 1e3);
    cost.placement = placement;
    cost.helpers = helpers;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Value;
    use crate::registry::cost::{Operation, PEER};
    use punctual_core::schema::CostSection;
    use std::collections::BTreeMap;
    use std::sync::mpsc;

    const LOOP_NS: u64 = 5_000_000;

    /// Keeps its CPU busy for a known time, or ends with an error.
    struct Busy {
        error: Option<io::ErrorKind>,
        helper: Option<(i32, mpsc::Sender<()>)>,
    }

    impl Operation for Busy {
        fn run(&mut self, iterations: u64) -> io::Result<()> {
            for _ in 0..iterations {
                let end = monotonic_ns() + LOOP_NS;
                while monotonic_ns() < end {}
            }
            self.error.map_or(Ok(()), |kind| Err(kind.into()))
        }

        fn empty(&mut self, _: u64) -> io::Result<()> {
            Ok(())
        }

        fn value(&self, ns: f64) -> f64 {
            1e9 / ns
        }

        fn peers(&self) -> Vec<Peer> {
            let peer = |(id, _): &(i32, _)| Peer { name: "waits".to_owned(), id: *id };
            self.helper.iter().map(peer).collect()
        }
    }

    fn busy(error: Option<io::ErrorKind>) -> io::Result<Method> {
        Ok(Method::Timed(Box::new(Busy { error, helper: None })))
    }

    const BUSY: CostEntry = CostEntry {
        name: "rate.busy",
        summary: "",
        help: "",
        meaning: "",
        params: &[PEER],
        needs: &[],
        unit: Unit::PerSecond,
        better: Better::More,
        section: CostSection::Others,
        columns: &[],
        open: |_| busy(None),
    };

    fn measured(entry: &CostEntry, seconds: u64) -> Result<Costed, NoCost> {
        let mut values = entry.read(&BTreeMap::new()).unwrap();
        values.set("cpu", Value::Number(affinity::current_cpu().into()));
        let clock = Real {
            end_ns: monotonic_ns() + seconds * 1_000_000_000,
            step_ns: granularity_ns(Clock::Monotonic),
            stop: Arc::default(),
            repeated: Arc::default(),
        };
        measure(entry, &values, &clock)
    }

    #[test]
    fn a_known_busy_loop_takes_its_time() {
        // Other programs may have the CPU for a while, so the fastest repetition counts.
        let right = (0..20).any(|_| {
            let Ok(found) = measured(&BUSY, 1) else { panic!("not measured") };
            let (value, (low, high)) = (found.value.unwrap(), found.interval.unwrap());
            assert!(low <= value && value <= high, "{low} {value} {high}");
            let fastest = found.in_unit.iter().fold(value, |most, one| one.max(most));
            (fastest / (1e9 / LOOP_NS as f64) - 1.0).abs() < 0.02
        });
        assert!(right, "no attempt within 2 %");
    }

    #[test]
    fn what_is_refused_is_skipped_and_another_error_is_a_failure() {
        let forbidden = CostEntry { open: |_| Err(io::ErrorKind::NotFound.into()), ..BUSY };
        assert!(matches!(measured(&forbidden, 0), Err(NoCost::Refused(_))));
        let filtered = CostEntry { open: |_| busy(Some(io::ErrorKind::PermissionDenied)), ..BUSY };
        assert!(matches!(measured(&filtered, 0), Err(NoCost::Refused(_))));
        let broken = CostEntry { open: |_| busy(Some(io::ErrorKind::UnexpectedEof)), ..BUSY };
        assert!(matches!(measured(&broken, 0), Err(NoCost::Failed(_))));
        // What a kernel without the call and a seccomp filter answer.
        for number in [1, 13, 38] {
            let error = io::Error::from_raw_os_error(number);
            assert!(matches!(NoCost::while_running(error), NoCost::Refused(_)));
        }
    }

    #[test]
    fn who_takes_part_is_recorded_with_its_cpus() {
        let with_helper = CostEntry {
            open: |_| {
                let (told, ids) = mpsc::channel();
                let (end, ended) = mpsc::channel();
                std::thread::spawn(move || {
                    told.send(punctual_sys::thread::id()).unwrap();
                    let _ = ended.recv();
                });
                let helper = Some((ids.recv().unwrap(), end));
                Ok(Method::Timed(Box::new(Busy { error: None, helper })))
            },
            ..BUSY
        };
        let Ok(found) = measured(&with_helper, 0) else { panic!("not measured") };
        // It was started by the timed thread, which is bound to one CPU.
        assert_eq!((found.helpers.len(), found.helpers[0].name.as_str()), (1, "waits"));
        let placement = &found.helpers[0].placement;
        assert!(placement.cpu.is_some() && placement.cpu == found.placement.cpu, "{placement:?}");
        assert_eq!(placement.changed, None);
    }
}
