//! Records written and read back, whole, torn and damaged.

use super::cursor::Cursor;
use super::record::{MAX_COUNT, MAX_SECOND};
use super::*;
use crate::block::{Block, Late, Moments, Outlier, Spell, Strain, System};
use crate::histogram::{BINS, Histogram};
use crate::interval::{Actor, Interval, MAX_NAME};
use crate::schema::{Stop, StoppedBy};
use proptest::prelude::*;

fn arbitrary_record() -> impl Strategy<Value = Record> {
    let some = [0..=MAX_COUNT, 0..=MAX_COUNT, 0..=MAX_COUNT, 0..=MAX_COUNT];
    let moments = (some, any::<(i64, i64, u64)>(), any::<i128>(), any::<u128>()).prop_map(
        |([count, missed, early, exceeded], (min, max, max_at), sum, sum_sq)| Moments {
            count,
            missed,
            early,
            exceeded,
            min,
            max,
            max_at,
            sum,
            sum_sq,
        },
    );
    let coarse = prop::collection::btree_map(-232_i16..232, any::<u32>(), 0..40);
    let block = (any::<(u32, u32)>(), 0..=MAX_SECOND, moments, coarse).prop_map(
        |((thread, series), index, moments, coarse)| {
            Record::Block(Block {
                thread,
                series,
                index,
                moments,
                coarse: coarse.into_iter().collect(),
            })
        },
    );
    let counts = prop::collection::btree_map(0..BINS, 1..=MAX_COUNT, 0..40);
    let histogram = (any::<(u32, u32)>(), counts).prop_map(|((thread, series), bins)| {
        let mut counts = Histogram::new();
        bins.into_iter().for_each(|(bin, n)| counts.add(bin, n));
        Record::Histogram { thread, series, part: Part::Behind, counts: counts.sparse() }
    });
    let late = (any::<(u32, u32, u64, u64)>(), 0..=MAX_COUNT).prop_map(
        |((thread, series, at, latency), missed)| {
            Record::Late(Late { thread, series, at, latency, missed })
        },
    );
    let work = (0..=MAX_SECOND, any::<(u32, Vec<u64>)>())
        .prop_map(|(second, (part, totals))| Record::Work { second, part, totals });
    let outliers = any::<(u32, u32, Vec<(u64, i64)>)>().prop_map(|(thread, series, samples)| {
        Record::Outliers {
            thread,
            series,
            samples: samples.into_iter().map(|(at, latency)| Outlier { at, latency }).collect(),
        }
    });
    let strain = any::<(Option<u64>, Option<u64>, [Option<u32>; 3])>()
        .prop_map(|(interrupts, switches, pressure)| Strain { interrupts, switches, pressure });
    let system = (0..=MAX_SECOND, any::<(u32, u32)>(), strain).prop_map(
        |(second, (busy, steal), strain)| Record::System(System { second, busy, steal, strain }),
    );
    let phase = any::<(u32, u64, u64)>().prop_map(|(phase, one, other)| Record::Phase {
        phase,
        from: one.min(other),
        to: one.max(other),
    });
    let interval = any::<(u32, u64, u64, u32)>().prop_map(|(cpu, one, other, actor)| {
        Record::Interval(Interval { cpu, from: one.min(other), to: one.max(other), actor })
    });
    let actor =
        (any::<u32>(), ".{0,60}").prop_map(|(number, name)| Record::Actor(Actor { number, name }));
    let spell =
        (any::<(u32, u64, u64)>(), 1..=MAX_COUNT).prop_map(|((thread, one, other), late)| {
            Record::Spell(Spell { thread, from: one.min(other), to: one.max(other), late })
        });
    let by = prop::sample::select(StoppedBy::ALL.to_vec());
    let stop = (any::<(u32, u64, Option<u64>)>(), by, ".{0,60}", any::<[u64; 3]>()).prop_map(
        |((number, from_ns, length_ns), by, name, [samples, missed, max_ns])| Record::Stop {
            number,
            stop: Stop { from_ns, length_ns, by, name, samples, missed, max_ns },
        },
    );
    prop_oneof![block, histogram, late, work, outliers, system, phase, interval, actor, spell, stop]
}

#[test]
fn numbers_that_cannot_be_are_damage() {
    let late = |missed| Record::Late(Late { thread: 0, series: 0, at: 0, latency: 0, missed });
    let work = |second| Record::Work { second, part: 0, totals: vec![1] };
    let cases = [
        (late(MAX_COUNT), 0),
        (late(MAX_COUNT + 1), 1),
        (work(MAX_SECOND), 0),
        (work(MAX_SECOND + 1), 1),
    ];
    for (record, damaged) in cases {
        let mut bytes = Vec::new();
        encode(&record, &mut bytes);
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.by_ref().count() as u64, 1 - damaged, "{record:?}");
        assert_eq!(reader.damaged, damaged, "{record:?}");
    }
}

