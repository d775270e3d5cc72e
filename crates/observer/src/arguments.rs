//! What the plugin is told, as `key=value` after the file in QEMU's `-plugin`.
//!
//! ```text
//! begin=0xADDRESS        executed when a measuring thread begins its cell
//! sample=0xADDRESS       executed for each of its samples
//! finish=0xADDRESS       executed when it ends its cell
//! dump=C.N[:C.N...]      write the ring when sample N of cell C is taken, both from 1; up to 256
//! keep=C.N-C.M[:...]     from sample N of cell C, 0 for its start, up to sample M nothing that the ring
//!                        holds or takes is written over: what it has no room for is written; up to 256
//! image=0xADDRESS        the kernel's own address of its first byte (aarch64), which runs elsewhere
//!                        before it is mapped there
//! entries=0xA[:0xA...]   where interrupts and exceptions arrive; up to 1024. Without them interrupts
//!                        are not followed on aarch64, where that needs QEMU 10
//! syscalls=0xA[:0xA...]  where system calls arrive, with interrupts off (x86_64); up to 1024
//! stream=0|1             write all but blocks as they happen, from the first Begin on; without it
//!                        only Begin, Sample, End
//! clocks=0xA[:0xA...]    functions that read the clock on behalf of user space; up to 1024
//! preempt=0xADDRESS      the count of why threads may not be switched, in the variables of a CPU
//!                        (x86_64), or bytes from the start of a thread (aarch64, QEMU 10); without
//!                        it nothing is Held
//! counts=0xA[:0xA...]    instructions that add to it by an address in a register; up to 1024
//! preemptible=0|1        whether the kernel can switch threads wherever that count is 0; 1
//! points=0xA[:0xA...]    functions that switch threads; up to 1024
//! offers=0xA[:0xA...]    functions that do if the count is 0 and interrupts are on; up to 1024
//! wakes=0xA[:0xA...]     functions that wake the thread that waits for a timer; up to 1024
//! looks=0xA[:0xA...]     instructions by which code looks whether it is to give way; up to 1024
//! passing=0xA-0xB[:...]  code on behalf of its caller, each without its end; up to 512
//! cover=0xADDRESS        write the blocks of the kernel that each cell executed, of those in the
//!                        2 GiB from this address on
//! milestones=0xA[:...]   functions that are passed between a release and the start of the work: from
//!                        the first Begin on, write blocks that begin there, the first block of user
//!                        space after such, and what Interrupt, Idle, Resume and Clock are for. No
//!                        other block is kept, and what turns interrupts off is not followed, so it
//!                        goes with none of the others that write; up to 1024
//! longest=N              write what was executed in and before each stretch that is among the N
//!                        longest of its cell so far; 0 to 64; 0
//! switch=0xADDRESS       instruction that loads the stack pointer of the thread that is switched to
//! task=0xA:0xB:0xC:0xD   where in its task_struct that stack pointer, pid, prio and comm are
//! memory=FILE            the guest's memory; with both above, threads are named
//! ring=N                 events that the ring holds: a power of two from 16 to 2^26; 2^20
//! output=N               file descriptor to write to, up to 1023; 1. QEMU needs 1 itself if it
//!                        is told what to do there (`-qmp stdio`)
//! ```
//!
//! A key that comes again adds to its list, or replaces its value. The instructions at `begin`,
//! `sample` and `finish` should not fault: one that does is executed again, and counts again.

use crate::tasks::Fields;

/// Addresses in each of the lists.
pub const ADDRESSES_MAX: usize = 1024;

/// Samples for which the ring can be written.
pub const DUMPS_MAX: usize = 256;

/// Starts and ends of courses that are kept.
pub const KEPT_MAX: usize = 2 * DUMPS_MAX;

/// Stretches of each kind that can be written because they are long.
pub const LONGEST_MAX: usize = 64;

/// Events that the ring holds unless told otherwise: some 5 million instructions of a kernel.
pub const RING_DEFAULT: u64 = 1 << 20;

/// Bytes of a file's name.
pub const PATH_MAX: usize = 64;

/// The largest ring, 1 GiB.
const RING_MAX: u64 = 1 << 26;

/// Why an argument is refused.
pub type Refusal = &'static str;

/// Numbers in order, without an allocation.
#[derive(Debug, Clone)]
pub struct List<const N: usize> {
    items: [u64; N],
    len: usize,
}

