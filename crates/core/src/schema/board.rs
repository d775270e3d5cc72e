//! The machine that was measured, and its kernel.

use serde::{Deserialize, Serialize};

use super::identity::{BoardIdentity, IdentityKind, same_hardware};
use crate::preemption::Model;

/// The machine that was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Board {
    /// Host name, or the name given with `--board-name`.
    pub name: String,
    /// What kind of board it is.
    pub kind: BoardKind,
    /// SHA-256 of what identifies the hardware; equal for equal boards.
    pub fingerprint: String,
    /// What tells it from others of its kind: all that could be read, the surest first, and whether
    /// its name was given. Empty in older records, and of virtual boards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub identity: Vec<BoardIdentity>,
    /// CPU model as the kernel names it.
    pub cpu_model: String,
    /// Number of CPUs online.
    pub cpus: u32,
    /// The hypervisor, if there is one.
    #[serde(default)]
    pub hypervisor: Option<String>,
    /// The longest time for which a CPU of a virtual board waited for its turn while all were
    /// busy and only ticks ended a turn, ns, measured before the first cell; `None` on boards
    /// whose CPUs run at the same time.
    #[serde(default)]
    pub turn_wait_ns: Option<u64>,
    /// Where a virtual board's punctual can be seen at work from outside; `None` for other boards.
    #[serde(default)]
    pub marks: Option<Marks>,
    /// Where a virtual board's kernel has put the code of its modules, in its own order; at most
    /// [`MODULES_MAX`]. Empty for other boards.
    #[serde(default)]
    pub modules: Vec<ModuleAddress>,
    /// What determines the numbers of a virtual board; `None` for other boards.
    #[serde(default)]
    pub lab: Option<Lab>,
}

/// Addresses in the measuring program of a virtual board, by which an observer outside the board
/// tells samples apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marks {
    /// Executed by each recorder when its warm-up ends.
    pub begin: u64,
    /// Executed by a recorder for each sample, while all samples are kept.
    pub sample: u64,
    /// Executed by each recorder at the end of its cell.
    #[serde(default)]
    pub end: u64,
}

/// What the measuring program has in it before its three [`Marks`], each of 8 bytes, for those who have
/// only its file.
pub const MARKS: [[u8; 8]; 2] = [*b"punctual", *b"'s marks"];

/// Modules whose addresses are recorded.
pub const MODULES_MAX: usize = 512;

/// A module that a virtual board's kernel has loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleAddress {
    /// Its name as the kernel lists it.
    pub name: String,
    /// Address of its section `.text`.
    pub text: u64,
}

impl Board {
    /// Whether a run of the same plan gives the same nanoseconds: a virtual board whose time
    /// is counted in instructions.
    #[must_use]
    pub fn is_deterministic(&self) -> bool {
        self.lab.as_ref().is_some_and(|lab| lab.counted)
    }

    /// Whether its guest went on from a kept state instead of booting.
    #[must_use]
    pub fn is_warm(&self) -> bool {
        self.lab.as_ref().is_some_and(|lab| lab.snapshot_sha256.is_some())
    }

    /// Whether its latencies mean nothing: a virtual board whose time is the host's.
    #[must_use]
    pub fn is_plumbing(&self) -> bool {
        self.lab.as_ref().is_some_and(|lab| !lab.counted)
    }

    /// Whether another run was measured on another board: of another kind, of another identity, or of
    /// another name if one was given or nothing else tells.
    #[must_use]
    pub fn is_other(&self, other: &Self) -> bool {
        let are_named = self.has_given_name() || other.has_given_name();
        let is_same = same_hardware(&self.identity, &other.identity);
        let by_name = are_named || is_same.is_none();
        self.fingerprint != other.fingerprint
            || is_same == Some(false)
            || (by_name && self.name != other.name)
    }

    /// Whether its name was given with `--board-name`.
    #[must_use]
    pub fn has_given_name(&self) -> bool {
        self.identity.iter().any(|one| one.by == IdentityKind::Name)
    }
}

/// Kinds of boards.
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
    /// The name as recorded.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Virtual => "virtual",
            Self::Wire => "wire",
        }
    }
}

/// A virtual board, with everything that determines its numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lab {
    /// Whether time is counted in executed instructions. If not, the guest runs freely: its
    /// latencies are host noise and not a measurement.
    pub counted: bool,
    /// Why a repeated run may nevertheless not give the same nanoseconds.
    #[serde(default)]
    pub not_exact: Vec<String>,
    /// Version of QEMU.
    pub qemu: String,
    /// SHA-256 of its program.
    #[serde(default)]
    pub qemu_sha256: Option<String>,
    /// Its options, without the paths of files.
    pub options: Vec<String>,
    /// SHA-256 of the board's firmware: BIOS and option ROMs. `None` if it has none.
    #[serde(default)]
    pub firmware_sha256: Option<String>,
    /// `x86_64` or `aarch64`.
    pub arch: String,
    /// Number of CPUs.
    pub cpus: u32,
    /// Memory, MiB.
    pub memory_mib: u32,
    /// Instructions per microsecond of the board's time; 0 if time is not counted.
    pub mips: u32,
    /// Seed of the board's random numbers.
    pub seed: u64,
    /// Devices in addition to the board's built-in ones, by name.
    #[serde(default)]
    pub devices: Vec<String>,
    /// The kernel as requested, such as `debian:rt`.
    pub kernel: String,
    /// SHA-256 of the kernel's original image, as shipped or built.
    pub kernel_sha256: String,
    /// Loaded modules, in order.
    #[serde(default)]
    pub modules: Vec<String>,
    /// SHA-256 of the initramfs: program, modules, order.
    pub initramfs_sha256: String,
    /// Its length, bytes; 0 in records that do not have it.
    #[serde(default)]
    pub initramfs_bytes: u64,
    /// SHA-256 of the program that measures, in the initramfs.
    pub punctual_sha256: String,
    /// SHA-256 of the kept state that the guest went on from; `None` if it booted. The initramfs
    /// is then that of the boot whose state was kept, without order.
    #[serde(default)]
    pub snapshot_sha256: Option<String>,
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
    /// SHA-256 of the configuration, if it can be read.
    #[serde(default)]
    pub config_sha256: Option<String>,
}
