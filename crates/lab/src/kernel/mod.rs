//! Kernels by name: Debian's, image files and build trees.

mod cache;
mod config;
mod debian;
pub mod image;
mod spec;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use sha2::{Digest, Sha256};

use crate::arch::Arch;
use cache::Cache;
use config::Config;
use debian::{Local, Offer, Packages, Tools, fetch_command};
use image::{Form, Payload};
use spec::{Debian, Model, Spec};

pub use spec::FORMS;

/// The largest image that is read, bytes. Kernels with debug information have some 500 MB.
const MOST_IMAGE: u64 = 2 << 30;

/// A kernel, ready to be booted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// As it was asked for; of a path its last part.
    pub name: String,
    /// What it runs on.
    pub arch: Arch,
    /// What QEMU gets as `-kernel`.
    pub image: PathBuf,
    /// SHA-256 of the image as it was found, hexadecimal; `image` may be what is in it.
    pub image_sha256: String,
    /// As `uname -r` prints it.
    pub release: String,
    /// What the name asks of its command line, e.g. `preempt=none`.
    pub parameters: Vec<String>,
    /// The preemption model that it must report once it runs, `none` to `rt`; `None` where
    /// no configuration says it.
    pub model: Option<String>,
    /// Its configuration, where that is known.
    pub config: Option<PathBuf>,
    /// What holds its modules: a folder as `/lib/modules/RELEASE`, or a build tree.
    pub modules: Option<PathBuf>,
    /// Package and version, of one of Debian's.
    pub package: Option<String>,
}

/// How far a package is from being booted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Installed on this machine.
    Installed,
    /// Unpacked in the cache.
    Cached,
    /// In reach of apt.
    Downloadable,
}

/// A kernel that can be had by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Available {
    /// How to ask for it, e.g. `debian:6.1.0-56-rt`.
    pub name: String,
    /// Its package.
    pub package: String,
    /// The package's version.
    pub version: String,
    /// Where it is.
    pub state: State,
    /// Size of the download, of one that is downloadable.
    pub download_bytes: Option<u64>,
}

/// What a fetch does meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress<'a> {
    /// What it has begun, for people.
    Step(&'a str),
    /// How much of the download is here.
    Bytes {
        /// So far.
        done: u64,
        /// In the end; 0 where apt does not say it.
        total: u64,
    },
}

/// The kernels of this machine: its cache and what its package manager reaches.
#[derive(Debug)]
pub struct Kernels {
    cache: Cache,
    tools: Tools,
    /// Where `boot` and `lib` of installed kernels are.
    root: PathBuf,
}

impl Kernels {
    /// With the cache in `$PUNCTUAL_CACHE`, else `$XDG_CACHE_HOME/punctual`, else
    /// `~/.cache/punctual`. Nothing is written before something is kept.
    ///
    /// # Errors
    /// None of these variables, nor `HOME`, is set.
    pub fn of_user() -> Result<Self> {
        Ok(Self { cache: Cache::of_user()?, tools: Tools::default(), root: "/".into() })
    }

    /// Where kernels are kept.
    #[must_use]
    pub fn cache_folder(&self) -> &Path {
        &self.cache.folder
    }

    /// Debian's kernels that can be had for an architecture, the newest last. `say` hears
    /// why those that could be downloaded are not among them.
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

