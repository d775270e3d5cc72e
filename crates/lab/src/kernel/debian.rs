//! Debian's kernel packages: which ones exist, and how they get here. apt and dpkg download
//! and unpack them, which checks their signatures, but never install them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use super::available::{Available, State};
use super::cache::Cache;
use super::output::{INSTALLED, Offer, dependency, installed, offers};
use super::parts::Parts;
use super::spec::{Debian, of_package, package_name, version_key};
use super::tools::Tools;
use crate::arch::Arch;

/// What to do if apt's lists are too old.
const UPDATE: &str = "`sudo apt-get update` refreshes its lists";

/// A package on this machine.
#[derive(Debug, Clone)]
pub(super) struct Local {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) state: State,
    /// The folder that contains its `boot` and `lib/modules`.
    pub(super) root: PathBuf,
}

/// Debian's kernels on this machine and those that apt can download.
#[derive(Debug)]
pub(super) struct Packages<'a> {
    pub(super) tools: &'a Tools,
    pub(super) cache: &'a Cache,
    /// The root folder of the machine.
    pub(super) root: &'a Path,
    pub(super) arch: Arch,
}

impl Packages<'_> {
    /// Installed and cached packages, the newest last; an installed one comes after the same
    /// one in the cache.
    pub(super) fn local(&self) -> Result<Vec<Local>> {
        let mut all = Vec::new();
        for (name, version, root) in self.cache.packages()? {
            if of_package(&name, self.arch).is_some() {
                all.push(Local { name, version, state: State::Cached, root });
            }
        }
        // Without dpkg, no package is installed.
        let text = self.tools.text("dpkg-query", &["-W", INSTALLED, "linux-image-*"]);
        for (name, version) in installed(&text.unwrap_or_default(), self.arch) {
            if Parts::of(self.root, name).is_some() {
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

    /// The newest local package that matches the request.
    pub(super) fn newest_local(&self, asked: &Debian) -> Result<Option<Local>> {
        let mut all = self.local()?;
        all.retain(|local| {
            of_package(&local.name, self.arch).is_some_and(|(abi, rt)| {
                rt == asked.is_rt() && asked.abi.as_deref().is_none_or(|asked| asked == abi)
            })
        });
        Ok(all.pop())
    }

    /// All kernel packages that apt can download.
    pub(super) fn offers(&self) -> Result<Vec<Offer>> {
        self.check_architecture()?;
        let names = self.tools.text("apt-cache", &["pkgnames", "linux-image-"])?;
        let names: Vec<_> =
            names.lines().filter(|name| of_package(name, self.arch).is_some()).collect();
        let mut offers = self.show(&names)?;
        offers.sort_by(|a, b| version_key(&a.name).cmp(&version_key(&b.name)));
        Ok(offers)
    }

    /// The package of this release and flavour, as apt offers it.
    pub(super) fn offer(&self, exact: &Debian) -> Result<Offer> {
        self.check_architecture()?;
        let abi = exact.abi.as_deref().unwrap_or_default();
        let name = package_name(abi, exact.is_rt(), self.arch);
        if let Some(offer) = self.show(&[&name])?.pop() {
            return Ok(offer);
        }
        let mut offers = self.offers()?;
        offers.retain(|offer| {
            of_package(&offer.name, self.arch).is_some_and(|(_, rt)| rt == exact.is_rt())
        });
        if offers.is_empty() {
            let kind = if exact.is_rt() { "linux-image-*-rt" } else { "linux-image" };
            bail!("{}", self.no_package(kind));
        }
        let at = offers.partition_point(|offer| version_key(&offer.name) < version_key(&name));
        let near = &offers[at.saturating_sub(2)..(at + 2).min(offers.len())];
        let near: Vec<_> = near.iter().map(|offer| spec_of(&offer.name, self.arch)).collect();
        bail!("apt lists no package {name}; the nearest are {} ({UPDATE})", near.join(", "))
    }

    /// The release of the distribution's own kernel: what `linux-image-ARCH` depends on, or the
    /// newest that apt lists.
    pub(super) fn newest(&self) -> Result<String> {
        self.check_architecture()?;
        let meta = format!("linux-image-{}", self.arch.debian());
        let text = self.tools.text("apt-cache", &["depends", &self.qualified(&meta)])?;
        let named = dependency(&text, self.arch).and_then(|name| of_package(name, self.arch));
        if let Some((abi, _)) = named {
            return Ok(abi.to_owned());
        }
        let newest = self.offers()?.pop();
        let abi = newest.and_then(|offer| Some(of_package(&offer.name, self.arch)?.0.to_owned()));
        abi.with_context(|| self.no_package("linux-image"))
    }

    fn no_package(&self, kind: &str) -> String {
        format!(
            "apt lists no {kind} package for {}; {UPDATE}, and its sources must include Debian's",
            self.arch
        )
    }

    /// What apt knows about packages; unknown ones are left out.
    fn show(&self, names: &[&str]) -> Result<Vec<Offer>> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let names: Vec<_> = names.iter().map(|name| self.qualified(name)).collect();
        let mut arguments = vec!["show", "--no-all-versions"];
        arguments.extend(names.iter().map(String::as_str));
        let text = self.tools.text("apt-cache", &arguments)?;
        Ok(offers(&text, self.arch).collect())
    }

    /// Fails if apt is not set up for the architecture.
    fn check_architecture(&self) -> Result<()> {
        let wanted = self.arch.debian();
        let native = self.tools.text("dpkg", &["--print-architecture"])?;
        let foreign = self.tools.text("dpkg", &["--print-foreign-architectures"])?;
        ensure!(
            native.lines().chain(foreign.lines()).any(|line| line.trim() == wanted),
            "apt has no {wanted} package lists here; enable the architecture with:\n  \
             sudo dpkg --add-architecture {wanted} && sudo apt-get update"
        );
        Ok(())
    }

    /// A package's name, qualified if it is for another architecture than this machine's.
    pub(super) fn qualified(&self, name: &str) -> String {
        format!("{name}:{}", self.arch.debian())
    }
}

/// The specification that selects a package.
pub(super) fn spec_of(package: &str, arch: Arch) -> String {
    let (abi, rt) = of_package(package, arch).unwrap_or((package, false));
    format!("debian:{abi}{}", if rt { "-rt" } else { "" })
}

/// The command that fetches a kernel; x86_64 is the default board.
pub(super) fn fetch_command(kernel: &str, arch: Arch) -> String {
    let board = match arch {
        Arch::X86_64 => String::new(),
        Arch::Aarch64 => format!("--board {arch} "),
    };
    format!("punctual lab fetch {board}{kernel}")
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
