//! What changed in a cell from its start to its end, in sentences.

use super::by_second::BySecond;
use super::episodes::LateOrder;
use super::ranks::{BURST, Ranks};
use super::stretches::Stretches;
use crate::units::{SECOND_NS, human_ns, stretch};

/// Below so many blocks nothing is said.
const LEAST: usize = 20;

/// The probability with which a cell that does not drift is said to, over all tests.
const ALPHA: f64 = 0.01;

/// How many tests there are at most: Pettitt, the two halves and the parts, of maxima and of
/// means; a burst and the stretches of the largest maxima; the halves, the parts and the pairs at three
/// distances, of late episodes.
const TESTS: f64 = 13.0;

/// Differences below this share matter to nobody, however well they are shown.
const MATERIAL: f64 = 0.05;

/// How a cell changed while it was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Drift {
    /// The probability of a change at least as large without drift, by one test.
    pub p: f64,
    /// What changed, by how much, and by which test, in words.
    pub text: String,
}

/// What changed in a cell from its start to its end: at most one sentence each on the maxima of
/// its seconds, on their means, and on its late seconds, by the test that shows it best. Empty
/// if nothing is shown to have changed, or with fewer than 20 blocks.
///
/// Each of 13 tests has the level 0.01 / 13 (Bonferroni), so that a cell of exchangeable seconds
/// has a sentence with a probability of at most 0.01. Maxima and means are tested by ranks, with
/// ties and with a variance that is widened by the correlation r of neighbours, as far as no change
/// explains it, by (1 + r) / (1 - r): A. N. Pettitt, Applied Statistics 28 (1979), for one change point;
/// the rank sum of the two halves; W. H. Kruskal, W. A. Wallis, JASA 47 (1952), over 5 to 13
/// parts, for cycles; the 10 blocks in a row with the largest ranks, for one burst; and whether the
/// largest maxima come in stretches of 9 blocks and more, by random orders of pieces of 9 blocks, or
/// of as many as resemble each other, for short stretches that return. They count only if the
/// levels differ by more than 5 %. Late seconds that are as near are
/// first merged into episodes; see [`BySecond`].
#[must_use]
pub fn changes(course: &BySecond) -> Vec<Drift> {
    let blocks = course.blocks();
    if blocks.len() < LEAST {
        return Vec::new();
    }
    let length = course.block_seconds();
    let at: Vec<u64> = blocks.iter().map(|block| block.second).collect();
    let block = match length {
        1 => "a second".to_owned(),
        seconds => format!("{seconds} s"),
    };
    #[allow(clippy::cast_precision_loss, reason = "beyond 2^53 ns ranks may tie")]
    let maxima: Vec<f64> = blocks.iter().map(|block| block.max as f64).collect();
    let means: Vec<f64> = blocks.iter().map(|block| block.mean).collect();
    let mut found = Vec::new();
    let ranks = Ranks::of(&maxima);
    let reach = ranks.reach();
    let what = format!("the maximum of {block}");
    let mut of_maxima = of_values(&maxima, &ranks, &at, &what);
    of_maxima.extend(of_burst(&maxima, &ranks, &at, &what));
    of_maxima.extend(of_stretches(&maxima, reach, &block, length));
    found.extend(best(of_maxima));
    let what = format!("the mean of {block}");
    found.extend(best(of_values(&means, &Ranks::of(&means), &at, &what)));
    let gap = if reach == 1 { 1 } else { (reach as u64).saturating_mul(length) };
    found.extend(best(course.episodes(gap).map_or_else(Vec::new, |late| of_episodes(&late))));
    found
}

/// What is shown best.
fn best(found: Vec<Drift>) -> Option<Drift> {
    found
        .into_iter()
        .filter(|change| change.p <= ALPHA / TESTS)
        .reduce(|a, b| if b.p < a.p { b } else { a })
}

fn differ(a: f64, b: f64) -> bool {
    (a - b).abs() > MATERIAL * a.abs().max(b.abs())
}

