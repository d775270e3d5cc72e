//! Boards with devices.

use std::fs;

use crate::boards::{side_by_side, x86_64};
use punctual_harness::schema::validate;
use punctual_harness::{Place, need, run_json};

#[test]
fn boards_with_devices_repeat() {
    need!(x86_64());
    let place = Place::of_build();
    // A guest without the file of one of its devices does not begin to measure.
    let line = "lab run --offline -q --no-report --kernel debian:rt \
                --device parport,edu,rtc,disk,sound,serial wakeup --load none,hackbench -D 1s";
    let lines = ["a", "b"].map(|out| format!("{line} --out {out}"));
    for ended in side_by_side(&place, [&lines[0], &lines[1]]) {
        ended.with(0);
    }
    let run = run_json(&place.path.join("a/debian-rt-0"));
    validate(&run);
    let lab = &run["board"]["lab"];
    let modules = lab["modules"].as_array().unwrap();
    for module in ["parport", "parport_pc", "ppdev", "uio", "uio_pci_generic", "brd", "snd_dummy"] {
        assert!(modules.iter().any(|one| one == module), "{module} is not in {modules:?}");
    }
    assert_eq!(lab["devices"].as_array().unwrap().len(), 6);
    place.run("compare --exact a b").with(0).says(&["1 of 1 runs identical"]);
}

#[test]
fn a_device_that_the_host_serves_is_not_exact() {
    need!(x86_64());
    let place = Place::of_build();
    let why = "virtio-disk completes requests in the host's time";
    place
        .run(
            "lab run --offline -q --no-report --kernel debian:rt --device virtio-disk \
             --module loop wakeup -D 1s --out r",
        )
        .with(0)
        .says(&[why]);
    let run = run_json(&place.path.join("r/debian-rt-0"));
    validate(&run);
    assert_eq!(run["board"]["lab"]["not_exact"], serde_json::json!([why]));
    let modules = run["board"]["lab"]["modules"].as_array().unwrap();
    assert!(modules.iter().any(|module| module == "loop"), "{modules:?}");
    place.folder().run("cp", &["-r", "r/debian-rt-0", "copy"]);
    place.run("compare --exact r/debian-rt-0 copy").says(&[why]);
}

/// Until the probe is there its cell is SKIPPED, on a board that has what it will need.
#[test]
fn a_board_has_what_a_probe_measures() {
    need!(x86_64());
    let place = Place::of_build();
    let plan = "name = \"devices\"\n[[cell]]\nprobe = \"respond-parport\"\nload = [\"none\"]\n\
                duration = \"1s\"\n";
    fs::write(place.path.join("plan.toml"), plan).unwrap();
    place
        .run("lab run --offline -q --no-report --kernel debian:rt --plan plan.toml --out r")
        .with(4)
        .says(&["the probe respond-parport is not in this version"]);
    let run = run_json(&place.path.join("r/debian-rt-0"));
    assert_eq!(run["board"]["lab"]["devices"], serde_json::json!(["parport"]));
    let modules = run["board"]["lab"]["modules"].as_array().unwrap();
    assert!(modules.iter().any(|module| module == "ppdev"), "{modules:?}");
}
