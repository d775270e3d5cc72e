//! Values of options, and options that several commands share.

use clap::{Arg, ArgAction};
use punctual_core::allowance::{Allowance, AllowanceError};
use punctual_core::plan::{DEFAULT_PROBABILITY, Plan};
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

/// A confidence, strictly between 0 and 1.
fn confidence(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(p) if p > 0.0 && p < 1.0 => Ok(p),
        _ => Err("must be a number between 0 and 1, such as 0.95".to_owned()),
    }
}

/// How much may be late, such as 6/min or 1%.
fn allowance(text: &str) -> Result<Allowance, String> {
    text.parse().map_err(|error: AllowanceError| error.to_string())
}

/// Options for how a run is judged.
pub fn judgement() -> [Arg; 5] {
    let default = Plan::new("");
    let share = Allowance::Share(DEFAULT_PROBABILITY);
    [
        Arg::new("deadline")
            .long("deadline")
            .value_name("TIME")
            .help(
                "Maximum allowed latency, with a unit (e.g. 200us). A single later activation is a \
                 FAIL, unless --allow makes it soft",
            )
            .value_parser(deadline),
        Arg::new("at-most")
            .long("at-most")
            .value_name("RATE")
            .help(format!(
                "Hard deadline: a PASS needs evidence that lateness begins at most this often, e.g. \
                 1/h [default: {}]",
                default.episodes
            ))
            .value_parser(allowance),
        Arg::new("allow")
            .long("allow")
            .value_name("RATE|SHARE")
            .help(
                "Soft deadline: lateness may begin this often (60/min), or this share of activations \
                 may be late (1%)",
            )
            .value_parser(allowance)
            .conflicts_with("at-most"),
        Arg::new("confidence")
            .long("confidence")
            .value_name("P")
            .help(format!(
                "Confidence of the bound, one-sided [default: {}]",
                default.confidence
            ))
            .value_parser(confidence),
        Arg::new("singly")
            .long("singly")
            .action(ArgAction::SetTrue)
            .help(format!(
                "Take late activations for independent of each other, which a stall makes false, and \
                 bound their share: --at-most takes a share too then [default: {share}]"
            ))
            .help_heading(EXPERTS),
    ]
}

/// The heading of what only those need who know how lateness comes.
const EXPERTS: &str = "Judgement, for experts";

/// Options for how long to measure.
pub fn length() -> Vec<Arg> {
    let judgement = judgement().into_iter().filter(|arg| arg.get_id() != "deadline");
    let late = Arg::new("late")
        .long("late")
        .value_name("N")
        .help(
            "Seconds that may hold late activations, of those that --allow allows; with --singly: \
             late activations [default: 0]",
        )
        .value_parser(clap::value_parser!(u64).range(..1_000_000_000))
        .requires("allow")
        // What conflicts with a given option is not required any more.
        .conflicts_with("at-most");
    let interval = Arg::new("interval")
        .short('i')
        .long("interval")
        .value_name("TIME")
        .help("Time between two releases, for --singly [default: 1ms]")
        .value_parser(interval)
        .requires("singly");
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
