//! What the plugin knows of the guest's course, and which events it keeps and writes.

use crate::arguments::{List, dump};
use crate::callers::Callers;
use crate::coverage::Coverage;
use crate::event::{Event, Header, Kind, values};
use crate::longest::Longest;
use crate::output::{Output, Sink};
use crate::ring::Ring;
use crate::rules::Rules;
use crate::tasks;

/// Entries of the kernel that follow each other within so many instructions are one arrival: the
/// stub of a vector (`endbr64; push; jmp`) leads to a common entry, which may be listed as well.
const SAME_ARRIVAL: u64 = 4;

/// Events that are written from before a long stretch: what called the code that began it.
const BEFORE: usize = 1 << 16;

/// How far the caller of code that only takes or releases a lock is looked for.
const CALLER_WITHIN: usize = 64;

/// Whether the CPU takes interrupts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Interrupts {
    /// Not known yet: a guest may be restored in the middle of its course.
    Unknown,
    On,
    /// With the number of exceptions on the stack that arrived while they were off. The return
    /// from one of those leaves them off.
    Off(u32),
}

/// The course of a guest with one CPU.
#[derive(Debug)]
pub struct Observer<'a, S> {
    ring: Ring<'a>,
    output: Output<'a, S>,
    coverage: Coverage<'a>,
    rules: Rules,
    interrupts: Interrupts,
    /// When they were turned off last.
    off_since: u64,
    /// The kernel's count of why it may not switch threads.
    preempt_count: i64,
    /// Whether the kernel has been asked to read the clock, and has not yet.
    reads_clock: bool,
    /// What was last passed to the function that enables bottom halves.
    bottom_halves: i64,
    is_in_kernel: bool,
    /// Whether a milestone was passed since user space.
    has_passed: bool,
    /// Since when a woken thread cannot run.
    held_since: Option<u64>,
    /// How often something was followed wrongly: the count was not 0 in user space, say.
    strays: u64,
    longest_off: Longest,
    longest_held: Longest,
    callers: Callers,
    /// When the last interrupt or exception arrived.
    arrived: Option<u64>,
    is_halted: bool,
    cell: u32,
    sample: u32,
}

impl<'a, S: Sink> Observer<'a, S> {
    /// A guest at its start.
    #[must_use]
    pub const fn new(
        ring: Ring<'a>,
        output: Output<'a, S>,
        coverage: Coverage<'a>,
        rules: Rules,
    ) -> Self {
        let longest = rules.longest;
        Self {
            ring,
            output,
            coverage,
            rules,
            interrupts: Interrupts::Unknown,
            off_since: 0,
            preempt_count: 0,
            reads_clock: false,
            bottom_halves: 0,
            is_in_kernel: true,
            has_passed: false,
            held_since: None,
            strays: 0,
            longest_off: Longest::new(longest),
            longest_held: Longest::new(longest),
            callers: Callers::NONE,
            arrived: None,
            is_halted: false,
            cell: 0,
            sample: 0,
        }
    }

    /// Writes the header, for a plugin interface of this version.
    pub fn introduce(&mut self, header: Header) {
        self.output.put(header.to_bytes());
        self.output.flush();
    }

    /// A block of the kernel starts. The word is that of its event: it is the same each time.
    #[inline(always)]
    pub fn block(&mut self, at: u64, word: u64) {
        let event = Event { at, word };
        self.coverage.note(event.address());
        self.make_room(at);
        self.ring.push_block(event);
    }

    /// A block of user space starts.
    #[inline(always)]
    pub fn user_block(&mut self, at: u64, word: u64) {
        self.make_room(at);
        self.ring.push_block(Event { at, word });
        if self.is_in_kernel {
            self.reached_user_space(at, Event { at, word }.address());
        }
    }

    /// A block starts that is a milestone.
    pub fn milestone(&mut self, at: u64, word: u64) {
        self.has_passed = true;
        // On aarch64 no entry says so.
        self.is_in_kernel = true;
        self.note(Event { at, word });
    }

    /// A block of user space starts, and only milestones are of interest.
    #[inline(always)]
    pub fn user_milestone(&mut self, at: u64, word: u64) {
        if core::mem::take(&mut self.is_in_kernel) && core::mem::take(&mut self.has_passed) {
            self.note(Event { at, word });
        }
    }

    #[cold]
    fn reached_user_space(&mut self, at: u64, address: u64) {
        self.is_in_kernel = false;
        if self.preempt_count != 0 {
            self.strays += u64::from(self.cell > 0);
            self.preempt_count = 0;
        }
        self.turn(at, address);
    }

    /// A measuring thread begins its cell.
    pub fn begin(&mut self, at: u64, address: u64) {
        self.cell = self.cell.saturating_add(1);
        self.sample = 0;
        self.longest_off.clear();
        self.longest_held.clear();
        // Of the warm-up, and of what came before.
        self.coverage.drain(|_| {});
        self.keep_and_write(Event::new(at, Kind::Begin, address));
        self.keep_all_or_none(at);
    }

