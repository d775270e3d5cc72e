//! Clocks: reading them, their granularity, and the time stamp counter.

use std::io;

use crate::error::check;

/// A clock of the kernel (clock_gettime(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// `CLOCK_MONOTONIC`: never stepped, slewed by NTP.
    Monotonic,
    /// `CLOCK_MONOTONIC_RAW`: neither stepped nor slewed.
    MonotonicRaw,
    /// `CLOCK_BOOTTIME`: like monotonic, but also runs during suspend.
    Boottime,
    /// `CLOCK_REALTIME`: wall time, stepped and slewed.
    Realtime,
}

impl Clock {
    fn id(self) -> libc::clockid_t {
        match self {
            Self::Monotonic => libc::CLOCK_MONOTONIC,
            Self::MonotonicRaw => libc::CLOCK_MONOTONIC_RAW,
            Self::Boottime => libc::CLOCK_BOOTTIME,
            Self::Realtime => libc::CLOCK_REALTIME,
        }
    }

    /// The current time of the clock, ns; through the vDSO if the kernel provides the clock there.
    #[inline(always)]
    #[must_use]
    pub fn now_ns(self) -> u64 {
        read(self.id())
    }

    /// The current time of the clock, ns, always by a system call.
    #[must_use]
    pub fn now_ns_by_syscall(self) -> u64 {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is a valid timespec that the kernel writes to.
        unsafe { libc::syscall(libc::SYS_clock_gettime, self.id(), &raw mut time) };
        to_ns(time)
    }

    /// The resolution that the kernel reports, ns (clock_getres(2)). It is also that of timers
    /// on the clock: 1 with high-resolution timers, otherwise the length of a tick.
    ///
    /// # Errors
    /// Those of clock_getres(2).
    pub fn resolution_ns(self) -> io::Result<u64> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is a valid timespec that the kernel writes to.
        check(unsafe { libc::clock_getres(self.id(), &raw mut time) })?;
        Ok(to_ns(time))
    }
}

/// `CLOCK_MONOTONIC`, ns: the time base of every latency.
#[inline(always)]
#[must_use]
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// CPU time of the calling thread, ns (`CLOCK_THREAD_CPUTIME_ID`): what it has computed, whoever had
/// the CPU in between.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

#[inline(always)]
fn read(id: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec that is written to; the clock exists, so the call
    // cannot fail.
    unsafe { libc::clock_gettime(id, &raw mut time) };
    to_ns(time)
}

#[inline(always)]
#[allow(clippy::cast_sign_loss, reason = "no clock of the kernel shows a time before its epoch")]
fn to_ns(time: libc::timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A timespec of `ns`.
#[inline(always)]
#[allow(clippy::cast_possible_wrap, reason = "u64 nanoseconds are at most 1.8e10 seconds")]
pub(crate) fn timespec(ns: u64) -> libc::timespec {
    libc::timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as _ }
}

/// The measured cost and granularity of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockCost {
    /// Median time of one read, ns, rounded up.
    pub cost_ns: u64,
    /// The same by system call, ns.
    pub syscall_cost_ns: u64,
    /// Smallest non-zero difference between two reads, ns.
    pub granularity_ns: u64,
    /// Whether the vDSO serves the clock: a read costs at most half a system call.
    pub vdso: bool,
}

/// Smallest non-zero difference between two reads of a clock in a row, ns, of some thousands;
/// without one, what the kernel says of its resolution.
#[must_use]
pub fn granularity_ns(clock: Clock) -> u64 {
    let pairs = (0..4_096).map(|_| (clock.now_ns(), clock.now_ns()));
    let steps =
        pairs.filter(|(first, second)| second > first).map(|(first, second)| second - first);
    steps.min().unwrap_or_else(|| clock.resolution_ns().unwrap_or(0))
}

/// Measures cost and granularity of a clock, which takes about 5 ms.
#[must_use]
pub fn measure_cost(clock: Clock) -> ClockCost {
    const BATCHES: usize = 31;
    const READS: u64 = 256;
    let batch = |read: &dyn Fn() -> u64| {
        let mut costs = [0_u64; BATCHES];
        for cost in &mut costs {
            let start = read();
            for _ in 1..READS {
                std::hint::black_box(read());
            }
            *cost = read().saturating_sub(start).div_ceil(READS);
        }
        costs.sort_unstable();
        costs[BATCHES / 2]
    };
    let cost_ns = batch(&|| clock.now_ns()).max(1);
    let syscall_cost_ns = batch(&|| clock.now_ns_by_syscall()).max(1);
    let granularity_ns = granularity_ns(clock);
    ClockCost { cost_ns, syscall_cost_ns, granularity_ns, vdso: cost_ns * 2 <= syscall_cost_ns }
}

/// The time stamp counter of x86.
pub mod tsc {
    /// Whether the counter exists and runs at a constant rate in every P-, C-
    /// and T-state (CPUID 80000007H, EDX bit 8).
    #[must_use]
    pub fn is_invariant() -> bool {
        #[cfg(target_arch = "x86_64")]
        {
            use crate::cpuid::leaf;
            if leaf(0x8000_0000).eax < 0x8000_0007 {
                return false;
            }
            leaf(0x8000_0007).edx & (1 << 8) != 0
        }
        #[cfg(not(target_arch = "x86_64"))]
        false
    }

    /// Cycles since reset, read after all earlier instructions have completed and before any
    /// later one starts (`rdtscp; lfence`); 0 if there is no counter.
    #[inline(always)]
    #[must_use]
    pub fn read() -> u64 {
        #[cfg(target_arch = "x86_64")]
        {
            let mut cpu = 0_u32;
            // SAFETY: every x86-64 CPU that Linux runs on has rdtscp, or raises SIGILL before
            // `is_invariant` lets anyone get here; lfence has no operands.
            unsafe {
                let cycles = std::arch::x86_64::__rdtscp(&raw mut cpu);
                std::arch::x86_64::_mm_lfence();
                cycles
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_go_forward() {
        for clock in [Clock::Monotonic, Clock::MonotonicRaw, Clock::Boottime] {
            let first = clock.now_ns();
            let by_syscall = clock.now_ns_by_syscall();
            assert!(first > 0 && by_syscall >= first && clock.now_ns() >= by_syscall, "{clock:?}");
        }
    }

    #[test]
    fn timers_resolve_at_least_a_tick() {
        let ns = Clock::Monotonic.resolution_ns().unwrap();
        assert!((1..=10_000_000).contains(&ns), "{ns} ns");
    }

    #[test]
    fn cost_is_measured() {
        let cost = measure_cost(Clock::Monotonic);
        assert!(cost.cost_ns >= 1 && cost.granularity_ns >= 1);
    }
}
