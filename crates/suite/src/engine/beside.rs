//! Other runs of punctual on this machine at the same time.

use std::borrow::Cow;
use std::fs;
use std::path::Path;

use punctual_core::schema::Condition;
use punctual_sys::process::Pid;

use crate::probes::PROBES;

/// Name of the condition for programs.
pub(super) const ID: &str = "another-run";

/// Commands of punctual that keep the machine busy.
const BUSY: [&str; 3] = ["run", "load", "lab"];
/// Commands of `lab` that do not.
const QUIET: [&str; 3] = ["fetch", "kernels", "help"];
/// The probe whose time is simulated.
const SIMULATED: &str = "sim";

/// The condition that another run, load or lab of punctual is under way, if one is.
pub(super) fn condition(proc: &Path) -> Option<Condition> {
    let own = fs::read_link(proc.join("self")).ok()?.to_str()?.parse().ok()?;
    let others: Vec<String> = busy(proc, own).into_iter().map(|pid| pid.to_string()).collect();
    let processes = match &others[..] {
        [] => return None,
        [one] => format!("process {one}"),
        several => format!("processes {}", several.join(", ")),
    };
    Some(Condition {
        id: ID.to_owned(),
        text: format!(
            "another punctual runs at the same time ({processes}): each disturbs what the \
             other measures; run one after the other"
        ),
    })
}

/// The processes, other than `own`, that are a busy punctual by their command line.
fn busy(proc: &Path, own: Pid) -> Vec<Pid> {
    let entries = fs::read_dir(proc).into_iter().flatten().flatten();
    let mut found: Vec<Pid> = entries
        .filter_map(|entry| {
            let pid: Pid = entry.file_name().to_str()?.parse().ok()?;
            let line = fs::read(entry.path().join("cmdline")).ok()?;
            (pid != own && is_busy(&line)).then_some(pid)
        })
        .collect();
    found.sort_unstable();
    found
}

fn is_busy(command_line: &[u8]) -> bool {
    let mut words = command_line.split(|&byte| byte == 0).map(String::from_utf8_lossy);
    let program = words.next().unwrap_or_default();
    let name = Path::new(&*program).file_name().unwrap_or_default();
    let mut words = words.filter(|word| !word.starts_with('-'));
    let command = words.next().unwrap_or_default();
    let busy = match (&*command, &words.collect::<Vec<_>>()[..]) {
        ("lab", [first, ..]) => !QUIET.contains(&&**first),
        ("run", words) => !is_simulated(words),
        (command, _) => BUSY.contains(&command),
    };
    name.as_encoded_bytes().starts_with(b"punctual") && busy
}

/// Whether all probes that a run names are simulated, and it names one.
fn is_simulated(words: &[Cow<'_, str>]) -> bool {
    let name = |word: &Cow<'_, str>| word.split([':', '@']).next().map(str::to_owned);
    let is_probe = |name: &String| PROBES.iter().any(|probe| probe.name == name);
    let mut probes = words.iter().filter_map(name).filter(is_probe).peekable();
    probes.peek().is_some() && probes.all(|name| name == SIMULATED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_known_by_its_command_line() {
        let line = |text: &str| text.replace(' ', "\0").into_bytes();
        for busy in [
            "punctual run wakeup",
            "./punctual-0.1.0 run",
            "/usr/bin/punctual -q load paper -D 5",
            "punctual lab run x.toml",
            "punctual lab explain run",
            "punctual run sim -D 5 wakeup",
        ] {
            assert!(is_busy(&line(busy)), "{busy}");
        }
        for other in [
            "",
            "punctual",
            "punctual show run",
            "punctual lab -q fetch debian:rt",
            "punctual run sim -D 40s",
            "vi punctual run",
            "/proc/self/exe __load {}",
            "punctual-report run.html",
        ] {
            assert!(!is_busy(&line(other)), "{other}");
        }
    }

    #[test]
    fn other_processes_are_named_and_the_own_one_is_not() {
        let proc = std::env::temp_dir().join(format!("punctual-beside-{}", std::process::id()));
        let _ = fs::remove_dir_all(&proc);
        let process = |pid: &str, line: &str| {
            fs::create_dir_all(proc.join(pid)).unwrap();
            fs::write(proc.join(pid).join("cmdline"), line.replace(' ', "\0")).unwrap();
        };
        process("7", "punctual run wakeup");
        process("8", "punctual show x");
        std::os::unix::fs::symlink("7", proc.join("self")).unwrap();
        assert_eq!(condition(&proc), None);
        process("12", "punctual run");
        process("9", "punctual load paper");
        let found = condition(&proc).unwrap();
        assert!(found.text.contains("(processes 9, 12)"), "{found:?}");
        fs::remove_dir_all(&proc).unwrap();
        assert_eq!(condition(&proc), None);
    }
}
