//! Virtual boards: kernels by name, what they boot with, and the guest while it runs.
#![forbid(unsafe_code)]

pub mod arch;
pub mod initramfs;
pub mod kernel;
pub mod modules;

mod decompress;
mod elf;
