//! `punctual plan-length`.

use clap::ArgMatches;
use punctual_core::allowance::Allowance;
use punctual_core::plan::{DEFAULT_PROBABILITY, Plan};
use punctual_core::stats::samples_needed;
use punctual_core::units::{SECOND_NS, exact_duration, grouped, percent, stretch};
use punctual_core::verdict::observation_needed_ns;
use punctual_report::text::push_wrapped;

use crate::ending::Ending;
use crate::{output, request};

/// Nobody measures for longer than ten years, ns.
const PRACTICAL_NS: u64 = 10 * 365 * 24 * 3_600 * SECOND_NS;

pub fn execute(matches: &ArgMatches) -> anyhow::Result<Ending> {
    let late = matches.get_one::<u64>("late").copied().unwrap_or(0);
    let interval_ns = matches.get_one::<u64>("interval").copied().unwrap_or(1_000_000);
    // How long does not depend on which deadline it is.
    let mut plan = Plan { deadline_ns: Some(1), ..Plan::new("") };
    request::judgement(matches, &mut plan)?;
    let Plan { confidence, singly, .. } = plan;
    if let Some(share) = plan.tolerate.filter(|_| !singly) {
        anyhow::bail!(
            "--allow {}: how long shows a share depends on how lateness comes, so a run says it; \
             --allow with a rate such as 6/min, or --singly, can be answered before",
            Allowance::Share(share)
        );
    }
    let rate = plan.tolerate_episodes.unwrap_or(plan.episodes);
    let share = plan.tolerate.or(plan.probability).unwrap_or(DEFAULT_PROBABILITY);
    let asked = if singly { Allowance::Share(share) } else { Allowance::Rate(rate) };
    let (needed_ns, what) = match asked {
        Allowance::Share(share) => {
            let releases = samples_needed(share, late, confidence);
            let text = releases.map_or_else(String::new, grouped);
            let ns = releases.and_then(|releases| releases.checked_mul(interval_ns));
            (ns, format!("{text} releases, {} of them late", grouped(late)))
        }
        Allowance::Rate(rate) => {
            let without = match late {
                0 => "without lateness".to_owned(),
                1 => "of which one second held lateness".to_owned(),
                _ => format!("of which {} seconds held lateness", grouped(late)),
            };
            (observation_needed_ns(rate.per_second(), late, confidence), without)
        }
    };
    let Some(needed_ns) = needed_ns.filter(|ns| *ns <= PRACTICAL_NS) else {
        anyhow::bail!("no practical time shows that: it is more than ten years, {what}");
    };
    let seconds = needed_ns.div_ceil(SECOND_NS);
    if matches.get_flag("json") {
        output::print_json(&serde_json::json!({
            "needed_ns": needed_ns,
            "duration_s": seconds,
            "at_most": asked.to_string(),
            "late": late,
            "confidence": confidence,
        }))?;
        return Ok(Ending::Done);
    }
    let also = readable(seconds);
    let width = output::width();
    let mut text = String::new();
    let level = percent(confidence);
    let said = format!("-D {seconds}s{also}: {what}, show at most {asked} at {level} % confidence");
    push_wrapped(&mut text, &said, "", 2, width);
    output::print(&text)?;
    Ok(Ending::Done)
}

/// A time of so many seconds in the unit that people use, in brackets; nothing if that is seconds.
fn readable(seconds: u64) -> String {
    let ns = seconds.saturating_mul(SECOND_NS);
    let exact = exact_duration(ns);
    match seconds {
        0..120 => String::new(),
        _ if exact != format!("{seconds}s") => format!(" ({exact})"),
        _ => format!(" ({})", stretch(ns)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_times_are_readable() {
        for (seconds, text) in
            [(30, ""), (119, ""), (180, " (3min)"), (7_200, " (2h)"), (10_785, " (3.0 h)")]
        {
            assert_eq!(readable(seconds), text, "{seconds}");
        }
    }
}
