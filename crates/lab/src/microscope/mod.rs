//! The latency microscope: repeats a run of a virtual board and watches it from outside, which
//! changes nothing in the guest, and explains samples to the last instruction.
//!
//! The observer, a plugin of QEMU (crate `observer`), keeps the last blocks that the guest
//! executed, and writes them out when a wanted sample is taken. Everything else is done here.

mod aim;
mod arm64;
mod btf;
mod course;
mod coverage;
mod daif;
mod functions;
mod kallsyms;
mod legs;
mod loaded;
mod locking;
mod masked;
mod preempt;
mod programs;
mod room;
mod sample;
mod sections;
mod stacks;
mod stream;
mod tally;
mod tasks;
mod vectors;
mod wanted;

use std::fs;
use std::path::Path;
use std::process::ChildStdout;
use std::sync::mpsc;
use std::thread;

use anyhow::{Context, Result, anyhow, bail, ensure};
use punctual_core::coverage::Coverage;
use punctual_core::explanation::Explained;
use punctual_core::run::LoadedRun;
use punctual_core::schema::{Board, Marks};
use punctual_core::sections::CellSections;

pub use aim::{Target, Targets};
pub use legs::{LegWatches, RepeatLegs, legs};
pub use wanted::{Selection, Wanted, wanted};

use crate::arch::Arch;
use crate::board::BoardSpec;
use crate::emulator::{Emulator, Version};
use crate::experiment::{Experiment, Follow, Place, Ready};
use crate::kernel::of_kernel;
use crate::observer::Observer;
use crate::qemu::End;
use functions::Functions;
use kallsyms::{Image, Symbols};
use room::Room;

/// The oldest QEMU that tells an observer of it what registers hold.
const TELLS_REGISTERS: Version = (10, 0);

/// Addresses, as the observer's lists are written.
fn joined(addresses: impl Iterator<Item = u64>) -> String {
    let texts: Vec<String> = addresses.map(|address| format!("{address:#x}")).collect();
    texts.join(":")
}

/// The addresses of these symbols, written so.
fn list(symbols: &Symbols, chosen: impl Fn(&str) -> bool) -> String {
    joined(symbols.iter().filter(|(_, _, name)| chosen(name)).map(|(address, ..)| address))
}

/// Where the interrupts, exceptions and system calls of an x86 kernel arrive. On arm64 they are known
/// by the blocks that are executed.
fn entries(symbols: &Symbols) -> Vec<String> {
    let is_entry = |name: &str| {
        ["asm_exc_", "asm_sysvec_", "asm_common_interrupt"].iter().any(|of| name.starts_with(of))
    };
    vec![
        format!("entries={}", list(symbols, is_entry)),
        format!("syscalls={}", list(symbols, |name| name == "entry_SYSCALL_64")),
    ]
}

/// Checks that the guests of a board can be watched.
///
/// # Errors
/// They cannot, and which can.
pub fn watchable(board: &BoardSpec) -> Result<()> {
    ensure!(board.cpus == 1, "only boards with one CPU can be watched");
    Ok(())
}

/// Checks that the sections of a board's guests can be followed with this QEMU.
///
/// # Errors
/// They cannot, and which can.
pub fn has_sections(board: &BoardSpec, emulator: &Emulator) -> Result<()> {
    ensure!(
        board.arch == Arch::X86_64 || emulator.number() >= TELLS_REGISTERS,
        "sections, and so aimed releases, of aarch64 boards need QEMU 10, which tells what registers \
         hold: {} is QEMU {}; install it (Debian 12: qemu-system-arm of bookworm-backports), or name \
         one with --qemu. With this one samples can be explained: lab explain, lab run --legs",
        emulator.program.display(),
        emulator.version
    );
    watchable(board)
}

/// What is watched of a guest, and what is known before it is booted.
struct Watch {
    observer: Observer,
    functions: Functions,
    instruction_ns: u64,
    /// Where the kernel takes locks; empty if its sections are not watched.
    locking: Vec<u64>,
}