/// Tests of one value a block, which begin `at` these seconds; `what` says whose values they are.
fn of_values(values: &[f64], ranks: &Ranks, at: &[u64], what: &str) -> Vec<Drift> {
    let mut found = Vec::new();
    let (before, p) = ranks.pettitt();
    let (one, other) = values.split_at(before);
    let (one, other) = (median(one), median(other));
    if differ(one, other) {
        let when = stretch(at.get(before).copied().unwrap_or(0).saturating_mul(SECOND_NS));
        let text = format!(
            "{what} is {} in the median after {when}, {} before ({})",
            ns(other),
            ns(one),
            by("Pettitt", p)
        );
        found.push(Drift { p, text });
    }
    let (one, other) = values.split_at(values.len() / 2);
    let (one, other, p) = (median(one), median(other), ranks.halves());
    if differ(one, other) {
        let text = format!(
            "{what} is {} in the median of the first half, {} of the second ({})",
            ns(one),
            ns(other),
            by("rank sum", p)
        );
        found.push(Drift { p, text });
    }
    let parts: Vec<f64> = ranks.parts().map(|part| mean(&values[part])).collect();
    let (low, high) = parts.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), part| {
        (low.min(*part), high.max(*part))
    });
    if differ(low, high) {
        let p = ranks.kruskal_wallis();
        let text = format!(
            "{what} is from {} to {} on average in {} parts of the cell ({})",
            ns(low),
            ns(high),
            parts.len(),
            by("Kruskal-Wallis", p)
        );
        found.push(Drift { p, text });
    }
    found
}

/// The burst of values that begin `at` these seconds.
fn of_burst(values: &[f64], ranks: &Ranks, at: &[u64], what: &str) -> Option<Drift> {
    let (from, p) = ranks.burst()?;
    let (before, rest) = values.split_at(from);
    let (burst, after) = rest.split_at(BURST);
    let (burst, others) = (median(burst), median(&[before, after].concat()));
    let when = stretch(at.get(from)?.saturating_mul(SECOND_NS));
    let text = format!(
        "{what} is {} in the median of {BURST} in a row from {when} on, {} of all others ({})",
        ns(burst),
        ns(others),
        by("scan", p)
    );
    differ(burst, others).then_some(Drift { p, text })
}

/// The largest maxima of `block`, which lasts so many seconds; those nearer than `reach` blocks resemble
/// each other.
fn of_stretches(maxima: &[f64], reach: usize, block: &str, seconds: u64) -> Option<Drift> {
    let found = Stretches::of(maxima, reach)?;
    let [from, to] = [found.from, found.to].map(|blocks| blocks as u64 * seconds);
    let text = format!(
        "the {} largest maxima of {block} come in stretches: {} pairs of them are {from} to {to} s \
         apart, {:.1} would be by chance ({})",
        found.largest,
        found.pairs,
        found.expected,
        by("permutation", found.p)
    );
    let mut sorted = maxima.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let (usual, large) = sorted.split_at(sorted.len() - found.largest);
    (differ(median(usual), median(large))).then_some(Drift { p: found.p, text })
}

fn of_episodes(late: &LateOrder) -> Vec<Drift> {
    let k = late.count();
    let Some(p) = late.by_chance() else { return Vec::new() };
    let (first, parts) = (late.in_first_half(), late.parts());
    let (low, high) = (parts.iter().min().unwrap_or(&0), parts.iter().max().unwrap_or(&0));
    let pairs = |within: u64, p: f64| {
        let pairs = late.pairs(within);
        let expected = late.pairs_by_chance(within);
        let text = format!(
            "late seconds bunch: {pairs} pairs of {k} episodes are within {within} s, {expected:.1} \
             would be by chance ({})",
            by("permutation", p)
        );
        Drift { p, text }
    };
    let halves = format!(
        "{first} of {k} late episodes are in the first half ({})",
        by("permutation", p.halves)
    );
    let segments = format!(
        "{k} late episodes are in the cell's {} parts {low} to {high} each ({})",
        parts.len(),
        by("permutation", p.parts)
    );
    let mut found = vec![Drift { p: p.halves, text: halves }, Drift { p: p.parts, text: segments }];
    found.extend(late.distances().into_iter().zip(p.pairs).map(|(within, p)| pairs(within, p)));
    found
}

/// A test and its p, no smaller than it is known.
fn by(test: &str, p: f64) -> String {
    if p < 1e-4 { format!("{test}, p < 0.0001") } else { format!("{test}, p = {p:.4}") }
}

#[allow(clippy::cast_possible_truncation, reason = "a mean of latencies; the cast saturates")]
fn ns(value: f64) -> String {
    human_ns(value.round() as i64)
}

/// The lower of the two in the middle of an even number; 0 of none.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or(0.0)
}

#[allow(clippy::cast_precision_loss, reason = "a count of blocks")]
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}
