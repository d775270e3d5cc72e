//! The virtual lab: kernels booted on virtual boards, end to end, with what
//! SPECIFICATION.md promises of them. One after the other: they measure, two guests at a time.

mod aim;
mod binding;
mod boards;
mod check;
mod costs;
mod coverage;
mod cyclictest;
mod devices;
mod disturbances;
mod exact;
mod explain;
mod files;
mod history;
mod interrupts;
mod killed;
mod known;
mod legs;
mod models;
mod modules;
mod names;
mod newer;
mod phases;
mod probes;
mod readme;
mod search;
mod sections;
mod shell;
mod small;
mod start;
mod stopped;
mod timers;
mod traced;
mod tracing;
mod trouble;
mod warm;