impl Watch {
    /// `more` are further arguments of the observer, for this kernel.
    fn of(
        experiment: &Experiment,
        kernel: usize,
        more: impl FnOnce(&Image, &Functions) -> Result<Vec<String>>,
    ) -> Result<Self> {
        let kernel = &experiment.kernels[kernel];
        let mips = experiment.board.mips.context("time was not counted")?;
        watchable(&experiment.board)?;
        let image = fs::read(&kernel.image)
            .with_context(|| format!("cannot read {}", kernel.image.display()))?;
        let arch = experiment.board.arch;
        let symbols = Symbols::of_image(&image, arch)
            .with_context(|| format!("the functions of {}", kernel.name))
            .map_err(of_kernel)?;
        let image = Image::read(&image, arch).map_err(of_kernel)?;
        let mut arguments = match arch {
            Arch::X86_64 => entries(&symbols),
            Arch::Aarch64 => {
                image.start().map(|start| format!("image={start:#x}")).into_iter().collect()
            }
        };
        let mut functions = Functions::of(symbols);
        if arch == Arch::Aarch64 {
            functions.find_switches(&image);
            ensure!(
                functions.switches().is_some(),
                "{}: where its interrupts arrive is not known: Linux 5.14 or later is needed on \
                 aarch64",
                kernel.name
            );
        }
        let more = more(&image, &functions);
        arguments.extend(more.with_context(|| kernel.name.clone()).map_err(of_kernel)?);
        Ok(Self {
            observer: Observer::of(&experiment.emulator, arguments)?,
            functions,
            instruction_ns: u64::from(1_000 / mips),
            locking: Vec::new(),
        })
    }

    fn of_sections(experiment: &Experiment, number: usize, longest: usize) -> Result<Self> {
        let kernel = &experiment.kernels[number];
        let model = kernel.model.with_context(|| {
            format!(
                "{}: no configuration tells its preemption model: name it, as in debian:rt",
                kernel.name
            )
        })?;
        let mut locking = Vec::new();
        let watch = Self::of(experiment, number, |image, functions| {
            let mut more = preempt::arguments(image, functions, model, &kernel.release)?;
            let cover = functions.neighbourhood();
            more.extend([format!("longest={longest}"), format!("cover={cover:#x}")]);
            locking = locking::places(image, functions);
            Ok(more)
        })?;
        Ok(Self { locking, ..watch })
    }

    /// Boots the guest and follows it to its end, while `read` reads what the observer writes.
    /// `None` if [`Follow::pause`] ended it.
    #[allow(clippy::too_many_arguments, reason = "a boot has these")]
    fn boot<T: Send>(
        &self,
        marks: Marks,
        experiment: &Experiment,
        host: &Ready,
        place: &Place,
        out: &Path,
        follow: &mut dyn Follow,
        read: impl FnOnce(ChildStdout, &Functions) -> T + Send,
    ) -> Result<Option<(End, T)>> {
        let mut observer = self.observer.clone();
        let Marks { begin, sample, end } = marks;
        let marks = [("begin", begin), ("sample", sample), ("finish", end)];
        observer.arguments.extend(marks.map(|(key, address)| format!("{key}={address:#x}")));
        let mut guest = experiment.watched(place, out, host, &observer)?;
        let events = guest.events().context("QEMU was started without a pipe")?;
        follow.booted(place);
        // A thread of its own, because QEMU waits while nobody reads.
        thread::scope(|scope| {
            let reader = scope.spawn(move || read(events, &self.functions));
            let end = loop {
                if follow.pause() {
                    guest.abandon();
                    let _ = reader.join();
                    return Ok(None);
                }
                let wall = guest.wall();
                if let Some(end) = guest.poll(|event| follow.event(place, event, wall)) {
                    follow.ended(place, &end, wall);
                    break end;
                }
            };
            let read = reader.join().map_err(|_| anyhow!("the reader of events failed"))?;
            Ok(Some((end, read)))
        })
    }
}

