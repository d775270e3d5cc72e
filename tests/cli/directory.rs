//! The run directory: in folders of others, on disks that fail, and when a run goes on in it.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use punctual_harness::processes::wait_at_most;
use punctual_harness::{
    Tmpfs, conditions, count, edit, end_of, need, programs, root, run_json, until,
};
use serde_json::{Value, json};

use crate::support::{STRANGER, Scratch, json as printed, signal, stderr, stdout};

/// Runs a script as the stranger.
#[track_caller]
fn stranger(scratch: &Scratch, script: &str) {
    let mut command = scratch.folder().command(STRANGER[0]);
    command.args(&STRANGER[1..]).args(["sh", "-ec", script]);
    end_of(command).with(0);
}

#[test]
fn root_overwrites_nothing_through_a_folder_of_another_user() {
    need!(root());
    need!(programs(&["setpriv"]));
    let scratch = Scratch::new("hostile");
    scratch.open_folder("shared");
    fs::set_permissions(scratch.path("shared"), fs::Permissions::from_mode(0o1777)).unwrap();
    let victim = scratch.path("victim");
    fs::write(&victim, "kept").unwrap();
    fs::set_permissions(&victim, fs::Permissions::from_mode(0o600)).unwrap();
    stranger(&scratch, "mkdir shared/punctual-runs; chmod 777 shared/punctual-runs");

    let mut command = scratch.command("run wakeup -D 2 --no-warmup");
    command.current_dir(scratch.path("shared")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let runs = scratch.path("shared/punctual-runs");
    let first = |folder: &Path| {
        Some(fs::read_dir(folder).ok()?.next()?.ok()?.file_name().into_string().unwrap())
    };
    // The folder of a cell is made after run.json.
    let begun = || {
        let name = first(&runs)?;
        let cell = first(&runs.join(&name).join("cells"))?;
        Some((name, cell))
    };
    assert!(until(Duration::from_secs(60), || begun().is_some()), "no cell");
    let (name, cell) = begun().unwrap();
    let target = victim.display();
    stranger(
        &scratch,
        &format!(
            "cd shared/punctual-runs; mv {name} stolen; mkdir -p '{name}/cells/{cell}'; cd {name}
             for file in .run.json.new run.json .report.html.new report.html 'cells/{cell}/histograms'
             do ln -s {target} \"$file\"; done"
        ),
    );
    let output = child.wait_with_output().unwrap();
    let said = stderr(&output);
    assert!(fs::read(&victim).unwrap() == b"kept", "the victim is overwritten: {said}");
    assert_eq!(victim.metadata().unwrap().mode() & 0o777, 0o600);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("punctual-runs belongs to user 12345"), "{said}");
    assert_eq!(run_json(&runs.join("stolen"))["state"], "complete", "it is where it was made");
    assert!(runs.join("stolen/cells").join(cell).join("histograms").exists());
}

#[test]
fn a_folder_of_ones_own_needs_no_warning() {
    let scratch = Scratch::new("own");
    let output = scratch.punctual("run sim -D 1 --out a/b/r");
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    scratch.open_folder("open");
    let output = scratch.punctual("run sim -D 1 --out open/r");
    let said = stderr(&output);
    assert!(said.contains("open may be written to by every user"), "{said}");
    assert!(said.contains("--out"), "{said}");
}

#[test]
fn the_name_of_a_board_leads_nowhere_else() {
    let scratch = Scratch::new("board-name");
    let output = scratch.punctual("run sim -D 1 --no-report --json --board-name ../../x");
    assert_eq!(printed(&output)["board"]["name"], "../../x");
    assert_eq!(scratch.folder().entries(), ["punctual-runs"]);
    let runs = fs::read_dir(scratch.path("punctual-runs")).unwrap();
    let names: Vec<_> = runs.map(|run| run.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.len() == 1 && names[0].contains("-..-..-x-"), "{names:?}");
    assert!(scratch.path("punctual-runs").join(&names[0]).join("run.json").exists());
}

#[test]
fn without_proc_no_empty_directory_is_left() {
    need!(root());
    need!(programs(&["unshare", "mount"]));
    let scratch = Scratch::new("no-proc");
    let hidden = ["unshare", "-m", "sh", "-ec", "mount -t tmpfs none /proc; exec \"$0\" \"$@\""];
    for _ in 0..2 {
        let ended = end_of(scratch.through(&hidden, &["run", "sim", "-D", "1", "--out", "r"]));
        ended.with(2).says(&["/proc"]);
        assert!(!scratch.path("r").exists(), "the next try with this name is refused");
    }
}

