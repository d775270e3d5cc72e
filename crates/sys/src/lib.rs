//! The system calls of punctual: scheduling, clocks, timers, affinity, memory
//! locking, processes, sockets.
//!
//! Architecture invariant: this is the only crate with unsafe code and libc, and it depends on
//! no other crate of punctual. Every function is a thin safe form of one system call, or of a
//! few that belong together, and returns `std::io::Result`.
#![allow(unsafe_code, reason = "here alone: all other crates forbid it")]
#![deny(unsafe_op_in_unsafe_fn)]

pub mod affinity;
pub mod agent;
pub mod alloc;
pub mod boot;
pub mod calls;
pub mod chase;
pub mod clock;
pub mod clock_step;
pub mod code;
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
mod cpuid;
pub mod emulator;
pub mod error;
pub mod event;
pub mod faults;
pub mod fd;
pub mod file;
pub mod folder;
pub mod futex;
pub mod gpio;
pub mod group;
mod ioctl;
pub mod limits;
pub mod mapped;
pub mod memory;
pub mod mutex;
pub mod parport;
pub mod partner;
pub mod pcm;
#[cfg(target_arch = "x86_64")]
mod ports;
pub mod process;
pub mod region;
pub mod rtc;
pub mod sched;
pub mod seccomp;
pub mod shared;
pub mod shared_value;
pub mod signal;
pub mod snapshot;
pub mod socket;
pub mod storage;
pub mod storm;
pub mod system;
pub mod thread;
pub mod timer;
pub mod tiny;
pub mod token;
pub mod uio;
pub mod words;
pub mod written;
pub mod wrong;
