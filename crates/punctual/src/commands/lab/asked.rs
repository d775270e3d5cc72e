//! Reads the options of `lab run` and `lab check` as an experiment: board, kernels, plan.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail, ensure};
use clap::ArgMatches;
use punctual_core::compare::{CONFIDENCE, FEWEST_REPLICATES, Measure};
use punctual_core::params::COMMAND;
use punctual_core::plan::{CellPlan, Plan, Subject};
use punctual_core::preemption::Model;
use punctual_core::stats::replicates_needed;
use punctual_core::units::SECOND_NS;
use punctual_lab::arch::Arch;
use punctual_lab::board::{BoardSpec, DEFAULT_MEMORY_MIB, DEFAULT_MIPS};
use punctual_lab::device::{self, Device};
use punctual_lab::emulator::{Emulator, Version};
use punctual_lab::experiment::Experiment;
use punctual_lab::extra::{self, ExtraFile};
use punctual_lab::kernel::{Kernel, Kernels};
use punctual_lab::modules::is_path;
use punctual_lab::{program, warm};
use punctual_suite::harness::phased::PhasedSpec;
use punctual_suite::probes;

use crate::{output, request};

/// The QEMU with which histories are measured unless another is named or it is not here: figures
/// of two versions are not comparable.
const QEMU_OF_HISTORIES: Version = (7, 2);

/// Reads the options of `lab run` or `lab check`, and gets the kernels.
///
/// # Errors
/// What is wrong or missing, and the remedy.
pub fn experiment(matches: &ArgMatches) -> anyhow::Result<Experiment> {
    let plan = request::plan(matches, &request::LAB)?;
    let mut experiment = of_plan(matches, plan, None, kernels)?;
    experiment.first_replicate = first_replicate(matches);
    Ok(experiment)
}

/// Reads the options of `lab history`, and gets the kernels.
///
/// # Errors
/// As [`experiment`].
pub fn history(matches: &ArgMatches) -> anyhow::Result<Experiment> {
    let plan = request::plan(matches, &request::HISTORY)?;
    of_plan(matches, plan, Some(QEMU_OF_HISTORIES), |matches, _, arch| releases(matches, arch))
}

/// Reads the options of `lab search`, and gets the kernels. Its plan measures this cell.
///
/// # Errors
/// As [`experiment`].
pub fn search(matches: &ArgMatches, plan: Plan) -> anyhow::Result<Experiment> {
    let mut experiment = of_plan(matches, plan, None, kernels)?;
    experiment.first_replicate = first_replicate(matches);
    Ok(experiment)
}

/// By `--seed`, which is counted from 1 and which `lab check` does not have.
fn first_replicate(matches: &ArgMatches) -> u32 {
    let seed = matches.try_get_one::<u32>("seed").ok().flatten();
    seed.map_or(0, |seed| seed.saturating_sub(1))
}

fn of_plan(
    matches: &ArgMatches,
    plan: Plan,
    qemu: Option<Version>,
    kernels: impl Fn(&ArgMatches, &Plan, Arch) -> anyhow::Result<Vec<Kernel>>,
) -> anyhow::Result<Experiment> {
    let mut board = board(matches)?;
    board.measured = measured(&plan, &board);
    let warm = matches.try_get_one("warm").ok().flatten().copied().unwrap_or_default();
    if warm {
        warm::check(&board).map_err(|error| anyhow!(error))?;
    }
    // First, because it is cheap and the most likely to be missing.
    let emulator = Emulator::find(board.arch, path(matches, "qemu"), qemu)?;
    board.check_on(&emulator).map_err(|error| anyhow!(error))?;
    let program = program(matches, board.arch)?;
    let files = files(matches)?;
    check_shell(&plan, &files)?;
    let kernels = kernels(matches, &plan, board.arch)?;
    let jobs = number(matches, "jobs").map_or_else(cpus, |n| usize::try_from(n).unwrap_or(1));
    let replicates = match number(matches, "replicates") {
        Some(replicates) => replicates,
        None if warm || !is_for_estimates(matches) => 1,
        None => by_comparisons(matches, &plan, kernels.len(), jobs),
    };
    Ok(Experiment {
        emulator,
        board,
        plan,
        kernels,
        replicates,
        first_replicate: 0,
        program,
        modules: modules(matches),
        files,
        parameters: split(matches, "append"),
        // `lab history` has no --warm.
        warm,
        // `lab check` has no --group.
        group: matches.try_get_one("group").ok().flatten().cloned(),
        command: std::env::args().collect(),
        jobs,
        patience: patience(matches),
    })
}

