//! Who had a CPU when, from events of the trace.

use std::collections::BTreeMap;

/// Who had a CPU, by number.
pub(in super::super) type Actor = u32;

/// What an event tells of its CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Change {
    /// An interrupt is handled, possibly within another.
    Enter(Actor),
    /// The innermost one is done.
    Leave,
    /// A softirq is handled.
    Soft(Actor),
    SoftDone,
    /// An NMI was handled, for so many ns up to the event.
    Nmi(Actor, u64),
    /// The CPU goes to this thread.
    Switch(Actor),
    /// Somebody had the CPU for so many ns up to the event, not counting what others had of that
    /// time, of which earlier events told.
    Net(Actor, u64),
}

/// A time in which one actor had a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Stretch {
    pub(in super::super) from: u64,
    pub(in super::super) to: u64,
    /// `None` where the trace tells of nobody.
    pub(in super::super) actor: Option<Actor>,
    /// Whether it goes on after an interruption.
    pub(in super::super) goes_on: bool,
}

/// What the trace tells nothing of.
pub(in super::super) const NOBODYS: Stretch =
    Stretch { from: 0, to: 0, actor: None, goes_on: false };

/// One CPU, event by event.
#[derive(Debug, Default)]
pub(in super::super) struct CpuPast {
    interrupts: Vec<Actor>,
    softirq: Option<Actor>,
    thread: Option<Actor>,
    /// Up to when it is known who had it.
    last: u64,
    /// Whether who has it now had it before an interruption.
    goes_on: bool,
    /// Those of somebody, in order.
    stretches: Vec<Stretch>,
}

impl CpuPast {
    /// Takes the next event of this CPU. `current` is the thread that it interrupts.
    pub(super) fn change(&mut self, at: u64, current: Option<Actor>, change: Change) {
        if let Change::Net(actor, length) = change {
            return self.net(at, actor, length);
        }
        self.thread = current;
        let until = match change {
            Change::Nmi(_, length) => at.saturating_sub(length).max(self.last),
            _ => at,
        };
        self.end(until);
        match change {
            Change::Enter(actor) => self.interrupts.push(actor),
            Change::Leave => drop(self.interrupts.pop()),
            Change::Soft(actor) => self.softirq = Some(actor),
            Change::SoftDone => self.softirq = None,
            Change::Nmi(actor, _) => {
                let nmi = Stretch { from: until, to: at, actor: Some(actor), goes_on: false };
                self.stretches.push(nmi);
                self.last = at;
            }
            Change::Net(..) => {}
            Change::Switch(actor) => {
                // No interrupt goes on across a switch, even if its end was lost.
                self.interrupts.clear();
                self.softirq = None;
                self.thread = Some(actor);
            }
        }
        self.goes_on = matches!(change, Change::Leave | Change::SoftDone | Change::Nmi(..));
    }

    /// Gives somebody what nobody had before an instant, from there backwards.
    fn net(&mut self, at: u64, actor: Actor, mut left: u64) {
        let mut pieces = Vec::new();
        let (mut end, mut place) = (at, self.stretches.len());
        while left > 0 {
            let before = place.checked_sub(1).map(|place| self.stretches[place]);
            let free = end.saturating_sub(before.map_or(0, |before| before.to));
            let length = free.min(left);
            if length > 0 {
                let goes_on = length < left;
                pieces.push(Stretch { from: end - length, to: end, actor: Some(actor), goes_on });
                left -= length;
            }
            let Some(before) = before.filter(|_| left > 0) else { break };
            (end, place) = (before.from.min(end), place - 1);
            pieces.push(before);
        }
        pieces.reverse();
        self.stretches.splice(place.., pieces);
    }

    /// Whoever has the CPU has it up to this instant.
    fn end(&mut self, at: u64) {
        let actor = self.interrupts.last().copied().or(self.softirq).or(self.thread);
        if at > self.last {
            let goes_on = self.goes_on;
            self.stretches.push(Stretch { from: self.last, to: at, actor, goes_on });
            self.last = at;
        }
    }

