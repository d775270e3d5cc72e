//! A kernel for the tests of other modules.

use punctual_core::hash::sha256;

use super::Kernel;
use crate::arch::Arch;

/// A kernel 6.1.0 for x86_64 with neither modules nor configuration.
pub(crate) fn kernel(name: &str) -> Kernel {
    Kernel {
        name: name.to_owned(),
        arch: Arch::X86_64,
        image: "/boot/vmlinuz".into(),
        image_sha256: sha256(name.as_bytes()),
        release: "6.1.0".to_owned(),
        parameters: Vec::new(),
        model: None,
        config: None,
        modules: None,
        package: None,
    }
}
