//! Where an arm64 kernel turns interrupts off and on, found in its code, and followed from block to
//! block.
//!
//! Half of what turns them on is `msr daif, xN`, whose value nobody outside sees. But it is what
//! `mrs xN, daif` has read before, and the two are nested like brackets (`local_irq_save`,
//! `local_irq_restore`; arch/arm64/include/asm/irqflags.h, daifflags.h). So the state is kept where
//! it is read and taken again where it is restored. It is known for certain in user space, where an
//! interrupt arrives, and after each constant. Only who had interrupts on may sleep, so that is what
//! is restored of before (`rt_spin_lock` does), and nothing else is carried over a change of threads.
//! Where a restore has no counterpart otherwise, nothing is known until the next certain place.
//!
//! An interrupt that is pending is a witness of its own: it arrives after the very instruction that
//! turns interrupts on.

use punctual_observer::event::{Event, Kind};

use super::course::Time;
use super::daif::{Spot, Switch, Switched, Switches};
use super::functions::{Functions, Role};

/// What is known of interrupts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IrqState {
    Unknown,
    On,
    Off(Spot),
}

/// The state of one thread's way through the kernel.
struct IrqFollower {
    state: IrqState,
    /// Where it was kept and not restored yet.
    saves: Vec<IrqState>,
    /// In what was interrupted.
    interrupted: Vec<IrqState>,
    /// In what was interrupted, and where it was kept, before everything that is known.
    outermost: IrqState,
    unsaved: IrqState,
}

impl IrqFollower {
    fn new() -> Self {
        let (saves, interrupted) = (Vec::new(), Vec::new());
        let unknown = IrqState::Unknown;
        Self { state: unknown, saves, interrupted, outermost: unknown, unsaved: unknown }
    }

    /// A block begins.
    fn block(&mut self, block: Event, functions: &Functions) {
        let (function, offset) = functions.at(block.address());
        match functions.role(function) {
            Role::User => {
                self.forget();
                self.state = IrqState::On;
                self.unsaved = IrqState::Unknown;
            }
            Role::Switch if offset == 0 => {
                self.forget();
                self.unsaved = IrqState::On;
            }
            role @ (Role::TimerEntry | Role::Syscall | Role::Entry) if offset == 0 => {
                let before = if role == Role::Entry { self.state } else { IrqState::On };
                if before != self.state {
                    // Something was followed wrongly.
                    self.saves.clear();
                    self.unsaved = IrqState::Unknown;
                }
                self.interrupted.push(before);
                self.turn_off(before, Spot { at: block.at, address: block.address() });
            }
            _ => {}
        }
    }

    /// Another thread goes on, or none is in the kernel.
    fn forget(&mut self) {
        self.saves.clear();
        self.interrupted.clear();
        self.outermost = IrqState::On;
    }

    fn turn_off(&mut self, before: IrqState, spot: Spot) {
        self.state = if before == IrqState::On { IrqState::Off(spot) } else { before };
    }

    fn switch(&mut self, executed: &Switched) {
        match executed.switch {
            Switch::Save => self.saves.push(self.state),
            Switch::Off => self.turn_off(self.state, executed.spot),
            Switch::On => self.state = IrqState::On,
            Switch::Restore => self.state = self.saves.pop().unwrap_or(self.unsaved),
            Switch::Inherit => {
                self.state = self.interrupted.last().copied().unwrap_or(self.outermost);
            }
            Switch::Clock => {}
            Switch::Return => self.state = self.interrupted.pop().unwrap_or(self.outermost),
        }
    }
}

/// The stretch without interrupts in which a release lies, by the events up to the block with which
/// the timer's interrupt arrives: where they were turned off, and where on. `None` if there is none,
/// or if it is not known where one begins.
pub(super) fn held(
    events: &[Event],
    time: Time,
    functions: &Functions,
    switches: &Switches,
) -> Option<(Spot, Spot)> {
    let blocks: Vec<Event> =
        events.iter().filter(|event| event.kind() == Some(Kind::Block)).copied().collect();
    let arrival = blocks.last()?.at;
    let mut follower = IrqFollower::new();
    let mut at_release = None;
    let mut last = None;
    for pair in blocks.windows(2) {
        let [block, next] = pair else { continue };
        if time.of(block.at) >= 0 {
            at_release.get_or_insert(follower.state);
        }
        follower.block(*block, functions);
        for executed in switches.executed(*block, next.at) {
            if time.of(executed.spot.at) >= 0 {
                at_release.get_or_insert(follower.state);
            }
            follower.switch(&executed);
            last = Some(executed.spot);
            // The interrupt would have arrived.
            let is_wrong = follower.state == IrqState::On && executed.spot.at + 1 < arrival;
            if is_wrong && at_release.is_some() {
                return None;
            }
        }
    }
    let IrqState::Off(off) = at_release.unwrap_or(follower.state) else { return None };
    let on = last.filter(|place| place.at + 1 == arrival && time.of(place.at) > 0)?;
    Some((off, on))
}

