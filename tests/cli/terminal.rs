//! A real terminal for tests: tmux with one window.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use punctual_harness::{text, until};

/// A terminal that is closed, with what runs in it, when this is dropped.
pub struct Terminal {
    socket: String,
}

impl Terminal {
    /// A terminal of this size in which `command` (a line for the shell) runs in `folder`.
    pub fn new(name: &str, folder: &Path, size: (u16, u16), command: &str) -> Self {
        let terminal = Self { socket: format!("punctual-test-{name}-{}", std::process::id()) };
        let (columns, rows) = (size.0.to_string(), size.1.to_string());
        let folder = folder.to_str().unwrap();
        let line = ["-f", "/dev/null", "new-session", "-d", "-x", &columns, "-y", &rows];
        let output = terminal.tmux(&[&line[..], &["-c", folder, command]].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        terminal
    }

    fn tmux(&self, line: &[&str]) -> std::process::Output {
        Command::new("tmux").args(["-L", &self.socket]).args(line).output().unwrap()
    }

    /// Types a text.
    pub fn write(&self, text: &str) {
        assert!(self.tmux(&["send-keys", "-l", "--", text]).status.success());
    }

    /// Presses keys by tmux's names, such as `Tab` or `C-c`.
    pub fn press(&self, keys: &[&str]) {
        assert!(self.tmux(&[&["send-keys"], keys].concat()).status.success());
    }

    /// What is on the screen.
    pub fn screen(&self) -> String {
        text(&self.tmux(&["capture-pane", "-p"]).stdout)
    }

    /// Waits until the screen is as wanted; fails with the screen if it never is.
    pub fn wait(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        let mut screen = String::new();
        let there = until(Duration::from_secs(60), || {
            screen = self.screen();
            wanted(&screen)
        });
        assert!(there, "{what}:\n{screen}");
        screen
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}
