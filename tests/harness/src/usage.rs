//! What a process used.

use std::fs;
use std::path::Path;

use crate::folder::Folder;
use crate::needs::programs;

/// What a process used.
pub struct Usage {
    /// User and system CPU time, s, with a resolution of 10 ms.
    pub cpu: f64,
    /// Time from start to end, s.
    pub wall: f64,
    /// Peak resident size, bytes.
    pub peak: u64,
}

const TIME: &str = "/usr/bin/time";

/// What [`usage`] needs.
pub fn has_time() -> Result<(), String> {
    programs(&[TIME])
}

/// Runs a program in the folder to its successful end and returns what it used.
pub fn usage(folder: &Folder, program: &Path, args: &[&str]) -> Usage {
    let file = folder.path("usage");
    let front = ["-f", "%U %S %e %M", "-o", file.to_str().unwrap(), program.to_str().unwrap()];
    folder.run(TIME, &[&front, args].concat());
    let line = fs::read_to_string(&file).unwrap();
    let fields: Vec<f64> = line.split_whitespace().map(|field| field.parse().unwrap()).collect();
    let [user, system, wall, _] = fields[..] else { panic!("{TIME} said {line}") };
    let kib: u64 = line.split_whitespace().last().unwrap().parse().unwrap();
    Usage { cpu: user + system, wall, peak: kib * 1024 }
}

/// Bytes as MB.
pub fn megabytes(bytes: u64) -> f64 {
    f64::from(u32::try_from(bytes).unwrap()) / 1e6
}
