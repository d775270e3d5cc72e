//! Records of a cell: bytes as they come, and payloads in frames whose checksum
//! is right. What is read survives being written, and is summarised.

use punctual_core::format::{Reader, encode};
use punctual_core::run::CellData;
use punctual_core::schema::{Latency, Role, Series, Stats, Thread, Unit};
use punctual_core::stats::{Measured, Recorded, assemble, behind_of};

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
        clusters: 0,
    });
    let mut latency = Latency { series: vec![leg(); 3], ..Latency::default() };
    assemble(&mut latency, measured.collect());
    for thread in &data.threads {
        let _ = behind_of(thread.primary(), Some(1_000_000));
    }
}

pub fn target(bytes: &[u8]) {
    read(bytes);
    read(&frames::of(bytes));
}