    /// Cuts a gap of a thread, which is an actor itself, into stretches: what the trace tells
    /// nobody or the thread itself had in it is nobody's. Forgets all before its end.
    pub(in super::super) fn cut(
        &mut self,
        gap: (u64, u64),
        own: Actor,
        each: &mut dyn FnMut(Stretch),
    ) {
        let (from, to) = gap;
        let done = self.stretches.partition_point(|stretch| stretch.from < to);
        let mut at = from;
        let mut nobody = from;
        for stretch in &self.stretches[..done] {
            let (begin, end) = (stretch.from.max(at), stretch.to.min(to));
            if end <= begin || stretch.actor.is_none_or(|actor| actor == own) {
                continue;
            }
            if begin > nobody {
                each(Stretch { from: nobody, to: begin, ..NOBODYS });
            }
            each(Stretch { from: begin, to: end, ..*stretch });
            (at, nobody) = (end, end);
        }
        if to > nobody {
            each(Stretch { from: nobody, to, ..NOBODYS });
        }
        // The last one may go on in the next gap.
        self.stretches.drain(..done.saturating_sub(1));
    }

    /// Forgets what was before an instant.
    pub(in super::super) fn forget(&mut self, until: u64) {
        self.stretches.retain(|stretch| stretch.to > until);
    }
}

/// What kind of thing an actor is; in the order of the probe's series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Origin {
    Interrupt,
    Softirq,
    Thread,
    Untraced,
}

/// How many there are.
pub(super) const SOURCES: usize = 4;

/// The actors, by number.
#[derive(Debug, Default)]
pub(in super::super) struct Actors {
    all: Vec<(String, Origin, Taken)>,
    numbers: BTreeMap<String, Actor>,
}

/// What one actor had of the gaps. A time goes on after what interrupts it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Taken {
    pub(super) times: u64,
    pub(super) total_ns: u64,
    pub(super) longest_ns: u64,
    /// The time that may go on.
    last_ns: u64,
}

impl Actors {
    pub(in super::super) fn number(&mut self, name: &str, source: Origin) -> Actor {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        self.all.push((name.to_owned(), source, Taken::default()));
        self.numbers.insert(name.to_owned(), number);
        number
    }

    pub(in super::super) fn name(&self, actor: Actor) -> &str {
        &self.all[actor as usize].0
    }

    /// Notes what an actor had of a gap; returns what it is.
    pub(super) fn had(&mut self, actor: Actor, piece: &Stretch) -> (&str, Origin) {
        let (name, source, taken) = &mut self.all[actor as usize];
        let length = piece.to - piece.from;
        let before = if piece.goes_on { taken.last_ns } else { 0 };
        taken.last_ns = before + length;
        taken.times += u64::from(!piece.goes_on);
        taken.total_ns += length;
        taken.longest_ns = taken.longest_ns.max(taken.last_ns);
        (name, *source)
    }

    /// Forgets what they had.
    pub(super) fn begin(&mut self) {
        self.all.iter_mut().for_each(|(_, _, share)| *share = Taken::default());
    }

