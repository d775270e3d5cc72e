//! What was taken from the rings of one series and is not on disk yet: a second is complete once it is
//! known which of its long samples were of a stop.

use punctual_core::block::{BLOCK_NS, Block, Late, Moments, Spell};
use punctual_core::stats::Limits;

use crate::recorder::Shared;
use crate::recorder::held::{LongSample, Returned, join_spells, take};

/// What was taken of one series, in the order of time.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// Whether the recorder holds long samples; else all is complete that is there.
    holds: bool,
    blocks: Vec<Block>,
    late: Vec<Late>,
    spells: Vec<Spell>,
    /// Samples that were of no stop, and what they missed.
    held: Vec<LongSample>,
    /// Those that nobody has decided about.
    undecided: Vec<LongSample>,
    /// The latest sample that was decided about, and its stop.
    latest: Option<(u64, Option<usize>)>,
    /// All that is from seconds before this one was taken.
    known: u64,
    /// All spells but the last one are from seconds before this one.
    spells_known: u64,
    taken: TakenSoFar,
    /// Samples that were of no stop, for the results of the thread.
    pub(super) returned: Returned,
}

/// How much was taken from each ring.
#[derive(Debug, Default)]
struct TakenSoFar {
    words: u64,
    late: u64,
    spells: u64,
    held: u64,
}

/// What is complete.
#[derive(Debug, Default)]
pub(super) struct Complete {
    pub(super) late: Vec<Late>,
    pub(super) spells: Vec<Spell>,
    pub(super) blocks: Vec<Block>,
}

impl Pending {
    /// Takes all that a recorder has published; returns whether there was anything.
    pub(super) fn take(&mut self, shared: &Shared, thread: u32, limits: &Limits) -> bool {
        let before = (self.taken.words, self.taken.late, self.taken.spells, self.taken.held);
        // What is before the last of these in time is there from here on; of blocks, all that is of
        // their seconds is there after them.
        self.take_held(shared, limits);
        self.holds = shared.held.is_there();
        self.known = self.known.max(self.undecided.last().map_or(0, |held| held.at / BLOCK_NS));
        while let Some(block) = shared.blocks.take(&mut self.taken.words, thread) {
            self.known = self.known.max(block.index.saturating_add(1));
            self.blocks.push(block);
        }
        self.take_held(shared, limits);
        while let Some(late) = shared.late.take(self.taken.late, thread) {
            self.taken.late += 1;
            self.late.push(late);
        }
        while let Some(spell) = shared.spells.take(self.taken.spells, thread) {
            self.taken.spells += 1;
            self.spells_known = self.spells_known.max(spell.to / BLOCK_NS);
            self.spells.push(spell);
        }
        before != (self.taken.words, self.taken.late, self.taken.spells, self.taken.held)
    }

    fn take_held(&mut self, shared: &Shared, limits: &Limits) {
        while let Some(held) = take(&shared.held, self.taken.held) {
            self.taken.held += 1;
            if held.missed == 0 && held.latency > limits.deadline.unsigned_abs() {
                self.spells_known = self.spells_known.max(held.at / BLOCK_NS);
            }
            self.undecided.push(held);
        }
    }

    /// The samples to decide about, without what they missed.
    pub(super) fn samples(&self) -> impl Iterator<Item = LongSample> + '_ {
        self.undecided.iter().copied().filter(|held| held.missed == 0)
    }

    /// Takes the stops of [`Pending::samples`], in their order; `stopped` is called with each of what
    /// was of one.
    pub(super) fn decide(
        &mut self,
        (thread, limits): (u32, &Limits),
        stops: &mut impl Iterator<Item = Option<usize>>,
        mut stopped: impl FnMut(usize, &LongSample),
    ) {
        for held in std::mem::take(&mut self.undecided) {
            if held.missed == 0 {
                self.latest = Some((held.at, stops.next().flatten()));
            }
            // What a sample missed is of the same stall.
            let stop = self.latest.filter(|(at, _)| *at == held.at).and_then(|(_, stop)| stop);
            if let Some(number) = stop {
                stopped(number, &held);
                continue;
            }
            self.returned.add(&held, limits);
            self.add_to_spells(thread, &held, limits);
            self.held.push(held);
        }
    }

    fn add_to_spells(&mut self, thread: u32, held: &LongSample, limits: &Limits) {
        if held.missed > 0 {
            let own = self.spells.iter_mut().rev().find(|spell| spell.to == held.at);
            if let Some(spell) = own {
                spell.late = spell.late.saturating_add(limits.exceeded(held.latency, held.missed));
            }
        } else if held.latency > limits.deadline.unsigned_abs() {
            let from = held.at.saturating_sub(held.latency);
            self.spells.push(Spell { thread, from, to: held.at, late: 1 });
        }
    }

    /// What is complete now; `all` at the end, when nothing comes any more.
    pub(super) fn complete(&mut self, thread: u32, limits: &Limits, all: bool) -> Complete {
        let until = if all || !self.holds { u64::MAX } else { self.known };
        let before = |at: u64| at / BLOCK_NS < until;
        let mut late: Vec<Late> = self.late.extract_if(.., |late| before(late.at)).collect();
        let mut blocks: Vec<Block> = std::mem::take(&mut self.blocks);
        for held in self.held.extract_if(.., |held| before(held.at)) {
            let block = block_of(&mut blocks, thread, held.at / BLOCK_NS);
            if held.missed == 0 {
                let latency = i64::try_from(held.latency).unwrap_or(i64::MAX);
                block.insert(held.at, latency, limits.deadline);
            } else {
                block.moments.missed = block.moments.missed.saturating_add(held.missed);
                let LongSample { at, latency, missed, .. } = held;
                late.push(Late { thread, series: 0, at, latency, missed });
            }
        }
        late.sort_by_key(|late| late.at);
        if !self.holds {
            return Complete { late, spells: std::mem::take(&mut self.spells), blocks };
        }
        let known = self.spells_known;
        self.spells.sort_by_key(|spell| spell.to);
        let spells = self.spells.extract_if(.., |spell| spell.to / BLOCK_NS < known);
        let spells = join_spells(&spells.collect::<Vec<_>>());
        Complete { late, spells, blocks }
    }

    /// The spells that are left at the end, with the one that the recorder had open.
    pub(super) fn last_spells(&mut self, open: Option<Spell>) -> Vec<Spell> {
        self.spells.extend(open);
        if !self.holds {
            return std::mem::take(&mut self.spells);
        }
        self.spells.sort_by_key(|spell| spell.to);
        join_spells(&std::mem::take(&mut self.spells))
    }
}

/// The block of a second, which had no other samples if it is not there.
fn block_of(blocks: &mut Vec<Block>, thread: u32, index: u64) -> &mut Block {
    let place = match blocks.binary_search_by_key(&index, |block| block.index) {
        Ok(place) => place,
        Err(place) => {
            let moments = Moments::EMPTY;
            blocks.insert(place, Block { thread, series: 0, index, moments, coarse: Vec::new() });
            place
        }
    };
    &mut blocks[place]
}