    /// Brings a kernel of Debian's here, where it is not. Of `debian:rt` and the like that
    /// is the newest that apt knows.
    ///
    /// # Errors
    /// The name is wrong or a path; apt or dpkg is missing or does not know the package or
    /// the architecture; the network, the disk or the cache's folder fails. The text
    /// says what to do.
    pub fn fetch(
        &self,
        spec: &str,
        arch: Arch,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Available> {
        let Spec::Debian(asked) = Spec::parse(spec)? else {
            bail!("{spec} is a path: only kernels of Debian's are fetched");
        };
        let packages = self.packages(arch);
        let local = packages.newest_local(&asked)?;
        if asked.abi.is_some()
            && let Some(local) = local
        {
            return Ok(local.available(arch));
        }
        let offer = packages.offer(&asked)?;
        match local {
            Some(local) if !is_newer(&offer, &local) => Ok(local.available(arch)),
            _ => Ok(packages.fetch(&offer, progress)?.available(arch)),
        }
    }

    /// The kernel of this name or path. `modules` are those of a kernel that is named by an
    /// image file, or other ones than a kernel's own. With `fetch_if_missing` the newest of Debian's is
    /// fetched where apt knows a newer one than is here, and one here is used where that fails.
    /// `say` hears what takes time and what is other than expected.
    ///
    /// # Errors
    /// As [`Kernels::fetch`]; or the kernel does not boot on `arch`, cannot have the
    /// preemption model, or is not here. The text says what to do.
    pub fn resolve(
        &self,
        spec: &str,
        arch: Arch,
        modules: Option<&Path>,
        fetch_if_missing: bool,
        say: &mut dyn FnMut(&str),
    ) -> Result<Kernel> {
        let mut kernel = match Spec::parse(spec)? {
            Spec::Debian(asked) => self.debian(&asked, arch, fetch_if_missing, say)?,
            Spec::Path(path) => self.path(&path, arch, say)?,
        };
        if let Some(modules) = modules {
            ensure!(modules.is_dir(), "{} is no folder of modules", modules.display());
            kernel.modules = Some(modules.to_owned());
        }
        Ok(kernel)
    }

    fn packages(&self, arch: Arch) -> Packages<'_> {
        Packages { tools: &self.tools, cache: &self.cache, root: &self.root, arch }
    }

    fn debian(
        &self,
        asked: &Debian,
        arch: Arch,
        fetch_if_missing: bool,
        say: &mut dyn FnMut(&str),
    ) -> Result<Kernel> {
        let mut local = self.packages(arch).newest_local(asked)?;
        if fetch_if_missing && (local.is_none() || asked.abi.is_none()) {
            match (self.fetch_newer(asked, arch, local.as_ref(), say), &local) {
                (Ok(Some(fetched)), _) => local = Some(fetched),
                (Ok(None), _) => {}
                (Err(error), Some(here)) => {
                    say(&format!("{error:#}; {} {} is used", here.name, here.version));
                }
                (Err(error), None) => return Err(error),
            }
        }
        let local = local.with_context(|| {
            let fetch = fetch_command(&asked.to_string(), arch);
            format!("{asked} for {arch} is not on this machine: {fetch}")
        })?;
        let parts = Parts::of(&local.root, &local.name).with_context(|| {
            format!("{} is not whole: remove it and fetch it again", local.root.display())
        })?;
        let config = read_config(&parts.config)?;
        let parameters =
            asked.model.map_or(Ok(Vec::new()), |model| config.parameters(model, &local.name))?;
        let model = asked.model.map(Model::name).or_else(|| config.model());
        let image = self.image(&parts.image, arch, say)?;
        Ok(Kernel {
            name: asked.to_string(),
            arch,
            image: image.boots,
            image_sha256: image.sha256,
            release: parts.release,
            parameters,
            model: model.map(String::from),
            config: Some(parts.config),
            modules: Some(parts.modules),
            package: Some(format!("{} {}", local.name, local.version)),
        })
    }

