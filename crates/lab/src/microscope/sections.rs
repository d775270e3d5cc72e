//! The sections of a watched run, from the observer's events while the guest runs.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::Read;

use anyhow::{Result, ensure};
use punctual_core::explanation::Hold;
use punctual_core::histogram::bin_low;
use punctual_core::sections::{KindSections, PairSections, SLICES, Section};
use punctual_observer::event::{Event, Kind};

use super::course::BoardTime;
use super::functions::{Functions, Role};
use super::stacks::Stacks;
use super::stream::{Item, Stream};
use super::tally::{Between, Recording, Sighting, Tally};

/// Kinds of sections, by their place.
const KINDS: [Hold; 2] = [Hold::Interrupts, Hold::Scheduler];
const OFF: usize = 0;
const HELD: usize = 1;

/// Functions of a section that are listed.
const FUNCTIONS: usize = 12;

/// A sample as it was watched.
#[derive(Debug, Clone, Copy)]
pub(super) struct Anchor {
    /// Instructions executed when it read the clock.
    pub(super) clock: u64,
    /// How often the CPU had been idle before.
    pub(super) idles: u64,
}

/// The sections of one cell, up to its last sample.
pub(super) struct CellCourse {
    begin: Anchor,
    pub(super) samples: Vec<Anchor>,
    pub(super) kinds: [Tally; 2],
    /// Longer sections in which the scheduler could not be called.
    pub(super) long: Vec<Sighting>,
    /// When interrupts of the CPU's timer were entered.
    pub(super) timers: Vec<u64>,
    /// When handlers of timers began to wake threads.
    pub(super) wakes: Vec<u64>,
    /// Addresses of the kernel's blocks that it executed, ascending.
    pub(super) blocks: Vec<u64>,
    /// What belongs to the cell only if another sample follows.
    pending: Vec<(usize, Sighting, Option<Recording>)>,
    is_over: bool,
}

/// A watched run.
pub(super) struct Watched {
    /// In the order in which recorders began.
    pub(super) cells: Vec<CellCourse>,
    /// How often the guest went to user space with a preempt count.
    pub(super) strays: u64,
}

/// What is going on while events are read.
struct Reader<'a> {
    functions: &'a Functions,
    instruction_ns: u64,
    longest: usize,
    cells: Vec<CellCourse>,
    time: BoardTime,
    idles: u64,
    clock: Option<Anchor>,
    /// When and by whom interrupts were turned off, and what the observer counted then.
    off: Option<Open>,
    held: Option<Open>,
    /// For how much of `held` they were off, without the time that is open.
    off_within: u64,
    /// When interrupts were on first since it began.
    on: Option<u64>,
    dump: Option<Vec<Event>>,
}

/// A section that has begun.
#[derive(Clone, Copy)]
struct Open {
    at: u64,
    raw: u64,
    address: u64,
    /// How often the CPU had been idle before.
    idles: u64,
}

/// Reads all events.
///
/// # Errors
/// They are not the observer's, or end too early.
pub(super) fn read(
    from: impl Read,
    functions: &Functions,
    longest: usize,
    instruction_ns: u64,
) -> Result<Watched> {
    let mut stream = Stream::open(from)?;
    let mut reader = Reader {
        functions,
        instruction_ns,
        longest,
        cells: Vec::new(),
        time: BoardTime::default(),
        idles: 0,
        clock: None,
        off: None,
        held: None,
        off_within: 0,
        on: None,
        dump: None,
    };
    loop {
        match stream.next()? {
            Item::Event(event) => reader.event(event),
            Item::Dump(events) => reader.dump = Some(events),
            // Nothing is kept for a section.
            Item::Spilled(_) => {}
            Item::End(strays) => return Ok(Watched { cells: reader.cells, strays }),
        }
    }
}

