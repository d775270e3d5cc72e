//! The virtual lab: kernels booted on virtual boards, end to end, with what
//! SPECIFICATION.md promises of them. One after the other: they measure, two guests at a time.

mod boards;
mod check;
mod cyclictest;
mod devices;
mod exact;
#[path = "../support/histogram.rs"]
mod histogram;
mod models;
#[path = "../support/processes.rs"]
#[allow(dead_code, reason = "the tests of loads use the rest of it")]
mod processes;
mod start;
#[path = "../support/trouble.rs"]
mod support;
mod trouble;
#[path = "../support/validate.rs"]
mod validate;
