//! The room on disk and the memory that a run takes, told and checked before it starts.

use std::path::Path;

use punctual_core::run::limits::MAX_CELL_FILE;
use punctual_sys::storage;

use super::prepared::{Measures, Prepared};
use crate::cgroups::OwnCgroups;
use crate::facts::FactsRoot;
use crate::facts::state::Memory;

/// What a series of a thread takes a second, bytes: 140 were measured at 1 kHz on an idle
/// machine, and 1,350 at 10 kHz under hackbench, late samples included.
const BLOCK: (u64, u64) = (140, 1_400);

/// The same for the load's work and the CPUs' time, by cell.
const SECOND: u64 = 100;

/// Histograms and worst samples of a series of a thread, bytes.
const END: u64 = 16 * 1024;

/// Below this nothing is told or refused, bytes: the reserve of the run directory is proof
/// enough.
const LITTLE: u64 = 10_000_000;

/// Bytes that cells take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Needed {
    /// On an idle machine.
    low: u64,
    /// With many late samples.
    high: u64,
    /// What the largest cell takes with many late samples.
    largest: u64,
}

impl Needed {
    /// What these cells take together.
    pub(super) fn by<'a>(cells: impl Iterator<Item = &'a Prepared>) -> Self {
        cells.fold(Self::default(), |sum, cell| {
            let of = Self::by_cell(cell);
            Self {
                low: sum.low.saturating_add(of.low),
                high: sum.high.saturating_add(of.high),
                largest: sum.largest.max(of.high),
            }
        })
    }

    /// What so many such runs take together; 0 counts as 1.
    pub(super) fn times(self, runs: u32) -> Self {
        let runs = u64::from(runs.max(1));
        let Self { low, high, largest } = self;
        Self { low: low.saturating_mul(runs), high: high.saturating_mul(runs), largest }
    }

    fn by_cell(cell: &Prepared) -> Self {
        let seconds = cell.plan.duration_ns / punctual_core::units::SECOND_NS;
        let frame = seconds.saturating_mul(SECOND);
        let Measures::Probe(probe) = &cell.measures else {
            return Self { low: 0, high: frame, largest: frame };
        };
        let threads = u64::try_from(probe.threads.threads.len()).unwrap_or(u64::MAX);
        let series = u64::try_from(probe.entry.series.len()).unwrap_or(0).saturating_add(1);
        let all = threads.saturating_mul(series);
        let blocks = |block| seconds.saturating_mul(all.saturating_mul(block));
        let high = blocks(BLOCK.1).saturating_add(all.saturating_mul(END)).saturating_add(frame);
        Self { low: blocks(BLOCK.0), high, largest: high }
    }
}

/// What is said of the room that a run takes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// It is little.
    Little,
    /// There is enough.
    Enough(String),
    /// There may be too little, or more than can be read back.
    Scarce(String),
}

/// What to say of a run that needs so much in `dir`, which need not exist yet.
///
/// # Errors
/// There is certainly too little room; the message names the remedy.
pub(super) fn check(needed: Needed, dir: &Path) -> Result<Takes, String> {
    let there = |path: &&Path| !path.as_os_str().is_empty() && path.exists();
    let on = dir.ancestors().find(there).unwrap_or(Path::new("."));
    match storage::room(on) {
        // One without blocks, such as ramfs, does not tell how much it holds.
        Ok(room) if room.total > 0 => told(needed, room.free, dir),
        // What cannot be asked is tried.
        _ => Ok(Takes::Little),
    }
}

fn told(needed: Needed, free: u64, dir: &Path) -> Result<Takes, String> {
    const REMEDY: &str = "free some space, name another folder with --out, or measure for less \
                          time or with fewer threads";
    let Needed { low, high, largest } = needed;
    if high < LITTLE {
        return Ok(Takes::Little);
    }
    let (least, most, has) = (megabytes(low), megabytes(high), megabytes(free));
    let dir = dir.display();
    if low > free {
        return Err(format!(
            "{dir} would take at least about {least}, and {has} are free there: {REMEDY}"
        ));
    }
    if high > free {
        return Ok(Takes::Scarce(format!(
            "{dir} will take about {least} to {most}, more if many samples are late, and only \
             {has} are free there: what does not fit is lost, and the cell says so; {REMEDY}"
        )));
    }
    let enough = format!("{dir} will take at most about {most}; {has} are free");
    if largest > MAX_CELL_FILE {
        return Ok(Takes::Scarce(format!(
            "{enough}; a cell may write more records than can be read back ({}): then its result \
             has no timeline, and nothing is recovered of it if punctual is killed; measure in \
             shorter cells",
            megabytes(MAX_CELL_FILE)
        )));
    }
    Ok(Takes::Enough(enough))
}

/// Memory below this is not told, bytes: 64 threads take less.
const LITTLE_MEMORY: u64 = 100_000_000;

/// What to say of a run whose threads take at least and at most so many bytes, all of them locked.
///
/// # Errors
/// There is certainly too little memory; the message names the remedy.
pub(super) fn memory(bytes: [usize; 2], root: &FactsRoot) -> Result<Takes, String> {
    let free = Memory::read(root).available_bytes;
    let left = OwnCgroups::read().ok().and_then(|own| own.memory_left());
    let bytes = bytes.map(|bytes| u64::try_from(bytes).unwrap_or(u64::MAX));
    told_of_memory(bytes, free, left)
}

