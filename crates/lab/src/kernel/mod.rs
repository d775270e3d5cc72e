//! Kernels by name: Debian packages, image files and build trees.

mod archive;
mod available;
mod blame;
mod bootable;
mod cache;
mod config;
mod debian;
mod download;
pub mod image;
pub mod output;
mod parts;
mod releases;
mod spec;
pub(crate) mod sums;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod tools;
mod tree;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use punctual_core::preemption::Model;
use punctual_core::release::{series_of, version_key};
use punctual_sys::written;

use crate::arch::Arch;
use archive::{Archive, Lists, NoLists};
use bootable::Bootable;
use cache::Cache;
use config::Config;
use debian::{Local, Packages, fetch_command};
use parts::Parts;
use spec::{Debian, Spec, Which};
use tools::Tools;

pub(crate) use config::MOST_CONFIG;

pub use available::{Available, FetchProgress, State};
pub use blame::{OfKernel, of_kernel};
pub use spec::FORMS;

/// A kernel that is ready to be booted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// The name it was requested by; for a path, its last component.
    pub name: String,
    /// Its architecture.
    pub arch: Arch,
    /// The file for QEMU's `-kernel`.
    pub image: PathBuf,
    /// SHA-256 of the original image, hexadecimal; `image` may be its unpacked payload.
    pub image_sha256: String,
    /// Its release, as `uname -r` prints it.
    pub release: String,
    /// Parameters that its name implies, such as `preempt=none`.
    pub parameters: Vec<String>,
    /// The preemption model that the running kernel must report; `None` if no configuration tells.
    pub model: Option<Model>,
    /// Its configuration, if known.
    pub config: Option<PathBuf>,
    /// The folder of its modules: one such as `/lib/modules/RELEASE`, or a build tree.
    pub modules: Option<PathBuf>,
    /// Package and version of a Debian kernel.
    pub package: Option<String>,
}

/// The kernels available to this machine: in its cache and through its package manager.
#[derive(Debug)]
pub struct Kernels {
    cache: Cache,
    tools: Tools,
    /// The root folder below which installed kernels have `boot` and `lib`.
    root: PathBuf,
}

impl Kernels {
    /// Uses the cache in `$PUNCTUAL_CACHE`, otherwise `$XDG_CACHE_HOME/punctual` or
    /// `~/.cache/punctual`. Nothing is written before something is stored.
    ///
    /// # Errors
    /// Neither these variables nor `HOME` are set.
    pub fn of_user() -> Result<Self> {
        Ok(Self { cache: Cache::of_user()?, tools: Tools::default(), root: "/".into() })
    }

    /// The folder of the cache.
    #[must_use]
    pub fn cache_folder(&self) -> &Path {
        &self.cache.folder
    }

