//! The way from a release to the reading of the clock: where the release lies among events, and
//! the legs of the latency.

use anyhow::{Context, Result, bail};
use punctual_core::explanation::{Leg, Milestone};
use punctual_observer::event::{Event, Kind};

use super::functions::{Function, Functions, Role};

/// What the observer counts, as the board's time: an instruction that faults takes no time, and
/// the observer has counted it once for each try.
#[derive(Default)]
pub(super) struct BoardTime {
    /// Instructions that faulted.
    faults: u64,
}

impl BoardTime {
    /// The next event, at its instruction of the board's time.
    pub(super) fn correct(&mut self, event: Event, functions: &Functions) -> Event {
        let handles = match event.kind() {
            Some(Kind::Fault) => {
                self.faults += 1;
                None
            }
            Some(Kind::Interrupt) => Some(Role::FaultEntry),
            Some(Kind::Block) if functions.switches().is_some() => Some(Role::Fault),
            _ => None,
        };
        if let Some(handles) = handles {
            let (function, offset) = functions.at(event.address());
            let is_first = handles == Role::FaultEntry || offset == 0;
            self.faults += u64::from(is_first && functions.role(function) == handles);
        }
        Event { at: event.at.saturating_sub(self.faults), word: event.word }
    }
}

/// The axis of time of one sample.
#[derive(Clone, Copy)]
pub(super) struct Time {
    /// Instructions executed when the clock was read.
    pub(super) end: u64,
    latency_ns: u64,
    pub(super) instruction_ns: u64,
}

impl Time {
    /// Time since the release, ns, if the CPU was not idle between there and the clock reading.
    pub(super) fn of(self, at: u64) -> i64 {
        let before = self.end.saturating_sub(at).saturating_mul(self.instruction_ns);
        let length = i64::try_from(self.latency_ns).unwrap_or(i64::MAX);
        length.saturating_sub(i64::try_from(before).unwrap_or(i64::MAX))
    }

    /// The same, but never before the release.
    pub(super) fn since(self, at: u64) -> u64 {
        self.of(at).max(0).unsigned_abs()
    }
}

/// Where the release lies.
pub(super) struct Due {
    /// The first event that begins at or after it.
    pub(super) first: usize,
    pub(super) is_idle: bool,
    /// Executed since then.
    pub(super) instructions: u64,
}

impl Due {
    fn of(events: &[Event], time: Time) -> Result<Self> {
        // Before an idle stretch the count says nothing about the time.
        let resumed = events.iter().rposition(|event| event.kind() == Some(Kind::Resume));
        let begin = resumed.map_or(0, |place| place + 1);
        let is_idle = resumed.is_some_and(|place| time.of(events[place].at) > 0);
        let is_after = |event: &Event| time.of(event.at) >= 0;
        let offset = events[begin..].partition_point(|event| !is_after(event));
        if resumed.is_none() && offset == 0 {
            bail!("what is known begins after the release");
        }
        let executed = match resumed {
            Some(place) if is_idle => time.end - events[place].at,
            _ => time.latency_ns / time.instruction_ns.max(1),
        };
        Ok(Self { first: begin + offset, is_idle, instructions: executed })
    }
}

/// What was executed, up to the clock reading. Legs need no more of the kernel's blocks than those
/// at which [`is_milestone`] functions begin, and the first of user space after such.
pub(super) struct Course<'a> {
    pub(super) events: &'a [Event],
    pub(super) time: Time,
    pub(super) functions: &'a Functions,
    pub(super) release: Due,
    /// Of the events since the release: the function of each one that is a block, and how far
    /// inside it begins.
    at: Vec<Option<(Function, u64)>>,
}

/// The events at which the legs end of a thread that was asleep.
struct Way {
    interrupt: usize,
    wakeup: usize,
    schedule: usize,
    switch: usize,
    user: usize,
}

/// Whether legs begin or end where functions of this role are entered, or are counted by it.
pub(super) fn is_milestone(role: Role) -> bool {
    use Role::{Fault, ReadsClock, Scheduler, Switch, TimerEntry, TimerWakes, Wakeup};
    let is_leg = matches!(role, TimerEntry | TimerWakes | Wakeup | Scheduler | Switch);
    is_leg || matches!(role, Fault | ReadsClock)
}

/// The block with which a system call reads the clock for a process, if it does on an arm64 kernel:
/// musl makes no use of a vDSO without `DT_HASH`, as that of 6.12. The reading begins a block, since
/// `isb` comes before it (`arch_counter_get_cntvct`).
fn read_by_call(events: &[Event], functions: &Functions) -> Option<usize> {
    let clocks: Vec<u64> = functions.switches()?.clocks().collect();
    let blocks = |event: &Event| event.kind() == Some(Kind::Block);
    let is_call = |event: &Event| {
        let (function, offset) = functions.at(event.address());
        blocks(event) && offset == 0 && functions.role(function) == Role::ReadsClock
    };
    let call = events.iter().rposition(is_call)?;
    let reads = |event: &Event| blocks(event) && clocks.binary_search(&event.address()).is_ok();
    events[call..].iter().position(reads).map(|place| call + place)
}

