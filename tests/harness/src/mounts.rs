//! Mounts of a test, and a mount namespace in which no other's are.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::ended::end_of;

/// A mount namespace that no mount of the machine reaches any more, held by a process of
/// its own. Needs root.
#[derive(Debug)]
pub struct Namespace(Child);

impl Namespace {
    /// # Panics
    /// If the kernel gives none.
    pub(crate) fn new() -> Self {
        // It ends with the test, however that ends: nobody writes to it any more.
        let mut child = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c", "echo held; exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said, "held\n", "unshare --mount: {:?}", child.wait());
        Self(child)
    }

    /// What is mounted in it, one line for each mount.
    pub fn mounts(&self) -> Vec<String> {
        let path = format!("/proc/{}/mountinfo", self.0.id());
        fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
    }

    /// Starts, within it and in a folder, the program that is given as next argument.
    /// Its process is the one that is started.
    pub fn enter(&self, folder: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--mount=/proc/{}/ns/mnt", self.0.id()));
        // To enter changes to the namespace's root.
        command.args(["sh", "-c", "cd \"$0\" && exec \"$@\""]).arg(folder);
        command
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A file system in memory on a folder of a test, unmounted at its end. Needs root.
#[derive(Debug)]
pub struct Tmpfs(PathBuf);

impl Tmpfs {
    /// Makes the folder and mounts on it; a size such as `1m`.
    pub fn mount(on: &Path, size: &str) -> Self {
        fs::create_dir(on).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "punctual-test"]).arg(on);
        let _ = end_of(mount).with(0);
        Self(on.to_owned())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Leaves not one page free; once more if some have become free since.
    pub fn fill(&self) {
        use std::io::Write;
        let filler = self.0.join("filler");
        let mut file = fs::File::options().create(true).append(true).open(filler).unwrap();
        while file.write_all(&[0; 4_096]).is_ok() {}
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        // Lazily, if a process of a failed test still has a file open in it.
        for option in [&[][..], &["--lazy"]] {
            let mut unmount = Command::new("umount");
            unmount.args(option).arg(&self.0);
            if end_of(unmount).status == Some(0) {
                return;
            }
        }
    }
}