/// A repeat that ended.
#[derive(Debug)]
pub struct Repeat {
    /// How its guest ended.
    pub end: End,
    /// What was found of each wanted sample, in their order.
    pub found: Vec<Result<Explained>>,
}

/// Why a sample cannot be explained of which not all could be kept.
fn too_long() -> anyhow::Error {
    anyhow!("more was executed since its release than is kept for one sample (16 million blocks)")
}

/// By what samples are told apart in a repeat.
fn marks_of(board: &Board) -> Result<Marks> {
    board.marks.context(
        "its record has no marks, by which samples are told apart: it was measured by an older \
         punctual; measure again",
    )
}

/// Boots a guest of an experiment again, into a run directory in `out`, and explains samples of it.
/// `board` is that of the record of its run. `None` if [`Follow::pause`] ended it.
///
/// # Errors
/// It cannot be watched, or not be booted.
pub fn explain(
    experiment: &Experiment,
    host: &Ready,
    place: &Place,
    out: &Path,
    board: &Board,
    wanted: &[Wanted],
    follow: &mut dyn Follow,
) -> Result<Option<Repeat>> {
    let marks = marks_of(board)?;
    let dumps: Vec<String> =
        wanted.iter().map(|sample| format!("{}.{}", sample.begin, sample.ordinal)).collect();
    let dumps = format!("dump={}", dumps.join(":"));
    let mut watch = Watch::of(experiment, place.kernel, |image, functions| {
        Ok([dumps].into_iter().chain(tasks::arguments(image, functions.symbols())).collect())
    })?;
    let instruction_ns = watch.instruction_ns;
    let Room { arguments, reach } = Room::of(wanted, instruction_ns);
    watch.observer.arguments.extend(arguments);
    let reads_threads = watch.observer.arguments.iter().any(|told| told.starts_with("task="));
    watch.observer.memory = reads_threads.then_some(u64::from(experiment.board.memory_mib) << 20);
    watch.functions.add_modules(loaded::functions(board, host.modules(place)));
    watch.functions.add_programs(programs::of(&experiment.files));
    let (to, from) = mpsc::channel();
    let read = |events, functions: &Functions| {
        stream::read(events, reach, |dump| {
            let sample = wanted.iter().position(|sample| sample.is(&dump));
            if let Some(number) = sample {
                let recorded = wanted[number].recorded;
                let found = sample::explain(&dump.events, recorded, instruction_ns, functions);
                let found = found.map_err(|error| if dump.is_cut { too_long() } else { error });
                let _ = to.send((number, found));
            }
        })
    };
    let booted = watch.boot(marks, experiment, host, place, out, follow, read)?;
    let Some((end, read)) = booted else {
        return Ok(None);
    };
    let missing = || match &read {
        Ok(()) => anyhow!("the repeat has no such sample"),
        Err(error) => anyhow!("{error:#}"),
    };
    let mut found: Vec<Result<Explained>> = wanted.iter().map(|_| Err(missing())).collect();
    for (number, explained) in from.try_iter() {
        found[number] = explained;
    }
    Ok(Some(Repeat { end, found }))
}

/// A guest whose sections were watched.
pub struct WatchedGuest {
    /// How it ended.
    pub end: End,
    watched: Result<sections::Watched>,
    functions: Functions,
    instruction_ns: u64,
    /// Where its kernel takes locks.
    locking: Vec<u64>,
}

/// What is watched of the guests of an experiment to find their sections.
pub struct Watches {
    /// By kernel.
    all: Vec<Watch>,
    marks: Marks,
    longest: usize,
}

impl Watches {
    /// So many of the longest sections of each cell are written with what was executed.
    ///
    /// # Errors
    /// Why the sections of a kernel cannot be watched.
    pub fn of(experiment: &Experiment, marks: Marks, longest: usize) -> Result<Self> {
        has_sections(&experiment.board, &experiment.emulator)?;
        let kernels = 0..experiment.kernels.len();
        let all = kernels.map(|kernel| Watch::of_sections(experiment, kernel, longest));
        Ok(Self { all: all.collect::<Result<_>>()?, marks, longest })
    }
}

