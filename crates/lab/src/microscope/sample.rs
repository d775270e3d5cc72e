//! One sample, from the events before it: legs, who held it up, what ran.
//!
//! The clock reading ties the board's time to the count of instructions: going back from there,
//! each instruction took the same time, until the CPU was idle. So the release, which is the
//! reading minus the latency, lies at an instruction, or in an idle stretch.

use std::collections::HashMap;

use anyhow::Result;
use punctual_core::explanation::{Chosen, Explained, Held, Hold, Leg, Milestone, StackSpan, Turn};
use punctual_observer::event::{Event, Kind};

use super::course::{BoardTime, Course};
use super::daif::Spot;
use super::functions::{Function, Functions, Role};
use super::masked;
use super::stacks::{Stacks, Stretch};
use super::tasks;

/// Stretches without interrupts after the wake-up are told from this part of the latency on: one in
/// so many. Shorter ones are in every system call.
const LONG: u64 = 10;

/// What the record says of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Recorded {
    /// Why it is explained.
    pub(super) chosen: Chosen,
    /// When its clock was read, ns since the start of the cell.
    pub(super) at_ns: u64,
    /// Its latency, ns.
    pub(super) latency_ns: u64,
    /// Releases that it missed.
    pub(super) missed: u64,
}

/// Explains a sample by the events before it, in the order of time.
///
/// # Errors
/// The events do not reach back to the release, or no clock was read.
pub(super) fn explain(
    events: &[Event],
    recorded: Recorded,
    instruction_ns: u64,
    functions: &Functions,
) -> Result<Explained> {
    let mut clock = BoardTime::default();
    let events: Vec<Event> = events.iter().map(|event| clock.correct(*event, functions)).collect();
    let course = Course::of(&events, recorded.latency_ns, instruction_ns, functions)?;
    let executed = Executed::of(course, recorded);
    let (course, legs) = (&executed.course, executed.course.legs());
    let (spans, names) = executed.spans();
    Ok(Explained {
        chosen: recorded.chosen,
        at_ns: recorded.at_ns,
        latency_ns: recorded.latency_ns,
        missed: recorded.missed,
        idle: course.release.is_idle,
        instructions: course.release.instructions,
        held: executed.held(&legs),
        legs,
        spans,
        turns: executed.turns(),
        functions: names,
    })
}

/// What was executed, up to the clock reading.
struct Executed<'a> {
    course: Course<'a>,
    recorded: Recorded,
    /// Where interrupts were turned off before the release, and where on before the timer's came
    /// (arm64).
    masked: Option<(Spot, Spot)>,
    /// What is known of the stack, from the release and from where they were turned off on.
    stretches: Vec<Stretch>,
}

impl<'a> Executed<'a> {
    fn of(course: Course<'a>, recorded: Recorded) -> Self {
        let functions = course.functions;
        let switches = functions.switches().filter(|_| !course.release.is_idle);
        let masked = switches.and_then(|switches| {
            masked::held(course.until_arrival()?, course.time, functions, switches)
        });
        let mut stacks = Stacks::new(functions);
        let turns = tasks::turns(course.events);
        let mut coming = turns.iter().peekable();
        let mut thread = None;
        let first = course.known_stack(masked.map_or(u64::MAX, |(off, _)| off.at));
        for event in &course.events[first..] {
            while let Some((_, next)) = coming.next_if(|(from, _)| *from <= event.at) {
                thread = next.as_ref().map(|thread| thread.name.as_str());
            }
            match event.kind() {
                Some(Kind::Block) => stacks.block_of(thread, event.at, event.address()),
                Some(Kind::Idle) => stacks.idle(event.at),
                _ => {}
            }
        }
        Self { course, recorded, masked, stretches: stacks.finish() }
    }

    /// The stack at a count of instructions.
    fn stack_at(&self, at: u64) -> &[Function] {
        let after = self.stretches.partition_point(|stretch| stretch.from <= at);
        after.checked_sub(1).map_or(&[], |place| &self.stretches[place].stack)
    }

