//! The punctual binary.
#![forbid(unsafe_code)]
fn main() {}
