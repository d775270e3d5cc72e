//! A sample in a sentence: where the time went, what held the kernel, what would help.

use punctual_core::explanation::{Chosen, Explained, Milestone};
use punctual_core::preemption::Model;

use super::holder::Holder;
use super::holds::{HeldPart, PartedLeg};
use super::remedy::{self, Remedy};
use super::site::{self, Contexts, Kind, Site};
use super::threads;
use super::times::{
    IDLE, Section, foremost, function_name, length, longest, most_of, own, own_all, own_of,
    sections, sum,
};
use crate::words;

/// Why a sample was late.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// What took the time, in one sentence without a full stop.
    pub sentence: String,
    /// What would have helped against each of what it names, in the same order; of the worst
    /// samples only, since what is typical is no fault.
    pub remedies: Vec<Remedy>,
}

/// The cause of a sample's latency on a kernel with this preemption model.
///
/// A leg that one holder has, but for a fiftieth, is told with its length, any other with the
/// lengths of its parts.
#[must_use]
pub fn cause(sample: &Explained, model: Model) -> Cause {
    let late = format!("{} late", length(sample.latency_ns));
    let Some(longest) = longest(sample) else {
        let sentence = format!("{late}; its legs are not known");
        return Cause { sentence, remedies: Vec::new() };
    };
    let contexts = Contexts::of(sample);
    let parted = |leg| PartedLeg::of(sample, &contexts, leg);
    let legs = sections(sample).into_iter().filter(|leg| leg.ns() > 0);
    let mut legs: Vec<PartedLeg<'_>> = legs.map(parted).collect();
    let slept = asleep_ns(sample);
    let awake = sample.latency_ns.saturating_sub(slept);
    let held: u64 = legs.iter().map(PartedLeg::held_ns).fold(0, u64::saturating_add);
    if sample.idle && held.saturating_mul(2) < awake {
        return idle(sample, &late);
    }
    let is_long = |ns: u64| ns.saturating_mul(10) >= sample.latency_ns;
    let held_up = |leg: &PartedLeg<'_>| sample.chosen != Chosen::Typical && is_long(leg.held_ns());
    legs.retain(|leg| leg.leg == longest || held_up(leg));
    let told: u64 = legs.iter().map(|leg| leg.leg.ns()).fold(0, u64::saturating_add);
    let stands_out = told.saturating_mul(2) >= sample.latency_ns;
    if !stands_out {
        legs.retain(|leg| leg.leg == longest);
    }
    let found = Found { sample, model };
    let first = match (sample.idle, is_long(slept)) {
        (false, _) => late + ": ",
        (true, false) => late + "; the CPU was idle, then ",
        (true, true) => {
            format!("{late}; the CPU was idle: {} until it woke up, then ", length(slept))
        }
    };
    let most = match legs.as_slice() {
        _ if stands_out => "",
        [leg] if leg.is_whole() => "no leg is most of it, the longest ",
        _ => "no leg is most of it, the longest has ",
    };
    let clauses: Vec<String> = legs.iter().map(|leg| found.leg(leg)).collect();
    let remedies = if stands_out { found.remedies(&legs) } else { Vec::new() };
    Cause { sentence: first + most + &clauses.join(", then "), remedies }
}

/// How long the CPU slept, ns.
fn asleep_ns(sample: &Explained) -> u64 {
    asleep(&own_all(sample))
}

fn asleep(own: &[(String, u64)]) -> u64 {
    own.iter().find(|(name, _)| name == IDLE).map_or(0, |(_, ns)| *ns)
}