#[test]
fn a_search_among_heads_that_claim_much_is_linear() {
    let head = [&[0xB5, 0x1A][..], &300_000_u32.to_le_bytes(), &[1, 2, 3, 4]].concat();
    let mut bytes = head.repeat(100_000);
    let last = Record::Work { second: 3, part: 1, totals: vec![7] };
    encode(&last, &mut bytes);
    let mut reader = Reader::new(&bytes);
    assert_eq!(reader.by_ref().collect::<Vec<_>>(), [last]);
    assert_eq!(reader.damaged, 1);
    let most = 8 * (bytes.len() as u64 + (1 << 19));
    assert!(reader.vain.spent() <= most, "{} of {most}", reader.vain.spent());
}

#[test]
fn the_largest_records_fit_a_frame() {
    let samples = vec![Outlier { at: u64::MAX, latency: i64::MIN }; 64 + 16_384];
    let counts = crate::histogram::Sparse::of((0..BINS).map(|bin| (bin, MAX_COUNT)));
    for record in [
        Record::Outliers { thread: u32::MAX, series: 15, samples },
        Record::Histogram { thread: u32::MAX, series: 15, part: Part::Positive, counts },
    ] {
        let mut bytes = Vec::new();
        encode(&record, &mut bytes);
        assert!(Reader::new(&bytes).eq([record]), "{} bytes are too many", bytes.len());
    }
}

/// A frame of this payload.
fn frame(payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_le_bytes();
    let crc = super::record::checksum(length, payload).to_le_bytes();
    [&[0xB5, 0x1A], &length[..], &crc, payload].concat()
}

#[test]
fn kinds_of_later_versions_are_passed_over() {
    let late = Record::Late(Late { thread: 0, series: 0, at: 0, latency: 0, missed: 0 });
    let mut bytes = frame(&[12, 1, 2, 3]);
    bytes.extend(frame(&[0]));
    encode(&late, &mut bytes);
    let mut reader = Reader::new(&bytes);
    assert_eq!(reader.by_ref().collect::<Vec<_>>(), [late]);
    assert_eq!(reader.damaged, 0);
}

#[test]
fn intervals_and_names_that_cannot_be_are_damage() {
    let last = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01];
    let interval = |length: u8| [&[7, 1][..], &last, &[length, 0]].concat();
    let name = |length: u8, name: &[u8]| [&[8, 3, length][..], name].concat();
    let long = [&[8, 3, 0x80, 0x02][..], &[b'a'; 256]].concat();
    for (payload, damaged) in [
        (interval(0), 0),
        (interval(1), 1),
        (name(2, b"sh"), 0),
        (name(3, b"sh"), 1),
        (name(2, b"\xFF\xFF"), 1),
        (long, 1),
    ] {
        let bytes = frame(&payload);
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.by_ref().count() as u64, 1 - damaged, "{payload:?}");
        assert_eq!(reader.damaged, damaged, "{payload:?}");
    }
}

#[test]
fn a_name_that_is_too_long_is_cut_between_characters() {
    let mut bytes = Vec::new();
    encode(&Record::Actor(Actor { number: 1, name: "ä".repeat(MAX_NAME) }), &mut bytes);
    let read: Vec<_> = Reader::new(&bytes).collect();
    let name = "ä".repeat(MAX_NAME / 2);
    assert_eq!(read, [Record::Actor(Actor { number: 1, name })]);
}

proptest! {
    #[test]
    fn records_come_back(records in prop::collection::vec(arbitrary_record(), 0..8)) {
        let mut bytes = Vec::new();
        records.iter().for_each(|r| encode(r, &mut bytes));
        let mut reader = Reader::new(&bytes);
        let read: Vec<_> = reader.by_ref().collect();
        prop_assert_eq!(read, records);
        prop_assert_eq!(reader.damaged, 0);
    }

    #[test]
    fn one_flipped_bit_costs_one_record(
        records in prop::collection::vec(arbitrary_record(), 3..8), at in any::<prop::sample::Index>(), bit in 0..8,
    ) {
        let mut bytes = Vec::new();
        records.iter().for_each(|r| encode(r, &mut bytes));
        let at = at.index(bytes.len());
        bytes[at] ^= 1_u8 << bit;
        let mut reader = Reader::new(&bytes);
        let read: Vec<_> = reader.by_ref().collect();
        prop_assert_eq!(read.len(), records.len() - 1);
        prop_assert_eq!(reader.damaged, 1);
        prop_assert!(read.iter().all(|r| records.contains(r)));
    }

    #[test]
    fn a_torn_end_costs_the_last_record_only(
        records in prop::collection::vec(arbitrary_record(), 2..6), cut in 1_usize..10,
    ) {
        let mut bytes = Vec::new();
        records.iter().for_each(|r| encode(r, &mut bytes));
        bytes.truncate(bytes.len() - cut);
        let read: Vec<_> = Reader::new(&bytes).collect();
        prop_assert_eq!(&read[..], &records[..records.len() - 1]);
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Reader::new(&bytes).count();
        let _ = Cursor { bytes: &bytes }.record();
    }
}
