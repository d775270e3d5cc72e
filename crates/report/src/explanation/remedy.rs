//! What would have helped against what held a thread up.

use punctual_core::preemption::Model;

use super::holder::Holder;
use super::times::length;

/// The setting of the kernel that would have helped, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remedy {
    /// How long those held it that the remedy is for, ns; empty if nobody else did.
    pub holds_ns: Vec<u64>,
    /// A sentence.
    pub text: &'static str,
}

impl Remedy {
    /// The sentence, after the lengths of what it is for if the cause has several.
    #[must_use]
    pub fn words(&self) -> String {
        match self.holds_ns.as_slice() {
            [] => self.text.to_owned(),
            holds => {
                let lengths: Vec<String> = holds.iter().map(|ns| length(*ns)).collect();
                format!("For the {}: {}", lengths.join(" and "), self.text)
            }
        }
    }
}

/// Zero in that file keeps a CPU from sleeping.
pub(super) const DEEP_SLEEP: &str =
    "Zero in /dev/cpu_dma_latency, held open, keeps a CPU from deep sleep.";

/// What helps against a holder, on a kernel with this model.
pub(super) fn of(holder: Holder<'_>, model: Model) -> Option<&'static str> {
    let is_rt = model == Model::Rt;
    match holder {
        Holder::Path | Holder::Nobody => None,
        Holder::Masked(held) => {
            let is_lock = held.began_in.contains("lock_irq");
            (is_lock && !is_rt).then_some("Under PREEMPT_RT most spinlocks leave interrupts on.")
        }
        Holder::Preferred(_) => Some(
            "A thread of the same or a higher priority runs first, under every model: give this \
             one a higher priority, or that one a lower.",
        ),
        Holder::Softirq => (!is_rt).then_some(
            "Nothing preempts a softirq; under PREEMPT_RT a thread of higher priority does.",
        ),
        Holder::Interrupt(_) => (!is_rt).then_some(
            "Nothing preempts an interrupt; with threadirqs or PREEMPT_RT most run in threads.",
        ),
        Holder::Timer(_) => (!is_rt).then_some(
            "Nothing preempts what a timer calls in its interrupt; under PREEMPT_RT most of it runs \
             in threads.",
        ),
        Holder::NotCalled => not_called(model),
    }
}

fn not_called(model: Model) -> Option<&'static str> {
    Some(match model {
        Model::None | Model::Voluntary => {
            "preempt=full would have switched here unless below a spinlock, PREEMPT_RT below most \
             of those too."
        }
        Model::Full => {
            "Preemption was off, as below a spinlock; PREEMPT_RT preempts most of those."
        }
        // A thread without such a policy waits for the tick.
        Model::Lazy => {
            "For a thread with a real-time policy, preemption was off, as below a spinlock; \
             PREEMPT_RT preempts most of those."
        }
        Model::Rt => {
            "PREEMPT_RT leaves preemption off below raw spinlocks and where code asks for it: this \
             is such a place."
        }
        Model::Unknown => return None,
    })
}
