//! What the tests of the loads look at: processes, folders, a host that can be killed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use punctual_suite::knobs::Journal;
use punctual_suite::loads::{
    Containment, LoadContext, LoadSet, LoadSpec, LoadStartError, PartSample,
};

/// A folder of a test, removed at its end.
pub struct Scratch(pub PathBuf, RefCell<Vec<Journal>>);

impl Scratch {
    pub fn new(name: &str) -> Self {
        let path = PathBuf::from("/var/tmp").join(format!(
            "punctual-test-{name}-{}-{}",
            std::process::id(),
            rand()
        ));
        fs::create_dir(&path).unwrap();
        Self(path, RefCell::default())
    }

    /// Names of what is in it.
    pub fn entries(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let name = |entry: std::io::Result<fs::DirEntry>| {
            entry.unwrap().file_name().to_string_lossy().into_owned()
        };
        entries.map(name).filter(|name| name != "journal").collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.1.borrow_mut().clear();
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Nanoseconds of the wall clock: enough chance for a delay or a name.
pub fn rand() -> u32 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().subsec_nanos()
}

/// Starts a load in this process.
pub fn start(
    text: &str,
    scratch: &Scratch,
    containments: &[Containment],
) -> Result<LoadSet, LoadStartError> {
    let spec = LoadSpec::parse(text).unwrap();
    // The journal undoes what it holds when it goes: it is to stay as long as the load.
    let mut journals = scratch.1.borrow_mut();
    let folder = scratch.0.join("journal").join(journals.len().to_string());
    fs::create_dir_all(folder.parent().unwrap()).unwrap();
    journals.push(Journal::in_folder(&folder).unwrap());
    let mut context = LoadContext::new(journals.last_mut().unwrap());
    context.scratch_parent.clone_from(&scratch.0);
    context.containments = containments.to_vec();
    LoadSet::start(&spec, &mut context)
}

/// The processes of loads that `host` started, found in the whole system.
pub fn processes_of(host: u32) -> Vec<u32> {
    let marker = format!("PUNCTUAL_LOAD={host}-").into_bytes();
    let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
        let marked = environment.split(|&b| b == 0).any(|one| one.starts_with(&marker));
        marked.then_some(pid)
    });
    pids.collect()
}

/// Fields of `/proc/PID/stat` behind the name, the state first.
pub fn stat(pid: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
    Some(fields.map(str::to_owned).collect())
}

pub fn parent_of(pid: u32) -> Option<u32> {
    stat(pid)?.get(1)?.parse().ok()
}

/// The command lines of what is left of a host's loads.
pub fn commands_of(host: u32) -> Vec<String> {
    let command = |pid: u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        format!("{pid}: {}", String::from_utf8_lossy(&line).replace('\0', " "))
    };
    processes_of(host).into_iter().map(command).collect()
}

/// Fails if a process of the host's loads is there after `limit`.
pub fn assert_gone(host: u32, limit: Duration, what: &str) {
    let start = Instant::now();
    while !processes_of(host).is_empty() {
        let left = commands_of(host);
        assert!(start.elapsed() < limit, "{what}: after {limit:?} there is {left:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub fn kill(pid: u32) {
    let status = Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(status.unwrap().success(), "kill -9 {pid}");
}

/// The cgroups of the loads that `host` started.
pub fn cgroups_of(host: u32) -> Vec<PathBuf> {
    fn below(folder: &Path, found: &mut Vec<PathBuf>) {
        let Ok(entries) = fs::read_dir(folder) else {
            return;
        };
        for entry in entries.flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name().to_string_lossy().starts_with("punctual-load-") {
                    found.push(entry.path());
                }
                below(&entry.path(), found);
            }
        }
    }
    let mut found = Vec::new();
    below(Path::new("/sys/fs/cgroup"), &mut found);
    let own = format!("punctual-load-{host}-");
    found.retain(|path| path.to_string_lossy().contains(&own));
    found
}

/// Samples until `done`, at most five seconds.
pub fn sample_until(
    set: &mut LoadSet,
    what: &str,
    done: impl Fn(&[PartSample]) -> bool,
) -> Vec<PartSample> {
    let start = Instant::now();
    loop {
        let samples = set.sample();
        if done(&samples) {
            return samples;
        }
        assert!(start.elapsed() < Duration::from_secs(5), "{what}: {samples:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Another process of this program that runs a load, to be killed.
pub struct Host {
    pub child: Child,
    _stdin: ChildStdin,
    /// What it said once the load worked.
    pub ready: String,
}

impl Host {
    /// Starts it and waits until the load works. `before` stands before the
    /// program, as `chrt -f 10`.
    pub fn start(before: &[&str], load: &str, containment: Containment, scratch: &Scratch) -> Self {
        let mut host = Self::spawn(before, load, containment, scratch);
        let mut stdout = BufReader::new(host.child.stdout.take().unwrap());
        stdout.read_line(&mut host.ready).unwrap();
        host
    }

    /// Starts it.
    pub fn spawn(before: &[&str], load: &str, containment: Containment, scratch: &Scratch) -> Self {
        let own = std::env::current_exe().unwrap();
        let own = own.to_str().unwrap();
        let line = [before, &[own, "__host", load, containment.name()]].concat();
        let mut child = Command::new(line[0])
            .args(&line[1..])
            .arg(&scratch.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        Self { child, _stdin: stdin, ready: String::new() }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // What `punctual restore` does for a host that was killed.
        for cgroup in cgroups_of(self.pid()) {
            let _ = fs::remove_dir(cgroup);
        }
    }
}

/// The host's side: runs until it is killed or its starter is gone.
pub fn host_main(args: &[String]) {
    let [load, containment, folder] = args else {
        panic!("__host LOAD CONTAINMENT FOLDER");
    };
    let scratch = Scratch(folder.into(), RefCell::default());
    let containment = Containment::from_name(containment).unwrap();
    let set = start(load, &scratch, &[containment]);
    std::mem::forget(scratch);
    match set {
        Ok(set) => {
            println!("ready");
            let _ = std::io::stdin().read(&mut [0]);
            drop(set);
        }
        Err(error) => println!("{error}"),
    }
}

/// Counters of a part by name.
pub fn counters(set: &[punctual_core::schema::LoadWork], load: &str) -> BTreeMap<String, u64> {
    let work = set.iter().find(|work| work.load == load).unwrap();
    let counter = |c: &punctual_core::schema::WorkCounter| (c.name.clone(), c.total);
    work.counters.iter().map(counter).collect()
}