#[test]
fn an_error_of_the_disk_that_only_fdatasync_tells_is_told() {
    need!(programs(&["strace"]));
    let scratch = Scratch::new("eio");
    let fault = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync"];
    let fault = [&fault[..], &["-e", "inject=fdatasync:error=EIO:when=1"]].concat();
    let line = ["run", "wakeup", "-D", "1", "--no-warmup", "--json", "--no-report", "--out", "r"];
    let run = end_of(scratch.through(&fault, &line)).with(0).json();
    let cell = &run["cells"][0];
    assert!(conditions(cell).contains(&"blocks-incomplete"), "{cell}");
    let text = cell["conditions"].to_string();
    assert!(text.contains("blocks: Input/output error"), "{text}");
}

#[test]
fn a_run_that_needs_more_room_than_there_is_is_refused() {
    need!(root());
    need!(programs(&["mount"]));
    let scratch = Scratch::new("room");
    let disk = Tmpfs::mount(&scratch.path("small"), "2m");
    let mut child = scratch.spawn("run wakeup -t 4 -D 24h --out small/runs/r");
    wait_at_most(&mut child, Duration::from_secs(60), "a run without room");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    for part in ["small/runs/r would take at least about", "are free there", "--out"] {
        assert!(said.contains(part), "{said}");
    }
    assert!(!disk.path().join("runs").exists(), "nothing is made");
    // With room enough it says what it takes, and begins.
    let child = scratch.spawn("run wakeup -t 4 -D 24h --no-warmup --no-report --out r");
    scratch.wait_for_blocks("r", 1);
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    assert!(stderr(&output).contains("r will take at most about"), "{}", stderr(&output));
}

#[test]
fn require_rt_measures_nothing_without_rights() {
    need!(root());
    need!(programs(&["setpriv"]));
    let scratch = Scratch::new("require-rt");
    scratch.open_folder("runs");
    let line = "run wakeup lat.syscall sim -D 1 --no-warmup --no-report --json --require-rt \
                --deadline 10s --singly --at-most 1% --out runs/r";
    let words: Vec<&str> = line.split_whitespace().collect();
    // Without the option the same run is a PASS (0).
    let run = end_of(scratch.through(STRANGER, &words)).with(4).json();
    for (cell, state) in [(0, "skipped"), (1, "skipped"), (2, "complete")] {
        assert_eq!(run["cells"][cell]["state"], state, "{}", run["cells"][cell]["key"]);
    }
    let reason = run["cells"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("run as root") && reason.contains("--require-rt"), "{reason}");
    assert_eq!(run["verdict"]["outcome"], "SKIPPED");
    assert_eq!(run["facts"]["engine"]["require_rt"], true);
    let granted = scratch.punctual("run wakeup -D 1 --no-warmup --no-report --require-rt --out s");
    assert_eq!(granted.status.code(), Some(0), "{}", stderr(&granted));
}

#[test]
fn a_run_whose_second_cell_fails_is_no_pass() {
    let scratch = Scratch::new("second-fails");
    let line = "run wakeup sim -D 2 --no-warmup --no-report --deadline 10s --singly --at-most 1%";
    let child = scratch.spawn(&format!("{line} --out r"));
    scratch.wait_for_blocks("r", 1);
    // The folder of the second cell cannot be made any more.
    let dir = run_json(&scratch.path("r"))["cells"][1]["dir"].as_str().unwrap().to_owned();
    fs::create_dir(scratch.path("r/cells").join(dir)).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let run = run_json(&scratch.path("r"));
    assert_eq!(of_cells(&run, "state"), ["complete", "failed"]);
    let outcomes = of_cells(&run, "verdict").into_iter().map(|verdict| &verdict["outcome"]);
    assert_eq!(outcomes.collect::<Vec<_>>(), ["PASS", "INCONCLUSIVE"]);
    assert_eq!(
        (&run["state"], &run["verdict"]["outcome"]),
        (&json!("failed"), &json!("INCONCLUSIVE"))
    );
}

#[test]
fn a_run_beside_another_says_so() {
    let scratch = Scratch::new("beside");
    let mut other = scratch.spawn("run wakeup -D 60 --no-warmup --no-report --out other");
    scratch.wait_for_blocks("other", 1);
    let run = printed(&scratch.punctual("run wakeup -D 1 --no-warmup --no-report --json"));
    let text = run["conditions"].to_string();
    let numbers = text.split(|c: char| !c.is_ascii_digit());
    assert!(numbers.into_iter().any(|number| number == other.id().to_string()), "{text}");
    signal(&other, "INT");
    other.wait().unwrap();
}

