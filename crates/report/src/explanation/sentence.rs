//! A sample in a sentence: where the time went, what held the kernel, what would help.

use punctual_core::explanation::{Chosen, Explained, GuestThread, Held, Hold, Milestone};
use punctual_core::preemption::Model;

use super::site::{self, Kind, Site};
use super::threads;
use super::times::{
    IDLE, Section, foremost, function_name, held_ns, length, longest, most_of, own, own_all,
    sections, sum,
};
use crate::words;

/// Why a sample was late.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// What took the time, in one sentence without a full stop.
    pub sentence: String,
    /// The setting of the kernel that would have helped, and how; of the worst samples only,
    /// since what is typical is no fault.
    pub remedy: Option<&'static str>,
}

/// The cause of a sample's latency on a kernel with this preemption model.
#[must_use]
pub fn cause(sample: &Explained, model: Model) -> Cause {
    let late = format!("{} late", length(sample.latency_ns));
    let Some(leg) = longest(sample) else {
        return Cause { sentence: format!("{late}; its legs are not known"), remedy: None };
    };
    let holds =
        [Hold::Interrupts, Hold::Scheduler, Hold::Preferred].map(|how| held(sample, how, &leg));
    if sample.idle && holds == [None; 3] {
        return idle(sample, &late);
    }
    let found = Found { sample, leg, site: site::of_leg(sample, &leg), model, holds };
    let first = if sample.idle { format!("{late}; the CPU was idle, then ") } else { late + ": " };
    let stands_out = leg.ns().saturating_mul(2) >= sample.latency_ns;
    let most = if stands_out { "" } else { "no leg is most of it, the longest " };
    let functions = functions(&own(sample, leg.from, leg.to), found.function());
    let remedy = found.remedy().filter(|_| stands_out && sample.chosen == Chosen::Worst);
    Cause { sentence: first + most + &found.words() + &functions, remedy }
}

/// The hold of a kind that covers at least half of a leg.
fn held<'a>(sample: &'a Explained, how: Hold, leg: &Section) -> Option<&'a Held> {
    let part = |held: &&Held| held_ns(held, leg.from, leg.to);
    let of_kind = sample.held.iter().filter(|held| held.how == how);
    of_kind.max_by_key(part).filter(|held| part(held).saturating_mul(2) >= leg.ns())
}

/// Nothing else ran: the latency is that of the path itself.
fn idle(sample: &Explained, late: &str) -> Cause {
    let asleep =
        |own: &[(String, u64)]| own.iter().find(|(name, _)| name == IDLE).map_or(0, |(_, ns)| *ns);
    let all = own_all(sample);
    let slept = asleep(&all);
    let path = length(sample.latency_ns.saturating_sub(slept));
    let busy = |leg: &Section| leg.ns().saturating_sub(asleep(&own(sample, leg.from, leg.to)));
    let legs = sections(sample).into_iter().map(|leg| (leg.until, busy(&leg)));
    let longest = legs.rev().max_by_key(|(_, ns)| *ns);
    let longest = longest.map_or_else(String::new, |(until, ns)| {
        format!(", the longest leg {} with {}", words::leg_name(until), length(ns))
    });
    let before =
        if slept > 0 { format!("{} until it woke up, ", length(slept)) } else { String::new() };
    let busy: Vec<_> = all.into_iter().filter(|(name, _)| name != IDLE).collect();
    let functions = functions(&busy, "");
    let remedy = "Zero in /dev/cpu_dma_latency, held open, keeps a CPU from deep sleep.";
    let helps = slept.saturating_mul(2) >= sample.latency_ns && sample.chosen == Chosen::Worst;
    Cause {
        sentence: format!(
            "{late}; the CPU was idle: {before}{path} of the path itself{longest}{functions}"
        ),
        remedy: helps.then_some(remedy),
    }
}

/// `, most of it A (45 %) and B (30 %)`; nothing if the only one was named already.
fn functions(own: &[(String, u64)], named: &str) -> String {
    let whole = sum(own);
    if foremost(own, whole).iter().all(|(name, _)| name == named) {
        return String::new();
    }
    most_of(own, whole).map_or_else(String::new, |most| format!(", {most}"))
}

/// What is known of the longest leg.
struct Found<'a> {
    sample: &'a Explained,
    leg: Section,
    site: Option<Site>,
    model: Model,
    /// With interrupts off, without a call of the scheduler, and with others preferred.
    holds: [Option<&'a Held>; 3],
}