impl<const N: usize> List<N> {
    /// Nothing.
    pub const EMPTY: Self = Self { items: [0; N], len: 0 };

    /// All of them, in ascending order.
    #[must_use]
    pub fn as_slice(&self) -> &[u64] {
        self.items.get(..self.len).unwrap_or_default()
    }

    /// Whether it is one of them.
    #[must_use]
    pub fn contains(&self, item: u64) -> bool {
        self.as_slice().binary_search(&item).is_ok()
    }

    /// Whether it lies between a start and its end, if these are in the list in turn.
    #[must_use]
    pub fn is_inside(&self, item: u64) -> bool {
        self.as_slice().partition_point(|edge| *edge <= item) % 2 == 1
    }

    /// A start and its end, which are told from those of others by their places.
    fn insert_range(&mut self, start: u64, end: u64) -> Result<(), Refusal> {
        let touches = self.as_slice().iter().any(|edge| (start..=end).contains(edge));
        if start >= end || touches || self.is_inside(start) {
            return Err("must not touch or overlap another range");
        }
        self.insert(start)?;
        self.insert(end)
    }

    fn insert(&mut self, item: u64) -> Result<(), Refusal> {
        let Err(place) = self.as_slice().binary_search(&item) else { return Ok(()) };
        let Some(moved) = self.items.get_mut(place..=self.len) else { return Err("too many") };
        moved.iter_mut().fold(item, |item, place| core::mem::replace(place, item));
        self.len += 1;
        Ok(())
    }
}

/// All arguments. Zero bytes if nothing was said, so that it costs the object no room.
#[derive(Debug)]
pub struct Arguments {
    /// Address of the instruction with which a measuring thread begins its cell.
    pub begin: Option<u64>,
    /// Address of the instruction with which it takes a sample.
    pub sample: Option<u64>,
    /// Address of the instruction with which it ends its cell.
    pub finish: Option<u64>,
    /// Samples at which the ring is written, as [`dump`] makes them.
    pub dumps: List<DUMPS_MAX>,
    /// Starts and ends, in turn, of courses of which nothing is lost.
    pub kept: List<KEPT_MAX>,
    /// Where the kernel begins.
    pub image: Option<u64>,
    /// Where interrupts and exceptions arrive.
    pub entries: List<ADDRESSES_MAX>,
    /// Where system calls arrive.
    pub syscalls: List<ADDRESSES_MAX>,
    /// Functions that read the clock for user space.
    pub clocks: List<ADDRESSES_MAX>,
    /// Whether all events but blocks are written as they happen.
    pub is_streamed: bool,
    /// Where the CPU, or each thread, counts why it may not switch threads.
    pub preempt: Option<u64>,
    /// Instructions that add to it, if their address does not say so.
    pub counts: List<ADDRESSES_MAX>,
    /// Whether it can only switch threads where the kernel says so.
    pub is_cooperative: bool,
    /// Where threads are switched.
    pub points: List<ADDRESSES_MAX>,
    /// Where they are if nothing forbids it.
    pub offers: List<ADDRESSES_MAX>,
    /// Where handlers of timers wake threads.
    pub wakes: List<ADDRESSES_MAX>,
    /// Where code looks whether it is to give way.
    pub looks: List<ADDRESSES_MAX>,
    /// Starts and ends, in turn, of code on behalf of its caller.
    pub passing: List<ADDRESSES_MAX>,
    /// From where on the blocks of the kernel are written that a cell executed.
    pub cover: Option<u64>,
    /// Functions that are written whenever they are entered.
    pub milestones: List<ADDRESSES_MAX>,
    /// How many of the longest stretches are written.
    pub longest: u8,
    /// Where threads are switched to.
    pub switch: Option<u64>,
    /// What is where in a thread.
    pub task: Option<Fields>,
    /// The file that is the guest's memory, ended by a zero.
    pub memory: Option<[u8; PATH_MAX]>,
    ring: Option<u64>,
    output: Option<u16>,
}

/// A sample of a cell, as in [`Arguments::dumps`].
#[must_use]
pub const fn dump(cell: u32, sample: u32) -> u64 {
    (cell as u64) << 32 | sample as u64
}

