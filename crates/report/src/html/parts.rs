//! Cells of tables and what marks them.

use maud::{Markup, html};
use punctual_core::schema::{Outcome, Unit};

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

/// A number cell of a table.
pub fn number(text: String) -> Markup {
    html! { td class="n" { (text) } }
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
