//! What the plugin writes: a header, then events of 16 bytes, all numbers little-endian.
//!
//! An event is its time `at` in eight bytes, then its word in eight: `kind << 56 | value`. Events
//! are in the order of time, except that those between [`Kind::DumpBegin`] and [`Kind::DumpEnd`],
//! and those that follow [`Kind::Spilled`], come from the ring, and so from before. What else was
//! written then is among them again. The event after a dump says what it is for: a sample, or the
//! end of a stretch.

/// Bytes of the header, and of each event.
pub const SIZE: usize = 16;

/// The first eight bytes.
pub const MAGIC: [u8; 8] = *b"punctual";

/// Version of this format.
pub const PROTOCOL: u32 = 6;

const VALUE_BITS: u32 = 56;

/// What happened. The value of an event is the address of the instruction, unless stated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A measuring thread begins its cell.
    Begin = 1,
    /// A sample was taken.
    Sample = 2,
    /// The CPU halts until an interrupt. Its time goes on, without instructions.
    Idle = 3,
    /// The CPU goes on; the address is that of the first block after the halt.
    Resume = 4,
    /// User space reads the clock, or the kernel on its behalf.
    Clock = 5,
    /// Interrupts are off from here. Which address: see [`Kind::Held`].
    InterruptsOff = 6,
    /// Interrupts are on after this instruction; for `sti` after the next one.
    InterruptsOn = 7,
    /// A translated block starts; the address is its first instruction's.
    Block = 8,
    /// The ring follows. Value: number of its events.
    DumpBegin = 9,
    /// The ring has been written. Value: number of older events that it had overwritten.
    DumpEnd = 10,
    /// QEMU ends, and all events were written if this one was. Value: how often a cell's guest
    /// went to user space although its preemption seemed to be off.
    End = 11,
    /// An interrupt or an exception arrives; the address is that of its entry.
    Interrupt = 12,
    /// From here a woken thread cannot run. The address is that of the code that brought this
    /// about, as in [`Kind::Free`] and, for interrupts, above: what only takes or releases a lock
    /// (`passing`) stands for the block that called it.
    Held = 13,
    /// A woken thread would run here.
    Free = 14,
    /// A measuring thread ends its cell.
    Finish = 15,
    /// This block of the kernel was executed since the cell began, once or more. Each is written
    /// once, in ascending order, just before the cell's [`Kind::Finish`].
    Executed = 16,
    /// A timer's handler begins to wake the thread that waits for it.
    Wake = 17,
    /// The CPU takes another thread's stack. Value: where in the guest's memory that thread keeps
    /// the stack pointer, by which threads are told apart. What is known of the thread follows.
    Switch = 18,
    /// Seven bytes more of what is known of it ([`crate::tasks`]), three times.
    Task = 19,
    /// Code looks here whether it is to give way, and would soon: a woken thread would run, but not
    /// at once as in [`Kind::Free`].
    Looked = 20,
    /// An instruction has not reached memory, and is executed again (aarch64). The address is that of
    /// the vector. Elsewhere [`Kind::Interrupt`] says so.
    Fault = 21,
    /// So many events follow for which the ring has no room: the oldest ones that it held. They
    /// belong before what the next dumps write, until this comes with 0.
    Spilled = 22,
}

impl Kind {
    /// The kind with this number.
    #[must_use]
    pub const fn of(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Begin,
            2 => Self::Sample,
            3 => Self::Idle,
            4 => Self::Resume,
            5 => Self::Clock,
            6 => Self::InterruptsOff,
            7 => Self::InterruptsOn,
            8 => Self::Block,
            9 => Self::DumpBegin,
            10 => Self::DumpEnd,
            11 => Self::End,
            12 => Self::Interrupt,
            13 => Self::Held,
            14 => Self::Free,
            15 => Self::Finish,
            16 => Self::Executed,
            17 => Self::Wake,
            18 => Self::Switch,
            19 => Self::Task,
            20 => Self::Looked,
            21 => Self::Fault,
            22 => Self::Spilled,
            _ => return None,
        })
    }
}

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Event {
    /// Instructions that the CPU had begun before this one. Each iteration of a REP is one. An
    /// instruction that faults is one for each try, unlike in QEMU's own count.
    pub at: u64,
    /// Kind and value.
    pub word: u64,
}

impl Event {
    /// An event of this kind.
    #[must_use]
    pub const fn new(at: u64, kind: Kind, value: u64) -> Self {
        Self { at, word: word(kind, value) }
    }

    /// Its kind; `None` if this version of the format has no such kind.
    #[must_use]
    pub const fn kind(self) -> Option<Kind> {
        Kind::of(self.word.to_le_bytes()[7])
    }

    /// Its value as a number.
    #[must_use]
    pub const fn value(self) -> u64 {
        self.word & ((1 << VALUE_BITS) - 1)
    }

    /// Its value as an address. These are canonical, so bit 55 stands for all above it.
    #[must_use]
    pub const fn address(self) -> u64 {
        let signed = self.word.cast_signed() << (64 - VALUE_BITS);
        (signed >> (64 - VALUE_BITS)).cast_unsigned()
    }

