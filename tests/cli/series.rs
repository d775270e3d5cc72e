//! `run --replicates`: several runs that are judged as one, and what is done between them.

use std::fs;
use std::process::{Output, Stdio};
use std::time::Duration;

use punctual_harness::{run_json, until};

use crate::support::{Scratch, json, signal, stderr, stdout};

/// A series whose command between two runs has spaces.
fn series(scratch: &Scratch, line: &str, between: &str) -> Output {
    scratch.command(line).arg("--between").arg(between).output().unwrap()
}

/// What a series that came to the same prints.
fn shown(scratch: &Scratch, line: &str) -> String {
    stdout(&scratch.punctual(line)) + "      s\n"
}

fn status(output: &Output) -> Option<i32> {
    output.status.code()
}

#[test]
fn runs_are_made_one_after_the_other_and_judged_as_one() {
    let scratch = Scratch::new("series");
    let output = series(
        &scratch,
        "run sim -D 40s --deadline 5ms --replicates 3 --no-report --out s",
        "cat; echo told; ls s | tr '\\n' ' ' >> between",
    );
    let said = stderr(&output);
    assert_eq!(status(&output), Some(0), "{said}");
    // Before the second run there is one, before the third there are two.
    assert_eq!(fs::read_to_string(scratch.path("between")).unwrap(), "1 1 2 ");
    assert_eq!(said.matches("told\n").count(), 2, "{said}");
    assert!(said.contains("punctual: before run 3 of 3: cat; echo told;"), "{said}");
    assert!(said.contains("punctual: run 2 of 3: PASS (SIMULATED), max "), "{said}");
    assert_eq!(stdout(&output), shown(&scratch, "show s/1 s/2 s/3"));
    for number in 1..=3_u64 {
        let run = run_json(&scratch.path(&format!("s/{number}")));
        assert_eq!((&run["group"], &run["replicate"]), (&"s".into(), &(number - 1).into()));
    }
    let again = scratch.punctual("run sim -D 1s --replicates 2 --out s");
    assert_eq!(status(&again), Some(2), "nothing is overwritten");
}

