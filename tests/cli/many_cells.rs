//! Runs of so many cells that `run.json` is not rewritten for each.

use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

use punctual_harness::{run_json, until};

use crate::support::{Scratch, json, stderr};

/// Writes a plan of so many cells in simulated time, none of which is as another.
fn plan(scratch: &Scratch, cells: u32, seconds: u32) {
    let mut text = format!("name = \"many\"\nduration = \"{seconds}s\"\n");
    for number in 0..cells {
        let _ = write!(text, "[[cell]]\nprobe = \"sim:high={}us\"\n", 20 + number);
    }
    fs::write(scratch.path("many.toml"), text).unwrap();
}

fn states(cells: &serde_json::Value, state: &str) -> usize {
    cells.as_array().unwrap().iter().filter(|cell| cell["state"] == state).count()
}

#[test]
fn a_long_run_that_is_killed_has_all_cells_that_it_had_measured_and_goes_on() {
    let scratch = Scratch::new("many-cells");
    plan(&scratch, 300, 2_000);
    let mut child = scratch.spawn("run --plan many.toml --no-report --quiet --out r");
    let lines = || fs::read_to_string(scratch.path("r/cells.jsonl")).unwrap_or_default();
    let measured = || lines().lines().filter(|line| line.contains("\"complete\"")).count();
    assert!(until(Duration::from_secs(120), || measured() >= 3), "{}", lines().len());
    child.kill().unwrap();
    child.wait().unwrap();
    let known = measured();
    let written = states(&run_json(&scratch.path("r"))["cells"], "complete");
    assert!(written + 3 <= known, "{written} of {known} are in run.json");
    let shown = scratch.punctual("show r --json");
    assert_eq!(states(&json(&shown)["cells"], "complete"), known, "{}", stderr(&shown));
    // A line that was not finished says nothing.
    let torn = lines() + "\n{\"number\":299,\"cell\":{";
    fs::write(scratch.path("r/cells.jsonl"), torn).unwrap();
    let shown = json(&scratch.punctual("show r --json"));
    assert_eq!(states(&shown["cells"], "complete"), known);
    let went_on = scratch.punctual("run --continue r --no-report --quiet");
    assert!(matches!(went_on.status.code(), Some(0)), "{}", stderr(&went_on));
    let run = run_json(&scratch.path("r"));
    assert_eq!((states(&run["cells"], "complete"), &run["state"]), (300, &"complete".into()));
    assert_eq!(run["continued"][0]["kept"], known);
    assert!(!scratch.path("r/cells.jsonl").exists());
}
