//! Signals to threads.
