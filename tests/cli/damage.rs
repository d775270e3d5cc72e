//! Run directories that are not whole: what can be read is read, and the rest is said.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Scratch, json, stderr, stdout};

fn recorded(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    let output = scratch.punctual("run sim -D 20 --no-report --out r");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    scratch
}

/// `show` refuses it with these words.
fn refused(scratch: &Scratch, words: &[&str]) {
    for line in ["show r", "report r -o x.html", "compare r r"] {
        let output = scratch.punctual(line);
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert_eq!(stdout(&output), "", "{line}");
        for word in words {
            assert!(stderr(&output).contains(word), "{line}: {}", stderr(&output));
        }
    }
}

#[test]
fn a_run_json_that_cannot_be_read_is_refused() {
    let scratch = recorded("run-json");
    let path = scratch.path("r/run.json");
    let whole = fs::read(&path).unwrap();
    for bytes in [&whole[..whole.len() / 2], b"", b"\xff\x00{{{", b"[1, 2]", b"{}"] {
        fs::write(&path, bytes).unwrap();
        refused(&scratch, &["r/run.json is damaged or not of punctual"]);
    }
    // A key with a value of another kind: the error says where it stands.
    let text = String::from_utf8(whole).unwrap();
    let line = text.lines().position(|line| line.contains("\"phase_ns\": 0,")).unwrap() + 1;
    fs::write(&path, text.replace("\"phase_ns\": 0,", "\"phase_ns\": \"none\",")).unwrap();
    refused(&scratch, &["invalid type: string \"none\"", &format!("at line {line} column 20")]);
    fs::remove_file(&path).unwrap();
    refused(&scratch, &["r: not a run directory: there is no run.json in it"]);
    fs::remove_dir_all(scratch.path("r")).unwrap();
    refused(&scratch, &["r: no such run directory"]);
}

#[test]
fn another_major_version_is_refused_and_a_later_minor_one_is_read() {
    let scratch = recorded("schema");
    let path = scratch.path("r/run.json");
    let mut run: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    run["schema"] = json!("1.1");
    fs::write(&path, run.to_string()).unwrap();
    refused(&scratch, &["schema version 1.1", "reads version 2.1"]);
    run["schema"] = json!("2.9");
    run["a_key_of_later"] = json!({"x": 1});
    fs::write(&path, run.to_string()).unwrap();
    let output = scratch.punctual("show r --json");
    assert_eq!(json(&output)["cells"][0]["samples"], 20_000);
}

#[test]
fn flipped_bits_are_passed_over_and_said() {
    let scratch = recorded("bits");
    let before = json(&scratch.punctual("show r --json"));
    let cell = scratch.path("r/cells").join(before["cells"][0]["dir"].as_str().unwrap());
    for file in ["histograms", "blocks"] {
        let path = cell.join(file);
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x10;
        fs::write(&path, bytes).unwrap();
    }
    assert_eq!(json(&scratch.punctual("show r --json")), before);
    let text = stdout(&scratch.punctual("show r"));
    assert!(text.contains("2 damaged stretches of its files passed over"), "{text}");
    assert!(text.contains("20,000"), "{text}");
    fs::remove_file(cell.join("blocks")).unwrap();
    let text = stdout(&scratch.punctual("show r"));
    assert!(text.contains("/blocks cannot be read"), "{text}");
    let output = scratch.punctual("report r -o x.html");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn numbers_out_of_range_and_foreign_paths_do_no_harm() {
    let scratch = recorded("foreign");
    let path = scratch.path("r/run.json");
    let mut run: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    run["cells"][0]["dir"] = json!("../../../etc");
    run["cells"][0]["interval_ns"] = json!(0);
    run["cells"][0]["threads"][0]["thread"] = json!(u32::MAX);
    fs::write(&path, run.to_string()).unwrap();
    let output = scratch.punctual("show r --deadline 1us");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("is no name of a cell's folder"), "{text}");
    assert!(text.contains("its samples are lost"), "{text}");
}

#[test]
fn an_output_folder_that_cannot_be_had_is_an_error_before_the_start() {
    let scratch = recorded("out");
    let before = fs::read(scratch.path("r/run.json")).unwrap();
    let output = scratch.punctual("run sim -D 1 --out r");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("a run is never overwritten"), "{}", stderr(&output));
    assert_eq!(fs::read(scratch.path("r/run.json")).unwrap(), before);
    let output = scratch.punctual("run sim -D 1 --out /proc/r");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("/proc/r"), "{}", stderr(&output));
}
