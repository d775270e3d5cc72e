//! Messages of ONC RPC version 2 (RFC 5531) in XDR (RFC 4506): calls of one procedure that takes an
//! unsigned int and returns it, and the replies to them.

use std::io;

/// The program, from the numbers that RFC 5531 leaves to users (section 8.3).
const PROGRAM: u32 = 0x2070_756e;
const VERSION: u32 = 1;
/// The procedure: it does nothing and returns its argument. 0 would have neither.
const ECHO: u32 = 1;

const RPC_VERSION: u32 = 2;
const CALL: u32 = 0;
const REPLY: u32 = 1;
const ACCEPTED: u32 = 0;
const DENIED: u32 = 1;
const RPC_MISMATCH: u32 = 0;
const AUTH_NONE: u32 = 0;

const SUCCESS: u32 = 0;
const PROG_UNAVAIL: u32 = 1;
const PROG_MISMATCH: u32 = 2;
const PROC_UNAVAIL: u32 = 3;
const GARBAGE_ARGS: u32 = 4;

/// The last fragment of a record, in a record mark (RFC 5531, section 11).
const LAST: u32 = 1 << 31;
/// Bytes of a record mark.
pub(super) const MARK: usize = 4;
/// No message here is longer, bytes.
pub(super) const LONGEST: usize = 256;

/// A message with room for a record mark before it.
pub(super) struct Message {
    bytes: [u8; MARK + LONGEST],
    length: usize,
}

impl Message {
    fn of(words: &[u32]) -> Self {
        let mut message = Self { bytes: [0; MARK + LONGEST], length: 4 * words.len() };
        for (place, word) in message.bytes[MARK..].chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        message
    }

    /// The message alone, as it stands in a packet.
    pub(super) fn packet(&self) -> &[u8] {
        &self.bytes[MARK..MARK + self.length]
    }

    /// The message as a record of one fragment, as it stands in a stream.
    pub(super) fn record(&mut self) -> &[u8] {
        let mark = LAST | u32::try_from(self.length).unwrap_or(0);
        self.bytes[..MARK].copy_from_slice(&mark.to_be_bytes());
        &self.bytes[..MARK + self.length]
    }
}

/// The length of a record that begins with this mark, bytes.
///
/// # Errors
/// It is not the last fragment of its record, or longer than any message here.
pub(super) fn length(mark: [u8; MARK]) -> io::Result<usize> {
    let mark = u32::from_be_bytes(mark);
    match usize::try_from(mark & !LAST) {
        Ok(length) if mark & LAST != 0 && length <= LONGEST => Ok(length),
        _ => Err(wrong("a record that is none of ours")),
    }
}

/// A call.
pub(super) fn call(xid: u32, argument: u32) -> Message {
    let [credentials, verifier] = [[AUTH_NONE, 0]; 2];
    Message::of(&[
        xid,
        CALL,
        RPC_VERSION,
        PROGRAM,
        VERSION,
        ECHO,
        credentials[0],
        credentials[1],
        verifier[0],
        verifier[1],
        argument,
    ])
}

/// What the reply to the call `xid` returns.
///
/// # Errors
/// It answers another call, or says that the call failed.
pub(super) fn result(reply: &[u8], xid: u32) -> io::Result<u32> {
    let mut words = Words(reply);
    if words.next()? != xid || words.next()? != REPLY {
        return Err(wrong("no reply to this call"));
    }
    if words.next()? != ACCEPTED {
        return Err(wrong("the call was denied"));
    }
    words.skip_authentication()?;
    if words.next()? != SUCCESS {
        return Err(wrong("the call was accepted and failed"));
    }
    let value = words.next()?;
    words.end()?;
    Ok(value)
}

/// The reply to a call.
///
/// # Errors
/// It is no call, so there is nothing to reply to.
pub(super) fn reply(call: &[u8]) -> io::Result<Message> {
    let mut words = Words(call);
    let xid = words.next()?;
    if words.next()? != CALL {
        return Err(wrong("no call"));
    }
    if words.next()? != RPC_VERSION {
        return Ok(Message::of(&[xid, REPLY, DENIED, RPC_MISMATCH, RPC_VERSION, RPC_VERSION]));
    }
    let (program, version, procedure) = (words.next()?, words.next()?, words.next()?);
    words.skip_authentication()?;
    words.skip_authentication()?;
    let header = [xid, REPLY, ACCEPTED, AUTH_NONE, 0];
    let with = |status| Message::of(&[&header[..], status].concat());
    Ok(match (program, version, procedure) {
        (PROGRAM, VERSION, ECHO) => {
            match words.next().and_then(|word| words.end().map(|()| word)) {
                Ok(argument) => {
                    let [xid, kind, stat, flavor, length] = header;
                    Message::of(&[xid, kind, stat, flavor, length, SUCCESS, argument])
                }
                Err(_) => with(&[GARBAGE_ARGS]),
            }
        }
        // Every program has it: it takes and returns nothing.
        (PROGRAM, VERSION, 0) => with(&[SUCCESS]),
        (PROGRAM, VERSION, _) => with(&[PROC_UNAVAIL]),
        (PROGRAM, ..) => with(&[PROG_MISMATCH, VERSION, VERSION]),
        _ => with(&[PROG_UNAVAIL]),
    })
}

