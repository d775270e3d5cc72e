//! Loads that cannot start, and loads that die: the measurement goes on and says so.

use std::fs;

use serde_json::Value;

use punctual_harness::{Place, Tmpfs, need, programs, root};

const SHORT: &[&str] = &["run", "wakeup", "--no-warmup", "--no-report", "--json"];

fn trouble(cell: &Value) -> &str {
    cell["load_work"][0]["trouble"].as_str().unwrap_or_else(|| panic!("no trouble in {cell}"))
}

#[test]
fn a_load_that_cannot_start_skips_the_cell_with_its_reason() {
    let place = Place::new();
    for (load, reason) in [
        ("cmd:false", "\"false\" exited with status 1"),
        ("cmd:exec /nonexistent/program", "/nonexistent/program"),
        ("tree:dir=/nonexistent", "/nonexistent"),
        ("disk:dir=/proc", "/proc"),
    ] {
        let ended = place.words(&[SHORT, &["-D", "1", "--load", load]].concat()).with(4);
        let cell = &ended.json()["cells"][0];
        assert_eq!(cell["state"], "skipped", "{load}");
        let said = cell["reason"].as_str().unwrap();
        assert!(said.contains(reason), "{load}: {said}");
        let name = load.split(':').next().unwrap();
        assert!(said.contains(name), "{load}: {said}");
    }
    let text = place.run("run wakeup -D 1 --load cmd:false --no-report").with(4);
    text.says(&["SKIPPED", "\"false\" exited with status 1"]);
    place.run("load cmd:false -D 1").with(4).says(&["SKIPPED", "\"false\" exited with status 1"]);
    assert_eq!(place.living(), Vec::<String>::new());
}

#[test]
fn a_load_without_room_says_how_much_it_lacks() {
    need!(root());
    need!(programs(&["mount"]));
    let place = Place::new();
    let on = place.path.join("small");
    let _disk = Tmpfs::mount(&on, "1m");
    let load = format!("disk:dir={}", on.display());
    let cell =
        &place.words(&[SHORT, &["-D", "1", "--load", &load]].concat()).with(4).json()["cells"][0];
    let said = cell["reason"].as_str().unwrap();
    assert!(said.contains(on.to_str().unwrap()), "{said}");
    assert_eq!(fs::read_dir(&on).unwrap().count(), 0, "its folder is removed");
}

#[test]
fn a_load_that_dies_is_trouble_of_the_cell_and_the_measurement_goes_on() {
    let place = Place::new();
    let dying = "cmd:sleep 1.2; echo the disk is gone >&2; exit 3";
    let ended = place.words(&[SHORT, &["-D", "4", "--load", dying]].concat()).with(0);
    let cell = &ended.json()["cells"][0];
    assert_eq!((&cell["state"], &cell["scheduled"]), (&"complete".into(), &4_000.into()));
    assert!(trouble(cell).contains("exited with status 3: the disk is gone"), "{}", trouble(cell));
    assert!(cell["load_work"][0]["restarts"].as_u64().unwrap() >= 1, "{cell}");
    // A verdict says that its load did not hold.
    let ended = place.words(&[
        "run",
        "wakeup",
        "--no-warmup",
        "--no-report",
        "-D",
        "3",
        "--load",
        dying,
        "--deadline",
        "10s",
    ]);
    ended.with(3).says(&["INCONCLUSIVE", "exited with status 3"]);
    assert_eq!(place.living(), Vec::<String>::new());
}

#[test]
fn one_part_of_a_load_that_dies_leaves_the_others() {
    let place = Place::new();
    let load = "copy+cmd:sleep 1; exit 3";
    let ended = place.words(&[SHORT, &["-D", "3", "--load", load]].concat()).with(0);
    let cell = &ended.json()["cells"][0];
    let work = cell["load_work"].as_array().unwrap();
    assert_eq!(work.len(), 2);
    assert_eq!((&work[0]["load"], &work[0]["trouble"]), (&"copy".into(), &Value::Null));
    assert!(work[0]["counters"][0]["total"].as_u64().unwrap() > 0);
    assert!(work[1]["trouble"].as_str().unwrap().contains("exited with status 3"));
}
