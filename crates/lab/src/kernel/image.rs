//! Kernel images: what kind a file is, and the ELF file in an x86 one
//! (Documentation/arch/x86/boot.rst, Documentation/arch/arm64/booting.rst).
//!
//! Most of an emulated boot is the kernel unpacking itself. If the kernel has a PVH entry
//! (CONFIG_PVH), QEMU boots the unpacked ELF file instead.

use anyhow::{Context, Result, bail, ensure};

use crate::arch::Arch;
use crate::decompress::{Compression, MOST};
use crate::elf::{AARCH64, Elf, X86_64, text_at, u16_at, u32_at};

/// `XEN_ELFNOTE_PHYS32_ENTRY`: the entry of a PVH boot (include/xen/interface/elfnote.h).
const PVH_ENTRY: u32 = 18;

/// The first boot protocol whose header has the offset of the payload.
const PROTOCOL_WITH_PAYLOAD: u16 = 0x0208;

/// The kind of an image file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// An x86 bzImage, often called vmlinuz.
    BzImage,
    /// An x86 ELF file with a PVH entry.
    Pvh,
    /// An arm64 Image.
    Image,
    /// An arm64 Image compressed by gzip.
    ImageGz,
}

impl Form {
    /// Recognises the kind of an image.
    ///
    /// # Errors
    /// It is not a kernel that QEMU boots; the text says what it is instead.
    pub fn of(bytes: &[u8]) -> Result<Self> {
        if bytes.get(0x202..0x206) == Some(b"HdrS") {
            return Ok(Self::BzImage);
        }
        if let Some(elf) = Elf::read(bytes) {
            match elf.machine {
                X86_64 if elf.has_note(b"Xen", PVH_ENTRY) => return Ok(Self::Pvh),
                X86_64 => bail!(
                    "an ELF file without a PVH entry, which QEMU cannot boot: use the bzImage, \
                     or build the kernel with CONFIG_PVH=y"
                ),
                AARCH64 => bail!(
                    "an arm64 ELF file, which QEMU cannot boot: use arch/arm64/boot/Image instead"
                ),
                machine => bail!("an ELF file for machine {machine}, neither x86_64 nor aarch64"),
            }
        }
        if is_arm64_image(bytes) {
            return Ok(Self::Image);
        }
        if Compression::of(bytes) == Some(Compression::Gzip)
            && is_arm64_image(&Compression::Gzip.unpack(bytes, MOST)?)
        {
            return Ok(Self::ImageGz);
        }
        bail!("neither a bzImage, nor an arm64 Image, nor a vmlinux ELF file")
    }

    /// The architecture of kernels of this form.
    #[must_use]
    pub const fn arch(self) -> Arch {
        match self {
            Self::BzImage | Self::Pvh => Arch::X86_64,
            Self::Image | Self::ImageGz => Arch::Aarch64,
        }
    }

    /// The release that the image states, as `uname -r` prints it.
    ///
    /// # Errors
    /// It is not in the usual place.
    pub fn release(self, bytes: &[u8]) -> Result<String> {
        let release = match self {
            Self::BzImage => release_in_header(bytes),
            Self::Pvh | Self::Image => release_in_banner(bytes),
            Self::ImageGz => release_in_banner(&Compression::Gzip.unpack(bytes, MOST)?),
        };
        release.context("it does not contain its release: is it a Linux kernel?")
    }
}

fn is_arm64_image(bytes: &[u8]) -> bool {
    bytes.get(56..60) == Some(b"ARM\x64")
}

/// `kernel_version` in the setup header.
fn release_in_header(bytes: &[u8]) -> Option<String> {
    let at = usize::from(u16_at(bytes, 0x20e)?).checked_add(0x200)?;
    first_word(bytes.get(at..)?)
}

/// `linux_banner`, the first line that a kernel prints.
fn release_in_banner(bytes: &[u8]) -> Option<String> {
    const BANNER: &[u8] = b"Linux version ";
    let mut rest = bytes;
    // Others only begin like it, such as the format string of /proc/version.
    loop {
        let at = rest.windows(BANNER.len()).position(|window| window == BANNER)?;
        rest = &rest[at + BANNER.len()..];
        if rest.first()?.is_ascii_digit() {
            return first_word(rest);
        }
    }
}