/// The function of an event that is a block, and how far inside it begins.
fn place(event: &Event, functions: &Functions) -> Option<(Function, u64)> {
    (event.kind() == Some(Kind::Block)).then(|| functions.at(event.address()))
}

impl<'a> Course<'a> {
    /// Of a sample with this latency, by the events before it, in the order of time.
    ///
    /// # Errors
    /// The events do not reach back to the release, or no clock was read.
    pub(super) fn of(
        events: &'a [Event],
        latency_ns: u64,
        instruction_ns: u64,
        functions: &'a Functions,
    ) -> Result<Self> {
        let clock = events.iter().rposition(|event| event.kind() == Some(Kind::Clock));
        let clock = clock.or_else(|| read_by_call(events, functions));
        let clock = clock.context("the clock was not read before this sample")?;
        let (events, time) =
            (&events[..=clock], Time { end: events[clock].at, latency_ns, instruction_ns });
        let release = Due::of(events, time)?;
        let at = events[release.first..].iter().map(|event| place(event, functions)).collect();
        Ok(Self { events, time, functions, release, at })
    }

    fn at(&self, event: usize) -> Option<(Function, u64)> {
        match event.checked_sub(self.release.first) {
            Some(since) => self.at[since],
            None => place(&self.events[event], self.functions),
        }
    }

    /// The last event before the release, and before `at`, whose stack does not depend on what came
    /// before: a block of a process. The first one if there is none.
    pub(super) fn known_stack(&self, at: u64) -> usize {
        let before = &self.events[..self.release.first];
        let before = &before[..before.partition_point(|event| event.at < at)];
        let is_user = |event: &Event| {
            place(event, self.functions).is_some_and(|(f, _)| self.functions.role(f) == Role::User)
        };
        before.iter().rposition(is_user).unwrap_or(0)
    }

    /// The first event in this range at which a function of this role is entered.
    fn entered(&self, role: Role, mut range: std::ops::Range<usize>) -> Option<usize> {
        range.find(|event| self.enters(*event, role))
    }

    fn entered_last(&self, role: Role, range: std::ops::Range<usize>) -> Option<usize> {
        range.rev().find(|event| self.enters(*event, role))
    }

    fn enters(&self, event: usize, role: Role) -> bool {
        self.at(event).is_some_and(|(f, offset)| offset == 0 && self.functions.role(f) == role)
    }

    fn role(&self, event: usize) -> Option<Role> {
        self.at(event).map(|(function, _)| self.functions.role(function))
    }

    fn is_user(&self, event: usize) -> bool {
        self.role(event) == Some(Role::User)
    }

    /// Where the legs end of a thread that was asleep when the release came.
    fn way(&self) -> Option<Way> {
        let (from, to) = (self.release.first, self.events.len());
        let timer = self.entered(Role::TimerWakes, from..to)?;
        let switch = self.entered_last(Role::Switch, from..to).filter(|switch| timer < *switch)?;
        // One that was entered before the release may serve it too: then nothing was waited for.
        let interrupt = self.arrival(timer).unwrap_or(from);
        let wakeup = self.entered(Role::Wakeup, timer..switch).unwrap_or(timer);
        let switch = self.entered_first_of_last_switch(switch);
        let schedule = self.entered_last(Role::Scheduler, wakeup..switch).unwrap_or(switch);
        let user = (switch..to).find(|event| self.is_user(*event)).unwrap_or(to - 1);
        Some(Way { interrupt, wakeup, schedule, switch, user })
    }

    /// The legs. If the thread was not asleep when the release came, there is only the last one.
    pub(super) fn legs(&self) -> Vec<Leg> {
        let mut legs = Vec::new();
        let mut begin = 0;
        let mut add = |until: Milestone, at: u64| {
            let end_ns = self.time.since(at).clamp(begin, self.time.latency_ns);
            begin = end_ns;
            legs.push(Leg { until, end_ns });
        };
        if let Some(way) = self.way() {
            add(Milestone::Interrupt, self.events[way.interrupt].at);
            add(Milestone::Wakeup, self.events[way.wakeup].at);
            add(Milestone::Schedule, self.events[way.schedule].at);
            add(Milestone::Switch, self.events[way.switch].at);
            add(Milestone::User, self.events[way.user].at);
        }
        add(Milestone::Clock, self.time.end);
        legs
    }

    /// Since when the scheduler prefers other threads to the one that was woken, ns since the
    /// release: since the wake-up if that did not ask for a switch, or since it has chosen another.
    /// `None` if it chooses the thread at once.
    pub(super) fn preferred_ns(&self) -> Option<u64> {
        let way = self.way()?;
        let since = if self.is_outranked(&way) {
            way.wakeup
        } else {
            let other = self.entered(Role::Switch, way.wakeup..way.schedule)?;
            self.entered_last(Role::Scheduler, way.wakeup..other).unwrap_or(other)
        };
        Some(self.time.since(self.events[since].at))
    }

