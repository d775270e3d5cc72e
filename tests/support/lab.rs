//! Runs of virtual boards, made of recorded ones.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

/// Changes `run.json` of a run.
pub fn edit(run: &Path, change: impl FnOnce(&mut Value)) {
    let path = run.join("run.json");
    let mut value: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    change(&mut value);
    fs::write(&path, value.to_string()).unwrap();
}

/// Makes a recorded run one of a virtual board, whose time is counted in
/// instructions or else the host's.
pub fn make_virtual(run: &Path, counted: bool) {
    edit(run, |value| {
        value["board"]["kind"] = json!("virtual");
        value["board"]["lab"] = json!({
            "counted": counted,
            "not_exact": [],
            "qemu": "7.2.22",
            "options": ["-accel", "tcg", "-cpu", "max"],
            "arch": "x86_64",
            "cpus": 1,
            "memory_mib": 256,
            "mips": if counted { 250 } else { 0 },
            "seed": 1,
            "devices": [],
            "kernel": "debian:rt",
            "kernel_sha256": "5e1f",
            "modules": ["brd"],
            "initramfs_sha256": "c0de",
            "punctual_sha256": "beef",
        });
    });
}
