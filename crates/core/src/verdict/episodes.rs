//! The judgement by late episodes, whose number stalls do not multiply.

use super::evidence::Evidence;
use super::rule::Rule;
use super::sentences::{self, Observed};
use crate::rate::Rate;
use crate::schema::{Episodes, Outcome, Verdict};
use crate::stats::{LEAST_BATCHES_LATE, LEAST_OBSERVED_NS, LEAST_SECONDS_LATE, LONG_EPISODE_NS};
use crate::units::{SECOND_NS, grouped, stretch};

/// How often a thread or cell was late, per second; infinity if that is not recorded.
pub(super) fn observed_rate(evidence: &Evidence<'_>) -> f64 {
    let Some(episodes) = evidence.episodes else {
        return if evidence.exceedances > 0 { f64::INFINITY } else { 0.0 };
    };
    #[allow(clippy::cast_precision_loss, reason = "a rate needs no 16th digit")]
    let rate = episodes.count as f64 * SECOND_NS as f64 / episodes.observed_ns.max(1) as f64;
    rate
}

/// Judges by late episodes; `seen` says how many activations were late.
pub(super) fn by_episodes(evidence: &Evidence<'_>, seen: String, rule: &Rule) -> Verdict {
    let unknown = Episodes::default();
    let found = evidence.episodes.unwrap_or(&unknown);
    let k = evidence.exceedances;
    // A record of lateness without its times: how often is not known.
    let whole = rule.tolerate.is_none() || found.size_sum >= k;
    let known = k == 0 || (found.count > 0 && whole);
    let upper = known.then(|| found.rate_upper(rule.confidence)).flatten();
    let mut because = vec![seen];
    because.extend(sentences::in_episodes(found));
    // Of a hard deadline that was missed nobody asks how often it may be.
    let asked = rule.tolerate.is_none() && (k == 0 || !rule.is_hard());
    because.extend(bound(found, upper, known, rule).filter(|_| asked || !known));
    let mut upper_bound = None;
    let (outcome, reason) = match (rule.tolerate, rule.tolerate_episodes) {
        _ if !known && !rule.is_hard() => (Outcome::Inconclusive, None),
        (Some(tolerated), _) => {
            let judged = share(evidence, found, tolerated, rule);
            upper_bound = judged.upper;
            (judged.outcome, Some(judged.reason))
        }
        (None, Some(tolerated)) => often(evidence, found, upper, tolerated, rule),
        (None, None) => never(evidence, upper, rule),
    };
    because.extend(reason);
    if rule.tolerate_episodes.is_some() && found.clustered {
        because.push(sentences::clustered(found));
    }
    Verdict {
        exceedances: k,
        episodes: found.count,
        episode_rate_upper: upper,
        upper_bound,
        ..rule.verdict(outcome, because)
    }
}

/// What is claimed of their rate, or why nothing is.
fn bound(found: &Episodes, upper: Option<f64>, known: bool, rule: &Rule) -> Option<String> {
    match upper {
        Some(upper) => Some(sentences::at_most_one_in(upper, rule.confidence)),
        None if !known => Some("when they were late is not recorded: no bound".to_owned()),
        None if found.count > 0 && found.observed_ns >= LEAST_OBSERVED_NS => {
            Some("every second held a late one: no bound on their rate".to_owned())
        }
        None => None,
    }
}

/// A hard deadline: never late, and seen for long enough.
fn never(evidence: &Evidence<'_>, upper: Option<f64>, rule: &Rule) -> (Outcome, Option<String>) {
    let interval_ns = evidence.interval_ns.filter(|interval| *interval > 0);
    let rate = rule.rate(interval_ns);
    if evidence.exceedances > 0 {
        return (Outcome::Fail, None);
    }
    if rule.has_no_rate(interval_ns) {
        return (Outcome::Inconclusive, Some(sentences::no_rate()));
    }
    if upper.is_some_and(|upper| upper <= rate.per_second() * (1.0 + 1e-9)) {
        return (Outcome::Pass, None);
    }
    let needed_ns = observation_needed_ns(rate.per_second(), 0, rule.confidence);
    let needs = needs(evidence, rate, needed_ns, 0, rule);
    (Outcome::Inconclusive, Some(needs))
}