impl Reader<'_> {
    fn event(&mut self, event: Event) {
        let (raw, idles) = (event.at, self.idles);
        let event = self.time.correct(event, self.functions);
        let at = event.at;
        let open = || Open { at, raw, address: event.address(), idles };
        match event.kind() {
            Some(Kind::Begin) => {
                let begin = Anchor { clock: at, idles: self.idles };
                let tally = || Tally::new(self.longest, self.instruction_ns);
                let kinds = [tally(), tally()];
                let cell = CellCourse {
                    begin,
                    samples: Vec::new(),
                    kinds,
                    long: Vec::new(),
                    timers: Vec::new(),
                    wakes: Vec::new(),
                    blocks: Vec::new(),
                    pending: Vec::new(),
                    is_over: false,
                };
                self.cells.push(cell);
            }
            Some(Kind::Sample) => {
                if let (Some(clock), Some(cell)) = (self.clock, self.open_cell()) {
                    cell.sample(clock);
                }
            }
            Some(Kind::Executed) => {
                if let Some(cell) = self.open_cell() {
                    cell.blocks.push(event.address());
                }
            }
            Some(Kind::Finish) => {
                if let Some(cell) = self.open_cell() {
                    cell.is_over = true;
                }
            }
            Some(Kind::Clock) => self.clock = Some(Anchor { clock: at, idles: self.idles }),
            Some(Kind::Idle) => self.idles += 1,
            Some(Kind::Interrupt) => {
                let role = self.functions.role(self.functions.at(event.address()).0);
                if let Some(cell) = self.open_cell().filter(|_| role == Role::TimerEntry) {
                    cell.timers.push(at);
                }
            }
            Some(Kind::Wake) => {
                if let Some(cell) = self.open_cell() {
                    cell.wakes.push(at);
                }
            }
            Some(Kind::InterruptsOff) => {
                if self.is_into(at) {
                    self.on = self.on.or(self.held.map(|held| held.at + INTO));
                }
                self.off = Some(open());
            }
            Some(Kind::InterruptsOn) => {
                if self.is_into(at) {
                    self.on.get_or_insert(at);
                }
                if let Some(off) = self.off.take() {
                    self.off_within += self.within(off, at);
                    self.ended(OFF, off, open(), (at.saturating_sub(off.at), at), false);
                }
                // One that the observer wrote for what was turned off before the cell.
                self.dump = None;
            }
            Some(Kind::Held) => {
                self.held = Some(open());
                self.off_within = 0;
                self.on = None;
            }
            Some(how @ (Kind::Free | Kind::Looked)) => {
                let still = self.off.map_or(0, |off| self.within(off, at));
                if let Some(held) = self.held.take() {
                    let on = self.on.unwrap_or(if self.off.is_none() { held.at } else { at });
                    let looked = how == Kind::Looked;
                    self.ended(HELD, held, open(), (self.off_within + still, on), looked);
                }
                self.dump = None;
            }
            _ => {}
        }
    }

    /// Whether the section that is open has begun so long ago that releases are aimed there.
    fn is_into(&self, at: u64) -> bool {
        self.held.is_some_and(|held| at >= held.at + INTO)
    }

    /// The cell that is being measured.
    fn open_cell(&mut self) -> Option<&mut CellCourse> {
        self.cells.last_mut().filter(|cell| !cell.is_over)
    }

    /// For how much of the open section interrupts have been off since then.
    fn within(&self, off: Open, at: u64) -> u64 {
        self.held.map_or(0, |held| at.saturating_sub(off.at.max(held.at)))
    }

    /// `off` is for how much of it interrupts were off, `on` when they were on first.
    fn ended(
        &mut self,
        kind: usize,
        begun: Open,
        ended: Open,
        (off, on): (u64, u64),
        looked: bool,
    ) {
        let dump = self.dump.take();
        let cell = self.open_cell();
        let Some(cell) = cell.filter(|cell| begun.at >= cell.begin.clock) else {
            return;
        };
        let found = Sighting {
            from: begun.at,
            to: ended.at,
            idles: begun.idles,
            samples: cell.samples.len(),
            off,
            on,
            began: begun.address,
            ended: ended.address,
            looked,
        };
        let recording = dump.map(|events| Recording { events, from: begun.raw, to: ended.raw });
        cell.pending.push((kind, found, recording));
        // A cell whose only sample is its last one would collect everything here.
        if cell.pending.len() > MOST_PENDING {
            cell.settle();
        }
    }
}

/// How far into a section a release is aimed, in instructions: 3 us, since the course may differ by
/// some after the thread has asked for another instant. Before a section nothing is late.
pub(super) const INTO: u64 = 750;

