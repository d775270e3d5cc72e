//! `punctual lab search`: the load under which kernels can be latest.

mod bench;
mod confirm;
mod folder;
mod lane;
mod progress;
mod space;
mod trials;
mod tried;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::ArgMatches;
use punctual_core::hash::sha256;
use punctual_core::params::split_list;
use punctual_core::plan::Plan;
use punctual_core::search::{
    Contribution, Found, SearchOrigin, SearchedKernel, TriedMix, best, search,
};
use punctual_core::search::{Scored, without_each};
use punctual_core::units::SECOND_NS;
use punctual_lab::experiment::Experiment;
use punctual_lab::extra::ExtraFile;
use punctual_lab::microscope;
use punctual_report::search as shown;
use punctual_suite::engine;
use punctual_sys::signal::Signals;

use super::asked;
use super::folder::default_folder;
use super::sections::replace;
use super::watchable::check;
use crate::cli::Budget;
use crate::commands::address::address;
use crate::ending::Ending;
use crate::output;
use bench::Bench;
use folder::SearchFolder;
use progress::Progress;
use trials::{Stopped, Trials};

/// What a search found, in its folder.
const JSON: &str = "search.json";

/// The same for readers.
const PAGE: &str = "search.html";

pub fn execute(matches: &ArgMatches) -> anyhow::Result<Ending> {
    let quiet = matches.get_flag("quiet") || matches.get_flag("json");
    let (experiment, loads) = asked_for(matches)?;
    let budget = matches.get_one::<Budget>("budget").copied().unwrap_or(Budget::Tries(60));
    let each = experiment.kernels.len() * usize::try_from(experiment.replicates)?;
    let plan = &experiment.plan;
    let tries = budget.tries(plan.warmup_ns.saturating_add(plan.cells[0].duration_ns));
    ensure!(
        tries >= each,
        "--budget: {tries} tries are not enough for one load: {each} guests try it (kernels times \
         --replicates)"
    );
    let origin = origin(&experiment, &loads);
    let mut bench = Bench::new(experiment.clone())?;
    let out = matches.get_one("out").cloned().unwrap_or_else(default_folder);
    let folder = SearchFolder::open(&out, &origin)?;
    bench.keep_in(folder.runs())?;
    let signals = Signals::block().context("signals")?;
    let progress = Progress::new(tries / each * each, quiet);
    if folder.len() > 0 && !quiet {
        output::complain(&format!("{} tries are here already", folder.len()));
    }
    let mut trials = Trials::new(bench, folder, &signals, progress, loads);
    let found = match find(&mut trials, &origin, tries / each, tries) {
        Ok(found) => found,
        Err(Stopped::Interrupted) => {
            output::complain(&format!(
                "interrupted: {} tries are kept in {}; the same command goes on",
                trials.kept(),
                out.display()
            ));
            return Ok(Ending::Interrupted);
        }
        Err(Stopped::Failed(error)) => return Err(error),
    };
    drop(trials);
    confirmed(found, experiment, &out, matches, quiet)
}

/// The experiment without a load, and the loads.
fn asked_for(
    matches: &ArgMatches,
) -> anyhow::Result<(Experiment, Vec<punctual_core::params::Named>)> {
    let loads = match matches.get_one::<String>("load") {
        Some(list) => space::named(&split_list(list))?,
        None => space::all(),
    };
    let duration_ns = matches.get_one::<u64>("duration").copied().unwrap_or(SECOND_NS);
    let warmup_ns = matches.get_one::<u64>("warmup").copied().unwrap_or(SECOND_NS / 5);
    let plan = Plan { warmup_ns, cells: vec![bench::cell(duration_ns)], ..Plan::new("search") };
    plan.check()?;
    let plan = engine::canonical(&plan).map_err(|error| anyhow::anyhow!(error))?;
    let experiment = asked::search(matches, plan)?;
    for (at, kernel) in experiment.kernels.iter().enumerate() {
        let is_again = experiment.kernels[..at].iter().any(|other| other.name == kernel.name);
        ensure!(!is_again, "--kernel {}: it is named twice", kernel.name);
    }
    if experiment.board.mips.is_none() {
        bail!("--free-running: such a board does not repeat, so it cannot be searched");
    }
    microscope::has_sections(&experiment.board, &experiment.emulator)?;
    check(&experiment)?;
    Ok((experiment, loads))
}