    /// A sample is taken. The ring is written first if it is one of these.
    pub fn sample<const N: usize>(&mut self, at: u64, address: u64, dumps: &List<N>) {
        self.sample = self.sample.saturating_add(1);
        if dumps.contains(dump(self.cell, self.sample)) {
            self.dump(at, 0);
        }
        self.keep_and_write(Event::new(at, Kind::Sample, address));
        self.keep_all_or_none(at);
    }

    /// A measuring thread ends its cell.
    pub fn finish(&mut self, at: u64, address: u64) {
        let output = &mut self.output;
        self.coverage.drain(|block| output.put(Event::new(at, Kind::Executed, block).to_bytes()));
        self.keep_and_write(Event::new(at, Kind::Finish, address));
    }

    /// User space reads the clock.
    pub fn clock(&mut self, at: u64, address: u64) {
        self.keep(Event::new(at, Kind::Clock, address));
    }

    /// A function is entered that reads the clock on behalf of user space.
    pub fn asks_for_clock(&mut self) {
        self.reads_clock = true;
    }

    /// The kernel reads the clock.
    pub fn kernel_clock(&mut self, at: u64, address: u64) {
        if core::mem::take(&mut self.reads_clock) {
            self.clock(at, address);
        }
    }

    /// The CPU halts until an interrupt. One that comes is served at once.
    pub fn halt(&mut self, at: u64, address: u64) {
        self.is_halted = true;
        self.turn(at, address);
        self.keep(Event::new(at, Kind::Idle, address));
    }

    /// A block starts to which a halted CPU may come.
    pub fn resume(&mut self, at: u64, address: u64) {
        if self.is_halted {
            self.is_halted = false;
            self.keep(Event::new(at, Kind::Resume, address));
            self.turn(at, address);
        }
    }

    /// An exception arrives because an instruction has not reached memory; it will be tried again.
    pub fn fault(&mut self, at: u64, address: u64) {
        self.keep(Event::new(at, Kind::Fault, address));
    }

    /// An interrupt or an exception arrives.
    pub fn interrupt(&mut self, at: u64, address: u64) {
        self.resume(at, address);
        if self.arrived.replace(at).is_some_and(|last| at.wrapping_sub(last) < SAME_ARRIVAL) {
            return;
        }
        self.is_in_kernel = true;
        let interrupted = self.blocks().next().map(|block| block.address());
        let interrupted = interrupted.filter(|address| self.rules.passing.is_inside(*address));
        self.callers.interrupt(interrupted.map(|address| self.in_whose_name(address)));
        self.keep(Event::new(at, Kind::Interrupt, address));
        match self.interrupts {
            Interrupts::Off(depth) => self.interrupts = Interrupts::Off(depth.saturating_add(1)),
            _ => self.interrupts_off(at, address),
        }
    }

    /// A system call arrives.
    pub fn system_call(&mut self, at: u64, address: u64) {
        self.is_in_kernel = true;
        self.interrupts_off(at, address);
    }

    /// A timer's handler begins to wake a thread.
    pub fn wake(&mut self, at: u64, address: u64) {
        self.keep(Event::new(at, Kind::Wake, address));
    }

    /// An instruction turns interrupts off, or the CPU has done so.
    pub fn interrupts_off(&mut self, at: u64, address: u64) {
        if !matches!(self.interrupts, Interrupts::Off(_)) {
            self.interrupts = Interrupts::Off(0);
            self.off_since = at;
            let by = self.in_whose_name(address);
            self.keep(Event::new(at, Kind::InterruptsOff, by));
            self.turn(at, address);
        }
    }

    /// An instruction turns interrupts on.
    pub fn interrupts_on(&mut self, at: u64, address: u64) {
        if self.interrupts != Interrupts::On {
            let was_off = matches!(self.interrupts, Interrupts::Off(_));
            self.interrupts = Interrupts::On;
            if was_off && self.longest_off.takes(at.saturating_sub(self.off_since)) {
                self.dump_long(at, self.off_since);
            }
            let by = self.in_whose_name(address);
            self.keep(Event::new(at, Kind::InterruptsOn, by));
            self.turn(at, address);
        }
    }

    /// The kernel returns from an interrupt or an exception.
    pub fn interrupt_return(&mut self, at: u64, address: u64) {
        self.callers.interrupt_return(at);
        match self.interrupts {
            Interrupts::Off(depth @ 1..) => self.interrupts = Interrupts::Off(depth - 1),
            _ => self.interrupts_on(at, address),
        }
    }

    /// The same, and it is known whether interrupts are off then.
    pub fn exception_return(&mut self, at: u64, address: u64, is_off: bool) {
        self.callers.interrupt_return(at);
        self.interrupts_are(at, address, is_off);
    }

    /// An instruction turns interrupts off or on.
    pub fn interrupts_are(&mut self, at: u64, address: u64, off: bool) {
        if off {
            self.interrupts_off(at, address);
        } else {
            self.interrupts_on(at, address);
        }
    }

    /// Something is not known that decides what follows.
    pub fn lost(&mut self) {
        self.strays += 1;
    }

