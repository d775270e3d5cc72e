//! The emulator that runs boards, as installed on this machine.

use std::io;
use std::process::{Command, Stdio};

use anyhow::{Context, anyhow, bail, ensure};

use crate::arch::Arch;

/// The oldest QEMU that supports what boards need: semihosting from user space.
const OLDEST: (u32, u32) = (7, 2);

/// The emulator for an architecture, and the Debian package that provides it.
#[must_use]
pub fn emulator(arch: Arch) -> (&'static str, &'static str) {
    match arch {
        Arch::X86_64 => ("qemu-system-x86_64", "qemu-system-x86"),
        Arch::Aarch64 => ("qemu-system-aarch64", "qemu-system-arm"),
    }
}

/// Version of the emulator, such as `7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)`.
///
/// # Errors
/// It is not installed, is older than 7.2, or does not print a version.
pub fn emulator_version(arch: Arch) -> anyhow::Result<String> {
    let (program, package) = emulator(arch);
    let output = match Command::new(program).arg("--version").stdin(Stdio::null()).output() {
        Ok(output) => output,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            bail!(
                "there is no {program} on this machine: install it (on Debian: apt-get install \
                 --no-install-recommends {package})"
            )
        }
        Err(error) => return Err(error).context(format!("cannot start {program}")),
    };
    checked(program, &String::from_utf8_lossy(&output.stdout))
}

/// The version in what `--version` prints, if it is new enough.
fn checked(program: &str, text: &str) -> anyhow::Result<String> {
    let version = text.lines().next().and_then(|line| line.split("version ").nth(1));
    let version = version.ok_or_else(|| anyhow!("{program} --version prints no version"))?;
    let mut numbers = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let number = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    ensure!(
        number >= OLDEST,
        "{program} {version} is too old: version {}.{} or newer is needed",
        OLDEST.0,
        OLDEST.1
    );
    Ok(version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_old_ones_refused() {
        let of = |version: &str| format!("QEMU emulator version {version}\nCopyright (c)\n");
        for version in ["7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)", "10.0.2", "7.2"] {
            assert_eq!(checked("qemu", &of(version)).unwrap(), version);
        }
        for version in ["7.1.9", "6.2.0 (Debian)", "x"] {
            let error = checked("qemu", &of(version)).unwrap_err().to_string();
            assert!(error.contains("7.2 or newer"), "{error}");
        }
        assert!(checked("qemu", "").unwrap_err().to_string().ends_with("no version"));
    }
}
