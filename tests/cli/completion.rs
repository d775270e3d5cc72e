//! Completion in real shells, in a real terminal.

use std::path::Path;
use std::time::Duration;

use punctual_harness::{need, programs};

use crate::support::Scratch;
use crate::terminal::Terminal;

/// What is typed before the tabulator, and what is there afterwards.
const CASES: [(&str, &str); 6] = [
    ("punctual run --load none,hack", "none,hackbench"),
    ("punctual run wak", "run wakeup"),
    ("punctual run wakeup:timer=pos", "wakeup:timer=posix"),
    ("punctual run --plan koo", "--plan koolwal-geode"),
    ("punctual show mine-of", "show mine-of-today"),
    ("punctual run --dead", "run --deadline"),
];

/// Checks all cases in the shell `program`. `setup` prepares it: `BIN` is the folder of
/// punctual. `clear` are the keys that empty the line.
fn check(program: &str, options: &str, setup: &str, clear: &[&str]) {
    let scratch = Scratch::new(&format!("complete-{program}"));
    let made = scratch.punctual("run sim -D 1 --no-report --out punctual-runs/mine-of-today");
    assert_eq!(made.status.code(), Some(0));
    let bin = Path::new(env!("CARGO_BIN_EXE_punctual")).parent().unwrap();
    let line = format!("HOME={} {program} {options}", scratch.path("").display());
    let terminal = Terminal::new(program, &scratch.path(""), (120, 30), &line);
    terminal.write(&setup.replace("BIN", bin.to_str().unwrap()));
    terminal.press(&["Enter"]);
    // The answer is not in the line that asks for it.
    terminal.write("echo rea'dy'");
    terminal.press(&["Enter"]);
    terminal.wait("the shell is ready", |screen| screen.contains("\nready"));
    for (typed, completed) in CASES {
        terminal.write(typed);
        terminal.wait(typed, |screen| screen.contains(typed));
        terminal.press(&["Tab"]);
        terminal.wait(&format!("{program}: {typed}"), |screen| screen.contains(completed));
        for key in clear {
            terminal.press(&[key]);
            if *key == "Escape" {
                // With a key right behind it, it would be another key.
                std::thread::sleep(Duration::from_millis(300));
            }
        }
        terminal.wait("an empty line", |screen| !screen.contains(typed));
    }
}

#[test]
fn names_complete_in_bash() {
    need!(programs(&["tmux", "bash"]));
    // A history is written when the shell ends, perhaps into the folder while that is removed.
    let setup = "unset HISTFILE; PATH=BIN:$PATH; source <(punctual completions bash); \
                 bind 'set bell-style none'";
    check("bash", "--norc --noprofile", setup, &["C-u", "C-l"]);
}

#[test]
fn names_complete_in_zsh() {
    need!(programs(&["tmux", "zsh"]));
    let setup = "PATH=BIN:$PATH; autoload -U compinit; compinit -D -u; \
                 source <(punctual completions zsh)";
    check("zsh", "-f", setup, &["C-u", "C-l"]);
}

#[test]
fn names_complete_in_fish() {
    need!(programs(&["tmux", "fish"]));
    let setup = "set -x PATH BIN $PATH; punctual completions fish | source";
    check("fish", "--no-config", setup, &["C-u", "C-l"]);
}

#[test]
fn names_complete_in_elvish() {
    need!(programs(&["tmux", "elvish"]));
    let setup = "set paths = [BIN $@paths]; eval (punctual completions elvish | slurp)";
    check("elvish", "-norc", setup, &["Escape", "C-u"]);
}
