//! An initramfs archive (Documentation/driver-api/early-userspace/buffer-format.rst, format
//! "newc").
//!
//! The same content gives the same bytes: the archive has no times, owners or inodes of the
//! host. It is not compressed, because a guest takes longer to unpack it than to read it.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};

const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const CHARACTER_DEVICE: u32 = 0o020_000;

/// An archive that is being written.
#[derive(Debug)]
pub struct Initramfs {
    bytes: Vec<u8>,
    names: BTreeSet<String>,
    entries: u32,
}

impl Initramfs {
    /// An archive with `/dev/console`, which the kernel opens for init, and `/dev/null`.
    ///
    /// # Errors
    /// Does not fail for these names.
    pub fn new() -> Result<Self> {
        let mut archive = Self { bytes: Vec::new(), names: BTreeSet::new(), entries: 0 };
        archive.device("dev/console", 0o600, 5, 1)?;
        archive.device("dev/null", 0o666, 1, 3)?;
        Ok(archive)
    }

    /// Adds a directory (mode 0755) and its parents, unless they exist.
    ///
    /// # Errors
    /// The path is not relative and plain, or is a file.
    pub fn directory(&mut self, path: &str) -> Result<()> {
        check(path)?;
        for (end, _) in path.match_indices('/').chain([(path.len(), "")]) {
            let name = &path[..end];
            // A name that ends with a slash marks a directory already written.
            if self.names.contains(&format!("{name}/")) {
                continue;
            }
            self.add(name, DIRECTORY | 0o755, (0, 0), &[])?;
            self.names.insert(format!("{name}/"));
        }
        Ok(())
    }

    /// Adds a file with these permissions, and its parent directories.
    ///
    /// # Errors
    /// The path is not relative and plain, or exists; or the file has 4 GiB or more.
    pub fn file(&mut self, path: &str, permissions: u32, content: &[u8]) -> Result<()> {
        self.parents(path)?;
        self.add(path, REGULAR | permissions & 0o7777, (0, 0), content)
    }

    /// Adds a character device, and its parent directories.
    ///
    /// # Errors
    /// The path is not relative and plain, or exists.
    pub fn device(&mut self, path: &str, permissions: u32, major: u32, minor: u32) -> Result<()> {
        self.parents(path)?;
        self.add(path, CHARACTER_DEVICE | permissions & 0o7777, (major, minor), &[])
    }

