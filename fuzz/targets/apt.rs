//! What apt and dpkg print.

use std::path::{Component, Path};

use punctual_lab::arch::Arch;
use punctual_lab::kernel::output::{installed, last_error, offers, suite_of};

pub fn target(bytes: &[u8]) {
    let text = &String::from_utf8_lossy(bytes);
    for arch in [Arch::X86_64, Arch::Aarch64] {
        for offer in offers(text, arch) {
            // The folder of the cache that it gets.
            let path = format!("{}_{}", offer.name, offer.version);
            let parts: Vec<_> = Path::new(&path).components().collect();
            assert!(matches!(parts[..], [Component::Normal(_)]), "{path}");
        }
        for (name, _) in installed(text, arch) {
            assert!(name.starts_with("linux-image-"), "{name}");
        }
    }
    let _ = last_error(text);
    // It becomes a line of a file.
    assert!(!suite_of(text, "bookworm").unwrap_or_default().contains(char::is_whitespace));
}
