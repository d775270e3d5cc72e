//! Runs that are killed, stopped and interrupted: what they leave, and what reads back.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use punctual_harness::processes::{
    age_of_probe, assert_no_load, load_processes, parent_of, signal, wait_at_most, wait_for_probe,
    waited_for_cpu,
};
use punctual_harness::{
    Folder, Place, Tally, count, keep, need, refused, registry, release, root, text, until,
};
use serde_json::Value;

const INTERVAL_NS: u64 = 1_000_000;
const SECOND_NS: u64 = 1_000_000_000;
const WARMUP: Duration = Duration::from_millis(200);

/// From the birth of the probe's thread until its releases begin and, at the other end,
/// from the end of a second until the collector has written its block; not counting how long
/// the collector was ready and had no CPU, as `/proc/PID/schedstat` tells.
const DELAYS: Duration = Duration::from_millis(600);

/// Releases that the first sample of an unfinished second may have missed in the one before.
const MISSED_BY_THE_NEXT: u64 = 500;

/// How long a process of a load may outlive punctual.
const SURVIVAL: Duration = Duration::from_secs(2);

/// Grandchildren in sessions of their own, which neither a process group nor the death
/// of their parent ends.
const SETSID: &str = "cmd:setsid sleep 1000 & setsid sh -c 'while :; do :; done' & sleep 0.5";

/// A load that is killed while it works, while it changes and while nothing runs.
const CHANGES: &str = "hackbench:groups=1 for 2s then copy+untar for 2s then none for 2s";

/// Loads of runs that are killed: every one that this machine can run, and one whose
/// processes escape. Those with a folder leave it for `punctual restore`.
fn loads() -> Vec<String> {
    let entries = registry::entries(&Place::of_build(), "loads");
    let can_run = entries.iter().filter(|load| !registry::unmet(load)).map(registry::name);
    let called = can_run.map(|name| match name {
        "cmd" => SETSID.to_owned(),
        "disk" => "hackbench+disk:size=4M".to_owned(),
        "console" => registry::load("console"),
        name => name.to_owned(),
    });
    called.chain([CHANGES.to_owned()]).collect()
}

/// Kills of `make test`; `make faults` sets `KILLS`.
const SAMPLE: usize = 30;

/// What contains the processes of loads, and what punctual is started through so that nothing
/// stronger does: a name, a program with its words, what a shell does first.
type Containment = (&'static str, &'static [&'static str], &'static str);

const CONTAINMENTS: [Containment; 4] = [
    ("pid-namespace", &[], ""),
    ("user-namespace", &["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-all"], ""),
    (
        "cgroup",
        &["unshare", "--user", "--map-root-user"],
        "echo 0 > /proc/sys/user/max_pid_namespaces &&",
    ),
    (
        "subreaper",
        &["unshare", "--user", "--map-root-user", "--mount"],
        "echo 0 > /proc/sys/user/max_pid_namespaces && mount -t tmpfs none /sys/fs/cgroup &&",
    ),
];

/// The containments that can be had here, and whether each contains indeed.
fn containments(binary: &Path) -> Vec<Containment> {
    let there = |(name, through, script): &Containment| {
        let folder = Folder::new("contained");
        let line = "run wakeup -D 100ms --no-warmup --no-report --json --out r --load hackbench:1";
        let words: Vec<&str> = line.split(' ').collect();
        let ran = started_through(&folder, binary, through, script).args(words).output().unwrap();
        let run: Value = serde_json::from_slice(&ran.stdout).unwrap_or_default();
        let found = &run["cells"][0]["load_work"][0]["containment"];
        if found != name {
            refused(&format!("no {name} to be had: {found}, {}", text(&ran.stderr).trim()));
        }
        found == name
    };
    CONTAINMENTS.into_iter().filter(there).collect()
}

/// The binary, which has the number of the process that is started.
fn started_through(folder: &Folder, binary: &Path, through: &[&str], script: &str) -> Command {
    let shell = ["sh", "-c", &format!("{script} exec \"$0\" \"$@\"")].map(str::to_owned);
    let mut words = through.iter().map(|&word| word.to_owned()).chain(shell);
    let mut command = folder.command(words.next().unwrap());
    command.args(words).arg(binary);
    command
}

/// Who is killed with punctual.
#[derive(Debug, Clone, Copy)]
enum Whom {
    Punctual,
    Supervisors,
    Everything,
}

const WHOM: [Whom; 3] = [Whom::Punctual, Whom::Supervisors, Whom::Everything];

/// A run under a load, in a folder of a test.
struct Victim<'f> {
    folder: &'f Folder,
    binary: PathBuf,
    child: Child,
}

