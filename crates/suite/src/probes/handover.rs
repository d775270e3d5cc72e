//! What a thread that measures hands over to the session, besides its samples.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use punctual_ring::Entries;

/// The most items that are waiting.
const MOST: u64 = 1 << 20;

/// A queue of items of N numbers, from one thread to one other, that neither waits for.
#[derive(Debug)]
pub(super) struct Handover<const N: usize> {
    ring: Entries<N>,
    /// How many items were put. Only its thread changes this and the next.
    put: AtomicU64,
    /// How many found no room.
    lost: AtomicU64,
    /// How many items were taken, and the one that is not wanted yet.
    taken: Mutex<(u64, Option<[u64; N]>)>,
}

impl<const N: usize> Handover<N> {
    /// A queue with room for so many items.
    pub(super) fn new(room: u64) -> Arc<Self> {
        let room = usize::try_from(room.clamp(1, MOST)).unwrap_or(1);
        Arc::new(Self {
            ring: Entries::new(room),
            put: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            taken: Mutex::new((0, None)),
        })
    }

    /// Begins a window: what found no room in the warm-up is forgotten with it. For the thread
    /// that puts.
    pub(super) fn begin(&self) {
        self.lost.store(0, Ordering::Relaxed);
    }

    /// Puts an item, or counts it as lost. For one thread only.
    #[inline(always)]
    pub(super) fn put(&self, values: [u64; N]) {
        let put = self.put.load(Ordering::Relaxed);
        let (count, number) = match self.ring.push(put, values) {
            true => (&self.put, put),
            false => (&self.lost, self.lost.load(Ordering::Relaxed)),
        };
        count.store(number + 1, Ordering::Relaxed);
    }

    /// Takes the items whose turn it is as long as `wanted` wants them; the one that it does not
    /// comes first the next time.
    pub(super) fn take(&self, mut wanted: impl FnMut([u64; N]) -> bool) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let Some(item) = taken.1.take().or_else(|| {
                let item = self.ring.take(taken.0)?;
                taken.0 += 1;
                Some(item)
            }) else {
                return;
            };
            if !wanted(item) {
                taken.1 = Some(item);
                return;
            }
        }
    }

    /// How many items found no room in the window.
    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_taken_in_order_once_and_whole() {
        let queue = Handover::<2>::new(1_000);
        let writer = Arc::clone(&queue);
        let thread = std::thread::spawn(move || (0..100_000).for_each(|n| writer.put([n, !n])));
        let (mut next, mut taken) = (0, 0);
        while !thread.is_finished() || taken < 100_000 - queue.lost() {
            queue.take(|[value, inverse]| {
                assert!(value >= next && inverse == !value, "{value} after {next}");
                (next, taken) = (value + 1, taken + 1);
                true
            });
        }
        thread.join().unwrap();
        assert_eq!(taken + queue.lost(), 100_000);
    }

    #[test]
    fn what_is_not_wanted_yet_stays_and_what_finds_no_room_is_counted() {
        let queue = Handover::<1>::new(4);
        (0..6).for_each(|n| queue.put([n]));
        assert_eq!(queue.lost(), 2);
        queue.begin();
        assert_eq!(queue.lost(), 0);
        let mut found = Vec::new();
        queue.take(|[value]| {
            found.push(value);
            value < 1
        });
        queue.put([9]);
        queue.take(|[value]| {
            found.push(value);
            true
        });
        assert_eq!(found, [0, 1, 1, 2, 3, 9]);
    }
}