/// Whether guests are booted to estimate how kernels differ, rather than to look into a course.
fn is_for_estimates(matches: &ArgMatches) -> bool {
    let asks = |id| matches.try_get_one::<bool>(id).ok().flatten().copied().unwrap_or_default();
    !asks("legs") && !asks("free-running") && !matches.contains_id("aim")
}

/// How often each of so many kernels is booted unless it is said. Says what that takes, since it is
/// not what was asked for.
fn by_comparisons(matches: &ArgMatches, plan: &Plan, kernels: usize, jobs: usize) -> u32 {
    let replicates = enough(plan, kernels);
    if replicates > 1 && !matches.get_flag("quiet") {
        output::complain(&format!(
            "{replicates} replicates of {kernels} kernels, about {} min; --replicates 1 for one each",
            minutes(plan, replicates * kernels, jobs.min(cpus()))
        ));
    }
    u32::try_from(replicates).unwrap_or(u32::MAX)
}

/// As many replicates as it takes for the least possible p of each comparison to be small enough,
/// and not fewer than [`FEWEST_REPLICATES`]; 1 if nothing is compared.
fn enough(plan: &Plan, kernels: usize) -> usize {
    let cells = plan.cells.iter().filter(|cell| matches!(cell.subject, Subject::Probe(_))).count();
    let comparisons = cells * kernels.saturating_sub(1) * Measure::ALL.len();
    if comparisons == 0 {
        return 1;
    }
    let needed = replicates_needed(comparisons, 1.0 - CONFIDENCE).unwrap_or(FEWEST_REPLICATES);
    needed.max(FEWEST_REPLICATES)
}

/// About how long so many guests take, from what cold and warm boards took of a host's CPU
/// (docs/lab.md): 5 s for a boot, 4 s for a second of a guest under hackbench; idle takes less.
fn minutes(plan: &Plan, guests: usize, jobs: usize) -> u64 {
    const BOOT_S: u64 = 5;
    const SECOND_S: u64 = 4;
    let cells = plan.cells.iter().map(|cell| cell.duration_ns.saturating_add(plan.warmup_ns));
    let planned_s = cells.fold(0_u64, u64::saturating_add) / SECOND_NS;
    let turns = guests.div_ceil(jobs.max(1)) as u64;
    let guest_s = planned_s.saturating_mul(SECOND_S).saturating_add(BOOT_S);
    turns.saturating_mul(guest_s).div_ceil(60)
}

/// What boards run. Says so if it is a file that nobody named.
///
/// # Errors
/// There is none.
pub fn program(matches: &ArgMatches, arch: Arch) -> anyhow::Result<Vec<u8>> {
    let program = program::find(arch, path(matches, "program"))?;
    if let Some(file) = program.chosen {
        output::complain(&format!("{arch} boards run {}", file.display()));
    }
    Ok(program.bytes)
}

/// The architecture of `--board`.
pub fn arch(matches: &ArgMatches) -> Arch {
    match matches.get_one::<String>("board").map(String::as_str) {
        Some("aarch64") => Arch::Aarch64,
        _ => Arch::X86_64,
    }
}

