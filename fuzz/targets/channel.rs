//! What comes over the channel, whatever it is, gives messages with paths within the run directory.

use punctual_core::channel::{Decoder, Message, encode};

pub fn target(bytes: &[u8]) {
    let mut decoder = Decoder::default();
    let (first, second) = bytes.split_at(bytes.len() / 2);
    for part in [first, second] {
        decoder.push(part);
        loop {
            match decoder.take() {
                Ok(Some(message)) => {
                    if let Message::Append(path, _) | Message::Whole(path, _) = &message {
                        assert!(
                            !path.starts_with('/') && path.split('/').all(|part| part != ".."),
                            "{path}"
                        );
                    }
                    let mut again = Decoder::default();
                    again.push(&encode(&message));
                    assert_eq!(again.take(), Ok(Some(message)));
                }
                Ok(None) => break,
                Err(_) if decoder.skip() => {}
                Err(_) => break,
            }
        }
    }
}
