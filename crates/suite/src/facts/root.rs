//! The source of facts: the live machine or a tree of files.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use punctual_sys::affinity::{self, CpuSet};
use punctual_sys::clock::Clock;
use punctual_sys::system;

/// Cap on the size of a file, since a root folder may contain anything. The largest real one
/// is `/proc/interrupts`, about 2 MB with 512 CPUs.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// What is in no file: read by system calls and instructions on the live machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Native {
    /// Names of the running kernel.
    pub uname: Option<system::Uname>,
    /// The signature in CPUID leaf 0x4000_0000, on x86 under a hypervisor.
    pub hypervisor_signature: Option<String>,
    /// What CPUID tells of model and features, on x86.
    pub cpuid: Vec<String>,
    /// Resolution of the kernel's timers, ns; 1 with high-resolution timers.
    pub timer_resolution_ns: Option<u64>,
    /// CPUs that this thread may use (sched_getaffinity(2)), however little is mounted.
    pub allowed: Option<CpuSet>,
}

/// A root folder with `proc` and `sys` below it.
///
/// Readers never fail: what is missing, unreadable or not text is `None`.
#[derive(Debug, Clone)]
pub struct FactsRoot {
    folder: PathBuf,
    native: Native,
}

impl FactsRoot {
    /// The machine that this program runs on.
    #[must_use]
    pub fn live() -> Self {
        Self::new(
            Path::new("/"),
            Native {
                uname: system::uname().ok(),
                hypervisor_signature: system::hypervisor_signature(),
                cpuid: system::cpuid(),
                timer_resolution_ns: Clock::Monotonic.resolution_ns().ok(),
                allowed: affinity::get().ok(),
            },
        )
    }

    /// A tree of files copied from a machine, with the values that files do not tell.
    #[must_use]
    pub fn new(folder: &Path, native: Native) -> Self {
        Self { folder: folder.to_owned(), native }
    }

    /// The values that files do not tell.
    #[must_use]
    pub fn native(&self) -> &Native {
        &self.native
    }

    /// A path below the root folder.
    #[must_use]
    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.join(path.trim_start_matches('/'))
    }

    /// The bytes of a file.
    #[must_use]
    pub fn bytes(&self, path: &str) -> Option<Vec<u8>> {
        let file = fs::File::open(self.path(path)).ok()?;
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// The text of a file, trimmed of white space and NULs; `None` if nothing remains.
    #[must_use]
    pub fn text(&self, path: &str) -> Option<String> {
        let bytes = self.bytes(path)?;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// The number in a file.
    #[must_use]
    pub fn number<T: std::str::FromStr>(&self, path: &str) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    /// Whether a file says yes, such as `1` or `Y`.
    #[must_use]
    pub fn flag(&self, path: &str) -> Option<bool> {
        match self.text(path)?.as_str() {
            "1" | "Y" | "y" | "on" => Some(true),
            "0" | "N" | "n" | "off" => Some(false),
            _ => None,
        }
    }

    /// Whether this path exists.
    #[must_use]
    pub fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// The target of a symbolic link, as text.
    #[must_use]
    pub fn link(&self, path: &str) -> Option<String> {
        fs::read_link(self.path(path)).ok()?.into_os_string().into_string().ok()
    }

    /// Names in a folder, sorted; empty if it cannot be listed.
    #[must_use]
    pub fn list(&self, path: &str) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.path(path))
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    /// Numbers of the entries of a folder that are named `prefix` plus a number, such as 0 and
    /// 1 for `cpu0` and `cpu1`; ascending.
    #[must_use]
    pub fn numbered(&self, path: &str, prefix: &str) -> Vec<u32> {
        let mut numbers: Vec<u32> = self
            .list(path)
            .iter()
            .filter_map(|name| name.strip_prefix(prefix)?.parse().ok())
            .collect();
        numbers.sort_unstable();
        numbers
    }
}

/// The active word of a file that lists all choices, such as `always [madvise] never` or `none
/// (full)`; `None` if no word is marked.
#[must_use]
pub fn marked_word(text: &str) -> Option<&str> {
    text.split_whitespace().find_map(|word| {
        let bracketed = word.strip_prefix('[').and_then(|w| w.strip_suffix(']'));
        bracketed.or_else(|| word.strip_prefix('(').and_then(|w| w.strip_suffix(')')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marked_words() {
        assert_eq!(marked_word("always [madvise] never"), Some("madvise"));
        assert_eq!(marked_word("none voluntary (full)"), Some("full"));
        assert_eq!(marked_word("always madvise"), None);
        assert_eq!(marked_word("[] ()"), Some(""));
    }

    #[test]
    fn what_is_missing_is_absent() {
        let root = FactsRoot::new(Path::new("/nonexistent"), Native::default());
        assert_eq!(root.text("proc/cpuinfo"), None);
        assert_eq!(root.number::<u32>("proc/uptime"), None);
        assert!(root.list("sys").is_empty());
        assert!(!root.exists("proc"));
    }
}