    fn held(&self, legs: &[Leg]) -> Vec<Held> {
        let mut held = Vec::new();
        let end =
            |until: Milestone| legs.iter().find(|leg| leg.until == until).map(|leg| leg.end_ns);
        if let Some(interrupt) = end(Milestone::Interrupt)
            && !self.course.release.is_idle
        {
            held.extend(self.interrupts_off(interrupt));
        }
        if let (Some(wakeup), Some(schedule)) = (end(Milestone::Wakeup), end(Milestone::Schedule)) {
            let preferred = self.course.preferred_ns();
            let called = preferred.unwrap_or(schedule);
            if called > wakeup && !self.course.release.is_idle {
                held.extend(self.not_scheduled(Hold::Scheduler, wakeup, called));
                held.extend(self.interrupts_off_between(wakeup, called));
            }
            if let Some(preferred) = preferred {
                held.extend(self.not_scheduled(Hold::Preferred, preferred, schedule));
            }
        }
        held
    }

    /// The stretch without interrupts in which the release lies, which ends before the timer's
    /// interrupt: before 5.12 the kernel turns them on by `popf` too, which the observer cannot see.
    fn interrupts_off(&self, interrupt: u64) -> Option<Held> {
        if self.course.functions.switches().is_some() {
            let (off, on) = self.masked?;
            return Some(Held {
                how: Hold::Interrupts,
                from_ns: Some(self.course.time.of(off.at)),
                to_ns: self.course.time.of(on.at),
                began_in: self.in_whose_name(off),
                ended_in: self.in_whose_name(on),
            });
        }
        let toggles =
            |event: &&Event| matches!(event.kind(), Some(Kind::InterruptsOff | Kind::InterruptsOn));
        let (before, after) = self.course.events.split_at(self.course.release.first);
        let off =
            before.iter().rev().find(toggles).filter(|e| e.kind() == Some(Kind::InterruptsOff))?;
        let on = after.iter().find(|event| event.kind() == Some(Kind::InterruptsOn))?;
        if self.course.time.since(on.at) > interrupt {
            return None;
        }
        let name = |event: &Event| self.name_of(self.course.functions.at(event.address()).0);
        Some(Held {
            how: Hold::Interrupts,
            from_ns: Some(self.course.time.of(off.at)),
            to_ns: self.course.time.of(on.at),
            began_in: name(off),
            ended_in: name(on),
        })
    }

    /// The long stretches without interrupts in which code that is no handler waits itself, or lets
    /// the scheduler wait, between two times, ns since the release. None if not all that turns
    /// interrupts on is seen.
    fn interrupts_off_between(&self, from: u64, to: u64) -> Vec<Held> {
        let mut all = Vec::new();
        if !self.course.functions.sees_interrupts_on() {
            return all;
        }
        let (time, functions) = (self.course.time, self.course.functions);
        let mut since: Option<Event> = None;
        for event in self.course.events {
            let at = time.of(event.at);
            if at < i64::try_from(from).unwrap_or(i64::MAX) {
                continue;
            }
            if at > i64::try_from(to).unwrap_or(i64::MAX) {
                break;
            }
            let function = || functions.at(event.address()).0;
            match event.kind() {
                // A handler that turns them off has not turned them on before.
                Some(Kind::InterruptsOff) if since.is_none() && !self.is_handler(event.at) => {
                    since = Some(*event);
                }
                Some(Kind::InterruptsOn) => {
                    let Some(off) = since.take() else { continue };
                    let ns = at.saturating_sub(time.of(off.at)).unsigned_abs();
                    if ns.saturating_mul(LONG) >= self.recorded.latency_ns {
                        all.push(Held {
                            how: Hold::Interrupts,
                            from_ns: Some(time.of(off.at)),
                            to_ns: at,
                            began_in: self.name_of(functions.at(off.address()).0),
                            ended_in: self.name_of(function()),
                        });
                    }
                }
                // They were on: the way back to a process turns them on too.
                Some(Kind::Interrupt) => since = None,
                Some(Kind::Block) if functions.role(function()) == Role::User => since = None,
                _ => {}
            }
        }
        all
    }

