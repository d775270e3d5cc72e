//! What a process leaves on the board goes when it ends, and when it is killed.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use punctual_harness::{need, refused};
use punctual_suite::knobs::{Journal, RestoreReport, remove_abandoned, restore, restore_in};

/// A folder of its own for each test, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("punctual-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::DirBuilder::new().mode(0o700).create(&path).unwrap();
        fs::write(path.join("setting"), "always [madvise] never\n").unwrap();
        Self(path.canonicalize().unwrap())
    }

    fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn setting(&self) -> String {
        fs::read_to_string(self.join("setting")).unwrap()
    }

    fn journal(&self) -> Option<PathBuf> {
        let mut entries = fs::read_dir(&self.0).unwrap().map(|e| e.unwrap().path());
        entries.find(|path| path.extension().is_some_and(|e| e == "journal"))
    }

    fn scratch(&self) -> Option<PathBuf> {
        let mut entries = fs::read_dir(&self.0).unwrap().map(|e| e.unwrap().path());
        entries.find(|path| path.is_dir())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const CHILD: &str = "PUNCTUAL_TEST_JOURNAL";

/// Not a test of its own: what the children of the tests below run. It changes
/// the setting, fills a scratch folder and waits to be killed.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(CHILD).map(PathBuf::from) else {
        return;
    };
    let mut journal = Journal::in_folder(&folder).unwrap();
    journal.setting(&folder.join("setting"), "never").unwrap();
    let scratch = journal.scratch_dir(&folder).unwrap();
    fs::create_dir(scratch.join("deep")).unwrap();
    fs::write(scratch.join("deep/file"), "left").unwrap();
    journal.semaphores(2).unwrap();
    println!("\nready");
    std::thread::sleep(std::time::Duration::from_secs(60));
}

/// The key of the System V semaphores in a text, and whether they are there.
fn semaphores(text: &str, mark: &str) -> (String, bool) {
    let (_, rest) = text.split_once(mark).unwrap();
    let key: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == '-').collect();
    let all = fs::read_to_string("/proc/sysvipc/sem").unwrap();
    let there = all.lines().any(|line| line.split_whitespace().next() == Some(&key));
    (key, there)
}

/// A child that has left everything and now waits.
fn start(folder: &Folder) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(CHILD, &folder.0)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "ready"));
    child
}

#[test]
fn a_killed_process_is_cleaned_up_after() {
    let folder = Folder::new("killed");
    let mut child = start(&folder);
    assert_eq!(folder.setting(), "never");

    let alive = restore_in(&folder.0, false).unwrap();
    assert_eq!((alive.done.len(), alive.failed.len()), (0, 0), "{alive:?}");
    assert!(alive.kept[0].contains("still runs"), "{alive:?}");
    assert_eq!(folder.setting(), "never");

    child.kill().unwrap();
    // It is dead and not yet waited for: the longest time in which a pid could
    // be mistaken for a living process.
    let pid = child.id();
    while !fs::read_to_string(format!("/proc/{pid}/stat")).unwrap().contains(") Z ") {
        std::thread::yield_now();
    }
    let dry = restore_in(&folder.0, true).unwrap();
    assert_eq!(folder.setting(), "never");
    assert!(folder.scratch().is_some());
    let of_key = "remove the System V semaphores of key ";
    assert!(semaphores(&dry.done.join("\n"), of_key).1, "{dry:?}");

    let report = restore_in(&folder.0, false).unwrap();
    assert_eq!(dry, report);
    assert_eq!(report.done.len(), 3, "{report:?}");
    assert!(!semaphores(&dry.done.join("\n"), of_key).1);
    assert!(report.failed.is_empty() && report.kept.is_empty());
    // The word that was in force; a real file of this kind lists all of them again.
    assert_eq!(folder.setting(), "madvise");
    assert_eq!((folder.scratch(), folder.journal()), (None, None));
    child.wait().unwrap();
}

#[test]
fn garbage_is_reported_and_the_rest_undone() {
    let folder = Folder::new("garbage");
    let mut child = start(&folder);
    child.kill().unwrap();
    child.wait().unwrap();
    let path = folder.journal().unwrap();
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}\x01garbage\n{{\"kind\":\"setting\"")).unwrap();

    let report = restore_in(&folder.0, false).unwrap();
    assert_eq!(report.failed.len(), 2, "{report:?}");
    assert!(report.failed[0].contains("line 5"), "{report:?}");
    assert_eq!(folder.setting(), "madvise");
    assert_eq!((folder.scratch(), folder.journal()), (None, None));
}

/// A process as the first line of its journal and its markers name it.
fn owner(pid: u32, start: u64, boot: &str) -> String {
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap();
    let namespace = namespace.display();
    let machine = this_machine();
    format!(
        "{{\"pid\":{pid},\"start\":{start},\"boot_id\":\"{boot}\",\
         \"pid_namespace\":\"{namespace}\",\"machine\":\"{machine}\"}}"
    )
}

