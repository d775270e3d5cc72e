//! Histories: what is here is kept, what is new or has changed is measured.

use std::fs;

use punctual_harness::{Place, need};

use crate::boards::x86_64;

#[test]
fn a_history_keeps_what_it_has_and_measures_what_is_new() {
    need!(x86_64());
    let place = Place::of_build();
    let history = |kernels: &str, more: &str| {
        place.run(&format!(
            "lab history --offline --replicates 1 --kernel {kernels} wakeup -D 300ms --out h {more}"
        ))
    };
    // Which release these names mean is not known without the lists of x86_64().
    history("debian:rt", "").with(0).says(&["history.html", "wakeup @ idle"]);
    let of = |model: &str| {
        let entries = fs::read_dir(place.path.join("h")).unwrap().flatten();
        let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
        let name = entries.map(name).find(|name| name.ends_with(&format!("-{model}-0"))).unwrap();
        place.path.join("h").join(name).join("run.json")
    };
    let first = fs::read(of("rt")).unwrap();

    history("debian:rt,debian:none", "").with(0).says(&["1 of 2 boots are here already", "none"]);
    assert_eq!(fs::read(of("rt")).unwrap(), first, "it was measured again");
    let csv = fs::read_to_string(place.path.join("h/history.csv")).unwrap();
    assert_eq!(csv.lines().count(), 3, "{csv}");

    // A run that was cut short, and one of another board.
    let cut = String::from_utf8(first.clone()).unwrap();
    let cut = cut.replacen("\"state\": \"complete\"", "\"state\": \"running\"", 1);
    fs::write(of("rt"), cut).unwrap();
    history("debian:rt,debian:none", "").with(0).says(&["1 of 2 boots are here already"]);
    history("debian:rt", "--memory 320").with(0);
    assert_ne!(fs::read(of("rt")).unwrap(), first);
    let json = history("debian:rt", "--memory 320 --json").with(0).stdout.clone();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["kernels"].as_array().unwrap().len(), 1);

    fs::create_dir(place.path.join("other")).unwrap();
    let line = "lab history --offline --kernel debian:rt --out other wakeup -D 1s";
    place.run(line).with(2).says(&["is not the folder of a history"]);
}
