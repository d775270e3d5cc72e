//! The program that boards run, alone on a machine: it measures and judges nothing, and punctual
//! judges what it writes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use punctual_harness::{
    Ended, Folder, board, count, end_of, need, processes, registry, root, until, waited,
};
use serde_json::Value;

/// The host's program, whatever it was built with.
fn punctual() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_punctual"))
}

/// A copy of the program alone, as on a board, and nothing of the environment of who runs it.
struct Board(Folder);

impl Board {
    fn new(name: &str, program: &Path) -> Self {
        let folder = Folder::new(name);
        // Not by this process: a fork of another test would hold the file open for writing, and it
        // could not be executed.
        folder.run("cp", &[program.to_str().unwrap(), "punctual-board"]);
        Self(folder)
    }

    fn command(&self, line: &str) -> Command {
        let mut command = self.0.command(self.0.path("punctual-board"));
        command.env_clear().args(line.split_whitespace());
        command
    }

    fn run(&self, line: &str) -> Ended {
        end_of(self.command(line))
    }

    /// The same by the host's program.
    fn host(&self, line: &str) -> Ended {
        let mut command = self.0.command(punctual());
        command.args(line.split_whitespace());
        end_of(command)
    }

    fn record(&self, run: &str) -> Value {
        self.0.json(&format!("{run}/run.json"))
    }
}

macro_rules! on_board {
    ($name:literal) => {
        Board::new($name, &need!(board()))
    };
}

/// Simulated time repeats itself, so both programs find the same.
const LATE: &str = "run sim:stall=3ms,stall-every=5000 -D 2m --deadline 1ms";

#[test]
fn what_it_measures_is_judged_by_punctual_and_as_if_that_had_measured() {
    let board = on_board!("board-judged");
    let ended = board.run(&format!("{LATE} --out only/r")).with(1);
    let record = board.record("only/r");
    assert_eq!(record["tool"]["name"], "punctual-board");
    assert_eq!((&record["judged"], &record["verdict"]["outcome"]), (&false.into(), &"NONE".into()));
    assert_eq!(record["cells"][0]["verdict"]["because"], Value::Array(Vec::new()));
    let late = count(&record["cells"][0]["threads"][0]["verdict"], "exceedances");
    assert!(late > 20, "{late}");
    ended.says(&[&format!("{late} later than the deadline of 1ms")]);

    board.host(&format!("{LATE} --out own --no-report")).with(1);
    let of = |run: &str| board.host(&format!("show {run} --json")).with(1).json();
    let (judged, own) = (of("only/r"), of("own"));
    assert_eq!(own["verdict"]["outcome"], "FAIL");
    assert_eq!(judged["verdict"], own["verdict"]);
    assert_eq!(judged["cells"][0]["verdict"], own["cells"][0]["verdict"]);
    assert_eq!(judged["cells"][0]["conditions"], own["cells"][0]["conditions"]);
    assert_eq!(judged["judged"], true);
    board.host("show only/r").with(1).says(&["FAIL", "max 3.0"]);
    board.host("show only/r --deadline 5ms").with(0).says(&["PASS"]);
    board.host("list runs only").with(0).says(&["FAIL (SIMULATED)"]);
    board.host("report only/r -o page.html").with(0);
    assert!(fs::read_to_string(board.0.path("page.html")).unwrap().contains("FAIL"));
}

/// A deadline that nothing is later than, and none.
#[test]
fn its_exit_status_says_whether_anything_was_later() {
    let board = on_board!("board-status");
    let on_time = board.run("run sim -D 5s --deadline 1s --out r").with(0);
    on_time.says(&["0 later than the deadline of 1s", "5,000"]);
    let told = board.run("run sim -D 5s --out s").with(0);
    assert!(!told.stdout.contains("later"), "{told:?}");
    assert_eq!(board.run("run sim -D 5s --json --out j").with(0).json(), board.record("j"));
    // Planned for a later version.
    board.run("run respond-net -D 1s --out k").with(4).says(&["SKIPPED"]);
    for (line, says) in [
        ("measure", "there is no command \"measure\": run, load, cost"),
        ("run wakup", "wakeup"),
        ("run --duratoin 5", "--duratoin: there is no such option"),
        ("run wakeup -D", "-D needs a value"),
        ("run clock -i 100", "--interval: clock has no such parameter"),
        ("cost nothing", "unknown cost \"nothing\""),
        ("load", "load takes one load"),
        ("load earthquake", "earthquake"),
        ("list earthquake", "there is no probe, load or cost \"earthquake\""),
        ("run sim --out r", "r"),
    ] {
        let ended = board.run(line).with(2).says(&[says]);
        assert!(ended.stdout.is_empty(), "{line}: {ended:?}");
    }
    board.run("--help").with(0).says(&["punctual-board run [PROBE...]", "Exit status: 0 done"]);
    board.run("").with(0).says(&["measures how late this machine"]);
    board.run("--version").with(0).says(&["punctual-board "]);
}

