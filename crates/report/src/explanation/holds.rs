//! Who had the time of a leg: one holder if it had all of it, else each with its own part.

use punctual_core::explanation::{Explained, GuestThread, Held, Hold, Milestone};

use super::holder::Holder;
use super::site::{Context, Contexts};
use super::threads;
use super::timers::{self, Own, wakes};
use super::times::{Section, Stretch, held_between, stretches};

/// What one holder had of a leg.
#[derive(Debug, Clone)]
pub(super) struct HeldPart<'a> {
    pub holder: Holder<'a>,
    /// All of the leg if it is the only one.
    pub ns: u64,
    /// In how many pieces.
    pub times: usize,
    /// When the first began, and the last ended, ns since the release.
    pub from: u64,
    pub to: u64,
}

/// A leg, divided among its holders.
pub(super) struct PartedLeg<'a> {
    pub leg: Section,
    /// In order; one if it had all of it.
    pub parts: Vec<HeldPart<'a>>,
    /// What nobody of these had.
    pub rest_ns: u64,
    pieces: Vec<(Stretch<'a>, Holder<'a>)>,
}

/// Who has all but one of so many parts of a leg has it all, and who has less than one of them is
/// not worth a word.
const ALL: u64 = 50;

/// More pieces of culprits than these are told by holder.
const PIECES: usize = 4;

impl<'a> PartedLeg<'a> {
    pub fn of(sample: &'a Explained, contexts: &'a Contexts, leg: Section) -> Self {
        let pieces = pieces(sample, contexts, leg);
        let parts = joined(&pieces);
        let ns = leg.ns();
        let whole = by_holder(&parts).into_iter().find(|of| is_small(ns.saturating_sub(of.ns), ns));
        let told = if whole.is_none() { told(&parts, ns) } else { Vec::new() };
        if told.is_empty() {
            let holder = whole.map_or(Holder::Nobody, |of| of.holder);
            let part = HeldPart { holder, ns, times: 1, from: leg.from, to: leg.to };
            return Self { leg, parts: vec![part], rest_ns: 0, pieces };
        }
        let rest = ns.saturating_sub(told.iter().map(|part| part.ns).sum());
        let rest_ns = if is_small(rest, ns) { 0 } else { rest };
        Self { leg, parts: told, rest_ns, pieces }
    }

    /// Whether one holder had all of it.
    pub fn is_whole(&self) -> bool {
        self.parts.len() == 1 && self.rest_ns == 0 && self.parts[0].ns == self.leg.ns()
    }

    /// What ran in a part.
    pub fn stretches(&self, part: &HeldPart<'_>) -> Vec<Stretch<'a>> {
        let is_of = |(piece, holder): &&(Stretch<'a>, Holder<'a>)| {
            let within = part.from <= piece.from && piece.to <= part.to;
            within && (self.is_whole() || *holder == part.holder)
        };
        self.pieces.iter().filter(is_of).map(|(piece, _)| *piece).collect()
    }

    /// How long culprits had it, ns.
    pub fn held_ns(&self) -> u64 {
        let culprits = self.parts.iter().filter(|part| part.holder.is_culprit());
        culprits.map(|part| part.ns).sum()
    }
}

fn is_small(part: u64, whole: u64) -> bool {
    part.saturating_mul(ALL) <= whole
}

/// What ran in a leg and who had it, in order: no piece has two holders or two threads.
fn pieces<'a>(
    sample: &'a Explained,
    contexts: &'a Contexts,
    leg: Section,
) -> Vec<(Stretch<'a>, Holder<'a>)> {
    let turns = threads::turns(sample);
    let held = sample.held.iter().map(|held| (held_between(held), held)).collect();
    let mut waits = Waits { sample, leg, held, turns, is_arrived: false };
    let cuts = waits.cuts();
    let mut all = Vec::new();
    let mut passing = Vec::new();
    for stretch in stretches(sample, leg.from, leg.to) {
        let context = contexts.of_stack(stretch.stack);
        let first = cuts.partition_point(|cut| *cut <= stretch.from);
        let inside = cuts[first..].iter().copied().take_while(|cut| *cut < stretch.to);
        let mut from = stretch.from;
        for to in inside.chain([stretch.to]) {
            let piece = Stretch { from, to, stack: stretch.stack };
            let holder = waits.holder(from, context, stretch.stack);
            all.push((piece, holder));
            passing.push(waits.passing(holder, context));
            from = to;
        }
    }
    name_switches(&mut all, &passing, leg.ns());
    match leg.until {
        Milestone::Wakeup => timers::name_timers(&mut all, contexts, Own::Last),
        Milestone::Schedule => timers::name_timers(&mut all, contexts, Own::First),
        _ => {}
    }
    all
}

