//! What a try says, from the run of its guest.

use punctual_core::run::LoadedRun;
use punctual_core::schema::CellState;
use punctual_core::search::Try;
use punctual_core::sections::Sections;

/// Why a run says nothing of its load; `None` if it does.
pub fn why_not(run: &LoadedRun) -> Option<String> {
    let Some(cell) = run.run.cells.first() else { return Some("nothing was measured".to_owned()) };
    if cell.state != CellState::Complete {
        return Some(cell.reason.clone().unwrap_or_else(|| format!("{:?}", cell.state)));
    }
    let trouble = cell.load_work.iter().find_map(|part| {
        let died = part.deaths > 0;
        let why = part.trouble.clone().or_else(|| died.then(|| "it died".to_owned()))?;
        Some(format!("{}: {why}", part.load))
    });
    trouble.or_else(|| (cell.samples() == 0).then(|| "no release was served".to_owned()))
}

/// What a run's sections say of its load.
pub fn of_sections(tried: Try, sections: &Sections, run: &LoadedRun) -> Try {
    let cell = sections.cells.first();
    // With interrupts off, then all in which nothing could be switched to.
    let longest = cell.and_then(|cell| cell.kinds.last()?.longest.first());
    let executed = sections.coverage.cells.first();
    let work = run.run.cells.first().map(|cell| &cell.load_work[..]).unwrap_or_default();
    Try {
        sizes: work.iter().map(|part| (part.load.clone(), part.params.clone())).collect(),
        longest_ns: Some(longest.map_or(0, |section| section.length_ns)),
        interrupts_off_ns: longest.map_or(0, |section| section.interrupts_off_ns),
        from: longest.map(|section| section.from.clone()).unwrap_or_default(),
        to: longest.map(|section| section.to.clone()).unwrap_or_default(),
        stack: longest.map(|section| section.stack.clone()).unwrap_or_default(),
        most: longest.and_then(|section| section.functions.first().cloned()),
        sampled_max_ns: cell.and_then(|cell| cell.sampled_max_ns),
        functions: executed.map_or(0, |cell| cell.functions),
        locking: executed.map_or(0, |cell| cell.locking),
        ..tried
    }
}
