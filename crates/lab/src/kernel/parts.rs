//! Where a Debian kernel package has its files.

use std::path::{Path, PathBuf};

/// The files of an unpacked or installed Debian package.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) release: String,
    pub(super) image: PathBuf,
    /// `None`: the archive has not got it any more.
    pub(super) config: Option<PathBuf>,
    /// `None`: the archive has not got them any more.
    pub(super) modules: Option<PathBuf>,
}

impl Parts {
    /// `None` if there is no image.
    pub(super) fn of(root: &Path, package: &str) -> Option<Self> {
        let release = package.strip_prefix("linux-image-")?.to_owned();
        let boot = root.join("boot");
        // Debian 13 moved the modules below /usr, and 14 the others to them.
        let folders =
            ["lib/modules", "usr/lib/modules"].map(|folder| root.join(folder).join(&release));
        let first = |files: [PathBuf; 3]| files.into_iter().find(|file| file.is_file());
        let [old, new] = &folders;
        let image =
            [boot.join(format!("vmlinuz-{release}")), old.join("vmlinuz"), new.join("vmlinuz")];
        let config =
            [boot.join(format!("config-{release}")), old.join("config"), new.join("config")];
        let modules = folders.iter().find(|folder| folder.join("kernel").is_dir());
        Some(Self {
            image: first(image)?,
            config: first(config),
            modules: modules.cloned(),
            release,
        })
    }

    /// Whether nothing is missing.
    pub(super) fn is_whole(&self) -> bool {
        self.config.is_some() && self.modules.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    #[test]
    fn packages_have_their_files_in_one_of_three_layouts() {
        let parts = |files: &[&str]| {
            let folder = Folder::new();
            files.iter().for_each(|file| folder.write(file, b""));
            let parts = Parts::of(&folder.0, "linux-image-6.1.0-56-amd64")?;
            let relative =
                |path: &PathBuf| path.strip_prefix(&folder.0).unwrap().to_str().unwrap().to_owned();
            let Parts { image, config, modules, .. } = &parts;
            let all = [Some(image), config.as_ref(), modules.as_ref()];
            Some((all.map(|path| path.map(relative).unwrap_or_default()), parts.is_whole()))
        };
        let boot = ["boot/vmlinuz-6.1.0-56-amd64", "boot/config-6.1.0-56-amd64"];
        for modules in ["lib/modules/6.1.0-56-amd64", "usr/lib/modules/6.1.0-56-amd64"] {
            let ko = format!("{modules}/kernel/a.ko");
            let expected = [boot[0], boot[1], modules].map(str::to_owned);
            assert_eq!(parts(&[boot[0], boot[1], &ko]), Some((expected, true)));
        }
        let folder = "usr/lib/modules/6.1.0-56-amd64";
        let [image, config, ko] =
            ["vmlinuz", "config", "kernel/a.ko"].map(|name| format!("{folder}/{name}"));
        let expected = [&image, &config, folder].map(str::to_owned);
        assert_eq!(parts(&[&image, &config, &ko]), Some((expected, true)));
        let expected = [&image, "", ""].map(str::to_owned);
        assert_eq!(parts(&[&image]), Some((expected, false)));
        assert_eq!(parts(&[&config, &ko]), None);
    }
}