    /// Whether a handler of interrupts runs, or a softirq on top of one.
    fn is_handler(&self, at: u64) -> bool {
        let role = |f: &Function| self.course.functions.role(*f);
        self.stack_at(at).iter().any(|f| matches!(role(f), Role::Entry | Role::TimerEntry))
    }

    /// A stretch between the wake-up and the scheduler that chooses the thread: in whose code the
    /// CPU was, and what called the scheduler.
    fn not_scheduled(&self, how: Hold, from: u64, to: u64) -> Option<Held> {
        let count = |ns: u64| {
            let left = self.recorded.latency_ns.saturating_sub(ns);
            self.course.time.end.saturating_sub(left / self.course.time.instruction_ns.max(1))
        };
        let name = |f: &Function| self.course.functions.name(*f);
        let caller = |stack: &[Function]| {
            let caller = stack.iter().rev().map(name).find(|name| !name.contains("schedule"));
            // Nothing but the scheduler is known of a thread that went to sleep and stayed there.
            caller.or_else(|| stack.first().map(name)).unwrap_or_default().to_owned()
        };
        let stack = self.stack_at(count(from));
        let entry = stack.iter().rposition(|f| self.course.functions.role(*f) == Role::TimerEntry);
        let began_in = match entry {
            Some(0) => "user space".to_owned(),
            Some(place) => self.name_of(stack[place - 1]),
            None if how == Hold::Preferred => caller(stack),
            None => return None,
        };
        Some(Held {
            how,
            from_ns: i64::try_from(from).ok(),
            to_ns: i64::try_from(to).ok()?,
            began_in,
            ended_in: caller(self.stack_at(count(to))),
        })
    }

    /// Compilers make functions of their own of what arm64's header has as inline ones.
    fn in_whose_name(&self, place: Spot) -> String {
        let is_helper = |f: &Function| {
            let name = self.course.functions.name(*f);
            name.starts_with("arch_local_irq_") || name.starts_with("local_daif_")
        };
        let function = self.course.functions.at(place.address).0;
        let caller = self.stack_at(place.at).iter().rev().find(|f| !is_helper(f));
        let named = if is_helper(&function) { caller.copied() } else { None };
        self.name_of(named.unwrap_or(function))
    }

    fn name_of(&self, function: Function) -> String {
        self.course.functions.name(function).to_owned()
    }

    /// Which threads ran since the release.
    fn turns(&self) -> Vec<Turn> {
        let all = tasks::turns(self.course.events);
        let Some((first, _)) = all.first() else { return Vec::new() };
        let mut turns: Vec<Turn> = Vec::new();
        let known = self.known();
        let mut add = |end: u64, thread| {
            let end_ns = self.course.time.since(end);
            if end > known && end_ns > turns.last().map_or(0, |turn| turn.end_ns) {
                turns.push(Turn { end_ns, thread });
            }
        };
        add(*first, None);
        let ends = all.iter().skip(1).map(|(from, _)| *from).chain([self.course.time.end]);
        for ((_, thread), end) in all.iter().zip(ends) {
            add(end, thread.clone());
        }
        turns
    }

    /// From which count of instructions on counts stand for times: counts before the last idle
    /// stretch stand for others.
    fn known(&self) -> u64 {
        let events = self.course.events;
        let resumed = events.iter().rposition(|event| event.kind() == Some(Kind::Resume));
        resumed.map_or(0, |place| events[place].at)
    }

