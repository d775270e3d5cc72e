//! `punctual run --replicates`: the same plan several times on this machine, judged as one.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use clap::ArgMatches;
use punctual_core::judge::ByPlan;
use punctual_core::layout::{self, RUN_JSON};
use punctual_core::plan::Plan;
use punctual_core::schema::RunState;
use punctual_core::units::{human_ns, utc};
use punctual_lab::experiment::{make_folder, warning};
use punctual_report::words;
use punctual_suite::engine::{self, Finished, Options};
use punctual_sys::folder::Folder;
use punctual_sys::signal::Signals;
use punctual_sys::system::uname;

use super::address::{address, open};
use super::between::{self, Went};
use super::draw::{Drawn, REPORT, draw};
use super::live::Live;
use super::progress::Follower;
use super::signalled::came;
use crate::ending::Ending;
use crate::output;

mod results;

use results::{Results, max_ns};

/// The same plan several times.
struct Series<'a> {
    matches: &'a ArgMatches,
    plan: &'a Plan,
    /// How each run is made, but for its folder and number.
    options: Options,
    count: u32,
    /// The folder of all runs.
    out: PathBuf,
    /// Taken between the runs; a run takes its own.
    signals: Signals,
}

/// Why a series ended before its last run did.
#[derive(Debug)]
enum Cut {
    Interrupted,
    Failed(String),
}

/// Runs a plan `count` times and tells what came of it.
///
/// # Errors
/// What is wrong with the request, or why nothing could be measured.
pub fn execute(
    matches: &ArgMatches,
    plan: &Plan,
    options: Options,
    count: u32,
) -> anyhow::Result<Ending> {
    let signals = Signals::block().context("signals")?;
    let out = options.out.clone().unwrap_or_else(|| default_folder(&options, count));
    let folder = make_folder(&out)?;
    if let Some(text) = warning(&out) {
        output::complain(&text);
    }
    let name = || folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let group = options.group.clone().or_else(name);
    let options = Options { group, ..options };
    let series = Series { matches, plan, options, count, out, signals };
    let cut = series.measure().inspect_err(|_| {
        // Nothing was measured, so let the same command be repeated. Fails if the folder is not
        // empty.
        let _ = fs::remove_dir(&folder);
    })?;
    let ending = series.tell(cut);
    // A late signal must not replace the exit status: the mask stays until the process ends.
    std::mem::forget(series.signals);
    Ok(ending)
}

/// Where a series goes unless a folder is named.
fn default_folder(options: &Options, count: u32) -> PathBuf {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now_ns = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
    let (host, kernel) = uname().map(|names| (names.node, names.release)).unwrap_or_default();
    let board = options.board_name.clone().unwrap_or(host);
    let name = format!("{}-{board}-{kernel}-x{count}", utc(now_ns));
    layout::unused(Path::new(layout::RUNS), &safe(&name), Path::exists)
}

/// A name that a shell and a page take as it is: that of a board is free text, and so is a host's.
fn safe(name: &str) -> String {
    let is_safe = |c: char| c.is_alphanumeric() || "-_.+:~@=,".contains(c);
    name.replace(|c: char| !is_safe(c), "-")
}

