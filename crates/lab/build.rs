//! Builds the observer, which QEMU loads into itself while it watches a guest.
//!
//! It is for the machine that runs QEMU, so for the one that punctual is built for. It needs no
//! libc and links with the linker that comes with Rust, so no other compiler is needed, not even
//! for another architecture.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

const SOURCE: &str = "../observer/src";

const OPTIONS: &str = "--edition 2024 --crate-type cdylib --crate-name observer --cfg plugin \
    -C opt-level=3 -C codegen-units=1 -C panic=abort -C strip=symbols \
    -C target-feature=-crt-static -C linker=rust-lld -C linker-flavor=ld.lld \
    -C link-self-contained=no";

fn main() {
    println!("cargo::rerun-if-changed={SOURCE}");
    let out = env::var("OUT_DIR").expect("cargo sets it");
    for api in ["1", "4"] {
        let file = Path::new(&out).join(format!("observer-{api}.so"));
        if let Err(error) = build(api, &file) {
            // Everything else works without.
            println!("cargo::warning=`punctual lab explain` will not work: {error}");
            fs::write(&file, []).expect("the folder of the build is writable");
        }
    }
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