    /// Fetches what was asked for where it is newer than what is here.
    fn fetch_newer(
        &self,
        asked: &Debian,
        arch: Arch,
        here: Option<&Local>,
        say: &mut dyn FnMut(&str),
    ) -> Result<Option<Local>> {
        let packages = self.packages(arch);
        let offer = packages.offer(asked)?;
        if here.is_some_and(|here| !is_newer(&offer, here)) {
            return Ok(None);
        }
        let mut progress = |progress: Progress<'_>| {
            if let Progress::Step(text) = progress {
                say(text);
            }
        };
        packages.fetch(&offer, &mut progress).map(Some)
    }

    fn path(&self, path: &Path, arch: Arch, say: &mut dyn FnMut(&str)) -> Result<Kernel> {
        // `..` and links are names of their own for nobody.
        let path = fs::canonicalize(path).map_err(|error| {
            anyhow!("no kernel at {}: {error}; the forms are\n{FORMS}", path.display())
        })?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_tree = path.is_dir();
        let image = if is_tree { tree_image(&path, arch)? } else { path.clone() };
        let image = self.image(&image, arch, say)?;
        let config = if is_tree {
            Some(path.join(".config"))
        } else {
            // As /boot and unpacked packages have it.
            Some(path.with_file_name(format!("config-{}", image.release)))
                .filter(|config| config.exists())
        };
        let read = config.as_deref().map(read_config).transpose()?;
        let release = if is_tree { tree_release(&path)? } else { image.release };
        Ok(Kernel {
            name,
            arch,
            image: image.boots,
            image_sha256: image.sha256,
            release,
            parameters: Vec::new(),
            model: read.and_then(|config| config.model()).map(String::from),
            config,
            modules: is_tree.then_some(path),
            package: None,
        })
    }

    /// Checks an image, and unpacks it where that makes it boot faster.
    fn image(&self, path: &Path, arch: Arch, say: &mut dyn FnMut(&str)) -> Result<Image> {
        let shown = || path.display().to_string();
        let length = fs::metadata(path).with_context(shown)?.len();
        ensure!(length <= MOST_IMAGE, "{}: {length} bytes are no kernel", path.display());
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let form = Form::of(&bytes).with_context(shown)?;
        ensure!(
            form.arch() == arch,
            "{} is a kernel for {}, and the board is {arch}",
            path.display(),
            form.arch()
        );
        let release = form.release(&bytes).with_context(shown)?;
        let sha256 = sha256(&bytes);
        let boots = match form {
            Form::BzImage => self.unpacked(path, &bytes, &sha256, say)?,
            Form::Pvh | Form::Image | Form::ImageGz => path.to_owned(),
        };
        Ok(Image { boots, sha256, release })
    }

    /// The ELF file in a bzImage, in the cache; the bzImage itself where there is none that boots.
    fn unpacked(
        &self,
        path: &Path,
        image: &[u8],
        sha256: &str,
        say: &mut dyn FnMut(&str),
    ) -> Result<PathBuf> {
        let vmlinux = self.cache.vmlinux(sha256);
        if vmlinux.exists() {
            return Ok(vmlinux);
        }
        match image::payload(image).with_context(|| path.display().to_string())? {
            Payload::Vmlinux(bytes) => {
                let writer = self.cache.writer(say)?;
                if !vmlinux.exists() {
                    writer.keep_vmlinux(sha256, &bytes)?;
                }
                Ok(vmlinux)
            }
            Payload::Opaque(reason) => {
                say(&format!(
                    "{} unpacks itself in the guest, which takes longer: its payload is {reason}",
                    path.display()
                ));
                Ok(path.to_owned())
            }
        }
    }
}

/// An image that boots.
struct Image {
    boots: PathBuf,
    sha256: String,
    release: String,
}

/// The parts of an unpacked or installed package of Debian's.
struct Parts {
    release: String,
    image: PathBuf,
    config: PathBuf,
    modules: PathBuf,
}

impl Parts {
    /// `None` where one is missing.
    fn of(root: &Path, package: &str) -> Option<Self> {
        let release = package.strip_prefix("linux-image-")?.to_owned();
        let image = root.join("boot").join(format!("vmlinuz-{release}"));
        let config = root.join("boot").join(format!("config-{release}"));
        // Debian 13 moved them below /usr.
        let modules = ["lib/modules", "usr/lib/modules"]
            .into_iter()
            .map(|folder| root.join(folder).join(&release))
            .find(|folder| folder.join("kernel").is_dir())?;
        (image.is_file() && config.is_file()).then_some(Self { release, image, config, modules })
    }
}

