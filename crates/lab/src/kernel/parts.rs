//! Where a Debian kernel package has its files.

use std::path::{Path, PathBuf};

/// The files of an unpacked or installed Debian package.
pub(super) struct Parts {
    pub(super) release: String,
    pub(super) image: PathBuf,
    pub(super) config: PathBuf,
    pub(super) modules: PathBuf,
}

impl Parts {
    /// `None` if one is missing.
    pub(super) fn of(root: &Path, package: &str) -> Option<Self> {
        let release = package.strip_prefix("linux-image-")?.to_owned();
        let image = root.join("boot").join(format!("vmlinuz-{release}"));
        let config = root.join("boot").join(format!("config-{release}"));
        // Debian 13 moved them below /usr.
        let modules = ["lib/modules", "usr/lib/modules"]
            .into_iter()
            .map(|folder| root.join(folder).join(&release))
            .find(|folder| folder.join("kernel").is_dir())?;
        (image.is_file() && config.is_file()).then_some(Self { release, image, config, modules })
    }
}