/// Who has the CPU between two threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Passing {
    /// Nobody is between two.
    No,
    /// The scheduler, on behalf of the one before.
    Scheduler,
    /// The idle thread or the measured one, which no scheduler prefers to the measured one.
    Neither,
}

/// What is between two threads belongs to the choice of the next one. But if neither of two runs for
/// long, nobody knows whom the scheduler preferred.
fn name_switches(all: &mut [(Stretch<'_>, Holder<'_>)], passing: &[Passing], whole: u64) {
    let of_neither = all.iter().zip(passing).filter(|(_, passing)| **passing == Passing::Neither);
    let ns: u64 = of_neither.map(|((piece, _), _)| piece.ns()).sum();
    let is_short = ns.saturating_mul(10) <= whole;
    let mut next = None;
    for ((_, holder), passing) in all.iter_mut().zip(passing).rev() {
        match (holder, passing) {
            (Holder::Preferred(thread), Passing::No) => next = *thread,
            (Holder::Preferred(thread), Passing::Neither) if !is_short => *thread = None,
            (Holder::Preferred(thread), _) => *thread = next,
            _ => {}
        }
    }
}

/// What is known of the time of a leg.
struct Waits<'a> {
    sample: &'a Explained,
    leg: Section,
    held: Vec<((u64, u64), &'a Held)>,
    turns: Vec<(u64, u64, Option<&'a GuestThread>)>,
    /// Whether what the timer's own interrupt does is over.
    is_arrived: bool,
}

impl<'a> Waits<'a> {
    /// When holders or threads change, whatever runs.
    fn cuts(&self) -> Vec<u64> {
        let held = self.held.iter().flat_map(|((from, to), _)| [*from, *to]);
        let mut cuts: Vec<u64> = held.chain(self.turns.iter().map(|turn| turn.1)).collect();
        cuts.sort_unstable();
        cuts.dedup();
        cuts
    }

    fn held_at(&self, how: Hold, at: u64) -> Option<&'a Held> {
        let is_at = |((from, to), held): &&((u64, u64), &'a Held)| {
            held.how == how && (*from..*to).contains(&at)
        };
        self.held.iter().find(is_at).map(|(_, held)| *held)
    }

    fn thread_at(&self, at: u64) -> Option<&'a GuestThread> {
        let next = self.turns.partition_point(|(_, to, _)| *to <= at);
        self.turns.get(next)?.2
    }

    fn passing(&self, holder: Holder<'_>, context: Context<'_>) -> Passing {
        let measured = threads::measured(self.sample).map(|measured| measured.pid);
        match holder {
            Holder::Preferred(_) if context == Context::Scheduler => Passing::Scheduler,
            Holder::Preferred(Some(thread)) if [Some(0), measured].contains(&Some(thread.pid)) => {
                Passing::Neither
            }
            _ => Passing::No,
        }
    }

    fn holder(&mut self, at: u64, context: Context<'a>, stack: &[u32]) -> Holder<'a> {
        let is_idle = self.sample.idle || stack.is_empty();
        match self.leg.until {
            Milestone::Interrupt => match (self.held_at(Hold::Interrupts, at), context) {
                (Some(held), _) => Holder::Masked(held),
                (None, Context::Timer(function)) => Holder::Timer(function),
                (None, Context::Interrupt(words)) if !is_idle => Holder::Interrupt(words),
                _ if is_idle => Holder::Path,
                _ => Holder::Nobody,
            },
            Milestone::Wakeup => match context {
                Context::Softirq { .. } => Holder::Softirq,
                _ => Holder::Path,
            },
            Milestone::Schedule => self.waiting(at, context, is_idle),
            Milestone::Switch => Holder::Path,
            Milestone::User | Milestone::Clock => match context {
                Context::Thread | Context::Scheduler => Holder::Path,
                Context::Softirq { .. } => Holder::Softirq,
                Context::Interrupt(words) => Holder::Interrupt(words),
                Context::Timer(function) => Holder::Timer(function),
            },
        }
    }

    /// Who has the CPU after the wake-up.
    fn waiting(&mut self, at: u64, context: Context<'a>, is_idle: bool) -> Holder<'a> {
        let preferred = self.held_at(Hold::Preferred, at).map(|_| self.thread_at(at));
        self.is_arrived |= !context.may_be_timers();
        match context {
            Context::Timer(function) if self.is_arrived || !wakes(function) => {
                return Holder::Timer(function);
            }
            Context::Interrupt(words) if self.is_arrived => return Holder::Interrupt(words),
            Context::Timer(_) | Context::Interrupt(_) => return Holder::Path,
            _ => {}
        }
        match (context, preferred) {
            (Context::Softirq { in_interrupt: true }, _) | (Context::Softirq { .. }, None) => {
                Holder::Softirq
            }
            (_, Some(thread)) => Holder::Preferred(thread),
            _ if self.held_at(Hold::Scheduler, at).is_some() => {
                let masked = self.held_at(Hold::Interrupts, at);
                masked.map_or(Holder::NotCalled, Holder::Masked)
            }
            _ if is_idle => Holder::Path,
            _ => Holder::Nobody,
        }
    }
}

/// Pieces one after the other of one holder are one part.
fn joined<'a>(pieces: &[(Stretch<'a>, Holder<'a>)]) -> Vec<HeldPart<'a>> {
    let mut all: Vec<HeldPart<'a>> = Vec::new();
    for (piece, holder) in pieces {
        match all.last_mut().filter(|last| last.holder == *holder) {
            Some(last) => {
                last.ns += piece.ns();
                last.to = piece.to;
            }
            None => all.push(HeldPart {
                holder: *holder,
                ns: piece.ns(),
                times: 1,
                from: piece.from,
                to: piece.to,
            }),
        }
    }
    all
}

/// The parts that are worth a word: each piece, or if they are many or short all of one holder
/// together.
fn told<'a>(parts: &[HeldPart<'a>], whole: u64) -> Vec<HeldPart<'a>> {
    let mut holders = by_holder(parts);
    holders.retain(|of| of.holder != Holder::Nobody && !is_small(of.ns, whole));
    let is_told = |part: &&HeldPart<'a>| holders.iter().any(|of| of.holder == part.holder);
    let known: Vec<HeldPart<'a>> = parts.iter().filter(is_told).cloned().collect();
    let long = |part: &&HeldPart<'a>| !is_small(part.ns, whole);
    let mut pieces: Vec<HeldPart<'a>> = Vec::new();
    for part in known.iter().filter(long) {
        match pieces.last_mut().filter(|last| last.holder == part.holder) {
            Some(last) => {
                last.ns += part.ns;
                last.to = part.to;
            }
            None => pieces.push(part.clone()),
        }
    }
    let is_there = |of: &HeldPart<'a>| pieces.iter().any(|one| one.holder == of.holder);
    let culprits = pieces.iter().filter(|part| part.holder.is_culprit()).count();
    if culprits > PIECES || !holders.iter().all(is_there) {
        return holders;
    }
    // Short pieces of who has a long one belong to its longest.
    for part in known.iter().filter(|part| !long(part)) {
        let same = pieces.iter_mut().filter(|one| one.holder == part.holder);
        if let Some(longest) = same.max_by_key(|one| one.ns) {
            longest.ns += part.ns;
        }
    }
    pieces
}

/// All of each holder together, in the order in which they came first.
fn by_holder<'a>(parts: &[HeldPart<'a>]) -> Vec<HeldPart<'a>> {
    let mut all: Vec<HeldPart<'a>> = Vec::new();
    for part in parts {
        match all.iter_mut().find(|one| one.holder == part.holder) {
            Some(one) => {
                one.ns += part.ns;
                one.times += 1;
                one.to = part.to;
            }
            None => all.push(part.clone()),
        }
    }
    all
}
