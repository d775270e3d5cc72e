use super::*;
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const S: u64 = SECOND_NS;

fn spell(from_ms: u64, to_ms: u64, late: u64) -> Spell {
    Spell { thread: 0, from: from_ms * MS, to: to_ms * MS, late }
}

#[test]
fn spells_at_most_a_second_apart_are_one_episode_whoever_had_them() {
    let found = episodes(
        vec![
            Spell { thread: 1, ..spell(3_000, 3_100, 2) },
            spell(500, 2_000, 40),
            // A second and a bit after the end of the longer one.
            spell(4_101, 4_200, 1),
            spell(9_000, 9_001, 1),
        ],
        60 * S,
    );
    assert_eq!((found.count, found.count_100ms, found.count_10s), (3, 4, 1));
    assert_eq!((found.longest_ns, found.largest), (2_600 * MS, 42));
    assert_eq!((found.size_sum, found.size_sum_sq), (44, 42 * 42 + 2));
    // Seconds 0 to 2 (2.000 s begins the third), 3, 4 and 9.
    assert_eq!((found.seconds_late, found.episode_gap_ns), (6, S));
    assert_eq!(episodes(Vec::new(), 60 * S).count, 0);
}

#[test]
fn seconds_after_the_end_were_not_observed() {
    let last = |observed| episodes(vec![spell(500, 6_400, 1)], observed);
    // Seconds 0 to 6, of which one was observed, or one and a half.
    assert_eq!([60 * S, S, S + S / 2].map(|ns| last(ns).seconds_late), [7, 1, 2]);
    assert_eq!(last(S).longest_ns, 5_900 * MS, "it lasted so long all the same");
    // What is released at the very end counts once.
    assert_eq!(episodes(vec![spell(60_000, 66_000, 1)], 60 * S).seconds_late, 1);
}

#[test]
fn the_gap_counts_from_the_latest_end_to_the_next_release() {
    let apart =
        |from| episodes(vec![spell(0, 5_000, 1), spell(100, 200, 1), spell(from, from, 1)], 60 * S);
    assert_eq!(apart(6_000).count, 1);
    assert_eq!(apart(6_001).count, 2);
}

/// Episodes of one late activation each, at these seconds.
fn at(seconds: &[u64], observed: u64) -> Episodes {
    episodes(
        seconds.iter().map(|at| spell(at * 1_000 + 3, at * 1_000 + 4, 1)).collect(),
        observed * S,
    )
}

#[test]
fn bounds_on_the_rate() {
    // -ln(0.05) / 30.
    let none = at(&[], 30).rate_upper(0.95).unwrap();
    assert!((none - 0.099_857_742).abs() < 1e-9, "{none}");
    assert_eq!(at(&[], 9).rate_upper(0.95), None, "less than ten seconds");
    // mpmath: -log1p(-beta.ppf(.95, 4, 57)), chi2.ppf(.05, 6) / 2 / 60.
    let some = at(&[3, 20, 41], 60);
    assert!((some.rate_upper(0.95).unwrap() - 0.132_602_921_475).abs() < 1e-11, "{some:?}");
    assert!((some.rate_lower(0.95) - 0.013_628_190_786).abs() < 1e-11, "{}", some.rate_lower(0.95));
    let all: Vec<u64> = (0..60).collect();
    assert_eq!(at(&all, 60).rate_upper(0.95), None, "each second held one");
    assert_eq!(at(&[], 60).rate_lower(0.95), 0.0);
}

#[test]
fn episodes_that_come_in_clusters_are_told_from_independent_ones() {
    let spread: Vec<u64> = (0..20).map(|n| n * 60).collect();
    assert!(!at(&spread, 1_200).clustered);
    // Ten pairs three seconds apart, two minutes between pairs.
    let pairs: Vec<u64> = (0..10).flat_map(|n| [n * 120, n * 120 + 3]).collect();
    assert!(at(&pairs, 1_200).clustered);
    // Regular ones, of which a gap of 10 s joins all.
    let regular: Vec<u64> = (0..100).map(|n| n * 9).collect();
    assert!(!at(&regular, 900).clustered);
    assert!(!at(&[5, 8], 20).clustered);
}