/// What is left of a message.
struct Words<'a>(&'a [u8]);

impl Words<'_> {
    fn next(&mut self) -> io::Result<u32> {
        let short = || wrong("a message that was cut short");
        let (word, rest) = self.0.split_first_chunk().ok_or_else(short)?;
        self.0 = rest;
        Ok(u32::from_be_bytes(*word))
    }

    /// A flavour, and a body of a length that is padded to whole words.
    fn skip_authentication(&mut self) -> io::Result<()> {
        self.next()?;
        let length = usize::try_from(self.next()?).unwrap_or(usize::MAX);
        for _ in 0..length.div_ceil(4) {
            self.next()?;
        }
        Ok(())
    }

    fn end(&self) -> io::Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(wrong("a message that is too long")) }
    }
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(bytes: &[u8]) -> Vec<u32> {
        bytes.chunks(4).map(|word| u32::from_be_bytes(word.try_into().unwrap())).collect()
    }

    #[test]
    fn a_call_and_its_reply_are_those_of_rfc_5531() {
        let mut call = call(7, 9);
        assert_eq!(words(call.packet()), [7, 0, 2, 0x2070_756e, 1, 1, 0, 0, 0, 0, 9]);
        let answered = reply(call.packet()).unwrap();
        assert_eq!(words(answered.packet()), [7, 1, 0, 0, 0, 0, 9]);
        assert_eq!(result(answered.packet(), 7).unwrap(), 9);
        assert_eq!(call.record()[..4], [0x80, 0, 0, 44]);
        assert_eq!(length([0x80, 0, 0, 44]).unwrap(), 44);
        assert!(length([0, 0, 0, 44]).is_err() && length([0x80, 0, 2, 0]).is_err());
    }

    /// The server's answers to what it does not have, by section 9 of RFC 5531.
    #[test]
    fn what_it_does_not_have_is_refused_as_the_protocol_says() {
        let changed = |at: usize, word: u32| {
            let mut words = words(call(7, 9).packet());
            words[at] = word;
            super::tests::words(reply(Message::of(&words).packet()).unwrap().packet())
        };
        assert_eq!(changed(2, 3), [7, 1, 1, 0, 2, 2]);
        assert_eq!(changed(3, 100_000), [7, 1, 0, 0, 0, 1]);
        assert_eq!(changed(4, 2), [7, 1, 0, 0, 0, 2, 1, 1]);
        assert_eq!(changed(5, 2), [7, 1, 0, 0, 0, 3]);
        assert_eq!(changed(5, 0), [7, 1, 0, 0, 0, 0]);
        let short = reply(&call(7, 9).packet()[..40]).unwrap();
        assert_eq!(super::tests::words(short.packet()), [7, 1, 0, 0, 0, 4]);
        assert!(reply(Message::of(&[7, 1]).packet()).is_err());
    }

    #[test]
    fn other_replies_are_errors() {
        for other in [
            &[8, 1, 0, 0, 0, 0, 9][..],
            &[7, 0, 0, 0, 0, 0, 9],
            &[7, 1, 1, 0, 2, 2],
            &[7, 1, 0, 0, 0, 1],
            &[7, 1, 0, 0, 0, 0],
            &[7, 1, 0, 0, 0, 0, 9, 9],
        ] {
            assert!(result(Message::of(other).packet(), 7).is_err(), "{other:?}");
        }
        // A verifier with a body.
        assert_eq!(result(Message::of(&[7, 1, 0, 1, 5, 0, 0, 0, 9]).packet(), 7).unwrap(), 9);
    }

    proptest! {
        #[test]
        fn no_message_panics(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = (reply(&bytes).is_ok(), result(&bytes, 7).is_ok());
        }
    }
}
