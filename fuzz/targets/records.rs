//! Records of a cell: bytes as they come, and payloads in frames whose checksum
//! is right. What is read survives being written, and is summarised.

use punctual_core::format::{Reader, encode};
use punctual_core::run::CellData;
use punctual_core::schema::{Cell, Latency, Role, Series, Stats, Thread, Unit, What};
use punctual_core::stats::{
    BySecond, Limits, Measured, Recorded, assemble, behind_of, changes, extreme, spells_of_seconds,
    spells_on_disk, tell_episodes,
};

use crate::frames;

fn leg() -> Series {
    Series {
        name: String::new(),
        meaning: String::new(),
        role: Role::Leg,
        unit: Unit::Ns,
        stats: Stats::default(),
    }
}

fn read(bytes: &[u8]) {
    let records: Vec<_> = Reader::new(bytes).collect();
    let mut written = Vec::new();
    records.iter().for_each(|record| encode(record, &mut written));
    let mut reader = Reader::new(&written);
    assert_eq!(reader.by_ref().collect::<Vec<_>>(), records);
    assert_eq!(reader.damaged, 0);

    let mut data = CellData::default();
    data.read(bytes);
    let measured = data.threads.iter().map(|thread| Measured {
        thread: Thread::default(),
        series: thread.series.iter().map(Recorded::of).collect(),
        exceedances: 0,
    });
    let mut latency = Latency { series: vec![leg(); 3], ..Latency::default() };
    assemble(&mut latency, measured.collect());
    for thread in &data.threads {
        let _ = behind_of(thread.primary(), Some(1_000_000));
    }
    let number = latency.threads.len();
    let what = What::Latency(latency);
    let mut cell = Cell::new(String::new(), String::new(), "none".to_owned(), 1 << 40, what);
    let by_thread = || (0..).zip(&data.threads).take(number);
    tell_episodes(&mut cell, by_thread().map(|(n, data)| spells_on_disk(data, n)).collect(), false);
    let limits = Limits { deadline: 1_000, interval: 1_000_000, ..Limits::NONE };
    let seconds = by_thread().map(|(n, data)| spells_of_seconds(data.primary(), n, &limits));
    tell_episodes(&mut cell, seconds.collect(), true);
    let episodes = cell.latency().and_then(|latency| latency.episodes.clone()).unwrap();
    assert!(episodes.count_10s <= episodes.count && episodes.count <= episodes.count_100ms);
    let _ = changes(&BySecond::of(&data, Some(1_000)));
    let _ = extreme::from_cell(&data, 0);
}

pub fn target(bytes: &[u8]) {
    read(bytes);
    read(&frames::of(bytes));
}
