//! Facts that a reader needs to judge the numbers, read from /proc and /sys below a root folder.
//!
//! Facts are only read here; `conditions` judges them. Nothing fails: what cannot be read is
//! an absent key of `run.json`.

pub mod conditions;
pub mod cpu;
pub mod cpu_times;
pub mod events;
pub mod fingerprint;
pub mod foreign;
pub mod group_limits;
pub mod identity;
pub mod interrupts;
pub mod kernel_config;
pub mod kernel_image;
pub mod modules;
pub mod power;
pub mod preemption;
pub mod rivals;
pub mod root;
pub mod scheduler;
pub mod snapshot;
pub mod state;
pub mod strain;
mod tasks;
pub mod unread;
pub mod virtualisation;

use std::io::Read as _;

use punctual_core::hash::Hasher;
use punctual_core::schema::Tool;

use crate::engine::Program;

pub use conditions::{Measurement, conditions};
pub use cpu_times::{CpuTimes, Share, Stolen, Ticks};
pub use events::Watch;
pub use group_limits::GroupLimits;
pub use interrupts::Interrupts;
pub use rivals::Rivals;
pub use root::{FactsRoot, Native};
pub use snapshot::Facts;
pub use state::Activity;
pub use strain::{StrainReader, Totals};

/// This program and how it was started. `sha256` is that of its executable, or empty if not known.
#[must_use]
pub fn tool(program: Program, sha256: Option<&str>) -> Tool {
    let libc = if cfg!(target_env = "musl") { "musl" } else { "gnu" };
    Tool {
        name: program.name.to_owned(),
        version: program.version.to_owned(),
        target: format!("{}-unknown-linux-{libc}", std::env::consts::ARCH),
        sha256: sha256.unwrap_or_default().to_owned(),
        command: std::env::args_os()
            .map(|argument| argument.to_string_lossy().into_owned())
            .collect(),
    }
}

/// SHA-256 of the executable of this process, hexadecimal. It takes more instructions than
/// everything else before a measurement, so do not call it there.
///
/// # Errors
/// The errno of opening or reading `/proc/self/exe`.
pub fn hash_of_executable() -> std::io::Result<String> {
    // In pieces: as a whole it would be most of the memory that a run takes.
    let mut file = std::fs::File::open("/proc/self/exe")?;
    let mut hasher = Hasher::default();
    let mut piece = [0_u8; 16 * 1024];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hasher.finish()),
            length => hasher.update(&piece[..length]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_is_named_and_hashed() {
        let program = Program { name: "punctual-board", version: "1.2.3" };
        let tool = tool(program, None);
        assert_eq!((tool.name.as_str(), tool.version.as_str()), (program.name, program.version));
        assert_eq!(tool.sha256, "");
        assert_eq!(super::tool(program, Some("known")).sha256, "known");
        let program = std::fs::read("/proc/self/exe").unwrap();
        assert_eq!(hash_of_executable().unwrap(), punctual_core::hash::sha256(&program));
        assert!(!tool.command.is_empty());
        assert!(tool.target.starts_with(std::env::consts::ARCH));
    }
}
