//! The numeric promises of SPECIFICATION.md, measured on the release binary. Each
//! test prints what it found.

#[path = "numbers/costs.rs"]
mod costs;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use punctual_harness::cyclictest::{
    cyclictest_median, last_cpu, lower_bound_of_median, punctual_median,
};
use punctual_harness::{
    Folder, alternating, board, count, has_time, megabytes, need, programs, release, root, sources,
    text, usage,
};

/// What callgrind prints a count behind.
const COLLECTED: &str = "Collected : ";

fn callgrind<'a>(program: &'a Path, args: &[&'a str]) -> Vec<&'a str> {
    let tool = ["--tool=callgrind", "--callgrind-out-file=/dev/null", program.to_str().unwrap()];
    [&tool, args].concat()
}

fn collected(report: &[u8]) -> u64 {
    let report = text(report);
    let count = report.lines().find_map(|line| line.split_once(COLLECTED));
    count.unwrap_or_else(|| panic!("callgrind said {report}")).1.trim().parse().unwrap()
}

/// User-space instructions of a whole process.
fn instructions(folder: &Folder, program: &Path, args: &[&str]) -> u64 {
    collected(&folder.run("valgrind", &callgrind(program, args)).stderr)
}

/// User-space instructions of a whole process, and of the thread that it began last.
fn instructions_by_thread(folder: &Folder, program: &Path, args: &[&str]) -> [u64; 2] {
    let out = folder.path("threads");
    fs::create_dir(&out).unwrap();
    let file = format!("--callgrind-out-file={}", out.join("of").display());
    // A run reads all threads of its PID namespace at the start and the end: here only its own.
    let alone = ["--pid", "--fork", "--mount-proc", "valgrind"];
    let tool = ["--tool=callgrind", "--separate-threads=yes", &file, program.to_str().unwrap()];
    let whole = collected(&folder.run("unshare", &[&alone[..], &tool, args].concat()).stderr);
    let last = fs::read_dir(&out).unwrap().map(|file| file.unwrap().path()).max().unwrap();
    let profile = fs::read_to_string(last).unwrap();
    let total = profile.lines().find_map(|line| line.strip_prefix("totals: ")).unwrap();
    fs::remove_dir_all(out).unwrap();
    [whole, total.trim().parse().unwrap()]
}

/// Instructions that each sample costs, of the process and of its thread: what is the same for any
/// number drops out. The medians of five differences, since the worst samples of a busy machine
/// cost some once each.
fn instructions_each(measure: impl Fn(&str) -> [u64; 2]) -> [f64; 2] {
    const LOOPS: [u32; 2] = [3_000, 15_000];
    let each = [0; 5].map(|_| {
        let [few, many] = LOOPS.map(|loops| measure(&loops.to_string()));
        [0, 1].map(|of| {
            let more = i32::try_from(i128::from(many[of]) - i128::from(few[of])).unwrap();
            f64::from(more) / f64::from(LOOPS[1] - LOOPS[0])
        })
    });
    ["process", "thread"].map(|of| {
        let mut each = each.map(|[process, thread]| if of == "process" { process } else { thread });
        each.sort_by(f64::total_cmp);
        println!("  instructions a sample, {of}, five differences: {each:.1?}");
        each[2]
    })
}

#[test]
fn instructions_per_sample() {
    let binary = need!(release());
    need!(root());
    need!(programs(&["valgrind", "cyclictest"]));
    let folder = Folder::new("instructions");
    let board = need!(board());
    let few = |[whole, thread]: &[f64; 2]| *whole <= 150.0 && *thread <= 125.0;
    let of = |program: &Path| {
        instructions_each(|samples| {
            let line = ["run", "wakeup", "-i", "500", "-p", "80", "-l", samples, "--out", "r"];
            let count = instructions_by_thread(&folder, program, &line);
            fs::remove_dir_all(folder.path("r")).unwrap();
            count
        })
    };
    // Once more if neighbours made it late: what is late is recorded at length.
    let [ours, on_board] = [&binary, &board].map(|program| {
        let found = of(program);
        if few(&found) { found } else { of(program) }
    });
    let [theirs, _] = instructions_each(|samples| {
        let line = ["-q", "-m", "-p", "80", "-i", "500", "-l", samples];
        instructions_by_thread(&folder, "cyclictest".as_ref(), &line)
    });
    println!(
        "instructions a sample, and of them in the probe's thread: punctual {ours:.1?}, \
         punctual-board {on_board:.1?}, cyclictest {theirs:.1}"
    );
    assert!(few(&on_board) && few(&ours) && ours[0] <= theirs, "twice");
}

/// SIGALRM ends the process at once, and callgrind with it: what the end of a run takes, the hash
/// of the executable most of it, is not counted.
#[test]
fn instructions_before_the_first_sample() {
    let binary = need!(release());
    need!(programs(&["valgrind"]));
    let folder = Folder::new("before");
    let line = ["run", "wakeup", "-i", "1s", "-D", "1h", "--no-warmup", "--out", "r"];
    let mut child = Command::new("valgrind")
        .args(callgrind(&binary, &line))
        .current_dir(folder.path("."))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let cells = folder.path("r/cells");
    let began = || fs::read_dir(&cells).is_ok_and(|mut cells| cells.next().is_some());
    while !began() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before its cell began");
        sleep(Duration::from_millis(50));
    }
    // The first releases; those that follow a second later are some hundred instructions each.
    sleep(Duration::from_millis(1_500));
    let number = child.id().to_string();
    folder.run("kill", &["-ALRM", &number]);
    let count = collected(&child.wait_with_output().unwrap().stderr);
    let size = fs::metadata(&binary).unwrap().len();
    println!("instructions before the first samples: {count}, of a binary of {size} bytes");
    assert_eq!(folder.json("r/run.json")["tool"]["sha256"], "");
    // To hash takes more than twelve for each byte.
    assert!(count < 20_000_000, "{count} instructions");
}