fn board(matches: &ArgMatches) -> anyhow::Result<BoardSpec> {
    let names = matches.get_many::<String>("device").into_iter().flatten();
    let mut devices = Vec::new();
    for name in names {
        let device = device::find(name).map_err(|error| anyhow!("--device {error}"))?;
        if !devices.contains(&device) {
            devices.push(device);
        }
    }
    let free = matches.get_flag("free-running");
    if free && matches.contains_id("mips") {
        bail!("--mips and --free-running cannot be combined: one counts time, the other does not");
    }
    let board = BoardSpec {
        arch: arch(matches),
        cpus: number(matches, "cpus").unwrap_or(1),
        memory_mib: number(matches, "memory").unwrap_or(DEFAULT_MEMORY_MIB),
        mips: (!free).then(|| number(matches, "mips").unwrap_or(DEFAULT_MIPS)),
        devices,
        measured: Vec::new(),
    };
    board.check().map_err(|error| anyhow!(error))?;
    Ok(board)
}

/// The devices that the plan's probes measure and that the board can have.
pub fn measured(plan: &Plan, board: &BoardSpec) -> Vec<&'static Device> {
    let mut devices: Vec<&'static Device> = Vec::new();
    for name in plan.cells.iter().filter_map(|cell| probes::find(cell.subject.name()).ok()?.device)
    {
        if let Ok(device) = device::find(name)
            && device.boards.contains(&board.arch)
            && !board.devices.contains(&device)
            && !devices.contains(&device)
        {
            devices.push(device);
        }
    }
    devices
}

/// The kernels of this user. Says so if others can replace them.
///
/// # Errors
/// There is no folder for their cache.
pub fn of_user() -> anyhow::Result<Kernels> {
    let kernels = Kernels::of_user()?;
    if let Some(text) = kernels.warning() {
        output::complain(&text);
    }
    Ok(kernels)
}

fn kernels(matches: &ArgMatches, plan: &Plan, arch: Arch) -> anyhow::Result<Vec<Kernel>> {
    let given: Vec<String> =
        matches.get_many::<String>("kernel").into_iter().flatten().cloned().collect();
    let modules = path(matches, "modules");
    let fetch = !matches.get_flag("offline");
    let mut say = |text: &str| output::complain(text);
    let kernels = of_user()?;
    let of = |models: &[Model]| models.iter().map(|model| format!("debian:{model}")).collect();
    let names: Vec<String> = match (&given[..], &plan.kernels[..]) {
        ([], []) => of(kernels.own_models(arch, fetch, &mut say)),
        ([], models) => of(models),
        _ => given,
    };
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    kernels.resolve(&names, arch, modules, fetch, &mut say)
}

/// What a history has unless it is told: the releases whose kernels are maintained for years, and
/// the latest before the newest, which comes after them. Of 5.10 the newest real-time kernel is
/// not in the archive any more.
const RELEASES: [&str; 5] =
    ["debian:5.10", "debian:5.10.0-32-rt", "debian:6.1", "debian:6.12", "debian:7.2"];

/// The kernels of a history, with all models that they have.
fn releases(matches: &ArgMatches, arch: Arch) -> anyhow::Result<Vec<Kernel>> {
    let fetch = !matches.get_flag("offline");
    let mut say = |text: &str| output::complain(text);
    let kernels = of_user()?;
    let given: Vec<String> =
        matches.get_many::<String>("kernel").into_iter().flatten().cloned().collect();
    let mut all: Vec<Kernel> = Vec::new();
    let names = if given.is_empty() {
        let newest = kernels.newest_series(arch, fetch, &mut say)?;
        let newest = format!("debian:{newest}");
        let known = RELEASES.iter().map(|name| (*name).to_owned());
        known.filter(|name| *name != newest).chain([newest.clone()]).collect()
    } else {
        given.clone()
    };
    for name in names {
        match kernels.with_all_models(&name, arch, fetch, &mut say) {
            Ok(found) => {
                let new = |kernel: &Kernel| !all.iter().any(|other| other.name == kernel.name);
                let found: Vec<_> = found.into_iter().filter(new).collect();
                all.extend(found);
            }
            // What was named must be there.
            Err(error) if !given.is_empty() => return Err(error),
            Err(error) => output::complain(&format!("{name} is left out: {error:#}")),
        }
    }
    if all.is_empty() {
        bail!("there is no kernel to measure");
    }
    if let Some(modules) = path(matches, "modules") {
        ensure!(modules.is_dir(), "--modules {}: not a folder", modules.display());
        all.iter_mut().for_each(|kernel| kernel.modules = Some(modules.to_owned()));
    }
    Ok(all)
}

