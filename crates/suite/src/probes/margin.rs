//! What a probe that spins leaves to the rest of the system: a spinning real-time thread can hang a
//! board.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use punctual_core::schema::{Condition, Tells};
use punctual_core::units::human_ns;
use punctual_sys::clock::monotonic_ns;

use crate::registry::probe::CounterEntry;
use crate::registry::{Default, Kind, Param, Values};

/// The parameter, of every probe that spins.
pub(super) const MARGIN: Param = Param {
    name: "margin",
    kind: Kind::Percent { high: 90 },
    default: Default::Value("10%"),
    help: "share of the time that is left to the rest of the system",
};

/// Percent of the time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Margin(pub(super) u64);

impl Margin {
    /// How long the thread spins between two sleeps, margin included, ns.
    pub(super) const ROUND_NS: u64 = 10_000_000;

    pub(super) fn of(values: &Values) -> Self {
        Self(values.number(MARGIN.name))
    }

    /// How long the thread spins before it sleeps, ns.
    pub(super) fn spin_ns(self) -> u64 {
        Self::ROUND_NS - Self::ROUND_NS / 100 * self.0
    }

    pub(super) fn is_none(self) -> bool {
        self.0 == 0
    }

    /// How long the thread sleeps between two rounds, ns.
    fn asked_ns(self) -> u64 {
        Self::ROUND_NS - self.spin_ns()
    }

    /// Sleeps, and notes by how much that took longer than asked; returns when it was over, ns of
    /// CLOCK_MONOTONIC.
    pub(super) fn sleep(self, spinning: &Spinning) -> u64 {
        let begin = monotonic_ns();
        std::thread::sleep(Duration::from_nanos(self.asked_ns()));
        let now = monotonic_ns();
        spinning.overslept((now - begin).saturating_sub(self.asked_ns()));
        now
    }
}

/// An overslept margin that is said, ns: the timers and wake-ups of a machine that works take less.
const SAID_NS: u64 = 1_000_000;

/// The counters, of every probe that spins, in the order of [`Spinning::totals`].
pub(super) const COUNTERS: [CounterEntry; 2] = [
    CounterEntry {
        name: "overslept",
        meaning: "us by which margins lasted longer than asked: nothing was measured then",
        tells: Tells::Nothing,
    },
    CounterEntry {
        name: "unspun",
        meaning: "us for which threads were due to spin and did not",
        tells: Tells::Nothing,
    },
];

/// What a thread that spins did besides: whatever comes while it sleeps is in none of its samples.
/// It writes at the ends of its rounds only, its session reads at the end.
#[derive(Debug, std::default::Default)]
pub(super) struct Spinning {
    overslept_ns: AtomicU64,
    longest_ns: AtomicU64,
    /// How many were overslept by what is said.
    long: AtomicU64,
    /// How many rounds ended later by what is said, and the latest end.
    late_ends: AtomicU64,
    latest_end_ns: AtomicU64,
    spun_ns: AtomicU64,
    due_ns: AtomicU64,
}

impl Spinning {
    /// Begins a window: what was noted in the warm-up is forgotten with it.
    pub(super) fn begin(&self) {
        let Self { overslept_ns, longest_ns, long, late_ends, latest_end_ns, spun_ns, due_ns } =
            self;
        for value in [overslept_ns, longest_ns, long, late_ends, latest_end_ns, spun_ns, due_ns] {
            value.store(0, Ordering::Relaxed);
        }
    }

    /// A sleep took so much longer than asked, ns.
    pub(super) fn overslept(&self, ns: u64) {
        self.overslept_ns.fetch_add(ns, Ordering::Relaxed);
        self.longest_ns.fetch_max(ns, Ordering::Relaxed);
        self.long.fetch_add((ns >= SAID_NS).into(), Ordering::Relaxed);
    }

    /// A round of a thread that does not look all of the time ended by so much later than it was
    /// to, ns: what held it up may be in no sample.
    pub(super) fn ended_late(&self, ns: u64) {
        self.latest_end_ns.fetch_max(ns, Ordering::Relaxed);
        self.late_ends.fetch_add((ns >= SAID_NS).into(), Ordering::Relaxed);
    }

    /// A round of the thread lasted for so long, ns. What is beyond its length was no spinning that
    /// was due: something held it up, and the rounds after it are missing.
    pub(super) fn spun(&self, margin: Margin, ns: u64) {
        self.spun_ns.fetch_add(ns.min(margin.spin_ns()), Ordering::Relaxed);
    }

    /// Ends the window, which lasted for so long, ns.
    pub(super) fn end(&self, margin: Margin, ns: u64) {
        let (rounds, rest) = (ns / Margin::ROUND_NS, ns % Margin::ROUND_NS);
        let due = rounds * margin.spin_ns() + rest.min(margin.spin_ns());
        self.due_ns.store(due, Ordering::Relaxed);
    }

