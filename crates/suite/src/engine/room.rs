//! The room on disk that a run takes, told and checked before it starts.

use std::path::Path;

use punctual_sys::storage;

use super::prepared::{Measures, Prepared};

/// What a series of a thread usually takes a second, bytes: 1,350 were measured at 10 kHz
/// under hackbench, late samples included, and 140 at 1 kHz on an idle machine.
const BLOCK: u64 = 1_400;

/// The same for the load's work and the CPUs' time, by cell.
const SECOND: u64 = 100;

/// Histograms and worst samples of a series of a thread, bytes.
const END: u64 = 16 * 1024;

/// Below this nothing is told or refused, bytes: the reserve of the run directory is proof
/// enough.
const LITTLE: u64 = 10_000_000;

/// Bytes that a plan usually takes at most.
pub(super) fn needed(cells: &[Prepared]) -> u64 {
    let of_cell = |cell: &Prepared| {
        let seconds = cell.plan.duration_ns / punctual_core::units::SECOND_NS;
        let Measures::Probe(probe) = &cell.measures else {
            return seconds.saturating_mul(SECOND);
        };
        let threads = u64::try_from(probe.threads.threads.len()).unwrap_or(u64::MAX);
        let series = u64::try_from(probe.entry.series.len()).unwrap_or(0).saturating_add(1);
        let by_second = threads.saturating_mul(series).saturating_mul(BLOCK).saturating_add(SECOND);
        let at_end = threads.saturating_mul(series).saturating_mul(END);
        seconds.saturating_mul(by_second).saturating_add(at_end)
    };
    cells.iter().map(of_cell).fold(0, u64::saturating_add)
}

/// What to tell of a run that needs so much in `dir`, which need not exist yet; nothing if it
/// is little.
///
/// # Errors
/// There is less room; the message names the remedy.
pub(super) fn check(needed: u64, dir: &Path) -> Result<Option<String>, String> {
    let there = |path: &&Path| !path.as_os_str().is_empty() && path.exists();
    let on = dir.ancestors().find(there).unwrap_or(Path::new("."));
    match storage::room(on) {
        Ok(room) => told(needed, room.free, dir),
        // What cannot be asked is tried.
        Err(_) => Ok(None),
    }
}

fn told(needed: u64, free: u64, dir: &Path) -> Result<Option<String>, String> {
    if needed < LITTLE {
        return Ok(None);
    }
    let (needs, has, dir) = (megabytes(needed), megabytes(free), dir.display());
    if needed > free {
        return Err(format!(
            "{dir} would take about {needs}, and {has} are free there: free some space, name \
             another folder with --out, or measure for less time or with fewer threads"
        ));
    }
    Ok(Some(format!("{dir} will take at most about {needs}; {has} are free")))
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
    fn a_long_run_says_what_it_takes_or_is_refused() {
        let dir = Path::new("runs/r");
        assert_eq!(told(LITTLE - 1, 0, dir), Ok(None));
        assert_eq!(
            told(242_000_000, 12_345_000_000, dir).unwrap().unwrap(),
            "runs/r will take at most about 242 MB; 12 GB are free"
        );
        let error = told(242_000_000, 241_000_000, dir).unwrap_err();
        assert!(error.starts_with("runs/r would take about 242 MB, and 241 MB"), "{error}");
        assert!(error.contains("--out"), "{error}");
    }

    #[test]
    fn the_room_is_that_of_the_nearest_folder_there_is() {
        let free = storage::room(Path::new("/tmp")).unwrap().free;
        let error = check(u64::MAX, Path::new("/tmp/no/such/folder")).unwrap_err();
        assert!(error.contains("/tmp/no/such/folder"), "{error} ({free} free)");
    }
}