    /// What is unsafe about the folder of the cache, in words; `None` if nobody else can replace the
    /// kernels in it.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let folder = self.cache.folder.as_path();
        let mut folders = [Some(folder), folder.parent()].into_iter().flatten();
        let who = folders.find_map(written::who_can_replace)?;
        Some(format!("{who}; set PUNCTUAL_CACHE to a folder of your own"))
    }

    /// Debian's kernels for an architecture that are here or can be downloaded, the newest
    /// last. `say` is told why the downloadable ones are missing, if they are.
    ///
    /// # Errors
    /// The cache cannot be read.
    pub fn list(&self, arch: Arch, say: &mut dyn FnMut(&str)) -> Result<Vec<Available>> {
        let packages = self.packages(arch);
        let local: Vec<_> =
            packages.local()?.into_iter().map(|local| local.available(arch)).collect();
        let offers = packages.packages(Lists::IfOld, say).unwrap_or_else(|error| {
            say(&format!("{error:#}"));
            Vec::new()
        });
        let offers = offers.into_iter().map(|offer| offer.available(arch));
        let mut all: Vec<Available> = Vec::new();
        for available in local.into_iter().rev().chain(offers) {
            let same = |other: &Available| {
                other.package == available.package && other.version == available.version
            };
            if !all.iter().any(same) {
                all.push(available);
            }
        }
        all.sort_by(|a, b| {
            let by_package = version_key(&a.package).cmp(&version_key(&b.package));
            by_package.then(version_key(&a.version).cmp(&version_key(&b.version)))
        });
        let series = |one: &Available| {
            let (abi, rt) = spec::of_package(&one.package, arch)?;
            Some((series_of(abi).to_owned(), rt))
        };
        let mut seen = Vec::new();
        for one in all.iter_mut().rev() {
            let series = series(one);
            one.latest = !seen.contains(&series);
            if one.latest {
                seen.push(series);
            }
        }
        Ok(all)
    }

    /// Downloads a Debian kernel unless it is here. Names without a version, such as
    /// `debian:rt`, mean the kernel of this machine's release of Debian, or of the stable one.
    ///
    /// # Errors
    /// The name is wrong or is a path; apt or dpkg is missing or does not know the package or
    /// the architecture; the network, the disk or the cache's folder fails. The text says what
    /// to do.
    pub fn fetch(
        &self,
        spec: &str,
        arch: Arch,
        progress: &mut dyn FnMut(FetchProgress<'_>),
    ) -> Result<Available> {
        let Spec::Debian(asked) = Spec::parse(spec)? else {
            bail!("{spec} is a path; only Debian's kernels can be downloaded");
        };
        let packages = self.packages(arch);
        let mut say = |text: &str| progress(FetchProgress::Step(text));
        let abi = packages.abi(&asked.which, &[asked.is_rt()], Lists::IfOld, &mut say)?;
        let local = match packages.newest_local(&abi, asked.is_rt())? {
            Some(local) => local,
            None => {
                let package = packages.package(&abi, asked.is_rt(), &mut say)?;
                packages.fetch(&package, progress)?
            }
        };
        Ok(local.available(arch))
    }

    /// The models that names without a version can have on x86_64: there are others since Linux
    /// 7.0.
    pub fn own_models(
        &self,
        arch: Arch,
        fetch_if_missing: bool,
        say: &mut dyn FnMut(&str),
    ) -> &'static [Model] {
        let packages = self.packages(arch);
        let lists = if fetch_if_missing { Lists::IfMissing } else { Lists::AsTheyAre };
        let abi = packages.abi(&Which::Own, &[false], lists, say).ok();
        let here = || packages.local_abi(&Which::Own, &[false]).ok().flatten();
        config::models_of(&abi.or_else(here).unwrap_or_default())
    }

    /// The kernels of these names and paths. Names without an exact version mean the same
    /// release for all models, whatever was fetched before: see [`FORMS`]. `modules` is the folder
    /// of modules for an image file, or replaces a kernel's own. With `fetch_if_missing` what is
    /// not here is downloaded; if that fails, names without an exact version mean the newest
    /// release that is here with all models. `say` is told that, and what takes time.
    ///
    /// # Errors
    /// Those of [`Kernels::fetch`]; or a kernel does not boot on `arch`, cannot have the
    /// preemption model, or is not here. The text says what to do.
    pub fn resolve(
        &self,
        specs: &[&str],
        arch: Arch,
        modules: Option<&Path>,
        fetch_if_missing: bool,
        say: &mut dyn FnMut(&str),
    ) -> Result<Vec<Kernel>> {
        let specs: Vec<Spec> = specs.iter().map(|spec| Spec::parse(spec)).collect::<Result<_>>()?;
        let mut releases: Vec<(&Which, String)> = Vec::new();
        let mut kernels = Vec::new();
        for spec in &specs {
            let mut kernel = match spec {
                Spec::Debian(asked) => {
                    let known = releases.iter().find(|(which, _)| **which == asked.which);
                    let abi = if let Some((_, abi)) = known {
                        abi.clone()
                    } else {
                        let abi =
                            self.release_of(&asked.which, &specs, arch, fetch_if_missing, say)?;
                        releases.push((&asked.which, abi.clone()));
                        abi
                    };
                    let local = self.here(asked, &abi, arch, fetch_if_missing, say)?;
                    self.debian(asked, local, arch, say)?
                }
                Spec::Path(path) => self.path(path, arch, say)?,
            };
            if let Some(modules) = modules {
                ensure!(modules.is_dir(), "--modules {}: not a folder", modules.display());
                kernel.modules = Some(modules.to_owned());
            }
            kernels.push(kernel);
        }
        Ok(kernels)
    }

    /// The kernel of this name with each preemption model that it has, as exact versions; that
    /// of the name alone if it names a model or is a path. `say` is told what is left out: a
    /// real-time kernel that Debian has not got.
    ///
    /// # Errors
    /// Those of [`Kernels::resolve`].
    pub fn with_all_models(
        &self,
        spec: &str,
        arch: Arch,
        fetch_if_missing: bool,
        say: &mut dyn FnMut(&str),
    ) -> Result<Vec<Kernel>> {
        let one = Spec::parse(spec)?;
        let Spec::Debian(Debian { which, model }) = &one else {
            return self.resolve(&[spec], arch, None, fetch_if_missing, say);
        };
        let abi =
            self.release_of(which, std::slice::from_ref(&one), arch, fetch_if_missing, say)?;
        let mut exact = |model| {
            let name = Debian { which: Which::Exact(abi.clone()), model }.to_string();
            self.resolve(&[&name], arch, None, fetch_if_missing, say)
        };
        if model.is_some() {
            return exact(*model);
        }
        let stock = exact(None)?;
        let mut all = Vec::new();
        for model in [Model::None, Model::Voluntary, Model::Lazy, Model::Full] {
            // The kernel is here: what can fail is that it has no such model.
            all.extend(exact(Some(model)).unwrap_or_default());
        }
        if all.is_empty() {
            all = stock;
        }
        match exact(Some(Model::Rt)) {
            Ok(rt) => all.extend(rt),
            Err(error) => say(&format!("debian:{abi}-rt is left out: {error:#}")),
        }
        Ok(all)
    }

    /// The newest series that Debian has, such as `7.3`.
    ///
    /// # Errors
    /// Its lists cannot be read, and no kernel is here.
    pub fn newest_series(
        &self,
        arch: Arch,
        fetch_if_missing: bool,
        say: &mut dyn FnMut(&str),
    ) -> Result<String> {
        let packages = self.packages(arch);
        let lists = if fetch_if_missing { Lists::IfMissing } else { Lists::AsTheyAre };
        let newest = match packages.packages(lists, say) {
            Ok(all) => all.last().map(|package| package.name.clone()),
            Err(error) => Some(packages.local()?.pop().ok_or(error)?.name),
        };
        let newest = newest.context("Debian has no kernels")?;
        let abi = spec::of_package(&newest, arch).map_or(newest.as_str(), |(abi, _)| abi);
        Ok(series_of(abi).to_owned())
    }

    /// The release that a name means, for all models that are asked for together.
    fn release_of(
        &self,
        which: &Which,
        specs: &[Spec],
        arch: Arch,
        fetch_if_missing: bool,
        say: &mut dyn FnMut(&str),
    ) -> Result<String> {
        let packages = self.packages(arch);
        let asked = specs.iter().filter_map(|spec| match spec {
            Spec::Debian(asked) if asked.which == *which => Some(asked),
            _ => None,
        });
        let asked: Vec<&Debian> = asked.collect();
        let flavours: Vec<bool> = asked.iter().map(|asked| asked.is_rt()).collect();
        let lists = if fetch_if_missing { Lists::IfMissing } else { Lists::AsTheyAre };
        let newest =
            packages.abi(which, &flavours, lists, say).map_err(|error| match asked.first() {
                Some(first) if error.is::<NoLists>() => not_here(first, "", arch),
                _ => error,
            });
        let newest = newest.and_then(|abi| {
            for asked in asked {
                self.here(asked, &abi, arch, fetch_if_missing, say)?;
            }
            Ok(abi)
        });
        let error = match (newest, which) {
            (Ok(abi), _) => return Ok(abi),
            // What is here need not be of this release.
            (Err(error), Which::Exact(_) | Which::Suite(_)) => return Err(error),
            (Err(error), Which::Own | Which::Series(_)) => error,
        };
        let Some(abi) = packages.local_abi(which, &flavours)? else { return Err(error) };
        say(&format!("{error:#}; using debian:{abi} instead"));
        Ok(abi)
    }

    fn packages(&self, arch: Arch) -> Packages<'_> {
        let archive = Archive { tools: &self.tools, cache: &self.cache, root: &self.root, arch };
        Packages { archive }
    }

    /// The package of the release that is asked for; downloaded if it is not here and may be.
    fn here(
        &self,
        asked: &Debian,
        abi: &str,
        arch: Arch,
        fetch_if_missing: bool,
        say: &mut dyn FnMut(&str),
    ) -> Result<Local> {
        let packages = self.packages(arch);
        if let Some(local) = packages.newest_local(abi, asked.is_rt())? {
            return Ok(local);
        }
        let exact = asked.exactly(abi);
        let means = if *asked == exact { String::new() } else { format!(" ({exact})") };
        if !fetch_if_missing {
            return Err(not_here(asked, &means, arch));
        }
        let package = packages.package(abi, asked.is_rt(), say)?;
        let mut progress = |progress: FetchProgress<'_>| {
            if let FetchProgress::Step(text) | FetchProgress::Note(text) = progress {
                say(text);
            }
        };
        packages.fetch(&package, &mut progress)
    }

    fn debian(
        &self,
        asked: &Debian,
        local: Local,
        arch: Arch,
        say: &mut dyn FnMut(&str),
    ) -> Result<Kernel> {
        let parts = Parts::of(&local.root, &local.name).with_context(|| {
            format!("{} is incomplete: remove it and download it again", local.root.display())
        })?;
        if local.state == State::Cached && !sums::are_kept(&local.root) {
            self.keep_sums(&local.root, say);
        }
        let image = Bootable::of(&parts.image, arch, &self.cache, say)?;
        let config = match &parts.config {
            Some(path) => Config::read(path)?,
            None => Config::of_image(&image.contents()?, &parts.release),
        };
        let parameters = asked.model.map_or(Ok(Vec::new()), |model| {
            config.parameters(model, &local.name, &parts.release).map_err(of_kernel)
        })?;
        let model = asked.model.or_else(|| config.model());
        Ok(Kernel {
            name: asked.to_string(),
            arch,
            image: image.path,
            image_sha256: image.sha256,
            release: parts.release,
            parameters,
            model,
            config: parts.config,
            modules: parts.modules,
            package: Some(format!("{} {}", local.name, local.version)),
        })
    }

    /// Keeps the sums of a package that an older punctual fetched, from now on. A cache that cannot
    /// be written has none.
    fn keep_sums(&self, root: &Path, say: &mut dyn FnMut(&str)) {
        if let Ok(_writer) = self.cache.writer(say)
            && !sums::are_kept(root)
        {
            let _ = sums::keep(root);
        }
    }

    fn path(&self, path: &Path, arch: Arch, say: &mut dyn FnMut(&str)) -> Result<Kernel> {
        // A path such as `..` or a link would give a meaningless name.
        let path = fs::canonicalize(path).map_err(|error| {
            of_kernel(anyhow!("no kernel at {}: {error}; use one of\n{FORMS}", path.display()))
        })?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_tree = path.is_dir();
        let says_nothing = !is_tree && NAMES_OF_ALL.contains(&name.as_str());
        let image =
            if is_tree { tree::image(&path, arch).map_err(of_kernel)? } else { path.clone() };
        let image = Bootable::of(&image, arch, &self.cache, say)?;
        let config = if is_tree {
            Some(path.join(".config"))
        } else {
            // The layouts of /boot, and of a folder of modules that has the image too.
            let of_release = format!("config-{}", image.release);
            let names = [Some(of_release.as_str()), says_nothing.then_some("config")];
            let mut files = names.into_iter().flatten().map(|name| path.with_file_name(name));
            files.find(|config| config.is_file())
        };
        let read = config.as_deref().map(Config::read).transpose().map_err(of_kernel)?;
        let release =
            if is_tree { tree::release(&path).map_err(of_kernel)? } else { image.release };
        Ok(Kernel {
            name: if says_nothing { release.clone() } else { name },
            arch,
            image: image.path,
            image_sha256: image.sha256,
            release,
            parameters: Vec::new(),
            model: read.and_then(|config| config.model()),
            config,
            modules: is_tree.then_some(path),
            package: None,
        })
    }
}

/// File names that every kernel's image has, one folder for each kernel: runs of such an image are
/// named by its release.
const NAMES_OF_ALL: [&str; 5] = ["vmlinuz", "vmlinux", "bzImage", "Image", "Image.gz"];

/// What to do about a kernel that is not here and may not be downloaded now.
fn not_here(asked: &Debian, means: &str, arch: Arch) -> anyhow::Error {
    of_kernel(anyhow!(
        "{asked} for {arch}{means} is not on this machine; download it with `{}`",
        fetch_command(&asked.to_string(), arch)
    ))
}
