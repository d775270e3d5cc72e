//! The body of a cost cell: one thread, bound to one CPU, that times an operation.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};

use punctual_core::format::Record;
use punctual_core::schema::{Cell, Cost, CostEnd, Placement, What};
use punctual_core::stats::Median;
use punctual_sys::affinity::{self, CpuSet};
use punctual_sys::clock::monotonic_ns;
use punctual_sys::signal::Nudge;

use super::api::ThreadProgress;
use super::body::{Body, Times};
use super::outcome::{STUCK, failed};
use super::prepared::CostCell;
use super::run_dir::CellFiles;
use super::thread::{Effective, NudgeAtEnd};
use super::timing::{CONFIDENCE, Clockwork, Timed, time};
use crate::knobs::Journal;
use crate::registry::Values;
use crate::registry::cost::CostEntry;
use crate::registry::probe::Stop;

/// Enough for an operation that forks or maps.
const STACK_BYTES: usize = 256 * 1024;

/// A cost cell that is being measured.
pub(super) struct CostBody {
    entry: &'static CostEntry,
    stop: Arc<Stop>,
    repeated: Arc<AtomicU64>,
    seen: u64,
    handle: JoinHandle<io::Result<(Timed, Vec<f64>, Placement)>>,
    times: Times,
}

/// Real time, read from CLOCK_MONOTONIC; over when the cell's duration has passed.
struct Real {
    end_ns: u64,
    stop: Arc<Stop>,
    repeated: Arc<AtomicU64>,
}

impl Clockwork for Real {
    fn now_ns(&self) -> u64 {
        monotonic_ns()
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
    /// Starts the thread.
    ///
    /// # Errors
    /// Why the cell is skipped.
    pub(super) fn start(cell: &CostCell, duration_ns: u64, nudge: Nudge) -> Result<Self, String> {
        let stop = Arc::new(Stop::default());
        let repeated = Arc::new(AtomicU64::new(0));
        let epoch = monotonic_ns();
        let end = epoch.saturating_add(duration_ns);
        let clock = Real { end_ns: end, stop: Arc::clone(&stop), repeated: Arc::clone(&repeated) };
        let (entry, values) = (cell.entry, cell.values.clone());
        let handle = Builder::new()
            .name("cost".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                let _nudge = NudgeAtEnd(nudge);
                measure(entry, &values, &clock)
            })
            .map_err(|error| format!("a thread cannot be started: {error}"))?;
        let times =
            Times { warmup_end: epoch, epoch, end: u64::MAX, simulated: false, pause_ns: 0 };
        Ok(Self { entry, stop, repeated, seen: 0, handle, times })
    }
}

fn measure(
    entry: &CostEntry,
    values: &Values,
    clock: &Real,
) -> io::Result<(Timed, Vec<f64>, Placement)> {
    affinity::set(&CpuSet::of(values.small("cpu")))?;
    let mut operation = (entry.open)(values)?;
    let timed = time(&mut *operation, clock)?;
    let in_unit = timed.repetitions.iter().map(|ns| operation.value(*ns)).collect();
    Ok((timed, in_unit, Effective::read()?.placement()))
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

    fn collect(&mut self, _: &mut CellFiles) -> io::Result<bool> {
        let repeated = self.repeated.load(Ordering::Relaxed);
        let news = repeated != self.seen;
        self.seen = repeated;
        Ok(news)
    }

    fn so_far(&self) -> Vec<ThreadProgress> {
        Vec::new()
    }

    fn finish(self: Box<Self>, _: &mut CellFiles, cell: &mut Cell, _: &mut Journal) -> Vec<Record> {
        if !self.handle.is_finished() {
            failed(cell, format!("the operation {STUCK}"));
            return Vec::new();
        }
        let ended =
            self.handle.join().unwrap_or_else(|_| Err(io::Error::other("the thread panicked")));
        match (ended, &mut cell.what) {
            (Ok((timed, in_unit, placement)), What::Cost(cost)) => {
                fill(cost, self.entry, &timed, in_unit, placement);
            }
            (Err(error), _) => failed(cell, error.to_string()),
            (Ok(_), _) => {}
        }
        Vec::new()
    }
}

fn fill(
    cost: &mut Cost,
    entry: &CostEntry,
    timed: &Timed,
    in_unit: Vec<f64>,
    placement: Placement,
) {
    let median = Median::of(&in_unit, CONFIDENCE);
    let interval = median.and_then(|median| median.interval);
    let measurable = timed.end != Some(CostEnd::NotMeasurable);
    cost.unit = entry.unit;
    cost.value = median.map(|median| median.value).filter(|_| measurable);
    cost.low = interval.map(|(low, _)| low).filter(|_| measurable);
    cost.high = interval.map(|(_, high)| high);
    cost.spread = median.and_then(|median| median.spread).filter(|_| measurable);
    cost.confidence = CONFIDENCE;
    cost.iterations = timed.iterations;
    cost.repetitions = in_unit;
    cost.end = timed.end;
    cost.placement = placement;
}
