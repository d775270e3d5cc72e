//! Build trees of kernels.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use punctual_sys::file;

use super::config::Config;
use super::spec::FORMS;
use crate::arch::Arch;

/// The image to boot from a build tree.
///
/// # Errors
/// It is not a build tree, is for another architecture, or has not been built.
pub(super) fn image(tree: &Path, arch: Arch) -> Result<PathBuf> {
    let config = tree.join(".config");
    ensure!(
        config.is_file(),
        "{} is not a kernel build tree (it has no .config); use one of\n{FORMS}",
        tree.display()
    );
    let config = Config::read(&config)?;
    let (option, images): (_, &[&str]) = match arch {
        // A vmlinux is never older than the bzImage made from it.
        Arch::X86_64 => ("X86_64", &["vmlinux", "arch/x86/boot/bzImage"]),
        Arch::Aarch64 => ("ARM64", &["arch/arm64/boot/Image", "arch/arm64/boot/Image.gz"]),
    };
    ensure!(
        config.has(option),
        "{} is not configured for the board's architecture, {arch} (no CONFIG_{option})",
        tree.display()
    );
    let mut built = images.iter().map(|image| tree.join(image)).filter(|image| image.is_file());
    let first = built.next();
    // If the vmlinux has no PVH entry, the bzImage next to it is booted.
    let boots = match built.next() {
        Some(packed) if arch == Arch::X86_64 && !config.has("PVH") => Some(packed),
        _ => first,
    };
    boots.with_context(|| {
        format!("{} has not been built: it has no {}", tree.display(), images.join(" nor "))
    })
}

/// The release of the kernel that was built, as `uname -r` prints it.
///
/// # Errors
/// The tree has not been built.
pub(super) fn release(tree: &Path) -> Result<String> {
    let path = tree.join("include/config/kernel.release");
    let text = file::read_text(&path, 4_096)
        .with_context(|| format!("cannot read {} (has it been built?)", path.display()))?;
    Ok(text.trim().to_owned())
}
