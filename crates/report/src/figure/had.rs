//! How often actors had a CPU, and for how long at a time. A time goes on after what interrupts it,
//! as probes count it in the notes of a cell; a record has only the pieces, so their order tells.

use std::collections::BTreeMap;

use punctual_core::run::CellData;

/// The times of an actor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Had {
    /// In all, ns.
    pub ns: u64,
    pub times: u64,
    /// The longest time without what interrupted it, ns.
    pub longest: u64,
}

impl Had {
    pub fn add(&mut self, other: Had) {
        self.ns = self.ns.saturating_add(other.ns);
        self.times += other.times;
        self.longest = self.longest.max(other.longest);
    }
}

/// What can interrupt what: the later the more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Urgency {
    /// A thread, or nobody of whom something is known.
    Thread,
    Softirq,
    Interrupt,
}

impl Urgency {
    /// By the names that probes give to actors.
    fn of(data: &CellData, actor: u32) -> Self {
        match data.actors.get(&actor).map_or("", String::as_str) {
            "NMI" | "hardware" => Self::Interrupt,
            name if name.starts_with("interrupt ") => Self::Interrupt,
            name if name.starts_with("softirq ") => Self::Softirq,
            _ => Self::Thread,
        }
    }

    fn interrupts(self, other: Self) -> bool {
        self > other || self == Self::Interrupt && other == Self::Interrupt
    }
}

/// A time that is not known to be over.
struct Open {
    actor: u32,
    level: Urgency,
    ns: u64,
}

/// What each actor had of each CPU.
pub fn by_cpu(data: &CellData) -> BTreeMap<u32, BTreeMap<u32, Had>> {
    let mut intervals: Vec<_> = data.intervals.iter().collect();
    intervals.sort_by_key(|one| (one.cpu, one.from));
    let mut cpus: BTreeMap<u32, BTreeMap<u32, Had>> = BTreeMap::new();
    // Each of these interrupts the one before it.
    let mut open: Vec<Open> = Vec::new();
    let mut before = None;
    for one in intervals {
        // Somebody else, of whom nothing is recorded, had the CPU in between.
        if before.replace((one.cpu, one.to)) != Some((one.cpu, one.from)) {
            open.clear();
        }
        let ns = one.to.saturating_sub(one.from);
        let had = cpus.entry(one.cpu).or_default().entry(one.actor).or_default();
        let is_new = !goes_on(&mut open, one.actor, Urgency::of(data, one.actor));
        if let Some(time) = open.last_mut() {
            time.ns = time.ns.saturating_add(ns);
            had.add(Had { ns, times: is_new.into(), longest: time.ns });
        }
    }
    cpus
}

/// Whether an actor goes on that was interrupted. It is the last of the open ones afterwards.
fn goes_on(open: &mut Vec<Open>, actor: u32, level: Urgency) -> bool {
    let interrupted = open.len().saturating_sub(1);
    if let Some(at) = open[..interrupted].iter().position(|one| one.actor == actor) {
        open.truncate(at + 1);
        return true;
    }
    while open.last().is_some_and(|one| one.actor == actor || !level.interrupts(one.level)) {
        open.pop();
    }
    open.push(Open { actor, level, ns: 0 });
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::interval::Interval;

    const NAMES: [&str; 6] =
        ["interrupt local_timer", "interrupt 10 edu", "softirq NET_RX", "spin", "other", "NMI"];
    const TICK: u32 = 0;
    const EDU: u32 = 1;
    const NET: u32 = 2;
    const SPIN: u32 = 3;
    const OTHER: u32 = 4;
    const NMI: u32 = 5;

    /// Times and the longest time of those that had a CPU one after the other, for so long each.
    fn had(pieces: &[(u32, u64)]) -> BTreeMap<u32, (u64, u64)> {
        let mut at = 100;
        let intervals = pieces.iter().map(|(actor, ns)| {
            at += ns;
            Interval { cpu: 1, from: at - ns, to: at, actor: *actor }
        });
        let intervals = intervals.collect();
        let actors = (0..).zip(NAMES.map(str::to_owned)).collect();
        let data = CellData { intervals, actors, ..CellData::default() };
        by_cpu(&data)[&1].iter().map(|(actor, had)| (*actor, (had.times, had.longest))).collect()
    }

    #[test]
    fn a_time_goes_on_after_what_interrupts_it() {
        // The thread, in it a softirq that the tick interrupts, and the tick a device.
        let all = [(SPIN, 30), (NET, 8), (TICK, 5), (EDU, 2), (TICK, 1), (NET, 4), (SPIN, 10)];
        let all = had(&all);
        assert_eq!(all[&SPIN], (1, 40));
        assert_eq!(all[&NET], (1, 12));
        assert_eq!((all[&TICK], all[&EDU]), ((1, 6), (1, 2)));
    }

    #[test]
    fn what_ends_begins_anew() {
        // A softirq follows the tick, and the next tick interrupts it.
        let all = had(&[(SPIN, 9), (TICK, 5), (NET, 7), (TICK, 4), (NET, 2), (SPIN, 1)]);
        assert_eq!((all[&TICK], all[&NET], all[&SPIN]), ((2, 5), (1, 9), (1, 10)));
        // A thread takes the CPU from another, and nobody known from it.
        let all = had(&[(SPIN, 9), (OTHER, 5), (SPIN, 7), (NMI, 1), (SPIN, 2), (SPIN, 3)]);
        assert_eq!((all[&SPIN], all[&OTHER], all[&NMI]), ((3, 9), (1, 5), (1, 1)));
    }

    #[test]
    fn nothing_goes_on_over_a_hole_or_on_another_cpu() {
        let one = |cpu, from, to, actor| Interval { cpu, from, to, actor };
        let pieces = [
            one(0, 0, 5, SPIN),
            one(1, 5, 6, TICK),
            one(0, 5, 6, TICK),
            one(0, 7, 9, SPIN),
            one(1, 6, 9, SPIN),
        ];
        let actors = (0..).zip(NAMES.map(str::to_owned)).collect();
        let data = CellData { intervals: pieces.to_vec(), actors, ..CellData::default() };
        let all = by_cpu(&data);
        assert_eq!(all[&0][&SPIN], Had { ns: 7, times: 2, longest: 5 });
        assert_eq!(all[&1][&SPIN], Had { ns: 3, times: 1, longest: 3 });
    }
}