/// Whether an offer is a newer kernel than one that is here. A new revision of the same ABI
/// is no other kernel: what was measured stays comparable.
fn is_newer(offer: &Offer, here: &Local) -> bool {
    spec::version_key(&offer.name) > spec::version_key(&here.name)
}

/// The image in a build tree.
fn tree_image(tree: &Path, arch: Arch) -> Result<PathBuf> {
    let config = tree.join(".config");
    ensure!(
        config.is_file(),
        "{} is no build tree of a kernel (it has no .config); the forms are\n{FORMS}",
        tree.display()
    );
    let config = read_config(&config)?;
    let (option, images): (_, &[&str]) = match arch {
        // A vmlinux is never older than the bzImage that is made of it.
        Arch::X86_64 => ("CONFIG_X86_64", &["vmlinux", "arch/x86/boot/bzImage"]),
        Arch::Aarch64 => ("CONFIG_ARM64", &["arch/arm64/boot/Image", "arch/arm64/boot/Image.gz"]),
    };
    ensure!(
        config.has(option),
        "{} is configured for another architecture than the board's, {arch} (no {option})",
        tree.display()
    );
    let mut built = images.iter().map(|image| tree.join(image)).filter(|image| image.is_file());
    let first = built.next();
    // Without a PVH entry the bzImage beside a vmlinux is what boots.
    let boots = match built.next() {
        Some(packed) if arch == Arch::X86_64 && !config.has("CONFIG_PVH") => Some(packed),
        _ => first,
    };
    boots.with_context(|| {
        format!("{} has not been built: it has no {}", tree.display(), images.join(" nor "))
    })
}

fn tree_release(tree: &Path) -> Result<String> {
    let path = tree.join("include/config/kernel.release");
    let text = fs::read_to_string(&path)
        .with_context(|| format!("cannot read {} (is it built?)", path.display()))?;
    Ok(text.trim().to_owned())
}

fn read_config(path: &Path) -> Result<Config> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Config::new(text))
}

/// SHA-256, hexadecimal.
fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::image::tests::{arm64_image, bz_image, vmlinux};
    use super::*;
    use crate::decompress::tests::gzip;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A folder of a test, gone with it.
    pub(crate) struct Folder(pub(crate) PathBuf);

    impl Folder {
        pub(crate) fn new() -> Self {
            static COUNT: AtomicU32 = AtomicU32::new(0);
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!("punctual-lab-{}-{number}", std::process::id());
            let path = fs::canonicalize(std::env::temp_dir()).unwrap().join(name);
            fs::create_dir(&path).unwrap();
            Self(path)
        }

        pub(crate) fn write(&self, path: &str, content: &[u8]) {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const STOCK: &[u8] = b"CONFIG_PREEMPT_VOLUNTARY=y\nCONFIG_PREEMPT_DYNAMIC=y\n";
    const RT: &[u8] = b"CONFIG_PREEMPT_RT=y\n";

    /// A machine with a network: apt knows 6.1.0-9 and 6.1.0-56 of both flavours.
    const APT_CACHE: &str = r#"
case "$1" in
depends)
    case "$2" in
    linux-image-amd64:amd64) echo "linux-image-amd64"; echo "  Depends: linux-image-6.1.0-56-amd64" ;;
    linux-image-rt-amd64:amd64) echo "  Depends: linux-image-6.1.0-56-rt-amd64" ;;
    *) echo "E: No packages found" >&2; exit 100 ;;
    esac ;;
pkgnames) for n in 6.1.0-56 6.1.0-9 6.1.0-7; do
        echo linux-image-$n-amd64; echo linux-image-$n-rt-amd64; echo linux-image-$n-amd64-dbg
    done ;;