impl Series<'_> {
    /// The folder of a run, counted from 1. Names are as long as each other, so that they are in
    /// the order of the runs.
    fn dir(&self, number: u32) -> PathBuf {
        let width = self.count.to_string().len();
        self.out.join(format!("{number:0width$}"))
    }

    fn quiet(&self) -> bool {
        self.matches.get_flag("quiet")
    }

    fn has_json(&self) -> bool {
        self.matches.get_flag("json")
    }

    /// Makes the runs; why the series was cut short, if it was.
    ///
    /// # Errors
    /// Why the first could not be made.
    fn measure(&self) -> anyhow::Result<Option<Cut>> {
        for number in 1..=self.count {
            if let Some(cut) = self.between(number) {
                return Ok(Some(cut));
            }
            let cut = match self.run(number) {
                Ok(cut) => cut,
                Err(error) if number == 1 => return Err(error),
                Err(error) => {
                    Some(Cut::Failed(format!("run {number} of {}: {error:#}", self.count)))
                }
            };
            if cut.is_some() {
                return Ok(cut);
            }
        }
        Ok(None)
    }

    /// What is to be done before a run that is not the first.
    fn between(&self, number: u32) -> Option<Cut> {
        let command = self.matches.get_one::<String>("between").filter(|_| number > 1)?;
        let next = format!("run {number} of {}", self.count);
        if !self.quiet() {
            output::complain(&format!("before {next}: {command}"));
        }
        match between::execute(command, &self.signals) {
            Went::Well => came(&self.signals).then_some(Cut::Interrupted),
            Went::Wrong(why) => {
                Some(Cut::Failed(format!("--between \"{command}\" before {next}: {why}")))
            }
            Went::Interrupted => Some(Cut::Interrupted),
        }
    }

    fn run(&self, number: u32) -> anyhow::Result<Option<Cut>> {
        let dir = self.dir(number);
        let options = Options {
            out: Some(dir.clone()),
            replicate: Some(number - 1),
            runs: self.count - number + 1,
            ..self.options.clone()
        };
        let follower = Follower::new(self.plan, self.quiet(), Live::of(self.matches));
        let mut follower = follower.of_series(number, self.count);
        let finished = engine::run(self.plan, &options, &ByPlan, &mut follower);
        follower.end();
        let Finished { run, ended_by, not_written, .. } = finished?;
        let interrupted = ended_by.is_some() || came(&self.signals);
        let of_all = format!("run {number} of {}", self.count);
        if !self.quiet() {
            let max = max_ns(&run).map_or_else(String::new, |ns| format!(", max {}", human_ns(ns)));
            let outcome = words::labelled(words::run_outcome(&run), &words::labels(&run));
            output::complain(&format!("{of_all}: {outcome}{max}: {}", dir.display()));
        }
        let failed = match not_written {
            Some(reason) => Some(format!("{of_all}: run.json could not be written: {reason}")),
            None if run.state == RunState::Failed => {
                Some(format!("{of_all} failed (punctual show {})", dir.display()))
            }
            None => None,
        };
        Ok(if interrupted { Some(Cut::Interrupted) } else { failed.map(Cut::Failed) })
    }

    /// Judges what there is, and tells what came of it. What cannot be told is an error that
    /// the ending has.
    fn tell(&self, cut: Option<Cut>) -> Ending {
        let kept = format!("the series ends; what was measured is kept in {}", self.out.display());
        let mut results = Results::default();
        match cut {
            None => {}
            Some(Cut::Interrupted) => {
                results.interrupted = true;
                output::complain(&format!("interrupted: {kept}"));
            }
            Some(Cut::Failed(why)) => {
                output::complain(&format!("{why}: {kept}"));
                results.failed = Some(why);
            }
        }
        let begun = (1..=self.count).map(|number| self.dir(number));
        results.judge(&begun.filter(|dir| dir.join(RUN_JSON).exists()).collect::<Vec<_>>());
        let told = match self.has_json() {
            true => output::print_json(&results.document(&self.out)),
            false => results.print(),
        };
        let shown = self.report(&mut results);
        results.interrupted |= came(&self.signals);
        if let Err(error) = told.and(shown) {
            let out = self.out.display();
            output::complain(&format!("{error:#}; the runs are kept: punctual pool {out}"));
            results.failed.get_or_insert(format!("{error:#}"));
        }
        results.ending()
    }

    /// Writes the report of all runs, and says where it is, or where the runs are.
    ///
    /// # Errors
    /// It cannot be said.
    fn report(&self, results: &mut Results) -> anyhow::Result<()> {
        let path = self.out.join(REPORT);
        let mut place = self.out.display().to_string();
        if !self.matches.get_flag("no-report") && !results.is_empty() {
            match self.draw() {
                Ok(Drawn { complete: false, .. }) => {
                    results.interrupted = true;
                    output::complain(&format!(
                        "no report: interrupted; make it with: punctual report {0} -o {0}/{REPORT}",
                        self.out.display()
                    ));
                }
                Ok(drawn) => {
                    results.interrupted |= drawn.interrupted;
                    place = address(&path);
                    if self.matches.get_flag("open") && !results.interrupted {
                        open(&path);
                    }
                }
                // The measurement is valid without its report.
                Err(error) => output::complain(&format!("no report: {error:#}")),
            }
        }
        if self.has_json() { Ok(()) } else { output::print(&format!("      {place}\n")) }
    }

    /// Draws it beside its place, which it takes when it is complete.
    fn draw(&self) -> anyhow::Result<Drawn> {
        let folder = Folder::open(&self.out)?;
        let beside = format!(".{REPORT}.new");
        let file = folder.make_file_anew(&beside)?;
        let drawn = draw(&self.out, &file, &self.signals);
        if let Ok(Drawn { complete: true, .. }) = &drawn {
            folder.rename(&beside, REPORT).context("the report is drawn")?;
        } else {
            let _ = folder.remove_file(&beside);
        }
        drawn
    }
}
