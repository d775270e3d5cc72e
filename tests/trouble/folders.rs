//! Where a run is written to, and who reads what it prints.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use punctual_harness::{
    Place, Tmpfs, Undo, cell_file, conditions, end_of, need, programs, root, run_json, until,
};

const NOBODY: &[&str] =
    &["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all"];

#[test]
fn a_run_is_never_overwritten() {
    let place = Place::new();
    place.run("run sim -D 1 --out r --no-report").with(0);
    let before = fs::read(place.path.join("r/run.json")).unwrap();
    place.run("run sim -D 1 --out r").with(2).says(&["r: File exists", "--out"]);
    assert_eq!(fs::read(place.path.join("r/run.json")).unwrap(), before);
    fs::write(place.path.join("file"), "").unwrap();
    place.run("run sim -D 1 --out file/r").with(2).says(&["file/r: not a directory", "--out"]);
}

#[test]
fn a_folder_that_cannot_be_written_is_refused_before_the_start() {
    need!(root());
    need!(programs(&["setpriv"]));
    let place = Place::new();
    let out = place.at("r");
    let ended = end_of(place.through(NOBODY, &["run", "sim", "-D", "1", "--out", &out]));
    ended.with(2).says(&[&out, "Permission denied", "--out"]);
    // A report that cannot be written does not cost the run its status.
    place.run("run sim -D 1 --no-report --out s").with(0);
    fs::set_permissions(place.path.join("s"), fs::Permissions::from_mode(0o755)).unwrap();
    let line = ["report", &place.at("s"), "-o", &place.at("s.html")];
    end_of(place.through(NOBODY, &line)).with(2).says(&["s.html", "Permission denied"]);
}

#[test]
fn a_disk_that_fills_up_costs_the_timeline_only() {
    need!(root());
    need!(programs(&["mount"]));
    let place = Place::new();
    let on = place.path.join("small");
    let disk = Tmpfs::mount(&on, "1m");
    let run = on.join("r");
    // As many threads as fill more than one page of blocks a second.
    let line = [
        "run",
        "wakeup",
        "-t",
        "40",
        "-i",
        "10ms",
        "-D",
        "6",
        "--no-warmup",
        "--deadline",
        "1h",
        "--json",
        "--out",
    ];
    let mut command = place.command(&[&line[..], &[run.to_str().unwrap()]].concat());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    assert!(until(Duration::from_secs(10), || run.join("run.json").exists()), "no run.json");
    thread::sleep(Duration::from_secs(2));
    disk.fill();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "24,000 of 29,956 releases without a miss: {said}");

    let recorded = run_json(&run);
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(recorded, printed, "what is on disk is what was measured");
    let cell = &recorded["cells"][0];
    assert_eq!((&recorded["state"], &cell["state"]), (&"complete".into(), &"complete".into()));
    let labels = conditions(cell);
    assert!(labels.contains(&"blocks-incomplete"), "{labels:?}");
    assert!(!labels.contains(&"histograms-not-written"), "{labels:?}");
    assert_eq!(cell["scheduled"], 24_000, "every release of 40 threads in 6 s at 100 a second");
    assert!(cell_file(&run, "histograms").metadata().unwrap().len() > 0);
    let shown = place.words(&["show", run.to_str().unwrap(), "--json"]).with(3);
    assert_eq!(shown.json()["cells"][0]["max_ns"], cell["max_ns"]);
    place.words(&["show", run.to_str().unwrap()]).with(3).says(&["the timeline on disk ends"]);
}

#[test]
fn a_disk_that_is_full_from_the_start_is_refused() {
    need!(root());
    need!(programs(&["mount"]));
    let place = Place::new();
    let on = place.path.join("full");
    let disk = Tmpfs::mount(&on, "64k");
    disk.fill();
    let out = on.join("r");
    let ended = place.words(&["run", "sim", "-D", "1", "--out", out.to_str().unwrap()]);
    ended.with(2).says(&["full/r", "No space left on device", "free some space"]);
    assert!(!out.exists(), "what was begun is taken away");
}

#[test]
fn a_reader_that_goes_away_changes_no_status() {
    let place = Place::new();
    for (line, status) in [
        (&["list", "--json"][..], 0),
        (&["run", "sim", "-q", "-D", "1", "--deadline", "1ms", "--json", "--no-report"], 3),
        (&["run", "--help"], 0),
    ] {
        let mut child =
            place.command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        let ended = child.wait().unwrap();
        assert_eq!((ended.code(), said.as_str()), (Some(status), ""), "{line:?}");
    }
    // Nor does a stderr that nobody reads.
    let mut child = place.command(&["run", "nosuch"]).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(2));
}

/// As a shell does it, where the reader lives long enough for one line.
#[test]
fn head_takes_the_first_line() {
    let place = Place::new();
    let status = place.path.join("status");
    let _gone = Undo(|| drop(fs::remove_file(&status)));
    let script = "{ \"$0\" list --json; echo $? > status; } | head -n 1";
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).arg(place.path.join("punctual")).current_dir(&place.path);
    let ended = end_of(shell).with(0);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("{\n", ""));
    assert_eq!(fs::read_to_string(&status).unwrap(), "0\n");
}
