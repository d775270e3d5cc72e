//! Bytes to records.

use super::cursor::Cursor;
use super::record::kind::{BLOCK, STOP};
use super::record::{HEAD, MARKER, MAX_PAYLOAD, Record, checksum};
use crate::vain::Vain;

/// Reads the frames of a file, and skips and counts damaged stretches. The time it takes is
/// proportional to the length of the file, whatever is in it.
#[derive(Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Stretches that were not complete frames, including a truncated end of the file.
    pub damaged: u64,
    in_damage: bool,
    /// Bounds what wrong checksums cost.
    pub(super) vain: Vain,
}

impl<'a> Reader<'a> {
    /// Starts at the first byte of a file.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, damaged: 0, in_damage: false, vain: Vain::new(MAX_PAYLOAD) }
    }

    fn frame(&mut self) -> Option<&'a [u8]> {
        let head = self.bytes.get(self.at..self.at + HEAD)?;
        if head[..2] != MARKER {
            return None;
        }
        let length: [u8; 4] = head[2..6].try_into().ok()?;
        let size = u32::from_le_bytes(length) as usize;
        if size > MAX_PAYLOAD || !self.vain.affords(self.at, size) {
            return None;
        }
        let payload = self.bytes.get(self.at + HEAD..self.at + HEAD + size)?;
        if checksum(length, payload).to_le_bytes() != head[6..HEAD] {
            self.vain.spend(size);
            return None;
        }
        Some(payload)
    }
}

impl Iterator for Reader<'_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        while self.at < self.bytes.len() {
            let Some(payload) = self.frame() else {
                if !self.in_damage {
                    self.damaged += 1;
                    self.in_damage = true;
                }
                self.at += 1;
                continue;
            };
            self.at += HEAD + payload.len();
            self.in_damage = false;
            if let Some(record) = (Cursor { bytes: payload }).record() {
                return Some(record);
            }
            // A kind added by a later minor version is not damage.
            let known = payload.first().is_some_and(|kind| (BLOCK..=STOP).contains(kind));
            self.damaged += u64::from(known);
        }
        None
    }
}
