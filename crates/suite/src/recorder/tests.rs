//! What a recorder keeps.

use super::*;
use proptest::prelude::*;
use punctual_core::block::Spell;
use punctual_core::histogram::{COARSE_BINS, coarse_low};
use punctual_ring::RING_SPELLS;

/// Nine years: the sum of squares holds 4,096 such samples.
const YEARS: i64 = 1 << 58;

fn record_all(
    values: &[(u64, i64)],
    limits: Limits,
) -> (Recording, Vec<punctual_core::block::Block>) {
    let mut recorder = Recorder::new(limits);
    let shared = recorder.shared();
    recorder.record(5, 999, 0);
    assert_eq!(recorder.begin(1_000), Some(999));
    for (at, latency) in values {
        recorder.record(1_000 + at, *latency, 0);
    }
    let recording = recorder.finish();
    let mut taken = 0;
    let blocks = (0..).map_while(|_| shared.blocks.take(&mut taken, 0)).collect();
    (recording, blocks)
}

#[test]
fn a_block_is_a_second_and_a_gap_shows_in_the_indices() {
    let s = BLOCK_NS;
    let (recording, blocks) =
        record_all(&[(0, 5), (s - 1, 7), (s, 6), (5 * s + 3, 9), (5 * s + 4, -1)], Limits::NONE);
    let seen: Vec<_> = blocks.iter().map(|b| (b.index, b.moments.count, b.moments.max)).collect();
    assert_eq!(seen, [(0, 2, 7), (1, 1, 6), (5, 2, 9)]);
    assert_eq!(recording.moments.count, 5);
    assert_eq!((recording.moments.max_at, recording.moments.early), (5 * s + 3, 1));
}

/// A second of samples in as many coarse bins as a second can fill.
fn full_second() -> Vec<u64> {
    (0..COARSE_BINS).map(coarse_low).take(86).collect()
}

#[test]
fn a_starved_collector_loses_nothing() {
    for (blocks, seconds) in [(RING_BLOCKS, 2 * RING_BLOCKS as u64), (RING_BLOCKS_ASIDE, 150)] {
        let mut recorder = Recorder::with_blocks(Limits::NONE, blocks);
        let shared = recorder.shared();
        recorder.begin(0);
        for second in 0..seconds {
            for latency in full_second() {
                recorder.record(second * BLOCK_NS, latency.cast_signed(), 0);
            }
        }
        let recording = recorder.finish();
        let mut taken = 0;
        let taken: Vec<_> = (0..).map_while(|_| shared.blocks.take(&mut taken, 0)).collect();
        let samples = seconds * full_second().len() as u64;
        assert_eq!(recording.moments.count, samples);
        assert!(taken.len() >= blocks && (taken.len() as u64) < seconds, "{}", taken.len());
        // The last one holds all that did not find room.
        let (last, before) = taken.split_last().unwrap();
        assert!(before.iter().all(|block| block.moments.count == 86));
        let rest = samples - 86 * before.len() as u64;
        assert_eq!(last.moments.count, rest);
        assert_eq!(last.coarse.iter().map(|(_, count)| u64::from(*count)).sum::<u64>(), rest);
    }
}

#[test]
fn late_samples_beyond_the_ring_are_counted_exactly() {
    let interval = 100_000;
    let limits = Limits { deadline: 100_005, interval, ..Limits::NONE };
    let mut recorder = Recorder::new(limits);
    recorder.begin(0);
    let times = RING_LATE as u64 + 500;
    for n in 0..times {
        recorder.record(n, 200_001, 2);
    }
    let found = recorder.finish();
    assert_eq!((found.moments.missed, found.refused.missed), (2 * times, 2 * 500));
    // Of each stall the sample itself and no missed release is later than the deadline.
    assert_eq!((found.moments.exceeded, found.refused.exceeded), (times, 0));
}

/// What the missed releases of one stall are recorded as, by the delays that they had.
fn missed_of(delays: &[u64], pushed: usize) -> (Recording, Vec<punctual_core::block::Late>) {
    let mut recorder = Recorder::new(Limits { interval: 100, deadline: 250, ..Limits::NONE });
    let shared = recorder.shared();
    recorder.begin(0);
    for _ in 0..pushed {
        recorder.record(1, 150, 1);
    }
    recorder.record(5, 1_000, 0);
    recorder.missed(5, delays.iter().copied());
    let late = (pushed as u64..).map_while(|taken| shared.late.take(taken, 0)).collect();
    (recorder.finish(), late)
}

