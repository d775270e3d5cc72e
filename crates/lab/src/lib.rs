//! Virtual boards: kernels by name, what they boot with, and running guests.
#![forbid(unsafe_code)]

pub mod arch;
pub mod board;
pub mod device;
pub mod emulator;
pub mod experiment;
pub mod initramfs;
pub mod kernel;
pub mod microscope;
pub mod modules;
pub mod program;
pub mod qemu;
pub mod warm;

mod bounds;
pub mod console;
mod decompress;
mod elf;
pub mod extra;
mod files;
mod firmware;
mod observer;
mod patience;
mod qmp;
mod receiver;
mod run_dir;
#[cfg(test)]
mod testing;
pub mod user_cache;
