//! What `make dist` makes, packed anew from the release binaries: the same bytes each time,
//! and a package that installs and runs where nothing else is.

mod boards;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use punctual_harness::{Folder, end_of, need, programs, root, sources, text};

const MACHINES: [(&str, &str); 2] = [("x86_64", "amd64"), ("aarch64", "arm64")];

/// Whether the release binaries and those of boards are there, as `make guests` puts them.
fn binaries() -> Result<(), String> {
    let built = |machine| format!("target/{machine}-unknown-linux-musl/release/punctual");
    let of_board = |machine| format!("target/boards/punctual-board-{machine}");
    for file in MACHINES.iter().flat_map(|(machine, _)| [built(machine), of_board(machine)]) {
        if !sources().join(&file).exists() {
            return Err(format!("there is no {file}; run make guests"));
        }
    }
    programs(&["dpkg-deb"])
}

/// Packs once for all tests, into Cargo's own folder of them.
static OUT: LazyLock<PathBuf> =
    LazyLock::new(|| packed(Path::new(env!("CARGO_TARGET_TMPDIR")).join("dist")));

fn packed(out: PathBuf) -> PathBuf {
    let mut pack = Command::new(sources().join("packaging/dist"));
    pack.arg(&out);
    end_of(pack).with(0);
    out
}

fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

fn package(architecture: &str) -> PathBuf {
    OUT.join(format!("punctual_{}_{architecture}.deb", version()))
}

#[test]
fn the_same_commit_gives_the_same_bytes() {
    need!(binaries());
    let folder = Folder::new("dist");
    let again = packed(folder.path("again"));
    let sums = fs::read_to_string(OUT.join("SHA256SUMS")).unwrap();
    assert_eq!(sums.lines().count(), 6, "two of archives, packages, and boards: {sums}");
    assert_eq!(sums, fs::read_to_string(again.join("SHA256SUMS")).unwrap());
    for out in [&*OUT, &again] {
        let mut check = Command::new("sha256sum");
        check.args(["--check", "--strict", "SHA256SUMS"]).current_dir(out);
        end_of(check).with(0);
    }
}

#[test]
fn packages_hold_what_was_built_and_its_documents() {
    need!(binaries());
    let folder = Folder::new("dist");
    for (machine, architecture) in MACHINES {
        let package = package(architecture);
        let field = |name: &str| {
            let output = folder.run("dpkg-deb", &["--field", package.to_str().unwrap(), name]);
            text(&output.stdout).trim().to_owned()
        };
        assert_eq!(
            (field("Architecture"), field("Version")),
            (architecture.into(), version().into())
        );
        let root = folder.path(architecture);
        let paths = [package.to_str().unwrap(), root.to_str().unwrap()];
        folder.run("dpkg-deb", &["--extract", paths[0], paths[1]]);
        let built = format!("target/{machine}-unknown-linux-musl/release/punctual");
        let built = fs::read(sources().join(built)).unwrap();
        assert!(fs::read(root.join("usr/bin/punctual")).unwrap() == built, "{machine}");
        let name = format!("punctual-{}-{machine}", version());
        let archive = OUT.join(format!("{name}.tar.gz"));
        folder.run("tar", &["-xzf", archive.to_str().unwrap()]);
        let alone = folder.path(&name);
        assert!(fs::read(alone.join("punctual")).unwrap() == built, "{machine}");
        for file in ["LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY.txt"] {
            let shipped = fs::read(alone.join(file)).unwrap();
            assert!(shipped == fs::read(sources().join(file)).unwrap(), "{machine}: {file}");
        }
        let of_board = format!("punctual-board-{machine}");
        let built = fs::read(sources().join("target/boards").join(&of_board)).unwrap();
        assert!(fs::read(OUT.join(of_board)).unwrap() == built, "{machine}");

        let share = root.join("usr/share");
        for file in [
            "man/man1/punctual.1.gz",
            "man/man1/punctual-run.1.gz",
            "man/man1/punctual-lab-run.1.gz",
            "bash-completion/completions/punctual",
            "zsh/vendor-completions/_punctual",
            "fish/vendor_completions.d/punctual.fish",
            "doc/punctual/README.md",
            "doc/punctual/run-format.md",
            "doc/punctual/changelog.gz",
        ] {
            assert!(share.join(file).metadata().is_ok_and(|file| file.len() > 0), "{file}");
        }
        let copyright = fs::read_to_string(share.join("doc/punctual/copyright")).unwrap();
        assert!(copyright.contains("Expat or Apache-2.0"), "{copyright}");
        assert!(copyright.contains("THIRD-PARTY.txt.gz"), "{copyright}");
        let third_party = share.join("doc/punctual/THIRD-PARTY.txt.gz");
        let shipped = folder.run("gzip", &["-dc", third_party.to_str().unwrap()]).stdout;
        assert!(shipped == fs::read(sources().join("THIRD-PARTY.txt")).unwrap(), "{machine}");
    }
}