/// The same, given what is free on the machine and what limits of control groups leave, if known.
fn told_of_memory(
    [low, high]: [u64; 2],
    free: Option<u64>,
    left: Option<u64>,
) -> Result<Takes, String> {
    let of_group = left.is_some_and(|left| free.is_none_or(|free| left < free));
    let Some(has) = (if of_group { left } else { free }) else { return Ok(Takes::Little) };
    let whose = match of_group {
        true => "the control group of this process allows (memory.max, memory.limit_in_bytes)",
        false => "this machine has",
    };
    let (least, most, available) = (megabytes(low), megabytes(high), megabytes(has));
    if low > has {
        return Err(format!(
            "the threads would lock at least about {least} of memory, and {whose} {available} more: \
             measure with fewer threads (-t)"
        ));
    }
    if high > has {
        return Ok(Takes::Scarce(format!(
            "the threads will lock about {least} to {most} of memory, and {whose} only {available} \
             more: the kernel may kill this process; measure with fewer threads (-t)"
        )));
    }
    Ok(match high {
        0..LITTLE_MEMORY => Takes::Little,
        _ => Takes::Enough(format!("the threads will lock at most about {most} of memory")),
    })
}

fn megabytes(bytes: u64) -> String {
    match bytes / 1_000_000 {
        mega @ 0..10_000 => format!("{mega} MB"),
        mega => format!("{} GB", mega / 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_threads_say_what_memory_they_take_or_are_refused() {
        const MB: u64 = 1_000_000;
        let told = |low, high, free, left| told_of_memory([low * MB, high * MB], free, left);
        assert_eq!(told(1, 2, None, None), Ok(Takes::Little), "nothing is known");
        assert_eq!(told(1, 2, Some(900 * MB), None), Ok(Takes::Little));
        let Ok(Takes::Enough(said)) = told(700, 800, Some(900 * MB), None) else { panic!() };
        assert_eq!(said, "the threads will lock at most about 800 MB of memory");
        let Ok(Takes::Scarce(said)) = told(700, 1_000, Some(900 * MB), None) else { panic!() };
        assert!(said.contains("700 MB to 1000 MB") && said.contains("has only 900 MB"), "{said}");
        let refused = told(1_000, 1_100, Some(900 * MB), Some(950 * MB)).unwrap_err();
        assert!(refused.contains("this machine has 900 MB more"), "{refused}");
        let refused = told(500, 600, Some(900 * MB), Some(100 * MB)).unwrap_err();
        assert!(refused.contains("memory.max") && refused.contains("100 MB more"), "{refused}");
    }

    #[test]
    fn a_long_run_says_what_it_takes_or_is_refused() {
        let dir = Path::new("runs/r");
        let needed = |low, high| Needed { low, high, largest: high };
        assert_eq!(told(needed(LITTLE - 1, LITTLE - 1), 0, dir), Ok(Takes::Little));
        let long = needed(24_000_000, 242_000_000);
        assert_eq!(
            told(long, 12_345_000_000, dir),
            Ok(Takes::Enough("runs/r will take at most about 242 MB; 12 GB are free".to_owned()))
        );
        let Ok(Takes::Scarce(text)) = told(long, 241_000_000, dir) else { panic!("no warning") };
        assert!(text.starts_with("runs/r will take about 24 MB to 242 MB"), "{text}");
        assert!(text.contains("only 241 MB are free") && text.contains("--out"), "{text}");
        let error = told(long, 23_000_000, dir).unwrap_err();
        assert!(error.starts_with("runs/r would take at least about 24 MB, and 23 MB"), "{error}");
        assert!(error.contains("--out"), "{error}");
    }

    #[test]
    fn several_runs_take_room_for_all_of_them() {
        let one = Needed { low: 3_000_000, high: 6_000_000, largest: 6_000_000 };
        assert_eq!((one.times(0), one.times(1)), (one, one));
        let two = one.times(2);
        assert_eq!(two, Needed { low: 6_000_000, high: 12_000_000, largest: 6_000_000 });
        let told = |needed| told(needed, 5_000_000, Path::new("series"));
        assert_eq!(told(one), Ok(Takes::Little));
        assert!(told(two).unwrap_err().starts_with("series would take at least about 6 MB"));
        assert_eq!(one.times(u32::MAX).largest, one.largest);
    }

    #[test]
    fn a_cell_that_may_be_too_large_to_be_read_back_says_so() {
        let two = |largest| Needed { low: 1, high: 2 * MAX_CELL_FILE, largest };
        let of = |largest| told(two(largest), 1 << 50, Path::new("r")).unwrap();
        assert!(matches!(of(MAX_CELL_FILE), Takes::Enough(_)));
        let Takes::Scarce(text) = of(MAX_CELL_FILE + 1) else { panic!("no warning") };
        assert!(text.contains("than can be read back (1073 MB)"), "{text}");
        assert!(text.contains("shorter cells"), "{text}");
    }

    #[test]
    fn the_room_is_that_of_the_nearest_folder_there_is() {
        let free = storage::room(Path::new("/tmp")).unwrap().free;
        let all = Needed { low: u64::MAX, high: u64::MAX, largest: u64::MAX };
        let error = check(all, Path::new("/tmp/no/such/folder")).unwrap_err();
        assert!(error.contains("/tmp/no/such/folder"), "{error} ({free} free)");
    }

    #[test]
    fn a_file_system_without_blocks_refuses_nothing() {
        let all = Needed { low: u64::MAX, high: u64::MAX, largest: u64::MAX };
        assert_eq!(storage::room(Path::new("/proc")).unwrap().total, 0);
        assert_eq!(check(all, Path::new("/proc")), Ok(Takes::Little));
    }
}