    /// What ran since the release, with the names of its functions.
    fn spans(&self) -> (Vec<StackSpan>, Vec<String>) {
        let mut numbers: HashMap<Function, u32> = HashMap::new();
        let mut names = Vec::new();
        let mut spans: Vec<StackSpan> = Vec::new();
        let mut add = |end_ns: u64, stack: &[Function]| {
            let begin = spans.last().map_or(0, |span| span.end_ns);
            if end_ns <= begin {
                return;
            }
            let number = |f: &Function| {
                *numbers.entry(*f).or_insert_with(|| {
                    names.push(self.name_of(*f));
                    u32::try_from(names.len() - 1).unwrap_or(u32::MAX)
                })
            };
            spans.push(StackSpan { end_ns, stack: stack.iter().map(number).collect() });
        };
        let known = self.known();
        if self.course.release.is_idle {
            add(self.course.time.since(known), &[]);
        }
        let ends = self.stretches.iter().skip(1).map(|next| next.from);
        for (stretch, end) in self.stretches.iter().zip(ends.chain([self.course.time.end])) {
            if end > known {
                add(self.course.time.since(end), &stretch.stack);
            }
        }
        (spans, names)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::functions::tests::{address, functions};
    use super::super::programs::GuestProgram;
    use super::super::tasks::tests::switched;
    use super::*;

    const NS: u64 = 4;

    /// Events at these counts; names of kinds, else places of blocks.
    pub(in super::super) fn events(functions: &Functions, course: &[(u64, &str)]) -> Vec<Event> {
        let event = |(at, what): &(u64, &str)| {
            let (kind, place) = match what.split_once(' ') {
                Some(("off", place)) => (Kind::InterruptsOff, place),
                Some(("on", place)) => (Kind::InterruptsOn, place),
                Some(("irq", place)) => (Kind::Interrupt, place),
                _ if *what == "idle" => (Kind::Idle, "user"),
                _ if *what == "resume" => (Kind::Resume, "user"),
                _ if *what == "clock" => (Kind::Clock, "user"),
                _ => (Kind::Block, *what),
            };
            Event::new(*at, kind, address(functions, place))
        };
        course.iter().map(event).collect()
    }

    /// What each function executed itself, ns.
    fn own_times(sample: &Explained) -> HashMap<&str, u64> {
        let mut times = HashMap::new();
        let mut begin = 0;
        for span in &sample.spans {
            let function = *span.stack.last().unwrap() as usize;
            *times.entry(sample.functions[function].as_str()).or_default() += span.end_ns - begin;
            begin = span.end_ns;
        }
        times
    }

    pub(in super::super) fn recorded(latency_ns: u64) -> Recorded {
        Recorded { chosen: Chosen::Worst, at_ns: 5_000, latency_ns, missed: 0 }
    }

    /// An interrupt that comes while another process is in a system call without interrupts.
    pub(in super::super) const BUSY: [(u64, &str); 20] = [
        (1_000, "user"),
        (1_010, "entry+0"),
        (1_020, "read+0"),
        (1_050, "off _raw_spin_lock_irqsave+4"),
        (1_060, "copy+0"),
        // The release: 1000 instructions before the clock.
        (1_300, "read+4"),
        (1_310, "on _raw_spin_unlock_irqrestore+4"),
        (1_311, "irq asm_sysvec_apic_timer_interrupt+0"),
        (1_311, "asm_sysvec_apic_timer_interrupt+0"),
        (1_320, "hrtimer_interrupt+0"),
        (1_330, "hrtimer_wakeup+0"),
        (1_340, "try_to_wake_up+0"),
        (1_400, "read+8"),
        (1_800, "exit_to_user_mode_prepare+0"),
        (1_810, "__schedule+0"),
        (1_900, "__switch_to_asm+0"),
        (1_910, "__switch_to+0"),
        (1_950, "__schedule+50"),
        (2_050, "user"),
        (2_100, "clock"),
    ];

    #[test]
    fn legs_add_up_and_say_who_held_it_up() {
        let functions = functions();
        let found = explain(&events(&functions, &BUSY), recorded(4_000), NS, &functions).unwrap();
        let ends: Vec<_> = found.legs.iter().map(|leg| (leg.until, leg.end_ns)).collect();
        let expected = [
            (Milestone::Interrupt, 844),
            (Milestone::Wakeup, 960),
            (Milestone::Schedule, 2_840),
            (Milestone::Switch, 3_200),
            (Milestone::User, 3_800),
            (Milestone::Clock, 4_000),
        ];
        assert_eq!(ends, expected);
        assert_eq!((found.instructions, found.idle), (1_000, false));
        let held: Vec<_> = found.held.iter().map(|h| (h.how, h.from_ns, h.to_ns)).collect();
        let off = (Hold::Interrupts, Some(-200), 840);
        assert_eq!(held, [off, (Hold::Scheduler, Some(960), 2_840)]);
        let names = |held: &Held| (held.began_in.clone(), held.ended_in.clone());
        let of = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(
            names(&found.held[0]),
            of("_raw_spin_lock_irqsave", "_raw_spin_unlock_irqrestore")
        );
        assert_eq!(names(&found.held[1]), of("read", "exit_to_user_mode_prepare"));
    }

    #[test]
    fn spans_have_no_gap_and_belong_to_functions() {
        let functions = functions();
        let found = explain(&events(&functions, &BUSY), recorded(4_000), NS, &functions).unwrap();
        assert_eq!(found.spans.last().unwrap().end_ns, 4_000);
        assert!(found.spans.is_sorted_by_key(|span| span.end_ns));
        let times = own_times(&found);
        assert_eq!(times.values().sum::<u64>(), 4_000);
        // From the release to its return, and from there to the interrupt; then after it.
        assert_eq!(times["copy"], 800);
        assert_eq!(times["read"], 44 + 1_600);
    }

    /// The threads that had the CPU, and until when.
    fn turns(course: &[Event], latency_ns: u64, functions: &Functions) -> Vec<(u64, String)> {
        let found = explain(course, recorded(latency_ns), NS, functions).unwrap();
        let name = |turn: &Turn| turn.thread.as_ref().map_or_else(String::new, |t| t.name.clone());
        found.turns.iter().map(|turn| (turn.end_ns, name(turn))).collect()
    }

    #[test]
    fn turns_have_no_gap_and_end_with_the_clock() {
        let functions = functions();
        let with = |extra: &[(u64, &str)]| {
            let mut course = events(&functions, &BUSY);
            for (at, name) in extra {
                let place = course.partition_point(|event| event.at < *at);
                course.splice(place..place, switched(*at, name, 120, 1));
            }
            course
        };
        let all = with(&[(1_040, "reader"), (1_900, "probe")]);
        let expected = [(3_200, "reader".to_owned()), (4_000, "probe".to_owned())];
        assert_eq!(turns(&all, 4_000, &functions), expected);
        // Who had the CPU before the first switch that is known is not known.
        let one = with(&[(1_900, "probe")]);
        let expected = [(3_200, String::new()), (4_000, "probe".to_owned())];
        assert_eq!(turns(&one, 4_000, &functions), expected);
        assert_eq!(turns(&with(&[]), 4_000, &functions), []);
    }

    #[test]
    fn code_of_a_process_has_the_names_of_its_program() {
        let mut functions = functions();
        let program = |thread: &str| GuestProgram {
            thread: thread.to_owned(),
            functions: vec![(0x40_1000, 0x10, "work".to_owned())],
        };
        functions.add_programs(vec![program("reader"), program("other")]);
        let mut course = events(&functions, &BUSY);
        for (at, name) in [(1_900, "probe"), (900, "reader")] {
            let place = course.partition_point(|event| event.at < at);
            course.splice(place..place, switched(at, name, 120, 1));
        }
        let user = Event::new(1_700, Kind::Block, 0x40_1004);
        let place = course.partition_point(|event| event.at < 1_700);
        course.insert(place, user);
        let found = explain(&course, recorded(4_000), NS, &functions).unwrap();
        let named = |name: &str| found.functions.iter().any(|known| known == name);
        // The thread that was measured is another program.
        assert!(named("[reader] work") && named("[user]") && !named("[other] work"));
    }

    #[test]
    fn a_release_into_an_idle_cpu_is_where_it_goes_on() {
        let functions = functions();
        let mut course = vec![(900, "read+0"), (1_300, "idle"), (1_300, "resume")];
        course.extend_from_slice(&BUSY[7..]);
        // 800 instructions since it went on, but 10 us since the release.
        let found =
            explain(&events(&functions, &course), recorded(10_000), NS, &functions).unwrap();
        assert_eq!((found.instructions, found.idle), (800, true));
        assert_eq!(found.spans[0], StackSpan { end_ns: 6_800, stack: Vec::new() });
        assert_eq!(found.legs[0], Leg { until: Milestone::Interrupt, end_ns: 6_844 });
        assert!(found.held.is_empty(), "nobody holds up what was idle: {:?}", found.held);
    }

    #[test]
    fn nothing_holds_interrupts_off_that_ends_after_the_interrupt() {
        // Before Linux 5.12 they may have been turned on by popf, which is no event.
        let functions = functions();
        let mut course = BUSY.to_vec();
        course[6].1 = "read+8";
        course.insert(12, (1_390, "on _raw_spin_unlock_irqrestore+4"));
        let found = explain(&events(&functions, &course), recorded(4_000), NS, &functions).unwrap();
        assert!(found.held.iter().all(|held| held.how == Hold::Scheduler), "{:?}", found.held);
    }

    #[test]
    fn interrupts_that_are_off_for_long_after_the_wake_up_are_told_too() {
        let functions = functions();
        let held = |more: &[(u64, &'static str)], functions: &Functions| {
            let mut course = BUSY.to_vec();
            course.splice(13..13, more.iter().copied());
            let found = explain(&events(functions, &course), recorded(4_000), NS, functions);
            let held = found.unwrap().held;
            let off = held.into_iter().filter(|held| held.how == Hold::Interrupts).skip(1);
            off.map(|held| (held.from_ns, held.to_ns, held.ended_in)).collect::<Vec<_>>()
        };
        // 200 instructions of the wait, in the system call.
        let off = (1_450, "off _raw_spin_lock_irqsave+4");
        let on = (1_650, "on _raw_spin_unlock_irqrestore+4");
        let expected = [(Some(1_400), 2_200, "_raw_spin_unlock_irqrestore".to_owned())];
        assert_eq!(held(&[off, on], &functions), expected);
        // Off twice is off once.
        let again = (1_500, "off _raw_spin_lock_irqsave+4");
        assert_eq!(held(&[off, again, on], &functions), expected);
        // Every system call turns them off for a moment.
        assert_eq!(held(&[(1_640, off.1), on], &functions), []);
        // An interrupt or a process shows that they were on meanwhile.
        let handler = (1_500, "irq asm_sysvec_apic_timer_interrupt+0");
        assert_eq!(held(&[off, handler, on], &functions), []);
        assert_eq!(held(&[off, (1_500, "user"), (1_510, "entry+0"), on], &functions), []);
    }

    #[test]
    fn an_instruction_that_faults_takes_no_time() {
        let functions = functions();
        let mut course = BUSY.to_vec();
        course.insert(14, (1_805, "irq asm_exc_page_fault+0"));
        let found = explain(&events(&functions, &course), recorded(4_000), NS, &functions).unwrap();
        // One instruction less lies between the wake-up and the clock.
        assert_eq!(found.legs[1], Leg { until: Milestone::Wakeup, end_ns: 964 });
    }

    #[test]
    fn what_is_not_known_is_not_made_up() {
        let functions = functions();
        let all = events(&functions, &BUSY);
        let error = |events: &[Event], latency| {
            explain(events, recorded(latency), NS, &functions).unwrap_err().to_string()
        };
        assert!(error(&all, 40_000).contains("begins after the release"));
        assert!(error(&all[..19], 4_000).contains("clock was not read"));
        let awake = explain(&all, recorded(100), NS, &functions).unwrap();
        assert_eq!(awake.legs, [Leg { until: Milestone::Clock, end_ns: 100 }]);
    }
}
