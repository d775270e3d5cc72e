//! Steps that takes a known CPU time, and work of a known amount.

use std::hint::black_box;

use punctual_sys::clock::{monotonic_ns, thread_cpu_ns};

/// Computes until the calling thread has had so much more CPU time, ns, however long that takes;
/// returns how much it was.
pub(crate) fn compute(ns: u64) -> u64 {
    let begun = thread_cpu_ns();
    let mut used = 0;
    while used < ns {
        used = thread_cpu_ns() - begun;
    }
    used
}

/// The same steps of computing each time: interrupts, other threads and a slower CPU make them
/// last longer.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Steps(u64);

impl Steps {
    /// As many steps as take so long, ns, if nothing disturbs them. That is found out in 50 ms, in
    /// which a CPU whose frequency follows its load reaches the highest one.
    pub(crate) fn lasting(ns: u64) -> Self {
        const TRIAL: Steps = Steps(10_000);
        let begun = monotonic_ns();
        let (mut from, mut shortest) = (begun, u64::MAX);
        while from - begun < 50_000_000 {
            TRIAL.run();
            let to = monotonic_ns();
            shortest = shortest.min(to - from);
            from = to;
        }
        Self(ns.saturating_mul(TRIAL.0) / shortest.max(1))
    }

    #[inline(never)]
    pub(crate) fn run(self) {
        let mut value = 1_u64;
        for step in 0..self.0 {
            value = black_box(value.rotate_left(5) ^ step);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_lasts_at_least_as_long_as_it_was_measured_to() {
        // The shortest of several, as in the calibration; other programs only add to it.
        let work = Steps::lasting(2_000_000);
        let lasts = || {
            let from = monotonic_ns();
            work.run();
            monotonic_ns() - from
        };
        let shortest = (0..10).map(|_| lasts()).min().unwrap();
        assert!((1_000_000..=20_000_000).contains(&shortest), "{shortest}");
        Steps::lasting(0).run();
    }

    #[test]
    fn it_takes_what_it_is_to_take() {
        for ns in [0, 1, 300_000] {
            let before = thread_cpu_ns();
            let used = compute(ns);
            assert!((ns..=thread_cpu_ns() - before).contains(&used), "{used}");
        }
    }
}
