//! Progress of a run: the progress line, the table of threads, and the snapshot that SIGUSR1
//! asks for.

use std::io::{self, Write};
use std::path::Path;
use std::process;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use punctual_core::plan::Plan;
use punctual_core::schema::{Cell, Run};
use punctual_core::units::{SECOND_NS, grouped, human_ns};
use punctual_report::text::fitted;
use punctual_report::words;
use punctual_suite::engine::{Observer, Progress, ThreadProgress};
use punctual_sys::signal::Signal;

use super::live::{self, Live};
use crate::output;

const LINE: &str = "{bar:20} cell {wide_msg}";

/// The same below the table of threads.
const LINE_BELOW_TABLE: &str = "{prefix}\n{bar:20} cell {wide_msg}";

/// Follows a run on stderr: a line, and a table of the threads above it if there is room; both
/// are rewritten, only on a terminal.
pub struct Follower {
    bar: ProgressBar,
    quiet: bool,
    live: Live,
    /// Which run of a series it is, from 1, and how many there are.
    run: (u32, u32),
    /// Whether the table is shown.
    has_table: bool,
    /// Which cell it is, such as `1 of 2`.
    number: String,
    interval_ns: Option<u64>,
    /// The longest time that each cell takes, warm-up included, ns.
    cells: Vec<u64>,
    warmup_ns: u64,
    is_cost: bool,
    before_ns: u64,
    key: String,
    measured_ns: u64,
    threads: Vec<ThreadProgress>,
}

impl Follower {
    pub fn new(plan: &Plan, quiet: bool, live: Live) -> Self {
        let target =
            if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(None, target);
        let follower = Self {
            bar,
            quiet,
            live,
            run: (1, 1),
            has_table: false,
            number: String::new(),
            interval_ns: None,
            cells: Vec::new(),
            warmup_ns: plan.warmup_ns,
            is_cost: false,
            before_ns: 0,
            key: String::new(),
            measured_ns: 0,
            threads: Vec::new(),
        };
        follower.set_style(LINE);
        follower
    }

    /// The same of one run of a series, counted from 1: times are those of all runs, and what is
    /// said before the first is not said again.
    pub fn of_series(self, run: u32, runs: u32) -> Self {
        Self { run: (run, runs), ..self }
    }

    /// The longest time that all runs take, ns, and that those before this one took at most.
    fn all_runs(&self) -> (u64, u64) {
        let (run, runs) = self.run;
        let times = |count: u32| sum(&self.cells).saturating_mul(u64::from(count));
        (times(runs), times(run.saturating_sub(1)))
    }

    /// Whether what holds for all runs of a series was said before.
    fn was_said(&self) -> bool {
        self.run.0 > 1
    }

    fn set_style(&self, template: &str) {
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style.progress_chars("##-"));
        }
    }

    /// Shows the table of threads if there is one for this terminal, which can be resized.
    fn draw_table(&mut self) {
        let size = live::size();
        let table = size.and_then(|size| {
            live::table(&self.key, self.interval_ns, &self.threads, self.live, size)
        });
        if table.is_some() != self.has_table {
            self.has_table = table.is_some();
            self.set_style(if self.has_table { LINE_BELOW_TABLE } else { LINE });
        }
        self.bar.set_prefix(table.unwrap_or_default());
    }

    /// Removes the line before the summary is printed.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }

    fn draw(&mut self, max_ns: Option<i64>) {
        // If nobody sees the line, do not spend the collector's time on it.
        if self.bar.is_hidden() {
            return;
        }
        self.draw_table();
        let (total, earlier) = self.all_runs();
        let warmup_ns = if self.is_cost { 0 } else { self.warmup_ns };
        let done = sum(&[earlier, self.before_ns, warmup_ns, self.measured_ns]).min(total);
        self.bar.set_position(done / 1_000_000);
        let max = max_ns.map_or_else(String::new, |max| format!("max {}  ", human_ns(max)));
        self.bar.set_message(format!(
            "{}  {} of {}, {} left  {max}{}",
            self.number,
            clock_face(done),
            clock_face(total),
            clock_face(total - done),
            words::key_name(&self.key)
        ));
    }
}

impl Observer for Follower {
    fn started(&mut self, run: &Run, _dir: &Path, _plan_ns: u64) {
        let takes = |(cell, planned): (&Cell, &punctual_core::plan::CellPlan)| {
            let samples =
                planned.samples.zip(cell.interval_ns()).map(|(n, ns)| n.saturating_mul(ns));
            let most = run.plan.takes_ns(planned);
            samples.map_or(most, |ns| most.min(ns.saturating_add(self.warmup_ns)))
        };
        self.cells = run.cells.iter().zip(&run.plan.cells).map(takes).collect();
        self.bar.set_length(self.all_runs().0 / 1_000_000);
        for text in punctual_core::verdict::ahead(run) {
            self.takes(&text);
        }
    }

    fn warn(&mut self, text: &str) {
        self.bar.suspend(|| output::complain(text));
    }

    fn takes(&mut self, text: &str) {
        if !self.quiet && !self.was_said() {
            self.bar.suspend(|| output::complain(text));
        }
    }

    fn ignoring(&mut self, signals: &[Signal]) {
        if !self.quiet && !self.was_said() {
            let text = ignored(signals, process::id());
            self.bar.suspend(|| output::complain(&text));
        }
    }

