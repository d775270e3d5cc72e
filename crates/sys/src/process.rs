//! Child processes: supervisors, PID namespaces, forks of single-threaded processes.
