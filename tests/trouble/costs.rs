//! Costs that a machine cannot have: each is skipped with a reason that says what to do, the others
//! are measured, and nothing is left behind.

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use punctual_harness::registry::{entries, name};
use punctual_harness::{Ended, Place, Tmpfs, end_of, items, need, programs, root, until, waited};
use punctual_sys::seccomp::{self, CallNumber, MEMFD_CREATE, Refusal, SOCKET};

use crate::boards::removed;

/// A user that nobody is: how many processes it may have counts those of one test only.
const NOBODY_ELSE: u32 = 54_321;

const LOOPBACK: [&str; 9] = [
    "lat.udp",
    "lat.tcp",
    "lat.connect",
    "lat.rpc",
    "lat.rpc:over=tcp",
    "lat.select",
    "bw.tcp",
    "lat.pipe",
    "lat.unix",
];

fn words<'a>(costs: &[&'a str]) -> Vec<&'a str> {
    let more = ["-D", "50ms", "--json", "--no-report", "-q", "--out", "r"];
    [&["cost"][..], costs, &more].concat()
}

/// A metric with its parameters in one order.
fn ordered(metric: &str) -> String {
    let (name, params) = metric.split_once(':').unwrap_or((metric, ""));
    let mut params: Vec<_> = params.split(',').collect();
    params.sort_unstable();
    format!("{name}:{}", params.join(","))
}

/// What became of each metric: its words, and why it was skipped. Each is one or the other.
#[track_caller]
fn costs(ended: &Ended) -> Vec<(String, Option<String>)> {
    let of = |cell: &Value| {
        let metric = cell["key"].as_str().unwrap().split(" @ ").next().unwrap().to_owned();
        match cell["state"].as_str().unwrap() {
            "complete" => {
                let status = cell["status"].as_str().unwrap();
                assert!(["measured", "not-measurable"].contains(&status), "{cell}");
                (metric, None)
            }
            "skipped" => {
                let reason = cell["reason"].as_str().unwrap().to_owned();
                assert!(!reason.is_empty() && !reason.contains("(os error"), "{cell}");
                (metric, Some(reason))
            }
            _ => panic!("neither measured nor skipped: {cell}"),
        }
    };
    items(&ended.json()["cells"]).iter().map(of).collect()
}

/// Checks that these metrics were skipped, for a reason with these words, and the others measured;
/// and that no process is left.
#[track_caller]
fn told(place: &Place, ended: Ended, skipped: &[&str], says: &[&str]) {
    let found = costs(&ended.with(4));
    for (metric, reason) in &found {
        println!("{metric}: {reason:?}");
        let is_skipped = skipped.iter().any(|one| ordered(one) == ordered(metric));
        assert_eq!(reason.is_some(), is_skipped, "{metric}: {found:#?}");
        let said = reason.as_deref().unwrap_or_default();
        assert!(!is_skipped || says.iter().all(|word| said.contains(word)), "{metric}: {said}");
    }
    let found: Vec<_> = found.iter().map(|(metric, _)| ordered(metric)).collect();
    assert!(skipped.iter().all(|one| found.contains(&ordered(one))), "{skipped:?}, {found:#?}");
    assert_eq!(place.living(), Vec::<String>::new());
    fs::remove_dir_all(place.path.join("r")).unwrap();
}

/// Those metrics that make files, each with this folder for them.
fn of_files(place: &Place, folder: &Path) -> Vec<String> {
    let all = entries(place, "costs");
    let has_folder =
        |cost: &&Value| items(&cost["parameters"]).iter().any(|param| param["name"] == "dir");
    let found: Vec<_> = all.iter().filter(has_folder).map(name).collect();
    assert!(found.len() > 10, "{found:?}");
    found.iter().map(|name| format!("{name}:dir={}", folder.display())).collect()
}

#[test]
fn without_a_loopback_device_what_needs_none_is_measured() {
    need!(root());
    need!(programs(&["unshare"]));
    let place = Place::new();
    let ended = end_of(place.through(&["unshare", "--net"], &words(&LOOPBACK)));
    told(&place, ended, &LOOPBACK[..7], &["127.0.0.1", "ip link set lo up"]);
}