#[test]
fn dithered_releases_that_were_missed_keep_their_own_delays() {
    let delays = [930, 702, 260, 250, 1];
    let (found, late) = missed_of(&delays, 0);
    assert_eq!((found.moments.count, found.moments.missed), (1, 5));
    let limits = Limits { interval: 100, deadline: 250, ..Limits::NONE };
    let behind = punctual_core::stats::Behind::from_late(&late, &limits);
    let mut expected = punctual_core::histogram::Histogram::new();
    delays.iter().for_each(|delay| expected.record(*delay));
    assert_eq!((behind.counts, behind.exceeded), (expected, 3));
}

#[test]
fn of_a_long_stall_and_without_room_the_number_of_missed_releases_stays_exact() {
    let delays: Vec<u64> = (0..200).rev().map(|back| back * 100 + 7).collect();
    let limits = Limits { interval: 100, ..Limits::NONE };
    // With room for those that are recorded one by one, and for some of them.
    for pushed in [0, RING_LATE - 10, RING_LATE] {
        let (found, late) = missed_of(&delays, pushed);
        assert_eq!(found.moments.missed, 200 + pushed as u64);
        let mut behind = punctual_core::stats::Behind::from_late(&late, &limits);
        behind.add_refused(&found.refused, &limits);
        assert_eq!(behind.counts.total(), 200, "{pushed} in the ring before");
    }
}

/// The spells that a recorder makes of samples at these times, ns, with their latencies.
fn spells_of(samples: &[(u64, i64, u64)]) -> (Vec<Spell>, Recording) {
    let limits = Limits { deadline: 1_000_000, interval: 500_000, ..Limits::NONE };
    let mut recorder = Recorder::new(limits);
    let shared = recorder.shared();
    // Late, and in the warm-up.
    recorder.record(5, 9_000_000, 17);
    recorder.begin(1_000);
    for (at, latency, missed) in samples {
        recorder.record(1_000 + at, *latency, *missed);
    }
    let recording = recorder.finish();
    let mut spells: Vec<_> = (0..).map_while(|taken| shared.spells.take(taken, 3)).collect();
    spells.extend(recording.spell.map(|spell| Spell { thread: 3, ..spell }));
    (spells, recording)
}

#[test]
fn late_samples_are_kept_as_spells_with_what_they_missed() {
    let ms = 1_000_000;
    let (spells, recording) = spells_of(&[
        (10 * ms, 1_000_000, 0),
        // 2.2 ms late: of the four missed releases two were later than 1 ms.
        (20 * ms, 2_200_000, 4),
        (21 * ms, 1_000_001, 2),
        // Released 100 ms after the last late start, and one ns more than that after this one.
        (123 * ms, 2_000_000, 0),
        (225 * ms + 1, 2_000_000, 0),
        // Released before the start of the cell, and started in another second.
        (9_000 * ms, 9_999_000_000, 0),
    ]);
    let spell = |from, to, late| Spell { thread: 3, from, to, late };
    let of_first_second = [spell(17_800_000, 123 * ms, 5), spell(223 * ms + 1, 225 * ms + 1, 1)];
    assert_eq!(spells[..2], of_first_second);
    assert_eq!(spells[2..], [spell(0, 9_000 * ms, 1)]);
    assert_eq!((recording.spells_joined, recording.moments.exceeded), (0, 5));
}

#[test]
fn a_spell_ends_with_its_second_so_that_each_second_has_a_count_of_its_own() {
    let ms = 1_000_000;
    let samples: Vec<_> = (0..50).map(|n| ((50 * n + 2) * ms, 2_000_000, 0)).collect();
    let (spells, recording) = spells_of(&samples);
    let spell = |from, to, late| Spell { thread: 3, from: from * ms, to: to * ms, late };
    assert_eq!(spells, [spell(0, 952, 20), spell(1_000, 1_952, 20), spell(2_000, 2_452, 10)]);
    assert_eq!(recording.spells_joined, 0, "they are one spell in three pieces");
}

