//! Builds the observer, which QEMU loads into itself while it watches a guest, and packs the
//! programs that virtual boards run.
//!
//! The observer is for the machine that runs QEMU, so for the one that punctual is built for. It
//! needs no libc and links with the linker that comes with Rust, so no other compiler is needed, not
//! even for another architecture.
//!
//! The programs of boards are files that `packaging/build-board` has built, since cargo would build
//! others here: other flags, other bytes.

use std::io::Write;
use std::path::Path;
use std::process::{Command, exit};
use std::{env, fs};

use flate2::Compression;
use flate2::write::GzEncoder;

const SOURCE: &str = "../observer/src";

const OPTIONS: &str = "--edition 2024 --crate-type cdylib --crate-name observer --cfg plugin \
    -C opt-level=3 -C codegen-units=1 -C panic=abort -C strip=symbols \
    -C target-feature=-crt-static -C linker=rust-lld -C linker-flavor=ld.lld \
    -C link-self-contained=no";

/// The folder of the programs of boards. Without it they are not carried, and a build needs nothing.
const BOARDS: &str = "PUNCTUAL_BOARDS";

fn main() {
    println!("cargo::rerun-if-changed={SOURCE}");
    println!("cargo::rerun-if-env-changed={BOARDS}");
    let out = env::var("OUT_DIR").expect("cargo sets it");
    let boards = env::var(BOARDS).ok();
    for arch in ["x86_64", "aarch64"] {
        let packed = Path::new(&out).join(format!("board-{arch}.gz"));
        if let Err(error) = pack(boards.as_deref(), arch, &packed) {
            println!("cargo::error={error}");
            exit(1);
        }
    }
    for api in ["1", "4"] {
        let file = Path::new(&out).join(format!("observer-{api}.so"));
        if let Err(error) = build(api, &file) {
            // Everything else works without.
            println!("cargo::warning=`punctual lab explain` will not work: {error}");
            fs::write(&file, []).expect("the folder of the build is writable");
        }
    }
}

/// Without a folder the packed file is empty.
fn pack(boards: Option<&str>, arch: &str, packed: &Path) -> Result<(), String> {
    let mut bytes = Vec::new();
    if let Some(boards) = boards {
        let file = Path::new(boards).join(format!("punctual-board-{arch}"));
        println!("cargo::rerun-if-changed={}", file.display());
        let program = fs::read(&file).map_err(|error| {
            format!(
                "{BOARDS} is set, and {}: {error}: run packaging/build-board {boards}, or unset it",
                file.display()
            )
        })?;
        let mut encoder = GzEncoder::new(&mut bytes, Compression::best());
        encoder.write_all(&program).and_then(|()| encoder.try_finish()).expect("memory takes it");
    }
    fs::write(packed, bytes).map_err(|error| format!("{}: {error}", packed.display()))
}

fn build(api: &str, file: &Path) -> Result<(), String> {
    let (rustc, target) = (env::var("RUSTC"), env::var("TARGET"));
    let output = Command::new(rustc.expect("cargo sets it"))
        .args(["--target", &target.expect("cargo sets it"), "--cfg", &format!("api=\"{api}\"")])
        .args(OPTIONS.split_whitespace())
        .arg("-o")
        .arg(file)
        .arg(Path::new(SOURCE).join("lib.rs"))
        .output()
        .map_err(|error| format!("cannot start rustc: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let first = text.lines().find(|line| line.contains("error")).unwrap_or("it failed");
    Err(format!("the observer cannot be built: {first}"))
}
