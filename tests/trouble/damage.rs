//! Run directories that are damaged, foreign or newer: what can be read is read,
//! what cannot is named, and nothing panics.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use punctual_harness::{Ended, Place, cell_file, end_of, run_json};

fn recorded(place: &Place) -> PathBuf {
    let line = "run sim:stall=3ms,stall-every=500 -t 2 -D 40 --deadline 5ms --no-report --out r";
    place.run(line).with(0);
    place.path.join("r")
}

/// A copy of a run directory in which one file is other than it was.
fn copy(place: &Place, run: &Path, name: &str, change: impl FnOnce(&Path)) -> String {
    let to = place.path.join(name);
    let mut copy = Command::new("cp");
    copy.arg("-r").arg(run).arg(&to);
    end_of(copy).with(0);
    change(&to);
    to.to_str().unwrap().to_owned()
}

fn rewrite(file: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(file).unwrap();
    change(&mut bytes);
    fs::write(file, bytes).unwrap();
}

/// Positions all over a file, the same in every run of the test.
fn positions(length: usize, count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |number| (number * 2 + 1) * length / (count * 2))
}

fn show(place: &Place, run: &str) -> Ended {
    place.words(&["show", run, "--json"])
}

/// Every program that reads runs gets through this one.
fn all_read(place: &Place, run: &str, whole: &str) {
    place.words(&["show", run]).with(0).says(&["damaged"]);
    // A copy is the same run, which is compared only as one side.
    place.words(&["compare", "--by", "board", whole, run]).with(0).says(&["damaged"]);
    let page = place.at("damaged.html");
    place.words(&["report", run, "-o", &page]).with(0);
    assert!(fs::read_to_string(page).unwrap().contains("damaged"));
}

#[test]
fn flipped_bits_and_torn_ends_of_records_are_counted_and_named() {
    let place = Place::new();
    let run = recorded(&place);
    let whole = run.to_str().unwrap();
    let numbers = show(&place, whole).with(0);
    assert_eq!(numbers.stderr, "", "a whole run has no damage");
    for file in ["blocks", "histograms"] {
        let length = usize::try_from(cell_file(&run, file).metadata().unwrap().len()).unwrap();
        for (number, at) in positions(length, 24).enumerate() {
            let name = format!("{file}-{number}");
            let damaged = copy(&place, &run, &name, |to| {
                rewrite(&cell_file(to, file), |bytes| bytes[at] ^= 1 << (number % 8));
            });
            let ended = show(&place, &damaged).with(0).says(&["1 damaged", "those of run.json"]);
            assert_eq!(ended.stdout, numbers.stdout, "{file}: byte {at}: numbers are kept");
            if number % 8 == 0 {
                all_read(&place, &damaged, whole);
            }
            // Judged by another deadline it is judged by what is left, and says so.
            let again = place.words(&["show", &damaged, "--deadline", "2ms"]);
            again.with(1).says(&["FAIL", "damaged"]);
        }
        for (number, at) in positions(length, 6).enumerate() {
            let torn = copy(&place, &run, &format!("{file}-torn-{number}"), |to| {
                rewrite(&cell_file(to, file), |bytes| bytes.truncate(at));
            });
            assert_eq!(show(&place, &torn).with(0).stdout, numbers.stdout, "{file} of {at} bytes");
        }
        let gone = copy(&place, &run, &format!("{file}-gone"), |to| {
            fs::remove_file(cell_file(to, file)).unwrap();
        });
        show(&place, &gone).with(0).says(&[file, "cannot be read (No such file"]);
    }
}

/// A flipped bit makes `run.json` unreadable, which is said, or changes a value,
/// which nothing can know; it never makes a reader panic.
#[test]
fn damage_of_run_json_is_an_error_that_names_the_file() {
    let place = Place::new();
    let run = recorded(&place);
    let length = fs::read(run.join("run.json")).unwrap().len();
    let damaged = copy(&place, &run, "d", |_| {});
    let file = Path::new(&damaged).join("run.json");
    let whole = fs::read(&file).unwrap();
    let mut refused = 0;
    for (number, at) in positions(length, 120).enumerate() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (number % 8);
        fs::write(&file, bytes).unwrap();
        let ended = show(&place, &damaged);
        if ended.status == Some(0) {
            continue;
        }
        refused += 1;
        ended.with(2).says(&[file.to_str().unwrap()]);
    }
    assert!(refused > 20, "{refused} of 120 flipped bits were noticed");
    for at in positions(length, 10) {
        fs::write(&file, &whole[..at]).unwrap();
        // Its end may be in the middle of a number.
        show(&place, &damaged).with(2).says(&[file.to_str().unwrap(), "damaged"]);
    }
    fs::write(&file, "").unwrap();
    show(&place, &damaged).with(2).says(&["run.json is damaged"]);
}

#[test]
fn other_versions_and_what_is_no_run_are_told_apart() {
    let place = Place::new();
    let run = recorded(&place);
    let with = |name: &str, change: &dyn Fn(&mut Value)| {
        copy(&place, &run, name, |to| {
            let mut value = run_json(to);
            change(&mut value);
            fs::write(to.join("run.json"), value.to_string()).unwrap();
        })
    };
    let newer = with("minor", &|run| {
        run["schema"] = json!("2.99");
        run["colour"] = json!({"of": "the board"});
        run["cells"][0]["colour"] = json!("red");
    });
    let (read, original) = (show(&place, &newer).with(0).json(), run_json(&run));
    assert_eq!(read["cells"][0]["threads"], original["cells"][0]["threads"]);
    assert_eq!(read["verdict"], original["verdict"]);
    for version in ["1.1", "3.0", "nonsense", ""] {
        let other = with(&format!("v{version}"), &|run| run["schema"] = json!(version));
        let says = ["run.json", version, "schema version", "use the punctual that wrote it"];
        show(&place, &other).with(2).says(&says);
    }
    let keyless = with("keyless", &|run| drop(run.as_object_mut().unwrap().remove("schema")));
    show(&place, &keyless).with(2).says(&["no key \"schema\""]);

    // A cell's folder that leads elsewhere is not followed.
    let outside = with("outside", &|run| run["cells"][0]["dir"] = json!("../../r/cells"));
    show(&place, &outside).with(0).says(&["is no name of a cell's folder"]);

    fs::create_dir(place.path.join("empty")).unwrap();
    for (name, says) in [
        ("empty", "not a run directory: there is no run.json in it"),
        ("/dev/null", "not a run directory"),
        ("nowhere", "no such run directory"),
    ] {
        let whole = run.to_str().unwrap();
        place.words(&["show", name]).with(2).says(&[name, says]);
        place.words(&["compare", whole, name]).with(2).says(&[name, says]);
        place.words(&["report", name, "-o", &place.at("x.html")]).with(2).says(&[name, says]);
    }
    assert!(!place.path.join("x.html").exists());
}
