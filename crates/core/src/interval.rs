//! Who had a CPU, and when.

/// One stretch of a CPU's time, ns after the cell's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// Number of the CPU.
    pub cpu: u32,
    /// First instant of it.
    pub from: u64,
    /// First instant after it, at least `from`.
    pub to: u64,
    /// Number of who had the CPU ([`Actor`]).
    pub actor: u32,
}

/// Someone who had a CPU: a task, an interrupt, the hypervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// Its number in [`Interval::actor`], unique in its cell.
    pub number: u32,
    /// Its name as the kernel gave it, of at most [`MAX_NAME`] bytes; may hold anything that
    /// UTF-8 can.
    pub name: String,
}

/// The longest name of an actor, bytes.
pub const MAX_NAME: usize = 255;
