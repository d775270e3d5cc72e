//! `punctual lab explain`: why samples of a run were late, to the last instruction.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail, ensure};
use clap::ArgMatches;
use punctual_core::explanation::{Explained, ExplainedCell, Explanation, Unexplained};
use punctual_core::release::version_key;
use punctual_core::run::LoadedRun;
use punctual_lab::microscope::{self, Repeat, Selection, Wanted};
use punctual_report::{explanation, words};
use punctual_sys::signal::Signals;

use super::again::{Again, again, identical};
use super::folder::working;
use super::progress::GuestsFollower;
use crate::commands::address::address;
use crate::commands::report::write_figures;
use crate::ending::{Ending, GuestFailure};
use crate::temporary::Temporary;
use crate::{files, output, store};

pub fn execute(matches: &ArgMatches) -> anyhow::Result<Ending> {
    let names: Vec<&String> = matches.get_many("runs").into_iter().flatten().collect();
    let against = matches.get_one::<String>("against");
    ensure!(
        against.is_none() || names.len() == 1,
        "--against compares one run with another: name one run"
    );
    let writes = ["output", "perfetto", "figures"].iter().any(|id| matches.contains_id(id));
    ensure!(
        !writes || (names.len() == 1 && against.is_none()),
        "-o, --perfetto and --figures write about one run: name one, without --against"
    );
    let mut dirs = Vec::new();
    for name in names.into_iter().chain(against) {
        dirs.push(store::find_one(name)?);
    }
    // All of them before the first boot.
    let mut subjects = Vec::new();
    for dir in dirs {
        let subject = Subject::of(&dir, matches);
        subjects.push(subject.with_context(|| dir.display().to_string())?);
    }
    let mut explanations = Vec::new();
    for subject in &subjects {
        match explain(subject, matches).with_context(|| subject.dir.display().to_string())? {
            Some(explanation) => explanations.push(explanation),
            None => return Ok(Ending::Interrupted),
        }
    }
    if let Some(error) = nothing(&explanations) {
        return Err(error);
    }
    write(&explanations, against.is_some(), matches)?;
    let cells = || explanations.iter().flat_map(|explanation| &explanation.cells);
    Ok(if cells().all(|cell| cell.unexplained.is_empty()) { Ending::Done } else { Ending::Failed })
}

/// Why not one sample was explained.
fn nothing(all: &[Explanation]) -> Option<anyhow::Error> {
    let cells = || all.iter().flat_map(|one| one.cells.iter().map(move |cell| (one, cell)));
    if cells().any(|(_, cell)| !cell.samples.is_empty()) {
        return None;
    }
    let first = |(one, cell): (&Explanation, &ExplainedCell)| {
        let why = &cell.unexplained.first()?.why;
        Some(anyhow!("{}: {}: {why}", one.run, words::key_name(&cell.key)))
    };
    cells().find_map(first)
}

/// A run, what is wanted of it, and the guest that repeats it.
struct Subject {
    dir: PathBuf,
    run: LoadedRun,
    wanted: Vec<Wanted>,
    again: Again,
}

impl Subject {
    fn of(dir: &Path, matches: &ArgMatches) -> anyhow::Result<Self> {
        let run = store::load(dir)?;
        let cell = matches.get_one::<String>("cell").map(String::as_str);
        let selection = match matches.get_many("at") {
            Some(times) => Selection::At(times.copied().collect()),
            None => Selection::Latest {
                most: usize::try_from(matches.get_one::<u32>("worst").copied().unwrap_or(3))?,
                above_ns: matches.get_one::<u64>("above").copied(),
            },
        };
        // What can be repeated at all is said first.
        let again = again(&run.run, dir, matches)?;
        let wanted = microscope::wanted(&run, cell, &selection)?;
        ensure!(!wanted.is_empty(), "there is no sample to explain");
        Ok(Self { dir: dir.to_owned(), run, wanted, again })
    }
}

/// Repeats the run, watched; `None` if that was interrupted.
fn explain(subject: &Subject, matches: &ArgMatches) -> anyhow::Result<Option<Explanation>> {
    let Subject { dir, run, wanted, again } = subject;
    let quiet = matches.get_flag("quiet") || matches.get_flag("json");
    let folder = Temporary::make()?;
    let _working = working(&again.ready, folder.path())?;
    let signals = Signals::block().context("signals")?;
    let mut follower = GuestsFollower::new(&signals, 1, quiet);
    let repeat = microscope::explain(
        &again.experiment,
        &again.ready,
        &again.place,
        folder.path(),
        &run.run.board,
        wanted,
        &mut follower,
    )?;
    let Some(Repeat { end, found }) = repeat else { return Ok(None) };
    if let Some(trouble) = end.troubles.first() {
        bail!(GuestFailure(format!("the repeat failed: {trouble}")));
    }
    identical(dir, &folder.path().join(&again.place.name))?;
    Ok(Some(explanation_of(subject, found)))
}

fn explanation_of(subject: &Subject, found: Vec<anyhow::Result<Explained>>) -> Explanation {
    let run = &subject.run.run;
    let cell = |number: usize| {
        let cell = &run.cells[number];
        let (key, load) = (cell.key.clone(), cell.load.clone());
        ExplainedCell { key, load, samples: Vec::new(), unexplained: Vec::new() }
    };
    let found = subject.wanted.iter().zip(found).map(|(wanted, found)| {
        let explained = found.map_err(|error| wanted.unexplained(&error));
        (wanted.cell, explained)
    });
    let mips = run.board.lab.as_ref().map_or(0, |lab| lab.mips);
    Explanation {
        run_id: run.run_id.clone(),
        run: subject.dir.display().to_string(),
        release: run.kernel.release.clone(),
        model: run.kernel.preemption,
        instruction_ns: u64::from(1_000_u32.checked_div(mips).unwrap_or(0)),
        cells: by_cell(found, cell),
        caveats: caveats(&run.kernel.release, &run.kernel.machine),
    }
}

