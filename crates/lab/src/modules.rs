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
use crate::kernel::sums;

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
    /// The path that it was asked for by, if it was not by its name.
    pub path: Option<PathBuf>,
}

impl Module {
    /// Whether it was asked for by this name or path.
    #[must_use]
    pub fn is(&self, asked: &str) -> bool {
        if is_path(asked) {
            self.path.as_deref() == Some(Path::new(asked))
        } else {
            self.name == normal(asked)
        }
    }
}

/// Whether a module that is asked for by this text is a file, `PATH.ko` or one that is compressed.
#[must_use]
pub fn is_path(asked: &str) -> bool {
    stem(Path::new(asked)).is_some()
}

/// What a module says about itself in `.modinfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Modinfo {
    /// Modules that must be loaded before it.
    pub depends: Vec<String>,
    /// Release of the kernel that it is for, the first word of `vermagic`.
    pub release: String,
    /// What the kernel calls it, whatever its file is called; since Linux 4.13.
    pub name: Option<String>,
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
        let (mut release, mut name) = (None, None);
        for field in section.split(|&byte| byte == 0) {
            let field = String::from_utf8_lossy(field);
            match field.split_once('=') {
                Some(("depends", names)) => depends
                    .extend(names.split(',').filter(|name| !name.is_empty()).map(String::from)),
                Some(("vermagic", magic)) => {
                    release = magic.split(' ').next().map(String::from);
                }
                Some(("name", own)) => name = Some(own.to_owned()),
                _ => {}
            }
        }
        Ok(Self { depends, name, release: release.context("it has no vermagic in its .modinfo")? })
    }
}

/// The modules of these names or paths and all their dependencies, each after the modules that it
/// depends on. Modules that are built into the kernel are left out. A module that is given by its
/// path is taken instead of the kernel's own of its name.
///
/// `folder` is a kernel's build tree, or a folder such as `/lib/modules/RELEASE` that contains
/// `kernel/` and `modules.builtin`; `None` if only paths are wanted. `release` is that kernel's.
///
/// # Errors
/// A module is neither there nor built in, cannot be read, or belongs to another kernel; or two paths
/// are of one module.
pub fn closure(folder: Option<&Path>, release: &str, wanted: &[&str]) -> Result<Vec<Module>> {
    let mut closure = Closure {
        folder,
        release,
        files: folder.map(files_below).transpose()?.unwrap_or_default(),
        builtin: folder.map(builtin).transpose()?.unwrap_or_default(),
        given: HashMap::new(),
        seen: HashSet::new(),
        modules: Vec::new(),
    };
    // First, so that others can depend on them.
    let mut names = Vec::new();
    for asked in wanted {
        names.push(if is_path(asked) { closure.give(Path::new(asked))? } else { normal(asked) });
    }
    for name in names {
        closure.add(&name, None)?;
    }
    Ok(closure.modules)
}

struct Closure<'a> {
    folder: Option<&'a Path>,
    release: &'a str,
    files: HashMap<String, PathBuf>,
    builtin: HashSet<String>,
    /// The paths of modules that were asked for by one, by name.
    given: HashMap<String, PathBuf>,
    seen: HashSet<String>,
    modules: Vec<Module>,
}

impl Closure<'_> {
    /// Takes the module in a file for the one of its name, which it returns.
    fn give(&mut self, path: &Path) -> Result<String> {
        let (_, info) = read(path)?;
        let name = info.name.as_deref().or_else(|| stem(path)).unwrap_or_default();
        let name = normal(name);
        match self.given.insert(name.clone(), path.to_owned()) {
            Some(other) if other != path => {
                bail!("{} and {} are both module {name}", other.display(), path.display())
            }
            _ => Ok(name),
        }
    }

    fn add(&mut self, name: &str, needed_by: Option<&str>) -> Result<()> {
        let name = normal(name);
        // Marked before its dependencies, which ends cycles.
        let given = self.given.get(&name).cloned();
        let is_builtin = given.is_none() && self.builtin.contains(&name);
        if is_builtin || !self.seen.insert(name.clone()) {
            return Ok(());
        }
        let Some(path) = given.as_ref().or_else(|| self.files.get(&name)).cloned() else {
            let by = needed_by.map_or_else(String::new, |by| format!(", which {by} needs,"));
            match self.folder {
                Some(folder) => bail!(
                    "module {name}{by} is neither in {} nor built into the kernel",
                    folder.display()
                ),
                None => bail!("module {name}{by} is not here: give its folder with --modules"),
            }
        };
        let (bytes, info) = read(&path)?;
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
        self.modules.push(Module { name, file_name, bytes, path: given });
        Ok(())
    }
}

