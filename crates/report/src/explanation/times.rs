//! What the time of a sample went to: legs, stacks and functions.

use std::collections::BTreeMap;

use punctual_core::explanation::{
    Chosen, Explained, ExplainedCell, Held, Leg, Milestone, Unexplained,
};
use punctual_core::text::clean_start;
use punctual_core::units::human_ns;

/// Stands for the time in which the CPU was idle.
pub(crate) const IDLE: &str = "(idle)";
/// Stands for functions that have no name.
const UNKNOWN: &str = "(unknown)";
/// Longer names are cut, characters.
const LONGEST_NAME: usize = 120;

/// A length as it is printed.
pub(crate) fn length(ns: u64) -> String {
    human_ns(i64::try_from(ns).unwrap_or(i64::MAX))
}

/// `44.1 %`.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { "-".to_owned() } else { format!("{:.1} %", share(part, whole)) }
}

/// Parts of a hundred; 0 of nothing.
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

/// What a sample of a cell is called: `typical`, `worst`, `2nd worst`, `chosen`.
pub(crate) fn rank_name(cell: &ExplainedCell, number: usize) -> &'static str {
    let chosen = cell.samples.get(number).map_or(Chosen::Worst, |sample| sample.chosen);
    named(chosen, worst_before(cell, number))
}

/// How many of the worst samples come before one that was explained.
fn worst_before(cell: &ExplainedCell, number: usize) -> usize {
    let explained = cell.samples.iter().take(number).map(|sample| sample.chosen);
    let others = cell.unexplained.iter().filter(|other| other.after <= number);
    let all = explained.chain(others.map(|other| other.chosen));
    all.filter(|chosen| *chosen == Chosen::Worst).count()
}

/// A sample of a cell, explained or not.
pub(crate) enum Asked<'a> {
    /// By its number.
    Explained(usize, &'a Explained),
    /// By its name.
    Unexplained(&'static str, &'a Unexplained),
}

/// All samples of a cell in the order in which they were asked for.
pub(crate) fn asked(cell: &ExplainedCell) -> Vec<Asked<'_>> {
    let mut all: Vec<Asked<'_>> = Vec::new();
    let mut others = cell.unexplained.iter().peekable();
    let mut worst = 0;
    for number in 0..=cell.samples.len() {
        let is_last = number == cell.samples.len();
        while let Some(other) = others.next_if(|other| is_last || other.after <= number) {
            all.push(Asked::Unexplained(named(other.chosen, worst), other));
            worst += usize::from(other.chosen == Chosen::Worst);
        }
        if let Some(sample) = cell.samples.get(number) {
            all.push(Asked::Explained(number, sample));
            worst += usize::from(sample.chosen == Chosen::Worst);
        }
    }
    all
}

/// The name of a sample before which so many of the worst ones come.
fn named(chosen: Chosen, before: usize) -> &'static str {
    const RANKS: [&str; 9] = [
        "worst",
        "2nd worst",
        "3rd worst",
        "4th worst",
        "5th worst",
        "6th worst",
        "7th worst",
        "8th worst",
        "9th worst",
    ];
    match chosen {
        Chosen::Typical => "typical",
        Chosen::At => "chosen",
        Chosen::Worst => RANKS.get(before).copied().unwrap_or("later"),
    }
}

/// A leg with both of its ends, ns since the release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Section {
    pub until: Milestone,
    pub from: u64,
    pub to: u64,
}

impl Section {
    pub fn ns(&self) -> u64 {
        self.to - self.from
    }
}

/// The legs in the order of time.
pub(crate) fn sections(sample: &Explained) -> Vec<Section> {
    let mut from = 0;
    let section = |leg: &Leg| {
        let to = leg.end_ns.max(from);
        let section = Section { until: leg.until, from, to };
        from = to;
        section
    };
    sample.legs.iter().map(section).collect()
}

/// When the CPU changes to the thread's stack, which may begin with the same functions as the one
/// before; never if that is not known.
pub(crate) fn switch_ns(sample: &Explained) -> u64 {
    let switch = sections(sample).into_iter().find(|section| section.until == Milestone::Switch);
    switch.map_or(u64::MAX, |section| section.to)
}

/// The longest leg, the first of several; none if all are empty.
pub(crate) fn longest(sample: &Explained) -> Option<Section> {
    let sections = sections(sample).into_iter().filter(|section| section.ns() > 0);
    sections.rev().max_by_key(Section::ns)
}

/// The length of a leg; none if the sample does not have it.
pub(crate) fn leg_ns(sample: &Explained, until: Milestone) -> Option<u64> {
    let sections = sections(sample).into_iter().filter(|section| section.until == until);
    sections.map(|section| section.ns()).reduce(|all, one| all.saturating_add(one))
}

