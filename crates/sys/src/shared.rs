//! Counters in memory shared between processes.