/// A module, and what it says about itself.
fn read(path: &Path) -> Result<(Vec<u8>, Modinfo)> {
    let said = || path.display().to_string();
    let packed = file::read(path, MOST).with_context(|| format!("cannot read {}", said()))?;
    sums::check(path, &packed)?;
    let bytes = match Compression::of(&packed) {
        None => packed,
        Some(compression) => compression.unpack(&packed, MOST).with_context(said)?,
    };
    let info = Modinfo::read(&bytes).with_context(said)?;
    Ok((bytes, info))
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
        let modules = closure(Some(&folder.0), "6.1.0", &["snd_pcm", "snd", "8250-base"]).unwrap();
        assert_eq!(names(&modules), ["soundcore", "snd", "snd_timer", "snd_pcm"]);
        assert_eq!(modules[3].file_name, "snd-pcm.ko");
        assert_eq!(modules[3].bytes, module("snd,snd-timer", "6.1.0"));
        assert_eq!(closure(Some(&folder.0), "6.1.0", &[]).unwrap(), []);
    }

    #[test]
    fn a_cycle_ends() {
        let folder = sample();
        assert_eq!(names(&closure(Some(&folder.0), "6.1.0", &["a"]).unwrap()), ["b", "a"]);
    }

    #[test]
    fn errors_name_the_module_and_where_it_was_sought() {
        let folder = sample();
        let error = |name| format!("{:#}", closure(Some(&folder.0), "6.1.0", &[name]).unwrap_err());
        let path = folder.0.display();
        let expected = format!(
            "module absent, which lone needs, is neither in {path} nor built into the kernel"
        );
        assert_eq!(error("lone"), expected);
        assert!(error("nothing").starts_with("module nothing is neither in"));
        assert!(error("other").contains("is for kernel 6.1.0-rt, but the kernel is 6.1.0"));
        assert!(error("broken").ends_with("broken.ko: not a 64-bit little-endian ELF file"));
        assert!(error("half").contains("half.ko.gz: bad gzip data"));
        let gone = closure(Some(&folder.0.join("gone")), "6.1.0", &["a"]).unwrap_err().to_string();
        assert!(gone.contains("gone"), "{gone}");
    }

    #[test]
    fn a_file_is_a_module_of_its_own_name_and_comes_before_the_kernel_s() {
        let named = |name: &str, depends: &str| {
            let info = format!("name={name}\0depends={depends}\0vermagic=6.1.0 SMP\0");
            file(X86_64, ".modinfo", info.as_bytes())
        };
        let (folder, own) = (sample(), Folder::new());
        own.write("my-hold.ko", &module("snd,other_one", "6.1.0"));
        own.write("renamed.ko.gz", &gzip(&named("other_one", "")));
        own.write("snd.ko", &named("snd", ""));
        let path = |name: &str| own.0.join(name).display().to_string();
        let [hold, renamed, snd] = ["my-hold.ko", "renamed.ko.gz", "snd.ko"].map(path);
        let all = closure(Some(&folder.0), "6.1.0", &[&hold, &renamed, &snd, "soundcore"]).unwrap();
        assert_eq!(names(&all), ["snd", "other_one", "my_hold", "soundcore"]);
        let files: Vec<&str> = all.iter().map(|module| module.file_name.as_str()).collect();
        assert_eq!(files, ["snd.ko", "renamed.ko", "my-hold.ko", "soundcore.ko"]);
        assert_eq!(all[0].bytes, named("snd", ""));
        assert!(all[2].is(&hold) && all[2].is("my-hold") && !all[2].is(&snd));
        // Without a folder of the kernel's too.
        let alone = closure(None, "6.1.0", &[&snd]).unwrap();
        assert_eq!(alone[0].path.as_deref(), Some(Path::new(&snd)));
        let error = |wanted: &[&str]| format!("{:#}", closure(None, "6.1.0", wanted).unwrap_err());
        assert!(error(&[&hold]).contains("give its folder with --modules"), "{}", error(&[&hold]));
        let other = closure(None, "6.12.0", &[&snd]).unwrap_err().to_string();
        assert!(other.contains("is for kernel 6.1.0, but the kernel is 6.12.0"), "{other}");
        own.write("again/snd.ko", &named("snd", ""));
        let both = error(&[&snd, &path("again/snd.ko")]);
        assert!(both.ends_with("are both module snd"), "{both}");
        let gone = path("gone.ko");
        assert!(error(&[&gone]).contains(&format!("cannot read {gone}")), "{}", error(&[&gone]));
        own.write("text.ko", b"text");
        assert!(error(&[&path("text.ko")]).contains("text.ko: not a 64-bit"));
    }

    #[test]
    fn updates_come_before_others_of_the_name() {
        let folder = sample();
        folder.write("updates/snd.ko", &module("", "6.1.0"));
        assert_eq!(names(&closure(Some(&folder.0), "6.1.0", &["snd"]).unwrap()), ["snd"]);
    }
}
