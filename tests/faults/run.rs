//! One run with a fault: how it ended, what it said, what it left.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use punctual_harness::processes::{described, marked};
use punctual_harness::{Folder, MARK, until};
use serde_json::Value;

use crate::cases::{Case, Scenario};

/// Releases of a run: one a millisecond.
pub const RELEASES: u64 = 300;
/// A run takes less than a second where nothing is in its way, and strace and many neighbours
/// are.
pub const LIMIT: Duration = Duration::from_secs(60);
/// How long a process of a load may outlive punctual.
pub const SURVIVAL: Duration = Duration::from_secs(2);

/// What came of a run.
#[derive(Debug)]
pub struct Ran {
    /// None if it had to be ended.
    pub status: Option<ExitStatus>,
    pub stdout: String,
    pub stderr: String,
    /// How long it took, reading back excluded.
    pub took: Duration,
    /// Whether the fault was met.
    pub injected: bool,
    /// How long the last of its processes was there after it.
    pub survival: Duration,
    /// Command lines of what was there after [`SURVIVAL`].
    pub left: Vec<String>,
    /// `run.json`; none if there is none.
    pub record: Option<Value>,
    /// Exit statuses of `show` and `report` on what was recorded.
    pub read_back: Option<(Option<i32>, Option<i32>)>,
    /// Whether `report.html` is there and whole.
    pub page: bool,
    /// Names of the files of the cells.
    pub files: Vec<String>,
    /// What `restore` could not undo.
    pub not_restored: Vec<String>,
}

fn arguments(scenario: Scenario) -> Vec<String> {
    let probe = format!("wakeup:timer={}", scenario.timer);
    ["run", &probe, "-i", "1000", "-D", "300ms", "--no-warmup", "--out", "r", "-q", "--load"]
        .into_iter()
        .map(str::to_owned)
        .chain([scenario.load.to_owned()])
        .collect()
}

fn start(folder: &Folder, binary: &Path, scenario: Scenario, strace: &[&str]) -> Child {
    let scratch = folder.path("scratch");
    fs::create_dir_all(&scratch).unwrap();
    let follow: &[&str] = if scenario.everywhere { &["-f", "--seccomp-bpf"] } else { &[] };
    let output = |name: &str| fs::File::create(folder.path(name)).unwrap();
    let mut command = folder.command("strace");
    command
        .args(["-qq", "-e", "signal=none", "-o", "trace"])
        .args(follow)
        .args(strace)
        .arg("--")
        .arg(binary)
        .args(arguments(scenario))
        .env("TMPDIR", &scratch)
        .stdin(Stdio::null())
        .stdout(output("stdout"))
        .stderr(output("stderr"))
        // What a terminal's signals and the end of a hung run are sent to.
        .process_group(0);
    command.spawn().unwrap_or_else(|error| panic!("strace: {error}"))
}

fn end(child: &mut Child) -> Option<ExitStatus> {
    let begin = Instant::now();
    while begin.elapsed() < LIMIT {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    None
}

/// Processes with this folder's mark.
fn living(folder: &Folder) -> Vec<u32> {
    let mark = format!("{MARK}={}", folder.root().display());
    marked(|pair| pair == mark.as_bytes())
}

fn outlived(folder: &Folder) -> (Duration, Vec<String>) {
    let begin = Instant::now();
    let mut last = Duration::ZERO;
    while !living(folder).is_empty() && begin.elapsed() < SURVIVAL {
        last = begin.elapsed();
        std::thread::sleep(Duration::from_millis(10));
    }
    (last, living(folder).into_iter().filter_map(described).collect())
}

fn kill_all(folder: &Folder) {
    for pid in living(folder) {
        let _ = std::process::Command::new("kill").args(["-KILL", &pid.to_string()]).status();
    }
}

/// The calls that a scenario makes.
pub fn trace(binary: &Path, scenario: Scenario) -> String {
    let folder = Folder::new("trace");
    let mut child = start(&folder, binary, scenario, &[]);
    let status = end(&mut child).unwrap_or_else(|| panic!("{scenario}: no end"));
    let said = fs::read_to_string(folder.path("stderr")).unwrap();
    assert!(status.success(), "{scenario}: {status}: {said}");
    fs::read_to_string(folder.path("trace")).unwrap()
}

/// A run that meets the fault, and what reads it back.
pub fn run(binary: &Path, case: &Case) -> Ran {
    let folder = Folder::new("fault");
    let traced = format!("trace={}", case.call);
    let strace = ["-e", &traced, "-e", &case.injection()];
    let begin = Instant::now();
    let mut child = start(&folder, binary, case.scenario, &strace);
    let status = end(&mut child);
    let took = begin.elapsed();
    let (survival, left) = if status.is_some() { outlived(&folder) } else { Default::default() };
    kill_all(&folder);
    let _ = child.wait();

    let record = fs::read(folder.path("r/run.json")).ok();
    let record = record.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let page = fs::read_to_string(folder.path("r/report.html"));
    let trace = fs::read_to_string(folder.path("trace")).unwrap_or_default();
    let read_back = record.as_ref().map(|_: &Value| {
        let code = |args: &[&str]| folder.try_run(binary, args).status.code();
        (code(&["show", "r"]), code(&["report", "r", "-o", "again.html"]))
    });
    let restored = folder
        .command(binary)
        .arg("restore")
        .env("TMPDIR", folder.path("scratch"))
        .output()
        .unwrap();
    // The `restore` of another case may be at work on it.
    until(Duration::from_secs(10), || scratch(&folder).is_empty());
    let mut not_restored = scratch(&folder);
    if !restored.status.success() {
        not_restored.push(String::from_utf8_lossy(&restored.stderr).into_owned());
    }
    Ran {
        status,
        stdout: fs::read_to_string(folder.path("stdout")).unwrap_or_default(),
        stderr: fs::read_to_string(folder.path("stderr")).unwrap_or_default(),
        took,
        injected: trace.contains("(INJECTED)"),
        survival,
        left,
        page: page.is_ok_and(|text| text.trim_end().ends_with("</html>")),
        files: cell_files(&folder.path("r/cells")),
        record,
        read_back,
        not_restored,
    }
}

/// What is in the folder for scratch folders.
fn scratch(folder: &Folder) -> Vec<String> {
    let entries = fs::read_dir(folder.path("scratch")).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

fn cell_files(cells: &Path) -> Vec<String> {
    let entries = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
    let files = entries(cells).flat_map(|cell| entries(&cell.path()));
    let kept = files.filter(|file| file.metadata().is_ok_and(|file| file.len() > 0));
    kept.map(|file| file.file_name().to_string_lossy().into_owned()).collect()
}