/// Sections that wait for the next sample.
const MOST_PENDING: usize = 1 << 16;

/// Instructions of a section from which on it tells what a wake-up takes besides: 4 us.
const LONG: u64 = 1_000;

impl CellCourse {
    /// The first longer section before an instant, counted in instructions, that another course does
    /// not have just so.
    pub(super) fn differs(&self, other: &Self, until: u64) -> Option<u64> {
        let edges = |course: &Self| -> Vec<_> {
            let known = course.long.iter().map(|section| (section.from, section.to, section.began));
            known.take_while(|(_, to, _)| *to <= until).collect()
        };
        let (own, others) = (edges(self), edges(other));
        let same = own.iter().zip(&others).take_while(|(a, b)| a == b).count();
        own.get(same).or(others.get(same)).map(|(from, ..)| *from)
    }

    fn sample(&mut self, clock: Anchor) {
        self.settle();
        self.samples.push(clock);
    }

    fn settle(&mut self) {
        for (kind, found, recording) in self.pending.drain(..) {
            if kind == HELD && found.length() >= LONG {
                self.long.push(found);
            }
            self.kinds[kind].add(found, recording);
        }
    }

    /// Its sections; `read_ns` are the times at which its samples read the clock, as recorded, ns
    /// since the start of the cell.
    pub(super) fn kinds(
        &self,
        read_ns: &[u64],
        instruction_ns: u64,
        functions: &Functions,
    ) -> Result<Vec<KindSections>> {
        ensure!(
            read_ns.len() == self.samples.len(),
            "{} samples were watched, and {} recorded",
            self.samples.len(),
            read_ns.len()
        );
        let axis = Axis { samples: &self.samples, read_ns, instruction_ns };
        Ok(self
            .kinds
            .iter()
            .zip(KINDS)
            .map(|(tally, how)| axis.kind(tally, how, functions))
            .collect())
    }

    /// From the end of the warm-up to the reading of the clock of the last sample, ns.
    pub(super) fn watched_ns(&self, read_ns: &[u64], instruction_ns: u64) -> u64 {
        let (Some(first), Some(from), Some(to)) =
            (self.samples.first(), read_ns.first(), read_ns.last())
        else {
            return 0;
        };
        let busy = first.clock.saturating_sub(self.begin.clock).saturating_mul(instruction_ns);
        let lead = if first.idles == self.begin.idles { busy } else { busy.max(*from) };
        to.saturating_sub(*from).saturating_add(lead)
    }
}

/// The axis of time of a cell: its samples tie instructions to the board's time.
pub(super) struct Axis<'a> {
    pub(super) samples: &'a [Anchor],
    pub(super) read_ns: &'a [u64],
    pub(super) instruction_ns: u64,
}

