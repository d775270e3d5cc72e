//! Scheduling policy and priority.