    /// Whether the wake-up compared the thread with one that ran, and asked for no switch.
    fn is_outranked(&self, way: &Way) -> bool {
        let is_waker = |event: &usize| self.role(*event) == Some(Role::TimerWakes);
        let after = way.wakeup..way.schedule;
        let end = after.clone().find(is_waker).unwrap_or(after.end);
        let enters = |role| self.entered(role, after.start..end).is_some();
        enters(Role::Compares) && !enters(Role::AsksForSwitch)
    }

    /// Where the interrupt arrives that serves the timer.
    fn arrival(&self, timer: usize) -> Option<usize> {
        self.entered_last(Role::TimerEntry, 0..timer)
    }

    /// The events up to the arrival of the timer's interrupt, with which it ends.
    pub(super) fn until_arrival(&self) -> Option<&'a [Event]> {
        let woken = self.entered(Role::TimerWakes, self.release.first..self.events.len())?;
        Some(&self.events[..=self.arrival(woken)?])
    }

    /// `__switch_to_asm` jumps to `__switch_to`: both are one switch.
    fn entered_first_of_last_switch(&self, last: usize) -> usize {
        let function = |event: usize| self.at(event).map(|(function, _)| function);
        let is_switch = |event: &usize| {
            function(*event).is_some_and(|f| self.functions.role(f) == Role::Switch)
        };
        let before = (0..last).rev().filter(|event| self.at(*event).is_some());
        let entered = before.take_while(is_switch).find(|event| self.enters(*event, Role::Switch));
        entered.filter(|event| function(*event) != function(last)).unwrap_or(last)
    }
}

#[cfg(test)]
mod tests {
    use punctual_core::explanation::{Held, Hold};

    use super::super::functions::tests::functions;
    use super::super::sample::explain;
    use super::super::sample::tests::{BUSY, events, recorded};
    use super::*;

    /// Who held up a sample of 4 us with this course, and from where to where.
    fn held(course: &[(u64, &str)]) -> Vec<(Hold, Option<i64>, i64)> {
        let functions = functions();
        let found = explain(&events(&functions, course), recorded(4_000), 4, &functions).unwrap();
        found.held.iter().map(|Held { how, from_ns, to_ns, .. }| (*how, *from_ns, *to_ns)).collect()
    }

    /// `BUSY` with these in the wake-up.
    fn woken(places: &[&'static str]) -> Vec<(u64, &'static str)> {
        let mut course = BUSY.to_vec();
        let more = (1_341..).zip(places.iter().copied());
        course.splice(12..12, more);
        course
    }

    #[test]
    fn an_instruction_that_is_tried_again_takes_no_time() {
        let functions = functions();
        let mut time = BoardTime::default();
        let at = |time: &mut BoardTime, kind, at| {
            time.correct(Event::new(at, kind, 0x1000), &functions).at
        };
        assert_eq!(at(&mut time, Kind::Idle, 10), 10);
        assert_eq!(at(&mut time, Kind::Fault, 21), 20);
        assert_eq!(at(&mut time, Kind::Interrupt, 21), 20);
        assert_eq!(at(&mut time, Kind::Fault, 31), 29);
    }

    const OFF: (Hold, Option<i64>, i64) = (Hold::Interrupts, Some(-200), 840);

    #[test]
    fn a_wake_up_that_asks_for_no_switch_leaves_another_thread_running() {
        let compared = ["check_preempt_curr_rt+0", "try_to_wake_up+8", "hrtimer_wakeup+8"];
        // What asks for a switch later is not the wake-up.
        let later = [&compared[..], &["resched_curr+0"]].concat();
        for course in [woken(&compared), woken(&later)] {
            assert_eq!(held(&course), [OFF, (Hold::Preferred, Some(960), 2_840)]);
        }
        let asks = ["check_preempt_curr_rt+0", "resched_curr+0", "hrtimer_wakeup+8"];
        // A thread without a real-time priority is not compared.
        for places in [&asks[..], &asks[1..], &asks[2..]] {
            assert_eq!(held(&woken(places)), [OFF, (Hold::Scheduler, Some(960), 2_840)]);
        }
    }

    #[test]
    fn a_thread_that_is_chosen_before_is_preferred() {
        let mut course = woken(&["resched_curr+0", "hrtimer_wakeup+8"]);
        let switch = [
            (1_500, "__schedule+0"),
            (1_520, "__switch_to_asm+0"),
            (1_530, "__switch_to+0"),
            (1_540, "__schedule+50"),
            (1_550, "fault+8"),
        ];
        course.splice(15..15, switch);
        let called = (Hold::Scheduler, Some(960), 1_600);
        assert_eq!(held(&course), [OFF, called, (Hold::Preferred, Some(1_600), 2_840)]);
        // Both are woken on an idle CPU: nobody held the scheduler off.
        course.splice(2..7, [(1_300, "idle"), (1_300, "resume")]);
        assert_eq!(held(&course), [(Hold::Preferred, Some(1_600), 2_840)]);
    }
}
