//! What can be said of a judgement before anything is measured.

use super::episodes::observation_needed_ns;
use super::rule::Rule;
use super::sentences::{self, Observed};
use crate::key::key_name;
use crate::schema::Run;
use crate::stats::observed_share;
use crate::units::{exact_duration, percent, stretch};

/// How a run that is about to begin will be judged, if that is not what was asked for, and whether
/// its cells are long enough for a PASS. One sentence each.
#[must_use]
pub fn ahead(run: &Run) -> Vec<String> {
    let rule = Rule::of(&run.plan, &run.board);
    if !rule.counts_episodes() || rule.tolerate.is_some() {
        return Vec::new();
    }
    let mut said = Vec::new();
    let mut shortest: Option<(u64, u64, String)> = None;
    for (cell, planned) in run.cells.iter().zip(&run.plan.cells) {
        let Some(latency) = cell.latency() else { continue };
        let share = observed_share(latency);
        let interval_ns = cell.interval_ns().filter(|interval| *interval > 0);
        if rule.is_hard() && rule.has_no_rate(interval_ns) {
            let text = format!("{}: {}", key_name(&cell.key), sentences::no_rate());
            said.push(text);
            continue;
        }
        let rate = rule.tolerate_episodes.unwrap_or_else(|| rule.rate(interval_ns));
        if let (Some(probability), Some(interval)) = (rule.probability, interval_ns) {
            let text = format!(
                "the plan's probability, {} % at an interval of {}, is judged as how often lateness \
                 begins: at most {rate}; at_most says that, and --singly bounds the share itself",
                percent(probability),
                exact_duration(interval)
            );
            if !said.contains(&text) {
                said.push(text);
            }
        }
        let by_samples = planned.samples.zip(interval_ns).map(|(n, ns)| n.saturating_mul(ns));
        let observed = by_samples.map_or(cell.duration_ns, |ns| ns.min(cell.duration_ns));
        let Some(needed) = observation_needed_ns(rate.per_second(), 0, rule.confidence) else {
            continue;
        };
        // The one that lacks most.
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a time in which something is observed"
        )]
        let observed = (observed as f64 * share) as u64;
        let ended_after = by_samples.filter(|ns| *ns < cell.duration_ns).and(planned.samples);
        let observing = Observed { ns: observed, share, ended_after };
        let lacks = needed.saturating_sub(observed);
        if lacks > 0 && shortest.as_ref().is_none_or(|(most, ..)| lacks > *most) {
            let text = format!(
                "to show at most {rate} {} without lateness are needed in each cell, and one observes \
                 {}: {} is long enough",
                stretch(needed),
                stretch(observed),
                observing.long_enough(needed)
            );
            shortest = Some((lacks, observed, text));
        }
    }
    said.extend(shortest.map(|(.., text)| text));
    said
}
