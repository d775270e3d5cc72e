//! What a thread that measures hands over to the session, besides its samples.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A queue of items of N numbers, from one thread to one other, that neither waits for.
#[derive(Debug)]
pub(super) struct Handover<const N: usize> {
    items: Box<[[AtomicU64; N]]>,
    /// How many items have been put, and taken, since the start.
    put: AtomicU64,
    taken: AtomicU64,
    /// How many found no room.
    lost: AtomicU64,
}

impl<const N: usize> Handover<N> {
    /// A queue with room for at least so many items, a power of two.
    pub(super) fn new(room: u64) -> Arc<Self> {
        let room = room.clamp(2, 1 << 24).next_power_of_two();
        Arc::new(Self {
            items: (0..room).map(|_| [const { AtomicU64::new(0) }; N]).collect(),
            put: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        })
    }

    #[inline(always)]
    fn item(&self, number: u64) -> &[AtomicU64; N] {
        let place = number & (self.items.len() as u64 - 1);
        &self.items[usize::try_from(place).unwrap_or(0)]
    }

    /// Begins a window: what found no room in the warm-up is forgotten with it. For the thread
    /// that puts.
    pub(super) fn begin(&self) {
        self.lost.store(0, Ordering::Relaxed);
    }

    /// Puts an item, or counts it as lost. For one thread only.
    #[inline(always)]
    pub(super) fn put(&self, values: [u64; N]) {
        let number = self.put.load(Ordering::Relaxed);
        if number - self.taken.load(Ordering::Acquire) >= self.items.len() as u64 {
            self.lost.store(self.lost.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            return;
        }
        for (to, value) in self.item(number).iter().zip(values) {
            to.store(value, Ordering::Relaxed);
        }
        self.put.store(number + 1, Ordering::Release);
    }

    /// Takes the items whose turn it is as long as `wanted` wants them. For one thread only.
    pub(super) fn take(&self, mut wanted: impl FnMut([u64; N]) -> bool) {
        let put = self.put.load(Ordering::Acquire);
        let mut taken = self.taken.load(Ordering::Relaxed);
        while taken < put {
            let item = self.item(taken);
            if !wanted(std::array::from_fn(|place| item[place].load(Ordering::Relaxed))) {
                break;
            }
            taken += 1;
            self.taken.store(taken, Ordering::Release);
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
        let queue = Handover::<1>::new(3);
        (0..6).for_each(|n| queue.put([n]));
        assert_eq!(queue.lost(), 2, "there is room for four");
        queue.begin();
        assert_eq!(queue.lost(), 0);
        let mut found = Vec::new();
        queue.take(|[value]| {
            found.push(value);
            value < 1
        });
        queue.take(|[value]| {
            found.push(value);
            true
        });
        assert_eq!(found, [0, 1, 1, 2, 3]);
    }
}
