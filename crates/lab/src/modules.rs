//! Kernel modules and their dependencies, in loading order.
//!
//! Dependencies are read from the modules themselves, because an unpacked package has no
//! modules.dep; depmod creates that on installation. Soft dependencies are ignored.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use punctual_sys::file;

use crate::decompress::{Compression, MOST};
use crate::elf::Elf;

/// The largest `modules.builtin` that is read, bytes; they have about 100 kB.
const MOST_LIST: u64 = 16 << 20;

/// What a folder of modules contains, one of them at least: an installed kernel's, an unpacked
/// package's, a build tree.
const SIGNS: [&str; 5] = ["kernel", "modules.order", "modules.builtin", "updates", ".config"];

/// A module, ready for `finit_module`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// Its name as the kernel lists it, with `_` instead of `-`.
    pub name: String,
    /// Its file name without the suffix of a compression, such as `snd-aloop.ko`.
    pub file_name: String,
    /// Its uncompressed content.
    pub bytes: Vec<u8>,
}

/// What a module says about itself in `.modinfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Modinfo {
    /// Modules that must be loaded before it.
    pub depends: Vec<String>,
    /// Release of the kernel that it is for, the first word of `vermagic`.
    pub release: String,
}

impl Modinfo {
    /// Reads it from a module's ELF file.
    ///
    /// # Errors
    /// The bytes are not a 64-bit ELF file, or lack `.modinfo` or `vermagic`.
    pub fn read(module: &[u8]) -> Result<Self> {
        let elf = Elf::read(module).context("not a 64-bit little-endian ELF file")?;
        let section = elf.section(b".modinfo").context("it has no section .modinfo")?;
        let mut depends = Vec::new();
        let mut release = None;
        for field in section.split(|&byte| byte == 0) {
            let field = String::from_utf8_lossy(field);
            match field.split_once('=') {
                Some(("depends", names)) => depends
                    .extend(names.split(',').filter(|name| !name.is_empty()).map(String::from)),
                Some(("vermagic", magic)) => {
                    release = magic.split(' ').next().map(String::from);
                }
                _ => {}
            }
        }
        Ok(Self { depends, release: release.context("it has no vermagic in its .modinfo")? })
    }
}

/// The modules of these names and all their dependencies, each after the modules that it
/// depends on. Modules that are built into the kernel are left out.
///
/// `folder` is a kernel's build tree, or a folder such as `/lib/modules/RELEASE` that contains
/// `kernel/` and `modules.builtin`; `release` is that kernel's.
///
/// # Errors
/// A module is neither there nor built in, cannot be read, or belongs to another kernel.
pub fn closure(folder: &Path, release: &str, wanted: &[&str]) -> Result<Vec<Module>> {
    let mut closure = Closure {
        folder,
        release,
        files: files_below(folder)?,
        builtin: builtin(folder)?,
        seen: HashSet::new(),
        modules: Vec::new(),
    };
    for name in wanted {
        closure.add(name, None)?;
    }
    Ok(closure.modules)
}

struct Closure<'a> {
    folder: &'a Path,
    release: &'a str,
    files: HashMap<String, PathBuf>,
    builtin: HashSet<String>,
    seen: HashSet<String>,
    modules: Vec<Module>,
}

impl Closure<'_> {
    fn add(&mut self, name: &str, needed_by: Option<&str>) -> Result<()> {
        let name = normal(name);
        // Marked before its dependencies, which ends cycles.
        if self.builtin.contains(&name) || !self.seen.insert(name.clone()) {
            return Ok(());
        }
        let Some(path) = self.files.get(&name).cloned() else {
            let by = needed_by.map_or_else(String::new, |by| format!(", which {by} needs,"));
            bail!(
                "module {name}{by} is neither in {} nor built into the kernel",
                self.folder.display()
            );
        };
        let bytes = read(&path)?;
        let info = Modinfo::read(&bytes).with_context(|| path.display().to_string())?;
        ensure!(
            info.release == self.release,
            "{} is for kernel {}, but the kernel is {}: use the modules that were built with it",
            path.display(),
            info.release,
            self.release
        );
        for needed in &info.depends {
            self.add(needed, Some(&name))?;
        }
        let file_name = format!("{}.ko", stem(&path).unwrap_or(&name));
        self.modules.push(Module { name, file_name, bytes });
        Ok(())
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let bytes =
        file::read(path, MOST).with_context(|| format!("cannot read {}", path.display()))?;
    match Compression::of(&bytes) {
        None => Ok(bytes),
        Some(compression) => {
            compression.unpack(&bytes, MOST).with_context(|| path.display().to_string())
        }
    }
}

/// The kernel treats `-` and `_` in module names as equal.
fn normal(name: &str) -> String {
    name.replace('-', "_")
}

/// A module's name, from its file name; `None` for other files.
fn stem(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?;
    [".ko", ".ko.gz", ".ko.xz", ".ko.zst"].iter().find_map(|ending| name.strip_suffix(ending))
}

