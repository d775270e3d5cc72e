//! Whether two runs of a virtual board are the same, byte for byte, and if not,
//! where they first differ.
//!
//! On a board whose time is counted in instructions, a repeated run gives the same
//! nanoseconds. This is true only for equal boards with equal plans, so everything
//! else is refused rather than compared.

mod records;

use serde::Serialize;
use serde_json::Value;

use crate::aim::Aim;
use crate::dither::Dither;
use crate::layout;
use crate::schema::{Cell, Lab, Run, RunState};

/// One of the two runs.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// Its name in the result; IDs of equal runs can be equal.
    pub name: &'a str,
    /// `run.json`, neither repaired nor judged again.
    pub run: &'a Run,
    /// The same as it was read, including keys that this version does not know.
    pub json: &'a Value,
    /// The files of `run.cells`, in the same order.
    pub files: &'a [Files],
}

/// The bytes of a cell's files; none for a missing file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    /// `blocks`.
    pub blocks: Option<Vec<u8>>,
    /// `histograms`.
    pub histograms: Option<Vec<u8>>,
}

impl Files {
    fn by_name<'a>(&'a self, other: &'a Self) -> [(&'static str, [&'a Option<Vec<u8>>; 2]); 2] {
        [
            (layout::BLOCKS, [&self.blocks, &other.blocks]),
            (layout::HISTOGRAMS, [&self.histograms, &other.histograms]),
        ]
    }

    fn bytes(&self) -> usize {
        [&self.blocks, &self.histograms].into_iter().flatten().map(Vec::len).sum()
    }
}

/// The result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Sameness {
    /// The measured parts are the same.
    Identical,
    /// They are not.
    NotIdentical {
        /// Where they first differ, in the order of the plan.
        first: First,
    },
    /// Nothing was compared: the runs need not be the same.
    Refused {
        /// Every reason for that.
        refused: Vec<String>,
    },
}

/// Two runs, compared exactly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Exact {
    /// The result.
    #[serde(flatten)]
    pub outcome: Sameness,
    /// Cells of the first run; this and the counts below are 0 if it was refused.
    pub cells: usize,
    /// How many of them are the same in the second one.
    pub cells_identical: usize,
    /// Bytes in the files of the first run's cells.
    pub bytes: usize,
    /// How many of them are in files that are the same in the second one.
    pub bytes_identical: usize,
    /// Notes, one sentence each.
    pub notes: Vec<String>,
}

/// The first difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct First {
    /// Key of the cell, with a number if the plan contains it several times; none for the
    /// whole run.
    pub cell: Option<String>,
    /// `blocks`, `histograms` or `run.json`.
    pub file: &'static str,
    /// What differs, with both values.
    pub what: String,
}

impl Exact {
    /// Nothing was compared, for these reasons.
    #[must_use]
    pub fn refused(reasons: Vec<String>, notes: Vec<String>) -> Self {
        Self {
            outcome: Sameness::Refused { refused: reasons },
            cells: 0,
            cells_identical: 0,
            bytes: 0,
            bytes_identical: 0,
            notes,
        }
    }
}

/// Compares what two runs measured: the files of their cells, the entries of
/// the cells in `run.json`, and the interrupts meanwhile if both have them.
/// Refuses runs that are not expected to be the same.
#[must_use]
pub fn compare(a: Candidate<'_>, b: Candidate<'_>) -> Exact {
    let mut notes: Vec<String> = [a, b].into_iter().flat_map(notes).collect();
    let refused = refusals(a, b);
    if !refused.is_empty() {
        return Exact::refused(refused, notes);
    }
    notes.extend(interrupts_of_one(a, b));
    let mut exact = Exact {
        outcome: Sameness::Identical,
        cells: 0,
        cells_identical: 0,
        bytes: 0,
        bytes_identical: 0,
        notes,
    };
    let mut found = Vec::new();
    for number in 0..a.run.cells.len().max(b.run.cells.len()) {
        let before = found.len();
        compare_cells(number, a, b, &mut exact, &mut found);
        exact.cells_identical += usize::from(found.len() == before);
    }
    exact.cells = a.run.cells.len();
    exact.bytes = a.files.iter().map(Files::bytes).sum();
    found.extend(interrupts(a.json, b.json));
    if let Some(first) = found.into_iter().next() {
        exact.outcome = Sameness::NotIdentical { first };
    }
    exact
}