/// The system calls of the probe's thread, by name, in order.
fn calls_of_probe(traces: &Path) -> Vec<String> {
    let of_probe = fs::read_dir(traces).unwrap().find_map(|entry| {
        let trace = fs::read_to_string(entry.unwrap().path()).unwrap();
        trace.contains("prctl(PR_SET_NAME, \"probe-0\")").then_some(trace)
    });
    let trace = of_probe.expect("a trace of a thread with the name probe-0");
    let name = |line: &str| Some(line.split_once('(')?.0.to_owned());
    trace.lines().filter_map(name).collect()
}

#[test]
fn no_system_call_but_the_wait() {
    let binary = need!(release());
    need!(programs(&["strace"]));
    const SAMPLES: usize = 400;
    for (timer, wait) in [
        ("nanosleep", "clock_nanosleep"),
        ("posix", "rt_sigtimedwait"),
        ("timerfd", "read"),
        ("relative", "clock_nanosleep"),
        ("futex", "futex"),
        ("itimer", "rt_sigtimedwait"),
        ("io_uring", "io_uring_enter"),
    ] {
        let folder = Folder::new(&format!("calls-{timer}"));
        fs::create_dir(folder.path("traces")).unwrap();
        let samples = SAMPLES.to_string();
        let tool = ["-f", "-ff", "-o", "traces/trace", binary.to_str().unwrap()];
        let line = ["run", "wakeup", "-i", "1000", "-l", &samples, "--timer", timer];
        folder.run("strace", &[&tool[..], &line, &["--no-report", "--out", "r"]].concat());
        let engine = &folder.json("r/run.json")["facts"]["engine"];
        let vdso = engine["clock_vdso"].as_bool().expect("facts.engine.clock_vdso");
        let mut calls = calls_of_probe(&folder.path("traces"));
        if !vdso {
            println!("  clock_gettime is a system call of this kernel's clock source: allowed");
            calls.retain(|call| call != "clock_gettime");
        }
        // The last unbroken row of waits is the measurement; warm-up is the one before.
        let rows = calls.chunk_by(|a, b| a == b).filter(|row| row[0] == wait);
        let longest: Vec<usize> = rows.map(<[String]>::len).filter(|&row| row > 1).collect();
        println!("{timer}: rows of {wait} without another system call: {longest:?}");
        let measured = *longest.last().unwrap_or(&0);
        // Who computes the time left and finds none does not wait, as on a machine that is busy.
        let least = if timer == "relative" { SAMPLES * 9 / 10 } else { SAMPLES };
        assert!(measured >= least, "{timer}: {measured} waits in a row, then {calls:?}");
        assert_eq!(longest.len(), 2, "{timer}: {calls:?}");
    }
}

/// A field of /proc/PID/status in bytes.
fn resident(status: &str, field: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    Some(line.trim_matches([':', '\t', ' ', 'k', 'B']).parse::<u64>().ok()? * 1024)
}