#[test]
fn independent_episodes_are_rarely_taken_for_clustered_ones() {
    // Few, and so many that most follow each other within ten seconds by chance.
    for number in [5, 20, 60, 150] {
        let mut random = crate::random::Random::new(number);
        let times = 400;
        let clustered = (0..times).filter(|_| {
            let mut at_ms: Vec<_> = (0..number).map(|_| random.below(1_200_000)).collect();
            at_ms.sort_unstable();
            let spells = at_ms.into_iter().map(|at| spell(at, at + 4, 1)).collect();
            episodes(spells, 1_200 * S).clustered
        });
        let clustered = clustered.count();
        assert!(clustered <= 8, "{clustered} of {times} with {number} episodes");
    }
}

#[test]
fn the_share_that_is_late_follows_from_batches_of_seconds() {
    let at_seconds = |seconds: u64| {
        let spells = (0..seconds).map(|n| spell(n * 7_000, n * 7_000 + 1, 10));
        episodes(spells.collect(), 600 * S)
    };
    assert_eq!(at_seconds(29).share_bounds(600_000, 0.95), None);
    // Mean 0.1 of 600, deviation sqrt(6 (10 - 0.1)^2 + ...): t = 1.6474, skewness 2.4.
    let (lower, upper) = at_seconds(60).share_bounds(600_000, 0.95).unwrap();
    assert!(lower < 1e-3 && lower > 7e-4, "{lower}");
    assert!(upper > 1.2e-3 && upper < 1.4e-3, "{upper}");
}

#[test]
fn one_long_episode_bounds_the_share_by_how_often_it_may_begin() {
    let by_longest = |found: &Episodes| found.share_by_longest(600_000, 0.95).unwrap();
    // -ln(0.05) / 600 s times 10 s.
    assert!((by_longest(&episodes(Vec::new(), 600 * S)) - 0.049_928_871).abs() < 1e-9);
    // Two seconds of 600 are late: 6.28 / 600 s times 20 s of the episode, and not 10.
    let long = episodes(vec![spell(0, 1, 1), spell(5_000, 5_001, 20_000)], 600 * S);
    assert!(by_longest(&long) > 0.2, "{}", by_longest(&long));
    // Of many the longest is what it was.
    let many: Vec<_> = (0..25).map(|n| spell(n * 20_000, n * 20_000 + 4, 5)).collect();
    let many = episodes(many, 600 * S);
    assert!((by_longest(&many) - many.rate_upper(0.95).unwrap() * 5e-3).abs() < 1e-12);
}

#[test]
fn seconds_that_were_not_observed_are_not_late() {
    assert_eq!(episodes(vec![spell(500, 6_400, 6)], S).seconds_late, 1);
    assert_eq!(episodes(vec![spell(59_500, 66_400, 6)], 60 * S).seconds_late, 1);
}

fn primary(blocks: &[(u64, &[i64])]) -> SeriesData {
    let block = |(index, values): &(u64, &[i64])| {
        let mut moments = crate::block::Moments::EMPTY;
        let mut coarse = std::collections::BTreeMap::new();
        for value in *values {
            let one = crate::block::Moments {
                count: 1,
                min: *value,
                max: *value,
                max_at: index * S + 500 * MS,
                exceeded: u64::from(*value > 1_000_000),
                ..crate::block::Moments::EMPTY
            };
            moments.merge(&one);
            *coarse.entry(crate::block::coarse_bin(*value)).or_insert(0) += 1;
        }
        let coarse = coarse.into_iter().collect();
        crate::block::Block { thread: 0, series: 0, index: *index, moments, coarse }
    };
    SeriesData { blocks: blocks.iter().map(block).collect(), ..SeriesData::default() }
}

fn limits(deadline: i64) -> Limits {
    Limits { deadline, interval: MS, ..Limits::NONE }
}

