//! The probes that later versions bring. A probe that arrives leaves this table.

use crate::registry::Planned;

const fn planned(name: &'static str, summary: &'static str) -> Planned {
    Planned { name, summary, device: None }
}

const fn on(device: &'static str, planned: Planned) -> Planned {
    Planned { device: Some(device), ..planned }
}

/// Every probe that is named already and not there yet.
pub static PLANNED: &[Planned] = &[
    on(
        "rtc",
        planned("rtc", "periodic interrupts of the real-time clock, their intervals (as RealFeel)"),
    ),
    on(
        "rtc",
        planned("rtc-irq", "from the real-time clock's interrupt to user space (as RealFeel-ETRI)"),
    ),
    planned("timer-irq", "timer expiry to interrupt to wake-up to user space (as rtla timerlat)"),
    on("edu", planned("uio", "a device's interrupt to a driver in user space")),
    planned("cpumap", "who had the CPU when, of several threads (as Hourglass)"),
    planned("noise", "every time that something else had the CPU, and what (as oslat, osnoise)"),
    on("sound", planned("audio", "drop-outs of an audio device that is kept fed (as latencytest)")),
    on("parport", planned("pulse", "edges of a square wave, a pulse of 50 us every 1 ms")),
    planned("handoff", "a token through one primitive: semaphore, queue, signal, futex, pipe"),
    planned("inherit", "priority inheritance of a mutex (as pi_stress)"),
    planned("deadline", "SCHED_DEADLINE: wake-ups, overruns, missed deadlines (as cyclicdeadline)"),
    planned("migrate", "whether the highest priorities run at once (as rt-migrate-test)"),
    planned("burst", "the longest stall of a consumer, in packets (as queuelat)"),
    on("serial", planned("respond-serial", "answers on a serial line, timed by another machine")),
    on("parport", planned("respond-parport", "answers on a parallel port (as lpptest)")),
    planned("respond-gpio", "answers on a GPIO line (as latmus)"),
    planned("respond-net", "answers over the network, UDP or raw frames"),
];

/// The planned probe of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Planned> {
    PLANNED.iter().find(|entry| entry.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_planned_or_there_and_told_once() {
        for (i, entry) in PLANNED.iter().enumerate() {
            let name = entry.name;
            assert!(crate::probes::find(name).is_none(), "{name} is there: take it out of PLANNED");
            assert!(PLANNED[..i].iter().all(|other| other.name != name), "{name}");
            assert!(!entry.summary.is_empty() && entry.summary.len() <= 80, "{name}");
        }
    }
}