/// This machine as markers name it; empty if it has no identity.
fn this_machine() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder = Folder::new(&format!("machine-{number}"));
    let mut journal = Journal::in_folder(&folder.0).unwrap();
    let marker = journal.scratch_dir(&folder.0).unwrap().join(".punctual");
    let marker: serde_json::Value = serde_json::from_slice(&fs::read(marker).unwrap()).unwrap();
    marker["machine"].as_str().unwrap().to_owned()
}

/// Why leftovers of an earlier boot cannot be told from those of another machine here.
const NO_IDENTITY: &str = "this machine has no identity (/etc/machine-id)";

fn this_boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim().to_owned()
}

/// A process that is gone, and was there since this boot.
fn dead() -> String {
    owner(1, 99_999_999, &this_boot())
}

/// A journal of a process that is gone, with these entries.
fn journal_of_the_dead(folder: &Folder, entries: &str) {
    let owner = dead();
    fs::write(folder.join("1-99999999.journal"), format!("{owner}\n{entries}")).unwrap();
}

fn scratch_entry(path: &Path) -> String {
    format!("{{\"kind\":\"scratch\",\"path\":\"{}\"}}\n", path.display())
}

#[test]
fn no_folder_but_a_marked_one_is_removed() {
    let folder = Folder::new("tricks");
    let precious = folder.join("precious");
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join(".punctual"), dead()).unwrap();
    let foreign = folder.join("punctual-load-1-0");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join(".punctual"), owner(2, 5, &this_boot())).unwrap();
    let link = folder.join("punctual-load-1-1");
    symlink(&precious, &link).unwrap();
    let dotted = folder.join("punctual-load-1-0/../precious");
    let cgroup = "{\"kind\":\"cgroup\",\"path\":\"/tmp\"}\n";
    let paths = [&precious, &foreign, &link, &dotted];
    let entries: String = paths.iter().map(|path| scratch_entry(path)).collect();
    journal_of_the_dead(&folder, &(entries + cgroup));

    let report = restore_in(&folder.0, false).unwrap();
    assert_eq!(report.kept.len(), 5, "{report:?}");
    assert!(report.done.is_empty() && report.failed.is_empty());
    assert!(precious.join(".punctual").exists() && foreign.join(".punctual").exists());
    assert_eq!(folder.journal(), None, "to try again would change nothing");
}

#[test]
fn after_what_cannot_be_undone_the_rest_is_and_it_can_be_tried_again() {
    let folder = Folder::new("hindered");
    let path = |number: u32| folder.join(&format!("punctual-load-1-{number}"));
    for number in 0..2 {
        fs::create_dir(path(number)).unwrap();
        fs::write(path(number).join(".punctual"), dead()).unwrap();
    }
    // No user may empty what the kernel mounts.
    let setting = "{\"kind\":\"setting\",\"path\":\"/proc/version\",\"old\":\"x\"}\n";
    let entries = scratch_entry(&path(0)) + setting + &scratch_entry(&path(1));
    journal_of_the_dead(&folder, &entries);
    for done in [2, 0] {
        let report = restore_in(&folder.0, false).unwrap();
        assert_eq!((report.done.len(), report.failed.len()), (done, 1), "{report:?}");
        assert!(report.failed[0].contains("/proc/version"), "{report:?}");
        assert!(!path(0).exists() && !path(1).exists());
        assert!(folder.journal().is_some());
    }
}

#[test]
fn marked_folders_without_a_journal_go_when_their_process_is_gone() {
    if this_machine().is_empty() {
        return refused(NO_IDENTITY);
    }
    let folder = Folder::new("power-cut");
    let make = |name: &str, marker: &str| {
        let path = folder.join(name);
        fs::create_dir(&path).unwrap();
        fs::write(path.join("original"), "left").unwrap();
        fs::write(path.join(".punctual"), marker).unwrap();
        path
    };
    let this = fs::read_to_string("/proc/self/stat").unwrap();
    let start = this.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap();
    let living = owner(std::process::id(), start.parse().unwrap(), &this_boot());
    let before_reboot = owner(std::process::id(), start.parse().unwrap(), "earlier");
    let elsewhere = dead().replace("pid:[", "pid:[1");
    let gone = [make("punctual-load-1-0", &dead()), make("punctual-load-2-0", &before_reboot)];
    let left = [
        make("punctual-load-3-0", &living),
        make("punctual-load-4-0", &elsewhere),
        make("punctual-load-5-0", "garbage"),
        make("precious", &dead()),
    ];
    for dry_run in [true, false] {
        let mut report = RestoreReport::default();
        remove_abandoned(&folder.0, dry_run, &mut report);
        let expected: Vec<_> =
            gone.iter().map(|path| format!("remove {}", path.display())).collect();
        assert_eq!((&report.done, report.failed.len()), (&expected, 0), "{report:?}");
        assert!(report.kept.len() == 1 && report.kept[0].contains("another PID namespace"));
        assert!(gone.iter().all(|path| path.exists() == dry_run));
    }
    assert!(left.iter().all(|path| path.join("original").exists()));
}