/// Samples, explained or not, in their cells, by the numbers of these.
fn by_cell(
    found: impl Iterator<Item = (usize, Result<Explained, Unexplained>)>,
    cell: impl Fn(usize) -> ExplainedCell,
) -> Vec<ExplainedCell> {
    let mut cells: Vec<(usize, ExplainedCell)> = Vec::new();
    for (number, one) in found {
        if cells.last().is_none_or(|(known, _)| *known != number) {
            cells.push((number, cell(number)));
        }
        let Some((_, cell)) = cells.last_mut() else { continue };
        match one {
            Ok(explained) => cell.samples.push(explained),
            Err(mut unexplained) => {
                unexplained.after = cell.samples.len();
                cell.unexplained.push(unexplained);
            }
        }
    }
    cells.into_iter().map(|(_, cell)| cell).collect()
}

/// What the observer cannot see of a kernel.
fn caveats(release: &str, machine: &str) -> Vec<String> {
    let by_popf = machine == "x86_64" && version_key(release) < version_key("5.12");
    let popf = "Before Linux 5.12 popf turns interrupts on too, which is not seen: of some stretches \
                without interrupts it is not said who held them off.";
    by_popf.then(|| popf.to_owned()).into_iter().collect()
}

fn write(all: &[Explanation], against: bool, matches: &ArgMatches) -> anyhow::Result<()> {
    for one in all {
        if let Some(path) = matches.get_one::<PathBuf>("perfetto") {
            replace(path, explanation::perfetto(one).as_bytes())?;
        }
        if let Some(path) = matches.get_one::<PathBuf>("output") {
            replace(path, explanation::page(one).as_bytes())?;
        }
        if let Some(folder) = matches.get_one::<PathBuf>("figures") {
            write_figures(&explanation::figures(one), folder)?;
        }
    }
    if matches.get_flag("json") {
        return output::print_json(&all);
    }
    let (width, colour) = (output::width(), output::colour());
    match all {
        [a, b] if against => output::print(&explanation::text_against(a, b, width, colour))?,
        all => {
            for one in all {
                output::print(&explanation::text(one, width, colour))?;
            }
        }
    }
    for id in ["output", "perfetto", "figures"] {
        if let Some(path) = matches.get_one::<PathBuf>(id) {
            output::print(&format!("      {}\n", address(path)))?;
        }
    }
    Ok(())
}

fn replace(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    files::replace(path, bytes).map_err(|error| anyhow!("cannot write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use punctual_core::explanation::Chosen;
    use punctual_core::preemption::Model;

    use super::*;

    fn explained() -> Explained {
        Explained {
            chosen: Chosen::Worst,
            at_ns: 7,
            latency_ns: 5,
            missed: 0,
            idle: false,
            instructions: 5,
            legs: Vec::new(),
            held: Vec::new(),
            spans: Vec::new(),
            turns: Vec::new(),
            functions: Vec::new(),
        }
    }

    fn failed() -> Unexplained {
        let why = "what is known begins after the release".to_owned();
        Unexplained { chosen: Chosen::Worst, after: 0, at_ns: 9, latency_ns: 60, why }
    }

    fn explanation(found: Vec<(usize, Result<Explained, Unexplained>)>) -> Explanation {
        let cell = |number: usize| ExplainedCell {
            key: format!("wakeup{number} @ none @ 2s"),
            load: "none".to_owned(),
            samples: Vec::new(),
            unexplained: Vec::new(),
        };
        Explanation {
            run_id: "5f3a".to_owned(),
            run: "a/debian-none-0".to_owned(),
            release: "6.1.0".to_owned(),
            model: Model::None,
            instruction_ns: 4,
            cells: by_cell(found.into_iter(), cell),
            caveats: Vec::new(),
        }
    }

    #[test]
    fn a_sample_that_cannot_be_explained_leaves_the_others() {
        let all =
            [(0, Ok(explained())), (0, Err(failed())), (0, Ok(explained())), (2, Err(failed()))];
        let made = explanation(all.into());
        let counts: Vec<_> =
            made.cells.iter().map(|cell| (cell.samples.len(), cell.unexplained.len())).collect();
        assert_eq!(counts, [(2, 1), (0, 1)]);
        assert_eq!(made.cells[0].unexplained[0].after, 1);
        assert!(nothing(&[made]).is_none());
    }

    #[test]
    fn it_fails_if_no_sample_of_any_run_was_explained() {
        let none = || explanation(vec![(1, Err(failed()))]);
        let error = nothing(&[none(), none()]).unwrap().to_string();
        let says = "a/debian-none-0: wakeup1 @ idle @ 2s: what is known begins after the release";
        assert_eq!(error, says);
        assert!(nothing(&[none(), explanation(vec![(0, Ok(explained()))])]).is_none());
    }

    #[test]
    fn what_is_not_seen_of_old_kernels_is_said() {
        for (release, count) in [("5.10.0-46-amd64", 1), ("5.12.0", 0), ("6.1.0-56-rt-amd64", 0)] {
            assert_eq!(caveats(release, "x86_64").len(), count, "{release}");
            assert!(caveats(release, "aarch64").is_empty());
        }
    }
}