/// Boots a guest of an experiment into a run directory in `out` and watches its sections. `None` if
/// [`Follow::pause`] ended it.
///
/// # Errors
/// It cannot be booted.
pub fn sections(
    experiment: &Experiment,
    host: &Ready,
    place: &Place,
    out: &Path,
    watches: &Watches,
    follow: &mut dyn Follow,
) -> Result<Option<WatchedGuest>> {
    let watch = watches.all.get(place.kernel).context("its kernel is not watched")?;
    let (instruction_ns, longest) = (watch.instruction_ns, watches.longest);
    let read =
        |events, functions: &Functions| sections::read(events, functions, longest, instruction_ns);
    let booted = watch.boot(watches.marks, experiment, host, place, out, follow, read)?;
    let Some((end, watched)) = booted else {
        return Ok(None);
    };
    // Each guest has modules of its own.
    let functions = watch.functions.clone();
    let locking = watch.locking.clone();
    Ok(Some(WatchedGuest { end, watched, functions, instruction_ns, locking }))
}

impl WatchedGuest {
    /// Names the functions of the modules that it had loaded, by the board of its record.
    pub fn name_modules(&mut self, host: &Ready, place: &Place, board: &Board) {
        self.functions.add_modules(loaded::functions(board, host.modules(place)));
    }

    /// The sections of each cell of the run that was recorded meanwhile.
    ///
    /// # Errors
    /// What was watched is incomplete, or is not what was recorded.
    pub fn cells(&self, run: &LoadedRun) -> Result<Vec<CellSections>> {
        let watched = self.watched.as_ref().map_err(|error| anyhow!("{error:#}"))?;
        if watched.strays > 0 {
            bail!(
                "what forbids preemption was followed wrongly in this kernel: {} times it was not \
                 over in user space",
                watched.strays
            );
        }
        let mut begun = watched.cells.iter();
        let mut cells = Vec::new();
        for (number, cell) in run.run.cells.iter().enumerate() {
            let read_ns = wanted::read_ns(run, number).with_context(|| cell.key.clone())?;
            let course = begun.next().with_context(|| format!("{} was not watched", cell.key))?;
            cells.push(CellSections {
                key: cell.key.clone(),
                load: cell.load.clone(),
                watched_ns: course.watched_ns(&read_ns, self.instruction_ns),
                samples: read_ns.len() as u64,
                sampled_max_ns: cell.max_ns().and_then(|max| u64::try_from(max).ok()),
                kinds: course.kinds(&read_ns, self.instruction_ns, &self.functions)?,
            });
        }
        Ok(cells)
    }

    /// What the cells of the run executed.
    ///
    /// # Errors
    /// What was watched is incomplete.
    pub fn coverage(&self, run: &LoadedRun) -> Result<Coverage> {
        let watched = self.watched.as_ref().map_err(|error| anyhow!("{error:#}"))?;
        let mut courses = watched.cells.iter();
        let mut cells = Vec::new();
        for cell in &run.run.cells {
            let blocks = courses.next().map(|course| &course.blocks[..]).unwrap_or_default();
            ensure!(!blocks.is_empty(), "what {} executed was not watched", cell.key);
            cells.push(coverage::Cell { key: &cell.key, load: &cell.load, blocks });
        }
        Ok(coverage::coverage(&cells, &self.functions, &self.locking))
    }

    /// So many releases of a cell, by its index, that would be the latest.
    ///
    /// # Errors
    /// As [`WatchedGuest::cells`].
    pub fn targets(&self, run: &LoadedRun, cell: usize, count: usize) -> Result<Targets> {
        let aimed = self.aimed(run, cell)?;
        Ok(aimed.targets(count, &aimed.costs(), &self.functions))
    }

