//! The way of a thread from its timer to its work, put together from events of the trace.

use std::collections::{BTreeMap, VecDeque};

/// The legs of a sample, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leg {
    Interrupt,
    Wakeup,
    Switch,
    User,
}

/// What an event tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TimerEvent {
    /// The handler of the timer's interrupt was entered.
    Interrupt,
    /// A thread is being woken.
    Waking { thread: i32 },
    /// A CPU goes to a thread.
    Switch { thread: i32, before: Who },
}

/// A thread as the scheduler knows it; 0 is the idle one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Who {
    pub(super) id: i32,
    pub(super) name: String,
}

/// The legs of one sample, and who had the CPU before the thread did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Matched {
    /// Lengths, ns, in the order of [`Leg`]; they add up to the latency.
    pub(super) legs: [u64; 4],
    pub(super) before: Who,
}

impl Matched {
    pub(super) fn longest(&self) -> Leg {
        let all = [Leg::Interrupt, Leg::Wakeup, Leg::Switch, Leg::User];
        let longest = all.into_iter().zip(self.legs).max_by_key(|(_, length)| *length);
        longest.map_or(Leg::User, |(leg, _)| leg)
    }
}

/// One step of a thread, and when it happened.
#[derive(Debug)]
struct Step {
    at: u64,
    kind: StepKind,
}

#[derive(Debug)]
enum StepKind {
    /// It is being woken; when the interrupt before that was entered on the same CPU.
    Waking(Option<u64>),
    Switch(Who),
}

/// Steps of all threads.
#[derive(Debug, Default)]
pub(super) struct Paths {
    /// Events whose order is not known yet, with CPU and time.
    pending: Vec<(u64, u32, TimerEvent)>,
    /// When the last interrupt of each CPU was entered.
    entered: BTreeMap<u32, u64>,
    steps: BTreeMap<i32, VecDeque<Step>>,
}

impl Paths {
    pub(super) fn push(&mut self, cpu: u32, at: u64, seen: TimerEvent) {
        self.pending.push((at, cpu, seen));
    }

    /// Brings what happened before an instant into order.
    pub(super) fn follow(&mut self, until: u64) {
        // Stable: events of one CPU stay as they were.
        self.pending.sort_by_key(|(at, ..)| *at);
        let known = self.pending.partition_point(|(at, ..)| *at < until);
        for (at, cpu, seen) in self.pending.drain(..known) {
            let (thread, kind) = match seen {
                TimerEvent::Interrupt => {
                    self.entered.insert(cpu, at);
                    continue;
                }
                TimerEvent::Waking { thread } => {
                    (thread, StepKind::Waking(self.entered.get(&cpu).copied()))
                }
                TimerEvent::Switch { thread, before } => (thread, StepKind::Switch(before)),
            };
            self.steps.entry(thread).or_default().push_back(Step { at, kind });
        }
    }

    /// The way of a thread to the work that it began at `now`, after its release, or after the
    /// interrupt if it has none; forgets its steps up to then, and counts them: how often it was woken
    /// and was given a CPU. `None` if they are not all there, or it was awake at its release.
    pub(super) fn of(
        &mut self,
        thread: i32,
        release: Option<u64>,
        now: u64,
    ) -> ([usize; 2], Option<Matched>) {
        let steps = self.steps.entry(thread).or_default();
        let done = steps.partition_point(|step| step.at <= now);
        let is_waking = |step: &&Step| matches!(step.kind, StepKind::Waking(_));
        let woken = steps.iter().take(done).filter(is_waking).count();
        ([woken, done - woken], matched(steps.drain(..done), release, now))
    }
}

