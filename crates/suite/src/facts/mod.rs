//! What a reader needs to judge the numbers: readers of /proc and /sys with a
//! root folder.
//!
//! A fact is read and never judged here; `conditions` judges. Nothing
//! fails: what cannot be read is an absent key of `run.json`.

pub mod conditions;
pub mod cpu;
pub mod cpu_times;
pub mod fingerprint;
pub mod interrupts;
pub mod kernel_config;
pub mod kernel_image;
pub mod power;
pub mod preemption;
pub mod root;
pub mod scheduler;
pub mod snapshot;
pub mod state;
pub mod virtualisation;

use std::fmt::Write as _;
use std::io::Read as _;

use punctual_core::schema::Tool;
use sha2::{Digest, Sha256};

pub use conditions::{Measurement, conditions, virtual_board};
pub use cpu_times::{CpuTimes, Share, Ticks};
pub use interrupts::Interrupts;
pub use root::{FactsRoot, Native};
pub use snapshot::Facts;

/// This program and how it was started.
#[must_use]
pub fn tool() -> Tool {
    let libc = if cfg!(target_env = "musl") { "musl" } else { "gnu" };
    Tool {
        name: "punctual".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        target: format!("{}-unknown-linux-{libc}", std::env::consts::ARCH),
        sha256: hash_of_executable().unwrap_or_default(),
        command: std::env::args_os()
            .map(|argument| argument.to_string_lossy().into_owned())
            .collect(),
    }
}

/// Piece by piece: the executable in one piece would be half of the memory that a run takes.
fn hash_of_executable() -> std::io::Result<String> {
    let mut file = std::fs::File::open("/proc/self/exe")?;
    let mut hasher = Sha256::new();
    let mut piece = [0_u8; 16 * 1024];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hexadecimal(&hasher.finalize())),
            length => hasher.update(&piece[..length]),
        }
    }
}

/// SHA-256, hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_is_sha256() {
        // FIPS 180-2, appendix B.1.
        assert_eq!(
            sha256(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn this_program_is_named_and_hashed() {
        let tool = tool();
        assert_eq!(tool.sha256.len(), 64);
        assert!(!tool.command.is_empty());
        assert!(tool.target.starts_with(std::env::consts::ARCH));
    }
}
