//! The file that QEMU boots for an image.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use punctual_core::hash::sha256;
use punctual_sys::file;

use super::blame::of_kernel;
use super::cache::Cache;
use super::image::{self, Form, Payload};
use super::sums::{self, Single};
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
    /// It cannot be read, is not a kernel for `arch`, or has changed since it was fetched.
    pub(super) fn of(
        path: &Path,
        arch: Arch,
        cache: &Cache,
        say: &mut dyn FnMut(&str),
    ) -> Result<Self> {
        let cannot = || format!("cannot read the kernel {}", path.display());
        let bytes = file::read(path, MOST_IMAGE).with_context(cannot).map_err(of_kernel)?;
        sums::check(path, &bytes)?;
        let (form, release) = identified(path, &bytes, arch).map_err(of_kernel)?;
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

/// What an image is, and the release that it states.
fn identified(path: &Path, bytes: &[u8], arch: Arch) -> Result<(Form, String)> {
    let shown = || path.display().to_string();
    let form = Form::of(bytes).with_context(shown)?;
    ensure!(
        form.arch() == arch,
        "{} is a kernel for {}, but the board is {arch}",
        path.display(),
        form.arch()
    );
    let release = form.release(bytes).with_context(shown)?;
    Ok((form, release))
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
    let before = sums::single(&vmlinux);
    if before == Single::Same {
        return Ok(vmlinux);
    }
    let payload = image::payload(bytes).with_context(|| path.display().to_string());
    match payload.map_err(of_kernel)? {
        Payload::Vmlinux(bytes) => {
            let is_payload = file::read(&vmlinux, MOST_IMAGE).is_ok_and(|kept| kept == bytes);
            if before == Single::Changed && !is_payload {
                say(&format!(
                    "{} has changed since it was unpacked, by its SHA-256; unpacking it anew",
                    vmlinux.display()
                ));
            }
            let writer = match cache.writer(say) {
                // One without a sum, in a cache that cannot be written.
                Err(_) if is_payload => return Ok(vmlinux),
                writer => writer?,
            };
            if sums::single(&vmlinux) != Single::Same {
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