fn first_word(bytes: &[u8]) -> Option<String> {
    // __NEW_UTS_LEN, the longest release that uname returns.
    let word = text_at(&bytes[..bytes.len().min(65)]).split(|&byte| byte == b' ').next()?;
    let is_release = !word.is_empty() && word.len() <= 64 && word.iter().all(u8::is_ascii_graphic);
    is_release.then(|| String::from_utf8_lossy(word).into_owned())
}

/// The payload of a bzImage.
#[derive(Debug, PartialEq, Eq)]
pub enum Payload {
    /// The kernel, an ELF file with a PVH entry.
    Vmlinux(Vec<u8>),
    /// Something that QEMU cannot boot directly; the text completes `its payload is …`.
    Opaque(&'static str),
}

/// Unpacks the kernel in a bzImage.
///
/// # Errors
/// The file is cut short, its header points outside of it or its payload is damaged.
pub fn payload(image: &[u8]) -> Result<Payload> {
    let cut_short = "cut short within the setup header";
    ensure!(image.get(0x202..0x206) == Some(b"HdrS"), "no bzImage: HdrS is not at 0x202");
    if u16_at(image, 0x206).context(cut_short)? < PROTOCOL_WITH_PAYLOAD {
        return Ok(Payload::Opaque("in a kernel before 2.6.26, whose header does not say where"));
    }
    // 0 means 4, for compatibility with very old boot loaders.
    let setup_sectors = match *image.get(0x1f1).context(cut_short)? {
        0 => 4,
        sectors => usize::from(sectors),
    };
    let at =
        |field| -> Result<usize> { Ok(usize::try_from(u32_at(image, field).context(cut_short)?)?) };
    let (offset, length) = (at(0x248)?, at(0x24c)?);
    let packed = ((setup_sectors + 1) * 512)
        .checked_add(offset)
        .and_then(|start| image.get(start..start.checked_add(length)?))
        .with_context(|| {
            format!("its payload, {length} bytes at {offset}, is not within its {}", image.len())
        })?;
    let Some(compression) = Compression::of(packed) else {
        return Ok(Payload::Opaque(other_compression(packed)));
    };
    // The kernel's build appends the unpacked size to every payload (mkpiggy.c).
    let size = packed.last_chunk().map_or(0, |&size| u32::from_le_bytes(size));
    ensure!(
        u64::from(size) <= MOST,
        "its payload claims to unpack to {size} bytes, which is too many"
    );
    let vmlinux = compression.unpack(packed, size.into()).context("cannot unpack its payload")?;
    ensure!(
        u32::try_from(vmlinux.len()) == Ok(size),
        "its payload unpacks to {} bytes, but claims {size}",
        vmlinux.len()
    );
    let Some(elf) = Elf::read(&vmlinux).filter(|elf| elf.machine == X86_64) else {
        return Ok(Payload::Opaque("no 64-bit kernel"));
    };
    if !elf.has_note(b"Xen", PVH_ENTRY) {
        return Ok(Payload::Opaque("a kernel without a PVH entry (CONFIG_PVH)"));
    }
    Ok(Payload::Vmlinux(vmlinux))
}

/// Magic numbers from scripts/extract-vmlinux.
fn other_compression(packed: &[u8]) -> &'static str {
    match packed {
        [0x02, 0x21, 0x4c, 0x18, ..] => "compressed with lz4, which punctual cannot unpack",
        [b'B', b'Z', b'h', ..] => "compressed with bzip2, which punctual cannot unpack",
        [0x89, b'L', b'Z', b'O', ..] => "compressed with lzo, which punctual cannot unpack",
        [0x5d, 0, 0, ..] => "compressed with lzma, which punctual cannot unpack",
        _ => "compressed in an unknown way",
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::decompress::tests::{XZ, ZSTD, gzip};
    use crate::elf::tests::{file, note};

    pub(crate) fn vmlinux() -> Vec<u8> {
        let mut bytes = file(X86_64, "", &note("Xen", 18, &[0; 8]));
        bytes.extend_from_slice(b"Linux version %s\0Linux version 6.1.0-56-amd64 (x@y)\0");
        bytes
    }

    /// A bzImage of four sectors of setup and this payload.
    pub(crate) fn bz_image(payload: &[u8]) -> Vec<u8> {
        let mut image = vec![0_u8; 5 * 512];
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x206..0x208].copy_from_slice(&0x20f_u16.to_le_bytes());
        image[0x20e..0x210].copy_from_slice(&0x300_u16.to_le_bytes());
        image[0x500..0x500 + 21].copy_from_slice(b"6.1.0-56-amd64 (x@y) ");
        image[0x248..0x24c].copy_from_slice(&16_u32.to_le_bytes());
        image[0x24c..0x250].copy_from_slice(&u32::try_from(payload.len()).unwrap().to_le_bytes());
        image.extend_from_slice(&[0x90; 16]);
        image.extend_from_slice(payload);
        image.extend_from_slice(&[0x90; 16]);
        image
    }

