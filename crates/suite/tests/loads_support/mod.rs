//! What the tests of the loads look at: processes, folders, a host that can be killed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use punctual_harness::{Folder, until};
use punctual_suite::harness::Containment;
use punctual_suite::harness::context::{LoadContext, PartSample};
use punctual_suite::harness::set::LoadSet;
use punctual_suite::harness::spec::LoadSpec;
use punctual_suite::knobs::Journal;

/// A folder of a test with the journals of what it started, which are undone first.
pub struct Scratch {
    journals: RefCell<Vec<Journal>>,
    folder: Folder,
}

impl Scratch {
    pub fn new(name: &str) -> Self {
        Self { journals: RefCell::default(), folder: Folder::new(name) }
    }

    pub fn path(&self) -> &Path {
        self.folder.root()
    }

    /// Names of what is in it.
    pub fn entries(&self) -> Vec<String> {
        self.folder.entries().into_iter().filter(|name| name != "journal").collect()
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
) -> Result<LoadSet, String> {
    // The journal undoes what it holds when it goes: it is to stay as long as the load.
    let mut journals = scratch.journals.borrow_mut();
    let folder = scratch.path().join("journal").join(journals.len().to_string());
    fs::create_dir_all(folder.parent().unwrap()).unwrap();
    journals.push(Journal::in_folder(&folder).unwrap());
    start_in(text, scratch.path(), journals.last_mut().unwrap(), containments)
}

/// Starts a load with the rights that there are.
pub fn begin(text: &str, scratch: &Scratch) -> LoadSet {
    let containments = [Containment::PidNamespace, Containment::Subreaper];
    start(text, scratch, &containments).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn start_in(
    text: &str,
    folder: &Path,
    journal: &mut Journal,
    containments: &[Containment],
) -> Result<LoadSet, String> {
    let spec = LoadSpec::parse(text).map_err(|error| error.to_string())?;
    let mut context = LoadContext::new(journal);
    context.scratch_parent = folder.to_owned();
    context.containments = containments.to_vec();
    LoadSet::start(&spec, &mut context).map_err(|error| error.to_string())
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
            .arg(scratch.path())
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
            // Processes that were killed are in it until they have been reaped.
            until(Duration::from_secs(2), || fs::remove_dir(&cgroup).is_ok());
        }
    }
}

/// The host's side: runs until it is killed or its starter is gone.
pub fn host_main(args: &[String]) {
    let [load, containment, folder] = args else {
        panic!("__host LOAD CONTAINMENT FOLDER");
    };
    let containment = Containment::from_name(containment).unwrap();
    // Not undone here: this process is there to be killed.
    let mut journal = Journal::in_folder(&Path::new(folder).join("journal-of-host")).unwrap();
    let set = start_in(load, Path::new(folder), &mut journal, &[containment]);
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
