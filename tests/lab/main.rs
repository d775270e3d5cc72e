//! The virtual lab: kernels booted on virtual boards, end to end, with what
//! SPECIFICATION.md promises of them. One after the other: they measure, two guests at a time.

mod boards;
mod check;
mod cyclictest;
mod devices;
mod disturbances;
mod exact;
mod history;
mod models;
mod newer;
mod start;
mod timers;
mod trouble;
mod warm;