/// A soft deadline: late episodes up to a rate.
fn often(
    evidence: &Evidence<'_>,
    found: &Episodes,
    upper: Option<f64>,
    allowed: Rate,
    rule: &Rule,
) -> (Outcome, Option<String>) {
    let tolerated = allowed.per_second();
    let clustered = found.clustered;
    if !clustered && found.rate_lower(rule.confidence) > tolerated {
        return (Outcome::Fail, Some(sentences::too_often(allowed, rule.confidence)));
    }
    if !clustered && upper.is_some_and(|upper| upper <= tolerated) {
        return (Outcome::Pass, None);
    }
    let unbounded = upper.is_none() && found.observed_ns >= LEAST_OBSERVED_NS;
    if clustered || unbounded {
        return (Outcome::Inconclusive, None);
    }
    let late = if found.count == 0 { 0 } else { found.seconds_late };
    let needed_ns = observation_needed_ns(tolerated, late, rule.confidence);
    (Outcome::Inconclusive, Some(needs(evidence, allowed, needed_ns, late, rule)))
}

/// How long to observe, and the -D or -l for it.
fn needs(
    evidence: &Evidence<'_>,
    rate: Rate,
    needed_ns: Option<u64>,
    late: u64,
    rule: &Rule,
) -> String {
    sentences::needs_time(rate, needed_ns, &observed(evidence, rule), late)
}

fn observed(evidence: &Evidence<'_>, rule: &Rule) -> Observed {
    Observed {
        ns: evidence.episodes.map_or(0, |episodes| episodes.observed_ns),
        share: evidence.observed_share,
        ended_after: rule.ended_after,
    }
}

/// The share that was late.
fn seen(evidence: &Evidence<'_>) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "a share needs no 16th digit")]
    let seen = evidence.exceedances as f64 / evidence.stats.scheduled.max(1) as f64;
    seen
}

/// Bounds on the share of activations that is late by its batches, between which the share lies that
/// was seen: batches leave out what does not fill the last one, and a record may have been edited.
/// By another deadline than that of the run a bin that contains it counts as a whole in batches, and
/// less in the number of late ones, so that the lower bound is lowered as far as that is smaller.
fn share_bounds(evidence: &Evidence<'_>, found: &Episodes, level: f64) -> Option<(f64, f64)> {
    let (lower, upper) = found.share_bounds(evidence.stats.scheduled, level)?;
    let (seen, k) = (seen(evidence), evidence.exceedances);
    #[allow(clippy::cast_precision_loss, reason = "a share needs no 16th digit")]
    let surely =
        if found.in_seconds { k as f64 / found.size_sum.max(k).max(1) as f64 } else { 1.0 };
    Some(((lower * surely).min(seen), upper.max(seen)))
}

/// About how long to observe, ns, until bounds of a share leave out what is allowed: they come
/// closer to what was seen with the root of the time. Infinity if what was seen is what is allowed.
fn share_needs_ns((lower, upper): (f64, f64), seen: f64, allowed: f64, observed_ns: u64) -> f64 {
    let bound = if seen < allowed { upper } else { lower };
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    let observed = observed_ns as f64;
    observed * ((bound - seen) / (allowed - seen)).powi(2)
}

/// The option for about so long, ns, if people can run that long: up to ten years.
fn run_about(needed_ns: f64, observed: &Observed) -> Option<String> {
    const MOST_NS: f64 = 3.2e17;
    let possible = needed_ns.is_finite() && (0.0..MOST_NS).contains(&needed_ns);
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and ten years"
    )]
    let needed = possible.then_some(needed_ns as u64)?;
    Some(format!("about {} may do: run with {}", stretch(needed), observed.long_enough(needed)))
}

/// A judgement by the share that is late.
struct OfShare {
    outcome: Outcome,
    /// The upper bound that it rests on; none if there is none.
    upper: Option<f64>,
    reason: String,
}

