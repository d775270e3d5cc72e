//! What the legs of a latency are called, and what each means.

use punctual_core::explanation::{Hold, Milestone};
use punctual_core::preemption::Model;

/// Every leg, in order.
pub use punctual_core::legs::MILESTONES as LEGS;

/// A leg in a word.
#[must_use]
pub fn leg_name(until: Milestone) -> &'static str {
    match until {
        Milestone::Interrupt => "interrupt",
        Milestone::Wakeup => "wake-up",
        Milestone::Schedule => "scheduling",
        Milestone::Switch => "switch",
        Milestone::User => "return",
        Milestone::Clock => "clock",
    }
}

/// Title of the legs of all samples.
pub const LEGS_TITLE: &str = "Legs of every sample";

/// All legs together: the latency.
pub const ALL_LEGS: &str = "all legs (t2)";

/// A leg in a table of all samples, with the papers' name of the first.
#[must_use]
pub fn leg_title(until: Milestone) -> &'static str {
    match until {
        Milestone::Interrupt => "interrupt (t1)",
        until => leg_name(until),
    }
}

/// What happens in a leg, and what makes it long.
#[must_use]
pub fn leg_meaning(until: Milestone) -> &'static str {
    match until {
        Milestone::Interrupt => {
            "from the release until the timer's interrupt is entered; long if interrupts are off"
        }
        Milestone::Wakeup => {
            "the interrupt's handler, until it wakes the thread; long if other timers expire first"
        }
        Milestone::Schedule => {
            "until the scheduler is entered that chooses the thread; long without a scheduling \
             point, with preemption off, if more interrupts come, or if other threads are preferred"
        }
        Milestone::Switch => "the scheduler, until the CPU changes to the thread's stack",
        Milestone::User => "from there back to the thread's own code",
        Milestone::Clock => "the thread's own code, until it reads the clock",
    }
}

/// How the kernel is kept from reacting.
#[must_use]
pub fn hold_name(how: Hold) -> &'static str {
    match how {
        Hold::Interrupts => "interrupts off",
        Hold::Scheduler => "no call of the scheduler",
        Hold::Preferred => "another thread preferred",
    }
}

/// The sections in which a kernel is kept from reacting.
#[must_use]
pub fn section_name(how: Hold) -> &'static str {
    match how {
        Hold::Interrupts => "interrupts off",
        Hold::Scheduler => "scheduler not called",
        Hold::Preferred => hold_name(how),
    }
}

/// What happens in such a section, after its length or its noun.
#[must_use]
pub fn section_clause(how: Hold) -> &'static str {
    match how {
        Hold::Interrupts => "with interrupts off",
        Hold::Scheduler => "in which the scheduler is not called",
        Hold::Preferred => "in which another thread is preferred",
    }
}

/// What such a section means, and what it lasts until.
#[must_use]
pub fn section_meaning(how: Hold, model: Model) -> &'static str {
    match (how, model) {
        (Hold::Interrupts, _) => "no interrupt is taken",
        (Hold::Preferred, _) => "the scheduler prefers another thread",
        (Hold::Scheduler, Model::None) => {
            "under preempt=none it lasts until the next scheduling point"
        }
        (Hold::Scheduler, Model::Voluntary) => {
            "under preempt=voluntary it lasts until the next scheduling point"
        }
        (Hold::Scheduler, Model::Full) => {
            "under preempt=full it lasts while preemption or interrupts are off, as below a spinlock"
        }
        (Hold::Scheduler, Model::Lazy) => {
            "for a thread with a real-time policy it lasts while preemption or interrupts are off, \
             as below a spinlock"
        }
        (Hold::Scheduler, Model::Rt) => {
            "under PREEMPT_RT it lasts while preemption or interrupts are off, as below a raw \
             spinlock"
        }
        (Hold::Scheduler, Model::Unknown) => "a thread that is woken would wait until it is",
    }
}