/// Sentences of the verdict and of the report are in punctual, and not here.
#[test]
fn it_has_no_sentence_that_judges() {
    let board = need!(board());
    let [own, host] = [board, punctual().to_owned()].map(|path: PathBuf| fs::read(path).unwrap());
    for sentence in [
        " are too short: ",
        "by the means of stretches of the run",
        "later than the deadline: no result contains it",
        "it was not the same from its start to its end",
        "not a measurement: the guest run",
    ] {
        let is_in = |program: &[u8]| {
            program.windows(sentence.len()).any(|bytes| bytes == sentence.as_bytes())
        };
        assert!(!is_in(&own), "\"{sentence}\" is in punctual-board");
        assert!(is_in(&host), "punctual does not say \"{sentence}\" any more: take another");
    }
}

#[test]
fn it_has_every_probe_load_and_cost() {
    let board = on_board!("board-list");
    let all: Value = board.host("list --json").with(0).json();
    let listed = board.run("list").with(0).stdout;
    for kind in ["probes", "loads", "costs"] {
        let entries = all[kind].as_array().unwrap();
        assert!(entries.len() > 10, "{kind}");
        for entry in entries {
            let name = registry::name(entry);
            let line = format!("  {name:14}  {}\n", entry["summary"].as_str().unwrap());
            assert!(listed.contains(&line), "{line} is missing in {listed}");
            let told = board.run(&format!("list {name}")).with(0).stdout;
            for param in entry["parameters"].as_array().unwrap() {
                let param = registry::name(param);
                assert!(told.contains(&format!("\n  {param} ")), "{name}: {param}: {told}");
            }
        }
    }
}

#[test]
fn it_measures_under_a_load_and_what_it_costs() {
    need!(root());
    let board = on_board!("board-load");
    let ended = board.run("run wakeup -t 2 -D 2s --load hackbench:groups=1 --out r").with(0);
    ended.says(&["load hackbench: ", " messages/s", "CPUs"]);
    let record = board.record("r");
    assert_eq!(record["cells"][0]["threads"].as_array().unwrap().len(), 2);
    assert!(record["cells"][0]["load_work"][0]["counters"][0]["per_second"].as_f64() > Some(0.0));
    assert_eq!(record["tool"]["sha256"].as_str().unwrap().len(), 64);
    board.run("cost lat.syscall --out c").with(0).says(&["lat.syscall", " us ("]);
    board.run("load hackbench:groups=1 -D 1s").with(0).says(&["hackbench: ", " messages ("]);
    board.run("restore").with(0);
}

#[test]
fn an_end_by_a_signal_is_kept_and_told() {
    let board = on_board!("board-signal");
    let command = |run: &str| {
        let mut command = board.command("run wakeup:policy=other -D 1h --load syscalls --out");
        command.arg(run).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        command.spawn().unwrap()
    };
    let measures = |run: &str| {
        let blocks = || {
            let cells = fs::read_dir(board.0.path(&format!("{run}/cells"))).ok()?;
            let blocks = cells.flatten().next()?.path().join("blocks");
            fs::metadata(blocks).ok().filter(|file| file.len() > 200)
        };
        assert!(until(Duration::from_secs(60), || blocks().is_some()), "{run} records nothing");
    };
    let child = command("i");
    measures("i");
    processes::signal(&child, "INT");
    waited(child).with(130);
    board.host("show i").with(0).says(&["wakeup"]);
    // Killed: what was recorded is read back, no process is left.
    let mut child = command("k");
    measures("k");
    let pid = child.id();
    child.kill().unwrap();
    child.wait().unwrap();
    board.run("restore").with(0);
    processes::assert_no_load(pid, Duration::from_secs(30), "punctual-board was killed");
    board.host("show k --deadline 1h").says(&["wakeup"]);
    assert!(count(&board.host("show k --json").json()["cells"][0], "samples") > 500);
}

/// What a process has locked, bytes, and how much of that is pages of its program.
fn locked(pid: u32) -> Option<[u64; 2]> {
    let maps = fs::read_to_string(format!("/proc/{pid}/smaps")).ok()?;
    let program = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let program = program.to_str()?.to_owned();
    let (mut all, mut own, mut is_own) = (0, 0, false);
    for line in maps.lines() {
        if let Some(size) = line.strip_prefix("Locked:") {
            let size = size.trim().trim_end_matches(" kB").parse::<u64>().ok()? * 1024;
            all += size;
            own += if is_own { size } else { 0 };
        } else if line.split(' ').next().is_some_and(|range| range.contains('-')) {
            is_own = line.ends_with(&program);
        }
    }
    Some([all, own])
}

/// A minute of one thread on a board, whose memory may be small.
#[test]
fn locked_memory_on_a_board() {
    need!(root());
    let board = on_board!("board-locked");
    let mut child = board.command("run wakeup -D 1m -q --out r").spawn().unwrap();
    let mut most = [0, 0];
    while child.try_wait().unwrap().is_none() {
        let now = locked(child.id()).unwrap_or_default();
        most = if now[0] > most[0] { now } else { most };
        sleep(Duration::from_millis(50));
    }
    assert!(child.wait().unwrap().success());
    let state = count(&board.record("r")["facts"]["engine"], "state_bytes_per_thread");
    let [all, own] = most;
    println!("locked {all} bytes, {own} of them the program's; a thread's state {state}");
    let size = fs::metadata(board.0.path("punctual-board")).unwrap().len();
    assert!(own > size / 2 && own <= size + 5 * 4_096, "{own} bytes of a file of {size}");
    assert!(all - own > state, "{all} bytes cannot hold a thread's {state}");
    assert!(all - own <= 2_500_000, "{} bytes", all - own);
}