    pub(crate) fn arm64_image() -> Vec<u8> {
        let mut image = vec![0_u8; 64];
        image[56..60].copy_from_slice(b"ARM\x64");
        image.extend_from_slice(b"Linux version 6.1.0-56-arm64 (x@y)\0");
        image
    }

    #[test]
    fn forms_are_told_apart_and_say_their_release() {
        for (bytes, form, release) in [
            (bz_image(b""), Form::BzImage, "6.1.0-56-amd64"),
            (vmlinux(), Form::Pvh, "6.1.0-56-amd64"),
            (arm64_image(), Form::Image, "6.1.0-56-arm64"),
            (gzip(&arm64_image()), Form::ImageGz, "6.1.0-56-arm64"),
        ] {
            assert_eq!(Form::of(&bytes).unwrap(), form);
            assert_eq!(form.release(&bytes).unwrap(), release);
        }
    }

    #[test]
    fn what_does_not_boot_is_refused_with_its_reason() {
        for (bytes, reason) in [
            (file(X86_64, "", &note("GNU", 3, b"1234")), "without a PVH entry"),
            (file(AARCH64, "", b""), "arch/arm64/boot/Image"),
            (file(243, "", b""), "machine 243"),
            (gzip(b"text"), "neither"),
            (b"#!/bin/sh".to_vec(), "neither"),
            (Vec::new(), "neither"),
        ] {
            let error = Form::of(&bytes).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
        assert!(Form::BzImage.release(&[0; 0x210]).is_err());
    }

    #[test]
    fn the_kernel_in_a_bz_image_is_unpacked() {
        let packed = gzip(&vmlinux());
        assert_eq!(payload(&bz_image(&packed)).unwrap(), Payload::Vmlinux(vmlinux()));
        // Debian's are of xz, with the size after the stream.
        let packed = [XZ, &27_u32.to_le_bytes()].concat();
        assert_eq!(payload(&bz_image(&packed)).unwrap(), Payload::Opaque("no 64-bit kernel"));
        let packed = [ZSTD, &27_u32.to_le_bytes()].concat();
        assert_eq!(payload(&bz_image(&packed)).unwrap(), Payload::Opaque("no 64-bit kernel"));
    }

    #[test]
    fn what_cannot_be_unpacked_boots_as_it_is() {
        let no_pvh = file(X86_64, "", b"");
        for (packed, reason) in [
            (&b"\x02\x21\x4c\x18...."[..], "lz4"),
            (b"BZh9....", "bzip2"),
            (b"\x89LZO....", "lzo"),
            (b"\x5d\0\0....", "lzma"),
            (b"", "unknown"),
            (&gzip(&no_pvh), "CONFIG_PVH"),
        ] {
            let Payload::Opaque(text) = payload(&bz_image(packed)).unwrap() else {
                panic!("{reason}");
            };
            assert!(text.contains(reason), "{text}");
        }
    }

    #[test]
    fn damage_is_refused() {
        let image = bz_image(&gzip(&vmlinux()));
        for length in 0..image.len() - 16 {
            assert!(payload(&image[..length]).is_err(), "{length}");
        }
        let mut wrong_size = gzip(&vmlinux());
        wrong_size.extend_from_slice(&[1, 0, 0, 0]);
        let error = format!("{:#}", payload(&bz_image(&wrong_size)).unwrap_err());
        assert!(error.ends_with("it unpacks to more than 1 bytes"), "{error}");
        wrong_size.extend_from_slice(&[0, 0, 1, 0]);
        let error = payload(&bz_image(&wrong_size)).unwrap_err().to_string();
        assert!(error.ends_with("bytes, but claims 65536"), "{error}");
        wrong_size.extend_from_slice(&[0xff; 4]);
        let error = payload(&bz_image(&wrong_size)).unwrap_err().to_string();
        assert!(error.contains("too many"), "{error}");
        let mut far = bz_image(&gzip(&vmlinux()));
        far[0x24c..0x250].fill(0xff);
        assert!(payload(&far).unwrap_err().to_string().contains("not within"));
    }
}
