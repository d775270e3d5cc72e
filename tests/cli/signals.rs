//! Signals, and terminals and readers that go away: what ends a run, what does not, and what is
//! kept.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use punctual_harness::processes::{assert_no_load, command_line, signal_to, stat, wait_at_most};
use punctual_harness::{need, programs, run_json, until};

use crate::support::{Scratch, json, signal, stderr, stdout};

/// A run that a shell starts with these commands before it.
fn after(scratch: &Scratch, shell: &str, line: &str) -> Command {
    let script = format!("{shell}; exec \"$0\" \"$@\"");
    let words: Vec<&str> = line.split_whitespace().collect();
    scratch.through(&["sh", "-c", &script], &words)
}

/// Said instead of the address of a report.
const NO_REPORT: &str = "no report: interrupted; make it with: punctual report ";

fn started(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn status(output: &Output) -> Option<i32> {
    output.status.code()
}

#[test]
fn what_was_ignored_at_the_start_stays_ignored() {
    let scratch = Scratch::new("nohup");
    let line = "run wakeup -D 2 --no-warmup --out r";
    let child = started(after(&scratch, "trap '' HUP INT QUIT", line));
    scratch.wait_for_blocks("r", 1);
    for name in ["HUP", "INT", "QUIT"] {
        signal(&child, name);
    }
    let pid = child.id();
    let output = child.wait_with_output().unwrap();
    assert_eq!(status(&output), Some(0), "{}", stderr(&output));
    let first =
        format!("punctual: SIGINT, SIGHUP, SIGQUIT ignored (nohup); kill {pid} ends the run");
    assert_eq!(stderr(&output).lines().next(), Some(first.as_str()));
    assert_eq!(run_json(&scratch.path("r"))["state"], "complete");
}

#[test]
fn nohup_outlives_its_terminal() {
    need!(programs(&["nohup"]));
    let scratch = Scratch::new("nohup-program");
    let words = ["run", "wakeup", "-D", "2", "--no-warmup", "--out", "r"];
    let child = started(scratch.through(&["nohup"], &words));
    scratch.wait_for_blocks("r", 1);
    signal(&child, "HUP");
    let output = child.wait_with_output().unwrap();
    assert_eq!(status(&output), Some(0), "{}", stderr(&output));
}

#[test]
fn sigterm_always_ends_a_run() {
    let scratch = Scratch::new("term");
    let line = "run wakeup -D 60 --no-warmup --no-report --json --out r";
    let child = started(after(&scratch, "trap '' TERM HUP INT", line));
    scratch.wait_for_blocks("r", 1);
    signal(&child, "TERM");
    let output = child.wait_with_output().unwrap();
    assert_eq!(status(&output), Some(130), "{}", stderr(&output));
    assert_eq!(json(&output)["state"], "interrupted");
}

#[test]
fn a_hang_up_keeps_the_result_however_often_it_comes() {
    let scratch = Scratch::new("hang-up");
    let child = scratch.spawn("run wakeup -D 60 --no-warmup --json --out r");
    scratch.wait_for_blocks("r", 1);
    // From the kernel and from the shell.
    signal(&child, "HUP");
    signal(&child, "HUP");
    let output = child.wait_with_output().unwrap();
    assert_eq!(status(&output), Some(130), "{}", stderr(&output));
    assert_eq!(json(&output)["state"], "interrupted");
    assert!(scratch.path("r/report.html").exists());
}

/// A run on a terminal of its own that closes while it measures; how the run ended.
fn closed(scratch: &Scratch, shell: &str, duration: &str) -> serde_json::Value {
    let line = format!("run wakeup -D {duration} --no-warmup --out r");
    let inner = format!("{shell}; exec {} {line}", scratch.binary().display());
    let mut terminal = scratch.folder().command("script");
    terminal.args(["-q", "-e", "-f", "-c", &inner, "/dev/null"]);
    // Without a terminal of its own the size of the new one is 0 by 0, which programs allow for.
    let mut terminal =
        terminal.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    scratch.wait_for_blocks("r", 1);
    terminal.kill().unwrap();
    terminal.wait().unwrap();
    let report = scratch.path("r/report.html");
    assert!(
        until(Duration::from_secs(60), || report.exists()),
        "no report of {}",
        run_json(&scratch.path("r"))
    );
    assert!(
        until(Duration::from_secs(10), || scratch.living().is_empty()),
        "{:?}",
        scratch.living()
    );
    run_json(&scratch.path("r"))
}

#[test]
fn a_terminal_that_closes_ends_the_run_and_keeps_the_result() {
    need!(programs(&["script"]));
    let scratch = Scratch::new("closed");
    let run = closed(&scratch, ":", "60");
    assert_eq!(run["state"], "interrupted");
    assert!(run["cells"][0]["samples"].as_u64().unwrap() > 0);
}

#[test]
fn a_terminal_that_is_gone_does_not_end_a_run_that_ignores_hang_ups() {
    need!(programs(&["script"]));
    let scratch = Scratch::new("gone");
    let run = closed(&scratch, "trap '' HUP", "4");
    assert_eq!(run["state"], "complete");
    assert!(run["cells"][0]["scheduled"].as_u64().unwrap() >= 4_000);
}

#[test]
fn a_result_that_cannot_be_printed_is_kept_with_its_report() {
    let scratch = Scratch::new("full-stdout");
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = scratch.command("run sim -D 1 --out r").stdout(full()).output().unwrap();
    assert_eq!(status(&output), Some(2));
    let said = stderr(&output);
    assert!(said.contains("No space left") && said.contains("punctual show r"), "{said}");
    assert!(scratch.path("r/report.html").exists());
    // What is only told on stderr is not missed by anybody.
    let mut command = scratch.command("run sim -D 1 --out s");
    let output = command.stdout(Stdio::piped()).stderr(full()).output().unwrap();
    assert_eq!(status(&output), Some(0));
    assert!(scratch.path("s/report.html").exists());
}

/// Runs under a load with a folder, sends signals, and returns how the run ended.
fn ended_at_once(name: &str, signals: &[&str]) -> Output {
    let scratch = Scratch::new(name);
    fs::create_dir(scratch.path("scratch")).unwrap();
    let mut command = scratch.command("run wakeup -D 60 --no-warmup --load disk:size=4M --out r");
    let mut child = started({
        command.env("TMPDIR", scratch.path("scratch"));
        command
    });
    scratch.wait_for_blocks("r", 1);
    assert!(fs::read_dir(scratch.path("scratch")).unwrap().count() > 0, "the load has a folder");
    for name in signals {
        signal(&child, name);
    }
    wait_at_most(&mut child, Duration::from_secs(10), "punctual");
    assert_no_load(child.id(), Duration::from_secs(2), "ended at once");
    assert_eq!(fs::read_dir(scratch.path("scratch")).unwrap().count(), 0, "the folder goes");
    let output = child.wait_with_output().unwrap();
    assert!(!output.status.success());
    assert_eq!(
        stderr(&output).lines().last(),
        Some("punctual: ended at once; kept: r (punctual show r)")
    );
    let shown = json(&scratch.punctual("show r --json"));
    assert_eq!(shown["state"], "running", "cut short");
    output
}

#[test]
fn ctrl_backslash_ends_at_once_and_leaves_nothing() {
    ended_at_once("quit", &["QUIT"]);
}

#[test]
fn what_is_kept_is_said_at_a_second_ctrl_c() {
    // Both are there when it looks, however slow the machine is to send them.
    ended_at_once("second", &["STOP", "INT", "TERM", "CONT"]);
}

#[test]
fn ctrl_c_after_the_measurement_costs_no_result() {
    let scratch = Scratch::new("late");
    let child = scratch.spawn("run sim -D 60 --no-warmup --out r");
    let ended = || {
        let cell = fs::read_dir(scratch.path("r/cells")).ok()?.next()?.ok()?.path();
        cell.join("histograms").exists().then_some(())
    };
    assert!(until(Duration::from_secs(60), || ended().is_some()), "no end");
    signal_to(child.id(), "INT");
    let output = child.wait_with_output().unwrap();
    let said = stderr(&output);
    assert!(stdout(&output).contains("sim"), "{output:?}");
    let drawn = scratch.path("r/report.html").exists();
    match status(&output) {
        Some(130) => assert!(drawn || said.contains(NO_REPORT), "{said}"),
        // It came when everything was done.
        Some(0) => assert!(drawn && said.is_empty(), "{said}"),
        other => panic!("{other:?}: {said}"),
    }
}

/// A run whose report is being drawn, and the process that draws it, which is stopped.
fn drawing(scratch: &Scratch, name: &str) -> (Child, u32) {
    // A report that is finished before it is seen is no case of this: then another run is made.
    for attempt in 0..200 {
        let mut run =
            scratch.spawn(&format!("run sim -t 8 -D 60 --no-warmup --out {name}{attempt}"));
        let children = format!("/proc/{0}/task/{0}/children", run.id());
        let mut drawer = None;
        let seen = || {
            let there = fs::read_to_string(&children).unwrap_or_default();
            let draws =
                |pid: &u32| command_line(*pid).is_some_and(|line| line.contains(" report "));
            drawer = there.split_whitespace().flat_map(str::parse).find(draws);
            drawer.is_some() || run.try_wait().unwrap().is_some()
        };
        assert!(until(Duration::from_secs(60), seen), "no end");
        let Some(pid) = drawer else { continue };
        let stop = Command::new("kill").args(["-s", "STOP", &pid.to_string()]).output().unwrap();
        let state = |pid| stat(pid).map(|fields| fields[0].clone());
        let settled = || state(pid).is_none_or(|state| "TZX".contains(&state));
        assert!(until(Duration::from_secs(10), settled), "{stop:?}");
        if state(pid).as_deref() == Some("T") {
            return (run, pid);
        }
        run.wait().unwrap();
    }
    panic!("no report was seen while it was drawn");
}

#[test]
fn a_run_that_is_interrupted_while_its_report_is_drawn_does_not_end_with_0() {
    let scratch = Scratch::new("drawing");
    for (name, is_drawn) in [("INT", false), ("HUP", true)] {
        let (run, drawer) = drawing(&scratch, name);
        signal(&run, name);
        if is_drawn {
            signal_to(drawer, "CONT");
        }
        let output = run.wait_with_output().unwrap();
        let said = stderr(&output);
        assert_eq!(status(&output), Some(130), "{name}: {said}");
        assert_eq!(said.contains(NO_REPORT), !is_drawn, "{name}: {said}");
        assert_eq!(stdout(&output).contains("report.html"), is_drawn, "{name}: {said}");
    }
}

#[test]
fn a_limit_on_the_stack_is_raised_or_an_error_with_words() {
    let scratch = Scratch::new("stack");
    let line = "run sim -D 1 --no-report --out r";
    let raised = after(&scratch, "ulimit -S -s 64", line).output().unwrap();
    assert_eq!(status(&raised), Some(0), "{}", stderr(&raised));
    // Only root may raise a hard limit.
    let nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let mut through = if is_root { nobody.to_vec() } else { Vec::new() };
    through.extend(["sh", "-c", "ulimit -s 64; exec \"$0\" \"$@\""]);
    let refused = scratch.through(&through, &["--version"]).output().unwrap();
    assert_eq!(status(&refused), Some(2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("ulimit -s"), "{}", stderr(&refused));
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_with_words() {
    let scratch = Scratch::new("file-size");
    let refused = after(&scratch, "ulimit -f 100", "run sim -D 1 --out r").output().unwrap();
    assert_eq!(status(&refused), Some(2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("ulimit -f"), "{}", stderr(&refused));
    assert!(!scratch.path("r").exists(), "what was begun is taken away");

    scratch.punctual("run sim -D 1 --no-report --out r");
    fs::write(scratch.path("x.html"), "old").unwrap();
    let cut = after(&scratch, "ulimit -f 8", "report r -o x.html").output().unwrap();
    assert_eq!(status(&cut), Some(2), "{}", stderr(&cut));
    assert!(stderr(&cut).contains("cannot write x.html"), "{}", stderr(&cut));
    assert_eq!(fs::read(scratch.path("x.html")).unwrap(), b"old", "the old report stays");
    let mut names = scratch.folder().entries();
    names.sort();
    assert_eq!(names, ["r", "x.html"], "nothing half written is left");
}
