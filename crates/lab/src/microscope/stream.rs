//! Reads what the observer writes.

use std::io::{BufReader, ErrorKind, Read};

use anyhow::{Context, Result, bail, ensure};
use punctual_observer::event::{Event, Header, Kind, PROTOCOL, SIZE};

/// More events than the observer's ring can hold are damage.
const MOST: u64 = 1 << 24;

/// Bytes read at once.
const SLICE: usize = 1 << 18;

/// What was executed before a wanted sample.
pub(super) struct Dump {
    /// How many recorders had begun, this one included.
    pub(super) begin: u64,
    /// Number of the sample since then, from 1.
    pub(super) ordinal: u64,
    /// In the order of time.
    pub(super) events: Vec<Event>,
}

/// Reads all events and hands dumps over as they come. The guest waits meanwhile.
///
/// # Errors
/// They are not the observer's, or end too early: QEMU was killed, or did not load the observer.
pub(super) fn read(from: impl Read, mut dumped: impl FnMut(Dump)) -> Result<()> {
    let mut stream = Stream::open(from)?;
    let (mut begin, mut ordinal) = (0_u64, 0_u64);
    loop {
        match stream.next()? {
            Item::Event(event) if event.kind() == Some(Kind::Begin) => {
                (begin, ordinal) = (begin + 1, 0);
            }
            Item::Event(event) => ordinal += u64::from(event.kind() == Some(Kind::Sample)),
            // The sample itself follows.
            Item::Dump(events) => dumped(Dump { begin, ordinal: ordinal + 1, events }),
            Item::End(_) => return Ok(()),
        }
    }
}

/// What the observer writes, one after the other.
pub(super) enum Item {
    /// Something that happened.
    Event(Event),
    /// What was executed before the next event.
    Dump(Vec<Event>),
    /// All was read. How often a guest went to user space although its preemption was off.
    End(u64),
}

/// The observer's pipe.
pub(super) struct Stream<R> {
    from: BufReader<R>,
}

impl<R: Read> Stream<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// It is not the observer's.
    pub(super) fn open(from: R) -> Result<Self> {
        let mut from = BufReader::with_capacity(SLICE, from);
        let header = piece(&mut from)?.context("QEMU did not load the observer")?;
        let header = Header::from_bytes(header).context("these are not the observer's events")?;
        ensure!(header.protocol == PROTOCOL, "events of version {}", header.protocol);
        Ok(Self { from })
    }

    /// The next one; nothing follows the end.
    ///
    /// # Errors
    /// There is none, or it is damaged.
    pub(super) fn next(&mut self) -> Result<Item> {
        let event = next(&mut self.from)?.context("the observer's events end too early")?;
        match event.kind() {
            Some(Kind::DumpBegin) => dump(&mut self.from, event.value()).map(Item::Dump),
            Some(Kind::End) => Ok(Item::End(event.value())),
            Some(_) => Ok(Item::Event(event)),
            None => bail!("an event of an unknown kind"),
        }
    }
}

fn dump(from: &mut impl Read, count: u64) -> Result<Vec<Event>> {
    ensure!(count <= MOST, "{count} events in one dump");
    let mut events = Vec::new();
    for _ in 0..count {
        events.push(next(from)?.context("a dump ends too early")?);
    }
    let end = next(from)?.and_then(Event::kind);
    ensure!(end == Some(Kind::DumpEnd), "a dump has no end");
    Ok(events)
}

fn next(from: &mut impl Read) -> Result<Option<Event>> {
    Ok(piece(from)?.map(Event::from_bytes))
}

fn piece(from: &mut impl Read) -> Result<Option<[u8; SIZE]>> {
    let mut bytes = [0; SIZE];
    match from.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error).context("the observer's pipe"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(events: &[(u64, Kind, u64)]) -> Vec<u8> {
        let header = Header { protocol: PROTOCOL, api: 1 }.to_bytes();
        let events =
            events.iter().map(|(at, kind, value)| Event::new(*at, *kind, *value).to_bytes());
        std::iter::once(header).chain(events).flatten().collect()
    }

    fn whole() -> Vec<u8> {
        bytes(&[
            (1, Kind::Sample, 0),
            (2, Kind::Begin, 0),
            (3, Kind::Sample, 0),
            (9, Kind::DumpBegin, 2),
            (4, Kind::Block, 0x10),
            (8, Kind::Clock, 0x20),
            (9, Kind::DumpEnd, 0),
            (9, Kind::Sample, 0),
            (10, Kind::End, 0),
        ])
    }

    #[test]
    fn a_dump_belongs_to_the_sample_after_it() {
        let mut dumps = Vec::new();
        read(&whole()[..], |dump| dumps.push((dump.begin, dump.ordinal, dump.events))).unwrap();
        let events = vec![Event::new(4, Kind::Block, 0x10), Event::new(8, Kind::Clock, 0x20)];
        assert_eq!(dumps, [(1, 2, events)]);
    }

    #[test]
    fn nothing_cut_short_or_damaged_is_taken_for_whole() {
        let whole = whole();
        for length in 0..whole.len() {
            assert!(read(&whole[..length], |_| {}).is_err(), "{length}");
        }
        for (place, byte) in [(0, b'P'), (8, 99), (31, 99)] {
            let mut damaged = whole.clone();
            damaged[place] = byte;
            assert!(read(&damaged[..], |_| {}).is_err(), "{place}");
        }
        let endless = bytes(&[(1, Kind::DumpBegin, u64::MAX)]);
        assert!(read(&endless[..], |_| {}).is_err());
    }
}
