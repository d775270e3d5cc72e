//! The plugins that QEMU loads to watch a guest (crate `observer`), carried in this program.

use anyhow::{Context, Result, ensure};

use crate::emulator::{Emulator, Version};

/// The observer for QEMU's plugin interface of version 1, and that for version 4.
const PROGRAMS: [&[u8]; 2] = [
    include_bytes!(concat!(env!("OUT_DIR"), "/observer-1.so")),
    include_bytes!(concat!(env!("OUT_DIR"), "/observer-4.so")),
];

/// What watches a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observer {
    /// The plugin.
    pub(crate) program: &'static [u8],
    /// What it is told.
    pub(crate) arguments: Vec<String>,
    /// Bytes of the guest's memory, if the plugin is to read it.
    pub(crate) memory: Option<u64>,
}

impl Observer {
    /// The one that this QEMU loads.
    ///
    /// # Errors
    /// None was tried with this QEMU, or punctual was built without.
    pub(crate) fn of(emulator: &Emulator, arguments: Vec<String>) -> Result<Self> {
        let program = program(emulator.number()).with_context(|| {
            format!(
                "QEMU {} cannot watch a guest: only 7.2 and 10 were tried; name one of them with \
                 --qemu, and measure again with it",
                emulator.version
            )
        })?;
        ensure!(
            !program.is_empty(),
            "this punctual was built without its observer: rust-lld, which comes with rustup's \
             Rust, was missing"
        );
        Ok(Self { program, arguments, memory: None })
    }
}

/// Which of [`PROGRAMS`] a version of QEMU loads; `None`: neither was tried with it.
fn program(version: Version) -> Option<&'static [u8]> {
    match version {
        (7, 2) => Some(PROGRAMS[0]),
        (10, _) => Some(PROGRAMS[1]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::emulator;

    /// Parts of Rust's library that may panic want what only a program of Rust has.
    #[test]
    fn the_observers_need_nothing_of_rust_s_runtime() {
        for program in PROGRAMS {
            assert!(!program.is_empty());
            let name = b"rust_eh_personality";
            assert!(!program.windows(name.len()).any(|bytes| bytes == name));
        }
    }

    #[test]
    fn only_versions_that_were_tried_are_watched() {
        let of = |version: &str| {
            let emulator = Emulator { version: version.to_owned(), ..emulator("7.2") };
            Observer::of(&emulator, Vec::new())
        };
        assert_eq!(of("7.2.22 (Debian)").unwrap().program, PROGRAMS[0]);
        assert_eq!(of("10.0.2").unwrap().program, PROGRAMS[1]);
        for version in ["8.2.1", "9.2.0", "11.0.0"] {
            let error = of(version).unwrap_err().to_string();
            assert!(error.contains("only 7.2 and 10 were tried"), "{error}");
        }
    }
}
