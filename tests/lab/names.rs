//! The symbols that are read from a kernel's image are those that the kernel itself shows: a guest
//! (names/init.rs) prints hashes of its /proc/kallsyms.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use punctual_lab::arch::Arch;
use punctual_lab::board::BoardSpec;
use punctual_lab::emulator::Emulator;
use punctual_lab::initramfs::Initramfs;
use punctual_lab::kernel::{Kernel, Kernels};
use punctual_lab::microscope::symbols;

use crate::boards::{aarch64, x86_64};
use punctual_harness::{Place, keep, need, refused, sources, text};

/// As in names/init.rs: lines for each hash, and what the first one begins with.
const LINES: usize = 1_024;
const START: u64 = 0xcbf2_9ce4_8422_2325;

fn hashed(hash: u64, line: &str) -> u64 {
    let bytes = line.bytes().chain([b'\n']);
    bytes.fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Lines and their hash, every 1,024 of them and at the end.
fn hashes(lines: &[String]) -> Vec<String> {
    let mut hash = START;
    let chunk = |(number, chunk): (usize, &[String])| {
        hash = chunk.iter().fold(hash, |hash, line| hashed(hash, line));
        format!("{} {hash:016x}", number * LINES + chunk.len())
    };
    lines.chunks(LINES).enumerate().map(chunk).collect()
}

/// What a guest of this kernel prints.
fn of_guest(place: &Place, kernel: &Kernel) -> Vec<String> {
    let arch = kernel.arch;
    let init = init(place, arch);
    let mut archive = Initramfs::new().unwrap();
    archive.file("init", 0o755, &fs::read(init).unwrap()).unwrap();
    let initramfs = place.path.join("initramfs");
    fs::write(&initramfs, archive.finish()).unwrap();
    // Its time is not counted: nothing is measured.
    let board = BoardSpec { arch, mips: None, ..BoardSpec::default() };
    let emulator = Emulator::find(arch, None, None).unwrap();
    let ended = Command::new(&emulator.program)
        .args(board.options(&emulator.cpu, 1))
        .args(["-chardev", "null,id=channel", "-serial", "stdio"])
        .arg("-kernel")
        .arg(&kernel.image)
        .arg("-initrd")
        .arg(&initramfs)
        .args(["-append", &board.parameters(&[])])
        .output()
        .unwrap();
    let console = text(&ended.stdout);
    assert!(ended.status.success() && console.contains("kallsyms end"), "{ended:?}");
    let lines = console.lines().filter_map(|line| line.trim().strip_prefix("kallsyms "));
    lines.filter(|line| *line != "end").map(str::to_owned).collect()
}

/// The guest's init, a static program.
fn init(place: &Place, arch: Arch) -> PathBuf {
    let built = place.path.join("init");
    let made = Command::new("rustc")
        .args(["--edition", "2024", "-O", "-C", "linker=rust-lld", "-C", "relocation-model=static"])
        .args(["--target", &format!("{arch}-unknown-linux-musl"), "-o"])
        .arg(&built)
        .arg(sources().join("tests/lab/names/init.rs"))
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", text(&made.stderr));
    built
}

/// The symbols of an image as /proc/kallsyms has them.
fn of_image(image: &Path, arch: Arch) -> Vec<String> {
    let symbols = symbols(&fs::read(image).unwrap(), arch).unwrap();
    symbols.iter().map(|(address, kind, name)| format!("{address:016x} {kind} {name}")).collect()
}

/// What `make test` compares.
const SAMPLE: [(Arch, &str); 3] =
    [(Arch::X86_64, "debian:6.1"), (Arch::X86_64, "debian:7.3"), (Arch::Aarch64, "debian:6.12-rt")];

/// What `make names` compares, for each architecture: the tables have another layout since 6.2, 6.4
/// and 7.0.
const ALL: [&str; 5] = ["debian:5.10", "debian:6.1", "debian:6.12", "debian:6.18", "debian:7.3"];

#[test]
fn symbols_of_an_image_are_those_that_its_guest_shows() {
    need!(x86_64());
    need!(aarch64());
    let chosen: Vec<(Arch, &str)> = match env::var_os("NAMES") {
        Some(_) => [Arch::X86_64, Arch::Aarch64]
            .into_iter()
            .flat_map(|arch| ALL.map(|name| (arch, name)))
            .collect(),
        None => SAMPLE.to_vec(),
    };
    let kernels = Kernels::of_user().unwrap();
    let mut table = Vec::new();
    for (arch, name) in chosen {
        let place = Place::of_build();
        let kernel = match kernels.resolve(&[name], arch, None, true, &mut |_| ()) {
            Ok(mut found) => found.remove(0),
            Err(error) => {
                refused(&format!("{name} {arch}: {error:#}"));
                continue;
            }
        };
        let lines = of_image(&kernel.image, arch);
        let (shown, read) = (of_guest(&place, &kernel), hashes(&lines));
        if let Some(chunk) =
            (0..shown.len().max(read.len())).find(|n| shown.get(*n) != read.get(*n))
        {
            let [first, last] =
                [chunk * LINES, (chunk + 1) * LINES - 1].map(|line| lines.get(line));
            panic!(
                "{name} {arch}: {:?} is not {:?}: from {first:?} to {last:?}",
                read.get(chunk),
                shown.get(chunk)
            );
        }
        let (release, count) = (&kernel.release, lines.len());
        table.push(format!("{arch:<8} {release:<26} {count:>7} symbols, all the same"));
    }
    keep(&table.join("\n"));
}
