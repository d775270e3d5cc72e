//! The command line, end to end: golden help and errors, simulated runs with
//! exact expectations, run directories that are damaged, runs that are killed.

mod damage;
mod ends;
mod golden;
mod planned;
mod simulated;
mod support;
