//! Names of the files of figures.

use crate::subject::Subject;
use crate::words;

/// A file name for a figure of one cell: unique by its numbers, readable by its words.
pub fn of_cell(kind: &str, subject: &Subject<'_>) -> String {
    let (run, cell) = subject.at;
    let words = format!("{}-{}", subject.latency.probe, subject.cell.load);
    format!("{kind}-{run}-{cell:02}-{}", plain(&words))
}

/// A file name for a figure of one probe.
pub fn of_probe(kind: &str, probe: &str) -> String {
    format!("{kind}-{}", plain(probe))
}

/// A file name for a figure of all runs of one cell, by its number and its load.
pub fn of_load(kind: &str, cell: usize, load: &str) -> String {
    let name = format!("{kind}-{cell:02}-{}", plain(load));
    name.trim_end_matches('-').to_owned()
}

fn plain(words: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let name: String = words.chars().map(letter).take(40).collect();
    name.trim_end_matches('-').to_owned()
}

/// A title that says whether what is drawn is made up: a file stands alone.
pub fn titled<'a>(subjects: impl IntoIterator<Item = &'a Subject<'a>>, title: &str) -> String {
    let simulated: Vec<_> =
        subjects.into_iter().map(|subject| subject.cell.is_simulated()).collect();
    if !simulated.contains(&true) {
        return title.to_owned();
    }
    let label =
        if simulated.contains(&false) { words::SIMULATED_IN_PART } else { words::SIMULATED };
    format!("{label} · {title}")
}

/// A description with the subject's note.
pub fn described(subject: &Subject<'_>, text: String) -> String {
    match &subject.note {
        Some(note) => format!("{text} Shown: {note}."),
        None => text,
    }
}