    /// As it is written.
    #[must_use]
    pub fn to_bytes(self) -> [u8; SIZE] {
        joined(self.at.to_le_bytes(), self.word.to_le_bytes())
    }

    /// As it was written.
    #[must_use]
    pub fn from_bytes(bytes: [u8; SIZE]) -> Self {
        let (at, word) = halves(bytes);
        Self { at: u64::from_le_bytes(at), word: u64::from_le_bytes(word) }
    }
}

/// The bytes of several values, seven in each.
pub fn values(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks(7).map(|part| part.iter().rfold(0, |value, byte| value << 8 | u64::from(*byte)))
}

/// The bytes of such a value.
#[must_use]
pub const fn bytes_of(value: u64) -> [u8; 7] {
    let [a, b, c, d, e, f, g, _] = value.to_le_bytes();
    [a, b, c, d, e, f, g]
}

/// The second half of an event.
#[must_use]
pub const fn word(kind: Kind, value: u64) -> u64 {
    packed(kind as u64, value)
}

/// A small number and an address in one word, for a callback.
#[must_use]
pub const fn packed(number: u64, address: u64) -> u64 {
    number << VALUE_BITS | address & ((1 << VALUE_BITS) - 1)
}

/// Both again.
#[must_use]
pub const fn unpacked(word: u64) -> (usize, u64) {
    ((word >> VALUE_BITS) as usize, Event { at: 0, word }.address())
}

/// The first 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Version of the format.
    pub protocol: u32,
    /// Version of QEMU's plugin interface that the plugin was built for.
    pub api: u32,
}

impl Header {
    /// As it is written: the magic, then both numbers.
    #[must_use]
    pub fn to_bytes(self) -> [u8; SIZE] {
        joined(MAGIC, (u64::from(self.api) << 32 | u64::from(self.protocol)).to_le_bytes())
    }

    /// As it was written; `None` if it is not the header of such a file.
    #[must_use]
    pub fn from_bytes(bytes: [u8; SIZE]) -> Option<Self> {
        let (magic, numbers) = halves(bytes);
        let numbers = u64::from_le_bytes(numbers);
        let protocol = u32::try_from(numbers & u64::from(u32::MAX)).ok()?;
        let api = u32::try_from(numbers >> 32).ok()?;
        (magic == MAGIC).then_some(Self { protocol, api })
    }
}

fn joined(first: [u8; 8], second: [u8; 8]) -> [u8; SIZE] {
    let mut bytes = [0; SIZE];
    let (a, b) = bytes.split_at_mut(8);
    a.copy_from_slice(&first);
    b.copy_from_slice(&second);
    bytes
}

fn halves(bytes: [u8; SIZE]) -> ([u8; 8], [u8; 8]) {
    let (mut first, mut second) = ([0; 8], [0; 8]);
    first.copy_from_slice(&bytes[..8]);
    second.copy_from_slice(&bytes[8..]);
    (first, second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_as_written() {
        let event = Event::new(258, Kind::Block, 0xffff_ffff_8100_0040);
        let bytes = event.to_bytes();
        assert_eq!(bytes, [2, 1, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0x81, 255, 255, 255, 8]);
        assert_eq!(Event::from_bytes(bytes), event);
        assert_eq!(event.kind(), Some(Kind::Block));
        assert_eq!(event.address(), 0xffff_ffff_8100_0040);
        assert_eq!(Event::new(0, Kind::Sample, 0x7fff_f7fc_1000).address(), 0x7fff_f7fc_1000);
        assert_eq!(Event::new(0, Kind::DumpBegin, 1 << 20).value(), 1 << 20);
    }

    #[test]
    fn bytes_go_in_sevens() {
        let bytes: [u8; 10] = [250, 251, 252, 253, 254, 255, 255, 255, 255, 1];
        let read: Vec<u8> = values(&bytes)
            .flat_map(|value| bytes_of(Event::new(0, Kind::Task, value).value()))
            .collect();
        assert_eq!((&read[..10], &read[10..]), (&bytes[..], &[0; 4][..]));
    }

    #[test]
    fn kinds_have_their_numbers() {
        for number in 1..=22 {
            assert_eq!(Kind::of(number).unwrap() as u8, number);
        }
        for number in [0, 23, 255] {
            assert_eq!(Kind::of(number), None);
            assert_eq!(Event { at: 0, word: u64::from(number) << 56 }.kind(), None);
        }
    }

    #[test]
    fn a_header_is_known_by_its_magic() {
        let header = Header { protocol: PROTOCOL, api: 4 };
        let mut bytes = header.to_bytes();
        assert_eq!(&bytes, b"punctual\x06\0\0\0\x04\0\0\0");
        assert_eq!(Header::from_bytes(bytes), Some(header));
        bytes[0] = b'P';
        assert_eq!(Header::from_bytes(bytes), None);
    }
}