#[test]
fn a_series_is_one_document_of_json() {
    let scratch = Scratch::new("series-json");
    let line = "run sim -D 40s --deadline 1us --replicates 2 --group g --json --out s";
    let output = series(&scratch, line, "echo told");
    assert_eq!(status(&output), Some(1), "{}", stderr(&output));
    let document = json(&output);
    assert_eq!(document["pooled"], json(&scratch.punctual("show s/1 s/2 --json")));
    assert_eq!((&document["interrupted"], &document["error"]), (&false.into(), &().into()));
    let runs = document["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    assert_eq!((&runs[1]["run"], &runs[1]["outcome"]), (&"s/2".into(), &"FAIL".into()));
    assert_eq!(run_json(&scratch.path("s/2"))["group"], "g");
    assert!(scratch.path("s/report.html").exists());
}

#[test]
fn ten_runs_are_in_the_order_of_their_names() {
    let scratch = Scratch::new("series-ten");
    let output = scratch.punctual("run sim -D 1s --replicates 10 --no-report --quiet --out s");
    assert_eq!((status(&output), stderr(&output).as_str()), (Some(0), ""), "nothing to judge");
    let mut names = fs::read_dir(scratch.path("s"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect::<Vec<_>>();
    names.sort();
    assert_eq!((names.len(), &*names[0], &*names[9]), (10, "01", "10"));
    assert_eq!(run_json(&scratch.path("s/10"))["replicate"], 9);
}

#[test]
fn without_a_deadline_runs_are_compared() {
    let scratch = Scratch::new("series-compared");
    let output = scratch.punctual("run sim -D 40s --replicates 2 --no-report --out s");
    assert_eq!(status(&output), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output), shown(&scratch, "compare s"));
}

#[test]
fn what_is_missing_of_a_run_is_said_as_it_is_later() {
    let scratch = Scratch::new("series-damaged");
    let line = "run sim -D 40s --deadline 5ms --replicates 2 --no-report --out s";
    let output = series(&scratch, line, "truncate -s 100 s/1/cells/*/blocks");
    let later = scratch.punctual("show s/1 s/2");
    assert!(!stderr(&later).is_empty());
    assert!(stderr(&output).ends_with(&stderr(&later)), "{}", stderr(&output));
    assert_eq!(status(&output), status(&later), "{}", stderr(&output));
    assert_eq!(stdout(&output), shown(&scratch, "show s/1 s/2"));
}

#[test]
fn runs_of_two_kernels_are_not_judged_as_one() {
    let scratch = Scratch::new("series-kernels");
    let line = "run sim -D 40s --deadline 5ms --replicates 2 --no-report --json --out s";
    let change = r#"sed -i 's/"release": "[^"]*"/"release": "0.0-other"/' s/1/run.json"#;
    let output = series(&scratch, line, change);
    let said = stderr(&output);
    assert_eq!(status(&output), Some(2), "{said}");
    assert!(said.contains("the runs cannot be judged as one: "), "{said}");
    let document = json(&output);
    assert!(document["pooled"].is_null(), "{document}");
    assert_eq!(document["comparison"]["runs"].as_array().unwrap().len(), 2, "{document}");
    assert_eq!(document["comparison"], json(&scratch.punctual("compare s --json")));
}

#[test]
fn a_run_that_cannot_be_made_ends_the_series() {
    let scratch = Scratch::new("series-no-run");
    let line = "run sim -D 40s --deadline 5ms --replicates 3 --no-report --out s";
    let output = series(&scratch, line, "mkdir s/2");
    let said = stderr(&output);
    assert_eq!(status(&output), Some(2), "{said}");
    assert!(said.contains("punctual: run 2 of 3: cannot make the run directory s/2: "), "{said}");
    assert!(said.contains("the series ends; what was measured is kept in s"), "{said}");
    assert_eq!(stdout(&output), shown(&scratch, "show s/1"));
    assert!(!scratch.path("s/3").exists());
}

#[test]
fn a_command_that_fails_ends_the_series() {
    let scratch = Scratch::new("series-fails");
    let line = "run sim -D 1s --deadline 1us --replicates 3 --no-report --out s --json";
    let output = series(&scratch, line, "exit 3");
    let said = stderr(&output);
    assert_eq!(status(&output), Some(2), "{said}");
    assert!(said.contains("--between \"exit 3\" before run 2 of 3"), "{said}");
    assert!(said.contains("exit status: 3: the series ends"), "{said}");
    let document = json(&output);
    assert!(document["error"].as_str().unwrap().contains("exit status: 3"), "{document}");
    assert_eq!(document["runs"].as_array().unwrap().len(), 1, "what was measured is kept");
    assert!(scratch.path("s/1/run.json").exists() && !scratch.path("s/2").exists());
}

/// A series that is at its command. What would be left of that holds no pipe of this test.
fn at_its_command(scratch: &Scratch, command: &str) -> std::process::Child {
    let line = "run sim -D 40s --deadline 5ms --replicates 3 --no-report --out s --between";
    let mut line = scratch.command(line);
    let command = format!("exec > /dev/null 2>&1; {command}");
    let line = line.arg(&command).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = line.spawn().unwrap();
    let there = || scratch.path("there").exists();
    assert!(until(Duration::from_secs(60), there), "the command was not started");
    child
}

fn all_ended(scratch: &Scratch) -> bool {
    until(Duration::from_secs(10), || scratch.living().is_empty())
}

#[test]
fn ctrl_c_ends_the_command_and_what_it_started() {
    let scratch = Scratch::new("series-ctrl-c");
    for command in
        ["sleep 600 & touch there; wait", "trap '' TERM; touch there; sleep 600; sleep 600"]
    {
        let child = at_its_command(&scratch, command);
        signal(&child, "INT");
        let output = child.wait_with_output().unwrap();
        assert_eq!(status(&output), Some(130), "{}", stderr(&output));
        assert!(stderr(&output).contains("interrupted: the series ends"), "{}", stderr(&output));
        assert!(all_ended(&scratch), "{command}: {:?}", scratch.living());
        assert_eq!(run_json(&scratch.path("s/1"))["state"], "complete");
        assert_eq!(stdout(&output), shown(&scratch, "show s/1"));
        assert!(!scratch.path("s/2").exists(), "no further run is started");
        fs::remove_dir_all(scratch.path("s")).unwrap();
        fs::remove_file(scratch.path("there")).unwrap();
    }
}

#[test]
fn what_was_measured_before_ctrl_c_is_judged_as_one() {
    let scratch = Scratch::new("series-judged");
    let child = at_its_command(&scratch, "test -e s/2 || exit 0; touch there; sleep 600");
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(status(&output), Some(130), "{}", stderr(&output));
    assert_eq!(stdout(&output), shown(&scratch, "show s/1 s/2"));
    assert!(stdout(&output).contains("PASS"), "{}", stdout(&output));
}

#[test]
fn a_killed_series_leaves_no_command_behind() {
    let scratch = Scratch::new("series-killed");
    let mut child = at_its_command(&scratch, "touch there; exec sleep 600");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(all_ended(&scratch), "{:?}", scratch.living());
}

#[test]
fn ctrl_c_in_a_run_keeps_it_and_starts_no_other() {
    let scratch = Scratch::new("series-run");
    let child = scratch.spawn("run wakeup -D 60 --no-warmup --replicates 3 --json --out s");
    scratch.wait_for_blocks("s/1", 1);
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(status(&output), Some(130), "{}", stderr(&output));
    assert_eq!(json(&output)["interrupted"], true);
    assert_eq!(run_json(&scratch.path("s/1"))["state"], "interrupted");
    assert!(!scratch.path("s/2").exists());
}

#[test]
fn what_makes_no_series_is_refused() {
    let scratch = Scratch::new("series-refused");
    for (line, words) in [
        ("--replicates 1", "'--replicates <N>': must be 2 to 1,000"),
        ("--replicates 1001", "'--replicates <N>': must be 2 to 1,000"),
        ("--replicates 2 -b 100", "cannot be used with"),
        ("--replicates 2 --replicate 1", "cannot be used with"),
        ("--replicates 2 --continue r", "cannot be used with"),
        ("--between true", "--replicates <N>"),
    ] {
        let output = scratch.punctual(&format!("run sim -D 1 --out s {line}"));
        assert_eq!(status(&output), Some(2), "{line}: {}", stderr(&output));
        assert!(stderr(&output).contains(words), "{line}: {}", stderr(&output));
        assert!(!scratch.path("s").exists(), "{line}");
    }
    let output = scratch.punctual("run sim --phase 2h -D 1 --replicates 2 --out s");
    assert_eq!(status(&output), Some(2), "{}", stderr(&output));
    assert!(!scratch.path("s").exists(), "what was begun is taken away");
}