#[test]
fn without_room_a_spell_goes_on_beyond_its_second() {
    let ms = 1_000_000;
    let apart = (1..=RING_SPELLS as u64 + 1).map(|n| n * 500);
    let last = (RING_SPELLS as u64 + 1) * 500;
    let close = (1..=6).map(|n| last + 90 * n);
    let samples: Vec<_> = apart.chain(close).map(|at| (at * ms, 2_000_000, 0)).collect();
    let (spells, recording) = spells_of(&samples);
    assert_eq!((spells.len(), recording.spells_joined), (RING_SPELLS + 1, 0));
    assert_eq!(spells.last().unwrap().late, 7);
}

#[test]
fn a_spell_goes_on_if_there_is_no_room_for_it() {
    let ms = 1_000_000;
    let times = RING_SPELLS as u64 + 10;
    let samples: Vec<_> = (1..=times).map(|n| (n * 500 * ms, 2_000_000, 0)).collect();
    let (spells, recording) = spells_of(&samples);
    assert_eq!(spells.len(), RING_SPELLS + 1);
    assert_eq!(recording.spells_joined, 9);
    assert_eq!(spells.iter().map(|spell| spell.late).sum::<u64>(), times);
    assert_eq!(spells.last().unwrap().late, 10);
}

#[test]
fn state_is_what_it_is_said_to_be() {
    let [few, many] = [FEW_THREADS, FEW_THREADS + 1].map(|n| state_bytes_with(ring_blocks(0, n)));
    assert!(few < 760_000 && many < 300_000, "{few} {many}");
    assert_eq!(state_bytes_with(ring_blocks(1, 1)), many);
    assert_eq!(few - many, BlockRing::bytes(RING_BLOCKS) - BlockRing::bytes(RING_BLOCKS_ASIDE));
}

#[test]
fn exceedances_and_the_threshold_are_exact() {
    let limits = Limits { deadline: 100, threshold: 100, ..Limits::NONE };
    let values: Vec<_> =
        (0..ABOVE_CAP as u64 + 300).map(|i| (i, if i < 200 { 100 } else { 101 })).collect();
    let (recording, _) = record_all(&values, limits);
    assert_eq!(recording.moments.exceeded, ABOVE_CAP as u64 + 100);
    assert_eq!(recording.left_out, 100);
}

proptest! {
    #[test]
    fn a_recording_holds_every_sample(
        values in prop::collection::vec(
            (0_u64..4 * BLOCK_NS, prop_oneof![-YEARS..YEARS, 0..1_000_i64, -9..100_i64]), 1..400),
        deadline in prop_oneof![0..2_000_i64, Just(i64::MAX)],
    ) {
        let mut values = values;
        values.sort_by_key(|(at, _)| *at);
        let limits = Limits { deadline, ..Limits::NONE };
        let (recording, blocks) = record_all(&values, limits);
        let mut all = Moments::EMPTY;
        blocks.iter().for_each(|block| all.merge(&block.moments));
        prop_assert_eq!(all, recording.moments);
        let mut one_by_one = Moments::EMPTY;
        for (at, value) in &values {
            one_by_one.merge(&Moments {
                count: 1,
                missed: 0,
                early: u64::from(*value < 0),
                exceeded: u64::from(*value > deadline),
                min: *value,
                max: *value,
                max_at: *at,
                sum: i128::from(*value),
                sum_sq: u128::from(value.unsigned_abs()).pow(2),
            });
        }
        prop_assert_eq!(all, one_by_one);
        prop_assert_eq!(recording.histogram.sparse().total(), values.len() as u64);
        prop_assert_eq!(all.sum, values.iter().map(|(_, v)| i128::from(*v)).sum::<i128>());
        for block in &blocks {
            prop_assert_eq!(block.coarse.iter().map(|(_, n)| u64::from(*n)).sum::<u64>(), block.moments.count);
        }
        let mut worst: Vec<_> = values.iter().map(|(_, v)| *v).collect();
        worst.sort_unstable_by(|a, b| b.cmp(a));
        worst.truncate(WORST);
        let mut kept: Vec<_> = recording.outliers.iter().map(|o| o.latency).collect();
        kept.sort_unstable_by(|a, b| b.cmp(a));
        prop_assert_eq!(kept, worst);
    }
}