impl Arguments {
    /// Nothing was said.
    pub const NONE: Self = Self {
        begin: None,
        sample: None,
        finish: None,
        dumps: List::EMPTY,
        kept: List::EMPTY,
        image: None,
        entries: List::EMPTY,
        syscalls: List::EMPTY,
        clocks: List::EMPTY,
        is_streamed: false,
        preempt: None,
        counts: List::EMPTY,
        is_cooperative: false,
        points: List::EMPTY,
        offers: List::EMPTY,
        wakes: List::EMPTY,
        looks: List::EMPTY,
        passing: List::EMPTY,
        cover: None,
        milestones: List::EMPTY,
        longest: 0,
        switch: None,
        task: None,
        memory: None,
        ring: None,
        output: None,
    };

    /// Reads one argument, `key=value`.
    ///
    /// # Errors
    /// There is no such key, or its value is wrong.
    pub fn read(&mut self, argument: &[u8]) -> Result<(), Refusal> {
        let (key, value) = split(argument, b'=').ok_or("is not key=value")?;
        match key {
            b"begin" => self.begin = Some(address(value)?),
            b"sample" => self.sample = Some(address(value)?),
            b"finish" => self.finish = Some(address(value)?),
            b"dump" => each(value, |item| self.dumps.insert(cell_and_sample(item, 1)?))?,
            b"keep" => each(value, |item| self.keep(item))?,
            b"image" => self.image = Some(address(value)?),
            b"entries" => each(value, |item| self.entries.insert(address(item)?))?,
            b"syscalls" => each(value, |item| self.syscalls.insert(address(item)?))?,
            b"clocks" => each(value, |item| self.clocks.insert(address(item)?))?,
            b"stream" => self.is_streamed = yes(value)?,
            b"preempt" => self.preempt = Some(address(value)?),
            b"counts" => each(value, |item| self.counts.insert(address(item)?))?,
            b"preemptible" => self.is_cooperative = !yes(value)?,
            b"points" => each(value, |item| self.points.insert(address(item)?))?,
            b"offers" => each(value, |item| self.offers.insert(address(item)?))?,
            b"wakes" => each(value, |item| self.wakes.insert(address(item)?))?,
            b"looks" => each(value, |item| self.looks.insert(address(item)?))?,
            b"milestones" => each(value, |item| self.milestones.insert(address(item)?))?,
            b"passing" => each(value, |item| self.pass(item))?,
            b"switch" => self.switch = Some(address(value)?),
            b"task" => self.task = Some(fields(value)?),
            b"memory" => {
                if !(1..PATH_MAX).contains(&value.len()) {
                    return Err("must be a path of 1 to 63 bytes");
                }
                let mut path = [0; PATH_MAX];
                path.iter_mut().zip(value).for_each(|(to, from)| *to = *from);
                self.memory = Some(path);
            }
            b"cover" => self.cover = Some(address(value)?),
            b"longest" => {
                let count = number(value, 10).filter(|n| *n <= LONGEST_MAX as u64);
                let count = count.and_then(|n| u8::try_from(n).ok());
                self.longest = count.ok_or("must be a number from 0 to 64")?;
            }
            b"ring" => {
                let events = number(value, 10).filter(|n| n.is_power_of_two());
                let events = events.filter(|n| (16..=RING_MAX).contains(n));
                self.ring = Some(events.ok_or("must be a power of two from 16 to 67108864")?);
            }
            b"output" => {
                let file = number(value, 10).filter(|n| (1..1024).contains(n));
                let file = file.and_then(|n| u16::try_from(n).ok());
                self.output = Some(file.ok_or("must be a file descriptor from 1 to 1023")?);
            }
            _ => return Err("is unknown"),
        }
        Ok(())
    }

    fn pass(&mut self, range: &[u8]) -> Result<(), Refusal> {
        let (start, end) = split(range, b'-').ok_or("must be FROM-TO")?;
        self.passing.insert_range(address(start)?, address(end)?)
    }

    fn keep(&mut self, range: &[u8]) -> Result<(), Refusal> {
        let (start, end) = split(range, b'-').ok_or("must be FROM-TO")?;
        self.kept.insert_range(cell_and_sample(start, 0)?, cell_and_sample(end, 1)?)
    }

    /// Events that the ring holds, a power of two.
    #[must_use]
    pub fn ring(&self) -> u64 {
        self.ring.unwrap_or(RING_DEFAULT)
    }

