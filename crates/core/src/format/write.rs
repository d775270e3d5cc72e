//! Records to bytes.

use super::record::kind::{
    ACTOR, BLOCK, HISTOGRAM, INTERVAL, LATE, OUTLIERS, PHASE, SPELL, STOP, SYSTEM, WORK,
};
use super::record::{HEAD, MARKER, Record, checksum};
use crate::block::{Moments, Spell, System};
use crate::interval::{Actor, Interval, MAX_NAME};
use crate::schema::{Stop, StoppedBy};

/// Appends `record` as one frame to `out`.
pub fn encode(record: &Record, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&MARKER);
    out.extend_from_slice(&[0; HEAD - 2]);
    payload(record, out);
    let length = u32::try_from(out.len() - start - HEAD).unwrap_or(u32::MAX).to_le_bytes();
    let crc = checksum(length, &out[start + HEAD..]).to_le_bytes();
    out[start + 2..start + 6].copy_from_slice(&length);
    out[start + 6..start + HEAD].copy_from_slice(&crc);
}

fn payload(record: &Record, out: &mut Vec<u8>) {
    match record {
        Record::Block(block) => {
            out.push(BLOCK);
            unsigned(out, block.thread);
            unsigned(out, block.series);
            unsigned(out, block.index);
            moments(out, &block.moments);
            unsigned(out, block.coarse.len() as u64);
            let mut last = 0;
            for (bin, count) in &block.coarse {
                signed(out, i128::from(*bin) - last);
                unsigned(out, *count);
                last = i128::from(*bin);
            }
        }
        Record::Late(late) => {
            out.push(LATE);
            unsigned(out, late.thread);
            unsigned(out, late.series);
            unsigned(out, late.at);
            unsigned(out, late.latency);
            unsigned(out, late.missed);
        }
        Record::Work { second, part, totals } => {
            out.push(WORK);
            unsigned(out, *second);
            unsigned(out, *part);
            unsigned(out, totals.len() as u64);
            for total in totals {
                unsigned(out, *total);
            }
        }
        Record::System(System { second, busy, steal, strain }) => {
            out.push(SYSTEM);
            unsigned(out, *second);
            unsigned(out, *busy);
            unsigned(out, *steal);
            known(out, strain.interrupts);
            known(out, strain.switches);
            strain.pressure.iter().for_each(|share| known(out, *share));
        }
        Record::Histogram { thread, series, part, counts } => {
            out.push(HISTOGRAM);
            unsigned(out, *thread);
            unsigned(out, *series);
            out.push(*part as u8);
            unsigned(out, counts.len() as u64);
            let mut last = 0;
            for (bin, count) in counts.iter() {
                unsigned(out, (bin - last) as u64);
                unsigned(out, count);
                last = bin;
            }
        }
        Record::Outliers { thread, series, samples } => {
            out.push(OUTLIERS);
            unsigned(out, *thread);
            unsigned(out, *series);
            unsigned(out, samples.len() as u64);
            for sample in samples {
                unsigned(out, sample.at);
                signed(out, i128::from(sample.latency));
            }
        }
        Record::Interval(Interval { cpu, from, to, actor }) => {
            out.push(INTERVAL);
            unsigned(out, *cpu);
            unsigned(out, *from);
            unsigned(out, to.saturating_sub(*from));
            unsigned(out, *actor);
        }
        Record::Actor(Actor { number, name }) => {
            out.push(ACTOR);
            unsigned(out, *number);
            text(out, name);
        }
        Record::Spell(Spell { thread, from, to, late }) => {
            out.push(SPELL);
            unsigned(out, *thread);
            unsigned(out, *from);
            unsigned(out, to.saturating_sub(*from));
            unsigned(out, *late);
        }
        Record::Phase { phase, from, to } => {
            out.push(PHASE);
            unsigned(out, *phase);
            unsigned(out, *from);
            unsigned(out, to.saturating_sub(*from));
        }
        Record::Stop { number, stop } => {
            let Stop { from_ns, length_ns, by, name, samples, missed, max_ns } = stop;
            out.push(STOP);
            unsigned(out, *number);
            unsigned(out, *from_ns);
            known(out, *length_ns);
            let place = StoppedBy::ALL.iter().position(|one| one == by);
            unsigned(out, place.unwrap_or(0) as u64);
            for number in [samples, missed, max_ns] {
                unsigned(out, *number);
            }
            text(out, name);
        }
    }
}

/// As much of a text as a record may hold, after its length.
fn text(out: &mut Vec<u8>, text: &str) {
    let end = (0..=MAX_NAME.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    let text = &text[..end.unwrap_or(0)];
    unsigned(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

fn moments(out: &mut Vec<u8>, m: &Moments) {
    for value in [m.count, m.missed, m.early, m.exceeded, m.max_at] {
        unsigned(out, value);
    }
    signed(out, i128::from(m.min));
    signed(out, i128::from(m.max));
    signed(out, m.sum);
    unsigned(out, m.sum_sq);
}

/// A number and one, or 0 if there is none.
fn known(out: &mut Vec<u8>, value: Option<impl Into<u128>>) {
    unsigned(out, value.map_or(0, |value| value.into() + 1));
}

fn unsigned(out: &mut Vec<u8>, value: impl Into<u128>) {
    let mut value = value.into();
    while value >= 0x80 {
        out.push((value & 0x7F) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7F) as u8);
}

fn signed(out: &mut Vec<u8>, value: i128) {
    #[allow(clippy::cast_sign_loss, reason = "zigzag keeps every bit")]
    unsigned(out, ((value << 1) ^ (value >> 127)) as u128);
}
