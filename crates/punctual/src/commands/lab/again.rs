//! The experiment that a run of a virtual board came from, to boot the same guest again.

use std::path::Path;

use anyhow::{Context, anyhow, bail, ensure};
use clap::ArgMatches;
use punctual_core::compare::exact::Sameness;
use punctual_core::hash::sha256;
use punctual_core::schema::{Lab, Run};
use punctual_lab::arch::Arch;
use punctual_lab::board::BoardSpec;
use punctual_lab::device;
use punctual_lab::emulator::{Emulator, number};
use punctual_lab::experiment::{Experiment, Place, Ready};
use punctual_lab::kernel::Kernel;
use punctual_report::words;

use super::asked;
use super::given::Given;
use crate::commands::compare::compared;
use crate::output;

/// A guest that would repeat a run.
pub struct Again {
    pub experiment: Experiment,
    pub ready: Ready,
    pub place: Place,
}

/// Finds everything that the guest of this run was made of.
///
/// # Errors
/// Something of it is not here, or is another one: what, and what to do.
pub fn again(run: &Run, dir: &Path, matches: &ArgMatches) -> anyhow::Result<Again> {
    let lab = run.board.lab.as_ref().ok_or_else(|| {
        anyhow!(
            "it was measured on a real machine, and only a run of a virtual board can be repeated: \
             measure the kernel with `punctual lab run`, or trace this machine (rtla timerlat \
             --auto, trace-cmd)"
        )
    })?;
    ensure!(lab.counted, "its time was not counted (--free-running), so it cannot be repeated");
    ensure!(
        lab.snapshot_sha256.is_none(),
        "it went on from a kept state (--warm); measure again without --warm"
    );
    ensure!(lab.not_exact.is_empty(), "it may not repeat: {}", lab.not_exact.join("; "));
    let mut board = board(lab)?;
    let emulator = emulator(lab, board.arch, matches)?;
    let program = asked::program(matches, board.arch)?;
    ensure!(
        sha256(&program) == lab.punctual_sha256,
        "it was measured by another program ({} {}, SHA-256 {}…): name that one with --program, or \
         measure again",
        run.tool.name,
        run.tool.version,
        lab.punctual_sha256.get(..12).unwrap_or_default()
    );
    let given = Given::of(run, dir, matches);
    let kernel = kernel(run, lab, board.arch, (matches, given.folder_of_modules.as_deref()))?;
    board.measured = asked::measured(&run.plan, &board);
    let measured: Vec<&str> = board.measured.iter().map(|device| device.name).collect();
    let asked_for = lab.devices.iter().filter(|name| !measured.contains(&name.as_str()));
    let found = asked_for.map(|name| device::find(name).map_err(|error| anyhow!("{error}")));
    board.devices = found.collect::<anyhow::Result<_>>()?;
    let known = board.parameters(&kernel.parameters);
    let appended = run.kernel.command_line.trim().strip_prefix(&known).with_context(|| {
        format!("its kernel's command line does not begin as this punctual would write it: {known}")
    })?;
    let experiment = Experiment {
        emulator,
        board,
        plan: run.plan.clone(),
        kernels: vec![kernel],
        replicates: 1,
        first_replicate: 0,
        program,
        modules: given.modules,
        files: given.files.map_or(Ok(Vec::new()), |folder| asked::files_of(&folder))?,
        parameters: appended.split_whitespace().map(str::to_owned).collect(),
        group: run.group.clone(),
        command: run.tool.command.clone(),
        warm: false,
        jobs: 1,
        patience: asked::patience(matches),
    };
    let name = dir.file_name().map_or_else(|| "run".into(), |name| name.to_string_lossy());
    let place = Place {
        kernel: 0,
        replicate: run.replicate.unwrap_or(0),
        name: name.into_owned(),
        aim: run.aim,
    };
    let ready = experiment.prepare()?;
    let differs = experiment.differs(&place, &ready, run)?;
    ensure!(
        differs.is_empty(),
        "its guest cannot be made again as it was: {} (--module, --modules and --files are those of \
         its command line unless they are given; what they name must be as at that time)",
        differs.join(", ")
    );
    Ok(Again { experiment, ready, place })
}

/// Checks that a repeat came out as the run did, to the nanosecond.
///
/// # Errors
/// It did not, or is of another board, and so shows nothing of the run.
pub fn identical(run: &Path, repeat: &Path) -> anyhow::Result<()> {
    match compared(run, repeat)?.outcome {
        Sameness::Identical => Ok(()),
        Sameness::NotIdentical { first } => bail!(
            "the repeat is not identical, so it explains nothing: {}{}",
            first.cell.map_or_else(String::new, |cell| format!("{}: ", words::key_name(&cell))),
            first.what
        ),
        Sameness::Refused { refused } => {
            bail!("the repeat is of another board: {}", refused.join("; "))
        }
    }
}

fn board(lab: &Lab) -> anyhow::Result<BoardSpec> {
    let arch = match lab.arch.as_str() {
        "x86_64" => Arch::X86_64,
        "aarch64" => Arch::Aarch64,
        other => bail!("it was measured on a board {other}, which this punctual does not have"),
    };
    let board = BoardSpec {
        arch,
        cpus: lab.cpus,
        memory_mib: lab.memory_mib,
        mips: Some(lab.mips),
        devices: Vec::new(),
        measured: Vec::new(),
    };
    board.check().map_err(|error| anyhow!(error))?;
    Ok(board)
}

fn emulator(lab: &Lab, arch: Arch, matches: &ArgMatches) -> anyhow::Result<Emulator> {
    let emulator = Emulator::find(arch, asked::path(matches, "qemu"), Some(number(&lab.qemu)))?;
    ensure!(
        emulator.version == lab.qemu,
        "it was measured on QEMU {}, and here is {}: name that one with --qemu, or measure again",
        lab.qemu,
        emulator.version
    );
    Ok(emulator)
}

/// The kernel of the run: the one named by --kernel, else the one with its name and release.
fn kernel(
    run: &Run,
    lab: &Lab,
    arch: Arch,
    (matches, modules): (&ArgMatches, Option<&Path>),
) -> anyhow::Result<Kernel> {
    let named = matches.get_one::<String>("kernel").cloned();
    let name = named.unwrap_or_else(|| name_of(run, lab));
    let kernels = asked::of_user()?;
    let mut say = |text: &str| output::complain(text);
    let fetch = !matches.get_flag("offline");
    let found = kernels.resolve(&[&name], arch, modules, fetch, &mut say)?;
    let Some(mut kernel) = found.into_iter().next() else { bail!("{name}: no such kernel") };
    ensure!(
        kernel.image_sha256 == lab.kernel_sha256,
        "{name} is not the kernel of the run any more ({} of the image differs): name the right one \
         with --kernel",
        "SHA-256"
    );
    // What was asked for is part of the record.
    kernel.name.clone_from(&lab.kernel);
    Ok(kernel)
}

/// A name that means this kernel only, whatever is the newest of its kind today.
fn name_of(run: &Run, lab: &Lab) -> String {
    if !lab.kernel.starts_with("debian:") {
        return lab.kernel.clone();
    }
    let release = run.kernel.release.as_str();
    let exact = ["-amd64", "-arm64"].iter().find_map(|arch| release.strip_suffix(arch));
    let exact = exact.unwrap_or(release);
    if exact.ends_with("-rt") {
        format!("debian:{exact}")
    } else {
        format!("debian:{exact}-{}", run.kernel.preemption)
    }
}
