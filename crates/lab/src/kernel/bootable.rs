//! The file that QEMU boots for an image.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use punctual_core::hash::sha256;
use punctual_sys::file;

use super::cache::Cache;
use super::image::{self, Form, Payload};
use crate::arch::Arch;

/// The largest image that is read, bytes. Kernels with debug information have about 500 MB.
const MOST_IMAGE: u64 = 2 << 30;

/// An image that can be booted.
pub(super) struct Bootable {
    /// The file for QEMU: the image or its payload.
    pub(super) path: PathBuf,
    /// SHA-256 of the image, hexadecimal.
    pub(super) sha256: String,
    /// The release that the image states.
    pub(super) release: String,
}

impl Bootable {
    /// Checks an image, and unpacks it into the cache if it then boots faster.
    ///
    /// # Errors
    /// It cannot be read or is not a kernel for `arch`.
    pub(super) fn of(
        path: &Path,
        arch: Arch,
        cache: &Cache,
        say: &mut dyn FnMut(&str),
    ) -> Result<Self> {
        let shown = || path.display().to_string();
        let cannot = || format!("cannot read the kernel {}", path.display());
        let bytes = file::read(path, MOST_IMAGE).with_context(cannot)?;
        let form = Form::of(&bytes).with_context(shown)?;
        ensure!(
            form.arch() == arch,
            "{} is a kernel for {}, but the board is {arch}",
            path.display(),
            form.arch()
        );
        let release = form.release(&bytes).with_context(shown)?;
        let sha256 = sha256(&bytes);
        let path = match form {
            Form::BzImage => unpacked(path, &bytes, &sha256, cache, say)?,
            Form::Pvh | Form::Image | Form::ImageGz => path.to_owned(),
        };
        Ok(Self { path, sha256, release })
    }

    /// What QEMU is given.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn contents(&self) -> Result<Vec<u8>> {
        file::read(&self.path, MOST_IMAGE)
            .with_context(|| format!("cannot read the kernel {}", self.path.display()))
    }
}

/// The ELF file of a bzImage in the cache, or the bzImage itself if its payload cannot be booted.
fn unpacked(
    path: &Path,
    bytes: &[u8],
    sha256: &str,
    cache: &Cache,
    say: &mut dyn FnMut(&str),
) -> Result<PathBuf> {
    let vmlinux = cache.vmlinux(sha256);
    if vmlinux.exists() {
        return Ok(vmlinux);
    }
    match image::payload(bytes).with_context(|| path.display().to_string())? {
        Payload::Vmlinux(bytes) => {
            let writer = cache.writer(say)?;
            if !vmlinux.exists() {
                writer.keep_vmlinux(sha256, &bytes)?;
            }
            Ok(vmlinux)
        }
        Payload::Opaque(reason) => {
            say(&format!(
                "{} will unpack itself in the guest, which is slower: its payload is {reason}",
                path.display()
            ));
            Ok(path.to_owned())
        }
    }
}
