//! Debian's kernel packages: which there are, and how they get here. Packages are
//! downloaded and unpacked by apt and dpkg, which check their signatures, and never installed.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::cache::{Cache, Partial};
use super::spec::{Debian, of_package, package_name, version_key};
use super::{Available, Progress, State};
use crate::arch::Arch;

/// How often the progress of a download is looked at.
const PROGRESS_PERIOD: Duration = Duration::from_millis(200);

/// The commands of apt and dpkg.
#[derive(Debug, Default)]
pub(super) struct Tools {
    /// Where they are; else as `PATH` has them. For tests.
    pub(super) folder: Option<PathBuf>,
}

impl Tools {
    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let path =
            self.folder.as_ref().map_or_else(|| program.into(), |folder| folder.join(program));
        let mut command = Command::new(path);
        // What they print is read below.
        command.args(arguments).env("LC_ALL", "C").stdin(Stdio::null());
        command
    }

    fn output(&self, program: &str, arguments: &[&str]) -> Result<Output> {
        self.command(program, arguments).output().map_err(|error| not_run(program, error))
    }

    /// What it prints, whether it fails or not: a package that is not there is a
    /// failure of apt-cache and dpkg-query, and what is there they print.
    fn text(&self, program: &str, arguments: &[&str]) -> Result<String> {
        let output = self.output(program, arguments)?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

fn not_run(program: &str, error: io::Error) -> anyhow::Error {
    if error.kind() == io::ErrorKind::NotFound {
        return anyhow::anyhow!(
            "{program} is not on this machine: kernels by name are packages of Debian's; \
             name the path of a kernel instead"
        );
    }
    anyhow::Error::new(error).context(format!("cannot run {program}"))
}

/// The last line of an output of apt or dpkg that says what went wrong.
fn last_error(stderr: &str) -> String {
    let is_error = |line: &&str| line.starts_with("E:") || line.contains("error:");
    let last = stderr.lines().rfind(is_error).or_else(|| stderr.lines().next_back());
    last.unwrap_or("it says nothing about it").trim_start_matches("E:").trim().to_owned()
}

/// A package that apt can download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Offer {
    pub(super) name: String,
    pub(super) version: String,
    download_bytes: u64,
    unpacked_bytes: u64,
}

/// A package that is on this machine.
#[derive(Debug, Clone)]
pub(super) struct Local {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) state: State,
    /// What holds its `boot` and `lib/modules`.
    pub(super) root: PathBuf,
}

/// Debian's kernels on this machine and in reach of it.
#[derive(Debug)]
pub(super) struct Packages<'a> {
    pub(super) tools: &'a Tools,
    pub(super) cache: &'a Cache,
    /// The root folder of the machine.
    pub(super) root: &'a Path,
    pub(super) arch: Arch,
}