    /// File descriptor to write to.
    #[must_use]
    pub fn output(&self) -> u16 {
        self.output.unwrap_or(1)
    }
}

/// The key of an argument, for messages.
#[must_use]
pub fn key(argument: &[u8]) -> &[u8] {
    split(argument, b'=').map_or(argument, |(key, _)| key)
}

fn split(bytes: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let place = bytes.iter().position(|byte| *byte == separator)?;
    let (before, rest) = bytes.split_at_checked(place)?;
    Some((before, rest.get(1..)?))
}

fn each(list: &[u8], mut add: impl FnMut(&[u8]) -> Result<(), Refusal>) -> Result<(), Refusal> {
    list.split(|byte| *byte == b':').try_for_each(&mut add)
}

fn yes(value: &[u8]) -> Result<bool, Refusal> {
    match value {
        b"0" => Ok(false),
        b"1" => Ok(true),
        _ => Err("must be 0 or 1"),
    }
}

fn address(bytes: &[u8]) -> Result<u64, Refusal> {
    let digits = bytes.strip_prefix(b"0x");
    digits.and_then(|digits| number(digits, 16)).ok_or("must be an address: 0x, then digits")
}

fn fields(list: &[u8]) -> Result<Fields, Refusal> {
    let mut items = list.split(|byte| *byte == b':').map(address);
    let mut next = || items.next().unwrap_or(Err("must be four offsets"));
    let fields = Fields { stack: next()?, pid: next()?, prio: next()?, comm: next()? };
    items.next().map_or(Ok(fields), |_| Err("must be four offsets"))
}

fn cell_and_sample(bytes: &[u8], first: u32) -> Result<u64, Refusal> {
    let from = |first, bytes| u32::try_from(number(bytes, 10)?).ok().filter(|n| *n >= first);
    let both = split(bytes, b'.');
    both.and_then(|(cell, sample)| Some(dump(from(1, cell)?, from(first, sample)?)))
        .ok_or("must be CELL.SAMPLE, both from 1")
}