#[test]
fn a_reboot_undoes_settings_by_itself() {
    if this_machine().is_empty() {
        return refused(NO_IDENTITY);
    }
    let folder = Folder::new("reboot");
    let scratch = folder.join("punctual-load-7-0");
    fs::create_dir(&scratch).unwrap();
    fs::write(scratch.join(".punctual"), owner(7, 8, "earlier")).unwrap();
    let setting = folder.join("setting");
    fs::write(
        folder.join("7-8.journal"),
        format!(
            "{}\n{{\"kind\":\"setting\",\"path\":\"{}\",\"old\":\"always\"}}\n{}",
            owner(7, 8, "earlier"),
            setting.display(),
            scratch_entry(&scratch)
        ),
    )
    .unwrap();
    let report = restore_in(&folder.0, false).unwrap();
    assert_eq!(report.done.len(), 1, "{report:?}");
    assert!(!scratch.exists());
    assert_eq!(folder.setting(), "always [madvise] never\n");
    assert_eq!(folder.journal(), None);
}

#[test]
fn folders_that_others_can_write_are_refused() {
    let folder = Folder::new("open");
    fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o777)).unwrap();
    let error = restore_in(&folder.0, false).unwrap_err().to_string();
    assert!(error.contains("open to other users"), "{error}");
    let mut journal = Journal::in_folder(&folder.0).unwrap();
    journal.setting(&folder.join("setting"), "never").unwrap_err();
    assert_eq!(folder.setting(), "always [madvise] never\n");

    let link = folder.join("link");
    symlink(&folder.0, &link).unwrap();
    restore_in(&link, false).unwrap_err();
}

#[test]
fn the_end_of_a_journal_undoes_it() {
    let folder = Folder::new("end");
    let mut journal = Journal::in_folder(&folder.0).unwrap();
    assert_eq!(folder.journal(), None, "no change, no file");
    let first = journal.scratch_dir(&folder.0).unwrap();
    let second = journal.scratch_dir(&folder.0).unwrap();
    assert_ne!(first, second);
    journal.setting(&folder.join("setting"), "always").unwrap();
    journal.setting(&folder.join("setting"), "never").unwrap();
    assert!(journal.setting(&folder.join("absent"), "1").is_err());
    fs::remove_dir_all(&second).unwrap();
    journal.semaphores(1).unwrap();
    let lines = fs::read_to_string(folder.journal().unwrap()).unwrap();
    assert!(semaphores(&lines, "\"key\":").1);
    assert_eq!(journal.undo(), Vec::<String>::new());
    assert!(!semaphores(&lines, "\"key\":").1);
    assert_eq!(folder.setting(), "madvise", "the oldest value is back");
    assert_eq!((folder.scratch(), folder.journal()), (None, None));
}

/// Where cgroups can be made, if anywhere.
fn cgroup_root() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let line = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
    let root = PathBuf::from(line.split(' ').nth(4)?);
    let probe = root.join(format!("punctual-probe-{}", std::process::id()));
    fs::create_dir(&probe).ok()?;
    fs::remove_dir(&probe).unwrap();
    Some(root)
}

#[test]
fn a_cgroup_goes_with_all_that_is_in_it() {
    let folder = Folder::new("cgroup");
    let mut journal = Journal::in_folder(&folder.0).unwrap();
    let unnamed = journal.cgroup_dir(&folder.join("other")).unwrap_err();
    assert_eq!(unnamed.kind(), std::io::ErrorKind::InvalidInput);
    let root = need!(cgroup_root().ok_or("no cgroup of version 2 can be made"));
    let group = root.join(format!("punctual-test-{}", std::process::id()));
    journal.cgroup_dir(&group).unwrap();
    fs::create_dir(group.join("below")).unwrap();
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    fs::write(group.join("below/cgroup.procs"), child.id().to_string()).unwrap();
    let waiter = std::thread::spawn(move || child.wait().unwrap());
    assert_eq!(journal.undo(), Vec::<String>::new());
    assert!(!group.exists());
    assert!(!waiter.join().unwrap().success());
}

#[test]
fn a_journal_in_the_usual_place_is_found_and_undone_by_a_panic_of_its_process() {
    let folder = Folder::new("usual");
    let mut journal = Journal::new().unwrap();
    let scratch = journal.scratch_dir(&folder.0).unwrap();
    let report = restore(true);
    let this = format!("process {} still runs", std::process::id());
    assert!(report.kept.iter().any(|text| text.contains(&this)), "{report:?}");
    assert!(scratch.exists());
    let panics = std::panic::AssertUnwindSafe(move || {
        let _journal = journal;
        panic!("while settings are changed");
    });
    assert!(std::panic::catch_unwind(panics).is_err());
    assert!(!scratch.exists());
    let report = restore(true);
    assert!(!report.kept.iter().any(|text| text.contains(&this)));
}