impl<'f> Victim<'f> {
    fn start(folder: &'f Folder, binary: &Path, load: &str, duration: &str, more: &[&str]) -> Self {
        Self::contained(folder, binary, CONTAINMENTS[0], load, duration, more)
    }

    fn contained(
        folder: &'f Folder,
        binary: &Path,
        (_, through, script): Containment,
        load: &str,
        duration: &str,
        more: &[&str],
    ) -> Self {
        fs::create_dir(folder.path("scratch")).unwrap();
        let warmup = format!("{}ms", WARMUP.as_millis());
        let line =
            ["run", "wakeup", "-i", "1000", "-D", duration, "--warmup", &warmup, "--out", "r"];
        let output = |name: &str| fs::File::create(folder.path(name)).unwrap();
        let child = started_through(folder, binary, through, script)
            .args([&line, more, &["--load", load]].concat())
            .env("TMPDIR", folder.path("scratch"))
            .stdin(Stdio::null())
            .stdout(output("stdout"))
            .stderr(output("stderr"))
            .spawn()
            .unwrap();
        Self { folder, binary: binary.to_owned(), child }
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL to punctual and to others at the same moment. Returns how long that took: to find
    /// all processes takes a while on a busy machine.
    fn kill_with(&mut self, whom: Whom) -> Duration {
        let begin = Instant::now();
        let own = self.pid();
        let others = match whom {
            Whom::Punctual => Vec::new(),
            Whom::Supervisors => {
                let mut all = load_processes(own);
                all.retain(|&pid| parent_of(pid) == Some(own));
                all
            }
            Whom::Everything => load_processes(own),
        };
        let pids: Vec<String> = others.iter().map(u32::to_string).collect();
        // Some have ended by now, and kill says so.
        let _ = Command::new("kill").arg("-KILL").arg(own.to_string()).args(pids).output();
        self.child.wait().unwrap();
        begin.elapsed()
    }

    fn end(&mut self, limit: Duration) -> ExitStatus {
        wait_at_most(&mut self.child, limit, "punctual after a signal")
    }

    /// Journals of settings and folders that this process has left.
    fn journals(&self) -> Vec<PathBuf> {
        let own = format!("{}-", self.pid());
        let folders = ["/run/punctual", "/tmp/punctual-0"].into_iter().map(fs::read_dir);
        let entries = folders.flatten().flatten().flatten();
        entries
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(&own))
            .map(|entry| entry.path())
            .collect()
    }

    /// Folders of loads.
    fn scratch(&self) -> usize {
        fs::read_dir(self.folder.path("scratch")).unwrap().count()
    }

    /// Undoes what the killed process has left; returns whether there was anything.
    fn assert_restored(&self, what: &str) -> bool {
        let left = self.scratch() > 0 || !self.journals().is_empty();
        self.folder.run(&self.binary, &["restore"]);
        // Another test's `restore` may be at work on it.
        until(SURVIVAL, || self.journals().is_empty() && self.scratch() == 0);
        assert_eq!(self.journals(), Vec::<PathBuf>::new(), "{what}");
        assert_eq!(self.scratch(), 0, "{what}");
        left
    }
}

impl Drop for Victim<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Numbers as random as the test needs (splitmix64, Steele, Lea and Flood 2014).
struct Random(u64);

impl Random {
    /// From `PUNCTUAL_SEED`, to repeat a test, else from the time.
    fn new() -> Self {
        let named = std::env::var("PUNCTUAL_SEED").ok().map(|seed| seed.parse().unwrap());
        let time = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos().into();
        let seed = named.unwrap_or_else(time);
        println!("PUNCTUAL_SEED={seed}");
        Self(seed)
    }

    fn up_to(&mut self, most: Duration) -> Duration {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        most.mul_f64(f64::from(u32::try_from(mixed >> 32).unwrap()) / f64::from(u32::MAX))
    }
}