fn builtin(folder: &Path) -> Result<HashSet<String>> {
    let path = folder.join("modules.builtin");
    match file::read_text(&path, MOST_LIST) {
        Ok(text) => Ok(text.lines().filter_map(|line| stem(Path::new(line))).map(normal).collect()),
        // Missing in a tree in which only the kernel was built.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(HashSet::new()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// All modules below a folder, by name. Links are not followed: `build` and `source` of an
/// installed kernel lead out of it.
fn files_below(folder: &Path) -> Result<HashMap<String, PathBuf>> {
    ensure!(
        SIGNS.iter().any(|name| folder.join(name).exists()),
        "{} is no folder of modules: it contains none of {}; give one such as \
         /lib/modules/RELEASE, or a build tree",
        folder.display(),
        SIGNS.join(", ")
    );
    let mut files = HashMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let cannot = || format!("cannot read the folder of modules {}", folder.display());
        for entry in fs::read_dir(&folder).with_context(cannot)? {
            let entry = entry.with_context(cannot)?;
            let path = entry.path();
            let kind = entry.file_type().with_context(cannot)?;
            if kind.is_dir() {
                folders.push(path);
            } else if let Some(name) = stem(&path).map(normal) {
                keep(&mut files, name, path);
            }
        }
    }
    Ok(files)
}

/// Keeps one of two modules of the same name, whatever order they are found in: the one below
/// `updates` first, as depmod does, then by path.
fn keep(files: &mut HashMap<String, PathBuf>, name: String, path: PathBuf) {
    let rank = |path: &Path| !path.iter().any(|part| part == "updates");
    match files.get(&name) {
        Some(other) if (rank(other), other.as_path()) < (rank(&path), path.as_path()) => {}
        _ => {
            files.insert(name, path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decompress::tests::gzip;
    use crate::elf::{X86_64, tests::file};
    use crate::testing::Folder;

    fn module(depends: &str, release: &str) -> Vec<u8> {
        let info =
            format!("license=GPL\0depends={depends}\0vermagic={release} SMP preempt mod_unload \0");
        file(X86_64, ".modinfo", info.as_bytes())
    }

    fn sample() -> Folder {
        let folder = Folder::new();
        folder.write("modules.builtin", b"kernel/drivers/tty/serial/8250/8250-base.ko\n");
        folder.write("kernel/sound/snd.ko", &module("soundcore", "6.1.0"));
        folder.write("kernel/sound/soundcore.ko", &module("", "6.1.0"));
        folder.write("kernel/sound/snd-pcm.ko.gz", &gzip(&module("snd,snd-timer", "6.1.0")));
        folder.write("kernel/sound/snd-timer.ko", &module("snd,8250_base", "6.1.0"));
        folder.write("kernel/loop/a.ko", &module("b", "6.1.0"));
        folder.write("kernel/loop/b.ko", &module("a", "6.1.0"));
        folder.write("kernel/lone.ko", &module("absent", "6.1.0"));
        folder.write("kernel/other.ko", &module("", "6.1.0-rt"));
        folder.write("kernel/broken.ko", b"text");
        folder.write("kernel/half.ko.gz", &gzip(&module("", "6.1.0"))[..30]);
        folder
    }

    fn names(modules: &[Module]) -> Vec<&str> {
        modules.iter().map(|module| module.name.as_str()).collect()
    }

    #[test]
    fn each_comes_after_what_it_depends_on() {
        let folder = sample();
        let modules = closure(&folder.0, "6.1.0", &["snd_pcm", "snd", "8250-base"]).unwrap();
        assert_eq!(names(&modules), ["soundcore", "snd", "snd_timer", "snd_pcm"]);
        assert_eq!(modules[3].file_name, "snd-pcm.ko");
        assert_eq!(modules[3].bytes, module("snd,snd-timer", "6.1.0"));
        assert_eq!(closure(&folder.0, "6.1.0", &[]).unwrap(), []);
    }

    #[test]
    fn a_cycle_ends() {
        let folder = sample();
        assert_eq!(names(&closure(&folder.0, "6.1.0", &["a"]).unwrap()), ["b", "a"]);
    }

    #[test]
    fn errors_name_the_module_and_where_it_was_sought() {
        let folder = sample();
        let error = |name| format!("{:#}", closure(&folder.0, "6.1.0", &[name]).unwrap_err());
        let path = folder.0.display();
        let expected = format!(
            "module absent, which lone needs, is neither in {path} nor built into the kernel"
        );
        assert_eq!(error("lone"), expected);
        assert!(error("nothing").starts_with("module nothing is neither in"));
        assert!(error("other").contains("is for kernel 6.1.0-rt, but the kernel is 6.1.0"));
        assert!(error("broken").ends_with("broken.ko: not a 64-bit little-endian ELF file"));
        assert!(error("half").contains("half.ko.gz: bad gzip data"));
        let gone = closure(&folder.0.join("gone"), "6.1.0", &["a"]).unwrap_err().to_string();
        assert!(gone.contains("gone"), "{gone}");
    }

    #[test]
    fn updates_come_before_others_of_the_name() {
        let folder = sample();
        folder.write("updates/snd.ko", &module("", "6.1.0"));
        assert_eq!(names(&closure(&folder.0, "6.1.0", &["snd"]).unwrap()), ["snd"]);
    }
}
