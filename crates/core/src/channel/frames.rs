//! Messages as bytes, and back.
//!
//! A message is a frame: `0xF5`, its kind, the length of its payload and the payload's CRC-32
//! (both 32 bits, little-endian), the payload. The payload of an event is JSON; that of a file
//! begins with the length of its path (16 bits) and the path.

use std::path::{Component, Path};

use thiserror::Error;

use super::message::Message;
use crate::vain::Vain;

/// Longest payload, bytes; no file that a run sends at once is larger.
const LONGEST: usize = 64 << 20;

const MARK: u8 = 0xF5;
const HEADER: usize = 10;

/// Why bytes from the channel are not a message.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ChannelError {
    /// No frame begins here.
    #[error("byte {0} of the channel begins no message")]
    NoMark(u64),
    /// An impossible length.
    #[error("a message of {0} bytes")]
    TooLong(usize),
    /// The checksum does not match.
    #[error("a damaged message at byte {0}")]
    Damaged(u64),
    /// The payload cannot be parsed, or the path is outside the run directory.
    #[error("a message that says nothing: {0}")]
    Senseless(String),
}

/// Encodes a message.
#[must_use]
pub fn encode(message: &Message) -> Vec<u8> {
    let file = |path: &str, bytes: &[u8]| {
        let length = u16::try_from(path.len()).unwrap_or(u16::MAX);
        let mut payload = Vec::with_capacity(bytes.len() + path.len() + 2);
        payload.extend_from_slice(&length.to_le_bytes());
        payload.extend_from_slice(&path.as_bytes()[..usize::from(length)]);
        payload.extend_from_slice(bytes);
        payload
    };
    let (kind, payload) = match message {
        Message::Event(event) => (b'E', serde_json::to_vec(event).unwrap_or_default()),
        Message::Append(path, bytes) => (b'A', file(path, bytes)),
        Message::Whole(path, bytes) => (b'W', file(path, bytes)),
    };
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    let mut frame = Vec::with_capacity(payload.len() + HEADER);
    frame.extend_from_slice(&[MARK, kind]);
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(&crc32fast::hash(&payload).to_le_bytes());
    frame.extend_from_slice(&payload);
    frame
}

/// Finds the messages in the bytes of a channel, whatever pieces they arrive in. The time it
/// takes is proportional to the number of bytes, whatever they are.
#[derive(Debug)]
pub struct Decoder {
    bytes: Vec<u8>,
    /// How many of `bytes` have been consumed.
    done: usize,
    /// How many bytes of the channel came before `bytes`.
    before: u64,
    /// Bounds what wrong checksums cost.
    vain: Vain,
}

impl Default for Decoder {
    fn default() -> Self {
        Self { bytes: Vec::new(), done: 0, before: 0, vain: Vain::new(LONGEST) }
    }
}

impl Decoder {
    /// Adds bytes that have arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.done);
        self.before += self.done as u64;
        self.done = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Skips a message that is damaged or will never be complete, to the next possible start
    /// of one; `false` if nothing is left.
    pub fn skip(&mut self) -> bool {
        let rest = &self.bytes[self.done..];
        let Some(next) = rest.iter().skip(1).position(|byte| *byte == MARK) else {
            self.done = self.bytes.len();
            return false;
        };
        self.done += next + 1;
        true
    }

    /// The next message; `None` until it has arrived completely.
    ///
    /// # Errors
    /// [`ChannelError`]; call [`Decoder::skip`] to go on.
    pub fn take(&mut self) -> Result<Option<Message>, ChannelError> {
        let here = self.before + self.done as u64;
        let rest = &self.bytes[self.done..];
        if rest.first().is_some_and(|mark| *mark != MARK) {
            return Err(ChannelError::NoMark(here));
        }
        let Some((header, rest)) = rest.split_at_checked(HEADER) else {
            return Ok(None);
        };
        let word = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let length = usize::try_from(word(2)).unwrap_or(usize::MAX);
        if length > LONGEST {
            return Err(ChannelError::TooLong(length));
        }
        let Some(payload) = rest.get(..length) else {
            return Ok(None);
        };
        let at = usize::try_from(here).unwrap_or(usize::MAX);
        if !self.vain.affords(at, length) {
            return Err(ChannelError::Damaged(here));
        }
        if crc32fast::hash(payload) != word(6) {
            self.vain.spend(length);
            return Err(ChannelError::Damaged(here));
        }
        let message = read(header[1], payload)?;
        self.done += HEADER + length;
        Ok(Some(message))
    }
}

