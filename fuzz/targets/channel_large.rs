//! Megabytes from a guest, in pieces as they arrive.

use punctual_core::channel::Decoder;

use crate::expand;

pub fn target(bytes: &[u8]) {
    let mut decoder = Decoder::default();
    // The more arrives at once, the more frames can be complete.
    for piece in expand::of(bytes).chunks(1 << 20) {
        decoder.push(piece);
        loop {
            match decoder.take() {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) if decoder.skip() => {}
                Err(_) => break,
            }
        }
    }
    // What is cut off at the end, as the receiver does when the guest has ended.
    while decoder.skip() {
        while let Ok(Some(_)) = decoder.take() {}
    }
}
