//! Who has the CPU while a thread waits for it.

use punctual_core::explanation::{GuestThread, Held};

/// Who has the CPU while a thread waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder<'a> {
    /// The way that every release takes.
    Path,
    /// Who has interrupts off.
    Masked(&'a Held),
    Softirq,
    /// Another interrupt, in words.
    Interrupt(&'a str),
    /// Another timer, by its function.
    Timer(&'a str),
    /// Code that does not come to the scheduler.
    NotCalled,
    /// A thread that the scheduler prefers, if it is known.
    Preferred(Option<&'a GuestThread>),
    /// It is not known.
    Nobody,
}

impl Holder<'_> {
    /// Whether the thread would have come sooner without it.
    pub fn is_culprit(self) -> bool {
        !matches!(self, Self::Path | Self::Nobody)
    }
}
