//! Records written and read back, whole, torn and damaged.

use super::*;
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
    let block = (any::<u32>(), 0..=MAX_SECOND, moments, coarse).prop_map(
        |(thread, index, moments, coarse)| {
            Record::Block(Block { thread, index, moments, coarse: coarse.into_iter().collect() })
        },
    );
    let counts = prop::collection::btree_map(0..BINS, 1..=MAX_COUNT, 0..40);
    let histogram = (any::<u32>(), counts).prop_map(|(thread, bins)| {
        let mut counts = Histogram::new();
        bins.into_iter().for_each(|(bin, n)| counts.add(bin, n));
        Record::Histogram { thread, series: 1, part: Part::Behind, counts }
    });
    let late =
        (any::<(u32, u64, u64)>(), 0..=MAX_COUNT).prop_map(|((thread, at, latency), missed)| {
            Record::Late(Late { thread, at, latency, missed })
        });
    let work = (0..=MAX_SECOND, any::<(u32, Vec<u64>)>())
        .prop_map(|(second, (part, totals))| Record::Work { second, part, totals });
    let outliers = any::<(u32, Vec<(u64, i64)>)>().prop_map(|(thread, samples)| Record::Outliers {
        thread,
        samples: samples.into_iter().map(|(at, latency)| Outlier { at, latency }).collect(),
    });
    prop_oneof![block, histogram, late, work, outliers]
}

#[test]
fn numbers_that_cannot_be_are_damage() {
    let late = |missed| Record::Late(Late { thread: 0, at: 0, latency: 0, missed });
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
