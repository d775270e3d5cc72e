//! How long a CPU of a virtual board waits for its turn. The CPUs of such a board share one
//! thread of the host: while one of them executes instructions the others stand still, and the
//! board's time goes on.

use std::io;
use std::thread;

use punctual_sys::affinity::{self, CpuSet};
use punctual_sys::clock::monotonic_ns;
use punctual_sys::sched::{self, Policy};
use punctual_sys::timer::{AbsoluteSleep, Wait};

/// How long all CPUs are kept busy, ns: the longest wait that was seen (QEMU 7.2, 4 CPUs) took two
/// thirds of it.
const LENGTH_NS: u64 = 200_000_000;

/// From now until then, ns: time for all threads to start.
const AHEAD_NS: u64 = 20_000_000;

/// Keeps all CPUs busy for 200 ms with threads that do nothing but read the clock. Returns the
/// longest time between two readings of one CPU, ns. Only the kernel's ticks end a turn there; a
/// probe's timers make turns shorter, so its samples include shorter waits than this.
///
/// # Errors
/// A thread cannot be started, bound to its CPU or made a real-time thread.
pub fn longest_wait_ns() -> io::Result<u64> {
    let start_ns = monotonic_ns() + AHEAD_NS;
    let spin_on = |cpu| thread::Builder::new().spawn(move || spin(cpu, start_ns));
    let spinning: Vec<_> = affinity::get()?.iter().map(spin_on).collect::<io::Result<_>>()?;
    let mut longest = 0;
    for thread in spinning {
        let gap = thread.join().map_err(|_| io::Error::other("a thread that waits for turns"))?;
        longest = longest.max(gap?);
    }
    Ok(longest)
}

/// The longest time between two readings of the clock on a CPU, ns.
fn spin(cpu: u32, start_ns: u64) -> io::Result<u64> {
    affinity::set(&CpuSet::of(cpu))?;
    sched::set(Policy::Fifo, 1)?;
    AbsoluteSleep.until(start_ns)?;
    Ok(longest_gap(start_ns, monotonic_ns))
}

/// The longest time between two readings, the first of which is that of the start.
fn longest_gap(start_ns: u64, mut now_ns: impl FnMut() -> u64) -> u64 {
    let mut longest = 0;
    let mut last = start_ns;
    while last < start_ns + LENGTH_NS {
        let now = now_ns();
        longest = longest.max(now - last);
        last = now;
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_wait_count_too() {
        let gap = |readings: &[u64]| {
            let mut readings = readings.iter().copied();
            longest_gap(1_000, || readings.next().unwrap())
        };
        let end = 1_000 + LENGTH_NS;
        assert_eq!(gap(&[1_010, 9_010, 9_020, end]), LENGTH_NS - 8_020);
        assert_eq!(gap(&[1_010, end - 40, end]), LENGTH_NS - 50);
        assert_eq!(gap(&[end + 7]), LENGTH_NS + 7, "the first turn came after the end");
    }
}
