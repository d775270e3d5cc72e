//! The kernel, file systems, limits.
