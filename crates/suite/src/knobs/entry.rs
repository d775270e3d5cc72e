//! One thing left on the board, and how it is undone.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use punctual_sys::gpio::OutputLine;
use punctual_sys::rtc::Rtc;
use punctual_sys::token::Semaphores;
use punctual_sys::{error, process};
use serde::{Deserialize, Serialize};

use super::folders::canonical;
use super::owner::Owner;
use super::scratch::{Refusal, Scratch};
use crate::facts::root::marked_word;

/// Prefix of the names of cgroups.
pub const CGROUP_PREFIX: &str = "punctual-";

/// Prefix of the names of trace instances.
pub(super) const INSTANCE_PREFIX: &str = "punctual-";

/// A killed process keeps its trace instance busy until its files are closed.
const INSTANCE_EMPTIES: Duration = Duration::from_secs(2);

/// A killed process leaves its cgroup only when its memory has been freed, which takes a while
/// under load.
const CGROUP_EMPTIES: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(5);

/// One line of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(super) enum Entry {
    /// A scratch folder of a load.
    Scratch {
        /// Its path.
        path: PathBuf,
    },
    /// A cgroup that contains a load.
    Cgroup {
        /// Its path.
        path: PathBuf,
    },
    /// A changed setting.
    Setting {
        /// The file.
        path: PathBuf,
        /// Its value before the change.
        old: String,
    },
    /// An instance of the kernel's trace.
    Instance {
        /// Its folder in tracefs.
        path: PathBuf,
    },
    /// The rate of a real-time clock's periodic interrupt.
    Rate {
        /// The clock, such as `/dev/rtc0`.
        path: PathBuf,
        /// Its rate before the change, Hz.
        old: u64,
    },
    /// A PCI device that had no driver.
    Driver {
        /// Its folder in `/sys/devices`.
        path: PathBuf,
        /// The driver that it was bound to.
        driver: String,
    },
    /// A line of a GPIO chip that was made an output.
    Line {
        /// The chip, such as `/dev/gpiochip0`.
        path: PathBuf,
        /// The line's number.
        line: u32,
        /// Whether it was an input.
        input: bool,
    },
    /// System V semaphores.
    Semaphores {
        /// Their key.
        key: i32,
    },
}

impl Entry {
    /// What undoing it would do, or `None` if there is nothing to undo. `owner` is the
    /// journal's process.
    pub fn pending(&self, owner: &Owner) -> Result<Option<String>, Refusal> {
        if let Self::Semaphores { key } = self {
            let there = Semaphores::of_key(*key);
            return Ok(there.map(|_| format!("remove the System V semaphores of key {key}")));
        }
        if !self.path().is_absolute() || !self.is_there().map_err(Refusal::Hindered)? {
            return Ok(None);
        }
        match self {
            Self::Scratch { path } => {
                Scratch::find(path, owner)?;
                Ok(Some(format!("remove {}", path.display())))
            }
            Self::Cgroup { path } => {
                cgroup_of_punctual(path)?;
                Ok(Some(format!("end and remove the cgroup {}", path.display())))
            }
            Self::Instance { path } => {
                instance_of_punctual(path)?;
                Ok(Some(format!("remove the trace instance {}", path.display())))
            }
            Self::Setting { path, old } => {
                let now = setting_in_force(path).map_err(|error| {
                    let text = format!("cannot read {}: {}", path.display(), error::text(&error));
                    Refusal::Hindered(text)
                })?;
                let change = format!("set {} from \"{now}\" to \"{old}\"", path.display());
                Ok((now != *old).then_some(change))
            }
            Self::Rate { path, old } => {
                let now = Rtc::open(path).and_then(|rtc| rtc.rate()).map_err(|error| {
                    let text = format!("cannot open {}: {}", path.display(), error::text(&error));
                    Refusal::Hindered(text)
                })?;
                let change = format!("set the rate of {} from {now} to {old} Hz", path.display());
                Ok((now != *old).then_some(change))
            }
            Self::Driver { path, driver } => {
                let is_left = is_bound(path, driver)
                    || setting_in_force(&path.join(OVERRIDE)).is_ok_and(|text| text == *driver);
                Ok(is_left.then(|| format!("take {} from the driver {driver}", path.display())))
            }
            Self::Line { path, line, input } => {
                let then = if *input { " and make it an input" } else { "" };
                Ok(Some(format!("set line {line} of {} low{then}", path.display())))
            }
            Self::Semaphores { .. } => Ok(None),
        }
    }

