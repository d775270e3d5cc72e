//! What runs on the board: engine, recorder, knobs, facts, probes and loads.
//!
//! Architecture invariant: no unsafe code; every system call goes through
//! `punctual_sys`. A probe or a load is one file and one line in its registry.
#![forbid(unsafe_code)]

pub mod again;
mod cgroups;
mod compute;
pub mod costs;
pub mod engine;
pub mod facts;
pub mod harness;
mod init;
pub mod knobs;
pub mod loads;
mod messages;
pub mod metrics;
pub mod probes;
mod procfs;
pub mod recorder;
pub mod registry;
pub mod remote;
mod rest;
pub mod ring;
pub mod schedule;
mod turns;
mod warm;