/// The legs that these steps of a thread make.
fn matched(steps: impl Iterator<Item = Step>, release: Option<u64>, now: u64) -> Option<Matched> {
    let (mut woken, mut switched, mut last) = (None, None, None);
    let mut was_awake = false;
    for Step { at, kind } in steps {
        match kind {
            StepKind::Waking(entered) => {
                woken = Some((at, entered?));
                (switched, last) = (None, None);
            }
            StepKind::Switch(before) => {
                // It lost the CPU before it had set its timer.
                was_awake |= woken.is_none() && release.is_some_and(|release| at > release);
                switched = switched.or_else(|| Some((at, before.clone())));
                last = Some(before);
            }
        }
    }
    if was_awake {
        return None;
    }
    let ((waking, entered), (switch, first)) = (woken?, switched?);
    let release = release.unwrap_or(entered);
    // The interrupt of another timer may have been there before.
    let entered = entered.max(release);
    let ends = [release, entered, waking, switch, now];
    let legs: [_; 4] = std::array::from_fn(|leg| ends[leg + 1].checked_sub(ends[leg]));
    let [interrupt, wakeup, switch, user] = legs;
    let mut matched = Matched { legs: [interrupt?, wakeup?, switch?, user?], before: first };
    // It lost the CPU again before it came to user space.
    if matched.longest() == Leg::User {
        matched.before = last?;
    }
    Some(matched)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROBE: i32 = 7;

    fn switch(name: &str, id: i32) -> TimerEvent {
        TimerEvent::Switch { thread: PROBE, before: Who { id, name: name.to_owned() } }
    }

    fn waking() -> TimerEvent {
        TimerEvent::Waking { thread: PROBE }
    }

    /// The legs of an activation at 2,000 that was released at 1,000.
    fn matched(events: &[(u32, u64, TimerEvent)]) -> Option<Matched> {
        let mut paths = Paths::default();
        events.iter().for_each(|(cpu, at, seen)| paths.push(*cpu, *at, seen.clone()));
        paths.follow(3_000);
        paths.of(PROBE, Some(1_000), 2_000).1
    }

    #[test]
    fn legs_add_up_whatever_the_order_in_which_cpus_are_read() {
        // The timer fires on another CPU than that to which the thread is switched.
        let events = [
            (0, 1_500, switch("spin", 9)),
            (0, 1_120, TimerEvent::Interrupt),
            (1, 1_100, TimerEvent::Interrupt),
            (1, 1_150, waking()),
            (1, 1_160, TimerEvent::Interrupt),
        ];
        let found = matched(&events).unwrap();
        assert_eq!((found.legs, found.longest()), ([100, 50, 350, 500], Leg::User));
        assert_eq!(found.before.name, "spin");
        assert_eq!(found.legs.iter().sum::<u64>(), 1_000);
    }

    #[test]
    fn a_handler_that_runs_already_is_entered_at_once() {
        let events = [
            (0, 900, TimerEvent::Interrupt),
            (0, 1_030, waking()),
            (0, 1_040, switch("swapper/0", 0)),
        ];
        assert_eq!(matched(&events).unwrap().legs, [0, 30, 10, 960]);
    }

    #[test]
    fn who_took_the_cpu_away_again_is_named_and_not_who_had_it_first() {
        let start = [(0, 1_001, TimerEvent::Interrupt), (0, 1_002, waking())];
        let end = [(0, 1_003, switch("swapper/0", 0)), (0, 1_900, switch("spin", 9))];
        let found = matched(&[start, end].concat()).unwrap();
        assert_eq!((found.legs, found.before.id), ([1, 1, 1, 997], 9));
    }

    #[test]
    fn without_all_its_steps_an_activation_has_no_legs() {
        let all = [
            (0, 1_001, TimerEvent::Interrupt),
            (0, 1_002, waking()),
            (0, 1_003, switch("swapper/0", 0)),
        ];
        assert!(matched(&all).is_some());
        for absent in 0..all.len() {
            let mut some = all.to_vec();
            some.remove(absent);
            assert_eq!(matched(&some), None, "without step {absent}");
        }
        // Woken before its release: by a signal.
        let early =
            [(0, 990, TimerEvent::Interrupt), (0, 999, waking()), (0, 1_003, switch("x", 3))];
        assert_eq!(matched(&early), None);
    }

    #[test]
    fn a_thread_that_was_awake_at_its_release_has_no_legs() {
        let late = [
            (0, 1_600, switch("spin", 9)),
            (0, 1_610, TimerEvent::Interrupt),
            (0, 1_620, waking()),
            (0, 1_630, switch("swapper/0", 0)),
        ];
        assert_eq!(matched(&late), None, "its timer was set when its release had passed");
        let mut before = late.to_vec();
        before[0].1 = 900;
        assert!(matched(&before).is_some());
    }

    #[test]
    fn steps_of_one_activation_are_not_those_of_the_next() {
        let mut paths = Paths::default();
        for (at, seen) in [
            (1_001, TimerEvent::Interrupt),
            (1_002, waking()),
            (1_003, switch("x", 3)),
            (3_001, TimerEvent::Interrupt),
            (3_002, waking()),
            (3_003, switch("y", 4)),
        ] {
            paths.push(0, at, seen);
        }
        paths.follow(3_003);
        let mut counted = Paths::default();
        counted.push(0, 1_001, TimerEvent::Interrupt);
        counted.push(0, 1_002, waking());
        counted.follow(3_003);
        assert_eq!(counted.of(PROBE, Some(1_000), 2_000), ([1, 0], None));
        assert_eq!(paths.of(PROBE, Some(1_000), 2_000).1.unwrap().before.name, "x");
        assert_eq!(paths.of(PROBE, Some(3_000), 3_010).1, None, "its order is not known yet");
        assert_eq!(paths.of(PROBE, Some(2_000), 2_010).1, None, "it did not sleep");
        paths.follow(9_000);
        assert_eq!(paths.of(PROBE, Some(4_000), 4_010).1, None, "a switch alone is no wake-up");
    }
}
