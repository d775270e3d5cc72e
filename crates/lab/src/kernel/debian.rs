//! Debian's kernel packages: which ones exist, and which of them a name means. apt and dpkg
//! download and unpack them, which checks their signatures, but never install them.

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use punctual_core::release::{series_of, version_key};

use super::archive::{Archive, Known, Lists};
use super::available::{Available, State};
use super::blame::of_kernel;
use super::output::{INSTALLED, Offer, installed};
use super::parts::Parts;
use super::releases::{RELEASES, Release};
use super::spec::{Which, of_package, package_name};
use crate::arch::Arch;

/// A package on this machine.
#[derive(Debug, Clone)]
pub(super) struct Local {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) state: State,
    /// The folder that contains its `boot` and `lib/modules`.
    pub(super) root: PathBuf,
}

/// A kernel that can be downloaded.
#[derive(Debug, Clone)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    /// The packages that have its files.
    pub(super) parts: Vec<Offer>,
    /// Parts that the archive has not got any more.
    pub(super) missing: Vec<String>,
    /// The release whose lists have it.
    pub(super) release: &'static Release,
}

/// Debian's kernels on this machine and those that apt can download.
#[derive(Debug)]
pub(super) struct Packages<'a> {
    pub(super) archive: Archive<'a>,
}

