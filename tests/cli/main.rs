//! The command line, end to end.
