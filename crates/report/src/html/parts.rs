//! Cells of tables and what marks them.

use maud::{Markup, html};
use punctual_core::schema::{Cell, Outcome, Unit};

use crate::words;

/// The style of an outcome.
pub fn class(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::None => "none",
        Outcome::Pass => "pass",
        Outcome::Skipped | Outcome::Inconclusive => "doubt",
        Outcome::Break | Outcome::Fail => "fail",
    }
}

/// What a page says first of one run; `named` is its short name and its directory, if there are others.
pub fn verdict(named: Option<(&str, &str)>, sentence: &str, more: &Markup) -> Markup {
    html! {
        div class="verdict" {
            @if let Some((name, run)) = named { p { b { (name) } " · " (words::clean(run)) } }
            p { b { (sentence) "." } }
            (more)
        }
    }
}

/// A number cell of a table.
pub fn number(text: String) -> Markup {
    html! { td class="n" { (text) } }
}

/// A name that may be broken after the separators of keys.
pub fn broken(name: &str) -> Markup {
    html! { @for part in name.split_inclusive([',', '+', '/']) { (part) wbr; } }
}

/// Whether a latency is above the deadline that its cell was judged by.
pub fn is_late(cell: &Cell, latency_ns: i64) -> bool {
    let deadline = cell.verdict.deadline_ns;
    deadline.is_some_and(|deadline| u64::try_from(latency_ns).is_ok_and(|ns| ns > deadline))
}

/// The largest value of a row, coloured only if it is too late.
pub fn maximum(text: &str, late: bool) -> Markup {
    html! { td class=(if late { "n max late" } else { "n max" }) { (text) } }
}

/// A latency; a dash without one.
pub fn ns(value: Option<i64>) -> String {
    of(Unit::Ns, value)
}

/// A mean latency; a dash without one.
pub fn mean(value: Option<f64>) -> String {
    mean_of(Unit::Ns, value)
}

/// A value in the unit of its series; a dash without one.
pub fn of(unit: Unit, value: Option<i64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| words::value(unit, Some(value)))
}

/// A mean in the unit of its series; a dash without one.
pub fn mean_of(unit: Unit, value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| words::mean(unit, Some(value)))
}

/// Caption and head of a table: columns of words, then of numbers.
pub fn heads(caption: &str, words: &[&str], numbers: &[&str]) -> Markup {
    html! {
        caption { (caption) }
        thead { tr {
            @for head in words { th scope="col" { (head) } }
            @for head in numbers { th scope="col" class="n" { (head) } }
        } }
    }
}