impl Packages<'_> {
    /// Installed and cached packages, the newest last; an installed one comes after the same
    /// one in the cache.
    pub(super) fn local(&self) -> Result<Vec<Local>> {
        let mut all = Vec::new();
        for (name, version, root) in self.archive.cache.packages()? {
            if of_package(&name, self.archive.arch).is_some() {
                all.push(Local { name, version, state: State::Cached, root });
            }
        }
        // Without dpkg, no package is installed.
        let text = self.archive.tools.text("dpkg-query", &["-W", INSTALLED, "linux-image-*"]);
        for (name, version) in installed(&text.unwrap_or_default(), self.archive.arch) {
            if Parts::of(self.archive.root, name).is_some_and(|parts| parts.is_whole()) {
                all.push(Local {
                    name: name.to_owned(),
                    version: version.to_owned(),
                    state: State::Installed,
                    root: self.archive.root.to_owned(),
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

    /// The newest local package with this ABI name, and real-time or not.
    pub(super) fn newest_local(&self, abi: &str, rt: bool) -> Result<Option<Local>> {
        let mut all = self.local()?;
        all.retain(|local| of_package(&local.name, self.archive.arch) == Some((abi, rt)));
        Ok(all.pop())
    }

    /// All kernels that the archive has.
    pub(super) fn packages(&self, lists: Lists, say: &mut dyn FnMut(&str)) -> Result<Vec<Package>> {
        let all: Vec<_> = RELEASES.iter().collect();
        let known = self.archive.known(&all, lists, say)?;
        Ok(self.of(&known))
    }

    /// The kernel with this ABI name, and real-time or not, as the archive has it.
    pub(super) fn package(
        &self,
        abi: &str,
        rt: bool,
        say: &mut dyn FnMut(&str),
    ) -> Result<Package> {
        let name = package_name(abi, rt, self.archive.arch);
        let mut others = Vec::new();
        // The lists that are here may do; one that is a day old may lack what is new.
        for lists in [Lists::AsTheyAre, Lists::IfMissing, Lists::IfOld] {
            others = match self.packages(lists, say) {
                Err(_) if lists == Lists::AsTheyAre => continue,
                packages => packages?,
            };
            if let Some(at) = others.iter().position(|package| package.name == name) {
                return Ok(others.swap_remove(at));
            }
        }
        others.retain(|other| {
            of_package(&other.name, self.archive.arch).is_some_and(|(_, of)| of == rt)
        });
        let at = others.partition_point(|other| version_key(&other.name) < version_key(&name));
        let near = &others[at.saturating_sub(2)..(at + 2).min(others.len())];
        let near: Vec<_> =
            near.iter().map(|package| spec_of(&package.name, self.archive.arch)).collect();
        let near = near.join(", ");
        Err(of_kernel(anyhow!("Debian has no package {name}; the nearest are {near}")))
    }

    /// The ABI name that a name means, whose kernels have all of these flavours: real-time or not.
    ///
    /// # Errors
    /// There is none, or Debian's lists cannot be read.
    pub(super) fn abi(
        &self,
        which: &Which,
        flavours: &[bool],
        lists: Lists,
        say: &mut dyn FnMut(&str),
    ) -> Result<String> {
        let archive = &self.archive;
        match which {
            Which::Exact(abi) => Ok(abi.clone()),
            Which::Own => {
                let known = archive.known(&[archive.own()], lists, say)?;
                self.follows(&known, flavours)
            }
            Which::Suite(name) => {
                let named: Vec<_> =
                    RELEASES.iter().filter(|release| release.name == name).collect();
                let all = RELEASES.iter().collect();
                let releases = if named.is_empty() { all } else { named };
                let mut known = archive.known(&releases, lists, say)?;
                known.retain(|known| known.release.name == name || known.suite == *name);
                ensure_any(&known, || format!("no release of Debian is {name} now"))?;
                self.follows(&known, flavours)
            }
            Which::Series(series) => {
                let mut there = Vec::new();
                let both = [lists, Lists::IfOld];
                // A list that is a day old may lack what is new.
                let tries = if lists == Lists::IfMissing { &both[..] } else { &both[..1] };
                for &lists in tries {
                    let packages = self.packages(lists, say)?;
                    let abis =
                        packages.iter().filter_map(|one| of_package(&one.name, self.archive.arch));
                    there = abis.map(|(abi, rt)| (abi.to_owned(), rt)).collect();
                    if let Some(abi) = newest_of(&there, which, flavours) {
                        return Ok(abi);
                    }
                }
                let mut series_there: Vec<&str> =
                    there.iter().map(|(abi, _)| series_of(abi)).collect();
                series_there.dedup();
                let there = series_there.join(", ");
                Err(of_kernel(anyhow!("Debian has no kernel {series}; it has {there}")))
            }
        }
    }

    /// The release on this machine with all of these flavours that is the newest a name can mean.
    pub(super) fn local_abi(&self, which: &Which, flavours: &[bool]) -> Result<Option<String>> {
        let local = self.local()?;
        let there = local.iter().filter_map(|local| of_package(&local.name, self.archive.arch));
        let there: Vec<_> = there.map(|(abi, rt)| (abi.to_owned(), rt)).collect();
        Ok(newest_of(&there, which, flavours))
    }

    /// What `linux-image-ARCH` of a release depends on, or else the newest kernel that it has.
    fn follows(&self, known: &[Known], flavours: &[bool]) -> Result<String> {
        let meta = format!("linux-image-{}", self.archive.arch.debian());
        let mut metas: Vec<&Offer> = known.iter().flat_map(|known| &known.offers).collect();
        metas.retain(|offer| offer.name == meta);
        metas.sort_by_key(|offer| version_key(&offer.version));
        let mut named = metas.iter().rev().flat_map(|offer| &offer.depends);
        if let Some((abi, _)) = named.find_map(|name| of_package(name, self.archive.arch)) {
            return Ok(abi.to_owned());
        }
        let all = self.of(known);
        let there = all.iter().filter_map(|one| of_package(&one.name, self.archive.arch));
        let there: Vec<_> = there.map(|(abi, rt)| (abi.to_owned(), rt)).collect();
        let names: Vec<_> = known.iter().map(|known| known.release.name).collect();
        newest_of(&there, &Which::Own, flavours).with_context(|| {
            format!("Debian {} has no such kernel for {}", names.join(", "), self.archive.arch)
        })
    }

    /// The kernels of releases, each once, in the order of their versions.
    fn of(&self, known: &[Known]) -> Vec<Package> {
        let mut all: Vec<Package> = Vec::new();
        for known in known {
            for offer in &known.offers {
                if of_package(&offer.name, self.archive.arch).is_some() {
                    all.push(package(offer, known));
                }
            }
        }
        // Of one name the newest version, and that with all of its parts.
        all.sort_by(|a, b| {
            (version_key(&a.name).cmp(&version_key(&b.name)))
                .then(b.missing.len().cmp(&a.missing.len()))
                .then(version_key(&a.version).cmp(&version_key(&b.version)))
        });
        all.reverse();
        all.dedup_by(|a, b| a.name == b.name);
        all.reverse();
        // Of some, only what depends on other packages is left.
        all.retain(|package| !package.parts.is_empty());
        all
    }
}

fn ensure_any<T>(all: &[T], error: impl Fn() -> String) -> Result<()> {
    if all.is_empty() { Err(anyhow!(error())) } else { Ok(()) }
}

/// A kernel with its parts. Without an image among them it has none.
fn package(offer: &Offer, known: &Known) -> Package {
    let flavour = offer.name.trim_start_matches("linux-image-");
    let is_part = |name: &&String| {
        ["linux-binary-", "linux-modules-", "linux-base-"]
            .iter()
            .any(|part| name.strip_prefix(part) == Some(flavour))
    };
    let is_split = offer.depends.iter().any(|name| name.starts_with("linux-binary-"));
    let mut parts = Vec::new();
    let mut missing = Vec::new();
    for name in offer.depends.iter().filter(is_part) {
        let same = |other: &&Offer| other.name == *name && other.version == offer.version;
        match known.offers.iter().find(same) {
            Some(part) => parts.push(part.clone()),
            None => missing.push(name.clone()),
        }
    }
    if !is_split {
        parts.push(offer.clone());
    } else if missing.iter().any(|name| name.starts_with("linux-binary-")) {
        parts.clear();
    }
    Package {
        name: offer.name.clone(),
        version: offer.version.clone(),
        parts,
        missing,
        release: known.release,
    }
}

/// The newest ABI name that a name can mean and that is there in all of these flavours.
fn newest_of(there: &[(String, bool)], which: &Which, flavours: &[bool]) -> Option<String> {
    let mut abis: Vec<&String> = there.iter().map(|(abi, _)| abi).collect();
    abis.retain(|abi| {
        let has = |rt: &bool| there.iter().any(|(other, of)| other == *abi && of == rt);
        which.admits(abi) && flavours.iter().all(has)
    });
    abis.into_iter().max_by_key(|abi| version_key(abi)).cloned()
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

impl Package {
    /// Size of what has to be downloaded.
    pub(super) fn download_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.download_bytes).fold(0, u64::saturating_add)
    }

    /// Size of what it unpacks to.
    pub(super) fn unpacked_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.unpacked_bytes).fold(0, u64::saturating_add)
    }

    pub(super) fn available(self, arch: Arch) -> Available {
        Available {
            name: spec_of(&self.name, arch),
            download_bytes: Some(self.download_bytes()),
            package: self.name,
            version: self.version,
            state: State::Downloadable,
            latest: false,
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
            latest: false,
        }
    }
}