    /// The kernel's count of why it may not switch threads is this from here on. It is that of a
    /// thread, but the same in the one that is switched from and the one that is switched to
    /// (`finish_task_switch`, kernel/sched/core.c).
    pub fn preempt_count_is(&mut self, at: u64, address: u64, count: i64) {
        self.preempt_count = count;
        self.turn(at, address);
    }

    /// The kernel adds to its count of why it may not switch threads.
    pub fn preempt_count_add(&mut self, at: u64, address: u64, number: i64) {
        self.preempt_count = self.preempt_count.wrapping_add(number);
        self.turn(at, address);
    }

    /// A function is called that enables bottom halves, with what it takes from the count.
    pub fn enables_bottom_halves(&mut self, number: i64) {
        self.bottom_halves = number;
    }

    /// It takes all of that but one; the last one after the bottom halves have run
    /// (`__local_bh_enable_ip`, kernel/softirq.c).
    pub fn bottom_halves_enabled(&mut self, at: u64, address: u64) {
        self.preempt_count_add(at, address, 1 - self.bottom_halves);
    }

    /// The function is entered that switches threads. Whoever was woken before gets its turn.
    pub fn scheduling_point(&mut self, at: u64, address: u64) {
        self.interrupt_held(at, address, Kind::Free);
    }

    /// A function is entered that switches threads if nothing forbids it.
    pub fn scheduling_offer(&mut self, at: u64, address: u64) {
        if self.preempt_count == 0 && !matches!(self.interrupts, Interrupts::Off(_)) {
            self.scheduling_point(at, address);
        }
    }

    /// Code looks whether it is to give way, and will soon if it is, whatever it holds. With
    /// interrupts off nobody could have told it to meanwhile.
    pub fn look(&mut self, at: u64, address: u64) {
        if !matches!(self.interrupts, Interrupts::Off(_)) {
            self.interrupt_held(at, address, Kind::Looked);
        }
    }

    /// The CPU takes the stack of another thread, of which this is known.
    pub fn switch(&mut self, at: u64, place: u64, task: Option<[u8; tasks::SIZE]>) {
        self.keep(Event::new(at, Kind::Switch, place));
        for value in task.iter().flat_map(|task| values(task)) {
            self.keep(Event::new(at, Kind::Task, value));
        }
    }

    /// QEMU ends.
    pub fn end(&mut self, at: u64) {
        self.write(Event::new(at, Kind::End, self.strays));
        self.output.flush();
    }

    /// Something has changed that decides whether a woken thread could run.
    fn turn(&mut self, at: u64, address: u64) {
        let is_off = matches!(self.interrupts, Interrupts::Off(_));
        let is_forbidden =
            is_off || self.preempt_count > 0 || self.rules.is_cooperative && self.is_in_kernel;
        // What is released before a CPU halts with interrupts off keeps it from halting, and waits on.
        let is_halted = self.is_halted && !is_off;
        let is_held = self.rules.has_preempt_count && !is_halted && is_forbidden;
        if is_held != self.held_since.is_some() {
            if is_held {
                self.begin_held(at, address);
            } else {
                self.end_held(at, address, Kind::Free);
            }
        }
    }

    /// A thread that was woken before gets its turn, one that is woken later does not.
    fn interrupt_held(&mut self, at: u64, address: u64, how: Kind) {
        if self.held_since.is_some() {
            self.end_held(at, address, how);
            self.begin_held(at, address);
        }
    }

    fn begin_held(&mut self, at: u64, address: u64) {
        self.held_since = Some(at);
        let by = self.in_whose_name(address);
        self.keep(Event::new(at, Kind::Held, by));
    }

    fn end_held(&mut self, at: u64, address: u64, how: Kind) {
        let Some(since) = self.held_since.take() else { return };
        if self.longest_held.takes(at.saturating_sub(since)) {
            self.dump_long(at, since);
        }
        let by = self.in_whose_name(address);
        self.keep(Event::new(at, how, by));
    }

    /// The address itself, or the block that called the code at it if that is passed over.
    fn in_whose_name(&self, address: u64) -> u64 {
        if !self.rules.passing.is_inside(address) {
            return address;
        }
        let mut blocks = self.blocks();
        let found = blocks.find(|block| !self.rules.passing.is_inside(block.address()));
        // An interrupt between them ends with a block that has called nothing.
        let caller =
            |block: Event| self.callers.resumed_since(block.at).unwrap_or_else(|| block.address());
        found.map_or(address, caller)
    }

    /// The last blocks, newest first.
    fn blocks(&self) -> impl Iterator<Item = Event> {
        let newest = self.ring.newest_first().take(CALLER_WITHIN);
        newest.filter(|event| event.kind() == Some(Kind::Block))
    }

    /// A stretch that began at `since` is one of the longest of its cell.
    fn dump_long(&mut self, at: u64, since: u64) {
        if self.cell > 0 {
            self.dump(at, since);
        }
    }

    /// Whether all is kept that comes until the next sample.
    fn keep_all_or_none(&mut self, at: u64) {
        if self.rules.kept.is_inside(dump(self.cell, self.sample)) {
            self.ring.keep();
        } else if self.ring.keep_no_more() {
            self.write(Event::new(at, Kind::Spilled, 0));
        }
    }

