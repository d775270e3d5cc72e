//! Exact comparison of virtual boards, and sets of runs.

use std::fs;
use std::process::{Command, Output};

use punctual_core::format::{Reader, Record, encode};
use punctual_harness::{edit, make_virtual};
use serde_json::json;

use crate::support::{Scratch, json, stderr, stdout};

/// A folder with the run `a` of a virtual board, of two cells, and its copy `b`.
fn pair(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    let run = scratch.punctual("run sim sim -D 3 --no-report --out a");
    assert_eq!(run.status.code(), Some(0), "{}", stderr(&run));
    make_virtual(&scratch.path("a"), true);
    copy(&scratch, "a", "b");
    scratch
}

fn copy(scratch: &Scratch, from: &str, to: &str) {
    fs::create_dir_all(scratch.path(to).parent().unwrap()).unwrap();
    let paths = [scratch.path(from), scratch.path(to)];
    assert!(Command::new("cp").arg("-r").args(paths).status().unwrap().success());
}

/// Makes the largest sample of the second block of `run`'s second cell 10 ns larger.
fn change_a_block(scratch: &Scratch, run: &str) {
    let value = json(&scratch.punctual(&format!("show {run} --json")));
    let cell = scratch.path(run).join("cells").join(value["cells"][1]["dir"].as_str().unwrap());
    let path = cell.join("blocks");
    let mut out = Vec::new();
    for record in Reader::new(&fs::read(&path).unwrap()) {
        let record = match record {
            Record::Block(mut block) if block.index == 1 => {
                block.moments.max += 10;
                Record::Block(block)
            }
            other => other,
        };
        encode(&record, &mut out);
    }
    fs::write(&path, out).unwrap();
}

fn says(output: &Output, status: i32, text: &str) {
    let said = format!("{}{}", stdout(output), stderr(output));
    assert_eq!(output.status.code(), Some(status), "{said}");
    // Wherever lines end.
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&said).contains(&words(text)), "\"{text}\" is missing in {said}");
}

#[test]
fn equal_runs_are_identical_and_the_first_difference_is_said() {
    let scratch = pair("exact");
    edit(&scratch.path("b"), |run| run["run_id"] = json!("another"));
    let output = scratch.punctual("compare --exact a b");
    says(&output, 0, "identical: 2 cells, ");
    let same = json(&scratch.punctual("compare --exact a b --json"));
    let exact = &same["pairs"][0];
    assert_eq!((&same["outcome"], &exact["outcome"]), (&json!("identical"), &json!("identical")));
    assert_eq!((&exact["a"], &exact["b"]), (&json!("a"), &json!("b")));
    let bytes = exact["bytes"].as_u64().unwrap();
    assert!(bytes > 1_000, "{bytes}");
    assert_eq!(exact["bytes_identical"], bytes);

    edit(&scratch.path("b"), |run| run["cells"][1]["steal"] = json!(0.5));
    let output = scratch.punctual("compare --exact a b");
    says(&output, 1, "not identical: sim @ idle @ 3s (2): cells[1].steal: ");
    says(&output, 1, " against 0.5\n  identical: 1 of 2 cells, ");

    change_a_block(&scratch, "b");
    let output = scratch.punctual("compare --exact a b");
    let before = "not identical: sim @ idle @ 3s (2): thread 0, second 1: largest 19,982 ns against \
                  19,992 ns\n  identical: 1 of 2 cells, ";
    says(&output, 1, before);
    let other = json(&scratch.punctual("compare --exact a b --json"));
    assert_eq!(other["outcome"], "not-identical");
    assert_eq!(other["pairs"][0]["first"]["file"], "blocks");
    assert_eq!(other["pairs"][0]["first"]["cell"], "sim @ none @ 3s (2)");
    assert!(other["pairs"][0]["bytes_identical"].as_u64().unwrap() < bytes);

    fs::remove_file(scratch.path("b/run.json")).unwrap();
    says(&scratch.punctual("compare --exact a b"), 2, "b: not a run directory");
}

#[test]
fn other_boards_are_refused() {
    let scratch = pair("exact-refused");
    edit(&scratch.path("b"), |run| {
        run["board"]["lab"]["qemu"] = json!("8.0");
        run["board"]["lab"]["not_exact"] = json!(["a peer outside"]);
        run["phase_ns"] = json!(7);
    });
    let output = scratch.punctual("compare a b --exact");
    assert_eq!(
        stdout(&output),
        "refused: the runs need not be identical\n  qemu: 7.2.22 against 8.0\n  phase_ns: 0 \
         against 7\n  ! b may not repeat exactly: a peer outside\n"
    );
    assert_eq!(output.status.code(), Some(4));
    edit(&scratch.path("a"), |run| {
        run["board"]["kind"] = json!("local");
        run["board"]["lab"] = json!(null);
    });
    says(&scratch.punctual("compare a b --exact"), 4, "  a is from a local board: only a virtual");
    let refused = json(&scratch.punctual("compare a b --exact --json"));
    assert_eq!(refused["outcome"], "refused");
    assert_eq!(refused["pairs"][0]["refused"].as_array().unwrap().len(), 1);
    says(&scratch.punctual("compare a b a --exact"), 2, "two sets of runs, and not 3");
}

