//! Values of options, and options that several commands share.

use clap::Arg;
use punctual_core::plan::Plan;
use punctual_core::units::{BareNumber, parse_duration_ns};

/// A parser of durations (ns) that reads a bare number in the unit `bare`.
pub fn duration(
    bare: BareNumber,
) -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync + 'static {
    move |text| parse_duration_ns(text, bare).map_err(|error| error.to_string())
}

/// A duration above zero, ns; a bare number is in seconds.
pub fn positive_seconds(text: &str) -> Result<u64, String> {
    match duration(BareNumber::Seconds)(text)? {
        0 => Err("must be above zero".to_owned()),
        ns => Ok(ns),
    }
}

/// A deadline, ns, which must have a unit.
fn deadline(text: &str) -> Result<u64, String> {
    // Zero is refused in any unit, so do not ask for one.
    let bare_zero = text.trim() == "0";
    match if bare_zero { 0 } else { duration(BareNumber::Refused)(text)? } {
        0 => Err("must be above zero".to_owned()),
        ns if i64::try_from(ns).is_err() => Err("must be at most 292 years".to_owned()),
        ns => Ok(ns),
    }
}

/// A probability strictly between 0 and 1.
fn probability(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(p) if p > 0.0 && p < 1.0 => Ok(p),
        _ => Err("must be a number between 0 and 1, such as 1e-4".to_owned()),
    }
}

/// Options for how a run is judged.
pub fn judgement() -> [Arg; 4] {
    let probability_of = |id: &'static str, help: String| {
        Arg::new(id).long(id).value_name("P").help(help).value_parser(probability)
    };
    let default = Plan::new("");
    [
        Arg::new("deadline")
            .long("deadline")
            .value_name("TIME")
            .help(
                "Maximum allowed latency, with a unit (e.g. 200us). A single later activation is a \
                 FAIL",
            )
            .value_parser(deadline),
        probability_of(
            "tolerate",
            "Make the deadline soft: tolerate later activations up to this probability".to_owned(),
        ),
        probability_of(
            "probability",
            format!(
                "PASS requires the upper bound on P(latency > deadline) to be at most P \
                 [default: {:e}]",
                default.probability
            ),
        ),
        probability_of(
            "confidence",
            format!("Confidence of that bound, one-sided [default: {}]", default.confidence),
        ),
    ]
}

/// An option as users write it: its short form if it has one.
pub fn spelled(arg: &Arg) -> String {
    match (arg.get_short(), arg.get_long()) {
        (Some(short), _) => format!("-{short}"),
        (None, long) => format!("--{}", long.unwrap_or_default()),
    }
}
