//! Simulated time and the collector take turns, so that what is written, and in which order, does
//! not depend on which of them the machine lets run.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// It runs; the collector takes nothing.
const RUNS: u8 = 0;

/// It waits for the collector.
const WAITS: u8 = 1;

/// It has ended.
const ENDED: u8 = 2;

/// Whose turn it is. What measures real time has none: it never waits.
#[derive(Debug, Default)]
pub struct Turn(AtomicU8);

impl Turn {
    /// Waits until the collector has taken all that was published, or until `over`.
    pub fn wait(&self, over: impl Fn() -> bool) {
        self.0.store(WAITS, Ordering::Release);
        while self.0.load(Ordering::Acquire) == WAITS && !over() {
            std::thread::sleep(Duration::from_micros(50));
        }
        self.0.store(RUNS, Ordering::Release);
    }

    /// No sample comes any more.
    pub fn end(&self) {
        self.0.store(ENDED, Ordering::Release);
    }

    /// Collector: whether it is its turn.
    pub fn is_over(&self) -> bool {
        self.0.load(Ordering::Acquire) != RUNS
    }

    /// Collector: all was taken.
    pub fn next(&self) {
        let _ = self.0.compare_exchange(WAITS, RUNS, Ordering::AcqRel, Ordering::Acquire);
    }
}
