//! The judgement of one thread.

use super::rule::{PLUMBING, Rule};
use super::sentences;
use crate::schema::{Latency, Outcome, Quantity, Stats, Verdict};
use crate::stats::{clopper_pearson_lower, clopper_pearson_upper, cluster_bound};
use crate::units::{SECOND_NS, grouped, human_ns};

/// What a thread did, as far as it is judged.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// Its statistics.
    pub stats: &'a Stats,
    /// Its releases later than the deadline, missed ones included
    /// ([`crate::stats::exceedances`]).
    pub exceedances: u64,
    /// Seconds that contain any of those ([`crate::stats::clusters`]).
    pub clusters: u64,
    /// Its period, ns, if it has one, which turns releases into time.
    pub interval_ns: Option<u64>,
    /// What its samples are called.
    pub primary: &'a Quantity,
}

/// Judges every thread of a cell by its statistics, its exceedances and its clusters.
pub fn judge_threads(latency: &mut Latency, rule: &Rule) {
    for thread in &mut latency.threads {
        let evidence = Evidence {
            stats: &thread.stats,
            exceedances: thread.verdict.exceedances,
            clusters: thread.exceedance_clusters,
            interval_ns: latency.interval_ns,
            primary: &latency.primary,
        };
        thread.verdict = judge_thread(&evidence, rule);
    }
}

/// Judges one thread.
///
/// Hard deadline: FAIL at any exceedance; else PASS if the upper bound is at most
/// `rule.probability`. Soft: FAIL if the lower bound is above `rule.tolerate`, PASS if the
/// upper bound is at most that. Otherwise INCONCLUSIVE, with how much longer to run. A guest
/// without instruction counting is INCONCLUSIVE whatever it did.
#[must_use]
pub fn judge_thread(evidence: &Evidence<'_>, rule: &Rule) -> Verdict {
    let (n, k) = (evidence.stats.scheduled, evidence.exceedances);
    let (stats, nouns) = (evidence.stats, &evidence.primary.nouns);
    let interval_ns = evidence.interval_ns.filter(|interval| *interval > 0);
    // On neither kind of virtual board is the next release a matter of chance.
    let by_chance = !rule.deterministic && !rule.plumbing;
    let maximum =
        stats.max.filter(|_| by_chance).map(|max| sentences::maximum(max, n, interval_ns, nouns));
    let Some(deadline_ns) = rule.deadline_ns else {
        return rule.verdict(Outcome::None, maximum.into_iter().collect());
    };
    if rule.plumbing {
        let verdict = rule.verdict(Outcome::Inconclusive, vec![PLUMBING.to_owned()]);
        return Verdict { exceedances: k, ..verdict };
    }
    if stats.samples == 0 {
        let reason = "no samples: nothing is known about the deadline".to_owned();
        return rule.verdict(Outcome::Inconclusive, vec![reason]);
    }
    let deadline = sentences::deadline(deadline_ns);
    if rule.deterministic {
        return deterministic(evidence, &deadline, rule);
    }
    let upper = clopper_pearson_upper(k, n, rule.confidence);
    let limit = rule.tolerate.unwrap_or(rule.probability);
    let failed = match rule.tolerate {
        None => k > 0,
        Some(tolerated) => clopper_pearson_lower(k, n, rule.confidence) > tolerated,
    };
    let outcome = if failed {
        Outcome::Fail
    } else if upper <= limit {
        Outcome::Pass
    } else {
        Outcome::Inconclusive
    };
    let mut because = vec![seen_and_bound(evidence, &deadline, upper, rule.confidence)];
    if let (Some(tolerated), Outcome::Fail) = (rule.tolerate, outcome) {
        because.push(format!(
            "this is more than the tolerated {}, at {} confidence (one-sided)",
            sentences::probability(tolerated),
            sentences::confidence(rule.confidence),
        ));
    }
    if outcome == Outcome::Inconclusive {
        because.push(sentences::needs(limit, k, n, interval_ns, nouns, rule.confidence));
    }
    because.extend(clustering(evidence.clusters, k, n, interval_ns, rule.confidence));
    because.extend(maximum);
    Verdict { exceedances: k, upper_bound: Some(upper), ..rule.verdict(outcome, because) }
}

/// What was seen and what it bounds, in one sentence.
fn seen_and_bound(evidence: &Evidence<'_>, deadline: &str, upper: f64, confidence: f64) -> String {
    format!(
        "{}; at {} confidence (one-sided), {} is later under this load",
        seen(evidence, deadline),
        sentences::confidence(confidence),
        sentences::at_most(upper),
    )
}

fn seen(evidence: &Evidence<'_>, deadline: &str) -> String {
    let Evidence { stats, exceedances: k, primary, .. } = evidence;
    if *k == 0 {
        return format!("no {} was later than {deadline}", primary.noun);
    }
    format!(
        "{} of {} {} {} later than {deadline}, {} at worst",
        grouped(*k),
        grouped(stats.scheduled),
        primary.nouns,
        if *k == 1 { "was" } else { "were" },
        human_ns(stats.max.unwrap_or_default()),
    )
}

/// The bound on bursts, if exceedances fall into fewer seconds than there are exceedances.
fn clustering(
    clusters: u64,
    k: u64,
    n: u64,
    interval_ns: Option<u64>,
    confidence: f64,
) -> Option<String> {
    let exposure = u128::from(n) * u128::from(interval_ns?);
    if clusters == 0 || clusters >= k {
        return None;
    }
    #[allow(clippy::cast_precision_loss, reason = "a time of 2^53 ns is known to a ns")]
    let seconds = exposure as f64 / SECOND_NS as f64;
    let bound = cluster_bound(clusters, k, seconds, confidence);
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast saturates"
    )]
    let apart = (SECOND_NS as f64 / bound.rate_upper) as u128;
    Some(format!(
        "the misses are bursty: all {} fall into {} one-second block{} (extremal index {:.2}); \
         counting bursts, at most one every {} ({}, one-sided)",
        grouped(k),
        grouped(clusters),
        if clusters == 1 { "" } else { "s" },
        bound.theta?,
        sentences::stretch(apart),
        sentences::confidence(confidence),
    ))
}

/// A deterministic board: what it did is what it does.
fn deterministic(evidence: &Evidence<'_>, deadline: &str, rule: &Rule) -> Verdict {
    let k = evidence.exceedances;
    #[allow(clippy::cast_precision_loss, reason = "the share needs no last digit")]
    let share = k as f64 / evidence.stats.scheduled as f64;
    let failed = rule.tolerate.map_or(k > 0, |tolerated| share > tolerated);
    let outcome = if failed { Outcome::Fail } else { Outcome::Pass };
    let because = vec![
        seen(evidence, deadline),
        "deterministic: every run of this board with this phase gives these figures, \
         so no bound is given; for replicates, vary the phase"
            .to_owned(),
    ];
    Verdict { exceedances: k, ..rule.verdict(outcome, because) }
}
