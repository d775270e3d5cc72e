//! Virtual boards: kernels by name, what they boot with, and the guest while it runs.
#![forbid(unsafe_code)]

pub mod arch;
pub mod board;
pub mod device;
pub mod experiment;
pub mod guest;
pub mod initramfs;
pub mod kernel;
pub mod modules;
pub mod program;

mod decompress;
mod elf;
mod files;
#[cfg(test)]
mod testing;
