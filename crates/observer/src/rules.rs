//! What the plugin does of all that it can.

use crate::arguments::{ADDRESSES_MAX, Arguments, KEPT_MAX, List};

/// What is followed, and what is written.
#[derive(Debug)]
pub struct Rules {
    /// Whether all events but blocks are written as they happen.
    pub is_streamed: bool,
    /// Whether only what lies between releases and their samples is.
    pub has_milestones: bool,
    /// Whether it is known what forbids to switch threads.
    pub has_preempt_count: bool,
    /// Whether threads are only switched where the kernel says so.
    pub is_cooperative: bool,
    /// How many of the longest stretches are written.
    pub longest: u8,
    /// Starts and ends, in turn, of code on behalf of its caller.
    pub passing: List<ADDRESSES_MAX>,
    /// Starts and ends, in turn, of courses of which nothing is lost.
    pub kept: List<KEPT_MAX>,
}

impl Rules {
    /// Nothing is followed or written.
    pub const NONE: Self = Self {
        is_streamed: false,
        has_milestones: false,
        has_preempt_count: false,
        is_cooperative: false,
        longest: 0,
        passing: List::EMPTY,
        kept: List::EMPTY,
    };

    /// What was asked for.
    #[must_use]
    pub fn of(arguments: &Arguments) -> Self {
        Self {
            is_streamed: arguments.is_streamed,
            has_milestones: !arguments.milestones.as_slice().is_empty(),
            has_preempt_count: arguments.preempt.is_some(),
            is_cooperative: arguments.is_cooperative,
            longest: arguments.longest,
            passing: arguments.passing.clone(),
            kept: arguments.kept.clone(),
        }
    }
}
