//! The binary records of a cell, in frames that survive crashes and bit flips.
//!
//! A file is a sequence of frames: marker (2 bytes), length of the payload (u32), CRC-32 of
//! length and payload, payload. The first byte of a payload is its kind; numbers are LEB128,
//! signed ones zigzag. After a damaged frame a reader looks for the next complete one; it
//! treats the unreadable record as absent and counts it. docs/run-format.md describes every
//! kind.

mod cursor;
mod read;
mod record;
mod write;

pub use read::Reader;
pub use record::{Part, Record};
pub use write::encode;

#[cfg(test)]
mod tests;