impl Axis<'_> {
    /// When a section began, ns since the start of the cell, and whether that is exact: between
    /// it and the sample before or after, the CPU was not idle. Otherwise it is the earliest
    /// time.
    pub(super) fn time(&self, found: &Sighting) -> (i64, bool) {
        let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let ns = |from: u64, to: u64| {
            signed(to).saturating_sub(signed(from)).saturating_mul(signed(self.instruction_ns))
        };
        let at =
            |number: usize| Some((self.samples.get(number)?, signed(*self.read_ns.get(number)?)));
        let before = found.samples.checked_sub(1).and_then(at);
        let after = at(found.samples);
        if let Some((sample, time)) = before.filter(|(sample, _)| sample.idles == found.idles) {
            return (time + ns(sample.clock, found.from), true);
        }
        if let Some((sample, time)) = after.filter(|(sample, _)| sample.idles == found.idles) {
            return (time - ns(found.from, sample.clock), true);
        }
        (before.map_or(0, |(sample, time)| time + ns(sample.clock, found.from)), false)
    }

    fn kind(&self, tally: &Tally, how: Hold, functions: &Functions) -> KindSections {
        let ns = self.instruction_ns;
        let longest = tally.longest.iter();
        KindSections {
            how,
            count: tally.count,
            total_ns: tally.total * ns,
            max_ns: tally.max() * ns,
            lengths: tally.lengths.iter().map(|(bin, count)| (bin_low(bin), count)).collect(),
            over_time: self.over_time(tally),
            pairs: pairs(tally, ns, functions),
            longest: longest.map(|(found, was)| self.section(found, was, functions)).collect(),
        }
    }

    /// A section of which nothing was written.
    pub(super) fn plain(&self, found: &Sighting, functions: &Functions) -> Section {
        self.section(found, &Recording { events: Vec::new(), from: 0, to: 0 }, functions)
    }

    fn over_time(&self, tally: &Tally) -> Vec<(u64, u64)> {
        let end = self.read_ns.last().copied().unwrap_or(0);
        let width = (end / SLICES as u64).max(1);
        let mut slices: BTreeMap<u64, u64> = BTreeMap::new();
        for peak in &tally.peaks {
            let time = self.time(peak).0.max(0).unsigned_abs().min(end.saturating_sub(1));
            let slice = slices.entry(time / width * width).or_default();
            *slice = (*slice).max(peak.length() * self.instruction_ns);
        }
        slices.into_iter().take(SLICES + 1).collect()
    }

    fn section(&self, found: &Sighting, was: &Recording, functions: &Functions) -> Section {
        let (at, exact) = self.time(found);
        let (stack, ran) = course(was, functions);
        let name = |address| functions.name(functions.at(address).0).to_owned();
        let mut ran: Vec<(String, u64)> = ran
            .into_iter()
            .map(|(name, instructions)| (name.to_owned(), instructions * self.instruction_ns))
            .collect();
        ran.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        ran.truncate(FUNCTIONS);
        Section {
            at_ns: at,
            exact,
            length_ns: found.length() * self.instruction_ns,
            interrupts_off_ns: found.off * self.instruction_ns,
            from: name(found.began),
            to: name(found.ended),
            stack: stack.into_iter().map(str::to_owned).collect(),
            functions: ran,
        }
    }
}

/// The stack with which a section began, and the instructions of each function in it.
fn course<'a>(was: &Recording, functions: &'a Functions) -> (Vec<&'a str>, BTreeMap<&'a str, u64>) {
    let mut stacks = Stacks::new(functions);
    for event in &was.events {
        match event.kind() {
            Some(Kind::Block) => stacks.block(event.at, event.address()),
            Some(Kind::Idle) => stacks.idle(event.at),
            _ => {}
        }
    }
    let stretches = stacks.finish();
    let begun = stretches.partition_point(|stretch| stretch.from <= was.from);
    let stack = begun.checked_sub(1).map(|place| &stretches[place].stack);
    let stack = stack.map(|stack| stack.iter().map(|f| functions.name(*f)).collect());
    let mut ran = BTreeMap::new();
    let ends = stretches.iter().skip(1).map(|next| next.from).chain([u64::MAX]);
    for (stretch, end) in stretches.iter().zip(ends) {
        let length = end.min(was.to).saturating_sub(stretch.from.max(was.from));
        if let (Some(function), 1..) = (stretch.stack.last(), length) {
            *ran.entry(functions.name(*function)).or_default() += length;
        }
    }
    (stack.unwrap_or_default(), ran)
}

/// By the functions that the addresses are in, that with the longest section first.
fn pairs(tally: &Tally, ns: u64, functions: &Functions) -> Vec<PairSections> {
    let mut all: BTreeMap<(&str, &str), Between> = BTreeMap::new();
    for ((began, ended), found) in &tally.between {
        let name = |address: &u64| functions.name(functions.at(*address).0);
        all.entry((name(began), name(ended)))
            .and_modify(|known| {
                known.count += found.count;
                known.total += found.total;
                known.max = known.max.max(found.max);
                known.powers.iter_mut().zip(found.powers).for_each(|(sum, more)| *sum += more);
            })
            .or_insert(*found);
    }
    let mut pairs: Vec<PairSections> = all
        .into_iter()
        .map(|((from, to), found)| PairSections {
            from: from.to_owned(),
            to: to.to_owned(),
            count: found.count,
            total_ns: found.total * ns,
            max_ns: found.max * ns,
            lengths: (0_u32..)
                .zip(found.powers)
                .filter(|(_, count)| *count > 0)
                .map(|(power, count)| (ns << power, count))
                .collect(),
        })
        .collect();
    pairs.sort_by_key(|pair| Reverse(pair.max_ns));
    pairs
}

#[cfg(test)]
mod tests;