    /// Undoes it. `Ok(None)` if there was nothing to undo.
    pub fn undo(&self, owner: &Owner) -> Result<Option<String>, Refusal> {
        let Some(action) = self.pending(owner)? else {
            return Ok(None);
        };
        let done = match self {
            Self::Scratch { path } => Scratch::find(path, owner)?.remove(),
            Self::Cgroup { path } => end_cgroup(path),
            Self::Instance { path } => remove_instance(path),
            Self::Setting { path, old } => write_setting(path, old),
            Self::Driver { path, driver } => unbind(path, driver),
            Self::Rate { path, old } => Rtc::open(path).and_then(|rtc| rtc.set_rate(*old)),
            Self::Line { path, line, input } => OutputLine::take(path, *line, *input).map(drop),
            Self::Semaphores { key } => Semaphores::of_key(*key).map_or(Ok(()), Semaphores::remove),
        };
        done.map_err(|error| {
            Refusal::Hindered(format!("cannot {action}: {}", error::text(&error)))
        })?;
        Ok(Some(action))
    }

    /// Whether a reboot undoes it.
    pub fn ends_with_boot(&self) -> bool {
        !matches!(self, Self::Scratch { .. })
    }

    /// What it is about; empty for what is no file.
    pub fn path(&self) -> &Path {
        match self {
            Self::Scratch { path }
            | Self::Cgroup { path }
            | Self::Instance { path }
            | Self::Setting { path, .. }
            | Self::Rate { path, .. }
            | Self::Driver { path, .. }
            | Self::Line { path, .. } => path,
            Self::Semaphores { .. } => Path::new(""),
        }
    }

    fn is_there(&self) -> Result<bool, String> {
        let path = self.path();
        match path.symlink_metadata() {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => {
                Err(format!("cannot look at {}: {}", path.display(), error::text(&error)))
            }
        }
    }
}

/// The file that names the only driver a PCI device may have, if it names any
/// (Documentation/ABI/testing/sysfs-bus-pci).
const OVERRIDE: &str = "driver_override";

/// Binds a PCI device, by its folder in `/sys/devices`, to a driver that need not know it.
pub(super) fn bind(path: &Path, driver: &str) -> io::Result<()> {
    write_setting(&path.join(OVERRIDE), driver)?;
    write_setting(&driver_of(path, driver).join("bind"), address(path))
}

fn unbind(path: &Path, driver: &str) -> io::Result<()> {
    // An empty name would not be a write.
    write_setting(&path.join(OVERRIDE), "\n")?;
    if is_bound(path, driver) {
        write_setting(&driver_of(path, driver).join("unbind"), address(path))?;
    }
    Ok(())
}

fn is_bound(path: &Path, driver: &str) -> bool {
    fs::read_link(path.join("driver")).is_ok_and(|link| link.ends_with(driver))
}

fn driver_of(path: &Path, driver: &str) -> PathBuf {
    path.join("subsystem/drivers").join(driver)
}