/// A minute of two threads, as the standard plan's cells have them on a machine of two CPUs.
#[test]
fn peak_memory() {
    let binary = need!(release());
    let folder = Folder::new("memory");
    let line = ["run", "wakeup", "-t", "2", "-D", "1m", "--no-report", "-q", "--out", "r"];
    let mut child = Command::new(&binary).args(line).current_dir(folder.path(".")).spawn().unwrap();
    let path = format!("/proc/{}/status", child.id());
    let (mut anonymous, mut file, mut peak) = (0, 0, 0);
    while child.try_wait().unwrap().is_none() {
        let status = fs::read_to_string(&path).unwrap_or_default();
        let size = |field| resident(&status, field).unwrap_or(0);
        anonymous = anonymous.max(size("RssAnon") + size("RssShmem"));
        file = file.max(size("RssFile"));
        // The kernel keeps the peak of the sum; what lies between two looks is in it.
        peak = peak.max(size("VmHWM"));
        sleep(Duration::from_millis(20));
    }
    assert!(child.wait().unwrap().success());
    let state = count(&folder.json("r/run.json")["facts"]["engine"], "state_bytes_per_thread");
    let size = fs::metadata(&binary).unwrap().len();
    println!("anonymous {anonymous}, of the file {file}, peak of both {peak}, binary {size} bytes");
    println!("state of a thread: {state} bytes");
    assert!(2 * state < anonymous, "{anonymous} bytes cannot hold two threads' {state}");
    assert!(anonymous <= 2_500_000 && peak - file <= 2_500_000, "{anonymous}, {peak} bytes");
    // Neighbouring segments each have the page at which they meet.
    assert!(file <= size + 5 * 4_096, "{file} bytes of a file of {size}");
}

#[test]
fn binary_size() {
    let binary = need!(release());
    need!(board());
    need!(programs(&["readelf"]));
    let folder = Folder::new("size");
    let boards = sources().join("target/boards");
    let on = |machine: &str| boards.join(format!("punctual-board-{machine}"));
    let most = [(binary, 16_000_000), (on("x86_64"), 4_000_000), (on("aarch64"), 4_000_000)];
    for (program, most) in most {
        let shown = folder.run("readelf", &["-lWd", program.to_str().unwrap()]);
        let headers = text(&shown.stdout);
        assert!(headers.contains("LOAD"), "{headers}");
        for dynamic in ["INTERP", "(NEEDED)"] {
            assert!(!headers.contains(dynamic), "the binary is not static: {headers}");
        }
        let size = fs::metadata(&program).unwrap().len();
        println!("static binary {}: {:.2} MB", program.display(), megabytes(size));
        assert!(size <= most, "{size} bytes");
    }
}

#[test]
fn median_against_cyclictest() {
    let binary = need!(release());
    need!(root());
    need!(programs(&["cyclictest"]));
    const PAIRS: usize = 12;
    const SAMPLES: u64 = 2_000;
    let folder = Folder::new("median");
    let cpu = last_cpu();
    // One comparison in twenty errs by chance, two in a row one in four hundred.
    let surely_above = || {
        let ours = || punctual_median(&folder, &binary, &cpu, SAMPLES);
        let theirs = || cyclictest_median(&folder, &cpu, SAMPLES);
        let pairs = alternating(PAIRS, ours, theirs);
        let nanoseconds = |ns: i64| f64::from(i32::try_from(ns).unwrap());
        let ratio = |&(ours, theirs): &(i64, i64)| nanoseconds(ours) / nanoseconds(theirs);
        let mut ratios: Vec<f64> = pairs.iter().map(ratio).collect();
        ratios.sort_by(f64::total_cmp);
        let middle = f64::midpoint(ratios[(PAIRS - 1) / 2], ratios[PAIRS / 2]);
        let bound = lower_bound_of_median(&ratios);
        println!("medians on CPU {cpu}, punctual and cyclictest, ns: {pairs:?}");
        println!("ratio of medians: {middle:.3}, above {bound:.3} with 95 % confidence");
        bound
    };
    let bound = surely_above();
    let bound = if bound > 1.03 { surely_above() } else { bound };
    assert!(bound <= 1.03, "ratio of medians surely above {bound}, twice");
}

#[test]
fn report_of_24_hours() {
    let binary = need!(release());
    need!(has_time());
    need!(programs(&["valgrind"]));
    let folder = Folder::new("day");
    // The second has late samples and a new maximum all day long: the most that a report shows.
    let tail = "sim:dist=exponential,order=random,stall=30ms,stall-every=977";
    for (name, probe) in [("even", "sim"), ("tail", tail)] {
        folder.run(&binary, &["run", probe, "-D", "24h", "--no-report", "--out", name]);
        let samples = count(&folder.json(&format!("{name}/run.json"))["cells"][0], "scheduled");
        assert_eq!(samples, 86_400_000);
        let page = format!("{name}.html");
        let used = usage(&folder, &binary, &["report", name, "-o", &page]);
        let size = fs::metadata(folder.path(&page)).unwrap().len();
        let (peak, file) = (megabytes(used.peak), megabytes(size));
        let count = instructions(&folder, &binary, &["report", name, "-o", "again.html"]);
        println!("report of 24 h, {name}: {count} instructions, {peak:.1} MB, file {file:.2} MB");
        assert!(count <= REPORT, "{name}: {count} instructions");
        assert!(used.peak <= 200_000_000, "{name}: {} bytes", used.peak);
        assert!(size <= 2_000_000, "{name}: {size} bytes");
    }
}