/// Compares the cells with this number; adds up to one difference for each file.
fn compare_cells<'a>(
    number: usize,
    a: Candidate<'a>,
    b: Candidate<'a>,
    exact: &mut Exact,
    found: &mut Vec<First>,
) {
    let longer = if number < a.run.cells.len() { a.run } else { b.run };
    let cell = numbered_key(&longer.cells, number);
    let first = |file, what| First { cell: cell.clone(), file, what };
    let none = Files::default();
    let files = a.files.get(number).unwrap_or(&none);
    for (name, [left, right]) in files.by_name(b.files.get(number).unwrap_or(&none)) {
        match (left, right) {
            (left, right) if left == right => {
                exact.bytes_identical += left.as_ref().map_or(0, Vec::len);
            }
            (Some(left), Some(right)) => {
                found.push(first(name, records::first_difference(left, right)));
            }
            (left, _) => {
                let without = if left.is_none() { a.name } else { b.name };
                found.push(first(name, format!("the file {name} is missing in {without}")));
            }
        }
    }
    let entry = |json: &'a Value| json.get("cells")?.get(number).map(measured);
    let (left, right) = (entry(a.json), entry(b.json));
    let difference = json_difference(&format!("cells[{number}]"), left.as_ref(), right.as_ref());
    found.extend(difference.map(|what| first(layout::RUN_JSON, what)));
}

/// The key of a cell; a number follows if a plan contains the same cell several times.
fn numbered_key(cells: &[Cell], number: usize) -> Option<String> {
    let (cell, before) = cells.get(..=number)?.split_last()?;
    Some(match before.iter().filter(|other| other.key == cell.key).count() {
        0 => cell.key.clone(),
        earlier => format!("{} ({})", cell.key, earlier + 1),
    })
}

/// Every reason why two runs are not expected to be the same.
fn refusals(a: Candidate<'_>, b: Candidate<'_>) -> Vec<String> {
    let (Some(of_a), Some(of_b)) = (counted(a), counted(b)) else {
        return [a, b].into_iter().filter(|side| counted(*side).is_none()).map(not_exact).collect();
    };
    let mut found = Vec::new();
    for (what, read) in BOARD {
        found.extend(unlike(what, &read(of_a), &read(of_b)));
    }
    let command_line = |side: Candidate<'_>| side.run.kernel.command_line.clone();
    found.extend(unlike("kernel.command_line", &command_line(a), &command_line(b)));
    let plan = |side: Candidate<'_>| side.json.get("plan").map(ordered);
    found.extend(json_difference("plan", plan(a).as_ref(), plan(b).as_ref()));
    for (group, fact) in FACTS {
        let of =
            |side: Candidate<'_>| side.json.pointer(&format!("/facts/{group}/{fact}")).cloned();
        found.extend(json_difference(
            &format!("facts.{group}.{fact}"),
            of(a).as_ref(),
            of(b).as_ref(),
        ));
    }
    let phase = |side: Candidate<'_>| side.run.phase_ns.to_string();
    found.extend(unlike("phase_ns", &phase(a), &phase(b)));
    let dither = |side: Candidate<'_>| side.run.dither.as_ref().map(Dither::words);
    found.extend(unlike("dither", &dither(a).unwrap_or_default(), &dither(b).unwrap_or_default()));
    let aim = |side: Candidate<'_>| side.run.aim.map(Aim::words).unwrap_or_default();
    found.extend(unlike("aim", &aim(a), &aim(b)));
    found.extend([a, b].into_iter().filter_map(nothing_in));
    found
}

/// Keys of a plan that only name it or say how to judge: those whose values stay with the side that
/// orders a run ([`crate::channel::Order`]).
const NOT_ORDERED: [&str; 11] = [
    "name",
    "variant",
    "citation",
    "kernels",
    "episodes",
    "tolerate_episodes",
    "tolerate",
    "probability",
    "singly",
    "confidence",
    "available",
];

/// The plan without what only names or judges, also in its cells.
fn ordered(plan: &Value) -> Value {
    let mut plan = plan.clone();
    let without = |value: &mut Value| {
        if let Some(keys) = value.as_object_mut() {
            keys.retain(|key, _| !NOT_ORDERED.contains(&key.as_str()));
        }
    };
    without(&mut plan);
    plan.get_mut("cells").and_then(Value::as_array_mut).into_iter().flatten().for_each(without);
    plan
}

/// Keys of a verdict that are counted while it is measured; the others are a judgement of these, in
/// the words of whoever judged.
const COUNTED: [&str; 2] = ["exceedances", "deadline_ns"];

/// An entry of a cell without what was judged of it.
fn measured(entry: &Value) -> Value {
    match entry {
        Value::Object(keys) => {
            let kept = keys.iter().map(|(key, value)| match value {
                Value::Object(verdict) if key == "verdict" => {
                    let counted = verdict.iter().filter(|(key, _)| COUNTED.contains(&key.as_str()));
                    let counted = counted.map(|(key, value)| (key.clone(), value.clone()));
                    (key.clone(), Value::Object(counted.collect()))
                }
                value => (key.clone(), measured(value)),
            });
            Value::Object(kept.collect())
        }
        Value::Array(values) => Value::Array(values.iter().map(measured).collect()),
        value => value.clone(),
    }
}

/// Facts that numbers depend on, by group: settings of the engine besides the plan, and the
/// firmware, which sets up the board's CPU before the kernel runs.
const FACTS: [(&str, &str); 5] = [
    ("engine", "break_ns"),
    ("engine", "threshold_ns"),
    ("engine", "dma_latency_us"),
    ("engine", "sync"),
    ("hardware", "firmware"),
];

