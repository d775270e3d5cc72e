//! Files of a cell of megabytes: as bytes, and as payloads in frames whose checksum is right.

use punctual_core::run::CellData;
use punctual_core::run::limits::Budget;
use punctual_core::schema::{Cell, Latency, What};
use punctual_core::stats::{Limits, missed_by_late};

use crate::{expand, frames};

const LIMITS: Limits = Limits { deadline: 1_000_000, interval: 1_000, ..Limits::NONE };

fn read(file: &[u8]) {
    let what = What::Latency(Latency::default());
    let cell = Cell::new("k".to_owned(), "00-k".to_owned(), "none".to_owned(), 1, what);
    let mut data = CellData::default();
    data.read(file);
    let _ = Budget::default().admit(&cell, &mut data);
    for thread in &mut data.threads {
        let _ = missed_by_late(thread.series_mut(0), &LIMITS);
    }
}

pub fn target(bytes: &[u8]) {
    let file = expand::of(bytes);
    read(&file);
    read(&frames::of(&file));
}
