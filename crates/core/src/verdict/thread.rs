//! The judgement of one thread.

use super::episodes::by_episodes;
use super::evidence::Evidence;
use super::head::counted_exactly;
use super::rule::{PLUMBING, Rule};
use super::sentences;
use crate::schema::{Latency, Outcome, Verdict};
use crate::stats::{clopper_pearson_lower, clopper_pearson_upper, observed_share};

/// Judges every thread of a cell by its statistics and its exceedances.
pub fn judge_threads(latency: &mut Latency, rule: &Rule) {
    let share = observed_share(latency);
    for thread in &mut latency.threads {
        let evidence = Evidence {
            stats: &thread.stats,
            exceedances: thread.verdict.exceedances,
            interval_ns: latency.interval_ns,
            primary: &latency.primary,
            episodes: thread.episodes.as_ref(),
            observed_share: share,
        };
        thread.verdict = judge_thread(&evidence, rule);
    }
}

/// Judges one thread, or the threads of a cell together.
///
/// Hard deadline: FAIL at any exceedance; else PASS if the upper bound on the rate of late episodes
/// is at most `rule.episodes`. Soft: FAIL if the lower bound is above what is tolerated, PASS if the
/// upper bound is at most that. Otherwise INCONCLUSIVE, with how long to run. With `rule.singly`
/// bounds are on the probability of an exceedance. A guest
/// without instruction counting is INCONCLUSIVE whatever it did, and so is a FAIL that the turns
/// of a board's CPUs can explain ([`super::Turns`]).
#[must_use]
pub fn judge_thread(evidence: &Evidence<'_>, rule: &Rule) -> Verdict {
    let (n, k) = (evidence.stats.scheduled, evidence.exceedances);
    let (stats, nouns) = (evidence.stats, evidence.primary.nouns.as_str());
    let Some(deadline_ns) = rule.deadline_ns else {
        return rule.verdict(Outcome::None, Vec::new());
    };
    if rule.plumbing {
        let verdict = rule.verdict(Outcome::Inconclusive, vec![PLUMBING.to_owned()]);
        return Verdict { exceedances: k, ..verdict };
    }
    if stats.samples == 0 {
        let reason = "no samples: nothing is known about the deadline".to_owned();
        return rule.verdict(Outcome::Inconclusive, vec![reason]);
    }
    let seen = sentences::late(k, n, nouns, deadline_ns, counted_exactly(evidence.episodes));
    if rule.deterministic {
        return deterministic(evidence, seen, rule);
    }
    if !rule.singly {
        return by_episodes(evidence, seen, rule);
    }
    let upper = clopper_pearson_upper(k, n, rule.confidence);
    let limit = rule.probability();
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
    let mut because = vec![seen];
    // Of a hard deadline that was missed nobody asks how often it may be.
    if k == 0 || !rule.is_hard() {
        because.push(sentences::bound(upper, nouns, rule.confidence));
    }
    if let (Some(tolerated), Outcome::Fail) = (rule.tolerate, outcome) {
        because.push(sentences::intolerable(tolerated, rule.confidence));
    }
    if outcome == Outcome::Inconclusive {
        let by_time = rule.ended_after.is_none();
        let interval_ns = evidence.interval_ns.filter(|interval| by_time && *interval > 0);
        because.push(sentences::needs(limit, k, n, interval_ns, nouns, rule.confidence));
    }
    Verdict { exceedances: k, upper_bound: Some(upper), ..rule.verdict(outcome, because) }
}

/// A deterministic board: what it did is what it does.
fn deterministic(evidence: &Evidence<'_>, seen: String, rule: &Rule) -> Verdict {
    let k = evidence.exceedances;
    #[allow(clippy::cast_precision_loss, reason = "the share needs no last digit")]
    let share = k as f64 / evidence.stats.scheduled as f64;
    let failed = match (rule.tolerate, rule.tolerate_episodes) {
        (Some(tolerated), _) => share > tolerated,
        (None, Some(tolerated)) => {
            super::episodes::observed_rate(evidence) > tolerated.per_second()
        }
        (None, None) => k > 0,
    };
    // Of a soft deadline it is not known how many releases were later than the turns explain.
    let max = evidence.stats.max.filter(|_| rule.is_hard());
    let excuse = rule
        .turns
        .filter(|_| failed)
        .and_then(|turns| turns.excuse(max, rule.deadline_ns.unwrap_or_default()));
    let outcome = match (failed, &excuse) {
        (false, _) => Outcome::Pass,
        (true, None) => Outcome::Fail,
        (true, Some(_)) => Outcome::Inconclusive,
    };
    let repeats = match rule.turns {
        None => "every run of this board with this phase gives these figures",
        Some(_) => "nearly every run of this board with this phase gives these figures",
    };
    let deterministic =
        format!("deterministic: {repeats}, so no bound is given; for replicates, vary the phase");
    let because = [seen].into_iter().chain(excuse).chain([deterministic]).collect();
    Verdict { exceedances: k, ..rule.verdict(outcome, because) }
}