fn address(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

fn cgroup_of_punctual(path: &Path) -> Result<(), Refusal> {
    let left = |reason: &str| format!("{} is left: {reason}", path.display());
    let name = path.file_name().unwrap_or_default();
    let named = name.as_encoded_bytes().starts_with(CGROUP_PREFIX.as_bytes());
    if !named || canonical(path).ok().as_deref() != Some(path) {
        let reason = "its name is not one of punctual, or a link leads to it";
        return Err(Refusal::NotOurs(left(reason)));
    }
    match fs::read_to_string(path.join("cgroup.procs")) {
        Err(_) => Err(Refusal::NotOurs(left("it is not a cgroup"))),
        Ok(pids) if pids.lines().any(|pid| pid == std::process::id().to_string()) => {
            Err(Refusal::Hindered(left("this process is in it; run restore from another shell")))
        }
        Ok(_) => Ok(()),
    }
}

fn instance_of_punctual(path: &Path) -> Result<(), Refusal> {
    let left = |reason: &str| Refusal::NotOurs(format!("{} is left: {reason}", path.display()));
    let named = path.file_name().unwrap_or_default().as_encoded_bytes();
    let below = path.parent().and_then(Path::file_name).is_some_and(|name| name == "instances");
    if !named.starts_with(INSTANCE_PREFIX.as_bytes())
        || !below
        || canonical(path).ok().as_deref() != Some(path)
    {
        return Err(left("its name is not one of punctual, or a link leads to it"));
    }
    match path.join("trace_pipe").symlink_metadata() {
        Ok(_) => Ok(()),
        Err(_) => Err(left("it is not a trace instance")),
    }
}

fn remove_instance(path: &Path) -> io::Result<()> {
    let end = std::time::Instant::now() + INSTANCE_EMPTIES;
    loop {
        match fs::remove_dir(path) {
            Err(error)
                if error.kind() == io::ErrorKind::ResourceBusy
                    && std::time::Instant::now() < end =>
            {
                sleep(POLL);
            }
            result => return result,
        }
    }
}

/// Kills everything in a cgroup and below it, and removes it.
fn end_cgroup(path: &Path) -> io::Result<()> {
    let end = std::time::Instant::now() + CGROUP_EMPTIES;
    loop {
        // cgroup.kill exists since Linux 5.14, in cgroup v2 only.
        let killed = OpenOptions::new()
            .write(true)
            .open(path.join("cgroup.kill"))
            .and_then(|mut file| file.write_all(b"1"));
        match remove_cgroups(path, killed.is_err()) {
            Err(_) if std::time::Instant::now() < end => sleep(POLL),
            result => return result,
        }
    }
}

/// Removes a cgroup after those below it; with `kill`, kills the members of each first.
fn remove_cgroups(path: &Path, kill: bool) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_cgroups(&entry.path(), kill)?;
        }
    }
    if kill {
        let pids = fs::read_to_string(path.join("cgroup.procs"))?;
        for pid in pids.lines().filter_map(|line| line.parse().ok()) {
            // If it is already gone that is fine; a refusal shows when the folder stays.
            let _ = process::kill(pid);
        }
    }
    fs::remove_dir(path)
}

/// The value of a setting; for a file that lists its choices, the active one.
pub(super) fn setting_in_force(path: &Path) -> io::Result<String> {
    // At once: osnoise/cpus refuses a read(2) with less room than all of it takes, at its end too.
    let mut bytes = [0; 4096];
    let length = fs::File::open(path)?.read(&mut bytes)?;
    let text = str::from_utf8(&bytes[..length]).map_err(|_| io::ErrorKind::InvalidData)?;
    let text = text.trim();
    Ok(marked_word(text).unwrap_or(text).to_owned())
}

/// Writes a setting in a single write. The file must exist.
pub(super) fn write_setting(path: &Path, value: &str) -> io::Result<()> {
    // Truncating matters only for plain files, whose old value may be longer.
    let mut file = OpenOptions::new().write(true).truncate(true).open(path)?;
    // Linux 6.1 reads on behind a list that does not end here (osnoise_cpus_write).
    match path.ends_with("osnoise/cpus") {
        true => file.write_all(format!("{value}\n").as_bytes()),
        false => file.write_all(value.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpus_of_osnoise_end_with_their_line() {
        let folder = std::env::temp_dir().join(format!("punctual-osnoise-{}", std::process::id()));
        fs::create_dir_all(folder.join("osnoise")).unwrap();
        for (name, written) in [("osnoise/cpus", "0-3\n"), ("cpus", "0-3")] {
            let path = folder.join(name);
            fs::write(&path, "0-17").unwrap();
            write_setting(&path, "0-3").unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), written);
            assert_eq!(setting_in_force(&path).unwrap(), "0-3");
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_line_is_set_low_and_one_that_cannot_be_says_why() {
        let of = |path: &str, input| Entry::Line { path: path.into(), line: 4, input };
        let owner = Owner::this().unwrap();
        assert!(matches!(of("/dev/no-such-gpiochip", true).undo(&owner), Ok(None)));
        let Ok(Some(action)) = of("/dev/null", true).pending(&owner) else { panic!() };
        assert_eq!(action, "set line 4 of /dev/null low and make it an input");
        let Err(Refusal::Hindered(why)) = of("/dev/null", false).undo(&owner) else { panic!() };
        assert!(why.starts_with("cannot set line 4 of /dev/null low: it does not answer"), "{why}");
    }
}
