//! Values of options, and options that several commands share.

use clap::{Arg, ArgAction};
use punctual_core::plan::Plan;
use punctual_core::rate::Rate;
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

/// How often, such as 6/min.
fn rate(text: &str) -> Result<Rate, String> {
    text.parse().map_err(|_| "must be a number per s, min, h or d, such as 6/min".to_owned())
}

/// Options for how a run is judged.
pub fn judgement() -> [Arg; 7] {
    let probability_of = |id: &'static str, help: String| {
        Arg::new(id).long(id).value_name("P").help(help).value_parser(probability)
    };
    let rate_of = |id: &'static str, help: String| {
        Arg::new(id).long(id).value_name("RATE").help(help).value_parser(rate)
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
        rate_of(
            "episodes",
            format!(
                "PASS requires evidence that late episodes are at most so frequent, e.g. 1/h: \
                 late activations at most 1 s apart are one [default: {}]",
                default.episodes
            ),
        )
        .conflicts_with("singly"),
        rate_of(
            "tolerate-episodes",
            "Make the deadline soft: tolerate late episodes up to this rate".to_owned(),
        )
        .conflicts_with_all(["tolerate", "singly"]),
        probability_of(
            "tolerate",
            "Make the deadline soft: tolerate later activations up to this probability".to_owned(),
        ),
        probability_of(
            "probability",
            "PASS requires the upper bound on P(latency > deadline) to be at most P; converted to \
             a rate of episodes at the probe's interval, unless --singly"
                .to_owned(),
        )
        .conflicts_with("episodes"),
        Arg::new("singly").long("singly").action(ArgAction::SetTrue).help(
            "Take late activations for independent of each other, and bound their probability",
        ),
        probability_of(
            "confidence",
            format!("Confidence of the bound, one-sided [default: {}]", default.confidence),
        ),
    ]
}

/// Options for how long to measure.
pub fn length() -> Vec<Arg> {
    let kept = ["episodes", "probability", "singly", "confidence"];
    let judgement = judgement().into_iter().filter(|arg| kept.contains(&arg.get_id().as_str()));
    let judgement = judgement.map(|arg| match arg.get_id().as_str() {
        "singly" => arg.requires("probability"),
        _ => arg,
    });
    let late = Arg::new("late")
        .long("late")
        .value_name("N")
        .help(
            "Seconds that may hold late activations, of a soft deadline; with --singly: late \
             activations [default: 0]",
        )
        .value_parser(clap::value_parser!(u64).range(..1_000_000_000));
    let interval = Arg::new("interval")
        .short('i')
        .long("interval")
        .value_name("TIME")
        .help("Time between two releases, for --probability [default: 1ms]")
        .value_parser(interval);
    judgement.chain([late, interval]).collect()
}

/// A time between releases, ns; a bare number is in microseconds, as for the probes.
fn interval(text: &str) -> Result<u64, String> {
    match duration(BareNumber::Microseconds)(text)? {
        0 => Err("must be above zero".to_owned()),
        ns => Ok(ns),
    }
}

/// An option as users write it: its short form if it has one.
pub fn spelled(arg: &Arg) -> String {
    match (arg.get_short(), arg.get_long()) {
        (Some(short), _) => format!("-{short}"),
        (None, long) => format!("--{}", long.unwrap_or_default()),
    }
}