/// What a kill met.
#[derive(Debug, Default)]
struct Met {
    before_the_run_was_recorded: u64,
    before_the_first_block: u64,
    with_blocks: u64,
    seconds_read_back: u64,
    restored: u64,
}

impl Met {
    const COLUMNS: [&str; 6] = ["kills", "no run", "no block", "blocks", "seconds", "restored"];

    /// What the columns mean.
    const MEANING: &str = "\
no run    killed before run.json was there: show says so, exit 2
no block  killed before the first second was over: the run reads back without results
blocks    reads back with every second that was over, and all of their releases
seconds   how many those were
restored  left a folder or a journal, and `punctual restore` removed it";

    fn numbers(&self) -> [u64; 6] {
        let Self { before_the_run_was_recorded, before_the_first_block, .. } = *self;
        let Self { with_blocks, seconds_read_back, restored, .. } = *self;
        let [none, no_block] = [before_the_run_was_recorded, before_the_first_block];
        [1, none, no_block, with_blocks, seconds_read_back, restored]
    }
}

fn each_release_is_counted_once(cell: &Value) {
    assert_eq!(count(cell, "scheduled"), count(cell, "samples") + count(cell, "missed"), "{cell}");
    let corrected = count(&cell["corrected"], "samples");
    assert_eq!(corrected, count(cell, "scheduled"), "{cell}");
}

/// What is known of a run when it is killed.
struct Last {
    /// Age of the probe at the last look.
    age: Option<Duration>,
    /// How long its collector had waited for a CPU by then.
    waited: Duration,
    /// From the last look until it had ended.
    kill: Duration,
}

/// A killed run reads back, with all seconds that were over.
fn assert_reads_back(victim: &Victim<'_>, last: &Last, met: &mut Met, what: &str) {
    let show = || victim.folder.try_run(&victim.binary, &["show", "r", "--json"]);
    let mut shown = show();
    // What was killed between its fork and its exec has the run's files open until it has ended.
    let begin = Instant::now();
    while text(&shown.stderr).contains("still measures") && begin.elapsed() < SURVIVAL {
        shown = show();
    }
    let said = text(&shown.stderr);
    if !victim.folder.path("r/run.json").exists() {
        assert_eq!(shown.status.code(), Some(2), "{what}: {said}");
        assert!(said.starts_with("punctual: r: ") && said.contains(" run"), "{what}: {said:?}");
        assert_eq!(last.age, None, "{what}: measured before there was a run.json");
        met.before_the_run_was_recorded += 1;
        return;
    }
    assert_eq!(shown.status.code(), Some(0), "{what}: {said}");
    let run: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(run["state"], "running", "{what}: a run that is over and was not ended");
    let table = victim.folder.run(&victim.binary, &["show", "r"]);
    assert!(text(&table.stdout).contains("cut short"), "{what}: {}", text(&table.stdout));

    let cell = &run["cells"][0];
    let age = last.age.unwrap_or_default();
    let over = age.saturating_sub(WARMUP + DELAYS + last.waited).as_secs();
    let began = (age + last.kill).as_secs();
    let blocks = cell["state"] == "recovered";
    let seconds = if blocks { count(cell, "duration_ns") / SECOND_NS } else { 0 };
    let waited = last.waited;
    assert!(seconds >= over, "{what}: {seconds} of {over} s, {waited:?} without a CPU: {cell}");
    assert!(seconds <= began, "{what}: {seconds} s of {began} s");
    if !blocks {
        met.before_the_first_block += 1;
        return;
    }
    each_release_is_counted_once(cell);
    if let Some(phases) = cell["phases"].as_array() {
        let each = phases.iter().chain([&cell["changes"]]);
        let samples: u64 = each.map(|phase| count(phase, "samples")).sum();
        assert_eq!(samples, count(cell, "samples"), "{what}: {cell}");
    }
    // A block is closed by the first sample after it; what this one missed is in its own block.
    let late = cell["max_ns"].as_i64().unwrap().unsigned_abs() / INTERVAL_NS + MISSED_BY_THE_NEXT;
    let scheduled = count(cell, "scheduled");
    let expected = seconds * SECOND_NS / INTERVAL_NS;
    assert!(scheduled.abs_diff(expected) <= late, "{what}: {scheduled} releases in {seconds} s");
    met.with_blocks += 1;
    met.seconds_read_back += seconds;
}