fn number(digits: &[u8], radix: u8) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, digit| {
        let digit = char::from(*digit).to_digit(u32::from(radix))?;
        number.checked_mul(u64::from(radix))?.checked_add(u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str]) -> Result<Arguments, Refusal> {
        let mut all = Arguments::NONE;
        arguments.iter().try_for_each(|argument| all.read(argument.as_bytes()))?;
        Ok(all)
    }

    #[test]
    fn all_arguments_are_read() {
        let all = read(&[
            "begin=0x401000",
            "sample=0x40AbCd",
            "finish=0x40beef",
            "dump=2.8:1.57:2.8",
            "keep=2.0-2.8:1.9-1.57",
            "entries=0xffffffff81e00010:0xffffffff81c00000",
            "entries=0xffffffff81d00000",
            "syscalls=0xffffffff81e00080",
            "clocks=0x70",
            "image=0xffff800008000000",
            "stream=1",
            "preempt=0x1fb40",
            "counts=0x77",
            "preemptible=0",
            "points=0x10:0x20",
            "offers=0x30",
            "wakes=0x40",
            "looks=0x31",
            "passing=0x100-0x200:0x20-0x30",
            "cover=0xffffffff80000000",
            "milestones=0x60:0x50",
            "longest=5",
            "switch=0x99",
            "task=0x1a0:0x9:0x8:0xb0",
            "memory=/proc/1/fd/3",
            "ring=4096",
            "output=7",
        ])
        .unwrap();
        assert_eq!((all.begin, all.sample), (Some(0x40_1000), Some(0x40_abcd)));
        assert_eq!(all.finish, Some(0x40_beef));
        assert_eq!(all.dumps.as_slice(), [dump(1, 57), dump(2, 8)]);
        assert_eq!(all.kept.as_slice(), [dump(1, 9), dump(1, 57), dump(2, 0), dump(2, 8)]);
        let is_kept = [(1, 8), (1, 9), (1, 56), (1, 57), (2, 0), (2, 8)]
            .map(|(cell, sample)| all.kept.is_inside(dump(cell, sample)));
        assert_eq!(is_kept, [false, true, true, false, true, false]);
        assert_eq!(
            all.entries.as_slice(),
            [0xffff_ffff_81c0_0000, 0xffff_ffff_81d0_0000, 0xffff_ffff_81e0_0010]
        );
        assert!(all.entries.contains(0xffff_ffff_81d0_0000));
        assert!(!all.entries.contains(0xffff_ffff_81d0_0001) && !all.entries.contains(0));
        assert!(all.syscalls.contains(0xffff_ffff_81e0_0080));
        assert!(all.clocks.contains(0x70) && all.is_streamed);
        assert_eq!(all.image, Some(0xffff_8000_0800_0000));
        assert_eq!(all.cover, Some(0xffff_ffff_8000_0000));
        assert_eq!((all.ring(), all.output()), (4096, 7));
        assert_eq!((all.preempt, all.is_cooperative, all.longest), (Some(0x1fb40), true, 5));
        assert!(all.counts.contains(0x77) && all.looks.contains(0x31));
        assert_eq!(all.switch, Some(0x99));
        assert_eq!(all.task, Some(Fields { stack: 0x1a0, pid: 9, prio: 8, comm: 0xb0 }));
        assert_eq!(&all.memory.unwrap()[..16], b"/proc/1/fd/3\0\0\0\0");
        assert!(all.points.contains(0x20) && all.offers.contains(0x30));
        assert!(all.wakes.contains(0x40) && !all.wakes.contains(0x30));
        assert_eq!(all.milestones.as_slice(), [0x50, 0x60]);
        let inside = [0x1f, 0x20, 0x2f, 0x30, 0xff, 0x100, 0x1ff, 0x200];
        let inside = inside.map(|address| all.passing.is_inside(address));
        assert_eq!(inside, [false, true, true, false, false, true, true, false]);
        let none = read(&["stream=0"]).unwrap();
        assert!(!none.is_streamed && none.cover.is_none() && none.begin.is_none());
        assert_eq!((none.ring(), none.output()), (RING_DEFAULT, 1));
    }

    #[test]
    fn whatever_is_wrong_is_refused() {
        let long = format!("memory={}", "x".repeat(PATH_MAX));
        assert!(read(&[&long]).is_err() && read(&[&long[1..]]).is_err());
        assert!(read(&[&long[..long.len() - 1]]).is_ok());
        let wrong = [
            "",
            "begin",
            "begin=",
            "begin=401000",
            "begin=0x",
            "begin=0x+1",
            "begin=0x1ffffffffffffffff",
            "begin=0x1:0x2",
            "sample=x",
            "preemptible=2",
            "longest=65",
            "passing=0x1",
            "passing=0x2-0x1",
            "passing=0x1-0x9:0x3-0x4",
            "passing=0x3-0x4:0x1-0x9",
            "passing=0x1-0x3:0x3-0x4",
            "dump=",
            "dump=1",
            "dump=1.",
            "dump=.1",
            "dump=0.1",
            "dump=1.0",
            "dump=1.2:",
            "dump=1.2.3",
            "dump=4294967296.1",
            "keep=1.0",
            "keep=0.1-1.1",
            "keep=1.1-1.0",
            "keep=1.1-1.1",
            "keep=1.0-1.4:1.4-1.5",
            "entries=",
            "entries=0x1::0x2",
            "syscalls=1",
            "stream=on",
            "cover=",
            "task=0x1:0x2:0x3",
            "task=0x1:0x2:0x3:0x4:0x5",
            "memory=",
            "ring=0",
            "ring=1000",
            "ring=8",
            "ring=0x10",
            "ring=134217728",
            "rings=16",
            "output=0",
            "output=1024",
            "Begin=0x1",
        ];
        for argument in wrong {
            assert!(read(&[argument]).is_err(), "{argument}");
        }
    }

    #[test]
    fn lists_are_bounded() {
        let mut all = Arguments::NONE;
        for address in (1..=ADDRESSES_MAX).rev() {
            all.read(format!("entries={address:#x}").as_bytes()).unwrap();
        }
        let expected: Vec<u64> = (1..=ADDRESSES_MAX as u64).collect();
        assert_eq!(all.entries.as_slice(), expected);
        all.read(b"entries=0x5").unwrap();
        assert_eq!(all.read(b"entries=0xffff"), Err("too many"));
        assert_eq!(all.entries.as_slice(), expected);
    }

    #[test]
    fn messages_name_the_key() {
        assert_eq!(key(b"entries=0x1:0x2"), b"entries");
        assert_eq!(key(b"entries"), b"entries");
    }
}
