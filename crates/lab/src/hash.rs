//! Hashes by which a run says what it was made with.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

/// SHA-256, hexadecimal.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