    /// Finishes the archive and returns it, padded to blocks of 512 bytes.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, 0, (0, 0), 0);
        self.bytes.resize(self.bytes.len().next_multiple_of(512), 0);
        self.bytes
    }

    fn parents(&mut self, path: &str) -> Result<()> {
        check(path)?;
        path.rsplit_once('/').map_or(Ok(()), |(parent, _)| self.directory(parent))
    }

    fn add(&mut self, name: &str, mode: u32, device: (u32, u32), content: &[u8]) -> Result<()> {
        let size = u32::try_from(content.len())
            .with_context(|| format!("{name} in an initramfs: files have less than 4 GiB there"))?;
        ensure!(self.names.insert(name.to_owned()), "{name} is in the initramfs twice");
        self.entries += 1;
        self.entry(name, self.entries, mode, device, size);
        self.bytes.extend_from_slice(content);
        self.pad();
        Ok(())
    }

    fn entry(&mut self, name: &str, inode: u32, mode: u32, device: (u32, u32), size: u32) {
        // The correct count of a directory would need its subdirectories; the kernel reads the
        // field only for hard links of files.
        let links = 1;
        let name_size = u32::try_from(name.len() + 1).unwrap_or(u32::MAX);
        let (major, minor) = device;
        self.bytes.extend_from_slice(b"070701");
        // ino mode uid gid nlink mtime filesize devmajor devminor rdevmajor rdevminor
        // namesize check
        for field in [inode, mode, 0, 0, links, 0, size, 0, 0, major, minor, name_size, 0] {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

/// The kernel silently skips names of `PATH_MAX` or more (init/initramfs.c).
fn check(path: &str) -> Result<()> {
    let plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    ensure!(
        path.len() < 4095 && !path.contains('\0') && path.split('/').all(plain),
        "{path:?} in an initramfs: a path like dir/file, of less than 4095 bytes, is needed"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    use punctual_harness::{need, programs};

    #[derive(Debug, PartialEq)]
    struct Entry {
        name: String,
        mode: u32,
        device: (u32, u32),
        content: Vec<u8>,
    }

    /// Reads an archive as the kernel does.
    fn read(mut rest: &[u8]) -> Vec<Entry> {
        assert_eq!(rest.len() % 512, 0);
        let all = rest.len();
        let mut entries = Vec::new();
        loop {
            let field = |index: usize| {
                let digits = &rest[6 + 8 * index..14 + 8 * index];
                u32::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap()
            };
            assert_eq!(&rest[..6], b"070701");
            assert_eq!((field(2), field(3), field(5)), (0, 0, 0), "owner and time");
            let (size, name_size) = (field(6) as usize, field(11) as usize);
            assert_eq!(rest[110 + name_size - 1], 0);
            let name = String::from_utf8(rest[110..110 + name_size - 1].to_vec()).unwrap();
            let start = (110 + name_size).next_multiple_of(4);
            if name == "TRAILER!!!" {
                assert!(rest[start..].iter().all(|&byte| byte == 0));
                return entries;
            }
            entries.push(Entry {
                name,
                mode: field(1),
                device: (field(9), field(10)),
                content: rest[start..start + size].to_vec(),
            });
            assert_eq!(field(0) as usize, entries.len(), "inode");
            rest = &rest[start + size.next_multiple_of(4)..];
            assert_eq!((all - rest.len()) % 4, 0);
        }
    }

    fn sample() -> Vec<u8> {
        let mut archive = Initramfs::new().unwrap();
        archive.file("init", 0o755, b"\x7fELF and more").unwrap();
        archive.directory("proc").unwrap();
        archive.file("lib/modules/a.ko", 0o644, b"12345").unwrap();
        archive.directory("lib").unwrap();
        archive.finish()
    }

    #[test]
    fn what_was_added_reads_back_in_order() {
        let of = |name: &str, mode, device, content: &[u8]| Entry {
            name: name.to_owned(),
            mode,
            device,
            content: content.to_vec(),
        };
        let expected = [
            of("dev", 0o040_755, (0, 0), b""),
            of("dev/console", 0o020_600, (5, 1), b""),
            of("dev/null", 0o020_666, (1, 3), b""),
            of("init", 0o100_755, (0, 0), b"\x7fELF and more"),
            of("proc", 0o040_755, (0, 0), b""),
            of("lib", 0o040_755, (0, 0), b""),
            of("lib/modules", 0o040_755, (0, 0), b""),
            of("lib/modules/a.ko", 0o100_644, (0, 0), b"12345"),
        ];
        assert_eq!(read(&sample()), expected);
        assert_eq!(sample(), sample());
    }

    #[test]
    fn paths_that_would_go_elsewhere_are_refused() {
        let mut archive = Initramfs::new().unwrap();
        for path in ["", "/init", "a//b", "../a", "a/./b", "a/", "a\0b", &"a/".repeat(3000)] {
            assert!(archive.file(path, 0o644, b"").is_err(), "{path:?}");
        }
        archive.file("init", 0o755, b"").unwrap();
        let error = archive.file("init", 0o755, b"").unwrap_err().to_string();
        assert_eq!(error, "init is in the initramfs twice");
        assert!(archive.directory("init").is_err());
        assert!(archive.file("init/a", 0o644, b"").is_err());
        assert!(archive.file("dev", 0o644, b"").is_err());
    }

    #[test]
    fn cpio_reads_it() {
        need!(programs(&["cpio"]));
        let mut cpio = Command::new("cpio")
            .args(["--list", "--quiet"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        cpio.stdin.take().unwrap().write_all(&sample()).unwrap();
        let output = cpio.wait_with_output().unwrap();
        assert!(output.status.success());
        assert_eq!(
            String::from_utf8(output.stdout).unwrap(),
            "dev\ndev/console\ndev/null\ninit\nproc\nlib\nlib/modules\nlib/modules/a.ko\n"
        );
    }
}
