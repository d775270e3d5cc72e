//! Where the kernel has put the code of its modules.

use punctual_core::schema::{MODULES_MAX, ModuleAddress};

use super::root::FactsRoot;

/// The loaded modules whose address is known, which only root is told, in the kernel's order; at
/// most [`MODULES_MAX`].
#[must_use]
pub fn addresses(root: &FactsRoot) -> Vec<ModuleAddress> {
    let all = root.text("proc/modules").unwrap_or_default();
    let names = all.lines().filter_map(|line| line.split_whitespace().next());
    // A name is part of a path.
    let names = names.filter(|name| !name.contains(['/', '.']));
    let address = |name: &str| {
        let text = root.text(&format!("sys/module/{name}/sections/.text"))?;
        let address = u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()?;
        // Whoever may not know it is told 0.
        (address > 0).then(|| ModuleAddress { name: name.to_owned(), text: address })
    };
    names.filter_map(address).take(MODULES_MAX).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::facts::Native;

    #[test]
    fn only_known_addresses_are_listed() {
        let folder = std::env::temp_dir().join(format!("punctual-modules-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let line = |name: &str| format!("{name} 16384 0 - Live 0xffffffffc0a00000 (OE)\n");
        let names = ["hold", "hidden", "gone", "..", "", "odd", "uio"];
        write("proc/modules", &names.map(line).concat());
        for (name, text) in [
            ("hold", "0xffffffffc0a00000\n"),
            ("hidden", "0x0000000000000000\n"),
            ("odd", "ffff\n"),
            ("uio", "0xffffffffc0b00000\n"),
        ] {
            write(&format!("sys/module/{name}/sections/.text"), text);
        }
        let found = addresses(&FactsRoot::new(&folder, Native::default()));
        fs::remove_dir_all(&folder).unwrap();
        let found: Vec<_> = found.iter().map(|of| (of.name.as_str(), of.text)).collect();
        assert_eq!(found, [("hold", 0xffff_ffff_c0a0_0000), ("uio", 0xffff_ffff_c0b0_0000)]);
        assert!(addresses(&FactsRoot::new(&folder, Native::default())).is_empty());
    }
}