/// Modules, each with the parameters that follow its name or its path.
pub fn modules(matches: &ArgMatches) -> Vec<(String, String)> {
    let texts = matches.try_get_many::<String>("module").ok().flatten().into_iter().flatten();
    texts.map(|text| module(text.trim())).collect()
}

fn module(text: &str) -> (String, String) {
    let word_end = text.find(' ').unwrap_or(text.len());
    // A path may have spaces, but no parameter in it.
    let is_file = |end: &usize| is_path(&text[..*end]) && !text[word_end..*end].contains('=');
    let spaces = text[word_end..].match_indices(' ').map(|(at, _)| word_end + at);
    let end = spaces.chain([text.len()]).find(is_file).unwrap_or(word_end);
    let (name, parameters) = text.split_at(end);
    (name.to_owned(), parameters.trim().to_owned())
}

/// The files of `--files`.
///
/// # Errors
/// One cannot be read.
pub fn files(matches: &ArgMatches) -> anyhow::Result<Vec<ExtraFile>> {
    path(matches, "files").map_or(Ok(Vec::new()), files_of)
}

/// The files in this folder of `--files`.
///
/// # Errors
/// One cannot be read.
pub fn files_of(folder: &Path) -> anyhow::Result<Vec<ExtraFile>> {
    extra::read(folder).context("--files")
}

/// What `cmd:` executes its command with, among the files of a guest.
const SHELL: &str = "bin/sh";

/// Checks that guests have a shell if a load needs one.
///
/// # Errors
/// They have none, and what to do.
fn check_shell(plan: &Plan, files: &[ExtraFile]) -> anyhow::Result<()> {
    let has_command = |cell: &CellPlan| {
        PhasedSpec::parse(&cell.load).is_ok_and(|load| {
            let parts = load.phases().iter().flat_map(|phase| phase.load.parts());
            parts.into_iter().any(|part| part.entry.name == COMMAND)
        })
    };
    // Of what is measured only if it can be, nothing need be there.
    let cell = plan.cells.iter().find(|cell| !cell.available && has_command(cell));
    if let Some(cell) = cell
        && !files.iter().any(|file| file.path == SHELL)
    {
        bail!(
            "--load {}: guests have no shell to execute it; give them /{SHELL}, the programs and \
             their libraries with --files DIR (docs/lab.md, \"Which load to measure under\")",
            cell.load
        );
    }
    Ok(())
}

/// An option's texts, split into words.
fn split(matches: &ArgMatches, id: &str) -> Vec<String> {
    let texts = matches.get_many::<String>(id).into_iter().flatten();
    texts.flat_map(|text| text.split_whitespace()).map(str::to_owned).collect()
}

/// How long a guest may show no sign of life.
pub fn patience(matches: &ArgMatches) -> Duration {
    let given = matches.get_one::<u64>("patience");
    given.map_or(Duration::MAX, |ns| Duration::from_nanos(*ns))
}

/// A path among the options.
pub fn path<'a>(matches: &'a ArgMatches, id: &str) -> Option<&'a Path> {
    matches.try_get_one::<PathBuf>(id).ok().flatten().map(PathBuf::as_path)
}

fn number(matches: &ArgMatches, id: &str) -> Option<u32> {
    matches.get_one::<u32>(id).copied()
}

fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_can_be_appended_in_several_options() {
        let line = ["punctual", "lab", "run", "--append", "nohz=off quiet", "--append=foo=1"];
        let matches = crate::cli::command().try_get_matches_from(line).unwrap();
        let lab = matches.subcommand_matches("lab").and_then(|lab| lab.subcommand_matches("run"));
        assert_eq!(split(lab.unwrap(), "append"), ["nohz=off", "quiet", "foo=1"]);
    }

    #[test]
    fn parameters_follow_a_module_s_name_or_its_path() {
        for (text, name, parameters) in [
            ("loop", "loop", ""),
            ("loop  max_loop=1 max_part=2", "loop", "max_loop=1 max_part=2"),
            ("./my-hold.ko", "./my-hold.ko", ""),
            ("../a b/hold.ko only=x", "../a b/hold.ko", "only=x"),
            ("/x y/hold.ko.xz", "/x y/hold.ko.xz", ""),
            ("loop file=other.ko", "loop", "file=other.ko"),
        ] {
            assert_eq!(module(text), (name.to_owned(), parameters.to_owned()), "{text}");
        }
    }

    #[test]
    fn the_first_seed_decides_on_the_first_replicate() {
        let of = |line: &str| {
            let line = ["punctual", "lab"].into_iter().chain(line.split_whitespace());
            let matches = crate::cli::command().try_get_matches_from(line).unwrap();
            let (_, lab) = matches.subcommand().unwrap();
            first_replicate(lab.subcommand().unwrap().1)
        };
        assert_eq!(of("run wakeup"), 0);
        assert_eq!(of("run wakeup --seed 7"), 6);
        assert_eq!(of("check wakeup --max 1ms --kernel vmlinux"), 0);
    }

    #[test]
    fn a_command_needs_a_shell_among_the_files() {
        let plan = |load: &str| {
            let line = ["punctual", "lab", "run", "wakeup", "--load", load];
            let matches = crate::cli::command().try_get_matches_from(line).unwrap();
            let (_, lab) = matches.subcommand().unwrap();
            request::plan(lab.subcommand().unwrap().1, &request::LAB).unwrap()
        };
        let file = |path: &str| ExtraFile { path: path.to_owned(), mode: 0o755, content: vec![] };
        for load in ["cmd:true", "hackbench+cmd:true", "none for 2s then cmd:true for 2s"] {
            let text = check_shell(&plan(load), &[file("bin/true")]).unwrap_err().to_string();
            assert!(text.contains("--files") && text.contains("cmd:true"), "{text}");
            check_shell(&plan(load), &[file("bin/sh")]).unwrap();
        }
        check_shell(&plan("hackbench"), &[]).unwrap();
    }

    #[test]
    fn several_kernels_are_booted_as_often_as_their_comparisons_take() {
        let asked = |line: &str| {
            let line = ["punctual", "lab", "run"].into_iter().chain(line.split_whitespace());
            let matches = crate::cli::command().try_get_matches_from(line).unwrap();
            let (_, lab) = matches.subcommand().unwrap();
            let (_, run) = lab.subcommand().unwrap();
            (request::plan(run, &request::LAB).unwrap(), run.clone())
        };
        let (plan, run) = asked("wakeup --load none,hackbench -D 2s");
        assert_eq!([1, 2, 4].map(|kernels| enough(&plan, kernels)), [1, 8, 8]);
        // 2 cells of 2.2 s, 16 guests, two at a time: 8 turns of 5 s and 4 times 4 s.
        assert_eq!((minutes(&plan, 16, 2), minutes(&plan, 16, 1)), (3, 6));
        assert!(is_for_estimates(&run) && number(&run, "replicates").is_none());
        for other in ["--legs", "--free-running", "--aim 3"] {
            assert!(!is_for_estimates(&asked(&format!("wakeup {other}")).1), "{other}");
        }
        // 321 comparisons are as many as 8 replicates can tell apart.
        let mut many = plan.clone();
        many.cells = vec![plan.cells[0].clone(); 160];
        assert_eq!(enough(&many, 2), 8);
        many.cells.push(plan.cells[0].clone());
        assert_eq!(enough(&many, 2), 9);
        many.cells.clear();
        assert_eq!(enough(&many, 4), 1);
    }
}
