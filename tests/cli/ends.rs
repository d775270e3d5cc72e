//! Runs that end before their time.

use std::process::Stdio;

use punctual_harness::{end_of, need, programs};

use crate::support::{Scratch, json, signal, stderr, stdout};

#[test]
fn a_signal_keeps_what_was_measured() {
    for (name, number) in [("INT", 0), ("TERM", 1)] {
        let scratch = Scratch::new(&format!("signal-{number}"));
        let child = scratch.spawn("run wakeup wakeup:timer=posix -D 60 --no-warmup --json --out r");
        scratch.wait_for_blocks("r", 100);
        signal(&child, "USR1");
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
        let run = json(&output);
        assert_eq!(run["state"], "interrupted");
        let cell = &run["cells"][0];
        assert_eq!(cell["state"], "interrupted");
        let count = |key: &str| cell[key].as_u64().unwrap();
        assert!(count("samples") > 100);
        assert_eq!(count("scheduled"), count("samples") + count("missed"));
        assert_eq!(run["cells"][1]["state"], "pending");
        assert!(stderr(&output).contains("thread 0: max"), "{}", stderr(&output));
        assert!(scratch.path("r/report.html").exists());
    }
}

#[test]
fn a_missed_deadline_stays_visible_in_an_interrupted_run() {
    let scratch = Scratch::new("interrupted-fail");
    let child = scratch.spawn("run wakeup -D 60 --no-warmup --deadline 1ns --no-report --out r");
    scratch.wait_for_blocks("r", 1);
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(stdout(&output).contains("FAIL"), "{}", stdout(&output));
}

#[test]
fn a_command_that_gets_no_thread_says_so() {
    need!(programs(&["strace"]));
    let scratch = Scratch::new("no-thread");
    // Of each process the second: the first is the command's shell.
    let fault = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=clone3", "-e"];
    let fault = [&fault[..], &["inject=clone3:error=EAGAIN:when=2"]].concat();
    let ended = end_of(scratch.through(&fault, &["load", "cmd:sleep 9", "-D", "2"]));
    ended.with(4).says(&["a thread for stderr: Resource temporarily unavailable"]);
}

#[test]
fn a_killed_run_reads_back_to_its_last_block() {
    let scratch = Scratch::new("killed");
    let mut child = scratch.spawn("run wakeup -D 60 --no-warmup --deadline 1s --load tree --out r");
    scratch.wait_for_blocks("r", 300);
    // Late samples alone may be as many bytes: the load's work of a second follows its blocks.
    std::thread::sleep(std::time::Duration::from_secs(2));
    let live = scratch.punctual("show r");
    assert_eq!(live.status.code(), Some(2));
    assert!(stderr(&live).contains("still measures"), "{}", stderr(&live));
    child.kill().unwrap();
    child.wait().unwrap();

    let run = json(&scratch.punctual("show r --json"));
    assert_eq!(run["state"], "running");
    let cell = &run["cells"][0];
    assert_eq!(cell["state"], "recovered");
    let count = |key: &str| cell[key].as_u64().unwrap();
    assert_eq!(count("scheduled"), count("samples") + count("missed"));
    assert_eq!(cell["corrected"]["samples"], count("scheduled"));
    let seconds = count("duration_ns") / 1_000_000_000;
    assert!(seconds >= 1, "{seconds}");
    // A block may be closed by the first sample behind it: one release either way.
    assert!(count("scheduled").abs_diff(seconds * 1_000) <= 1_000, "{}", count("scheduled"));
    assert!(cell["p50_ns"].as_i64() <= cell["max_ns"].as_i64());
    assert_eq!(cell["load_work"][0]["load"], "tree");
    assert_eq!(run["verdict"]["outcome"], "INCONCLUSIVE");
    let text = stdout(&scratch.punctual("show r"));
    assert!(text.contains("cut short"), "{text}");
    let report = scratch.punctual("report r -o x.html");
    assert_eq!(report.status.code(), Some(0), "{}", stderr(&report));
}

#[test]
fn a_reader_that_goes_away_changes_no_status() {
    let scratch = Scratch::new("pipe");
    let mut child = scratch
        .command("run sim -D 30 --deadline 15us --out r")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
}