    #[inline(always)]
    fn make_room(&mut self, at: u64) {
        if self.ring.is_full() {
            self.spill(at);
        }
    }

    #[cold]
    fn spill(&mut self, at: u64) {
        let (older, newer) = self.ring.let_go();
        let events = (older.len() + newer.len()) as u64;
        self.output.put(Event::new(at, Kind::Spilled, events).to_bytes());
        for event in older.iter().chain(newer) {
            self.output.put(event.to_bytes());
        }
    }

    /// Writes the ring: what was executed since then and before, or, since 0, all that it holds.
    fn dump(&mut self, at: u64, since: u64) {
        let (older, newer) =
            if since == 0 { self.ring.kept() } else { self.ring.since(since, BEFORE) };
        let events = (older.len() + newer.len()) as u64;
        self.output.put(Event::new(at, Kind::DumpBegin, events).to_bytes());
        for event in older.iter().chain(newer) {
            self.output.put(event.to_bytes());
        }
        let overwritten = self.ring.overwritten() as u64;
        self.write(Event::new(at, Kind::DumpEnd, overwritten));
        self.output.flush();
    }

    fn keep(&mut self, event: Event) {
        self.make_room(event.at);
        self.ring.push(event);
        let is_on_the_way = || {
            let kind = event.kind();
            matches!(kind, Some(Kind::Interrupt | Kind::Idle | Kind::Resume | Kind::Clock))
        };
        if self.rules.is_streamed || self.rules.has_milestones && is_on_the_way() {
            self.note(event);
        }
    }

    /// Writes what belongs to a cell.
    fn note(&mut self, event: Event) {
        if self.cell > 0 {
            self.write(event);
        }
    }

    fn keep_and_write(&mut self, event: Event) {
        self.make_room(event.at);
        self.ring.push(event);
        self.write(event);
    }