    /// Those that had the most of the gaps, the first of all first.
    pub(super) fn most(&self, count: usize) -> Vec<(&str, Taken)> {
        let had = self.all.iter().filter(|(_, _, share)| share.total_ns > 0);
        let mut most: Vec<_> = had.map(|(name, _, share)| (&**name, *share)).collect();
        most.sort_by_key(|(_, share)| std::cmp::Reverse(share.total_ns));
        most.truncate(count);
        most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Actor = 0;
    const TICK: Actor = 1;
    const EDU: Actor = 2;
    const NET: Actor = 3;
    const SPIN: Actor = 4;

    fn cut(cpu: &mut CpuPast, from: u64, to: u64) -> Vec<(u64, u64, Option<Actor>)> {
        let mut found = Vec::new();
        cpu.cut((from, to), OWN, &mut |one| found.push((one.from, one.to, one.actor)));
        assert_eq!(found.iter().map(|(from, to, _)| to - from).sum::<u64>(), to - from);
        assert!(found.windows(2).all(|pair| pair[0].1 == pair[1].0), "{found:?}");
        found
    }

    #[test]
    fn the_innermost_has_the_cpu_and_what_is_left_is_nobodys() {
        let mut cpu = CpuPast::default();
        for (at, change) in [
            (100, Change::Enter(TICK)),
            (110, Change::Enter(EDU)),
            (130, Change::Leave),
            (140, Change::Leave),
            (141, Change::Soft(NET)),
            (150, Change::Enter(TICK)),
            (155, Change::Leave),
            (160, Change::SoftDone),
        ] {
            cpu.change(at, Some(OWN), change);
        }
        let all = [
            (95, 100, None),
            (100, 110, Some(TICK)),
            (110, 130, Some(EDU)),
            (130, 140, Some(TICK)),
            (140, 141, None),
            (141, 150, Some(NET)),
            (150, 155, Some(TICK)),
            (155, 160, Some(NET)),
            (160, 170, None),
        ];
        assert_eq!(cut(&mut cpu, 95, 170), all);
    }

    #[test]
    fn another_thread_has_it_until_the_switch_back() {
        let mut cpu = CpuPast::default();
        cpu.change(100, Some(OWN), Change::Enter(TICK));
        // Its end was lost.
        cpu.change(120, Some(OWN), Change::Switch(SPIN));
        cpu.change(200, Some(SPIN), Change::Enter(TICK));
        cpu.change(210, Some(SPIN), Change::Leave);
        cpu.change(300, Some(SPIN), Change::Switch(OWN));
        cpu.change(400, Some(OWN), Change::Nmi(EDU, 15));
        let gap = [
            (90, 100, None),
            (100, 120, Some(TICK)),
            (120, 200, Some(SPIN)),
            (200, 210, Some(TICK)),
            (210, 300, Some(SPIN)),
            (300, 305, None),
        ];
        assert_eq!(cut(&mut cpu, 90, 305), gap);
        assert_eq!(
            cut(&mut cpu, 380, 401),
            [(380, 385, None), (385, 400, Some(EDU)), (400, 401, None)]
        );
    }

    #[test]
    fn a_stretch_can_reach_over_two_gaps_and_none_is_there_twice() {
        let mut cpu = CpuPast::default();
        cpu.change(100, Some(OWN), Change::Enter(TICK));
        cpu.change(200, Some(OWN), Change::Leave);
        assert_eq!(cut(&mut cpu, 90, 150), [(90, 100, None), (100, 150, Some(TICK))]);
        assert_eq!(cut(&mut cpu, 150, 220), [(150, 200, Some(TICK)), (200, 220, None)]);
        assert_eq!(cut(&mut cpu, 300, 310), [(300, 310, None)]);
    }

    #[test]
    fn net_times_lie_around_what_interrupted_them() {
        let mut cpu = CpuPast::default();
        // The thread from 100 to 200, interrupted by the tick, and that by a device.
        cpu.change(145, None, Change::Net(EDU, 5));
        cpu.change(160, None, Change::Net(TICK, 25));
        cpu.change(200, None, Change::Net(SPIN, 70));
        let all = [
            (95, 100, None),
            (100, 130, Some(SPIN)),
            (130, 140, Some(TICK)),
            (140, 145, Some(EDU)),
            (145, 160, Some(TICK)),
            (160, 200, Some(SPIN)),
            (200, 210, None),
        ];
        let times = |cpu: &CpuPast| {
            let of = cpu.stretches.iter().map(|one| (one.actor, one.goes_on));
            of.collect::<Vec<_>>()
        };
        let [spin, tick, edu] = [Some(SPIN), Some(TICK), Some(EDU)];
        let in_order = [(spin, false), (tick, false), (edu, false), (tick, true), (spin, true)];
        assert_eq!(times(&cpu), in_order);
        assert_eq!(cut(&mut cpu, 95, 210), all);
        // More than there is room for: as the kernel's clock and the trace's differ.
        let mut cpu = CpuPast::default();
        cpu.change(10, None, Change::Net(SPIN, 50));
        assert_eq!(cut(&mut cpu, 0, 12), [(0, 10, Some(SPIN)), (10, 12, None)]);
    }

    #[test]
    fn a_thread_that_is_interrupted_has_the_cpu_once() {
        let (mut cpu, mut actors) = (CpuPast::default(), Actors::default());
        let [own, spin, tick] =
            ["probe-0", "spin", "tick"].map(|name| actors.number(name, Origin::Thread));
        for turn in [0, 1_000] {
            cpu.change(turn + 100, Some(own), Change::Switch(spin));
            cpu.change(turn + 150, Some(spin), Change::Enter(tick));
            cpu.change(turn + 160, Some(spin), Change::Leave);
            cpu.change(turn + 200, Some(spin), Change::Switch(own));
            let each = &mut |piece: Stretch| {
                if let Some(actor) = piece.actor {
                    actors.had(actor, &piece);
                }
            };
            cpu.cut((turn + 90, turn + 210), own, each);
        }
        let [(first, spun), (second, ticked)] = actors.most(9)[..] else { panic!("{actors:?}") };
        assert_eq!((first, spun.times, spun.total_ns, spun.longest_ns), ("spin", 2, 180, 90));
        assert_eq!((second, ticked.times, ticked.total_ns), ("tick", 2, 20));
    }
}