impl Packages<'_> {
    /// Those that are installed or in the cache, the newest last, an installed one
    /// after the same one in the cache.
    pub(super) fn local(&self) -> Result<Vec<Local>> {
        let mut all = Vec::new();
        for (name, version, root) in self.cache.packages()? {
            if of_package(&name, self.arch).is_some() {
                all.push(Local { name, version, state: State::Cached, root });
            }
        }
        let format = "-f=${db:Status-Abbrev} ${Package} ${Architecture} ${Version}\n";
        // Without dpkg nothing is installed by it.
        let installed = self.tools.text("dpkg-query", &["-W", format, "linux-image-*"]);
        for line in installed.unwrap_or_default().lines() {
            let words: Vec<_> = line.split_whitespace().collect();
            if let ["ii", name, arch, version] = words[..]
                && arch == self.arch.debian()
                && of_package(name, self.arch).is_some()
                && super::Parts::of(self.root, name).is_some()
            {
                all.push(Local {
                    name: name.to_owned(),
                    version: version.to_owned(),
                    state: State::Installed,
                    root: self.root.to_owned(),
                });
            }
        }
        all.sort_by(|a, b| {
            let installed = |local: &Local| local.state == State::Installed;
            (version_key(&a.name).cmp(&version_key(&b.name)))
                .then(version_key(&a.version).cmp(&version_key(&b.version)))
                .then(installed(a).cmp(&installed(b)))
        });
        Ok(all)
    }

    /// The newest local one that was asked for.
    pub(super) fn newest_local(&self, asked: &Debian) -> Result<Option<Local>> {
        let mut all = self.local()?;
        all.retain(|local| {
            of_package(&local.name, self.arch).is_some_and(|(abi, rt)| {
                rt == asked.is_rt() && asked.abi.as_deref().is_none_or(|asked| asked == abi)
            })
        });
        Ok(all.pop())
    }

    /// All that apt can download.
    pub(super) fn offers(&self) -> Result<Vec<Offer>> {
        self.check_architecture()?;
        let names = self.tools.text("apt-cache", &["pkgnames", "linux-image-"])?;
        let names: Vec<_> =
            names.lines().filter(|name| of_package(name, self.arch).is_some()).collect();
        let mut offers = self.show(&names)?;
        offers.sort_by(|a, b| version_key(&a.name).cmp(&version_key(&b.name)));
        Ok(offers)
    }

    /// The one that was asked for, as apt can download it.
    pub(super) fn offer(&self, asked: &Debian) -> Result<Offer> {
        self.check_architecture()?;
        let name = match &asked.abi {
            Some(abi) => Some(package_name(abi, asked.is_rt(), self.arch)),
            None => self.newest_by_meta_package(asked.is_rt())?,
        };
        if let Some(name) = &name
            && let Some(offer) = self.show(&[name])?.pop()
        {
            return Ok(offer);
        }
        let mut offers = self.offers()?;
        offers.retain(|offer| {
            of_package(&offer.name, self.arch).is_some_and(|(_, rt)| rt == asked.is_rt())
        });
        if asked.abi.is_none()
            && let Some(newest) = offers.pop()
        {
            return Ok(newest);
        }
        let update = "`sudo apt-get update` renews what it knows";
        let Some(name) = name.filter(|_| !offers.is_empty()) else {
            bail!(
                "apt knows no {} package of Debian's for {asked} ({}): {update}, where its sources \
                 are Debian's",
                if asked.is_rt() { "linux-image-*-rt" } else { "linux-image" },
                self.arch
            );
        };
        let at = offers.partition_point(|offer| version_key(&offer.name) < version_key(&name));
        let near = &offers[at.saturating_sub(2)..(at + 2).min(offers.len())];
        let near: Vec<_> = near.iter().map(|offer| spec_of(&offer.name, self.arch)).collect();
        bail!("apt knows no package {name}; near it are {} ({update})", near.join(", "))
    }

    /// `linux-image-rt-amd64` depends on the newest of its kind.
    fn newest_by_meta_package(&self, rt: bool) -> Result<Option<String>> {
        let meta = format!("linux-image-{}{}", if rt { "rt-" } else { "" }, self.arch.debian());
        let text = self.tools.text("apt-cache", &["depends", &self.qualified(&meta)])?;
        let name = text.lines().find_map(|line| {
            let name = line.trim().trim_start_matches('|').strip_prefix("Depends: ")?;
            let name = name.split(':').next()?;
            of_package(name, self.arch).map(|_| name.to_owned())
        });
        Ok(name)
    }

    /// What apt says of packages; one that it has not got is left out.
    fn show(&self, names: &[&str]) -> Result<Vec<Offer>> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let names: Vec<_> = names.iter().map(|name| self.qualified(name)).collect();
        let mut arguments = vec!["show", "--no-all-versions"];
        arguments.extend(names.iter().map(String::as_str));
        let text = self.tools.text("apt-cache", &arguments)?;
        Ok(text.split("\n\n").filter_map(|stanza| self.offer_in(stanza)).collect())
    }

    fn offer_in(&self, stanza: &str) -> Option<Offer> {
        let field = |name: &str| {
            stanza.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
        };
        let name = field("Package")?;
        let version = field("Version")?;
        of_package(name, self.arch)?;
        // It becomes part of a path.
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".+~-:".contains(&byte);
        if !version.bytes().all(plain) || field("Architecture")? != self.arch.debian() {
            return None;
        }
        let number = |name| field(name).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        Some(Offer {
            name: name.to_owned(),
            version: version.to_owned(),
            download_bytes: number("Size"),
            unpacked_bytes: number("Installed-Size").saturating_mul(1024),
        })
    }

    /// Whether apt may know packages of the architecture at all.
    fn check_architecture(&self) -> Result<()> {
        let wanted = self.arch.debian();
        let native = self.tools.text("dpkg", &["--print-architecture"])?;
        let foreign = self.tools.text("dpkg", &["--print-foreign-architectures"])?;
        ensure!(
            native.lines().chain(foreign.lines()).any(|line| line.trim() == wanted),
            "apt knows no packages for {} on this machine; this has it learn them:\n  \
             sudo dpkg --add-architecture {wanted} && sudo apt-get update",
            self.arch
        );
        Ok(())
    }

    fn qualified(&self, name: &str) -> String {
        format!("{name}:{}", self.arch.debian())
    }

    /// Downloads and unpacks a package into the cache, where it is not there yet.
    pub(super) fn fetch(
        &self,
        offer: &Offer,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Local> {
        let Offer { name, version, .. } = offer;
        let root = self.cache.package(name, version);
        let local = Local {
            name: name.clone(),
            version: version.clone(),
            state: State::Cached,
            root: root.clone(),
        };
        let writer = self.cache.writer(&mut |text| progress(Progress::Step(text)))?;
        // Another process may have fetched it while this one waited.
        if root.exists() {
            return Ok(local);
        }
        let needed = offer.download_bytes.saturating_add(offer.unpacked_bytes);
        let free = punctual_sys::storage::room(&self.cache.folder)
            .with_context(|| format!("cannot tell the room of {}", self.cache.folder.display()))?
            .free;
        ensure!(
            free >= needed,
            "{name} needs {} in {}, which has {}: make room there, or set PUNCTUAL_CACHE to a \
             folder that has it",
            megabytes(needed),
            self.cache.folder.display(),
            megabytes(free)
        );
        let partial = writer.partial(name)?;
        progress(Progress::Step(&format!(
            "fetching {name} {version}, {}",
            megabytes(offer.download_bytes)
        )));
        let package = self.download(offer, &partial, progress).with_context(|| {
            format!(
                "cannot fetch {name} {version} (fetch it once where there is a network: \
                 {}; or name the path of a kernel)",
                fetch_command(&spec_of(name, self.arch), self.arch)
            )
        })?;
        progress(Progress::Step(&format!("unpacking {name} {version}")));
        let unpacked = partial.0.join("unpacked");
        self.unpack(&package, &unpacked)?;
        ensure!(
            super::Parts::of(&unpacked, name).is_some(),
            "{name} {version} does not hold a kernel, its configuration and its modules where \
             Debian's packages do"
        );
        writer.keep(&unpacked, &root)?;
        Ok(local)
    }

    /// Has apt-get put the package into the folder, with its process's output beside it.
    fn download(
        &self,
        offer: &Offer,
        folder: &Partial,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<PathBuf> {
        let log = folder.0.join("apt-get.log");
        let package = format!("{}={}", self.qualified(&offer.name), offer.version);
        let mut child = self
            .tools
            .command("apt-get", &["download", &package])
            .current_dir(&folder.0)
            .stdout(Stdio::null())
            .stderr(File::create(&log).with_context(|| format!("cannot write {}", log.display()))?)
            .spawn()
            .map_err(|error| not_run("apt-get", error))?;
        let status = loop {
            if let Some(status) = child.try_wait().context("cannot wait for apt-get")? {
                break status;
            }
            let done = downloaded(&folder.0).map_or(0, |(_, bytes)| bytes);
            progress(Progress::Bytes { done, total: offer.download_bytes });
            thread::sleep(PROGRESS_PERIOD);
        };
        if !status.success() {
            bail!("apt-get: {}", last_error(&fs::read_to_string(&log).unwrap_or_default()));
        }
        let (path, bytes) = downloaded(&folder.0).context("apt-get has downloaded nothing")?;
        progress(Progress::Bytes { done: bytes, total: offer.download_bytes });
        Ok(path)
    }

    fn unpack(&self, package: &Path, folder: &Path) -> Result<()> {
        let (from, to) = (package.to_string_lossy(), folder.to_string_lossy());
        let output = self.tools.output("dpkg-deb", &["-x", &from, &to])?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "cannot unpack {} (is the disk of {} full?): {}",
            package.file_name().unwrap_or_default().display(),
            self.cache.folder.display(),
            last_error(&stderr)
        );
        Ok(())
    }
}

