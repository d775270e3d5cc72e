//! The owner of a journal, and whether that process is still alive.

use std::fs;
use std::io;
use std::path::Path;

use punctual_core::hash::sha256;
use punctual_sys::file::read_text;
use punctual_sys::process::Pid;
use serde::{Deserialize, Serialize};

use super::folders::explained;
use crate::procfs::Stat;

/// Larger files are no identity of a machine.
const MAX_IDENTITY_BYTES: u64 = 4096;

/// The process that wrote a journal, as in its first line. The start time distinguishes it
/// from a later process with the same PID.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Owner {
    /// Process ID.
    pub pid: u32,
    /// Start of the process in ticks since boot (field 22 of `/proc/PID/stat`).
    pub start: u64,
    /// ID of the boot; a reboot undoes settings and cgroups.
    pub boot_id: String,
    /// Its PID namespace; the PID means nothing in another one.
    pub pid_namespace: String,
    /// Its machine: several may share a file system. Empty if that is not known.
    #[serde(default)]
    pub machine: String,
}

impl Owner {
    /// This process.
    pub fn this() -> io::Result<Self> {
        let pid = std::process::id();
        let stat = stat(pid).ok_or_else(|| unread(Path::new("/proc/self/stat")))?;
        let start = stat.start_ticks;
        let (boot_id, pid_namespace) = (boot_id(), pid_namespace());
        Ok(Self { pid, start, boot_id, pid_namespace, machine: this_machine() })
    }

    /// The owner as told by a journal's file name, for when the first line is damaged.
    pub fn from_name(name: &str) -> Option<Self> {
        let (pid, start) = name.strip_suffix(".journal")?.split_once('-')?;
        Some(Self {
            pid: pid.parse().ok()?,
            start: start.parse().ok()?,
            boot_id: boot_id(),
            pid_namespace: pid_namespace(),
            machine: this_machine(),
        })
    }

    /// Whether it is the same process.
    pub fn is_same_process(&self, other: &Self) -> bool {
        let of = |owner: &Self| (owner.identity(), owner.boot_id.clone());
        of(self) == of(other) && self.pid_namespace == other.pid_namespace
    }

    /// Whether what this process has marked is what the other has made.
    pub fn made_what_is_of(&self, other: &Self) -> bool {
        (self.identity(), &self.machine) == (other.identity(), &other.machine)
    }

    /// The identity that names the journal and marks scratch folders.
    pub fn identity(&self) -> String {
        format!("{}-{}", self.pid, self.start)
    }

    /// The name of its journal.
    pub fn file_name(&self) -> String {
        format!("{}.journal", self.identity())
    }

    /// Whether the machine has not been rebooted since.
    pub fn same_boot(&self) -> bool {
        self.boot_id == boot_id()
    }

    /// Whether it certainly ran on this machine.
    pub fn same_machine(&self) -> bool {
        self.same_boot() || (!self.machine.is_empty() && self.machine == this_machine())
    }

    /// Whether its PID can be looked up here.
    pub fn same_namespace(&self) -> bool {
        self.pid_namespace == pid_namespace()
    }

    /// Whether the process is still running; a zombie is not.
    pub fn lives(&self) -> bool {
        let is_this = |stat: Stat| stat.start_ticks == self.start && !stat.ended;
        self.same_boot() && stat(self.pid).is_some_and(is_this)
    }
}

/// Why a file of /proc cannot be read, and what to do.
fn unread(file: &Path) -> io::Error {
    match fs::read(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => io::Error::new(
            error.kind(),
            format!("{} is not there: mount /proc, which punctual needs", file.display()),
        ),
        Err(error) => explained(&error, "cannot read", file),
        Ok(_) => io::Error::other(format!("{} is not in the kernel's form", file.display())),
    }
}

fn stat(pid: u32) -> Option<Stat> {
    Stat::read(Path::new("/proc"), Pid::try_from(pid).ok()?)
}

fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    text.unwrap_or_default().trim().to_owned()
}

/// Files of which each tells one machine from all others, and does so after a reboot too.
const MACHINES: [&str; 4] = [
    "etc/machine-id",
    "var/lib/dbus/machine-id",
    "proc/device-tree/serial-number",
    "sys/class/dmi/id/product_uuid",
];

/// This machine as [`Owner::machine`] names it.
pub(super) fn this_machine() -> String {
    machine(Path::new("/"))
}

/// A hash of the first identity that there is, because machine-id(5) asks that the identity
/// itself be shown to nobody. Empty if there is none.
fn machine(root: &Path) -> String {
    let identity = MACHINES.iter().find_map(|file| {
        let text = read_text(&root.join(file), MAX_IDENTITY_BYTES).ok()?;
        let text = text.trim_matches(|c: char| c == '\0' || c.is_whitespace());
        // machine-id(5): what an image has until its first boot.
        (!text.is_empty() && text != "uninitialized").then(|| text.to_owned())
    });
    let hashed = |text: String| sha256(format!("punctual {text}").as_bytes());
    identity.map_or_else(String::new, |text| hashed(text)[..32].to_owned())
}

fn pid_namespace() -> String {
    let link = fs::read_link("/proc/self/ns/pid");
    link.unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_its_successor_does_not() {
        let this = Owner::this().unwrap();
        assert!(this.lives() && this.same_boot() && this.same_namespace());
        assert_eq!(Owner::from_name(&this.file_name()), Some(this.clone()));
        let reused = Owner { start: this.start + 1, ..this.clone() };
        assert!(!reused.lives());
        let before_reboot = Owner { boot_id: "other".to_owned(), ..this };
        assert!(!before_reboot.lives());
    }

    #[test]
    fn a_machine_is_known_by_the_first_identity_that_it_has() {
        let root = std::env::temp_dir().join(format!("punctual-machine-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        assert_eq!(machine(&root), "");
        let mut seen = Vec::new();
        for (file, text) in MACHINES.iter().zip(["a\n", "b", "c\0", "d"]).rev() {
            fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            fs::write(root.join(file), "uninitialized\n").unwrap();
            assert_eq!(machine(&root), seen.last().cloned().unwrap_or_default(), "{file}");
            fs::write(root.join(file), text).unwrap();
            seen.push(machine(&root));
        }
        seen.dedup();
        assert_eq!(seen.len(), 4, "each hides those after it: {seen:?}");
        assert!(seen.iter().all(|hash| hash.len() == 32));
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn a_reboot_leaves_the_machine_the_same_only_if_it_is_known() {
        let known = Owner { machine: "a".repeat(32), ..Owner::this().unwrap() };
        assert!(known.same_machine(), "it runs since this boot");
        let earlier = |machine: &str| Owner {
            boot_id: "earlier".to_owned(),
            machine: machine.to_owned(),
            ..known.clone()
        };
        assert!(!earlier("").same_machine() && !earlier(&known.machine).same_machine());
        let this = this_machine();
        assert_eq!(earlier(&this).same_machine(), !this.is_empty());
    }

    #[test]
    fn only_a_proc_that_is_missing_is_to_be_mounted() {
        let said = |path: &str| unread(Path::new(path)).to_string();
        assert!(
            said("/nonexistent/stat").ends_with("is not there: mount /proc, which punctual needs")
        );
        assert_eq!(said("/proc"), "cannot read /proc: Is a directory");
    }

    #[test]
    fn names_that_are_no_journals() {
        for name in ["", "1-2", "a-b.journal", "1.journal", "-1-2.journal"] {
            assert_eq!(Owner::from_name(name), None, "{name}");
        }
    }
}
