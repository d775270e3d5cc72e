//! The emulator that runs boards, as installed on this machine.

use std::env;
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail, ensure};
use punctual_core::hash::sha256;
use punctual_sys::file;

use crate::arch::Arch;
use crate::firmware;

/// The oldest QEMU that supports what boards need: semihosting from user space.
const OLDEST: Version = (7, 2);

/// Features of x86 CPUs by which the kernel clears and copies whole pages with one string
/// instruction of bytes. Counted time has every byte of it as an instruction of its own: a
/// page would take 4096, eight times as many as by words, which no real CPU does.
const BYTEWISE: [&str; 5] = ["erms", "fsrm", "fzrm", "fsrs", "fsrc"];

/// No QEMU is larger, bytes.
const MOST: u64 = 1 << 30;

/// An installed QEMU for boards of one architecture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emulator {
    /// The program.
    pub program: PathBuf,
    /// Its version, such as `7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)`.
    pub version: String,
    /// SHA-256 of the program; `None` if it cannot be read.
    pub sha256: Option<String>,
    /// The CPU of its boards, as for `-cpu`.
    pub cpu: String,
    /// SHA-256 of the firmware of its boards; `None` if they have none.
    pub firmware_sha256: Option<String>,
}

impl Emulator {
    /// The named QEMU, otherwise the newest in the folders of `PATH`; or the newest one of the
    /// version `best`, if there is any.
    ///
    /// # Errors
    /// There is none, it is older than 7.2, or it does not print a version.
    pub fn find(arch: Arch, named: Option<&Path>, best: Option<Version>) -> Result<Self> {
        let (name, _) = program_and_package(arch);
        let found: Vec<PathBuf> = match named {
            Some(named) => vec![named.to_owned()],
            None => {
                let path = env::var_os("PATH").unwrap_or_default();
                env::split_paths(&path).map(|folder| folder.join(name)).collect()
            }
        };
        Self::of(arch, found, named.is_some(), best)
    }

