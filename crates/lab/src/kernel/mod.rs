//! Kernels by name: Debian packages, image files and build trees.

mod available;
mod bootable;
mod cache;
mod config;
mod debian;
mod download;
pub mod image;
pub mod output;
mod parts;
mod spec;
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

use crate::arch::Arch;
use bootable::Bootable;
use cache::Cache;
use config::Config;
use debian::{Local, Packages, fetch_command};
use parts::Parts;
use spec::{Debian, Spec};
use tools::Tools;

pub(crate) use config::MOST_CONFIG;

pub use available::{Available, FetchProgress, State};
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

    /// Debian's kernels for an architecture that are here or can be downloaded, the newest
    /// last. `say` is told why the downloadable ones are missing, if they are.
    ///
    /// # Errors
    /// The cache cannot be read.
    pub fn list(&self, arch: Arch, say: &mut dyn FnMut(&str)) -> Result<Vec<Available>> {
        let packages = self.packages(arch);
        let local: Vec<_> =
            packages.local()?.into_iter().map(|local| local.available(arch)).collect();
        let offers = packages.offers().unwrap_or_else(|error| {
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
            let by_package = spec::version_key(&a.package).cmp(&spec::version_key(&b.package));
            by_package.then(spec::version_key(&a.version).cmp(&spec::version_key(&b.version)))
        });
        Ok(all)
    }

    /// Downloads a Debian kernel unless it is here. Names without a version, such as
    /// `debian:rt`, mean the release of the distribution's package `linux-image-ARCH`.
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
        let abi = match &asked.abi {
            Some(abi) => abi.clone(),
            None => packages.newest()?,
        };
        let exact = Debian { abi: Some(abi), model: asked.model };
        let local = match packages.newest_local(&exact)? {
            Some(local) => local,
            None => packages.fetch(&packages.offer(&exact)?, progress)?,
        };
        Ok(local.available(arch))
    }

    /// The kernels of these names and paths. Names without a version mean the same release for
    /// all models: that of the distribution's package `linux-image-ARCH`, whatever newer ones
    /// were fetched by their version. `modules` is the folder of modules for an image file, or
    /// replaces a kernel's own. With `fetch_if_missing` what is not here is downloaded; if that
    /// fails for names without a version, they mean the newest release that is here with all
    /// models. `say` is told that, and what takes time.
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
        let bare = specs.iter().filter_map(|spec| match spec {
            Spec::Debian(asked) if asked.abi.is_none() => Some(asked.clone()),
            _ => None,
        });
        let bare: Vec<Debian> = bare.collect();
        let release = match &bare[..] {
            [] => None,
            bare => Some(self.release_of(bare, arch, fetch_if_missing, say)?),
        };
        let mut kernels = Vec::new();
        for spec in specs {
            let mut kernel = match spec {
                Spec::Debian(asked) => {
                    let abi = asked.abi.clone().or_else(|| release.clone());
                    let exact = Debian { abi, model: asked.model };
                    let local = self.here(&asked, &exact, arch, fetch_if_missing, say)?;
                    self.debian(&asked, local, arch, say)?
                }
                Spec::Path(path) => self.path(&path, arch, say)?,
            };
            if let Some(modules) = modules {
                ensure!(modules.is_dir(), "--modules {}: not a folder", modules.display());
                kernel.modules = Some(modules.to_owned());
            }
            kernels.push(kernel);
        }
        Ok(kernels)
    }

    /// The release that these names without a version mean.
    fn release_of(
        &self,
        bare: &[Debian],
        arch: Arch,
        fetch_if_missing: bool,
        say: &mut dyn FnMut(&str),
    ) -> Result<String> {
        let packages = self.packages(arch);
        let exact =
            |asked: &Debian, abi: &str| Debian { abi: Some(abi.to_owned()), model: asked.model };
        let newest = packages.newest().and_then(|abi| {
            for asked in bare {
                self.here(asked, &exact(asked, &abi), arch, fetch_if_missing, say)?;
            }
            Ok(abi)
        });
        let error = match newest {
            Ok(abi) => return Ok(abi),
            Err(error) => error,
        };
        for local in packages.local()?.into_iter().rev() {
            let Some((abi, _)) = spec::of_package(&local.name, arch) else { continue };
            let here = |asked: &Debian| {
                packages.newest_local(&exact(asked, abi)).is_ok_and(|local| local.is_some())
            };
            if bare.iter().all(here) {
                say(&format!("{error:#}; using debian:{abi} instead"));
                return Ok(abi.to_owned());
            }
        }
        Err(error)
    }

    fn packages(&self, arch: Arch) -> Packages<'_> {
        Packages { tools: &self.tools, cache: &self.cache, root: &self.root, arch }
    }

    /// The package of `exact`, which `asked` means; downloaded if it is not here and may be.
    fn here(
        &self,
        asked: &Debian,
        exact: &Debian,
        arch: Arch,
        fetch_if_missing: bool,
        say: &mut dyn FnMut(&str),
    ) -> Result<Local> {
        let packages = self.packages(arch);
        if let Some(local) = packages.newest_local(exact)? {
            return Ok(local);
        }
        let means = if asked == exact { String::new() } else { format!(" ({exact})") };
        ensure!(
            fetch_if_missing,
            "{asked} for {arch}{means} is not on this machine; download it with `{}`",
            fetch_command(&asked.to_string(), arch)
        );
        let mut progress = |progress: FetchProgress<'_>| {
            if let FetchProgress::Step(text) = progress {
                say(text);
            }
        };
        packages.fetch(&packages.offer(exact)?, &mut progress)
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
        let config = Config::read(&parts.config)?;
        let parameters =
            asked.model.map_or(Ok(Vec::new()), |model| config.parameters(model, &local.name))?;
        let model = asked.model.or_else(|| config.model());
        let image = Bootable::of(&parts.image, arch, &self.cache, say)?;
        Ok(Kernel {
            name: asked.to_string(),
            arch,
            image: image.path,
            image_sha256: image.sha256,
            release: parts.release,
            parameters,
            model,
            config: Some(parts.config),
            modules: Some(parts.modules),
            package: Some(format!("{} {}", local.name, local.version)),
        })
    }

    fn path(&self, path: &Path, arch: Arch, say: &mut dyn FnMut(&str)) -> Result<Kernel> {
        // A path such as `..` or a link would give a meaningless name.
        let path = fs::canonicalize(path).map_err(|error| {
            anyhow!("no kernel at {}: {error}; use one of\n{FORMS}", path.display())
        })?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_tree = path.is_dir();
        let image = if is_tree { tree::image(&path, arch)? } else { path.clone() };
        let image = Bootable::of(&image, arch, &self.cache, say)?;
        let config = if is_tree {
            Some(path.join(".config"))
        } else {
            // The layout of /boot and of unpacked packages.
            Some(path.with_file_name(format!("config-{}", image.release)))
                .filter(|config| config.exists())
        };
        let read = config.as_deref().map(Config::read).transpose()?;
        let release = if is_tree { tree::release(&path)? } else { image.release };
        Ok(Kernel {
            name,
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
