//! Scheduling policy and priority of the calling thread, and the nice value.
//!
//! Uses the raw system calls, because musl's `sched_setscheduler()` returns ENOSYS.

use std::io;

use crate::error::check;

/// A scheduling policy (sched(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// `SCHED_OTHER`, the time-sharing policy.
    Other,
    /// `SCHED_FIFO`.
    Fifo,
    /// `SCHED_RR`.
    RoundRobin,
    /// `SCHED_BATCH`.
    Batch,
    /// `SCHED_IDLE`.
    Idle,
    /// `SCHED_DEADLINE`.
    Deadline,
    /// An unknown policy, by number.
    Unknown(u32),
}

impl Policy {
    /// The name as recorded: `fifo`, `rr`, `other`, …
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Other => "other",
            Self::Fifo => "fifo",
            Self::RoundRobin => "rr",
            Self::Batch => "batch",
            Self::Idle => "idle",
            Self::Deadline => "deadline",
            Self::Unknown(_) => "unknown",
        }
    }

    /// Whether threads of this policy have a fixed real-time priority.
    #[must_use]
    pub fn is_real_time(self) -> bool {
        matches!(self, Self::Fifo | Self::RoundRobin)
    }

    fn number(self) -> u32 {
        match self {
            Self::Other => 0,
            Self::Fifo => 1,
            Self::RoundRobin => 2,
            Self::Batch => 3,
            Self::Idle => 5,
            Self::Deadline => 6,
            Self::Unknown(number) => number,
        }
    }

    fn from_number(number: u32) -> Self {
        match number {
            0 => Self::Other,
            1 => Self::Fifo,
            2 => Self::RoundRobin,
            3 => Self::Batch,
            5 => Self::Idle,
            6 => Self::Deadline,
            other => Self::Unknown(other),
        }
    }
}

/// `struct sched_attr` of include/uapi/linux/sched/types.h, version 0.
#[repr(C)]
#[derive(Default)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

const ATTR_SIZE: u32 = 48;

/// Sets policy and priority (1 to 99 for real-time policies, otherwise 0) of the calling
/// thread. Keeps its nice value, because lowering it needs a privilege that a niced thread may
/// lack.
///
/// # Errors
/// Those of sched_setattr(2): EPERM without CAP_SYS_NICE or a sufficient RLIMIT_RTPRIO, or in
/// a cpu cgroup without real-time budget.
pub fn set(policy: Policy, priority: u32) -> io::Result<()> {
    set_of(0, policy, priority)
}

/// [`set`] for a thread by its kernel ID, 0 for the calling one.
///
/// # Errors
/// Those of [`set`], and ESRCH for a thread that has ended.
pub fn set_of(thread: i32, policy: Policy, priority: u32) -> io::Result<()> {
    let attr = SchedAttr {
        size: ATTR_SIZE,
        policy: policy.number(),
        priority,
        nice: attributes_of(thread)?.nice,
        ..SchedAttr::default()
    };
    set_attributes(thread, &attr)
}

fn set_attributes(thread: i32, attr: &SchedAttr) -> io::Result<()> {
    // SAFETY: `attr` is a sched_attr of the size that it states; the number is only looked up.
    let done =
        unsafe { libc::syscall(libc::SYS_sched_setattr, thread, std::ptr::from_ref(attr), 0) };
    check(done).map(|_| ())
}

/// `SCHED_FLAG_RESET_ON_FORK` of include/uapi/linux/sched.h.
const RESET_ON_FORK: u64 = 1;

/// The calling thread gets a CPU soon however many others want one, until this is dropped: its
/// nice value is -20, with which it has the share of 86 threads.
#[derive(Debug)]
pub struct Favoured {
    flags: u64,
}

impl Favoured {
    /// Favours the thread, but none that it starts meanwhile, and no process. `None` if it has
    /// another policy or nice value than most, or may not lower it.
    #[must_use]
    pub fn take() -> Option<Self> {
        let SchedAttr { policy, flags, nice, .. } = attributes_of(0).ok()?;
        let is_usual = Policy::from_number(policy) == Policy::Other && nice == 0;
        let is_favoured = is_usual && set_other(-20, flags | RESET_ON_FORK).is_ok();
        is_favoured.then_some(Self { flags })
    }
}

impl Drop for Favoured {
    fn drop(&mut self) {
        // Without CAP_SYS_NICE the flag stays, which says nothing of a thread with this nice value.
        let _ = set_other(0, self.flags).or_else(|_| set_other(0, self.flags | RESET_ON_FORK));
    }
}

fn set_other(nice: i32, flags: u64) -> io::Result<()> {
    let policy = Policy::Other.number();
    set_attributes(0, &SchedAttr { size: ATTR_SIZE, policy, flags, nice, ..SchedAttr::default() })
}

/// What a `SCHED_DEADLINE` thread has of a CPU (sched(7)), ns; the kernel wants 1,024 <= runtime <=
/// deadline <= period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reservation {
    /// CPU time in every period.
    pub runtime_ns: u64,
    /// From the start of a period until the runtime has been had.
    pub deadline_ns: u64,
    /// Length of a period.
    pub period_ns: u64,
}