/// A soft deadline: late activations up to a share.
fn share(evidence: &Evidence<'_>, found: &Episodes, tolerated: f64, rule: &Rule) -> OfShare {
    let (level, nouns) = (rule.confidence, &evidence.primary.nouns);
    let judged = |outcome, upper, reason| OfShare { outcome, upper, reason };
    let by_batches = share_bounds(evidence, found, level)
        .map(|(lower, upper)| (lower, upper, sentences::share(upper, nouns, level)));
    match &by_batches {
        Some((lower, upper, said)) if *lower > tolerated => {
            let more = sentences::intolerable(tolerated, level);
            return judged(Outcome::Fail, Some(*upper), format!("{said}; {more}"));
        }
        Some((_, upper, said)) if *upper <= tolerated => {
            return judged(Outcome::Pass, Some(*upper), said.clone());
        }
        _ => {}
    }
    let by_longest = found.share_by_longest(evidence.stats.scheduled, level);
    let by_longest = by_longest.map(|upper| upper.max(seen(evidence)));
    if let Some(upper) = by_longest.filter(|upper| *upper <= tolerated) {
        let longest_ns = found.longest_allowed_ns();
        let said = sentences::share_by_longest(upper, nouns, longest_ns, level);
        return judged(Outcome::Pass, Some(upper), said);
    }
    if let Some((lower, upper, said)) = by_batches {
        let seen = seen(evidence);
        let needed_ns = share_needs_ns((lower, upper), seen, tolerated, found.observed_ns);
        let run = run_about(needed_ns, &observed(evidence, rule))
            .unwrap_or_else(|| "a longer run bounds it closer".to_owned());
        let said = format!("{said}; {run}");
        return judged(Outcome::Inconclusive, Some(upper), said);
    }
    judged(Outcome::Inconclusive, by_longest, share_is_open(evidence, found, tolerated, rule))
}

/// Why nothing is claimed of the share that is late.
fn share_is_open(evidence: &Evidence<'_>, found: &Episodes, tolerated: f64, rule: &Rule) -> String {
    let nouns = &evidence.primary.nouns;
    if found.count == 0 {
        let rate = tolerated * SECOND_NS as f64 / LONG_EPISODE_NS as f64;
        let needed = observation_needed_ns(rate, 0, rule.confidence);
        let run = needed.map_or_else(String::new, |ns| {
            format!(": run with {}", observed(evidence, rule).long_enough(ns))
        });
        return format!(
            "too little evidence: that at most {} of {nouns} are late, if nothing makes them late for \
             longer than {} at a time, takes a longer time without a late one{run}",
            sentences::confidence(tolerated),
            stretch(LONG_EPISODE_NS)
        );
    }
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    let needed_ns =
        found.observed_ns as f64 * LEAST_SECONDS_LATE as f64 / found.seconds_late.max(1) as f64;
    let few = found.seconds_late < LEAST_SECONDS_LATE;
    let run = run_about(needed_ns, &observed(evidence, rule))
        .filter(|_| few)
        .unwrap_or_else(|| "it takes a run several times as long".to_owned());
    format!(
        "too little evidence: the share of {nouns} that is late follows from {LEAST_SECONDS_LATE} \
         seconds with a late one, in {LEAST_BATCHES_LATE} or more stretches that are longer than what \
         makes them late; {} such seconds were seen; {run}; --allow with a rate such as 6/min judges by how \
         often lateness begins, --singly takes late ones for independent",
        grouped(found.seconds_late)
    )
}

/// How long must be observed, ns, for `late` seconds with a late episode to leave an upper bound on
/// their rate, per second, of at most `rate`: `-ln(1 - confidence) / rate` if there is none. `None`
/// if that exceeds u64. At least [`LEAST_OBSERVED_NS`].
#[must_use]
pub fn observation_needed_ns(rate: f64, late: u64, confidence: f64) -> Option<u64> {
    let seconds = if late == 0 {
        -(1.0 - confidence).ln() / rate
    } else {
        #[allow(clippy::cast_precision_loss, reason = "seconds of a run")]
        let seconds = crate::stats::samples_needed(-(-rate).exp_m1(), late, confidence)? as f64;
        seconds
    };
    #[allow(clippy::cast_precision_loss, reason = "a time needs no 16th digit")]
    let ns = (seconds * SECOND_NS as f64).ceil();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
    let ns = (ns < 1.8e19).then_some(ns as u64)?;
    Some(ns.max(LEAST_OBSERVED_NS))
}
