//! CPU affinity of threads.