/// Why a reservation is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// Not all reservations could be kept (EBUSY).
    NoRoom,
    /// The thread may not, or may not run on all CPUs of its root domain (EPERM).
    NotAllowed,
}

impl Refused {
    /// Which of them an error of [`reserve`] is.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<Self> {
        match error.raw_os_error() {
            Some(libc::EBUSY) => Some(Self::NoRoom),
            Some(libc::EPERM) => Some(Self::NotAllowed),
            _ => None,
        }
    }
}

/// Makes the calling thread `SCHED_DEADLINE`.
///
/// # Errors
/// Those of sched_setattr(2): EBUSY and EPERM ([`Refused`]), EINVAL for times out of range.
pub fn reserve(reserved: Reservation) -> io::Result<()> {
    let attr = SchedAttr {
        size: ATTR_SIZE,
        policy: Policy::Deadline.number(),
        runtime: reserved.runtime_ns,
        deadline: reserved.deadline_ns,
        period: reserved.period_ns,
        ..SchedAttr::default()
    };
    set_attributes(0, &attr)
}

/// Policy and priority of the calling thread, as reported by the kernel.
///
/// # Errors
/// Those of sched_getattr(2).
pub fn get() -> io::Result<(Policy, u32)> {
    get_of(0)
}

/// Policy and priority of a thread by its kernel ID, 0 for the calling one.
///
/// # Errors
/// Those of sched_getattr(2), such as ESRCH for a thread that has ended.
pub fn get_of(thread: i32) -> io::Result<(Policy, u32)> {
    let attr = attributes_of(thread)?;
    Ok((Policy::from_number(attr.policy), attr.priority))
}

/// What the kernel says of a thread, 0 for the calling one.
fn attributes_of(thread: i32) -> io::Result<SchedAttr> {
    let mut attr = SchedAttr::default();
    // SAFETY: the kernel writes at most ATTR_SIZE bytes to `attr`; the number is only looked up.
    let done =
        unsafe { libc::syscall(libc::SYS_sched_getattr, thread, &raw mut attr, ATTR_SIZE, 0) };
    check(done).map(|_| attr)
}

/// Sets the nice value of the calling thread, -20 to 19. Threads and processes that it starts
/// later inherit it.
///
/// # Errors
/// Those of setpriority(2): lowering it needs `CAP_SYS_NICE` or `RLIMIT_NICE`.
pub fn set_nice(nice: i32) -> io::Result<()> {
    // SAFETY: setpriority takes plain numbers.
    check(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) }).map(|_| ())
}

/// Sets the timer slack of the calling thread, ns (prctl(2)). Real-time threads have none.
///
/// # Errors
/// Those of prctl(2).
pub fn set_timer_slack(ns: u64) -> io::Result<()> {
    // SAFETY: takes one number.
    let done = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, ns) };
    check(done).map(|_| ())
}

/// The timer slack of the calling thread, ns.
#[must_use]
pub fn timer_slack() -> Option<u64> {
    // SAFETY: takes no argument. The raw call, because the wrapper's int is too short for the
    // value.
    let slack = unsafe { libc::syscall(libc::SYS_prctl, libc::PR_GET_TIMERSLACK) };
    u64::try_from(slack).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_reads_back() {
        set(Policy::Batch, 0).unwrap();
        assert_eq!(get().unwrap(), (Policy::Batch, 0));
        set(Policy::Other, 0).unwrap();
        assert_eq!(get().unwrap(), (Policy::Other, 0));
        set_timer_slack(1).unwrap();
        assert_eq!(timer_slack(), Some(1));
    }

    #[test]
    fn another_thread_is_asked_by_its_number() {
        let (tell, told) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || {
            set(Policy::Batch, 0).unwrap();
            tell.send(crate::thread::id()).unwrap();
            let _ = ended.recv();
        });
        let number = told.recv().unwrap();
        assert_eq!(get_of(number).unwrap(), (Policy::Batch, 0));
        assert_eq!(get().unwrap(), (Policy::Other, 0), "this thread has its own");
        drop(end);
        other.join().unwrap();
    }

    #[test]
    fn a_thread_that_was_favoured_is_as_before_and_those_it_started_never_were() {
        std::thread::spawn(|| {
            let all = || {
                let SchedAttr { policy, flags, nice, .. } = attributes_of(0).unwrap();
                (Policy::from_number(policy), nice, flags)
            };
            let before = all();
            let Some(favoured) = Favoured::take() else {
                println!("skipped: no nice value below 0 is allowed");
                return;
            };
            assert_eq!(all(), (Policy::Other, -20, before.2 | RESET_ON_FORK));
            assert!(Favoured::take().is_none());
            let other = std::thread::spawn(|| attributes_of(0).unwrap().nice).join().unwrap();
            assert_eq!(other, 0);
            drop(favoured);
            assert_eq!(all(), before);
            set_nice(5).unwrap();
            assert!(Favoured::take().is_none());
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_niced_thread_keeps_its_nice_value() {
        std::thread::spawn(|| {
            set_nice(5).unwrap();
            set(Policy::Batch, 0).unwrap();
            set(Policy::Other, 0).unwrap();
            assert_eq!(attributes_of(0).unwrap().nice, 5);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_priority_out_of_range_is_refused() {
        assert_eq!(set(Policy::Fifo, 100).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }
}
