//! What runs have of the same cell and kind, and how a section is put into words.

use punctual_core::explanation::Hold;
use punctual_core::sections::{CellSections, KindSections, PairSections, Section, Sections};

use crate::explanation::times::{function_name, length, most_of, percent};
use crate::words;

/// The kinds, in the order in which they are shown.
const HOLDS: [Hold; 2] = [Hold::Interrupts, Hold::Scheduler];

/// The sections of one kind in one cell, run by run.
#[derive(Debug)]
pub(crate) struct SameKind<'a> {
    /// Number of the cell among those of all runs.
    pub cell: usize,
    pub key: &'a str,
    pub load: &'a str,
    pub how: Hold,
    /// Only the runs that have it.
    pub runs: Vec<FromRun<'a>>,
}

/// What one run has of a kind.
#[derive(Debug)]
pub(crate) struct FromRun<'a> {
    /// Its number among all runs.
    pub run: usize,
    /// A short name that tells the runs apart.
    pub name: String,
    pub cell: &'a CellSections,
    pub kind: &'a KindSections,
}

/// Names of runs: of their kernels, which is what runs of this kind differ in.
pub(crate) fn names(all: &[Sections]) -> Vec<String> {
    let kernels: Vec<_> = all.iter().map(|one| (one.model, one.release.as_str())).collect();
    words::model_names(&kernels)
}

/// Every kind of every cell that some run has.
pub(crate) fn kinds(all: &[Sections]) -> Vec<SameKind<'_>> {
    let names = names(all);
    let mut cells: Vec<&CellSections> = Vec::new();
    for cell in all.iter().flat_map(|one| &one.cells) {
        if !cells.iter().any(|known| known.key == cell.key) {
            cells.push(cell);
        }
    }
    let mut kinds = Vec::new();
    for (number, cell) in cells.into_iter().enumerate() {
        for how in HOLDS {
            let runs = all.iter().zip(&names).enumerate().filter_map(|(run, (one, name))| {
                let (cell, kind) = of(one, &cell.key, how)?;
                Some(FromRun { run, name: name.clone(), cell, kind })
            });
            let runs: Vec<_> = runs.collect();
            let (key, load) = (cell.key.as_str(), cell.load.as_str());
            if !runs.is_empty() {
                kinds.push(SameKind { cell: number, key, load, how, runs });
            }
        }
    }
    kinds
}

fn of<'a>(one: &'a Sections, key: &str, how: Hold) -> Option<(&'a CellSections, &'a KindSections)> {
    let cell = one.cells.iter().find(|cell| cell.key == key)?;
    Some((cell, cell.kinds.iter().find(|kind| kind.how == how)?))
}

/// The functions between which the longest section of a kind was.
pub(crate) fn ends(kind: &KindSections) -> Option<(&str, &str)> {
    let longest = kind.longest.first().map(|one| (&one.from, &one.to));
    let (from, to) = longest.or_else(|| kind.pairs.first().map(|pair| (&pair.from, &pair.to)))?;
    Some((from, to))
}

/// `from X to Y`.
pub(crate) fn between(from: &str, to: &str) -> String {
    format!("from {} to {}", function_name(from), function_name(to))
}

/// How much of the time watched the sections of a kind took.
pub(crate) fn share(cell: &CellSections, kind: &KindSections) -> String {
    percent(kind.total_ns, cell.watched_ns)
}

/// The longest; none if there was no section.
pub(crate) fn max(kind: &KindSections) -> Option<String> {
    (kind.count > 0).then(|| length(kind.max_ns))
}

/// The largest latency that the samples of a cell found.
pub(crate) fn sampled(cell: &CellSections) -> Option<String> {
    cell.sampled_max_ns.map(length)
}

/// `at 1.204 s`.
pub(crate) fn when(section: &Section) -> String {
    if section.at_ns < 0 {
        return "before the first release".to_owned();
    }
    let word = if section.exact { "at" } else { "after" };
    format!("{word} {}", words::instant(section.at_ns.unsigned_abs()))
}

/// `at 1.204 s, from X to Y, 12.0 us of it with interrupts off`.
pub(crate) fn facts(section: &Section, how: Hold) -> String {
    let off = match how {
        Hold::Scheduler if section.interrupts_off_ns > 0 => {
            format!(", {} of it with interrupts off", length(section.interrupts_off_ns))
        }
        _ => String::new(),
    };
    format!("{}, {}{off}", when(section), between(&section.from, &section.to))
}

/// `most of it X (51 %) and Y (33 %)`; none if no function had much of it.
pub(crate) fn mostly(section: &Section) -> Option<String> {
    let own: Vec<_> =
        section.functions.iter().map(|(name, ns)| (function_name(name), *ns)).collect();
    most_of(&own, section.length_ns)
}

/// The functions in which a section began, callers first; of a deep stack the innermost `most`.
pub(crate) fn stack(section: &Section, most: usize) -> Option<String> {
    let names = &section.stack;
    let hidden = names.len().saturating_sub(most);
    let shown: Vec<_> = names[hidden..].iter().map(|name| function_name(name)).collect();
    let before = if hidden > 0 { "… > " } else { "" };
    (!shown.is_empty()).then(|| format!("{before}{}", shown.join(" > ")))
}

/// The pairs that are shown, and how many more there are.
pub(crate) fn pairs(kind: &KindSections, most: usize) -> (&[PairSections], usize) {
    let (shown, others) = kind.pairs.split_at(most.min(kind.pairs.len()));
    (shown, others.len())
}
