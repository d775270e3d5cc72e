//! The binary records of a cell: frames that survive a crash and flipped bits.
//!
//! A file is a sequence of frames: marker (2 bytes), length of the payload
//! (u32), CRC-32 of length and payload, payload. The first byte of a payload is
//! its kind; numbers are LEB128, signed ones zigzag. A reader that meets a
//! damaged frame looks for the next whole one: an unreadable record counts as
//! absent, and is counted. docs/run-format.md describes every kind.

mod cursor;
mod read;
mod record;
mod write;

pub use read::Reader;
pub use record::{Part, Record};
pub use write::encode;

#[cfg(test)]
mod tests;