    /// The best of these programs; all that are not there may be, except if one was named.
    fn of(arch: Arch, found: Vec<PathBuf>, is_named: bool, best: Option<Version>) -> Result<Self> {
        let (name, package) = program_and_package(arch);
        let mut newest: Option<(Version, PathBuf, String)> = None;
        let mut refused = None;
        for program in found {
            match version(&program) {
                // Of two equal ones the first in PATH, as everywhere.
                Ok(Some((number, text))) => {
                    let rank = |number: Version| (best == Some(number), number);
                    if newest.as_ref().is_none_or(|(known, ..)| rank(number) > rank(*known)) {
                        newest = Some((number, program, text));
                    }
                }
                Ok(None) if is_named => {
                    bail!("--qemu {}: no such program", program.display())
                }
                Ok(None) => {}
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        let Some((_, program, version)) = newest else {
            return Err(refused.unwrap_or_else(|| {
                anyhow!(
                    "there is no {name} on this machine: install it (on Debian: apt-get install \
                     --no-install-recommends {package}), or name one with --qemu"
                )
            }));
        };
        let cpu = match arch {
            Arch::X86_64 => x86_64_cpu(&help(&program)?),
            Arch::Aarch64 => "cortex-a53".to_owned(),
        };
        let firmware_sha256 = firmware::hash(&program, arch)?;
        let sha256 = file::read(&program, MOST).ok().map(|bytes| sha256(&bytes));
        Ok(Self { program, version, sha256, cpu, firmware_sha256 })
    }

    /// Its version, to compare.
    pub(crate) fn number(&self) -> Version {
        number(&self.version)
    }
}

/// The emulator's name for an architecture, and the Debian package that provides it.
fn program_and_package(arch: Arch) -> (&'static str, &'static str) {
    match arch {
        Arch::X86_64 => ("qemu-system-x86_64", "qemu-system-x86"),
        Arch::Aarch64 => ("qemu-system-aarch64", "qemu-system-arm"),
    }
}

/// Major and minor number.
pub type Version = (u32, u32);

/// The number in a version of QEMU; 0 for what is none.
#[must_use]
pub fn number(version: &str) -> Version {
    let mut numbers = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Its version, if it exists.
///
/// # Errors
/// It cannot be started, or is too old.
fn version(program: &Path) -> Result<Option<(Version, String)>> {
    match Command::new(program).arg("--version").stdin(Stdio::null()).output() {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            checked(&program.display().to_string(), &text).map(Some)
        }
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(error).context(format!("cannot start {}", program.display())),
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// What it prints about its CPUs.
fn help(program: &Path) -> Result<String> {
    let output = Command::new(program).args(["-cpu", "help"]).stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot start {}", program.display()))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// All that this QEMU emulates except [`BYTEWISE`]; it refuses names of features that it does
/// not know.
fn x86_64_cpu(help: &str) -> String {
    let mut cpu = "max".to_owned();
    for feature in BYTEWISE.iter().filter(|feature| help.split_whitespace().any(|w| w == **feature))
    {
        let _ = write!(cpu, ",-{feature}");
    }
    cpu
}

/// The version in what `--version` prints, if it is new enough.
fn checked(program: &str, text: &str) -> Result<(Version, String)> {
    let version = text.lines().next().and_then(|line| line.split("version ").nth(1));
    let version = version.ok_or_else(|| anyhow!("{program} --version prints no version"))?;
    let number = number(version);
    ensure!(
        number >= OLDEST,
        "{program} {version} is too old: version {}.{} or newer is needed",
        OLDEST.0,
        OLDEST.1
    );
    Ok((number, version.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn versions_are_read_and_old_ones_refused() {
        let of = |version: &str| format!("QEMU emulator version {version}\nCopyright (c)\n");
        for version in ["7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)", "10.0.2", "7.2"] {
            assert_eq!(checked("qemu", &of(version)).unwrap().1, version);
        }
        for version in ["7.1.9", "6.2.0 (Debian)", "x"] {
            let error = checked("qemu", &of(version)).unwrap_err().to_string();
            assert!(error.contains("7.2 or newer"), "{error}");
        }
        assert!(checked("qemu", "").unwrap_err().to_string().ends_with("no version"));
    }

    #[test]
    fn no_cpu_of_a_board_counts_strings_by_the_byte() {
        let help = "x86 max\n\nRecognized CPUID flags:\n  3dnow erms fsgsbase fsrm\n  xsave\n";
        assert_eq!(x86_64_cpu(help), "max,-erms,-fsrm");
        assert_eq!(x86_64_cpu("fsrmx nofsrm"), "max");
    }

    #[test]
    fn the_newest_of_path_is_taken_and_a_named_one_before_it() {
        let folder = env::temp_dir().join(format!("punctual-qemu-{}", std::process::id()));
        let fake = |name: &str, version: &str| {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, format!("#!/bin/sh\necho \"QEMU emulator version {version}\"\n"))
                .unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            path
        };
        let old = fake("old", "6.2.0");
        let new = fake("new", "10.0.2 (Debian)");
        let found = Emulator::find(Arch::X86_64, Some(&new), None).unwrap();
        assert_eq!((found.version.as_str(), found.cpu.as_str()), ("10.0.2 (Debian)", "max"));
        let all = ["wanted", "newer", "new"].map(|name| folder.join(name)).to_vec();
        fake("wanted", "7.2.22");
        fake("newer", "11.0.1");
        let of = |best| Emulator::of(Arch::X86_64, all.clone(), false, best).unwrap().version;
        assert_eq!((of(None), of(Some((7, 2)))), ("11.0.1".to_owned(), "7.2.22".to_owned()));
        assert_eq!(of(Some((8, 2))), "11.0.1", "there is no 8.2");
        let error = Emulator::find(Arch::X86_64, Some(&old), None).unwrap_err().to_string();
        assert!(error.contains("7.2 or newer"), "{error}");
        let error = Emulator::find(Arch::X86_64, Some(&folder.join("none")), None).unwrap_err();
        assert!(error.to_string().starts_with("--qemu"), "{error}");
        fs::remove_dir_all(folder).unwrap();
    }
}
