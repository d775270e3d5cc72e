//! Progress of an experiment: a line for each running guest on a terminal, and a line for each
//! guest that has ended everywhere.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use punctual_core::channel::Event;
use punctual_core::units::human_ns;
use punctual_lab::experiment::{Boots, Follow, Place};
use punctual_lab::qemu::End;
use punctual_report::text::fitted;
use punctual_report::words;
use punctual_sys::signal::Signals;

use crate::output;

/// How often the guests are polled, ns.
const PAUSE_NS: u64 = 100_000_000;

/// Follows an experiment on stderr.
pub struct GuestsFollower<'a> {
    signals: &'a Signals,
    lines: MultiProgress,
    guests: BTreeMap<String, Line>,
    quiet: bool,
    guests_in_all: usize,
    ended: usize,
}

/// Says that not all of the guests have finished, if so.
pub fn interrupted(boots: &Boots, all: usize) {
    if boots.interrupted {
        output::complain(&format!(
            "interrupted: {} of {all} guests had finished; the others were terminated",
            boots.done.len()
        ));
    }
}

struct Line {
    bar: ProgressBar,
    plan_ns: u64,
    before_ns: u64,
    cell: String,
    board_ns: u64,
}

impl<'a> GuestsFollower<'a> {
    pub fn new(signals: &'a Signals, guests_in_all: usize, quiet: bool) -> Self {
        let lines = MultiProgress::new();
        if quiet {
            lines.set_draw_target(ProgressDrawTarget::hidden());
        }
        Self { signals, lines, guests: BTreeMap::new(), quiet, guests_in_all, ended: 0 }
    }

    /// There is another guest, which was not known of at first.
    pub fn one_more(&mut self) {
        self.guests_in_all += 1;
    }

    /// Says what has to be said even if there is to be no progress.
    fn insist(&self, text: &str) {
        if self.quiet {
            output::complain(text);
        }
        self.say(text);
    }

    fn say(&self, text: &str) {
        if self.quiet {
            return;
        }
        let text = fitted(text, output::error_width());
        // Without progress lines the text is printed directly.
        if self.lines.is_hidden() || self.lines.println(text.trim_end()).is_err() {
            // A stderr whose reader went away is no reason to end the guests.
            let _ = io::stderr().write_all(text.as_bytes());
        }
    }
}

impl Follow for GuestsFollower<'_> {
    fn booted(&mut self, place: &Place) {
        let bar = self.lines.add(ProgressBar::new(1));
        if let Ok(style) = ProgressStyle::with_template("{bar:20} {prefix}  {wide_msg}") {
            bar.set_style(style.progress_chars("##-"));
        }
        bar.set_prefix(place.name.clone());
        bar.set_message("booting");
        let line = Line { bar, plan_ns: 0, before_ns: 0, cell: String::new(), board_ns: 0 };
        self.guests.insert(place.name.clone(), line);
    }

    fn event(&mut self, place: &Place, event: &Event, wall: Duration) {
        let Some(line) = self.guests.get_mut(&place.name) else {
            return;
        };
        match event {
            Event::Booted { at_ns } | Event::Pausing { at_ns } => line.board_ns = *at_ns,
            Event::Settling { at_ns } => {
                line.board_ns = *at_ns;
                "the kernel comes to rest".clone_into(&mut line.cell);
            }
            Event::Started { at_ns, plan_ns, .. } => {
                line.board_ns = *at_ns;
                line.plan_ns = *plan_ns;
                line.bar.set_length(plan_ns / 1_000_000);
            }
            Event::Cell { at_ns, key, before_ns, .. } => {
                line.board_ns = *at_ns;
                line.before_ns = *before_ns;
                line.cell.clone_from(key);
                line.bar.set_position(before_ns / 1_000_000);
            }
            Event::Progress { at_ns, measured_ns, max_ns } => {
                line.board_ns = *at_ns;
                line.bar.set_position(line.before_ns.saturating_add(*measured_ns) / 1_000_000);
                if let Some(max) = max_ns {
                    line.bar.set_message(message(line, wall, &format!("max {}  ", human_ns(*max))));
                    return;
                }
            }
            Event::Trouble { .. } => {}
            Event::Ended { at_ns, .. } => {
                line.board_ns = *at_ns;
                line.bar.set_position(line.plan_ns / 1_000_000);
            }
        }
        line.bar.set_message(message(line, wall, ""));
    }

    fn ended(&mut self, place: &Place, end: &End, wall: Duration) {
        self.ended += 1;
        let board_ns = self.guests.remove(&place.name).map_or(0, |line| {
            line.bar.finish_and_clear();
            line.board_ns
        });
        let count = format!("{} of {}", self.ended, self.guests_in_all);
        if end.troubles.is_empty() {
            self.say(&format!(
                "{count}: {}: {:.1} s of the board in {:.1} s",
                place.name,
                seconds(board_ns),
                wall.as_secs_f64()
            ));
            return;
        }
        let mut text = format!("{count}: {}: FAILED: {}", place.name, end.troubles.join("; "));
        for line in &end.last_lines {
            text.push_str("\n    | ");
            text.push_str(line);
        }
        self.insist(&text);
    }

    fn note(&mut self, kernel: &str, text: &str) {
        self.say(&format!("{kernel}: {text}"));
    }

    fn warn(&mut self, kernel: &str, text: &str) {
        self.insist(&format!("{kernel}: {text}"));
    }

    fn pause(&mut self) -> bool {
        self.signals.wait(PAUSE_NS).is_some_and(|signal| signal.ends())
    }
}

/// Shows both times, because they are unrelated.
fn message(line: &Line, wall: Duration, max: &str) -> String {
    format!(
        "board {:.1} s, here {:.1} s  {max}{}",
        seconds(line.board_ns),
        wall.as_secs_f64(),
        words::key_name(&line.cell)
    )
}

#[allow(clippy::cast_precision_loss, reason = "shown to a tenth of a second")]
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
