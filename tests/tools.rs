//! What `make` says on a machine that lacks something to build with. The programs that it
//! finds are links and scripts in a folder; cargo notes that it was called and builds nothing.

use std::env;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use punctual_harness::{Ended, Folder, end_of, sources};

const USUAL: &str =
    "sh make sed uname tr mktemp rm dirname cat echo env id mkdir date awk sha256sum";

/// A folder of programs with which punctual builds, but for what a test takes away.
struct Tools(Folder);

impl Tools {
    fn new() -> Self {
        let folder = Folder::new("tools");
        let path = env::var_os("PATH").unwrap();
        for name in USUAL.split_whitespace() {
            let found = env::split_paths(&path).map(|folder| folder.join(name));
            let program = found.into_iter().find(|file| file.exists());
            symlink(program.unwrap_or_else(|| panic!("there is no {name}")), folder.path(name))
                .unwrap();
        }
        let tools = Self(folder);
        tools.script("cc", "exit 0");
        tools.script("rustup", "exit 1");
        tools.rust(&oldest());
        tools
    }

    fn script(&self, name: &str, body: &str) {
        let file = self.0.path(name);
        fs::write(&file, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn rust(&self, version: &str) {
        self.script("rustc", &format!("echo 'rustc {version} (0123456789 2026-01-01)'"));
        self.script("cargo", &format!("echo \"$@\" >{}", self.0.path("called").display()));
    }

    fn without(self, name: &str) -> Self {
        fs::remove_file(self.0.path(name)).unwrap();
        self
    }

    /// How `make GOAL` ended, and whether cargo was called.
    fn make(&self, goal: &str) -> (Ended, bool) {
        let mut make = Command::new(self.0.path("make"));
        // Those of a make that runs this test are not for this one.
        for variable in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL"] {
            make.env_remove(variable);
        }
        make.arg(goal).current_dir(sources()).env("PATH", self.0.root());
        (end_of(make), self.0.path("called").exists())
    }

    /// Checks that make stops before cargo, and what it says.
    #[track_caller]
    fn lack(&self, says: &[&str]) {
        for goal in ["build", "run", "guests"] {
            let (ended, called) = self.make(goal);
            ended.with(2).says(says);
            assert!(!called, "make {goal} called cargo");
        }
    }
}

/// The oldest Rust that Cargo.toml allows.
fn oldest() -> String {
    let manifest = fs::read_to_string(sources().join("Cargo.toml")).unwrap();
    let manifest: toml::Table = manifest.parse().unwrap();
    let version = manifest["workspace"]["package"]["rust-version"].as_str().unwrap();
    version.to_owned()
}

const PACKAGES: &str = "sudo apt-get install gcc libc6-dev";

#[test]
fn what_suffices_builds() {
    for version in [format!("{}.0", oldest()), "2.0.0-nightly".into()] {
        let tools = Tools::new();
        tools.rust(&version);
        let (ended, called) = tools.make("build");
        ended.with(0);
        assert!(called, "{version}: cargo was not called");
    }
}

#[test]
fn a_missing_c_toolchain_is_named() {
    Tools::new().without("cc").lack(&["there is no cc", PACKAGES]);
    let tools = Tools::new();
    tools.script("cc", "echo '/usr/bin/ld: cannot find Scrt1.o' >&2; exit 1");
    tools.lack(&["cc cannot link an empty program", PACKAGES, "cannot find Scrt1.o"]);
}

#[test]
fn a_missing_or_old_rust_is_named() {
    let needed = format!("Rust {} or newer", oldest());
    for name in ["cargo", "rustc"] {
        Tools::new().without(name).lack(&[&needed, "https://rustup.rs"]);
    }
    let (major, minor) =
        oldest().split_once('.').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let minor: u32 = minor.parse().unwrap();
    for old in [format!("{major}.{}.1", minor - 1), "0.99.0".into()] {
        let tools = Tools::new();
        tools.rust(&old);
        tools.lack(&[&needed, &format!("this is rustc {old}"), "rustup update stable"]);
    }
    let tools = Tools::new();
    tools.script("rustc", "echo 'error: toolchain 1.0.0 is not installed' >&2; exit 1");
    tools.lack(&["rustup toolchain install", "toolchain 1.0.0 is not installed"]);
}

/// Both are missing on a fresh machine: one call names both.
#[test]
fn all_that_is_missing_is_named_at_once() {
    Tools::new().without("cc").without("rustc").lack(&[PACKAGES, "https://rustup.rs"]);
}

#[test]
fn the_readme_names_what_is_checked() {
    let readme = fs::read_to_string(sources().join("README.md")).unwrap();
    let readme = readme.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [format!("Rust {} or newer", oldest()), PACKAGES.into()] {
        assert!(readme.contains(&part), "README.md does not say: {part}");
    }
}
