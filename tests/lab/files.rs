//! Files of this machine that guests find in their root.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use punctual_harness::{Place, count, items, need, run_json};

use crate::boards::x86_64;
use crate::shell::libraries;

/// A shell and its libraries, without which a guest has no load `cmd`. The guest can be made again
/// only with the same files.
#[test]
fn programs_of_this_machine_load_a_guest() {
    need!(x86_64());
    let place = Place::of_build();
    for path in libraries("/bin/sh").iter().map(String::as_str).chain(["/bin/sh"]) {
        let copy = place.path.join("root").join(path.trim_start_matches('/'));
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(path, &copy).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let line =
        "lab run --offline -q --no-report --replicates 1 --kernel debian:none wakeup -D 500ms";
    let run = |rest: &str| {
        let mut words: Vec<&str> = line.split(' ').chain(rest.split(' ')).collect();
        words.extend(["--load", "cmd:while :; do :; done"]);
        place.words(&words)
    };
    run("--files root --out with").with(0);
    let cell = &run_json(&place.path.join("with/debian-none-0"))["cells"][0];
    let counters = items(&cell["load_work"][0]["counters"]);
    let used = counters.iter().find(|counter| counter["name"] == "cpu-ms").unwrap();
    assert!(count(used, "total") > 100, "{cell}");
    // Before the boot: no kernel changes it.
    run("--out without").with(2).says(&["no shell", "--files"]);
    // The run says which files it had; others are refused.
    place.run("lab explain --offline -q with/debian-none-0").with(0);
    fs::write(place.path.join("root/other"), "").unwrap();
    let refused = place.run("lab explain --offline -q with/debian-none-0").with(2).stderr;
    assert!(refused.contains("--files"), "{refused}");
}