    fn cell_started(&mut self, cell: &Cell, number: usize, _before_ns: u64) {
        self.before_ns = sum(&self.cells[..number.min(self.cells.len())]);
        self.key.clone_from(&cell.key);
        self.measured_ns = 0;
        self.interval_ns = cell.interval_ns();
        self.threads.clear();
        self.draw_table();
        self.number = numbered(number, self.cells.len(), self.run);
        self.is_cost = cell.cost().is_some();
        if self.is_cost {
            // It may be over before there is any other progress.
            return self.draw(None);
        }
        self.bar.set_position(self.all_runs().1.saturating_add(self.before_ns) / 1_000_000);
        self.bar.set_message(format!("{}  warm-up  {}", self.number, words::key_name(&self.key)));
    }

    fn progress(&mut self, progress: &Progress<'_>) {
        self.measured_ns = progress.measured_ns;
        self.threads.clear();
        self.threads.extend_from_slice(progress.threads);
        self.draw(progress.max_ns);
    }

    fn snapshot(&mut self) {
        let text = snapshot(&self.key, self.measured_ns, &self.threads);
        let text = fitted(&text, output::error_width());
        // If nobody reads stderr any more, nobody waits for a snapshot.
        let _ = self.bar.suspend(|| io::stderr().write_all(text.as_bytes()));
    }

    fn cell_ended(&mut self, _cell: &Cell) {}

    fn ending_at_once(&mut self, dir: &Path) {
        self.bar.finish_and_clear();
        let dir = dir.display();
        output::complain(&format!("ended at once; kept: {dir} (punctual show {dir})"));
    }
}

fn sum(times_ns: &[u64]) -> u64 {
    times_ns.iter().fold(0, |sum, ns| sum.saturating_add(*ns))
}

/// Which cell it is, counted from 0, and which run of a series, counted from 1.
fn numbered(cell: usize, cells: usize, (run, runs): (u32, u32)) -> String {
    let of_runs = if runs > 1 { format!(", run {run} of {runs}") } else { String::new() };
    format!("{} of {cells}{of_runs}", cell + 1)
}

/// Which signals do not end the run, and how to end it: SIGTERM always does.
fn ignored(signals: &[Signal], pid: u32) -> String {
    let names: Vec<_> = signals.iter().map(|signal| signal.name()).collect();
    let by = if signals.contains(&Signal::HangUp) { " (nohup)" } else { "" };
    format!("{} ignored{by}; kill {pid} ends the run", names.join(", "))
}

/// Hours, minutes and seconds, such as `1:02:05` or `0:07`.
fn clock_face(ns: u64) -> String {
    let seconds = ns / SECOND_NS;
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes}:{seconds:02}")
    }
}

/// One line per thread, from the finished blocks.
fn snapshot(key: &str, measured_ns: u64, threads: &[ThreadProgress]) -> String {
    let mut text = format!("{}: {} measured\n", words::key_name(key), words::instant(measured_ns));
    for (number, ThreadProgress { moments, .. }) in threads.iter().enumerate() {
        if moments.count == 0 {
            text.push_str(&format!("  thread {number}: no samples yet\n"));
            continue;
        }
        text.push_str(&format!(
            "  thread {number}: max {}  avg {}  min {}  {} samples  {} missed\n",
            human_ns(moments.max),
            moments.mean().map_or_else(String::new, words::mean_ns),
            human_ns(moments.min),
            grouped(moments.count),
            grouped(moments.missed),
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::block::Moments;

    fn of(moments: Moments) -> ThreadProgress {
        let scheduling = "fifo 80".to_owned();
        ThreadProgress { cpu: Some(0), scheduling, moments, last: moments }
    }

    #[test]
    fn what_does_not_end_the_run_is_said_in_one_line() {
        assert_eq!(
            ignored(&[Signal::Interrupt, Signal::HangUp], 4711),
            "SIGINT, SIGHUP ignored (nohup); kill 4711 ends the run"
        );
    }

    #[test]
    fn the_progress_of_a_series_is_that_of_all_its_runs() {
        assert_eq!(numbered(0, 2, (1, 1)), "1 of 2");
        assert_eq!(numbered(1, 2, (2, 5)), "2 of 2, run 2 of 5");
        let mut one = Follower::new(&Plan::new(""), true, Live::Never);
        one.cells = vec![30 * SECOND_NS, 10 * SECOND_NS];
        assert_eq!(one.all_runs(), (40 * SECOND_NS, 0));
        assert!(!one.was_said());
        let third = one.of_series(3, 5);
        assert_eq!(third.all_runs(), (200 * SECOND_NS, 80 * SECOND_NS));
        assert!(third.was_said());
    }

    #[test]
    fn a_snapshot_has_a_line_for_each_thread() {
        let measured = Moments {
            count: 2_000,
            missed: 3,
            min: 2_000,
            max: 81_500,
            sum: 20_000_000,
            ..Moments::EMPTY
        };
        assert_eq!(
            snapshot("wakeup @ none @ 10s", 2_000_000_000, &[measured, Moments::EMPTY].map(of)),
            "wakeup @ idle @ 10s: 2.000 s measured\n  \
             thread 0: max 81.5 us  avg 10.0 us  min 2.0 us  2,000 samples  3 missed\n  \
             thread 1: no samples yet\n"
        );
    }
}
