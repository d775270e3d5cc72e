//! Reads what the observer writes.

use std::collections::VecDeque;
use std::io::{BufReader, ErrorKind, Read};

use anyhow::{Context, Result, bail, ensure};
use punctual_observer::event::{Event, Header, Kind, PROTOCOL, SIZE};

/// More events than the observer's ring can hold are damage, and more are not kept of a sample: what
/// is made of so many takes about 1 GiB.
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
    /// Whether there were more than are kept.
    pub(super) is_cut: bool,
}

/// Reads all events and hands dumps over as they come. The guest waits meanwhile. Of what was
/// spilled only that is kept that was executed at most `reach` instructions ago.
///
/// # Errors
/// They are not the observer's, or end too early: QEMU was killed, or did not load the observer.
pub(super) fn read(from: impl Read, reach: u64, mut dumped: impl FnMut(Dump)) -> Result<()> {
    let mut stream = Stream::open(from)?;
    let (mut begin, mut ordinal) = (0_u64, 0_u64);
    let mut spilled = Spilled::default();
    let most = usize::try_from(MOST).unwrap_or(usize::MAX);
    loop {
        match stream.next()? {
            Item::Event(event) if event.kind() == Some(Kind::Begin) => {
                (begin, ordinal) = (begin + 1, 0);
            }
            Item::Event(event) => ordinal += u64::from(event.kind() == Some(Kind::Sample)),
            // The sample itself follows.
            Item::Dump(events) => {
                let is_cut = spilled.is_cut;
                dumped(Dump {
                    begin,
                    ordinal: ordinal + 1,
                    events: spilled.before(events),
                    is_cut,
                });
            }
            Item::Spilled(events) if events.is_empty() => spilled = Spilled::default(),
            Item::Spilled(events) => spilled.add(events, reach, most),
            Item::End(_) => return Ok(()),
        }
    }
}

/// What the observer's ring had no room for.
#[derive(Default)]
struct Spilled {
    events: VecDeque<Event>,
    is_cut: bool,
}

impl Spilled {
    /// At most so many are kept.
    fn add(&mut self, events: Vec<Event>, reach: u64, most: usize) {
        self.events.extend(events);
        let newest = self.events.back().map_or(0, |event| event.at);
        let is_far = |event: &Event| event.at < newest.saturating_sub(reach);
        let far = self.events.partition_point(is_far);
        self.events.drain(..far);
        if let Some(more) = self.events.len().checked_sub(most).filter(|more| *more > 0) {
            self.events.drain(..more);
            self.is_cut = true;
        }
    }

    /// All of it, before these.
    fn before(&self, events: Vec<Event>) -> Vec<Event> {
        if self.events.is_empty() {
            return events;
        }
        self.events.iter().copied().chain(events).collect()
    }
}

/// What the observer writes, one after the other.
pub(super) enum Item {
    /// Something that happened.
    Event(Event),
    /// What was executed before the next event.
    Dump(Vec<Event>),
    /// What belongs before the next dumps; none: nothing does any more.
    Spilled(Vec<Event>),
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
            Some(Kind::Spilled) => several(&mut self.from, event.value()).map(Item::Spilled),
            Some(Kind::End) => Ok(Item::End(event.value())),
            Some(_) => Ok(Item::Event(event)),
            None => bail!("an event of an unknown kind"),
        }
    }
}

fn dump(from: &mut impl Read, count: u64) -> Result<Vec<Event>> {
    let events = several(from, count)?;
    let end = next(from)?.and_then(Event::kind);
    ensure!(end == Some(Kind::DumpEnd), "a dump has no end");
    Ok(events)
}

fn several(from: &mut impl Read, count: u64) -> Result<Vec<Event>> {
    ensure!(count <= MOST, "{count} events in one dump");
    let mut events = Vec::new();
    for _ in 0..count {
        events.push(next(from)?.context("a dump ends too early")?);
    }
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
        read(&whole()[..], u64::MAX, |dump| dumps.push((dump.begin, dump.ordinal, dump.events)))
            .unwrap();
        let events = vec![Event::new(4, Kind::Block, 0x10), Event::new(8, Kind::Clock, 0x20)];
        assert_eq!(dumps, [(1, 2, events)]);
    }

    #[test]
    fn what_was_spilled_belongs_before_the_dumps_until_it_is_over() {
        let whole = bytes(&[
            (1, Kind::Begin, 0),
            (2, Kind::Spilled, 2),
            (1, Kind::Block, 0x10),
            (4, Kind::Block, 0x20),
            (5, Kind::Spilled, 1),
            (5, Kind::Block, 0x30),
            (9, Kind::DumpBegin, 1),
            (8, Kind::Clock, 0x20),
            (9, Kind::DumpEnd, 0),
            (9, Kind::Sample, 0),
            (9, Kind::Spilled, 0),
            (12, Kind::DumpBegin, 1),
            (11, Kind::Clock, 0x20),
            (12, Kind::DumpEnd, 0),
            (12, Kind::Sample, 0),
            (13, Kind::End, 0),
        ]);
        for (reach, first) in [(u64::MAX, &[1, 4, 5, 8][..]), (4, &[1, 4, 5, 8]), (1, &[4, 5, 8])] {
            let mut dumps = Vec::new();
            read(&whole[..], reach, |dump| {
                assert!(!dump.is_cut);
                dumps.push((dump.ordinal, dump.events.iter().map(|e| e.at).collect::<Vec<_>>()));
            })
            .unwrap();
            assert_eq!(dumps, [(1, first.to_vec()), (2, vec![11])], "{reach}");
        }
    }

    #[test]
    fn more_than_can_be_kept_is_known_to_be_cut() {
        let mut spilled = Spilled::default();
        let all = |from, to| (from..to).map(|at| Event::new(at, Kind::Block, 0x10)).collect();
        spilled.add(all(0, 50), u64::MAX, 50);
        assert!(!spilled.is_cut);
        spilled.add(all(50, 59), u64::MAX, 50);
        assert!(spilled.is_cut);
        assert_eq!((spilled.events.len(), spilled.events[0].at), (50, 9));
    }

    #[test]
    fn nothing_cut_short_or_damaged_is_taken_for_whole() {
        let whole = whole();
        for length in 0..whole.len() {
            assert!(read(&whole[..length], u64::MAX, |_| {}).is_err(), "{length}");
        }
        for (place, byte) in [(0, b'P'), (8, 99), (31, 99)] {
            let mut damaged = whole.clone();
            damaged[place] = byte;
            assert!(read(&damaged[..], u64::MAX, |_| {}).is_err(), "{place}");
        }
        for kind in [Kind::DumpBegin, Kind::Spilled] {
            let endless = bytes(&[(1, kind, u64::MAX)]);
            assert!(read(&endless[..], u64::MAX, |_| {}).is_err());
        }
    }
}