fn origin(experiment: &Experiment, loads: &[punctual_core::params::Named]) -> SearchOrigin {
    let Experiment { board, plan, emulator, .. } = experiment;
    let kernel = |kernel: &punctual_lab::kernel::Kernel| SearchedKernel {
        name: kernel.name.clone(),
        sha256: kernel.image_sha256.clone(),
        parameters: kernel.parameters.iter().chain(&experiment.parameters).cloned().collect(),
        model: kernel.model,
    };
    let module = |(name, parameters): &(String, String)| format!("{name} {parameters}");
    let file =
        |file: &ExtraFile| format!("/{} {:o} {}", file.path, file.mode, sha256(&file.content));
    let files = experiment.files.iter().map(file);
    SearchOrigin {
        punctual_sha256: sha256(&experiment.program),
        qemu: emulator.version.clone(),
        options: board.options(&emulator.cpu, 0),
        kernels: experiment.kernels.iter().map(kernel).collect(),
        modules: experiment.modules.iter().map(module).chain(files).collect(),
        loads: loads.iter().map(ToString::to_string).collect(),
        duration_ns: plan.cells[0].duration_ns,
        warmup_ns: plan.warmup_ns,
        seed: u64::from(experiment.first_replicate) + 1,
        replicates: u64::from(experiment.replicates),
    }
}

/// Searches, and says what each load of the best mix contributes.
fn find(
    trials: &mut Trials<'_>,
    origin: &SearchOrigin,
    mixes: usize,
    budget: usize,
) -> Result<Found, Stopped> {
    let candidates = search(trials, mixes)?;
    let spent = candidates.len() >= mixes;
    let mut parts = Vec::new();
    let first = best(&candidates).map(|best| best.mix.clone());
    if let Some(mix) = &first {
        let without = without_each(trials, mix, &candidates)?;
        parts =
            mix.loads().iter().zip(without).map(|(load, one)| trials.part(load, &one)).collect();
    }
    trials.sort()?;
    let mut scored: Vec<Scored> =
        candidates.iter().map(|one: &TriedMix| trials.scored(one)).collect();
    scored.sort_by_key(|one| (std::cmp::Reverse(one.score_ns), one.number));
    let parts: Vec<Contribution> = parts;
    Ok(Found {
        origin: origin.clone(),
        budget: budget as u64,
        spent,
        mixes: scored,
        parts,
        confirmed: Vec::new(),
    })
}

/// Measures the latest release of the best mix, and writes and shows everything.
fn confirmed(
    mut found: Found,
    experiment: Experiment,
    out: &Path,
    matches: &ArgMatches,
    quiet: bool,
) -> anyhow::Result<Ending> {
    let best = found.mixes.first().filter(|best| best.score_ns.is_some());
    let Some(load) = best.map(|best| best.load.clone()) else {
        bail!(
            "no load could run on every kernel: {} has a line for each try, with its reason",
            out.join("tries.jsonl").display()
        );
    };
    let mut ending = Ending::Done;
    if let Some(count) = super::aim::asked(matches) {
        let Some((confirmed, failed)) = confirm::confirm(experiment, &load, out, count, quiet)?
        else {
            output::complain(
                "interrupted: the search itself is whole; the same command aims again",
            );
            return Ok(Ending::Interrupted);
        };
        found.confirmed = confirmed;
        if failed {
            ending = Ending::GuestFailed;
        }
    }
    write(&found, out)?;
    if matches.get_flag("json") {
        output::print_json(&found)?;
    } else {
        output::print(&shown::text(&found, output::width(), output::colour()))?;
        output::print(&format!("      {}\n", address(&out.join(PAGE))))?;
    }
    Ok(ending)
}

fn write(found: &Found, out: &Path) -> anyhow::Result<()> {
    let json = serde_json::to_string_pretty(found)? + "\n";
    let files: [(&str, String); 2] = [(JSON, json), (PAGE, shown::page(found))];
    for (name, text) in files {
        let path: PathBuf = out.join(name);
        replace(&path, text.as_bytes())?;
    }
    Ok(())
}
