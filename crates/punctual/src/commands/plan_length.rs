//! `punctual plan-length`.

use clap::ArgMatches;
use punctual_core::rate::Rate;
use punctual_core::stats::samples_needed;
use punctual_core::units::{SECOND_NS, exact_duration, grouped};
use punctual_core::verdict::{episode_rate, observation_needed_ns};
use punctual_report::text::push_wrapped;

use crate::ending::Ending;
use crate::output;

pub fn execute(matches: &ArgMatches) -> anyhow::Result<Ending> {
    let confidence = matches.get_one::<f64>("confidence").copied().unwrap_or(0.95);
    let late = matches.get_one::<u64>("late").copied().unwrap_or(0);
    let probability = matches.get_one::<f64>("probability").copied();
    let interval_ns = matches.get_one::<u64>("interval").copied().unwrap_or(1_000_000);
    let singly = matches.get_flag("singly");
    let asked = matches.get_one::<Rate>("episodes").copied().unwrap_or(Rate::SIX_A_MINUTE);
    let rate = episode_rate(probability, Some(interval_ns)).unwrap_or(asked);
    let (needed_ns, what) = match probability.filter(|_| singly) {
        Some(p) => {
            let releases = samples_needed(p, late, confidence);
            let text = releases.map_or_else(String::new, grouped);
            let ns = releases.and_then(|releases| releases.checked_mul(interval_ns));
            (ns, format!("{text} releases, {} of them late, for P <= {p:e}", grouped(late)))
        }
        None => {
            let without = match late {
                0 => "without a late episode".to_owned(),
                1 => "of which one second held late ones".to_owned(),
                _ => format!("of which {} seconds held late ones", grouped(late)),
            };
            (
                observation_needed_ns(rate.per_second(), late, confidence),
                format!("{without}, for {rate}"),
            )
        }
    };
    let Some(needed_ns) = needed_ns else { anyhow::bail!("no practical time shows that") };
    let seconds = needed_ns.div_ceil(SECOND_NS);
    if matches.get_flag("json") {
        output::print_json(&serde_json::json!({
            "needed_ns": needed_ns,
            "duration_s": seconds,
            "episodes": (!singly).then_some(rate),
            "probability": probability,
            "late": late,
            "confidence": confidence,
        }))?;
        return Ok(Ending::Done);
    }
    let long = exact_duration(seconds * SECOND_NS);
    let also = if long == format!("{seconds}s") { String::new() } else { format!(" ({long})") };
    let width = output::width();
    let mut text = String::new();
    let said = format!("-D {seconds}s{also}: {what} at {} % confidence", confidence * 100.0);
    push_wrapped(&mut text, &said, "", 2, width);
    output::print(&text)?;
    Ok(Ending::Done)
}