/// An archive of Debian's essential packages, made once and kept in the user's cache.
fn clean_root() -> Result<PathBuf, String> {
    let cache = env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".cache")));
    let folder = cache.ok_or("neither XDG_CACHE_HOME nor HOME is set")?.join("punctual-tests");
    let release = fs::read_to_string("/etc/os-release").map_err(|error| error.to_string())?;
    let suite = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let suite = suite.filter(|_| release.lines().any(|line| line == "ID=debian"));
    let suite = suite.ok_or("this is no Debian")?;
    let archive = folder.join(format!("debian-{suite}-essential-amd64.tar"));
    if archive.exists() {
        return Ok(archive);
    }
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let partial = archive.with_extension(format!("{}.tar", std::process::id()));
    let mut make = Command::new("mmdebstrap");
    make.args(["--variant=essential", "--architectures=amd64", suite]).arg(&partial);
    let made = end_of(make);
    if made.status != Some(0) {
        let _ = fs::remove_file(&partial);
        return Err(format!("mmdebstrap {suite}: {}", made.stderr));
    }
    fs::rename(&partial, &archive).map_err(|error| error.to_string())?;
    Ok(archive)
}

/// As the first user of the package would: install it, look at it, measure with it.
const INSTALL: &str = r"
set -e
test ! -e /usr/bin/punctual
dpkg --install /package.deb
punctual --version
punctual run sim -D 1s --out /run/r --json > /run/json
punctual show /run/r
dpkg --verify punctual
dpkg --purge punctual
test ! -e /usr/bin/punctual
";

#[test]
fn the_package_installs_and_runs_in_a_clean_root() {
    need!(binaries());
    need!(root());
    need!(programs(&["mmdebstrap", "unshare", "tar"]));
    if env::consts::ARCH != "x86_64" {
        return punctual_harness::skipped("the clean root is of amd64");
    }
    let archive = need!(clean_root());
    let folder = Folder::new("dist");
    fs::create_dir(folder.path("root")).unwrap();
    folder.run("tar", &["-C", "root", "--numeric-owner", "-xf", archive.to_str().unwrap()]);
    fs::copy(package("amd64"), folder.path("root/package.deb")).unwrap();
    // What it mounts and starts goes with its namespaces.
    let unshare = ["--mount", "--propagation", "private", "--pid", "--fork", "--kill-child"];
    let enter = "mount -t proc proc root/proc && exec chroot root /bin/sh -c \"$0\"";
    let chroot = ["sh", "-c", enter, INSTALL];
    let mut command = folder.command("unshare");
    command
        .args(unshare)
        .args(chroot)
        .env("LC_ALL", "C")
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    let ended = end_of(command).with(0);
    ended.says(&[&format!("punctual {}", version()), "sim", "1,000"]);
    let run = folder.json("root/run/json");
    assert_eq!(run["cells"][0]["samples"], 1_000);
}

/// The package of the other architecture, by the emulator of its programs.
#[test]
fn the_package_of_arm64_runs() {
    need!(binaries());
    need!(programs(&["qemu-aarch64-static"]));
    let folder = Folder::new("dist");
    let package = package("arm64");
    folder.run("dpkg-deb", &["--extract", package.to_str().unwrap(), "root"]);
    // The machine of an ELF file, elf(5): EM_AARCH64.
    assert_eq!(fs::read(folder.path("root/usr/bin/punctual")).unwrap()[18..20], [183, 0]);
    let emulated = |line: &[&str]| {
        let output =
            folder.run("qemu-aarch64-static", &[&["root/usr/bin/punctual"], line].concat());
        text(&output.stdout)
    };
    assert_eq!(emulated(&["--version"]).trim(), format!("punctual {}", version()));
    let line = ["run", "sim", "-D", "1s", "--no-report", "--json", "--out", "r"];
    let run: serde_json::Value = serde_json::from_str(&emulated(&line)).unwrap();
    assert_eq!(run["cells"][0]["samples"], 1_000);
}
