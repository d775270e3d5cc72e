//! What a kept state of a board comes from.

use punctual_core::hash::sha256;
use serde::Serialize;

use crate::emulator::Emulator;

/// Version of what is kept.
const VERSION: u32 = 1;

/// Everything that determines a kept state, as far as anything does: a second boot of the same
/// takes another course, because the state cannot be written by a QEMU that records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Origin {
    version: u32,
    /// Version of QEMU.
    qemu: String,
    /// Its firmware.
    firmware_sha256: Option<String>,
    /// Its options, without paths of files; CPU, memory, devices and seed are among them.
    options: Vec<String>,
    /// The kernel's original image.
    kernel_sha256: String,
    /// The kernel's command line.
    parameters: String,
    /// The initramfs: punctual, modules, configuration, set-up; no order.
    initramfs_sha256: String,
}

impl Origin {
    pub(crate) fn new(
        emulator: &Emulator,
        options: &[String],
        kernel_sha256: &str,
        parameters: &str,
        initramfs: &[u8],
    ) -> Self {
        Self {
            version: VERSION,
            qemu: emulator.version.clone(),
            firmware_sha256: emulator.firmware_sha256.clone(),
            options: options.to_owned(),
            kernel_sha256: kernel_sha256.to_owned(),
            parameters: parameters.to_owned(),
            initramfs_sha256: sha256(initramfs),
        }
    }

    /// The name under which its state is kept.
    pub(crate) fn key(&self) -> String {
        sha256(&serde_json::to_vec(self).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::emulator;

    fn origin() -> Origin {
        let emulator = emulator("7.2.22");
        Origin::new(&emulator, &["-m".to_owned(), "256".to_owned()], "aa", "quiet", b"initramfs")
    }

    #[test]
    fn whatever_differs_gives_another_key() {
        let changes: [fn(&mut Origin); 7] = [
            |origin| origin.version += 1,
            |origin| origin.qemu = "10.0.2".to_owned(),
            |origin| origin.firmware_sha256 = Some("ff".to_owned()),
            |origin| origin.options[1] = "257".to_owned(),
            |origin| origin.kernel_sha256 = "ab".to_owned(),
            |origin| origin.parameters = "quiet nohz=off".to_owned(),
            |origin| origin.initramfs_sha256 = sha256(b"other"),
        ];
        let mut keys = vec![origin().key()];
        assert_eq!(keys[0], origin().key());
        for change in changes {
            let mut other = origin();
            change(&mut other);
            assert!(!keys.contains(&other.key()), "{other:?}");
            keys.push(other.key());
        }
    }
}
