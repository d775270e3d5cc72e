//! Downloads Debian packages into the cache.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::available::{FetchProgress, State};
use super::debian::{Local, Package, Packages, fetch_command, spec_of};
use super::output::{Offer, last_error};
use super::parts::Parts;
use super::sums;
use super::tools::not_run;
use crate::user_cache::Partial;

/// How often the progress of a download is checked.
const PROGRESS_PERIOD: Duration = Duration::from_millis(200);

impl Packages<'_> {
    /// Downloads and unpacks a kernel into the cache, unless it is already there.
    ///
    /// # Errors
    /// No space, no network or no permission; the text says what to do.
    pub(super) fn fetch(
        &self,
        package: &Package,
        progress: &mut dyn FnMut(FetchProgress<'_>),
    ) -> Result<Local> {
        let Package { name, version, .. } = package;
        let root = self.archive.cache.package(name, version);
        let local = Local {
            name: name.clone(),
            version: version.clone(),
            state: State::Cached,
            root: root.clone(),
        };
        let writer = self.archive.cache.writer(&mut |text| progress(FetchProgress::Step(text)))?;
        // Another process may have fetched it while this one waited.
        if root.exists() {
            return Ok(local);
        }
        let total = package.download_bytes();
        let needed = total.saturating_add(package.unpacked_bytes());
        let free = punctual_sys::storage::room(&self.archive.cache.folder)
            .with_context(|| {
                format!("cannot read the free space of {}", self.archive.cache.folder.display())
            })?
            .free;
        ensure!(
            free >= needed,
            "{name} needs {} in {}, which has only {} free: free some space, or set \
             PUNCTUAL_CACHE to another folder",
            megabytes(needed),
            self.archive.cache.folder.display(),
            megabytes(free)
        );
        let partial = writer.partial(name)?;
        progress(FetchProgress::Step(&format!("fetching {name} {version}, {}", megabytes(total))));
        if !package.missing.is_empty() {
            progress(FetchProgress::Note(&format!(
                "the archive has no {} any more: {} boots without, but loads and devices that \
                 need modules are left out",
                package.missing.join(" and no "),
                spec_of(name, self.archive.arch)
            )));
        }
        let unpacked = partial.0.join("unpacked");
        let mut done = 0;
        for part in &package.parts {
            let Offer { name: of, version, .. } = part;
            let mut arrived = |bytes| {
                progress(FetchProgress::Bytes { done: done + bytes, total });
            };
            let file = self.download(part, package, &partial, &mut arrived).with_context(|| {
                format!(
                    "cannot download {of} {version} (once there is a network: `{}`; or give the \
                     path of a kernel)",
                    fetch_command(&spec_of(name, self.archive.arch), self.archive.arch)
                )
            })?;
            done += part.download_bytes;
            progress(FetchProgress::Step(&format!("unpacking {of} {version}")));
            self.unpack(&file, &unpacked)?;
            fs::remove_file(&file).with_context(|| format!("cannot remove {}", file.display()))?;
        }
        let parts = Parts::of(&unpacked, name);
        ensure!(
            parts.is_some_and(|parts| parts.is_whole() || !package.missing.is_empty()),
            "{name} {version} lacks a kernel, its configuration or its modules in the places of \
             a Debian package"
        );
        sums::keep(&unpacked)?;
        writer.keep(&unpacked, &root)?;
        Ok(local)
    }

    /// Downloads a part of a kernel with apt-get into the folder; its error messages go to a log
    /// in the same folder.
    fn download(
        &self,
        part: &Offer,
        package: &Package,
        folder: &Partial,
        arrived: &mut dyn FnMut(u64),
    ) -> Result<PathBuf> {
        let log = folder.0.join("apt-get.log");
        let name = format!("{}={}", part.name, part.version);
        let mut child = self
            .archive
            .apt(package.release, "apt-get", &["download", &name])
            .current_dir(&folder.0)
            .stdout(Stdio::null())
            .stderr(File::create(&log).with_context(|| format!("cannot write {}", log.display()))?)
            .spawn()
            .map_err(|error| not_run("apt-get", error))?;
        let status = loop {
            if let Some(status) = child.try_wait().context("cannot wait for apt-get")? {
                break status;
            }
            arrived(downloaded(&folder.0).map_or(0, |(_, bytes)| bytes));
            thread::sleep(PROGRESS_PERIOD);
        };
        if !status.success() {
            bail!("apt-get: {}", last_error(&fs::read_to_string(&log).unwrap_or_default()));
        }
        let (path, bytes) = downloaded(&folder.0).context("apt-get downloaded nothing")?;
        arrived(bytes);
        Ok(path)
    }

    fn unpack(&self, package: &Path, folder: &Path) -> Result<()> {
        let (from, to) = (package.to_string_lossy(), folder.to_string_lossy());
        let output = self.archive.tools.output("dpkg-deb", &["-x", &from, &to])?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "cannot unpack {} (is the disk of {} full?): {}",
            package.file_name().unwrap_or_default().display(),
            self.archive.cache.folder.display(),
            last_error(&stderr)
        );
        Ok(())
    }
}

/// The package in a folder and how much of it has arrived, bytes.
fn downloaded(folder: &Path) -> Option<(PathBuf, u64)> {
    fs::read_dir(folder).ok()?.flatten().find_map(|entry| {
        let path = entry.path();
        let is_package = path.extension().is_some_and(|extension| extension == "deb");
        is_package.then_some((path, entry.metadata().ok()?.len()))
    })
}

fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes.div_ceil(1_000_000))
}
