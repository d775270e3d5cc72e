//! Watches a virtual board from outside, as a plugin of QEMU's translator (docs/devel/tcg-plugins.rst
//! of QEMU). The guest's course, and with it every nanosecond, stays as it would be unwatched.
//!
//! The crate is two things. With `--cfg plugin` it is the plugin: a shared object without a libc
//! of its own, since QEMU has one, and its few calls (`write`, `mmap`) are found there. It is
//! built once for each version of QEMU's plugin interface that boards may meet: `--cfg 'api="1"'`
//! for QEMU 7.2 to 8, `--cfg 'api="4"'` for QEMU 10.0 and later. Without `plugin` it is an ordinary
//! library: [`event`] is what the reader of the plugin's output needs, and all that does not call
//! QEMU is tested.
//!
//! ```text
//! -plugin file=observer-1.so,begin=0x401000,sample=0x402000,dump=1.57:2.8,entries=0xffff...:0x...
//! ```
//!
//! [`arguments`] lists what can be said there. The output goes to QEMU's standard output unless told
//! otherwise.
//!
//! Only boards with one CPU are watched, as their course alone can be repeated exactly.

#![cfg_attr(plugin, no_std)]
#![cfg_attr(not(plugin), forbid(unsafe_code))]
#![cfg_attr(plugin, allow(unsafe_code, reason = "QEMU calls, and is called, by the C ABI"))]
#![deny(unsafe_op_in_unsafe_fn)]

pub mod arguments;
pub mod callers;
pub mod coverage;
pub mod decode;
pub mod event;
pub mod longest;
pub mod observer;
pub mod output;
pub mod ring;
pub mod rules;
pub mod tasks;

#[cfg(plugin)]
mod api;
#[cfg(plugin)]
mod counter;
#[cfg(plugin)]
mod host;
#[cfg(plugin)]
mod raw;
#[cfg(plugin)]
mod registers;
#[cfg(plugin)]
mod single;
#[cfg(plugin)]
mod watch;
