//! Signals as file descriptors.