#[test]
fn sets_are_compared_run_by_run() {
    let scratch = pair("exact-sets");
    for run in ["one/x", "one/y", "two/x", "two/y"] {
        copy(&scratch, "a", run);
    }
    let output = scratch.punctual("compare one two --exact");
    says(&output, 0, "2 of 2 runs identical\n");
    edit(&scratch.path("two/x"), |run| {
        run["board"]["lab"]["seed"] = json!(2);
        run["plan"]["warmup_ns"] = json!(7);
    });
    says(
        &scratch.punctual("compare one two --exact"),
        4,
        "x  refused: seed: 1 against 2; plan.warmup_ns: ",
    );
    change_a_block(&scratch, "two/y");
    let output = scratch.punctual("compare one two/ --exact");
    assert_eq!(stdout(&output).lines().count(), 3, "{}", stdout(&output));
    says(&output, 1, "x  refused: seed: 1 against 2; plan.warmup_ns: ");
    says(&output, 1, "y  not identical: sim @ idle @ 3s (2): thread 0, second 1: largest");
    says(&output, 1, "0 of 2 runs identical\n");
    let answer = json(&scratch.punctual("compare one two --exact --json"));
    assert_eq!(answer["outcome"], "not-identical");
    assert_eq!(answer["pairs"].as_array().unwrap().len(), 2);
    fs::write(scratch.path("two/y/run.json"), "{}").unwrap();
    says(&scratch.punctual("compare one two --exact"), 2, "y  cannot be read: two/y/run.json is");
    copy(&scratch, "a", "two/z");
    let output = scratch.punctual("compare one two --exact");
    says(&output, 4, "refused: the sets hold runs of other names\n  only in two: z\n");
    let output = scratch.punctual("compare one a --exact");
    says(&output, 2, "one is a set of runs, and a is not: name two runs, or two sets");
}

#[test]
fn a_set_stands_for_its_runs() {
    let scratch = pair("sets");
    copy(&scratch, "a", "punctual-runs/early");
    for run in ["exp/x", "exp/y", "expanded/x"] {
        copy(&scratch, "a", &format!("punctual-runs/{run}"));
        // A run counts for one side only.
        edit(&scratch.path("punctual-runs").join(run), |value| value["run_id"] = json!(run));
    }
    fs::create_dir(scratch.path("punctual-runs/exp/no-run")).unwrap();
    fs::create_dir(scratch.path("punctual-runs/empty")).unwrap();
    let listed = json(&scratch.punctual("list runs --json"));
    let names = listed["runs"].as_array().unwrap().iter().map(|run| run["name"].as_str().unwrap());
    assert_eq!(names.collect::<Vec<_>>(), ["early", "exp/x", "exp/y", "expanded/x"]);

    says(
        &scratch.punctual("show exp"),
        2,
        "exp: a set of runs; name one of them:\n  punctual-runs/exp/x\n  punctual-runs/exp/y\n",
    );
    says(
        &scratch.punctual("show ex"),
        2,
        "ex: several runs begin so:\n  punctual-runs/exp\n  punctual-runs/expanded\n",
    );
    says(&scratch.punctual("show exp/"), 2, "exp/: a set of runs");
    for name in ["early", "ea", "exp/x", "expa", "expanded/", "expa/x", "punctual-runs/exp/y"] {
        let status = if name == "expa/x" { 2 } else { 0 };
        assert_eq!(scratch.punctual(&format!("show {name}")).status.code(), Some(status), "{name}");
    }
    assert_eq!(scratch.punctual("show last").status.code(), Some(0));
    says(&scratch.punctual("show empty"), 2, "empty: no such run directory");

    let compared = json(&scratch.punctual("compare exp early --json"));
    assert_eq!(compared["runs"].as_array().unwrap().len(), 3);
    assert_eq!(scratch.punctual("compare exp").status.code(), Some(0));
    says(&scratch.punctual("compare early"), 2, "one run is nothing to compare");
    let reported = json(&scratch.punctual("report exp -o x.html --json"));
    assert_eq!(reported["runs"].as_array().unwrap().len(), 2);
}

#[test]
fn a_guest_without_instruction_counting_is_shown_and_neither_judged_nor_compared() {
    let scratch = pair("plumbing");
    let judged = scratch.punctual("show b --deadline 25us");
    says(&judged, 0, "deterministic: every run of this board");
    make_virtual(&scratch.path("b"), false);
    edit(&scratch.path("b"), |run| run["run_id"] = json!("another"));
    let words = "not a measurement: the guest ran without instruction counting";
    let refused = scratch.punctual("compare a b -o x.html");
    says(&refused, 4, words);
    assert_eq!(stdout(&refused), "");
    assert!(!scratch.path("x.html").exists());
    let refused = json(&scratch.punctual("compare a b --json"));
    assert_eq!(refused["refused"].as_array().unwrap().len(), 1);
    says(
        &scratch.punctual("compare a b --exact"),
        4,
        "b is from a virtual board without instruction counting",
    );
    for deadline in ["25us", "1us"] {
        says(&scratch.punctual(&format!("show b --deadline {deadline}")), 3, words);
    }
    assert_eq!(scratch.punctual("show b").status.code(), Some(0));
    assert_eq!(scratch.punctual("report a b -o x.html").status.code(), Some(0));
}