fn read(kind: u8, payload: &[u8]) -> Result<Message, ChannelError> {
    let senseless = |what: &str| ChannelError::Senseless(what.to_owned());
    if kind == b'E' {
        let event = serde_json::from_slice(payload);
        return event.map(Message::Event).map_err(|error| senseless(&error.to_string()));
    }
    let (length, rest) = payload.split_at_checked(2).ok_or_else(|| senseless("no path"))?;
    let length = usize::from(u16::from_le_bytes([length[0], length[1]]));
    let (path, bytes) = rest.split_at_checked(length).ok_or_else(|| senseless("no path"))?;
    let path = std::str::from_utf8(path).map_err(|error| senseless(&error.to_string()))?;
    let inside = |part| matches!(part, Component::Normal(_));
    if path.is_empty() || !Path::new(path).components().all(inside) {
        return Err(senseless(&format!("\"{path}\" is no path within a run directory")));
    }
    match kind {
        b'A' => Ok(Message::Append(path.to_owned(), bytes.to_vec())),
        b'W' => Ok(Message::Whole(path.to_owned(), bytes.to_vec())),
        _ => Err(senseless("of an unknown kind")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::Event;

    fn messages() -> Vec<Message> {
        vec![
            Message::Event(Event::Booted { at_ns: 6_000_000_000 }),
            Message::Whole("run.json".to_owned(), b"{}\n".to_vec()),
            Message::Append("cells/00-x/blocks".to_owned(), vec![0, MARK, 255, MARK]),
            Message::Append("cells/00-x/blocks".to_owned(), Vec::new()),
            Message::Event(Event::Progress { at_ns: 7, measured_ns: 1, max_ns: Some(-3) }),
            Message::Event(Event::Ended { at_ns: 9, whole: true }),
        ]
    }

    #[test]
    fn messages_come_out_however_they_are_cut() {
        let bytes: Vec<u8> = messages().iter().flat_map(encode).collect();
        for cut in [1, 2, 7, 64, bytes.len()] {
            let mut decoder = Decoder::default();
            let mut found = Vec::new();
            for part in bytes.chunks(cut) {
                decoder.push(part);
                while let Some(message) = decoder.take().unwrap() {
                    found.push(message);
                }
            }
            assert_eq!(found, messages(), "in parts of {cut}");
        }
    }

    #[test]
    fn damage_is_found() {
        let bytes: Vec<u8> = messages().iter().flat_map(encode).collect();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x20;
            let mut decoder = Decoder::default();
            decoder.push(&damaged);
            let mut found = Vec::new();
            while let Ok(Some(message)) = decoder.take() {
                found.push(message);
            }
            assert_ne!(found, messages(), "byte {at}");
        }
    }

    /// Every message that can be found.
    fn all_in(decoder: &mut Decoder) -> Vec<Message> {
        let mut found = Vec::new();
        loop {
            match decoder.take() {
                Ok(Some(message)) => found.push(message),
                Ok(None) | Err(_) if decoder.skip() => {}
                Ok(None) | Err(_) => return found,
            }
        }
    }

    #[test]
    fn what_follows_a_message_that_was_cut_short_is_found() {
        let last = Message::Event(Event::Trouble { text: "killed by SIGKILL".to_owned() });
        let whole = encode(&Message::Append("cells/00-x/blocks".to_owned(), vec![MARK; 500]));
        for length in [1, 9, 11, 40, 400] {
            let mut decoder = Decoder::default();
            decoder.push(&whole[..length]);
            decoder.push(&encode(&last));
            let found = all_in(&mut decoder);
            assert_eq!(found, std::slice::from_ref(&last), "cut at {length}");
        }
    }

    #[test]
    fn a_search_among_headers_that_claim_much_is_linear() {
        // Each is 10 bytes long and claims 400,000.
        let header = [&[MARK, b'E'][..], &400_000_u32.to_le_bytes(), &[1, 2, 3, 4]].concat();
        let mut bytes = header.repeat(100_000);
        let last = Message::Event(Event::Trouble { text: "found all the same".to_owned() });
        bytes.extend(encode(&last));
        let mut decoder = Decoder { vain: Vain::new(400_000), ..Decoder::default() };
        decoder.push(&bytes);
        let found = all_in(&mut decoder);
        assert_eq!(found, [last]);
        let most = 8 * (bytes.len() as u64 + 400_000);
        assert!(decoder.vain.spent() <= most, "{} of {most}", decoder.vain.spent());
    }

    #[test]
    fn nothing_is_written_outside_the_run_directory() {
        for path in ["../x", "/etc/passwd", "", "a/../../b", "."] {
            let mut decoder = Decoder::default();
            decoder.push(&encode(&Message::Whole(path.to_owned(), Vec::new())));
            assert!(matches!(decoder.take(), Err(ChannelError::Senseless(_))), "{path}");
        }
    }
}
