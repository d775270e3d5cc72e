//! The machine that was measured, and its kernel.

use serde::{Deserialize, Serialize};

use crate::preemption::Model;

/// The machine that was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Board {
    /// Host name, or the name given with `--board-name`.
    pub name: String,
    /// How it is reached.
    pub kind: BoardKind,
    /// SHA-256 over what identifies the hardware; equal for equal boards.
    pub fingerprint: String,
    /// CPU model as the kernel names it.
    pub cpu_model: String,
    /// CPUs online.
    pub cpus: u32,
    /// Hypervisor, where there is one.
    #[serde(default)]
    pub hypervisor: Option<String>,
    /// What the numbers of a virtual board follow from; absent elsewhere.
    #[serde(default)]
    pub lab: Option<Lab>,
}

impl Board {
    /// Whether a run of the same plan gives the same nanoseconds: a virtual
    /// board whose time is counted in instructions.
    #[must_use]
    pub fn is_deterministic(&self) -> bool {
        self.lab.as_ref().is_some_and(|lab| lab.counted)
    }

    /// Whether its latencies mean nothing: a virtual board whose time is the host's.
    #[must_use]
    pub fn is_plumbing(&self) -> bool {
        self.lab.as_ref().is_some_and(|lab| !lab.counted)
    }
}

/// How a board is reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BoardKind {
    /// The machine that punctual runs on.
    #[default]
    Local,
    /// A virtual board of the lab.
    Virtual,
    /// Another machine, over a wire.
    Wire,
}

impl BoardKind {
    /// The name, as recorded.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Virtual => "virtual",
            Self::Wire => "wire",
        }
    }
}

/// A virtual board, with everything that its numbers follow from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lab {
    /// Time is counted in executed instructions. Otherwise the guest runs freely:
    /// its latencies are the host's noise, plumbing and no measurement.
    pub counted: bool,
    /// Why a repeated run need not give the same nanoseconds all the same.
    #[serde(default)]
    pub not_exact: Vec<String>,
    /// Version of QEMU.
    pub qemu: String,
    /// Its options, without the paths of files.
    pub options: Vec<String>,
    /// `x86_64` or `aarch64`.
    pub arch: String,
    /// CPUs.
    pub cpus: u32,
    /// Memory, MiB.
    pub memory_mib: u32,
    /// Instructions that take a microsecond of the board's time; 0 where time is not counted.
    pub mips: u32,
    /// Seed of the board's random numbers.
    pub seed: u64,
    /// Devices beside the board's own, by name.
    #[serde(default)]
    pub devices: Vec<String>,
    /// The kernel as it was asked for, as `debian:rt`.
    pub kernel: String,
    /// SHA-256 of the kernel's image as the distribution or the build made it.
    pub kernel_sha256: String,
    /// Modules that were loaded, in order.
    #[serde(default)]
    pub modules: Vec<String>,
    /// SHA-256 of the initramfs: punctual, modules, plan, phase.
    pub initramfs_sha256: String,
    /// SHA-256 of the punctual in it.
    pub punctual_sha256: String,
}

/// The kernel of the board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// `uname -r`.
    pub release: String,
    /// `uname -v`.
    pub version: String,
    /// `uname -m`.
    pub machine: String,
    /// Its preemption model.
    pub preemption: Model,
    /// `/proc/cmdline`.
    pub command_line: String,
    /// SHA-256 of the configuration, where it can be read.
    #[serde(default)]
    pub config_sha256: Option<String>,
}
