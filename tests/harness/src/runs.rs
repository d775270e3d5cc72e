//! Recorded runs: their files, and changes that tests make to them.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// `run.json` of a run directory.
#[track_caller]
pub fn run_json(run: &Path) -> Value {
    serde_json::from_slice(&fs::read(run.join("run.json")).unwrap()).unwrap()
}

/// A file of the only cell of a run.
pub fn cell_file(run: &Path, name: &str) -> PathBuf {
    let mut cells = fs::read_dir(run.join("cells")).unwrap();
    cells.next().unwrap().unwrap().path().join(name)
}

/// Ids of the conditions of a run or of a cell.
pub fn conditions(of: &Value) -> Vec<&str> {
    let list = of["conditions"].as_array().into_iter().flatten();
    list.filter_map(|condition| condition["id"].as_str()).collect()
}

/// A count of a result.
#[track_caller]
pub fn count(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("no {key} in {value}"))
}

/// The items of a list of a result.
#[track_caller]
pub fn items(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("{value}"))
}

/// Changes `run.json` of a run.
pub fn edit(run: &Path, change: impl FnOnce(&mut Value)) {
    let mut value = run_json(run);
    change(&mut value);
    fs::write(run.join("run.json"), value.to_string()).unwrap();
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