show) shift 2; for p; do case "$p" in
    linux-image-6.1.0-56-*amd64:amd64|linux-image-6.1.0-9-*amd64:amd64)
        printf 'Package: %s\nVersion: 6.1.192-2\nInstalled-Size: 4\nArchitecture: amd64\nSize: 1000000\nDescription: a kernel\n\n' "${p%:*}" ;;
    *) echo "E: No packages found" >&2 ;;
    esac; done ;;
esac"#;
    const APT_GET: &str = r#"
[ "$1" = download ] || exit 9
p=${2%%:*}; echo "$2" >>"$tools/downloads"; echo "$p" >"${p}_x_amd64.deb""#;
    const DPKG_DEB: &str = r#"
[ "$1" = -x ] || exit 9
read -r p <"$2"; r=${p#linux-image-}; mkdir -p "$3/boot" "$3/lib/modules/$r/kernel"
cp "$tools/vmlinuz" "$3/boot/vmlinuz-$r"
case "$r" in *-rt-*) c=rt ;; *) c=stock ;; esac
cp "$tools/config-$c" "$3/boot/config-$r""#;

    /// A machine of its own: its cache, its root folder and its commands.
    struct Machine {
        folder: Folder,
        kernels: Kernels,
    }

    impl Machine {
        fn new() -> Self {
            let folder = Folder::new();
            folder.write("tools/vmlinuz", &bz_image(&gzip(&vmlinux())));
            folder.write("tools/config-stock", STOCK);
            folder.write("tools/config-rt", RT);
            let kernels = Kernels {
                cache: Cache { folder: folder.0.join("cache/kernels") },
                tools: Tools { folder: Some(folder.0.join("tools")) },
                root: folder.0.join("root"),
            };
            let machine = Self { folder, kernels };
            machine.tool("apt-cache", APT_CACHE);
            machine.tool("apt-get", APT_GET);
            machine.tool("dpkg-deb", DPKG_DEB);
            machine.tool("dpkg", "[ $1 != --print-architecture ] || echo amd64");
            machine.tool("dpkg-query", "exit 1");
            machine
        }

        /// Has a command do this. The script is only read, never executed as a file: a file that
        /// another thread's child still has open for writing cannot be.
        fn tool(&self, name: &str, script: &str) {
            let runner = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tool");
            let link = self.folder.0.join("tools").join(name);
            let _ = fs::remove_file(&link);
            std::os::unix::fs::symlink(runner, link).unwrap();
            self.folder.write(&format!("tools/{name}.sh"), script.as_bytes());
        }

        fn resolve(&self, spec: &str, fetch: bool) -> Result<(Kernel, Vec<String>)> {
            let mut said = Vec::new();
            let mut say = |text: &str| said.push(text.to_owned());
            let kernel = self.kernels.resolve(spec, Arch::X86_64, None, fetch, &mut say)?;
            Ok((kernel, said))
        }

        fn error(&self, spec: &str, fetch: bool) -> String {
            format!("{:#}", self.resolve(spec, fetch).unwrap_err())
        }

        fn downloads(&self) -> usize {
            fs::read_to_string(self.folder.0.join("tools/downloads"))
                .map_or(0, |t| t.lines().count())
        }
    }

    #[test]
    fn a_missing_kernel_is_fetched_once() {
        let machine = Machine::new();
        let missing = machine.error("debian:full", false);
        assert!(missing.contains("punctual lab fetch debian:full"), "{missing}");
        let resolved =
            machine.kernels.resolve("debian:rt", Arch::Aarch64, None, false, &mut |_| ());
        let other = resolved.unwrap_err().to_string();
        assert!(other.contains("punctual lab fetch --board aarch64 debian:rt"), "{other}");
        assert_eq!(machine.downloads(), 0);

        let (kernel, said) = machine.resolve("debian:full", true).unwrap();
        let bytes = bz_image(&gzip(&vmlinux()));
        let cache = machine.kernels.cache_folder();
        let package = cache.join("debian/linux-image-6.1.0-56-amd64_6.1.192-2");
        let expected = Kernel {
            name: "debian:full".into(),
            arch: Arch::X86_64,
            image: cache.join("vmlinux").join(sha256(&bytes)),
            image_sha256: sha256(&bytes),
            release: "6.1.0-56-amd64".into(),
            parameters: vec!["preempt=full".into()],
            model: Some("full".into()),
            config: Some(package.join("boot/config-6.1.0-56-amd64")),
            modules: Some(package.join("lib/modules/6.1.0-56-amd64")),
            package: Some("linux-image-6.1.0-56-amd64 6.1.192-2".into()),
        };
        assert_eq!(kernel, expected);
        assert_eq!(fs::read(&kernel.image).unwrap(), vmlinux());
        assert_eq!(said[0], "fetching linux-image-6.1.0-56-amd64 6.1.192-2, 1 MB");

        let (kernel, said) = machine.resolve("debian:6.1.0-56", true).unwrap();
        assert_eq!((kernel.parameters.len(), kernel.model.as_deref()), (0, Some("voluntary")));
        assert_eq!(said, [""; 0]);
        machine.resolve("debian:none", true).unwrap();
        assert_eq!(machine.downloads(), 1);

        let (kernel, _) = machine.resolve("debian:rt", true).unwrap();
        assert_eq!((kernel.parameters.len(), kernel.model.as_deref()), (0, Some("rt")));
        assert_eq!(machine.downloads(), 2);
        let left: Vec<_> = fs::read_dir(cache).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left.len(), 3, "{left:?}");
    }

    #[test]
    fn without_meta_packages_the_newest_name_counts() {
        let machine = Machine::new();
        machine.tool("apt-cache", &APT_CACHE.replace("depends)", "none)"));
        let (kernel, _) = machine.resolve("debian:rt", true).unwrap();
        assert_eq!(kernel.release, "6.1.0-56-rt-amd64");
    }

    #[test]
    fn what_is_here_is_used_where_a_newer_one_cannot_be_fetched() {
        let machine = Machine::new();
        machine.kernels.fetch("debian:6.1.0-9-rt", Arch::X86_64, &mut |_| ()).unwrap();
        machine.tool(
            "apt-get",
            "echo 'W: x' >&2; echo 'E: Failed to fetch http://deb  Temporary failure' >&2; exit 100",
        );
        let (kernel, said) = machine.resolve("debian:rt", true).unwrap();
        assert_eq!(kernel.release, "6.1.0-9-rt-amd64");
        let last = said.last().unwrap();
        assert!(last.contains("apt-get: Failed to fetch http://deb  Temporary failure"), "{last}");
        assert!(last.ends_with("linux-image-6.1.0-9-rt-amd64 6.1.192-2 is used"), "{last}");
        let error = machine.error("debian:none", true);
        assert!(error.contains("punctual lab fetch debian:6.1.0-56; or name the path"), "{error}");
        assert_eq!(machine.resolve("debian:rt", false).unwrap().0.release, "6.1.0-9-rt-amd64");
    }

    #[test]
    fn an_installed_kernel_is_used_as_it_is() {
        let machine = Machine::new();
        machine.tool(
            "dpkg-query",
            "echo 'ii  linux-image-6.1.0-57-amd64 amd64 6.1.200-1'; \
             echo 'rc  linux-image-6.1.0-58-amd64 amd64 6.1.201-1'; \
             echo 'ii  linux-image-6.1.0-59-amd64 amd64 6.1.202-1'",
        );
        let folder = &machine.folder;
        folder.write("root/boot/vmlinuz-6.1.0-57-amd64", &bz_image(b"BZh9"));
        folder.write("root/boot/config-6.1.0-57-amd64", STOCK);
        folder.write("root/lib/modules/6.1.0-57-amd64/kernel/a.ko", b"");
        let (kernel, said) = machine.resolve("debian:none", true).unwrap();
        assert_eq!(kernel.package.unwrap(), "linux-image-6.1.0-57-amd64 6.1.200-1");
        assert_eq!(kernel.image, folder.0.join("root/boot/vmlinuz-6.1.0-57-amd64"));
        assert!(said[0].contains("compressed by bzip2"), "{said:?}");
        assert_eq!(machine.downloads(), 0);

        let mut said = Vec::new();
        let mut say = |text: &str| said.push(text.to_owned());
        let list = machine.kernels.list(Arch::X86_64, &mut say).unwrap();
        let brief: Vec<_> =
            list.iter().map(|a| (a.name.as_str(), a.state, a.download_bytes)).collect();
        let offered = |name| (name, State::Downloadable, Some(1_000_000));
        assert_eq!(
            brief,
            [
                offered("debian:6.1.0-9"),
                offered("debian:6.1.0-9-rt"),
                offered("debian:6.1.0-56"),
                offered("debian:6.1.0-56-rt"),
                ("debian:6.1.0-57", State::Installed, None),
            ]
        );
        assert_eq!(said, [""; 0]);
    }

    #[test]
    fn errors_say_what_to_do() {
        let machine = Machine::new();
        let error = machine.error("debian:6.1.0-20-rt", true);
        let near = "near it are debian:6.1.0-9-rt, debian:6.1.0-56-rt (`sudo apt-get update`";
        assert!(error.contains(near), "{error}");
        let arm = machine.kernels.fetch("debian:rt", Arch::Aarch64, &mut |_| ()).unwrap_err();
        let commands = "sudo dpkg --add-architecture arm64 && sudo apt-get update";
        assert!(arm.to_string().ends_with(commands), "{arm}");
        let path = machine.kernels.fetch("/boot/x", Arch::X86_64, &mut |_| ()).unwrap_err();
        assert!(path.to_string().contains("is a path"), "{path}");
        assert!(machine.error("debian:fast", true).ends_with(FORMS));

        machine.tool(
            "apt-cache",
            &APT_CACHE.replace("Installed-Size: 4", "Installed-Size: 9000000000000"),
        );
        let error = machine.error("debian:rt", true);
        assert!(error.contains("set PUNCTUAL_CACHE"), "{error}");
        machine.tool("apt-cache", APT_CACHE);
        machine
            .tool("dpkg-deb", "mkdir -p $3/boot; echo 'dpkg-deb: error: paste killed' >&2; exit 2");
        let error = machine.error("debian:rt", true);
        assert!(
            error.contains("disk") && error.ends_with("dpkg-deb: error: paste killed"),
            "{error}"
        );
        machine.tool("dpkg-deb", "mkdir -p $3/boot");
        let error = machine.error("debian:rt", true);
        assert!(error.contains("does not hold a kernel"), "{error}");
        machine.tool("apt-get", "exit 0");
        let error = machine.error("debian:rt", true);
        assert!(error.ends_with("apt-get has downloaded nothing"), "{error}");
        assert_eq!(machine.kernels.cache.packages().unwrap(), []);

        machine.tool("apt-cache", "exit 100");
        let error = machine.error("debian:rt", true);
        assert!(error.contains("sudo apt-get update"), "{error}");
        fs::remove_dir_all(machine.folder.0.join("tools")).unwrap();
        let error = machine.error("debian:rt", true);
        assert!(error.starts_with("dpkg is not on this machine"), "{error}");
        assert!(error.ends_with("name the path of a kernel instead"), "{error}");
    }

    #[test]
    fn a_download_tells_its_progress() {
        let machine = Machine::new();
        let mut bytes = Vec::new();
        let available = machine
            .kernels
            .fetch("debian:6.1.0-56", Arch::X86_64, &mut |progress| {
                if let Progress::Bytes { done, total } = progress {
                    bytes.push((done, total));
                }
            })
            .unwrap();
        assert_eq!((available.name.as_str(), available.state), ("debian:6.1.0-56", State::Cached));
        assert_eq!(bytes.last(), Some(&(27, 1_000_000)));
    }

    #[test]
    fn image_files_say_what_they_are() {
        let machine = Machine::new();
        let folder = &machine.folder;
        folder.write("k/vmlinuz", &bz_image(&gzip(&vmlinux())));
        folder.write("k/config-6.1.0-56-amd64", STOCK);
        folder.write("k/vmlinux", &vmlinux());
        folder.write("k/Image", &arm64_image());
        folder.write("k/note", b"text");
        let at = |name| folder.0.join(name).to_str().unwrap().to_owned();

        let (kernel, _) = machine.resolve(&at("k/vmlinuz"), false).unwrap();
        assert_eq!((kernel.name.as_str(), kernel.release.as_str()), ("vmlinuz", "6.1.0-56-amd64"));
        assert_eq!(kernel.model.as_deref(), Some("voluntary"));
        assert_eq!((kernel.modules, kernel.package), (None, None));
        let (kernel, _) = machine.resolve(&at("k/vmlinux"), false).unwrap();
        assert_eq!(kernel.image, folder.0.join("k/vmlinux"));

        let resolve = |arch, modules: Option<&Path>| {
            machine.kernels.resolve(&at("k/Image"), arch, modules, false, &mut |_| ())
        };
        let kernel = resolve(Arch::Aarch64, Some(&folder.0)).unwrap();
        assert_eq!((kernel.model, kernel.modules), (None, Some(folder.0.clone())));
        assert!(resolve(Arch::Aarch64, Some(&folder.0.join("gone"))).is_err());
        let error = resolve(Arch::X86_64, None).unwrap_err().to_string();
        assert!(error.ends_with("is a kernel for aarch64, and the board is x86_64"), "{error}");
        assert!(machine.error(&at("k/note"), false).contains("neither a bzImage"));
        let gone = machine.error(&at("k/gone"), false);
        assert!(gone.contains("(os error 2)") && gone.ends_with(FORMS), "{gone}");
        assert!(machine.error(&at("k"), false).contains("no .config"));
    }

    #[test]
    fn a_build_tree_has_its_own_modules() {
        let machine = Machine::new();
        let folder = &machine.folder;
        let tree = folder.0.join("linux");
        let spec = tree.to_str().unwrap();
        folder.write("linux/.config", b"CONFIG_X86_64=y\nCONFIG_PVH=y\nCONFIG_PREEMPT=y\n");
        assert!(machine.error(spec, false).contains("has not been built"));
        folder.write("linux/arch/x86/boot/bzImage", &bz_image(&gzip(&vmlinux())));
        assert!(machine.error(spec, false).contains("kernel.release"));
        folder.write("linux/include/config/kernel.release", b"6.19.0-rc1+\n");
        let (kernel, _) = machine.resolve(spec, false).unwrap();
        assert_eq!((kernel.name.as_str(), kernel.release.as_str()), ("linux", "6.19.0-rc1+"));
        assert_eq!((kernel.model.as_deref(), &kernel.modules), (Some("full"), &Some(tree.clone())));
        assert_eq!(fs::read(&kernel.image).unwrap(), vmlinux());

        folder.write("linux/vmlinux", &vmlinux());
        assert_eq!(machine.resolve(spec, false).unwrap().0.image, tree.join("vmlinux"));
        folder.write("linux/.config", b"CONFIG_X86_64=y\n");
        assert_ne!(machine.resolve(spec, false).unwrap().0.image, tree.join("vmlinux"));
        folder.write("linux/.config", b"CONFIG_ARM64=y\n");
        assert!(machine.error(spec, false).contains("no CONFIG_X86_64"));
    }
}