    /// How long the thread spun less than it was due to, ns.
    fn unspun_ns(&self) -> u64 {
        let of = |value: &AtomicU64| value.load(Ordering::Relaxed);
        of(&self.due_ns).saturating_sub(of(&self.spun_ns))
    }

    /// The counts of all threads, in the order of [`COUNTERS`].
    pub(super) fn totals<'a>(all: impl Iterator<Item = &'a Arc<Self>>) -> [u64; 2] {
        let both = all.map(|one| (one.overslept_ns.load(Ordering::Relaxed), one.unspun_ns()));
        let (overslept, unspun) = both.fold((0, 0), |sums, one| (sums.0 + one.0, sums.1 + one.1));
        [overslept / 1_000, unspun / 1_000]
    }

    /// That margins, or rounds, were much longer than they were to be, in words.
    pub(super) fn notes(&self) -> Vec<Condition> {
        let of = |value: &AtomicU64| value.load(Ordering::Relaxed);
        let time = |ns: u64| human_ns(ns.cast_signed());
        let times = |count: u64| match count {
            1 => format!("by {} or more once", time(SAID_NS)),
            count => format!("by {} or more {count} times", time(SAID_NS)),
        };
        let note = |id: &str, text| Condition { id: id.to_owned(), text };
        let mut notes = Vec::new();
        if of(&self.long) > 0 {
            let spun = match self.unspun_ns() {
                0 => String::new(),
                _ => format!(
                    "; it spun for {} of {}",
                    time(of(&self.spun_ns)),
                    time(of(&self.due_ns))
                ),
            };
            let text = format!(
                "its margin was overslept {}, by {} at most and {} in all: nothing was measured then, \
                 and no sample has it{spun}",
                times(of(&self.long)),
                time(of(&self.longest_ns)),
                time(of(&self.overslept_ns)),
            );
            notes.push(note("margin-overslept", text));
        }
        if of(&self.late_ends) > 0 {
            let text = format!(
                "its rounds ended late {}, by {} at most: what came between two pairs of reads is in \
                 no sample",
                times(of(&self.late_ends)),
                time(of(&self.latest_end_ns)),
            );
            notes.push(note("round-late", text));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_sleep_took_longer_and_what_was_not_spun_is_told() {
        let spinning = Arc::new(Spinning::default());
        spinning.overslept(900_000_000);
        spinning.begin();
        for ns in [50_000, 200_000_000, 3_000_000, 90_000] {
            spinning.overslept(ns);
        }
        // Ten rounds and half of one, of which each is to spin for 9 ms.
        spinning.end(Margin(10), 105_000_000);
        for _ in 0..6 {
            spinning.spun(Margin(10), 9_000_000);
        }
        spinning.spun(Margin(10), 1_000_000);
        assert_eq!(Spinning::totals([&spinning, &spinning].into_iter()), [406_280, 80_000]);
        let notes = spinning.notes();
        assert_eq!(notes[0].id, "margin-overslept");
        let text = "its margin was overslept by 1.000 ms or more 2 times, by 200.000 ms at most and \
                    203.140 ms in all: nothing was measured then, and no sample has it; it spun for \
                    55.000 ms of 95.000 ms";
        assert_eq!(notes[0].text, text);
        spinning.begin();
        spinning.overslept(SAID_NS - 1);
        spinning.end(Margin(10), 9_000_000);
        spinning.spun(Margin(10), 9_500_000);
        assert!(spinning.notes().is_empty());
        assert_eq!(Spinning::totals([&spinning].into_iter()), [999, 0]);
        spinning.ended_late(SAID_NS - 1);
        assert!(spinning.notes().is_empty());
        spinning.ended_late(200_000_000);
        let [said] = &spinning.notes()[..] else { panic!("{spinning:?}") };
        assert!(
            said.text.starts_with("its rounds ended late by 1.000 ms or more once, by 200.000 ms")
        );
        assert_eq!(said.id, "round-late");
    }

    #[test]
    fn a_margin_that_is_not_there_is_not_overslept() {
        let (spinning, none) = (Spinning::default(), Margin(0));
        none.sleep(&spinning);
        spinning.end(none, Margin::ROUND_NS);
        spinning.spun(none, Margin::ROUND_NS);
        assert_eq!(spinning.unspun_ns(), 0);
        // Held up for 190 ms in the only round: 19 rounds are missing.
        spinning.begin();
        spinning.end(Margin(10), 20 * Margin::ROUND_NS);
        spinning.spun(Margin(10), 199_000_000);
        assert_eq!(spinning.unspun_ns(), 19 * 9_000_000);
        let begin = monotonic_ns();
        let end = Margin(90).sleep(&spinning);
        assert!(end - begin >= 9_000_000);
        assert!(spinning.overslept_ns.load(Ordering::Relaxed) <= end - begin);
    }
}