#[test]
fn killed_at_random_moments() {
    let kills = std::env::var("KILLS").map_or(SAMPLE, |number| number.parse().expect("KILLS=N"));
    let binary = need!(release());
    need!(root());
    let mut random = Random::new();
    let seed = random.0;
    let loads = loads();
    assert!((5..=kills).contains(&loads.len()), "each is killed: {loads:?}");
    let containments = containments(&binary);
    let begin = Instant::now();
    let (mut met, mut longest) = (Tally::new("load", Met::COLUMNS), Duration::ZERO);
    let mut contained = Tally::new("contained by", Met::COLUMNS);
    for number in 0..kills {
        let folder = Folder::new("killed");
        let load = &loads[number % loads.len()];
        // Every fifth one dies while it starts; another load in every round.
        let most = if (number + number / loads.len()).is_multiple_of(5) { 300 } else { 6_000 };
        let moment = random.up_to(Duration::from_millis(most));
        let whom = WHOM[number / 2 % WHOM.len()];
        // Another one in every round too. Without a namespace processes of a command survive if
        // all that could end them are killed with punctual.
        // Raw sockets are for the machine's own root, and the kernel's log for its processes.
        let able = |(name, through, _): &&Containment| match load.split(':').next() {
            Some("flood") => through.first() != Some(&"unshare"),
            Some("console") => *name == "pid-namespace",
            _ => true,
        };
        let able: Vec<_> = containments.iter().filter(able).collect();
        let containment = *able[(number + number / loads.len()) % able.len()];
        let by_processes = !containment.0.ends_with("namespace");
        let whom = if by_processes { Whom::Punctual } else { whom };
        let name = containment.0;
        let what = format!("kill {number} of {whom:?} after {moment:?} under {load}, {name}");
        let options = ["--no-report", "-q"];
        let mut victim = Victim::contained(&folder, &binary, containment, load, "1h", &options);
        std::thread::sleep(moment);
        let age = age_of_probe(victim.pid());
        let waited = waited_for_cpu(victim.pid());
        let kill = victim.kill_with(whom);
        let last = Last { age, waited, kill };
        longest = longest.max(assert_no_load(victim.pid(), SURVIVAL, &what));
        let mut one = Met::default();
        assert_reads_back(&victim, &last, &mut one, &what);
        one.restored = u64::from(victim.assert_restored(&what));
        met.add(if load == SETSID { "cmd (setsid)" } else { load }, one.numbers());
        contained.add(name, one.numbers());
    }
    keep(&format!(
        "Kills: {kills} runs of an hour ended with SIGKILL within their first 6 s, in {:.0} s: \
         punctual alone, with\nthe supervisors of its loads, or with every process of them. \
         PUNCTUAL_SEED={seed}\nThe last process was gone {:.2} s after the kill (limit {} s).\n\n\
         {}\n\n{}\n\n{}",
        begin.elapsed().as_secs_f64(),
        longest.as_secs_f64(),
        SURVIVAL.as_secs(),
        met.text(),
        contained.text(),
        Met::MEANING,
    ));
    let [_, _, _, with_blocks, _, restored] = met.sums();
    let enough = |met: u64, of_ten: usize| met >= (kills * of_ten / 10) as u64;
    assert!(enough(with_blocks, 3) && enough(restored, 1), "the kills came too early: {met:?}");
}

#[test]
fn stopped_for_a_second() {
    let binary = need!(release());
    need!(root());
    let folder = Folder::new("stopped");
    let mut victim = Victim::start(&folder, &binary, "none", "4s", &["--json"]);
    wait_for_probe(&mut victim.child, WARMUP + Duration::from_millis(1_500));
    let before = Instant::now();
    signal(&victim.child, "STOP");
    std::thread::sleep(Duration::from_secs(1));
    signal(&victim.child, "CONT");
    let stopped = before.elapsed();
    let status = victim.end(Duration::from_secs(20));
    assert_eq!(status.code(), Some(0));
    let run = folder.json("stdout");
    let cell = &run["cells"][0];
    each_release_is_counted_once(cell);
    let stop = &cell["stops"][0];
    let (missed, max) = (count(stop, "missed"), count(stop, "max_ns"));
    let left_out = missed + count(stop, "samples");
    assert_eq!(count(cell, "scheduled") + left_out, 4_000, "releases of 4 s: {cell}");
    println!(
        "stopped for {stopped:?}: {missed} of 4000 releases left out, the latest {max} ns late"
    );
    // A busy machine is slow to send the signals, and slow to let the probe go on.
    let longest = stopped.as_nanos() + u128::from(SECOND_NS) / 10;
    assert!(max > 950_000_000 && u128::from(max) < longest, "{max} ns late in {stopped:?}");
    let missed_by_max = max / INTERVAL_NS;
    assert!(
        (800..=1_200).contains(&missed_by_max) && missed.abs_diff(missed_by_max) <= 1,
        "{stop}"
    );
    // What else is late on a busy machine is little beside the stop.
    assert!(count(cell, "max_ns") < max / 2 && count(cell, "missed") < 400, "{cell}");
}