/// A run of three cells that is interrupted in the second.
fn interrupted(scratch: &Scratch, more: &str) {
    let line = "run sim wakeup wakeup:interval=2ms -D 3 --no-warmup --no-report --keep-above 1h";
    let child = scratch.spawn(&format!("{line} --sync block {more} --out r"));
    let second = || {
        let mut cells = fs::read_dir(scratch.path("r/cells")).ok()?.flatten();
        let cell = cells.find(|cell| cell.file_name().to_string_lossy().starts_with("01-"))?;
        Some(fs::metadata(cell.path().join("blocks")).ok()?.len())
    };
    assert!(until(Duration::from_secs(60), || second().unwrap_or(0) > 0), "no second cell");
    signal(&child, "INT");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
}

fn of_cells<'r>(run: &'r Value, key: &str) -> Vec<&'r Value> {
    run["cells"].as_array().unwrap().iter().map(|cell| &cell[key]).collect()
}

#[test]
fn a_run_that_was_cut_short_is_continued() {
    let scratch = Scratch::new("continued");
    interrupted(&scratch, "");
    let before = run_json(&scratch.path("r"));
    assert_eq!(of_cells(&before, "state"), ["complete", "interrupted", "pending"]);

    let output = scratch.punctual("run --continue r --json");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let run = printed(&output);
    assert_eq!(run, run_json(&scratch.path("r")));
    assert_eq!((&run["state"], &run["run_id"]), (&json!("complete"), &before["run_id"]));
    assert_eq!(of_cells(&run, "state"), ["complete", "complete", "complete"]);
    assert_eq!(run["cells"][0], before["cells"][0], "what was finished stays as it is");
    assert!(count(&run["cells"][1], "samples") > count(&before["cells"][1], "samples"));
    assert_eq!(count(&run["cells"][1], "scheduled"), 3_000);
    assert_eq!(run["started"], before["started"]);
    assert_eq!(run["continued"][0]["kept"], 1);
    assert_eq!(run["facts"]["engine"]["sync"], "block");
    assert_eq!(run["facts"]["engine"]["threshold_ns"], 3_600_000_000_000_u64);
    // What the cut cell had measured is not hidden.
    let cut = before["cells"][1]["dir"].as_str().unwrap();
    assert_ne!(run["cells"][1]["dir"], cut);
    assert!(scratch.path("r/cells").join(cut).join("blocks").exists());
    let note = run["cells"][1]["conditions"].to_string();
    assert!(note.contains("measured-again") && note.contains(cut), "{note}");
    assert!(scratch.path("r/report.html").exists());
    assert_eq!(scratch.punctual("show r").status.code(), Some(0));

    let again = scratch.punctual("run --continue r");
    assert_eq!(again.status.code(), Some(2));
    assert!(stderr(&again).contains("nothing is left to measure"), "{}", stderr(&again));
}

#[test]
fn a_killed_run_is_continued_and_a_running_one_is_not() {
    let scratch = Scratch::new("continued-killed");
    let mut child = scratch.spawn("run wakeup -D 4 --no-warmup --no-report --out r");
    scratch.wait_for_blocks("r", 1);
    let early = scratch.punctual("run --continue r");
    assert_eq!(early.status.code(), Some(2));
    assert!(stderr(&early).contains("still measures"), "{}", stderr(&early));
    child.kill().unwrap();
    child.wait().unwrap();
    let run = printed(&scratch.punctual("run --continue r --json --no-report"));
    assert_eq!((&run["state"], &run["continued"][0]["kept"]), (&json!("complete"), &json!(0)));
    assert_eq!(count(&run["cells"][0], "scheduled"), 4_000);
    assert!(run["cells"][0]["conditions"].to_string().contains("measured-again"));
}

#[test]
fn a_deadline_that_was_missed_is_not_measured_again_until_it_is_met() {
    let scratch = Scratch::new("continued-fail");
    interrupted(&scratch, "--deadline 1ns");
    let before = run_json(&scratch.path("r"));
    let run = printed(&scratch.punctual("run --continue r --json --no-report"));
    assert_eq!(of_cells(&run, "state"), ["complete", "interrupted", "complete"]);
    assert_eq!(run["cells"][1], before["cells"][1]);
    assert_eq!(
        (&run["continued"][0]["kept"], &run["verdict"]["outcome"]),
        (&json!(2), &json!("FAIL"))
    );
}