/// The part of the latency that no leg covers.
pub(crate) fn rest_ns(sample: &Explained) -> u64 {
    let end = sections(sample).last().map_or(0, |last| last.to);
    sample.latency_ns.saturating_sub(end)
}

/// From when to when the kernel was held, ns since the release; what was before it is left out.
pub(crate) fn held_between(held: &Held) -> (u64, u64) {
    let begin = held.from_ns.map_or(0, |ns| u64::try_from(ns).unwrap_or(0));
    (begin, u64::try_from(held.to_ns).unwrap_or(0))
}

/// A while with one stack, ns since the release.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stretch<'a> {
    pub from: u64,
    pub to: u64,
    pub stack: &'a [u32],
}

impl Stretch<'_> {
    pub fn ns(&self) -> u64 {
        self.to - self.from
    }
}

/// What ran between two times, in order.
pub(crate) fn stretches(
    sample: &Explained,
    from: u64,
    to: u64,
) -> impl Iterator<Item = Stretch<'_>> {
    let mut before = 0;
    sample.spans.iter().filter_map(move |span| {
        let begin = before;
        before = before.max(span.end_ns);
        let (from, to) = (begin.max(from), before.min(to));
        (from < to).then_some(Stretch { from, to, stack: &span.stack })
    })
}

/// The names of functions by their numbers, as they may be printed.
#[derive(Debug)]
pub(crate) struct Names(Vec<String>);

impl Names {
    pub fn of(functions: &[String]) -> Self {
        Self(functions.iter().map(|name| function_name(name)).collect())
    }

    pub fn get(&self, number: u32) -> &str {
        self.0.get(number as usize).map_or(UNKNOWN, String::as_str)
    }

    /// The function that runs with a stack.
    pub fn running(&self, stack: &[u32]) -> &str {
        stack.last().map_or(IDLE, |number| self.get(*number))
    }
}

/// A function's name as it may be printed.
pub(crate) fn function_name(name: &str) -> String {
    if name.is_empty() { UNKNOWN.to_owned() } else { clean_start(name, LONGEST_NAME) }
}

/// Time by function between two times, ns: what each executed itself, and the idle time. The
/// longest first.
pub(crate) fn own(sample: &Explained, from: u64, to: u64) -> Vec<(String, u64)> {
    own_of(sample, stretches(sample, from, to))
}

/// The same of a time that consists of these.
pub(crate) fn own_of<'a>(
    sample: &Explained,
    all: impl Iterator<Item = Stretch<'a>>,
) -> Vec<(String, u64)> {
    let names = Names::of(&sample.functions);
    let mut times: BTreeMap<&str, u64> = BTreeMap::new();
    for stretch in all {
        *times.entry(names.running(stretch.stack)).or_default() += stretch.ns();
    }
    let mut all: Vec<_> = times.into_iter().map(|(name, ns)| (name.to_owned(), ns)).collect();
    // Sorted by name already, and the sort is stable.
    all.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    all
}

/// All of [`own`].
pub(crate) fn own_all(sample: &Explained) -> Vec<(String, u64)> {
    own(sample, 0, u64::MAX)
}

/// The functions that took most of a time: at most three, each at least a tenth of it.
pub(crate) fn foremost(own: &[(String, u64)], whole: u64) -> Vec<(String, u64)> {
    let tenth = |ns: u64| ns > 0 && ns.saturating_mul(10) >= whole;
    let functions = own.iter().filter(|(name, ns)| name != IDLE && tenth(*ns));
    functions.take(3).cloned().collect()
}

/// All of some times.
pub(crate) fn sum(own: &[(String, u64)]) -> u64 {
    own.iter().fold(0, |sum, (_, ns)| sum.saturating_add(*ns))
}

/// `most of it A (45 %) and B (30 %)`; none if no function has much of it.
pub(crate) fn most_of(own: &[(String, u64)], whole: u64) -> Option<String> {
    let foremost = foremost(own, whole);
    let names: Vec<_> =
        foremost.iter().map(|(name, ns)| format!("{name} ({:.0} %)", share(*ns, whole))).collect();
    let listed = match names.as_slice() {
        [] => return None,
        [others @ .., last] if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => names.concat(),
    };
    let most = if sum(&foremost).saturating_mul(2) > whole { "most of it" } else { "of it" };
    Some(format!("{most} {listed}"))
}

/// The first of a list, and the number and sum of those behind them.
pub(crate) fn first(own: &[(String, u64)], most: usize) -> (&[(String, u64)], usize, u64) {
    // One more line says less than the name that it stands for.
    let most = if own.len() == most + 1 { own.len() } else { most.min(own.len()) };
    let (shown, others) = own.split_at(most);
    (shown, others.len(), sum(others))
}