/// The package in a folder and its size so far, bytes.
fn downloaded(folder: &Path) -> Option<(PathBuf, u64)> {
    fs::read_dir(folder).ok()?.flatten().find_map(|entry| {
        let path = entry.path();
        let is_package = path.extension().is_some_and(|extension| extension == "deb");
        is_package.then_some((path, entry.metadata().ok()?.len()))
    })
}

/// How to ask for a package.
pub(super) fn spec_of(package: &str, arch: Arch) -> String {
    let (abi, rt) = of_package(package, arch).unwrap_or((package, false));
    format!("debian:{abi}{}", if rt { "-rt" } else { "" })
}

/// The command that fetches a kernel; boards are x86_64 unless told otherwise.
pub(super) fn fetch_command(kernel: &str, arch: Arch) -> String {
    let board = match arch {
        Arch::X86_64 => String::new(),
        Arch::Aarch64 => format!("--board {arch} "),
    };
    format!("punctual lab fetch {board}{kernel}")
}

fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes.div_ceil(1_000_000))
}

impl Offer {
    pub(super) fn available(self, arch: Arch) -> Available {
        Available {
            name: spec_of(&self.name, arch),
            package: self.name,
            version: self.version,
            state: State::Downloadable,
            download_bytes: Some(self.download_bytes),
        }
    }
}

impl Local {
    pub(super) fn available(self, arch: Arch) -> Available {
        Available {
            name: spec_of(&self.name, arch),
            package: self.name,
            version: self.version,
            state: self.state,
            download_bytes: None,
        }
    }
}