/// Three fragments last for 8.7 ms: a player that is stopped for 50 ms drops out, which is no fault of the
/// kernel.
#[test]
fn a_player_that_is_stopped_drops_out() {
    let binary = need!(release());
    let folder = Folder::new("stopped-player");
    let output = |name: &str| fs::File::create(folder.path(name)).unwrap();
    let mut child = folder
        .command(&binary)
        .args(["run", "audio", "-D", "3s", "--warmup", "200ms", "--json", "--out", "r"])
        .stdout(output("stdout"))
        .stderr(output("stderr"))
        .spawn()
        .unwrap();
    wait_for_probe(&mut child, WARMUP + Duration::from_millis(1_000));
    signal(&child, "STOP");
    std::thread::sleep(Duration::from_millis(50));
    signal(&child, "CONT");
    let status = wait_at_most(&mut child, Duration::from_secs(20), "audio");
    let run = folder.json("stdout");
    let cell = &run["cells"][0];
    let (dropouts, max) =
        (count(&cell["counters"][0], "total"), count(&cell["stops"][0], "max_ns"));
    println!("{dropouts} dropouts, the longest fragment {max} ns");
    assert_eq!(
        (&cell["counters"][0]["name"], &cell["verdict"]["outcome"]),
        (&"dropouts".into(), &"INCONCLUSIVE".into())
    );
    assert!(dropouts >= 1 && max >= 50_000_000 && status.code() == Some(3), "{cell}");
}

/// Waits until a run measures under its load.
fn measures(victim: &mut Victim<'_>) {
    wait_for_probe(&mut victim.child, WARMUP + Duration::from_millis(1_300));
    assert!(!load_processes(victim.pid()).is_empty(), "there is no load");
}

fn assert_nothing_left(victim: &Victim<'_>, what: &str) {
    assert_no_load(victim.pid(), SURVIVAL, what);
    assert_eq!(victim.journals(), Vec::<PathBuf>::new(), "{what}");
    assert_eq!(victim.scratch(), 0, "{what}");
}

#[test]
fn interrupted() {
    let binary = need!(release());
    need!(root());
    for name in ["INT", "TERM"] {
        for load in ["hackbench+disk:size=4M", SETSID] {
            let what = format!("{name} under {load}");
            let folder = Folder::new("interrupted");
            let mut victim = Victim::start(&folder, &binary, load, "1h", &["--json"]);
            measures(&mut victim);
            signal(&victim.child, name);
            let status = victim.end(Duration::from_secs(10));
            assert_eq!(status.code(), Some(130), "{what}");
            let run = folder.json("stdout");
            assert_eq!(run["state"], "interrupted", "{what}");
            each_release_is_counted_once(&run["cells"][0]);
            assert!(count(&run["cells"][0], "samples") >= 500, "{what}: {run}");
            assert_nothing_left(&victim, &what);
        }
    }
}

/// Both wait while it is stopped, so that the second finds it at work on the first.
#[test]
fn a_second_signal_ends_at_once() {
    let binary = need!(release());
    need!(root());
    let folder = Folder::new("twice");
    let mut victim = Victim::start(&folder, &binary, "hackbench+disk:size=4M", "1h", &["-q"]);
    measures(&mut victim);
    for name in ["STOP", "INT", "TERM", "CONT"] {
        signal(&victim.child, name);
    }
    let status = victim.end(Duration::from_secs(10));
    assert!(status.signal().is_some(), "{status}");
    assert_nothing_left(&victim, "INT and TERM");
}