#[test]
fn a_thousand_cells() {
    let binary = need!(release());
    need!(has_time());
    let folder = Folder::new("cells");
    let cell = |number| format!("[[cell]]\nprobe = \"sim:high={}us\"\n", 20 + number);
    let cells: String = (0..1_000).map(cell).collect();
    fs::write(folder.path("plan"), format!("name = \"many\"\nduration = \"1s\"\n{cells}")).unwrap();
    let line = ["run", "--plan", "plan", "--no-report", "-q", "--out", "r"];
    let used = usage(&folder, &binary, &line);
    println!("1,000 cells: {:.1} s of CPU, {:.1} s", used.cpu, used.wall);
    assert_eq!(folder.json("r/run.json")["cells"].as_array().unwrap().len(), 1_000);
    assert!(used.cpu < 30.0, "{} s of CPU", used.cpu);
}

/// Instructions of a report at most: about a third of a second at 3 GHz.
const REPORT: u64 = 1_000_000_000;

#[test]
fn recording_speed() {
    let binary = need!(release());
    need!(programs(&["valgrind"]));
    let folder = Folder::new("speed");
    let measure = |samples: &str| {
        let line = ["run", "sim", "-l", samples, "--no-report", "--out", "r"];
        let count = instructions(&folder, &binary, &line);
        assert_eq!(
            self::count(&folder.json("r/run.json")["cells"][0], "samples").to_string(),
            samples
        );
        fs::remove_dir_all(folder.path("r")).unwrap();
        f64::from(u32::try_from(count).unwrap())
    };
    let each = (measure("3000000") - measure("1000000")) / 2e6;
    println!("recording: {each:.1} instructions a simulated sample");
    assert!(each <= 110.0, "{each} instructions a sample");
}

#[test]
fn the_bound_of_a_median_has_its_rank() {
    // Of n values the k-th is the bound: David and Nagaraja, Order Statistics, 7.1.
    let ranks: BTreeMap<usize, f64> = [(5, 1.0), (8, 2.0), (10, 2.0), (12, 3.0), (20, 6.0)].into();
    for (n, rank) in ranks {
        let values: Vec<f64> = (1..=n).map(|k| f64::from(u32::try_from(k).unwrap())).collect();
        assert!((lower_bound_of_median(&values) - rank).abs() < 1e-9, "{n}");
    }
}

/// Seconds for the messages of 300 loops of two groups: that of rt-tests is timed by itself, ours
/// goes on round after round.
#[test]
fn hackbench_against_that_of_rt_tests() {
    const PAIRS: usize = 12;
    const LOOPS: &str = "300";
    const MESSAGES: f64 = 2.0 * 20.0 * 20.0 * 300.0;
    need!(root());
    need!(programs(&["hackbench", "setsid"]));
    let binary = need!(release());
    let folder = Folder::new("hackbench");
    for (ipc, of_theirs) in [("socket", &[][..]), ("pipe", &["-p"])] {
        let ours = || {
            let load = format!("hackbench:groups=2,loops={LOOPS},ipc={ipc}");
            let ended = folder.run(&binary, &["load", &load, "-D", "1s", "--json"]);
            let work: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
            MESSAGES / work[0]["counters"][0]["per_second"].as_f64().unwrap()
        };
        let theirs = || {
            // A load has a session, which is what the scheduler shares CPUs among (sched(7),
            // autogroup).
            let words = ["-w", "hackbench", "-g", "2", "-l", LOOPS, "-s", "100"];
            let said = text(&folder.run("setsid", &[&words, of_theirs].concat()).stdout);
            let time = said.lines().find_map(|line| line.strip_prefix("Time: "));
            time.unwrap_or_else(|| panic!("{said}")).trim().parse::<f64>().unwrap()
        };
        let surely_outside = || {
            let pairs = alternating(PAIRS, ours, theirs);
            let mut ratios: Vec<f64> = pairs.iter().map(|(ours, theirs)| ours / theirs).collect();
            ratios.sort_by(f64::total_cmp);
            let inverse: Vec<f64> = ratios.iter().rev().map(|ratio| 1.0 / ratio).collect();
            let middle = f64::midpoint(ratios[(PAIRS - 1) / 2], ratios[PAIRS / 2]);
            let least = lower_bound_of_median(&ratios);
            let most = 1.0 / lower_bound_of_median(&inverse);
            println!("{ipc}: ours and theirs, s: {pairs:.3?}");
            println!(
                "{ipc}: ratio {middle:.3}, {least:.3} to {most:.3}, each with 95 % confidence"
            );
            least > 1.1 || most < 0.9
        };
        assert!(!(surely_outside() && surely_outside()), "{ipc}: twice");
    }
}