/// Why there is nothing to compare in a run: two runs that measured nothing are equal, and
/// prove nothing.
fn nothing_in(side: Candidate<'_>) -> Option<String> {
    let cells = &side.run.cells;
    if !cells.iter().any(Cell::is_measured) {
        return Some(format!("{} measured nothing: there is nothing to compare", side.name));
    }
    let latencies = cells.iter().any(|cell| cell.samples() > 0);
    let bytes: usize = side.files.iter().map(Files::bytes).sum();
    (latencies && bytes == 0).then(|| {
        format!(
            "{} has samples but no records of them: its cells' files are missing or empty",
            side.name
        )
    })
}

/// That the interrupts of one run were not recorded.
fn interrupts_of_one(a: Candidate<'_>, b: Candidate<'_>) -> Option<String> {
    let missing = |side: &Candidate<'_>| {
        side.json.pointer("/facts/interrupts_during").is_none_or(Value::is_null)
    };
    (missing(&a) != missing(&b)).then(|| {
        let without = if missing(&a) { a.name } else { b.name };
        format!("{without} has no record of its interrupts: they are not compared")
    })
}

fn counted(side: Candidate<'_>) -> Option<&Lab> {
    side.run.board.lab.as_ref().filter(|_| side.run.board.is_deterministic())
}

fn not_exact(side: Candidate<'_>) -> String {
    let board = &side.run.board;
    let what = if board.is_plumbing() {
        "a virtual board without instruction counting".to_owned()
    } else {
        format!("a {} board", board.kind.name())
    };
    format!(
        "{} is from {what}: only a virtual board with counted instructions repeats exactly",
        side.name
    )
}

type LabField = (&'static str, fn(&Lab) -> String);

/// What determines the numbers of a virtual board, from `board.lab`.
const BOARD: &[LabField] = &[
    ("qemu", |lab| lab.qemu.clone()),
    ("options", |lab| lab.options.join(" ")),
    ("firmware_sha256", |lab| lab.firmware_sha256.clone().unwrap_or_default()),
    ("arch", |lab| lab.arch.clone()),
    ("cpus", |lab| lab.cpus.to_string()),
    ("memory_mib", |lab| lab.memory_mib.to_string()),
    ("mips", |lab| lab.mips.to_string()),
    ("seed", |lab| lab.seed.to_string()),
    ("devices", |lab| lab.devices.join(" ")),
    ("kernel_sha256", |lab| lab.kernel_sha256.clone()),
    ("modules", |lab| lab.modules.join(" ")),
    ("initramfs_sha256", |lab| lab.initramfs_sha256.clone()),
    ("punctual_sha256", |lab| lab.punctual_sha256.clone()),
    ("snapshot_sha256", |lab| lab.snapshot_sha256.clone().unwrap_or_default()),
];

fn unlike(what: &str, a: &str, b: &str) -> Option<String> {
    let named = |text: &str| if text.is_empty() { "none" } else { text }.to_owned();
    (a != b).then(|| format!("{what}: {} against {}", named(a), named(b)))
}

fn notes(side: Candidate<'_>) -> Vec<String> {
    let name = side.name;
    let how = match side.run.state {
        RunState::Complete => None,
        RunState::Running => Some("was cut short"),
        RunState::Interrupted => Some("was interrupted"),
        RunState::Failed => Some("ended by an error"),
    };
    let how = how.map(|how| format!("{name} {how}: what it contains is compared"));
    let why = side.run.board.lab.iter().flat_map(|lab| &lab.not_exact);
    how.into_iter().chain(why.map(|why| format!("{name} may not repeat exactly: {why}"))).collect()
}

fn interrupts<'a>(a: &'a Value, b: &'a Value) -> Option<First> {
    let of = |run: &'a Value| {
        run.pointer("/facts/interrupts_during").filter(|interrupts| !interrupts.is_null())
    };
    let what = json_difference("facts.interrupts_during", Some(of(a)?), Some(of(b)?))?;
    Some(First { cell: None, file: layout::RUN_JSON, what })
}

/// The path of the first value that differs, with both values.
fn json_difference(path: &str, a: Option<&Value>, b: Option<&Value>) -> Option<String> {
    match (a, b) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let mut keys = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key)));
            keys.find_map(|key| json_difference(&format!("{path}.{key}"), a.get(key), b.get(key)))
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => (0..a.len().max(b.len()))
            .find_map(|n| json_difference(&format!("{path}[{n}]"), a.get(n), b.get(n))),
        _ => (a != b).then(|| format!("{path}: {} against {}", shown(a), shown(b))),
    }
}

/// How many characters of a value are shown; whole objects can be long.
const SHOWN: usize = 80;

fn shown(value: Option<&Value>) -> String {
    let text = value.map_or_else(|| "nothing".to_owned(), Value::to_string);
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests;