    /// The same of a cell whose only release was aimed. What wake-ups take is known from a cell of
    /// another guest, which was watched with all its releases.
    ///
    /// # Errors
    /// As [`WatchedGuest::cells`].
    pub fn targets_alone(
        &self,
        (run, cell): (&LoadedRun, usize),
        count: usize,
        (other, its_run, its_cell): (&Self, &LoadedRun, usize),
    ) -> Result<Targets> {
        let costs = other.aimed(its_run, its_cell)?.costs();
        Ok(self.aimed(run, cell)?.targets(count, &costs, &self.functions))
    }

    fn aimed<'a>(&'a self, run: &'a LoadedRun, cell: usize) -> Result<aim::Aimed<'a>> {
        aim::Aimed::of(run, cell, self.course(cell)?, self.instruction_ns)
    }

    fn course(&self, cell: usize) -> Result<&sections::CellCourse> {
        let watched = self.watched.as_ref().map_err(|error| anyhow!("{error:#}"))?;
        watched.cells.get(cell).context("it was not watched")
    }

    /// Checks that another guest did the same in a cell up to a target of this one: the longer
    /// sections, to the instruction.
    ///
    /// # Errors
    /// It did not, or was not watched.
    pub fn same_until(&self, other: &Self, cell: usize, target: &Target) -> Result<()> {
        let (own, others) = (self.course(cell)?, other.course(cell)?);
        match own.differs(others, target.begin) {
            None => Ok(()),
            Some(at) => bail!("a section before it differs, {at} instructions after the start"),
        }
    }

    /// Time of an instruction, ns.
    #[must_use]
    pub fn instruction_ns(&self) -> u64 {
        self.instruction_ns
    }
}

impl Wanted {
    fn is(&self, dump: &stream::Dump) -> bool {
        (self.begin, self.ordinal) == (dump.begin, dump.ordinal)
    }
}

/// The symbols with which an unpacked kernel names its own addresses, by address, as /proc/kallsyms
/// shows them: address, type as nm prints it, and name.
///
/// # Errors
/// It is no kernel of this architecture, or has no such symbols.
pub fn symbols(image: &[u8], arch: Arch) -> Result<Vec<(u64, char, String)>> {
    let symbols = Symbols::of_image(image, arch)?;
    Ok(symbols.iter().map(|(address, kind, name)| (address, kind, name.to_owned())).collect())
}

/// Reads bytes as the kernels of both architectures, for those who damage them on purpose.
#[cfg(fuzzing)]
pub fn read_symbols(bytes: &[u8]) {
    for arch in [Arch::X86_64, Arch::Aarch64] {
        if let (Ok(symbols), Ok(image)) = (Symbols::of_image(bytes, arch), Image::read(bytes, arch))
        {
            let _ = tasks::arguments(&image, &symbols);
            for (address, ..) in symbols.iter().step_by(64) {
                let _ = symbols.function(address).map(|(number, _)| symbols.name(number));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::emulator;

    #[test]
    fn one_cpu_is_watched_and_sections_of_arm64_need_registers() {
        let board = |arch, cpus| BoardSpec { arch, cpus, ..BoardSpec::default() };
        for arch in [Arch::X86_64, Arch::Aarch64] {
            assert!(watchable(&board(arch, 1)).is_ok());
            let error = watchable(&board(arch, 2)).unwrap_err().to_string();
            assert_eq!(error, "only boards with one CPU can be watched");
        }
        let of = |arch, cpus, qemu| has_sections(&board(arch, cpus), &emulator(qemu));
        assert!(of(Arch::X86_64, 1, "7.2.22").is_ok());
        assert!(of(Arch::X86_64, 2, "10.0.2").is_err());
        assert!(of(Arch::Aarch64, 1, "10.0.2").is_ok());
        let error = of(Arch::Aarch64, 1, "7.2.22 (Debian)").unwrap_err().to_string();
        assert!(error.contains("need QEMU 10") && error.contains("is QEMU 7.2.22"), "{error}");
    }
}