#[cfg(test)]
mod tests {
    use punctual_core::explanation::{Hold, Milestone};

    use super::super::functions::tests::{address, arm64_functions};
    use super::super::sample::explain;
    use super::super::sample::tests::{events, recorded};
    use super::*;

    const NS: u64 = 4;

    /// A kernel whose functions do this at these places.
    fn functions() -> Functions {
        let mut functions = arm64_functions();
        let at = |(place, switch)| (address(&functions, place), switch);
        let mut all: Vec<_> = [
            ("arch_local_irq_save+4", Switch::Save),
            ("arch_local_irq_save+8", Switch::Off),
            ("arch_local_irq_restore+4", Switch::Restore),
            ("el0_svc+4", Switch::On),
            ("el1_abort+4", Switch::Inherit),
            ("cpu_switch_to+4", Switch::Save),
            ("cpu_switch_to+8", Switch::Off),
            ("cpu_switch_to+16", Switch::Restore),
            ("__schedule+8", Switch::Off),
            ("__schedule+80", Switch::On),
            ("ret_to_kernel+4", Switch::Return),
            ("arch_counter_get_cntvct+4", Switch::Clock),
        ]
        .map(at)
        .to_vec();
        all.sort_by_key(|(address, _)| *address);
        functions.set_switches(Switches::made_up(all));
        functions
    }

    /// A system call that saves twice; the release comes before the second.
    const NESTED: [(u64, &str); 22] = [
        (1_000, "user"),
        (1_010, "vector el0t_64_sync+0"),
        (1_020, "el0_svc+0"),
        (1_040, "read+0"),
        (1_090, "arch_local_irq_save+0"),
        (1_093, "read+8"),
        (1_200, "copy+0"),
        (1_300, "arch_local_irq_save+0"),
        (1_303, "copy+8"),
        (1_310, "arch_local_irq_restore+0"),
        (1_312, "copy+16"),
        (1_330, "read+16"),
        (1_340, "arch_local_irq_restore+0"),
        (1_342, "vector el1h_64_irq+0"),
        (1_349, "el1h_64_irq+0"),
        (1_360, "hrtimer_wakeup+0"),
        (1_370, "try_to_wake_up+0"),
        (1_400, "__schedule+0"),
        (1_420, "__switch_to+0"),
        (1_440, "cpu_switch_to+0"),
        (1_470, "user"),
        (1_490, "clock"),
    ];

    fn explained(course: &[(u64, &str)], latency_ns: u64) -> punctual_core::explanation::Explained {
        let functions = functions();
        explain(&events(&functions, course), recorded(latency_ns), NS, &functions).unwrap()
    }

    #[test]
    fn who_holds_interrupts_off_is_known_by_what_was_saved() {
        // The release is at 1250, in the outer of two saved stretches.
        let sample = explained(&NESTED, 960);
        let held = sample.held.iter().find(|held| held.how == Hold::Interrupts).unwrap();
        assert_eq!((held.from_ns, held.to_ns), (Some(-632), 364));
        assert_eq!((held.began_in.as_str(), held.ended_in.as_str()), ("read", "read"));
        // And at 1325, after the inner was restored.
        let inner = explained(&NESTED, 660);
        let held = inner.held.iter().find(|held| held.how == Hold::Interrupts).unwrap();
        assert_eq!((held.from_ns, held.to_ns), (Some(-932), 64));
        let ends: Vec<_> = sample.legs.iter().map(|leg| (leg.until, leg.end_ns)).collect();
        let expected = [
            (Milestone::Interrupt, 368),
            (Milestone::Wakeup, 480),
            (Milestone::Schedule, 600),
            (Milestone::Switch, 760),
            (Milestone::User, 880),
            (Milestone::Clock, 960),
        ];
        assert_eq!(ends, expected);
    }

