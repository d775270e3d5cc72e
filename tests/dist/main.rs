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

/// Of this machine, as `make build` makes it and the tests of each commit pack it.
const OWN: &str = env::consts::ARCH;

/// Whether the release binaries and the programs of boards of these machines are there.
fn binaries(machines: &[&str]) -> Result<(), String> {
    let built = |machine| format!("target/{machine}-unknown-linux-musl/release/punctual");
    let of_board = |machine| format!("target/boards/punctual-board-{machine}");
    for file in machines.iter().flat_map(|machine| [built(machine), of_board(machine)]) {
        if !sources().join(&file).exists() {
            return Err(format!("there is no {file}; run make guests"));
        }
    }
    programs(&["dpkg-deb"])
}

/// Packs once for all tests, into Cargo's own folder of them.
static OUT: LazyLock<PathBuf> =
    LazyLock::new(|| packed(Path::new(env!("CARGO_TARGET_TMPDIR")).join("dist"), &["--only", OWN]));

fn packed(out: PathBuf, options: &[&str]) -> PathBuf {
    let mut pack = Command::new(sources().join("packaging/dist"));
    pack.args(options).arg(&out);
    end_of(pack).with(0);
    out
}

fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

fn package(out: &Path, machine: &str) -> PathBuf {
    let (_, architecture) = MACHINES.iter().find(|(name, _)| *name == machine).unwrap();
    out.join(format!("punctual_{}_{architecture}.deb", version()))
}

#[test]
fn the_same_commit_gives_the_same_bytes() {
    need!(binaries(&[OWN]));
    let folder = Folder::new("dist");
    let again = packed(folder.path("again"), &["--only", OWN]);
    let sums = fs::read_to_string(OUT.join("SHA256SUMS")).unwrap();
    assert_eq!(sums.lines().count(), 3, "archive, package, and program of boards: {sums}");
    assert_eq!(sums, fs::read_to_string(again.join("SHA256SUMS")).unwrap());
    for out in [&*OUT, &again] {
        let mut check = Command::new("sha256sum");
        check.args(["--check", "--strict", "SHA256SUMS"]).current_dir(out);
        end_of(check).with(0);
    }
}

#[test]
fn a_package_holds_what_was_built_and_its_documents() {
    need!(binaries(&[OWN]));
    assert_package(&Folder::new("dist"), &OUT, OWN);
}

/// The package of a machine holds what was built for it, its documents, and what is about it.
fn assert_package(folder: &Folder, out: &Path, machine: &str) {
    let (_, architecture) = MACHINES.iter().find(|(name, _)| *name == machine).unwrap();
    let package = package(out, machine);
    let field = |name: &str| {
        let output = folder.run("dpkg-deb", &["--field", package.to_str().unwrap(), name]);
        text(&output.stdout).trim().to_owned()
    };
    assert_eq!(
        (field("Architecture"), field("Version")),
        ((*architecture).into(), version().into())
    );
    let root = folder.path(architecture);
    let paths = [package.to_str().unwrap(), root.to_str().unwrap()];
    folder.run("dpkg-deb", &["--extract", paths[0], paths[1]]);
    let built = format!("target/{machine}-unknown-linux-musl/release/punctual");
    let built = fs::read(sources().join(built)).unwrap();
    assert!(fs::read(root.join("usr/bin/punctual")).unwrap() == built, "{machine}");
    let name = format!("punctual-{}-{machine}", version());
    let archive = out.join(format!("{name}.tar.gz"));
    folder.run("tar", &["-xzf", archive.to_str().unwrap()]);
    let alone = folder.path(&name);
    assert!(fs::read(alone.join("punctual")).unwrap() == built, "{machine}");
    for file in ["LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY.txt"] {
        let shipped = fs::read(alone.join(file)).unwrap();
        assert!(shipped == fs::read(sources().join(file)).unwrap(), "{machine}: {file}");
    }
    let of_board = format!("punctual-board-{machine}");
    let built = fs::read(sources().join("target/boards").join(&of_board)).unwrap();
    assert!(fs::read(out.join(of_board)).unwrap() == built, "{machine}");

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
    need!(binaries(&[OWN]));
    need!(root());
    need!(programs(&["mmdebstrap", "unshare", "tar"]));
    if OWN != "x86_64" {
        return punctual_harness::skipped("the clean root is of amd64");
    }
    let archive = need!(clean_root());
    let folder = Folder::new("dist");
    fs::create_dir(folder.path("root")).unwrap();
    folder.run("tar", &["-C", "root", "--numeric-owner", "-xf", archive.to_str().unwrap()]);
    fs::copy(package(&OUT, OWN), folder.path("root/package.deb")).unwrap();
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

/// Both, that of arm64 by the emulator of its programs. `make long` runs it: the other binary takes
/// as long to build as that of this machine.
#[test]
#[ignore = "minutes; make long"]
fn both_machines_are_packed_and_that_of_arm64_runs() {
    need!(binaries(&MACHINES.map(|(machine, _)| machine)));
    need!(programs(&["qemu-aarch64-static"]));
    let folder = Folder::new("dist");
    let out = packed(folder.path("both"), &[]);
    let sums = fs::read_to_string(out.join("SHA256SUMS")).unwrap();
    assert_eq!(sums.lines().count(), 6, "two of archives, packages, and boards: {sums}");
    for (machine, _) in MACHINES {
        assert_package(&folder, &out, machine);
    }
    // The machine of an ELF file, elf(5): EM_AARCH64.
    assert_eq!(fs::read(folder.path("arm64/usr/bin/punctual")).unwrap()[18..20], [183, 0]);
    let emulated = |line: &[&str]| {
        let output =
            folder.run("qemu-aarch64-static", &[&["arm64/usr/bin/punctual"], line].concat());
        text(&output.stdout)
    };
    assert_eq!(emulated(&["--version"]).trim(), format!("punctual {}", version()));
    let line = ["run", "sim", "-D", "1s", "--no-report", "--json", "--out", "r"];
    let run: serde_json::Value = serde_json::from_str(&emulated(&line)).unwrap();
    assert_eq!(run["cells"][0]["samples"], 1_000);
}
