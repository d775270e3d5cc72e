//! Progress of a search: a line for each try that ended, and on a terminal how far it is.

use std::cell::Cell;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use punctual_core::search::Try;
use punctual_core::units::human_ns;
use punctual_report::text::fitted;
use punctual_report::words;

use crate::output;

/// Shows how far a search is, on stderr.
pub struct Progress {
    bar: ProgressBar,
    quiet: bool,
    /// Tries that there may be.
    most: usize,
    ended: Cell<usize>,
    begin: Instant,
}

impl Progress {
    pub fn new(most: usize, quiet: bool) -> Self {
        let bar = ProgressBar::new(most as u64);
        if quiet {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        if let Ok(style) = ProgressStyle::with_template("{bar:20} {wide_msg}") {
            bar.set_style(style.progress_chars("##-"));
        }
        Self { bar, quiet, most, ended: Cell::new(0), begin: Instant::now() }
    }

    /// A try is here already, or has ended; `done` of all are known by now.
    pub fn known(&self, done: usize, best: Option<(u64, &str)>) {
        self.bar.set_position(done.min(self.most) as u64);
        let best = best.map_or_else(String::new, |(score, load)| {
            format!(", best {} under {load}", words_of(score))
        });
        let left = self.left(done).map_or_else(String::new, |left| {
            format!(", at most {} min left", left.as_secs().div_ceil(60))
        });
        self.bar.set_message(format!("{done} of {} tries{best}{left}", self.most));
    }

    /// A guest has ended.
    pub fn ended(&self, done: usize, tried: &Try) {
        self.ended.set(self.ended.get() + 1);
        let result = match (&tried.failed, tried.longest_ns) {
            (Some(why), _) => format!("nothing: {why}"),
            (None, longest) => words_of(longest.unwrap_or(0)),
        };
        let of = if done > self.most { String::new() } else { format!(" of {}", self.most) };
        let Try { load, kernel, seed, .. } = tried;
        self.say(&format!("{done}{of}: {load} on {kernel}, seed {seed}: {result}"));
    }

    /// Something takes long, or is not as it should be.
    pub fn say(&self, text: &str) {
        if self.quiet {
            return;
        }
        let text = fitted(&words::clean(text), output::error_width());
        if self.bar.is_hidden() {
            // A stderr whose reader went away is no reason to end the guests.
            let _ = io::stderr().write_all(text.as_bytes());
        } else {
            self.bar.println(text.trim_end());
        }
    }

    /// How much longer it takes if all of its tries are needed, from those of this time.
    fn left(&self, done: usize) -> Option<Duration> {
        let ended = u32::try_from(self.ended.get()).ok().filter(|ended| *ended > 0)?;
        let left = u32::try_from(self.most.saturating_sub(done)).ok()?;
        Some(self.begin.elapsed() / ended * left)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn words_of(ns: u64) -> String {
    human_ns(i64::try_from(ns).unwrap_or(i64::MAX))
}