#[test]
fn of_another_deadline_only_the_seconds_are_known() {
    let late: &[i64] = &[10_000, 9_000_000, 9_100_000];
    let calm: &[i64] = &[10_000];
    let data = primary(&[(0, late), (1, late), (2, calm), (3, late), (4, calm), (20, late)]);
    let spells = spells_of_seconds(&data, 0, &limits(5_000_000));
    let found = episodes(spells, 60 * S);
    // Two seconds that touch are one, and two with a calm one between them are not.
    assert_eq!((found.count, found.seconds_late, found.size_sum), (3, 4, 8));
    assert!(spells_of_seconds(&data, 0, &limits(10_000_000)).is_empty());
    // What a late start missed belongs to its second.
    let mut stalled = data.clone();
    let late =
        crate::block::Late { thread: 0, series: 0, at: S / 2, latency: 9_000_000, missed: 8 };
    stalled.late.push(late);
    let found = episodes(spells_of_seconds(&stalled, 0, &limits(5_000_000)), 60 * S);
    assert_eq!(found.size_sum, 8 + 3);
    // A start in second 4 that was 3.2 s late.
    let long = primary(&[(4, &[3_200_000_000])]);
    assert_eq!(episodes(spells_of_seconds(&long, 0, &limits(1_000)), 60 * S).seconds_late, 4);
}

#[test]
fn a_thread_that_was_cut_short_keeps_its_open_spell() {
    let late: &[i64] = &[10_000, 9_000_000];
    let mut series = primary(&[(0, late), (1, &[5]), (2, late)]);
    let spells = vec![spell(491, 500, 1)];
    series.histogram = None;
    let data = ThreadData { series: vec![series], spells };
    let found = spells_on_disk(&data, 0);
    assert_eq!(found, [spell(491, 500, 1), spell(2_491, 2_500, 1)]);
}

proptest! {
    /// Against one pass over single activations, whatever thread they are of.
    #[test]
    fn episodes_are_those_of_the_activations(times in prop::collection::vec((0_u64..100_000, 0_u64..3_000), 0..60), gap in 100_u64..12_000) {
        let mut times: Vec<_> = times.into_iter().map(|(from, lasts)| (from, from + lasts)).collect();
        times.sort_unstable();
        let spells: Vec<_> = times.iter().map(|(from, to)| spell(*from, *to, 1)).collect();
        let (mut count, mut end) = (0, None::<u64>);
        for (from, to) in &times {
            if end.is_none_or(|end| *from > end + gap) {
                count += 1;
            }
            end = end.max(Some(*to));
        }
        prop_assert_eq!(joined(&spells, gap * MS).len(), count);
        // Joining first by a shorter gap changes nothing.
        let first = joined(&spells, 100 * MS);
        prop_assert_eq!(joined(&first, gap * MS), joined(&spells, gap * MS));
    }
}

#[test]
fn time_in_which_the_process_was_stopped_was_not_observed() {
    use crate::schema::{Stop, What};
    let cell = |stops: Vec<Stop>, interval_ns: Option<u64>, scheduled: u64| {
        let stats = Stats { scheduled, samples: scheduled, ..Stats::default() };
        let threads = vec![Thread { stats: stats.clone(), ..Thread::default() }];
        let latency = Latency { interval_ns, stats, threads, ..Latency::default() };
        let mut cell =
            Cell::new(String::new(), String::new(), String::new(), 60 * S, What::Latency(latency));
        cell.stops = stops;
        // Each of the last 35 s is late, every other one more.
        let late = |second: u64| spell(1_000 * second, 1_000 * second + 5, 1 + second % 2 * 9);
        let spells = (25..60).map(late);
        tell_episodes(&mut cell, vec![spells.collect()], false);
        cell.latency().unwrap().episodes.clone().unwrap()
    };
    let stop = |from_s: u64, s: u64| Stop {
        from_ns: from_s * S,
        length_ns: Some(s * S),
        ..Stop::default()
    };
    // Two that overlap, and one without a length.
    let stops = vec![stop(2, 15), stop(10, 12), Stop { from_ns: 1, ..Stop::default() }];
    let (all, left) = (cell(Vec::new(), None, 7), cell(stops.clone(), None, 7));
    assert_eq!((all.observed_ns, left.observed_ns), (60 * S, 40 * S));
    assert_eq!((left.seconds_late, left.count, left.longest_ns), (35, 1, all.longest_ns));
    let batches = |of: &Episodes| of.batches.as_ref().map(|of| of.seconds * of.number);
    assert_eq!(batches(&left), Some(40));
    // Releases tell by themselves what was observed, and seconds go on to count after a stop.
    let periodic = cell(stops, Some(S / 1_000), 40_000);
    assert_eq!((periodic.observed_ns, periodic.seconds_late), (40 * S, 35));
    assert_eq!(batches(&periodic), Some(40));
}
