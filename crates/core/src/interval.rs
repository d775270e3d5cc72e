//! Which actor had a CPU, and when.

/// One stretch of a CPU's time, ns after the cell's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// Number of the CPU.
    pub cpu: u32,
    /// Start of the stretch.
    pub from: u64,
    /// First instant after the stretch, at least `from`.
    pub to: u64,
    /// Number of the [`Actor`] that had the CPU.
    pub actor: u32,
}

/// What can have a CPU: a task, an interrupt, the hypervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// Its number in [`Interval::actor`], unique in its cell.
    pub number: u32,
    /// Its name as the kernel gave it, at most [`MAX_NAME`] bytes of any UTF-8, control
    /// characters included.
    pub name: String,
}

/// The longest name of an actor, bytes.
pub const MAX_NAME: usize = 255;
