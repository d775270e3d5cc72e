//! The modules that tests load into virtual boards: each has a folder here with its source, and
//! is built against the installed headers of a kernel of Debian.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use punctual_harness::{Place, programs, sources, text};

/// A module built for a kernel of Debian.
pub struct Module {
    /// What `lab run --modules` takes.
    pub folder: PathBuf,
    release: String,
}

impl Module {
    /// What `lab run --kernel` takes: its kernel, with this preemption model.
    pub fn kernel(&self, model: &str) -> String {
        format!("debian:{}-{model}", self.release)
    }
}

/// Builds the module of this name, in folders of the place that are named after it.
///
/// # Errors
///
/// What is missing to build it.
pub fn module(place: &Place, name: &str) -> Result<Module, String> {
    built(place, name, "")
}

/// [`module`] for Debian's kernel with PREEMPT_RT.
///
/// # Errors
///
/// What is missing to build it.
pub fn module_for_rt(place: &Place, name: &str) -> Result<Module, String> {
    built(place, name, "-rt")
}

fn built(place: &Place, name: &str, flavour: &str) -> Result<Module, String> {
    programs(&["make", "cc"])?;
    let headers = headers(flavour)?;
    let build = place.open_folder(name);
    let source = format!("{name}.c");
    for file in [source.as_str(), "Makefile"] {
        fs::copy(sources().join("tests/lab").join(name).join(file), build.join(file)).unwrap();
    }
    let made = Command::new("make")
        .arg("-s")
        .arg(format!("M={}", build.display()))
        .arg("-C")
        .arg(&headers)
        .arg("modules")
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", text(&made.stderr));
    let folder = place.open_folder(&format!("{name}-modules"));
    let built = format!("{name}.ko");
    fs::create_dir(folder.join("kernel")).unwrap();
    fs::copy(build.join(&built), folder.join("kernel").join(&built)).unwrap();
    fs::write(folder.join("modules.order"), format!("kernel/{built}\n")).unwrap();
    let release = release_of(&headers, flavour).unwrap().to_owned();
    Ok(Module { folder, release })
}

/// The newest kernel headers of a flavour that are installed.
fn headers(flavour: &str) -> Result<PathBuf, String> {
    let folders = fs::read_dir("/usr/src").map_err(|error| format!("/usr/src: {error}"))?;
    let names = folders.flatten().map(|entry| entry.path());
    let found = names.filter(|path| release_of(path, flavour).is_some());
    let newest = found.max_by_key(|path| numbers(&path.display().to_string()));
    newest.ok_or_else(|| format!("no kernel headers (Debian's linux-headers{flavour}-amd64)"))
}

fn release_of<'a>(headers: &'a Path, flavour: &str) -> Option<&'a str> {
    let release = headers.file_name()?.to_str()?.strip_prefix("linux-headers-")?;
    let release = release.strip_suffix("-amd64")?.strip_suffix(flavour)?;
    (!["-rt", "-cloud"].iter().any(|other| release.ends_with(other))).then_some(release)
}

/// The numbers in a name, by which releases are ordered.
fn numbers(name: &str) -> Vec<u64> {
    name.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}
