//! Memory locking and faulting.