#[test]
fn a_run_of_another_machine_kernel_or_plan_is_not_continued() {
    let scratch = Scratch::new("continued-not");
    interrupted(&scratch, "");
    type Change = fn(&mut Value);
    let changes: [(&str, Change); 5] = [
        ("the machine was", |run| run["board"]["cpus"] = json!(4_711)),
        ("the kernel was", |run| run["kernel"]["release"] = json!("6.99.0-test")),
        ("the plan was", |run| run["plan_hash"] = json!("0")),
        ("the version of punctual was", |run| run["tool"]["version"] = json!("0.0.1")),
        ("the scheduling was", |run| {
            run["privileged"] = json!(!run["privileged"].as_bool().unwrap());
        }),
    ];
    let path = scratch.path("r/run.json");
    let recorded = fs::read(&path).unwrap();
    for (what, change) in changes {
        edit(&scratch.path("r"), change);
        let changed = fs::read(&path).unwrap();
        let output = scratch.punctual("run --continue r");
        assert_eq!(output.status.code(), Some(2), "{what}");
        assert!(stderr(&output).contains(what), "{}", stderr(&output));
        assert_eq!(fs::read(&path).unwrap(), changed, "it is left as it was");
        fs::write(&path, &recorded).unwrap();
    }
    // Its options are those that it has already.
    for more in
        ["wakeup", "-D 5", "--deadline 1ms", "-p 80", "-S", "--break 5", "--out s", "--plan lab"]
    {
        let output = scratch.punctual(&format!("run --continue r {more}"));
        assert_eq!(output.status.code(), Some(2), "{more}");
        assert!(stderr(&output).contains("cannot be used with"), "{}", stderr(&output));
    }
    // Nor does it follow a link that was put into it.
    fs::rename(scratch.path("r/cells"), scratch.path("cells")).unwrap();
    symlink(scratch.path("cells"), scratch.path("r/cells")).unwrap();
    let output = scratch.punctual("run --continue r");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

#[test]
fn a_run_is_listed_by_the_time_that_it_was_measured() {
    let scratch = Scratch::new("listed-short");
    let child = scratch.spawn("run wakeup sim -D 3600 --no-warmup --no-report --out runs/cut");
    scratch.wait_for_blocks("runs/cut", 1);
    signal(&child, "INT");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
    scratch.punctual("run sim -l 5000 --no-report --out runs/samples");
    let runs = &printed(&scratch.punctual("list runs runs --json"))["runs"];
    let ns = |run: usize, key: &str| runs[run][key].as_u64().unwrap();
    assert_eq!(ns(0, "duration_ns"), 7_200_000_000_000);
    let cut = ns(0, "measured_ns");
    assert!((1..600_000_000_000).contains(&cut), "neither an hour nor the cell not begun: {cut}");
    assert_eq!(ns(1, "measured_ns"), 5_000_000_000);
    let text = stdout(&scratch.punctual("list runs runs"));
    assert!(!text.contains("120 min") && !text.contains(" h "), "{text}");
}

#[test]
fn runs_are_listed_with_date_and_duration_wherever_they_are() {
    let scratch = Scratch::new("listed");
    for out in ["punctual-runs/here", "elsewhere/one", "elsewhere/set/two"] {
        let line = format!("run sim -D 90 --no-report --out {out}");
        assert_eq!(scratch.punctual(&line).status.code(), Some(0), "{out}");
    }
    let usual = stdout(&scratch.punctual("list runs"));
    let lines: Vec<_> = usual.lines().collect();
    assert_eq!((lines[0], lines[2]), ("runs in ./punctual-runs", "  here"), "{usual}");
    let fields: Vec<_> = lines[3].split_whitespace().collect();
    assert_eq!((fields[0].len(), fields[1].len(), &fields[2..4]), (10, 5, &["90", "s"][..]));
    assert!(lines[3].contains("MEASURED (SIMULATED)"), "{usual}");
    assert!(lines[4].contains("punctual list runs DIR"), "{usual}");

    let names = |line: &str| -> Vec<String> {
        let list = printed(&scratch.punctual(line));
        let runs = list["runs"].as_array().unwrap().iter();
        runs.map(|run| run["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("list runs --json"), ["here"]);
    let all = ["elsewhere/one", "elsewhere/set/two"];
    assert_eq!(names("list runs elsewhere --json"), all);
    assert_eq!(names("list runs elsewhere/set elsewhere/one --json"), [all[1], all[0]]);
    let list = printed(&scratch.punctual("list runs elsewhere/one --json"));
    assert_eq!(list["runs"][0]["duration_ns"], 90_000_000_000_u64);
    assert_eq!(list["runs"][0]["measured_ns"], 90_000_000_000_u64);
    assert_eq!(list["runs"][0]["outcome"], "NONE", "the word of run.json");
    assert!(list["runs"][0]["started_s"].as_u64().unwrap() > 1_700_000_000);
    // What is listed can be shown.
    assert_eq!(scratch.punctual(&format!("show {}", all[1])).status.code(), Some(0));
    for (line, said) in [
        ("list runs nowhere", "nowhere: there is no such folder"),
        ("list loads elsewhere", "elsewhere: only runs are listed by folder, not loads"),
    ] {
        let output = scratch.punctual(line);
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(stderr(&output).contains(said), "{line}: {}", stderr(&output));
    }
}