    fn write(&mut self, event: Event) {
        self.output.put(event.to_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Arguments;
    use crate::event::{PROTOCOL, SIZE, word};
    use crate::output::tests::Memory;

    const ENTRY: u64 = 0xffff_ffff_81e0_0000;
    const KERNEL: u64 = 0xffff_ffff_8100_0000;
    const USER: u64 = 0x40_1000;

    /// Words of bits for blocks up to [`KERNEL`] and a page further.
    const COVERED: usize = 0x100_0000 / 64 + 64;

    /// What is written while a guest does this, as kinds, times and addresses.
    fn written(
        arguments: &[&str],
        course: impl FnOnce(&mut Observer<Memory>, &Arguments),
    ) -> Vec<(Kind, u64, u64)> {
        let mut all = Arguments::NONE;
        for argument in arguments {
            all.read(argument.as_bytes()).unwrap();
        }
        let mut slots = vec![Event { at: 0, word: 0 }; usize::try_from(all.ring()).unwrap()];
        let mut buffer = [[0; SIZE]; 4];
        let memory = Memory::new();
        let output = Output::new(memory.clone(), &mut buffer);
        let (mut words, mut index) = (vec![0; COVERED], vec![0; COVERED / 64 / 64 + 1]);
        let words = if all.cover.is_some() { &mut words[..] } else { &mut [] };
        let coverage = Coverage::new(all.cover.unwrap_or(0), words, &mut index);
        let mut guest = Observer::new(Ring::new(&mut slots), output, coverage, Rules::of(&all));
        course(&mut guest, &all);
        guest.end(99);
        let bytes = memory.bytes.borrow();
        let events = bytes.chunks_exact(SIZE).map(|b| Event::from_bytes(b.try_into().unwrap()));
        let mut events: Vec<_> = events.map(|e| (e.kind().unwrap(), e.at, e.address())).collect();
        assert_eq!(events.pop(), Some((Kind::End, 99, 0)));
        events
    }

    #[test]
    fn the_header_comes_first() {
        let memory = Memory::new();
        let mut buffer = [[0; SIZE]; 1];
        let output = Output::new(memory.clone(), &mut buffer);
        let mut guest = Observer::new(Ring::new(&mut []), output, Coverage::none(), Rules::NONE);
        let header = Header { protocol: PROTOCOL, api: 1 };
        guest.introduce(header);
        let bytes: [u8; SIZE] = memory.bytes.borrow()[..].try_into().unwrap();
        assert_eq!(Header::from_bytes(bytes), Some(header));
    }

    #[test]
    fn the_ring_is_written_before_the_sample_that_asks_for_it() {
        let events = written(&["dump=2.2", "ring=16"], |guest, all| {
            for cell in 0..2 {
                guest.begin(10 * cell, USER);
                for sample in 1..=3 {
                    guest.block(10 * cell + sample, word(Kind::Block, KERNEL));
                    guest.clock(10 * cell + sample, USER + 8);
                    guest.sample(10 * cell + sample, USER + 4, &all.dumps);
                }
            }
        });
        let dumped: Vec<_> = events.iter().filter(|e| e.0 == Kind::Block).map(|e| e.1).collect();
        assert_eq!(dumped, [1, 2, 3, 11, 12]);
        let kinds: Vec<_> = events.iter().map(|e| (e.0, e.1)).collect();
        let before = [
            (Kind::Begin, 0),
            (Kind::Sample, 1),
            (Kind::Sample, 2),
            (Kind::Sample, 3),
            (Kind::Begin, 10),
            (Kind::Sample, 11),
            (Kind::DumpBegin, 12),
            (Kind::Begin, 0),
        ];
        assert_eq!(kinds[..8], before);
        let after =
            [(Kind::Clock, 12), (Kind::DumpEnd, 12), (Kind::Sample, 12), (Kind::Sample, 13)];
        assert_eq!(kinds[kinds.len() - 4..], after);
        let begin = events.iter().position(|e| e.0 == Kind::DumpBegin).unwrap();
        let end = events.iter().position(|e| e.0 == Kind::DumpEnd).unwrap();
        assert_eq!(events[begin].2, (end - begin - 1) as u64);
    }

    #[test]
    fn only_milestones_and_what_ties_them_to_time_are_written() {
        let events = written(&["milestones=0x1", "ring=16"], |guest, all| {
            let block = |address| word(Kind::Block, address);
            guest.milestone(1, block(KERNEL));
            guest.user_milestone(2, block(USER));
            guest.begin(3, USER);
            guest.halt(4, KERNEL + 8);
            guest.interrupt(5, ENTRY);
            guest.milestone(5, block(ENTRY));
            guest.interrupt_return(6, ENTRY + 8);
            guest.user_milestone(7, block(USER));
            guest.user_milestone(8, block(USER + 4));
            // A system call that passes none.
            guest.system_call(9, KERNEL + 16);
            guest.user_milestone(10, block(USER + 8));
            guest.clock(11, USER + 12);
            guest.sample(12, USER + 16, &all.dumps);
        });
        let expected = [
            (Kind::Begin, 3, USER),
            (Kind::Idle, 4, KERNEL + 8),
            (Kind::Resume, 5, ENTRY),
            (Kind::Interrupt, 5, ENTRY),
            (Kind::Block, 5, ENTRY),
            (Kind::Block, 7, USER),
            (Kind::Clock, 11, USER + 12),
            (Kind::Sample, 12, USER + 16),
        ];
        assert_eq!(events, expected);
    }

    #[test]
    fn a_dump_says_how_many_events_the_ring_has_lost() {
        let events = written(&["dump=1.1", "ring=16"], |guest, all| {
            guest.begin(0, USER);
            (1..=20).for_each(|at| guest.clock(at, USER));
            guest.sample(21, USER, &all.dumps);
        });
        assert_eq!(events[1], (Kind::DumpBegin, 21, 16));
        assert_eq!(events[2], (Kind::Clock, 5, USER));
        assert_eq!(events[18], (Kind::DumpEnd, 21, 5));
    }

    #[test]
    fn what_a_sample_needs_is_written_before_it_is_lost() {
        let events = written(&["dump=1.2", "keep=1.1-1.2", "ring=16"], |guest, all| {
            guest.begin(0, USER);
            (1..=20).for_each(|at| guest.clock(at, USER));
            guest.sample(21, USER, &all.dumps);
            (22..=60).for_each(|at| guest.block(at, word(Kind::Block, KERNEL + at)));
            guest.sample(61, USER, &all.dumps);
            (62..=99).for_each(|at| guest.clock(at, USER));
            guest.sample(100, USER, &all.dumps);
        });
        let mut all = Vec::new();
        let mut rest = events.iter();
        while let Some((kind, _, count)) = rest.next() {
            if matches!(kind, Kind::Spilled | Kind::DumpBegin) {
                let count = usize::try_from(*count).unwrap();
                all.extend(rest.by_ref().take(count).map(|event| event.1));
            }
        }
        // Of what came before, what the ring still held.
        assert_eq!(all, (6..=60).collect::<Vec<_>>());
        let last: Vec<_> = events.iter().rev().take(3).rev().copied().collect();
        let expected =
            [(Kind::Sample, 61, USER), (Kind::Spilled, 61, 0), (Kind::Sample, 100, USER)];
        assert_eq!(last, expected);
    }

    fn streamed(course: impl FnOnce(&mut Observer<Memory>)) -> Vec<(Kind, u64)> {
        streamed_with(&["ring=16"], course)
    }

    /// Kinds and times, in a cell.
    fn streamed_with(
        arguments: &[&str],
        course: impl FnOnce(&mut Observer<Memory>),
    ) -> Vec<(Kind, u64)> {
        let arguments: Vec<&str> = arguments.iter().copied().chain(["stream=1"]).collect();
        let events = written(&arguments, |guest, _| {
            guest.begin(0, USER);
            course(guest);
        });
        assert_eq!(events[0], (Kind::Begin, 0, USER));
        events[1..].iter().map(|(kind, at, _)| (*kind, *at)).collect()
    }

    const FOLLOWED: [&str; 3] =
        ["ring=64", "preempt=0x10", "passing=0xffffffff81000500-0xffffffff81000600"];

    /// Its preemption: when a thread was held, and when it was free.
    fn held(more: &[&str], course: impl FnOnce(&mut Observer<Memory>)) -> Vec<(Kind, u64)> {
        let arguments: Vec<&str> = FOLLOWED.iter().chain(more).copied().collect();
        let mut events = streamed_with(&arguments, |guest| {
            guest.interrupts_on(1, KERNEL);
            guest.user_block(2, word(Kind::Block, USER));
            course(guest);
        });
        let is_of = |kind| matches!(kind, Kind::Held | Kind::Free | Kind::Looked);
        events.retain(|event| event.1 >= 10 && is_of(event.0));
        events
    }

    #[test]
    fn a_preemptible_kernel_holds_while_its_count_or_interrupts_say_so() {
        let events = held(&[], |guest| {
            guest.system_call(10, ENTRY);
            guest.interrupts_on(12, KERNEL);
            guest.preempt_count_add(20, KERNEL, 1);
            guest.interrupts_off(21, KERNEL);
            guest.preempt_count_add(22, KERNEL, 0x200);
            guest.interrupts_on(24, KERNEL);
            guest.preempt_count_add(25, KERNEL, -1);
            guest.enables_bottom_halves(0x200);
            guest.bottom_halves_enabled(26, KERNEL);
            guest.preempt_count_add(30, KERNEL, -1);
            guest.scheduling_offer(31, KERNEL);
            guest.interrupts_off(40, KERNEL);
            guest.look(41, KERNEL);
            guest.interrupts_on(42, KERNEL);
            guest.look(42, KERNEL);
            guest.user_block(43, word(Kind::Block, USER));
        });
        let (held, free) = (Kind::Held, Kind::Free);
        assert_eq!(
            events,
            [(held, 10), (free, 12), (held, 20), (free, 30), (held, 40), (free, 42)]
        );
    }

    #[test]
    fn a_cooperative_kernel_holds_until_it_says_otherwise() {
        let events = held(&["preemptible=0"], |guest| {
            guest.system_call(10, ENTRY);
            guest.interrupts_on(12, KERNEL);
            guest.preempt_count_add(20, KERNEL, 1);
            guest.scheduling_offer(21, KERNEL);
            guest.preempt_count_add(30, KERNEL, -1);
            guest.scheduling_offer(31, KERNEL);
            guest.look(40, KERNEL);
            guest.scheduling_point(50, KERNEL);
            guest.interrupt(60, ENTRY);
            guest.interrupt_return(65, KERNEL);
            guest.interrupts_off(69, KERNEL);
            guest.interrupts_on(70, KERNEL);
            guest.user_block(71, word(Kind::Block, USER));
            guest.scheduling_point(72, KERNEL);
        });
        let (held, free) = (Kind::Held, Kind::Free);
        let expected = [
            (held, 10),
            (free, 31),
            (held, 31),
            (Kind::Looked, 40),
            (held, 40),
            (free, 50),
            (held, 50),
            (free, 71),
        ];
        assert_eq!(events, expected);
    }

    #[test]
    fn an_idle_cpu_is_free() {
        let events = held(&[], |guest| {
            guest.interrupt(10, ENTRY);
            guest.preempt_count_add(11, KERNEL, 1);
            guest.interrupt_return(12, KERNEL);
            guest.halt(20, KERNEL);
            guest.interrupt(21, ENTRY);
            guest.scheduling_point(30, KERNEL);
            guest.preempt_count_add(40, KERNEL, -1);
            guest.interrupt_return(41, KERNEL);
        });
        let (held, free) = (Kind::Held, Kind::Free);
        let expected = [(held, 10), (free, 20), (held, 21), (free, 30), (held, 30), (free, 41)];
        assert_eq!(events, expected);
    }

    #[test]
    fn a_cpu_that_halts_with_interrupts_off_is_not_free() {
        let events = held(&[], |guest| {
            guest.interrupts_off(10, KERNEL);
            guest.halt(20, KERNEL);
            guest.resume(20, KERNEL + 4);
            guest.interrupts_on(30, KERNEL + 8);
        });
        assert_eq!(events, [(Kind::Held, 10), (Kind::Free, 30)]);
    }

    #[test]
    fn registers_say_what_a_return_leaves_and_a_store_what_the_count_is() {
        let events = held(&[], |guest| {
            guest.interrupt(10, ENTRY);
            guest.interrupts_are(12, KERNEL, false);
            guest.preempt_count_is(20, KERNEL, 1);
            guest.interrupts_are(21, KERNEL, true);
            guest.interrupt(22, ENTRY);
            guest.exception_return(24, KERNEL, true);
            guest.preempt_count_is(25, KERNEL, 0);
            guest.interrupts_are(30, KERNEL, false);
            guest.interrupt(40, ENTRY);
            guest.preempt_count_is(41, KERNEL, 0x1_0000);
            guest.preempt_count_is(42, KERNEL, 0);
            guest.exception_return(50, KERNEL, false);
        });
        let (held, free) = (Kind::Held, Kind::Free);
        let expected = [(held, 10), (free, 12), (held, 20), (free, 30), (held, 40), (free, 50)];
        assert_eq!(events, expected);
    }

    #[test]
    fn the_kernel_reads_the_clock_for_a_process_that_has_asked() {
        let events = streamed(|guest| {
            guest.kernel_clock(1, KERNEL);
            guest.asks_for_clock();
            guest.kernel_clock(3, KERNEL);
            guest.kernel_clock(4, KERNEL);
            guest.fault(5, ENTRY);
            guest.clock(6, USER);
        });
        assert_eq!(events, [(Kind::Clock, 3), (Kind::Fault, 5), (Kind::Clock, 6)]);
    }

    #[test]
    fn what_was_counted_wrong_is_told_and_forgotten_in_user_space() {
        let mut all = Vec::new();
        let mut slots = [Event { at: 0, word: 0 }; 16];
        let mut buffer = [[0; SIZE]; 1];
        let memory = Memory::new();
        let rules = Rules { is_streamed: true, has_preempt_count: true, ..Rules::NONE };
        let output = Output::new(memory.clone(), &mut buffer);
        let mut guest = Observer::new(Ring::new(&mut slots), output, Coverage::none(), rules);
        for (begins, at) in [(false, 10), (true, 20), (false, 30)] {
            if begins {
                guest.begin(at, USER);
            }
            guest.system_call(at + 1, ENTRY);
            guest.preempt_count_add(at + 2, KERNEL, 1);
            guest.interrupts_on(at + 3, KERNEL);
            guest.user_block(at + 4, word(Kind::Block, USER));
        }
        guest.lost();
        guest.end(99);
        for bytes in memory.bytes.borrow().chunks_exact(SIZE) {
            all.push(Event::from_bytes(bytes.try_into().unwrap()));
        }
        let last = all.last().unwrap();
        assert_eq!((last.kind(), last.value()), (Some(Kind::End), 3), "not before the first cell");
        let free = all.iter().filter(|event| event.kind() == Some(Kind::Free));
        assert_eq!(free.map(|event| event.at).collect::<Vec<_>>(), [24, 34]);
    }

    #[test]
    fn code_on_behalf_of_its_caller_stands_for_it() {
        let events = written(&[&FOLLOWED[..], &["stream=1"]].concat(), |guest, _| {
            guest.begin(0, USER);
            guest.user_block(1, word(Kind::Block, USER));
            for (at, block) in [(10, KERNEL + 0x40), (12, KERNEL + 0x500), (14, KERNEL + 0x520)] {
                guest.block(at, word(Kind::Block, block));
            }
            guest.preempt_count_add(15, KERNEL + 0x524, 1);
            guest.block(20, word(Kind::Block, KERNEL + 0x60));
            guest.preempt_count_add(21, KERNEL + 0x64, -1);
        });
        let held: Vec<_> = events[1..].iter().map(|event| (event.0, event.2)).collect();
        assert_eq!(held, [(Kind::Held, KERNEL + 0x40), (Kind::Free, KERNEL + 0x64)]);
    }

    #[test]
    fn code_that_was_interrupted_still_stands_for_its_caller() {
        let events = written(&[&FOLLOWED[..], &["stream=1"]].concat(), |guest, _| {
            guest.begin(0, USER);
            guest.user_block(1, word(Kind::Block, USER));
            guest.preempt_count_add(9, KERNEL, 1);
            guest.interrupts_off(10, KERNEL);
            guest.block(12, word(Kind::Block, KERNEL + 0x40));
            guest.block(14, word(Kind::Block, KERNEL + 0x500));
            guest.interrupts_on(15, KERNEL + 0x504);
            guest.interrupt(16, ENTRY);
            for at in 20..120 {
                guest.block(at, word(Kind::Block, ENTRY + at));
            }
            guest.interrupt_return(120, ENTRY + 0x200);
            guest.block(121, word(Kind::Block, KERNEL + 0x505));
            guest.preempt_count_add(122, KERNEL + 0x505, -1);
            // Of another caller, later.
            guest.block(130, word(Kind::Block, KERNEL + 0x80));
            guest.block(131, word(Kind::Block, KERNEL + 0x500));
            guest.preempt_count_add(132, KERNEL + 0x500, 1);
        });
        let named: Vec<_> = events.iter().filter(|event| event.1 >= 15).collect();
        let of = |kind| named.iter().find(|event| event.0 == kind).map(|event| event.2);
        assert_eq!(of(Kind::InterruptsOn), Some(KERNEL + 0x40));
        assert_eq!(of(Kind::Free), Some(KERNEL + 0x40));
        assert_eq!(of(Kind::Held), Some(KERNEL + 0x80));
    }

    #[test]
    fn the_longest_stretches_are_written_with_what_was_before() {
        let events = written(&[&FOLLOWED[..], &["longest=1"]].concat(), |guest, _| {
            guest.user_block(1, word(Kind::Block, USER));
            for (from, length) in [(10, 5), (100, 3), (200, 7)] {
                if from == 100 {
                    guest.begin(50, USER);
                }
                guest.block(from - 5, word(Kind::Block, KERNEL + from));
                guest.preempt_count_add(from, KERNEL, 1);
                guest.preempt_count_add(from + length, KERNEL, -1);
            }
        });
        let dumps: Vec<u64> =
            events.iter().filter(|e| e.0 == Kind::DumpBegin).map(|e| e.1).collect();
        assert_eq!(dumps, [103, 207]);
        let blocks: Vec<u64> = events.iter().filter(|e| e.0 == Kind::Block).map(|e| e.1).collect();
        assert_eq!(blocks, [1, 5, 95, 1, 5, 95, 195]);
    }

    #[test]
    fn only_a_change_of_interrupts_is_an_event() {
        let events = streamed(|guest| {
            guest.interrupts_on(1, KERNEL);
            guest.interrupts_on(2, KERNEL);
            guest.interrupts_off(3, KERNEL);
            guest.interrupts_off(4, KERNEL);
            guest.interrupts_on(5, KERNEL);
            guest.interrupts_off(6, KERNEL);
        });
        let (on, off) = (Kind::InterruptsOn, Kind::InterruptsOff);
        assert_eq!(events, [(on, 1), (off, 3), (on, 5), (off, 6)]);
    }

    #[test]
    fn a_return_turns_interrupts_on_if_they_were() {
        let events = streamed(|guest| {
            guest.interrupt(10, ENTRY);
            guest.interrupt_return(50, KERNEL);
            guest.interrupts_off(60, KERNEL);
            guest.interrupt(70, ENTRY);
            guest.interrupt(80, ENTRY);
            guest.interrupt_return(90, KERNEL);
            guest.interrupt_return(100, KERNEL);
            guest.interrupts_on(110, KERNEL);
        });
        let (on, off, arrives) = (Kind::InterruptsOn, Kind::InterruptsOff, Kind::Interrupt);
        let expected = [
            (arrives, 10),
            (off, 10),
            (on, 50),
            (off, 60),
            (arrives, 70),
            (arrives, 80),
            (on, 110),
        ];
        assert_eq!(events, expected);
    }

    #[test]
    fn a_stub_and_the_entry_that_it_leads_to_are_one_arrival() {
        let events = streamed(|guest| {
            guest.interrupt(10, ENTRY);
            guest.interrupt(12, ENTRY + 0x100);
            guest.interrupt_return(50, KERNEL);
        });
        let expected = [(Kind::Interrupt, 10), (Kind::InterruptsOff, 10), (Kind::InterruptsOn, 50)];
        assert_eq!(events, expected);
    }

    #[test]
    fn a_halted_cpu_resumes_once() {
        let events = streamed(|guest| {
            guest.resume(1, KERNEL);
            guest.halt(5, KERNEL);
            guest.interrupt(6, ENTRY);
            guest.interrupt_return(9, KERNEL);
            guest.resume(10, KERNEL + 1);
            guest.halt(15, KERNEL);
            guest.resume(16, KERNEL + 1);
        });
        let expected = [
            (Kind::Idle, 5),
            (Kind::Resume, 6),
            (Kind::Interrupt, 6),
            (Kind::InterruptsOff, 6),
            (Kind::InterruptsOn, 9),
            (Kind::Idle, 15),
            (Kind::Resume, 16),
        ];
        assert_eq!(events, expected);
    }

    #[test]
    fn each_cell_has_the_blocks_of_the_kernel_that_it_executed() {
        let cover = "cover=0xffffffff80000000";
        let events = written(&[cover, "ring=16"], |guest, all| {
            let block = |guest: &mut Observer<Memory>, at, address| match address {
                USER => guest.user_block(at, word(Kind::Block, address)),
                _ => guest.block(at, word(Kind::Block, address)),
            };
            // Of the warm-up, and of another cell.
            block(guest, 1, KERNEL + 1);
            guest.begin(2, USER);
            for (at, address) in [(3, KERNEL + 2), (4, USER), (5, KERNEL), (6, KERNEL + 2)] {
                block(guest, at, address);
            }
            guest.sample(7, USER, &all.dumps);
            guest.finish(8, USER);
            block(guest, 9, KERNEL + 3);
            guest.begin(10, USER);
            block(guest, 11, KERNEL + 2);
            guest.finish(12, USER);
        });
        let expected = [
            (Kind::Begin, 2, USER),
            (Kind::Sample, 7, USER),
            (Kind::Executed, 8, KERNEL),
            (Kind::Executed, 8, KERNEL + 2),
            (Kind::Finish, 8, USER),
            (Kind::Begin, 10, USER),
            (Kind::Executed, 12, KERNEL + 2),
            (Kind::Finish, 12, USER),
        ];
        assert_eq!(events, expected);
    }

    #[test]
    fn without_a_stream_only_marks_are_written() {
        let events = written(&["ring=16"], |guest, all| {
            guest.begin(1, USER);
            guest.halt(2, KERNEL);
            guest.interrupt(3, ENTRY);
            guest.interrupt_return(4, KERNEL);
            guest.clock(5, USER);
            guest.sample(6, USER, &all.dumps);
        });
        assert_eq!(events, [(Kind::Begin, 1, USER), (Kind::Sample, 6, USER)]);
    }
}
