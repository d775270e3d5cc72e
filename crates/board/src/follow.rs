//! Progress of a run, on a terminal.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;

use punctual_core::plan::Plan;
use punctual_core::schema::{Cell, Run};
use punctual_core::units::{SECOND_NS, exact_duration, human_ns};
use punctual_suite::engine::{Observer, Progress};
use punctual_sys::signal::Signal;

use crate::PROGRAM;

/// Follows a run with one line on stderr.
pub struct Follow {
    shows: bool,
    whole_ns: u64,
    before_ns: u64,
    /// Of the cell that is measured.
    key: String,
    measured_ns: u64,
    max_ns: Option<i64>,
}

impl Follow {
    /// For a run of this plan.
    pub fn new(plan: &Plan, quiet: bool) -> Self {
        let whole_ns = plan.cells.iter().map(|cell| plan.takes_ns(cell));
        Self {
            shows: !quiet && io::stderr().is_terminal(),
            whole_ns: whole_ns.fold(0, u64::saturating_add),
            before_ns: 0,
            key: String::new(),
            measured_ns: 0,
            max_ns: None,
        }
    }

    /// Removes the line.
    pub fn clear(&self) {
        if self.shows {
            eprint!("\r\x1b[K");
        }
    }

    fn show(&self) {
        if self.shows {
            eprint!("\r\x1b[K{}", self.line());
            let _ = io::stderr().flush();
        }
    }

    /// Put together only where somebody reads it: this is done beside the probe once a second.
    fn line(&self) -> String {
        let done = self.before_ns.saturating_add(self.measured_ns);
        let left_s = self.whole_ns.saturating_sub(done) / SECOND_NS;
        let max = self.max_ns.map_or_else(String::new, |ns| format!("  max {}", human_ns(ns)));
        let measured_s = self.measured_ns / SECOND_NS;
        let left = exact_duration(left_s * SECOND_NS);
        format!("{}  {measured_s} s{max}  {left} left", self.key)
    }

    fn say(&self, text: &str) {
        self.clear();
        eprintln!("{}: {text}", PROGRAM.name);
    }
}

impl Observer for Follow {
    fn started(&mut self, _: &Run, _: &Path, _: u64) {}

    fn warn(&mut self, text: &str) {
        self.say(text);
    }

    fn ignoring(&mut self, signals: &[Signal]) {
        let names: Vec<_> = signals.iter().map(|signal| signal.name()).collect();
        self.say(&format!("{} were ignored before the start, and end nothing", names.join(", ")));
    }

    fn cell_started(&mut self, cell: &Cell, _: usize, before_ns: u64) {
        self.before_ns = before_ns;
        self.key.clone_from(&cell.key);
        (self.measured_ns, self.max_ns) = (0, None);
        self.show();
    }

    fn progress(&mut self, progress: &Progress<'_>) {
        (self.measured_ns, self.max_ns) = (progress.measured_ns, progress.max_ns);
        self.show();
    }

    fn snapshot(&mut self) {
        self.say(&self.line());
    }

    fn cell_ended(&mut self, _: &Cell) {}
}