#[test]
fn a_folder_that_cannot_be_written_skips_what_makes_files() {
    need!(root());
    need!(programs(&["unshare", "mount"]));
    let place = Place::new();
    let folder = place.open_folder("read-only");
    let files = of_files(&place, &folder);
    // In a mount namespace that goes with the program; a folder of the disk, as metrics of the disk
    // want one.
    let mount = "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\" && exec \"$@\"";
    let on = folder.to_str().unwrap();
    let through = ["unshare", "--mount", "--propagation", "private", "sh", "-c", mount, on];
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let line = words(&[&files[..], &["lat.syscall"]].concat());
    let ended = end_of(place.through(&through, &line));
    told(&place, ended, &files, &[on, "Read-only file system", "choose another dir"]);
    // The same of the folder that is used if none is given.
    let mut command = place.through(&through, &words(&["lat.create:kb=1", "lat.mmap", "lat.io"]));
    command.env("TMPDIR", &folder);
    let says = [on, "Read-only file system", "choose another dir"];
    told(&place, end_of(command), &["lat.create:kb=1", "lat.mmap"], &says);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn a_file_system_without_room_skips_what_does_not_fit() {
    need!(root());
    need!(programs(&["mount"]));
    for size in ["64k", "1m"] {
        let place = Place::new();
        let disk = Tmpfs::mount(&place.path.join("small"), size);
        let on = disk.path().to_str().unwrap();
        // By default no file system in memory is used where there is a disk.
        let full = ["lat.create:kb=10", "lat.mmap:", "lat.pagefault:", "bw.file:", "bw.mmap:"];
        let full = full.map(|one| format!("{one},dir={on}").replace(":,", ":"));
        let full: Vec<&str> = full.iter().map(String::as_str).collect();
        // One empty file needs no page.
        let stat = format!("lat.stat:dir={on}");
        let ended = place.words(&words(&[&full[..], &[&stat]].concat()));
        told(&place, ended, &full, &[on, "are free", "free some space, or choose another dir"]);
        let on_disk = format!("disk.write:dir={on}");
        let ended = place.words(&words(&[&on_disk, "lat.pipe"]));
        told(&place, ended, &[&on_disk], &[on, "choose a dir on a disk"]);
        assert_eq!(fs::read_dir(disk.path()).unwrap().count(), 0, "what was made is removed");
    }
    let place = Place::new();
    let large = "disk.write:size=900T";
    let says = ["are free", "choose another dir"];
    told(&place, place.words(&words(&[large, "lat.pipe"])), &[large], &says);
}

/// Not only at the start: others fill the disk while files are made.
#[test]
fn a_file_system_that_fills_up_ends_the_metric_and_leaves_no_file() {
    need!(root());
    need!(programs(&["mount"]));
    let place = Place::new();
    let disk = Tmpfs::mount(&place.path.join("small"), "16m");
    let create = format!("lat.create:kb=10,dir={}", disk.path().display());
    let line = ["cost", &create, "lat.syscall", "-D", "5s", "--json", "--no-report", "--out", "r"];
    let is_used = || fs::read_dir(disk.path()).unwrap().next().is_some();
    let filled_up = || {
        let _ = fs::remove_dir_all(place.path.join("r"));
        let mut command = place.command(&line);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        assert!(until(Duration::from_secs(20), is_used), "it makes no files");
        // What it removes just then is free again.
        until(Duration::from_secs(20), || {
            disk.fill();
            child.try_wait().unwrap().is_some()
        });
        fs::remove_file(disk.path().join("filler")).unwrap();
        assert!(!is_used(), "what was made is removed");
        waited(child)
    };
    // On a busy machine the metric may have its result before the disk is full.
    let ended = (0..20).map(|_| filled_up()).find(|ended| ended.status != Some(0)).unwrap();
    let says = [disk.path().to_str().unwrap(), "space", "choose another dir"];
    told(&place, ended, &[&create], &says);
}

const PROCESSES: [&str; 8] = [
    "ctx:procs=16",
    "time.hackbench",
    "lat.fork",
    "lat.exec",
    "lat.sh",
    "rate.process",
    "lat.syscall",
    "lat.select:of=file",
];
const TOO_MANY: [&str; 3] = ["Resource temporarily unavailable", "ulimit -u", "pids.max"];

#[test]
fn a_limit_on_processes_skips_what_makes_more() {
    need!(root());
    need!(programs(&["setpriv", "prlimit"]));
    let place = Place::new();
    let own = place.open_folder("own");
    chown(&own, Some(NOBODY_ELSE), None).unwrap();
    let user = NOBODY_ELSE.to_string();
    let as_user = ["setpriv", "--reuid", &user, "--regid", &user, "--clear-groups"];
    let as_user = [&as_user[..], &["--inh-caps=-all", "prlimit"]].concat();
    // Threads count too: with 3 an agent can be forked, and has no other process.
    for (limit, skipped) in [("3", &PROCESSES[..6]), ("10", &PROCESSES[..2])] {
        let nproc = format!("--nproc={limit}:{limit}");
        let words = words(&PROCESSES);
        let mut command = place.through(&[&as_user[..], &[&nproc]].concat(), &words);
        command.current_dir(&own);
        let ended = end_of(command);
        fs::rename(own.join("r"), place.path.join("r")).unwrap();
        told(&place, ended, skipped, &TOO_MANY);
    }
}

/// A control group with so many processes, version 1 or 2.
fn group_of_processes(most: &str) -> Result<PathBuf, String> {
    let v1 = Path::new("/sys/fs/cgroup/pids");
    let v2 = Path::new("/sys/fs/cgroup");
    let controllers = fs::read_to_string(v2.join("cgroup.subtree_control")).unwrap_or_default();
    let parent = if v1.join("cgroup.procs").exists() {
        v1
    } else if controllers.split_whitespace().any(|name| name == "pids") {
        v2
    } else {
        return Err("no pids controller in /sys/fs/cgroup".to_owned());
    };
    let group = parent.join(format!("punctual-test-pids-{}", std::process::id()));
    let failed = |error: std::io::Error| format!("{}: {error}", group.display());
    fs::create_dir(&group).map_err(failed)?;
    fs::write(group.join("pids.max"), most).map_err(failed)?;
    Ok(group)
}

#[test]
fn a_control_group_that_is_full_skips_what_makes_more_processes() {
    need!(root());
    let group = need!(group_of_processes("10"));
    let _gone = removed(&group);
    let place = Place::new();
    let enter = format!("echo $$ > {}/cgroup.procs && exec \"$0\" \"$@\"", group.display());
    let through = ["sh", "-c", &enter];
    told(&place, end_of(place.through(&through, &words(&PROCESSES))), &PROCESSES[..2], &TOO_MANY);
}

#[test]
fn a_limit_on_open_files_skips_what_opens_more() {
    need!(programs(&["prlimit"]));
    let place = Place::new();
    let many = ["lat.select", "lat.select:of=file", "ctx:procs=16"];
    let line = words(&[&many[..], &["lat.pipe", "lat.fork", "lat.udp"]].concat());
    // Those that the test itself was given are open too.
    let ended = end_of(place.through(&["prlimit", "--nofile=32:32"], &line));
    told(&place, ended, &many, &["raise the limit on open files", "ulimit -n"]);
}

/// Runs punctual with these calls refused, as in a container.
fn refusing(place: &Place, calls: &[Refusal], line: &[&str]) -> Ended {
    let command = place.command(line);
    // A filter is that of a thread, and of what it starts.
    let run = || {
        seccomp::refuse(calls).unwrap();
        end_of(command)
    };
    thread::scope(|scope| scope.spawn(run).join().unwrap())
}

fn forbidden(call: CallNumber) -> Refusal {
    // EPERM.
    Refusal { call, bits: 0, errno: 1 }
}

const FORBIDDEN: [&str; 2] = ["Operation not permitted", "seccomp"];

#[test]
fn calls_that_a_container_refuses_skip_what_needs_them() {
    let place = Place::new();
    // A pair of AF_UNIX sockets is another call.
    let ended = refusing(&place, &[forbidden(SOCKET)], &words(&LOOPBACK));
    told(&place, ended, &LOOPBACK[..7], &FORBIDDEN);
    let memory =
        ["lat.fork", "lat.exec", "lat.sh", "rate.process", "lat.select:of=file", "lat.signal"];
    let ended = refusing(&place, &[forbidden(MEMFD_CREATE)], &words(&memory));
    told(&place, ended, &memory[..5], &FORBIDDEN);
    let forks = ["lat.fork", "lat.pipe", "ctx:procs=4", "time.hackbench", "lat.io", "lat.syscall"];
    let ended = refusing(&place, &Refusal::of_forks(), &words(&forks));
    told(&place, ended, &forks[..5], &FORBIDDEN);
}

#[test]
fn every_metric_is_measured_or_says_why_not() {
    need!(root());
    need!(programs(&["setpriv", "prlimit", "unshare"]));
    let place = Place::new();
    let own = place.open_folder("own");
    chown(&own, Some(NOBODY_ELSE), None).unwrap();
    let closed = place.path.join("closed");
    fs::create_dir(&closed).unwrap();
    let names = entries(&place, "costs");
    let names: Vec<_> = names.iter().map(name).collect();
    let user = NOBODY_ELSE.to_string();
    let (nobody, line) = (["setpriv", "--reuid", &user, "--regid", &user], words(&["--all"]));
    let nobody = [&nobody[..], &["--clear-groups", "--inh-caps=-all"]].concat();
    let limits = ["prlimit", "--nofile=20:20", "--nproc=10:10"];
    let mut place_of_little =
        place.through(&[&["unshare", "--net"], &nobody[..], &limits].concat(), &line);
    place_of_little.current_dir(&own).env("TMPDIR", &closed);
    let little = end_of(place_of_little);
    let calls = [Refusal::of_forks(), vec![forbidden(SOCKET), forbidden(MEMFD_CREATE)]].concat();
    for ended in [little, refusing(&place, &calls, &line)] {
        // Nobody asked for one of them by its name.
        let found = costs(&ended.with(0));
        for (metric, reason) in &found {
            println!("{metric}: {}", reason.as_deref().unwrap_or("measured"));
        }
        for name in &names {
            let is_of = |metric: &str| metric.split(':').next() == Some(name);
            assert!(found.iter().any(|(metric, _)| is_of(metric)), "{name} is missing");
        }
        let skipped = found.iter().filter(|(_, reason)| reason.is_some()).count();
        assert!(skipped > 10 && skipped < found.len(), "{skipped} of {}", found.len());
        assert_eq!(place.living(), Vec::<String>::new());
    }
    assert_eq!(fs::read_dir(&closed).unwrap().count(), 0);
}
