//! Samples that several held up, one after the other.

use punctual_core::explanation::{Chosen, Explained, GuestThread, Hold, Milestone, Turn};

use super::explained::{Maker, TIMER};

const SPIN: [&str; 4] = ["ret_from_fork", "kthread", "spin_all [spin]", "spin_for [spin]"];
const SCHEDULE: [&str; 2] = ["irqentry_exit", "preempt_schedule_irq"];
const HOLD: [&str; 3] = ["ret_from_fork", "kthread", "hold_all [hold]"];

fn now(made: &Maker) -> i64 {
    i64::try_from(made.0.latency_ns).unwrap()
}

/// A thread that had the CPU until now.
fn turn(made: &mut Maker, name: &str, pid: u32, priority: i16) {
    let thread = Some(GuestThread { name: name.to_owned(), pid, priority });
    made.0.turns.push(Turn { end_ns: made.0.latency_ns, thread });
}

/// From the release to the wake-up, in this code.
fn woken(on: &[&str]) -> Maker {
    let mut made = Maker::new(Chosen::Worst, false);
    made.run(200, &[on]);
    made.interrupt(on);
    made
}

/// A softirq for so long, then a thread with a real-time priority of 98. What is not known of the
/// thread is no hold of anybody.
pub fn softirq_then_thread(softirq: u64, thread: u64, is_known: bool) -> Explained {
    let mut made = woken(&["main"]);
    let exit = ["irq_exit_rcu", "handle_softirqs", "flood [flood]"];
    made.run(softirq, &[&["main"], &TIMER[..2], &exit]);
    made.held(Hold::Scheduler, Some(1_970), now(&made), ["user space", "preempt_schedule_irq"]);
    let chosen = now(&made);
    made.run(700, &[&["main"], &TIMER[..2], &SCHEDULE, &["__schedule"]]);
    turn(&mut made, "main", 40, 120);
    made.run(400, &[&SPIN[..3], &["schedule", "__schedule", "finish_task_switch"]]);
    made.run(thread, &[&SPIN]);
    if is_known {
        made.held(Hold::Preferred, Some(chosen), now(&made), ["main", "spin_all [spin]"]);
    }
    made.switch(&[&SPIN[..3], &["schedule"]].concat());
    // The switch ends 1,330 ns before the clock is read.
    made.0.latency_ns -= 1_330;
    turn(&mut made, "fifo98", 1_234, 1);
    made.0.latency_ns += 1_330;
    turn(&mut made, "probe-0", 60, 19);
    made.0
}

/// Preemption off for so long, and then interrupts too.
pub fn preemption_then_interrupts(preemption: u64, interrupts: u64) -> Explained {
    let code = |name| [&HOLD[..], &[name]].concat();
    let mut made = woken(&code("hold_preempt_off [hold]"));
    made.run(preemption, &[&code("hold_preempt_off [hold]")]);
    let off = now(&made);
    made.run(interrupts, &[&code("hold_irqs_off [hold]")]);
    let on = now(&made);
    made.held(Hold::Scheduler, Some(1_970), on, ["hold_preempt_off [hold]", "hold_all [hold]"]);
    made.held(Hold::Interrupts, Some(off), on, ["hold_irqs_off [hold]"; 2]);
    made.switch(&[&HOLD[..], &["preempt_schedule"]].concat());
    made.0
}

/// Interrupts off when the release comes, then preemption: in two legs.
pub fn interrupts_then_preemption(interrupts: u64, preemption: u64) -> Explained {
    let code = |name| [&HOLD[..], &[name]].concat();
    let mut made = Maker::new(Chosen::Worst, false);
    made.run(interrupts, &[&code("hold_irqs_off [hold]")]);
    let on = now(&made);
    made.held(Hold::Interrupts, Some(-500), on, ["_raw_spin_lock_irq", "_raw_spin_unlock_irq"]);
    made.interrupt(&code("hold_preempt_off [hold]"));
    let woken = on + 1_770;
    made.run(preemption, &[&code("hold_preempt_off [hold]")]);
    made.held(Hold::Scheduler, Some(woken), now(&made), ["hold_all [hold]"; 2]);
    made.switch(&[&HOLD[..], &["preempt_schedule"]].concat());
    made.0
}

