//! Records of a cell: bytes as they come, and payloads in frames whose checksum
//! is right. What is read survives being written, and is summarised.
#![no_main]

use libfuzzer_sys::fuzz_target;
use punctual_core::format::{Reader, encode};
use punctual_core::run::CellData;
use punctual_core::stats::{Recorded, summarise};

#[path = "../frames.rs"]
mod frames;

fn read(bytes: &[u8]) {
    let records: Vec<_> = Reader::new(bytes).collect();
    let mut written = Vec::new();
    records.iter().for_each(|record| encode(record, &mut written));
    let mut reader = Reader::new(&written);
    assert_eq!(reader.by_ref().collect::<Vec<_>>(), records);
    assert_eq!(reader.damaged, 0);

    let mut data = CellData::default();
    data.read(bytes);
    let moments: Vec<_> = data.threads.iter().map(|thread| thread.moments()).collect();
    let recorded: Vec<_> =
        data.threads.iter().zip(&moments).map(|(thread, m)| Recorded::of(thread, m)).collect();
    let _ = summarise(&recorded);
}

fuzz_target!(|bytes: &[u8]| {
    read(bytes);
    read(&frames::of(bytes));
});
