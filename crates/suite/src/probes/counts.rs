//! What a thread counts besides its samples.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counts of one thread in the measurement, in the order of the entry's counters.
#[derive(Debug)]
pub(super) struct Counts<const N: usize>([AtomicU64; N]);

impl<const N: usize> Default for Counts<N> {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; N])
    }
}

impl<const N: usize> Counts<N> {
    /// Begins a window. What was counted in the warm-up is forgotten with it.
    pub(super) fn begin(&self) {
        self.0.iter().for_each(|count| count.store(0, Ordering::Relaxed));
    }

    #[inline(always)]
    pub(super) fn add(&self, counter: usize, more: u64) {
        self.0[counter].fetch_add(more, Ordering::Relaxed);
    }

    pub(super) fn of(&self, counter: usize) -> u64 {
        self.0[counter].load(Ordering::Relaxed)
    }

    /// Over all threads.
    pub(super) fn totals<'a>(all: impl Iterator<Item = &'a Self>) -> Vec<u64> {
        let none = vec![0; N];
        all.fold(none, |sums, one| (0..N).map(|counter| sums[counter] + one.of(counter)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_window_of_each_thread_counts() {
        let [one, other] = [Counts::<2>::default(), Counts::default()];
        one.begin();
        one.add(1, 9);
        one.begin();
        one.add(0, 2);
        one.add(1, 3);
        one.add(1, 1);
        other.add(1, 5);
        assert_eq!(Counts::totals([&one, &other].into_iter()), [2, 9]);
    }
}
