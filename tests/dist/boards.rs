//! The programs of virtual boards: the same bytes in anyone's hands.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use punctual_harness::{Folder, end_of, need, programs, sources, text};
use punctual_lab::arch::Arch;
use punctual_lab::program;

const ALL: [Arch; 2] = [Arch::X86_64, Arch::Aarch64];

fn of(folder: &Path, arch: Arch) -> PathBuf {
    folder.join(format!("punctual-board-{arch}"))
}

/// What `make boards` has put there.
fn built() -> Result<PathBuf, String> {
    let folder = sources().join("target/boards");
    match ALL.map(|arch| of(&folder, arch)).iter().find(|file| !file.is_file()) {
        Some(file) => Err(format!("there is no {}; run make boards", file.display())),
        None => Ok(folder),
    }
}

fn home() -> PathBuf {
    PathBuf::from(env::var_os("HOME").expect("a user has one"))
}

/// Cargo's folder of this user.
fn cargo_home() -> PathBuf {
    env::var_os("CARGO_HOME").map_or_else(|| home().join(".cargo"), PathBuf::from)
}

#[test]
fn programs_of_boards_can_be_watched_and_are_small() {
    let folder = need!(built());
    for arch in ALL {
        // Static, and for that machine.
        let program = program::find(arch, Some(&of(&folder, arch))).unwrap().bytes;
        assert!(program::marks(&program).is_some(), "{arch}: no marks at fixed addresses");
        println!("{arch}: {} bytes", program.len());
        assert!(program.len() <= 4_000_000, "{arch}: {} bytes", program.len());
    }
}

/// What the environment and cargo's configuration can say of how to build, each another code.
const HOSTILE: [(&str, &str); 14] = [
    ("RUSTFLAGS", "-C opt-level=1 -C target-cpu=native"),
    ("CARGO_ENCODED_RUSTFLAGS", "-Copt-level=1"),
    ("CARGO_BUILD_RUSTFLAGS", "-C opt-level=1"),
    ("CARGO_BUILD_TARGET", "x86_64-unknown-none"),
    ("CARGO_TARGET_X86_64_UNKNOWN_LINUX_MUSL_RUSTFLAGS", "-C opt-level=1"),
    ("CARGO_TARGET_X86_64_UNKNOWN_LINUX_MUSL_LINKER", "false"),
    ("CARGO_TARGET_DIR", "/proc"),
    ("CARGO_PROFILE_BOARD_OPT_LEVEL", "1"),
    ("CARGO_PROFILE_RELEASE_DEBUG", "true"),
    ("CARGO_INCREMENTAL", "1"),
    ("RUSTC", "false"),
    ("RUSTC_WRAPPER", "false"),
    ("RUSTUP_TOOLCHAIN", "none"),
    ("SOURCE_DATE_EPOCH", "1"),
];
const CONFIGURATION: &str = r#"
[build]
rustc = "false"
rustc-wrapper = "false"
incremental = true
rustflags = ["-C", "opt-level=1"]

[target.x86_64-unknown-linux-musl]
linker = "false"

[target.'cfg(all())']
rustflags = ["-C", "opt-level=1"]

[profile.board]
opt-level = 1
lto = "off"
codegen-units = 7
debug = 2
debug-assertions = true
overflow-checks = true
strip = false

[profile.release]
debug = 2
rpath = true

[profile.release.build-override]
opt-level = 1
codegen-units = 3
debug = 2
"#;

/// Copies what git knows or would add, as it is now.
fn copy_sources(to: &Path) -> Result<(), String> {
    let folder = Folder::new("sources");
    let root = sources().canonicalize().unwrap();
    let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let root_of = ["-C", root.to_str().unwrap()];
    let listed = folder.try_run("git", &[&root_of[..], &list[..]].concat());
    if !listed.status.success() {
        return Err(format!("git ls-files: {}", text(&listed.stderr)));
    }
    let names = text(&listed.stdout);
    for name in names.split_terminator('\0').filter(|name| root.join(name).is_file()) {
        let copy = to.join(name);
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(root.join(name), copy).unwrap();
    }
    Ok(())
}

fn contains(bytes: &[u8], part: &str) -> bool {
    bytes.windows(part.len()).any(|window| window == part.as_bytes())
}

/// Another user: other folders, another environment, another configuration of cargo. `make reproduce`
/// runs it, since it takes minutes of two CPUs; the sums are those of a build in another folder.
#[test]
#[ignore = "minutes; make reproduce"]
fn anyone_builds_the_same_programs() {
    let ours = need!(built());
    need!(programs(&["git", "rustup"]));
    let folder = Folder::new("boards");
    // In a folder with a configuration, which is read too unless cargo is called from elsewhere.
    let copy = folder.path("another/punctual");
    need!(copy_sources(&copy));
    let other_home = folder.path("cargo");
    for place in [folder.path("another/.cargo"), other_home.clone()] {
        fs::create_dir(&place).unwrap();
        fs::write(place.join("config.toml"), CONFIGURATION).unwrap();
    }
    // Dependencies as they are here, so that nothing is fetched, and unpacked anew, as on a machine
    // that has built nothing yet.
    fs::create_dir(other_home.join("registry")).unwrap();
    for part in ["cache", "index"] {
        let part = Path::new("registry").join(part);
        symlink(cargo_home().join(&part), other_home.join(&part)).unwrap();
    }

    let mut build = folder.command(copy.join("packaging/build-board"));
    build
        .args(["--only", "x86_64"])
        .arg(folder.path("boards"))
        .env("CARGO_HOME", &other_home)
        .envs(HOSTILE);
    let ended = end_of(build);
    if ended.status == Some(3) {
        return punctual_harness::skipped(&ended.stderr);
    }
    ended.with(0);
    let theirs = fs::read(of(&folder.path("boards"), Arch::X86_64)).unwrap();
    assert_no_path(&theirs);
    assert!(!contains(&theirs, folder.root().to_str().unwrap()));
    assert!(theirs == fs::read(of(&ours, Arch::X86_64)).unwrap(), "not the same bytes");
}

/// No folder of this machine is in a program.
fn assert_no_path(program: &[u8]) {
    let places = [sources().canonicalize().unwrap(), home(), cargo_home()];
    let places = places.iter().map(|path| path.to_str().unwrap());
    for place in places.chain(["/home/", "/root/", "rustup", ".cargo"]) {
        assert!(!contains(program, place), "{place} is in the program");
    }
    assert!(contains(program, "/cargo/registry"), "there are other paths in it");
}

/// The committed sums are of programs that were built elsewhere.
#[test]
fn programs_of_boards_are_those_of_the_sums() {
    let folder = need!(built());
    for arch in ALL {
        assert_no_path(&fs::read(of(&folder, arch)).unwrap());
    }
    need!(programs(&["sha256sum"]));
    let mut check = Command::new("sha256sum");
    let sums = sources().join("packaging/board.sha256").canonicalize().unwrap();
    check.args(["--check", "--strict"]).arg(sums).current_dir(folder);
    let ended = end_of(check);
    assert_eq!(ended.status, Some(0), "make board-sha256, and say why: {}", ended.stdout);
}
