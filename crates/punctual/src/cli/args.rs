//! Values of options, and the options that several commands have.

use clap::Arg;
use punctual_core::units::{BareNumber, parse_duration_ns};

/// A duration where a bare number means `bare`, ns.
pub fn duration(
    bare: BareNumber,
) -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync + 'static {
    move |text| parse_duration_ns(text, bare).map_err(|error| error.to_string())
}

/// A duration above zero; a bare number is seconds. ns.
pub fn positive_seconds(text: &str) -> Result<u64, String> {
    match duration(BareNumber::Seconds)(text)? {
        0 => Err("must be above zero".to_owned()),
        ns => Ok(ns),
    }
}

/// A deadline: its unit must be said. ns.
fn deadline(text: &str) -> Result<u64, String> {
    // Nothing is above zero in any unit: not one to be told to write one.
    let bare_zero = text.trim() == "0";
    match if bare_zero { 0 } else { duration(BareNumber::Refused)(text)? } {
        0 => Err("must be above zero".to_owned()),
        ns if i64::try_from(ns).is_err() => Err("must be at most 292 years".to_owned()),
        ns => Ok(ns),
    }
}

/// A probability, between 0 and 1, both excluded.
fn probability(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(p) if p > 0.0 && p < 1.0 => Ok(p),
        _ => Err("must be a number between 0 and 1, as 1e-4".to_owned()),
    }
}

/// How a run is judged.
pub fn judgement() -> [Arg; 4] {
    let probability_of = |id: &'static str, help: &'static str| {
        Arg::new(id).long(id).value_name("P").help(help).value_parser(probability)
    };
    [
        Arg::new("deadline")
            .long("deadline")
            .value_name("TIME")
            .help(
                "Latest start of the work after its release; the unit must be said, as in 200us. \
                 One later activation is a FAIL",
            )
            .value_parser(deadline),
        probability_of(
            "tolerate",
            "Soft deadline: the probability of a later activation that is tolerated",
        ),
        probability_of(
            "probability",
            "A PASS of a hard deadline needs evidence that a later activation is at most this \
             likely [default: 1e-4]",
        ),
        probability_of("confidence", "Confidence of that evidence, one-sided [default: 0.95]"),
    ]
}

/// An option as it is written: its short form where it has one.
pub fn spelled(arg: &Arg) -> String {
    match (arg.get_short(), arg.get_long()) {
        (Some(short), _) => format!("-{short}"),
        (None, long) => format!("--{}", long.unwrap_or_default()),
    }
}