/// As many timers that wake other threads expire before its own, and some after it, each for so long,
/// with the queue's work between them.
pub fn timer_storm(before: usize, after: usize, ns: u64) -> Explained {
    let mut made = Maker::new(Chosen::Worst, false);
    let calls = ["main"].iter().chain(&TIMER).chain(&["__hrtimer_run_queues"]);
    let calls: Vec<&str> = calls.copied().collect();
    let expire = |made: &mut Maker, count| {
        for _ in 0..count {
            made.run(20, &[&calls]);
            made.run(20, &[&calls, &["timerqueue_del", "rb_erase"]]);
            made.run(10, &[&calls, &["_raw_spin_unlock_irqrestore"]]);
            made.run(ns / 2, &[&calls, &["timerfd_tmrproc"]]);
            made.run(ns - ns / 2, &[&calls, &["timerfd_tmrproc", "__wake_up_common"]]);
            made.run(10, &[&calls, &["_raw_spin_lock_irq"]]);
        }
    };
    made.run(50, &[&["main"]]);
    made.leg(Milestone::Interrupt);
    made.run(700, &[&calls[..3]]);
    expire(&mut made, before);
    made.run(420, &[&calls, &["hrtimer_wakeup"]]);
    made.leg(Milestone::Wakeup);
    made.run(800, &[&calls, &["hrtimer_wakeup", "try_to_wake_up"]]);
    expire(&mut made, after);
    made.switch(&[&["main"][..], &SCHEDULE].concat());
    made.0
}

/// Two other timers whose functions the same interrupt calls first.
pub fn timers(first: u64, second: u64) -> Explained {
    let mut made = Maker::new(Chosen::Worst, false);
    let calls = ["main"].iter().chain(&TIMER).chain(&["__hrtimer_run_queues"]);
    let calls: Vec<&str> = calls.copied().collect();
    made.run(50, &[&["main"]]);
    made.leg(Milestone::Interrupt);
    made.run(700, &[&calls[..3]]);
    made.run(first, &[&calls, &["late_first [late]"]]);
    made.run(90, &[&calls]);
    made.run(second, &[&calls, &["late_second [late]"]]);
    made.run(420, &[&calls, &["hrtimer_wakeup"]]);
    made.leg(Milestone::Wakeup);
    made.run(800, &[&calls, &["hrtimer_wakeup", "try_to_wake_up"]]);
    made.switch(&[&["main"][..], &SCHEDULE].concat());
    made.0
}

/// A device whose interrupt comes right after the timer's, for so long.
pub fn device(ns: u64) -> Explained {
    let mut made = woken(&["main"]);
    made.run(ns, &[&["main", "asm_common_interrupt", "storm_handler [storm]"]]);
    made.held(Hold::Scheduler, Some(1_970), now(&made), ["user space", "preempt_schedule_irq"]);
    made.switch(&["main", "asm_common_interrupt", "irqentry_exit", "preempt_schedule_irq"]);
    made.0
}

/// A device that interrupts a system call so often, each for 10 us.
pub fn interrupted(times: u64) -> Explained {
    let call = ["do_syscall_64", "__x64_sys_read", "vfs_read"];
    let mut made = woken(&call);
    for _ in 0..times {
        made.run(10_000, &[&call, &["asm_common_interrupt", "storm_handler [storm]"]]);
        made.run(8_000, &[&call]);
    }
    made.held(Hold::Scheduler, Some(1_970), now(&made), ["vfs_read", "schedule"]);
    made.switch(&call);
    made.0
}