impl Found<'_> {
    /// The function that the sentence names before it comes to the list.
    fn function(&self) -> &str {
        self.site.as_ref().map_or("", |site| site.function.as_str())
    }

    /// ` in copy_process of system call clone`.
    fn place(&self) -> String {
        let Some(site) = &self.site else { return String::new() };
        // Threads of the kernel have said who they are, and others that were preferred will be named.
        let is_of_process = matches!(site.kind, Kind::Call | Kind::Fault | Kind::Unknown)
            && self.holds[2].is_none();
        let thread = threads::foremost(self.sample, self.leg.from, self.leg.to);
        let by = thread.filter(|thread| is_of_process && thread.pid != 0);
        let by = by.map_or_else(String::new, |by| format!(" by {}", threads::name(by)));
        format!(" in {}{by}", site.words())
    }

    /// The thread that the scheduler preferred for most of the leg, if it has a name.
    fn preferred(&self) -> Option<&GuestThread> {
        let measured = threads::measured(self.sample)?;
        let thread = threads::foremost(self.sample, self.leg.from, self.leg.to)?;
        (thread.pid != 0 && thread.pid != measured.pid).then_some(thread)
    }

    fn is_in(&self, kinds: &[Kind]) -> bool {
        self.site.as_ref().is_some_and(|site| kinds.contains(&site.kind))
    }

    fn words(&self) -> String {
        let (ns, place) = (length(self.leg.ns()), self.place());
        let [interrupts, scheduler, preferred] = self.holds;
        if let Some(held) = interrupts {
            let [from, to] = [&held.began_in, &held.ended_in].map(|name| function_name(name));
            return format!("{ns} with interrupts off from {from} to {to}{place}");
        }
        match self.leg.until {
            Milestone::Interrupt => {
                format!("{ns}{place} until the timer's interrupt, though nothing held it off")
            }
            Milestone::Wakeup => {
                format!("{ns} in the handler of its interrupt before it woke the thread")
            }
            Milestone::Schedule if preferred.is_some() => {
                let other = self.preferred().map(threads::described);
                let other = other.unwrap_or_else(|| "another thread".to_owned());
                format!("{ns}{place} while the scheduler preferred {other}")
            }
            Milestone::Schedule => {
                let why =
                    if scheduler.is_some() { self.without_scheduler() } else { String::new() };
                let place = if place.is_empty() { " until the scheduler" } else { &place };
                format!("{ns}{place}{why}")
            }
            Milestone::Switch => format!("{ns} in the scheduler before it switched"),
            Milestone::User => format!("{ns} from the switch to its own code{place}"),
            Milestone::Clock => format!("{ns} in its own code before it read the clock{place}"),
        }
    }

    /// Why nothing called the scheduler.
    fn without_scheduler(&self) -> String {
        let model = self.model;
        match model {
            _ if self.is_in(&[Kind::Softirq, Kind::Interrupt]) => {
                " before it came to the scheduler".to_owned()
            }
            Model::None | Model::Voluntary => {
                format!(" under preempt={model} (no scheduling point)")
            }
            Model::Full => " under preempt=full (preemption off)".to_owned(),
            Model::Lazy => " under preempt=lazy (nothing called the scheduler)".to_owned(),
            Model::Rt => " under PREEMPT_RT (preemption off)".to_owned(),
            Model::Unknown => " (nothing called the scheduler)".to_owned(),
        }
    }

    fn remedy(&self) -> Option<&'static str> {
        let is_rt = self.model == Model::Rt;
        if let [Some(held), ..] = self.holds {
            let is_lock = held.began_in.contains("lock_irq");
            return (is_lock && !is_rt)
                .then_some("Under PREEMPT_RT most spinlocks leave interrupts on.");
        }
        if self.leg.until != Milestone::Schedule {
            return None;
        }
        match self.holds {
            [.., Some(_)] => {
                return Some(
                    "A thread of the same or a higher priority runs first, under every model: give this \
                 one a higher priority, or that one a lower.",
                );
            }
            [_, None, _] => return None,
            _ => {}
        }
        match self.model {
            _ if self.is_in(&[Kind::Softirq]) => (!is_rt).then_some(
                "Nothing preempts a softirq; under PREEMPT_RT a thread of higher priority does.",
            ),
            _ if self.is_in(&[Kind::Interrupt]) => (!is_rt).then_some(
                "Nothing preempts an interrupt; with threadirqs or PREEMPT_RT most run in threads.",
            ),
            Model::None | Model::Voluntary => Some(
                "preempt=full would have switched here unless below a spinlock, PREEMPT_RT below \
                 most of those too.",
            ),
            Model::Full => {
                Some("Preemption was off, as below a spinlock; PREEMPT_RT preempts most of those.")
            }
            // A thread without such a policy waits for the tick.
            Model::Lazy => Some(
                "For a thread with a real-time policy, preemption was off, as below a spinlock; \
                 PREEMPT_RT preempts most of those.",
            ),
            Model::Rt => Some(
                "PREEMPT_RT leaves preemption off below raw spinlocks and where code asks for it: \
                 this is such a place.",
            ),
            Model::Unknown => None,
        }
    }
}