/// Nothing else ran: the latency is that of the path itself.
fn idle(sample: &Explained, late: &str) -> Cause {
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
    let helps = slept.saturating_mul(2) >= sample.latency_ns && sample.chosen == Chosen::Worst;
    let remedy = Remedy { holds_ns: Vec::new(), text: remedy::DEEP_SLEEP };
    Cause {
        sentence: format!(
            "{late}; the CPU was idle: {before}{path} of the path itself{longest}{functions}"
        ),
        remedies: helps.then_some(remedy).into_iter().collect(),
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

/// A sample whose legs are told.
struct Found<'a> {
    sample: &'a Explained,
    model: Model,
}

impl Found<'_> {
    /// What the parts of a leg were, and how long nobody knows.
    fn leg(&self, leg: &PartedLeg<'_>) -> String {
        // The way that every release takes holds nobody up: the table of legs has its length.
        let is_told = |part: &&HeldPart<'_>| leg.parts.len() == 1 || part.holder != Holder::Path;
        let told = leg.parts.iter().filter(is_told);
        let parts: Vec<String> = told.map(|part| self.part(leg, part)).collect();
        let parts = parts.join(", then ");
        match leg.rest_ns {
            0 => parts,
            rest => format!("{parts}, {} not attributed", length(rest)),
        }
    }

    fn part(&self, leg: &PartedLeg<'_>, part: &HeldPart<'_>) -> String {
        let all = leg.stretches(part);
        let site = site::of(self.sample, &all, all.iter().map(|one| one.ns()).sum());
        let words = self.words(leg, part, &self.place(part, site.as_ref()));
        let pieces = match part.times {
            1 => String::new(),
            times => format!(" in {times} pieces"),
        };
        let named = match part.holder {
            Holder::Timer(function) => function,
            // Of the way itself there is nothing to say but its length.
            Holder::Path if !leg.is_whole() => return words + &pieces,
            _ => site.as_ref().map_or("", |site| site.function.as_str()),
        };
        words + &pieces + &functions(&own_of(self.sample, all.iter().copied()), named)
    }

    fn words(&self, leg: &PartedLeg<'_>, part: &HeldPart<'_>, place: &str) -> String {
        let (ns, until) = (length(part.ns), leg.leg.until);
        let or_until = if place.is_empty() { " until the scheduler" } else { place };
        match part.holder {
            Holder::Masked(held) => {
                let [from, to] = [&held.began_in, &held.ended_in].map(|name| function_name(name));
                format!("{ns} with interrupts off from {from} to {to}{place}")
            }
            Holder::Timer(function) => format!("{ns} in {function}, which another timer calls"),
            Holder::Softirq | Holder::Interrupt(_) => {
                let before = match until {
                    Milestone::Interrupt => " before the timer's interrupt",
                    Milestone::Schedule => " before it came to the scheduler",
                    _ => "",
                };
                format!("{ns}{place}{before}")
            }
            Holder::NotCalled => format!("{ns}{or_until}{}", self.why()),
            Holder::Preferred(thread) => {
                let other = thread.map_or_else(|| "another thread".to_owned(), threads::described);
                format!("{ns}{place} while the scheduler preferred {other}")
            }
            Holder::Path | Holder::Nobody if leg.is_whole() => match until {
                Milestone::Interrupt => {
                    format!("{ns}{place} until the timer's interrupt, though nothing held it off")
                }
                Milestone::Wakeup => {
                    format!("{ns} in the handler of its interrupt before it woke the thread")
                }
                Milestone::Schedule => format!("{ns}{or_until}"),
                Milestone::Switch => format!("{ns} in the scheduler before it switched"),
                Milestone::User => format!("{ns} from the switch to its own code{place}"),
                Milestone::Clock => format!("{ns} in its own code before it read the clock{place}"),
            },
            Holder::Path | Holder::Nobody => format!("{ns} of the path itself"),
        }
    }

    /// ` in copy_process of system call clone`.
    fn place(&self, part: &HeldPart<'_>, site: Option<&Site>) -> String {
        let Some(site) = site else { return String::new() };
        // Threads of the kernel have said who they are, and others that were preferred will be named.
        let is_of_process = matches!(site.kind, Kind::Call | Kind::Fault | Kind::Unknown)
            && !matches!(part.holder, Holder::Preferred(_));
        let thread = threads::foremost(self.sample, part.from, part.to);
        let by = thread.filter(|thread| is_of_process && thread.pid != 0);
        let by = by.map_or_else(String::new, |by| format!(" by {}", threads::name(by)));
        format!(" in {}{by}", site.words())
    }

    /// Why nothing called the scheduler.
    fn why(&self) -> String {
        match self.model {
            model @ (Model::None | Model::Voluntary) => {
                format!(" under preempt={model} (no scheduling point)")
            }
            Model::Full => " under preempt=full (preemption off)".to_owned(),
            Model::Lazy => " under preempt=lazy (nothing called the scheduler)".to_owned(),
            Model::Rt => " under PREEMPT_RT (preemption off)".to_owned(),
            Model::Unknown => " (nothing called the scheduler)".to_owned(),
        }
    }

    fn remedies(&self, legs: &[PartedLeg<'_>]) -> Vec<Remedy> {
        if self.sample.chosen != Chosen::Worst {
            return Vec::new();
        }
        let parts = || legs.iter().flat_map(|leg| &leg.parts);
        let is_one = parts().count() == 1;
        let mut all: Vec<Remedy> = Vec::new();
        for part in parts() {
            let Some(text) = remedy::of(part.holder, self.model) else { continue };
            let held = if is_one { None } else { Some(part.ns) };
            match all.iter_mut().find(|remedy| remedy.text == text) {
                Some(known) => known.holds_ns.extend(held),
                None => all.push(Remedy { holds_ns: held.into_iter().collect(), text }),
            }
        }
        all
    }
}