    #[test]
    fn what_is_not_certain_is_not_said() {
        let says = |course: &[(u64, &str)], latency| {
            let sample = explained(course, latency);
            sample.held.iter().filter(|held| held.how == Hold::Interrupts).count()
        };
        assert_eq!(says(&NESTED, 960), 1);
        // An interrupt that is on its way before the release waits for nobody.
        assert_eq!(says(&NESTED, 4 * 149), 0);
        // Interrupts were on before the release, by what is known, and still none came.
        assert_eq!(says(&NESTED, 4 * 420), 0);
        let mut late = NESTED;
        for event in &mut late[13..] {
            event.0 += 20;
        }
        assert_eq!(says(&late, 1_040), 0, "it came later than they were turned on");
        assert_eq!(says(&NESTED[5..], 960), 0, "what is known begins in between");
    }

    #[test]
    fn a_fault_inherits_and_a_thread_that_slept_had_interrupts_on() {
        let mut follower = IrqFollower::new();
        let functions = functions();
        let mut passes = |course: &[(u64, &str)]| {
            let blocks = events(&functions, course);
            for pair in blocks.windows(2) {
                follower.block(pair[0], &functions);
                for executed in functions.switches().unwrap().executed(pair[0], pair[1].at) {
                    follower.switch(&executed);
                }
            }
            match follower.state {
                IrqState::Off(spot) => Some(spot.at),
                IrqState::On => None,
                IrqState::Unknown => Some(u64::MAX),
            }
        };
        assert_eq!(passes(&[(0, "read+0"), (9, "read+4")]), Some(u64::MAX));
        assert_eq!(passes(&[(9, "user"), (10, "vector el0t_64_irq+0"), (20, "read+0")]), Some(10));
        assert_eq!(passes(&[(20, "el0_svc+0"), (30, "read+0")]), None);
        assert_eq!(passes(&[(30, "arch_local_irq_save+0"), (33, "read+4")]), Some(32));
        assert_eq!(passes(&[(40, "vector el1h_64_sync+0"), (50, "el1_abort+0")]), Some(32));
        assert_eq!(passes(&[(50, "el1_abort+0"), (60, "read+0")]), Some(32), "as it was");
        assert_eq!(passes(&[(60, "ret_to_kernel+0"), (62, "read+8")]), Some(32));
        assert_eq!(passes(&[(70, "arch_local_irq_restore+0"), (72, "read+8")]), None);
        assert_eq!(passes(&[(80, "__schedule+0"), (90, "__switch_to+0")]), Some(82));
        assert_eq!(passes(&[(90, "cpu_switch_to+0"), (93, "cpu_switch_to+12")]), Some(82));
        assert_eq!(passes(&[(93, "cpu_switch_to+12"), (95, "__schedule+50")]), Some(82));
        assert_eq!(passes(&[(95, "__schedule+80"), (99, "read+8")]), None);
        // What this thread saved before it slept.
        assert_eq!(passes(&[(99, "arch_local_irq_restore+0"), (101, "read+8")]), None);
        // What nobody saved.
        assert_eq!(
            passes(&[(200, "user"), (201, "arch_local_irq_restore+0"), (203, "read+8")]),
            Some(u64::MAX)
        );
    }

    #[test]
    fn a_clock_that_a_system_call_reads_is_found() {
        let mut course = NESTED.to_vec();
        course.truncate(21);
        course.extend([
            (1_480, "vector el0t_64_sync+0"),
            (1_485, "ktime_get_ts64+0"),
            (1_488, "arch_counter_get_cntvct+0"),
            (1_489, "arch_counter_get_cntvct+4"),
            (1_495, "user"),
        ]);
        let sample = explained(&course, 956);
        assert_eq!(sample.legs.last().unwrap().end_ns, 956);
        assert_eq!(
            sample.legs[4].end_ns,
            956 - 4 * 19,
            "user space goes on before its system call"
        );
        let functions = functions();
        let without = events(&functions, &course[..21]);
        assert!(explain(&without, recorded(100), NS, &functions).is_err());
    }

    #[test]
    fn a_fault_takes_no_time() {
        let mut course = NESTED.to_vec();
        course.insert(17, (1_390, "el0_da+0"));
        assert_eq!(explained(&course, 960).legs[1].end_ns, 484);
        course[17].1 = "el1_abort+0";
        assert_eq!(explained(&course, 960).legs[1].end_ns, 484);
    }
}
