//! Tables in the form of the papers' appendices: minimum, maximum, average,
//! standard deviation and samples, without and with load side by side.

use maud::{Markup, html};
use punctual_core::key;
use punctual_core::run::LoadedRun;
use punctual_core::schema::{Cell, Latency, Stats};
use punctual_core::units::grouped;

use super::summary::ordered;
use crate::words;

const HEADS: [&str; 5] = ["Min", "Max", "Avg", "Std Dev", "Samples"];

/// One probe with its parameters and duration: one table.
struct Test<'a> {
    name: String,
    duration_ns: u64,
    cells: Vec<(usize, &'a Cell)>,
}

pub fn section(runs: &[LoadedRun], names: &[String]) -> Markup {
    html! {
        @if !tests(runs).is_empty() {
            section {
                h2 { "Tables without and with load" }
                (tables(runs, names))
            }
        }
    }
}

pub fn tables(runs: &[LoadedRun], names: &[String]) -> Markup {
    html! {
        p class="about" { "Microseconds. W/O: without load; W/: with the load that the row names." }
        @for test in &tests(runs) { (table(test, names)) }
    }
}

fn tests(runs: &[LoadedRun]) -> Vec<Test<'_>> {
    let mut tests: Vec<Test<'_>> = Vec::new();
    for (run, cell) in ordered(runs) {
        let name = words::probe_name(cell);
        let known =
            tests.iter_mut().find(|test| test.name == name && test.duration_ns == cell.duration_ns);
        match known {
            Some(test) => test.cells.push((run, cell)),
            None => {
                tests.push(Test { name, duration_ns: cell.duration_ns, cells: vec![(run, cell)] })
            }
        }
    }
    tests
}

/// A line for every run and load; a run without a loaded cell has one line.
fn lines<'a>(test: &Test<'a>, runs: usize) -> Vec<(usize, Option<&'a Cell>, Option<&'a Cell>)> {
    let mut lines = Vec::new();
    for run in 0..runs {
        let mine = || test.cells.iter().filter(|(r, _)| *r == run).map(|(_, cell)| *cell);
        let idle = mine().find(|cell| cell.load == key::NO_LOAD);
        let before = lines.len();
        lines.extend(
            mine().filter(|cell| cell.load != key::NO_LOAD).map(|cell| (run, idle, Some(cell))),
        );
        if lines.len() == before && idle.is_some() {
            lines.push((run, idle, None));
        }
    }
    lines
}

fn table(test: &Test<'_>, names: &[String]) -> Markup {
    let lines = lines(test, names.len());
    // A side that no line has would be half a table of "not measured".
    let sides =
        [lines.iter().any(|line| line.1.is_some()), lines.iter().any(|line| line.2.is_some())];
    html! {
        div class="scroll" {
            table {
                caption { (test.name) ", " (words::duration(test.duration_ns)) }
                thead {
                    tr {
                        th scope="col" rowspan="2" { "Kernel" }
                        th scope="col" rowspan="2" { "Load" }
                        @if sides[0] { th scope="colgroup" colspan="5" class="group" { "W/O load" } }
                        @if sides[1] { th scope="colgroup" colspan="5" class="group" { "W/ load" } }
                    }
                    tr {
                        @for _ in sides.iter().filter(|side| **side) {
                            @for (i, head) in HEADS.iter().enumerate() {
                                th scope="col" class=(if i == 0 { "n lead" } else { "n" }) { (head) }
                            }
                        }
                    }
                }
                tbody {
                    @for (run, idle, loaded) in lines {
                        tr {
                            th scope="row" { (names.get(run).map_or("", String::as_str)) }
                            td { (loaded.map_or_else(|| "–".to_owned(), |cell| words::load_name(&cell.load).into_owned())) }
                            @if sides[0] { (half(idle)) }
                            @if sides[1] { (half(loaded)) }
                        }
                    }
                }
            }
        }
    }
}

fn half(cell: Option<&Cell>) -> Markup {
    let absence = cell.map_or_else(|| Some("not measured".to_owned()), words::absence);
    html! {
        @if let Some(absence) = absence {
            td class="doubt lead" colspan="5" { (absence) }
        } @else if let Some(cell) = cell {
            @if let Some(Latency { stats, .. }) = cell.latency() { (numbers(stats)) }
        }
    }
}

fn numbers(stats: &Stats) -> Markup {
    html! {
        td class="n lead" { (exact(stats.min)) }
        td class="n max" { (exact(stats.max)) }
        td class="n" { (micro(stats.avg)) }
        td class="n" { (micro(stats.stddev)) }
        td class="n" { (grouped(stats.samples)) }
    }
}

/// Nanoseconds as microseconds, exactly.
fn exact(ns: Option<i64>) -> String {
    ns.map_or_else(
        || "–".to_owned(),
        |ns| {
            let sign = if ns < 0 { "-" } else { "" };
            let ns = ns.unsigned_abs();
            format!("{sign}{}.{:03}", ns / 1_000, ns % 1_000)
        },
    )
}

fn micro(ns: Option<f64>) -> String {
    ns.map_or_else(|| "–".to_owned(), |ns| format!("{:.3}", ns / 1_000.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_are_exact() {
        assert_eq!(exact(Some(-1_002)), "-1.002");
        assert_eq!(exact(Some(104_100)), "104.100");
        assert_eq!(exact(Some(i64::MIN)), "-9223372036854775.808");
        assert_eq!(micro(Some(1_126.8)), "1.127");
    }
}
