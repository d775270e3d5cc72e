//! The longest gap of a map of CPUs: when it was, and who had the CPU in it.

use std::collections::BTreeMap;

use punctual_core::run::CellData;
use punctual_core::units::human_ns;

use super::drawing::Pen;
use super::frame::{LEFT, Upright};
use super::scale::Scale;
use super::sheet::WIDTH;
use super::theme::Colour;
use super::typeface::{self, LARGEST};
use crate::describe::steal_then;
use crate::subject::Subject;
use crate::words;

/// Its outline in the map.
pub const MARK: Pen = Pen::line("longest", Colour::Text, 1.6);

/// What is shorter is drawn so wide, or it could not be seen.
const LEAST: f64 = 3.0;

/// An actor that had so much of a gap had all of it: the rest is the way into the kernel and back.
const ALL: f64 = 0.98;

/// The longest time in which a thread of the cell wanted a CPU that it did not have, ns after the
/// start of the cell.
pub struct LongestGap {
    pub cpu: u32,
    pub from: u64,
    pub to: u64,
    /// Who had the CPU meanwhile, with the time, ns; the longest first.
    pub owners: Vec<(u32, u64)>,
}

impl LongestGap {
    /// The first of the longest samples of a cell with a map; none if its CPU is not known.
    pub fn of(subject: &Subject<'_>) -> Option<Self> {
        let data = subject.data;
        if data.intervals.is_empty() {
            return None;
        }
        let samples = data.threads.iter().enumerate().flat_map(|(number, thread)| {
            thread.primary().outliers.iter().map(move |one| (one.latency, one.at, number))
        });
        let (length, to, thread) =
            samples.min_by_key(|(length, at, _)| (std::cmp::Reverse(*length), *at))?;
        // A sample is recorded when it is over.
        let from = to.checked_sub(u64::try_from(length).ok()?)?;
        let own = format!("thread {thread}");
        let own = data.actors.iter().find(|(_, name)| **name == own).map(|(actor, _)| *actor);
        let bound = subject.latency.threads.get(thread).and_then(|one| one.placement.cpu);
        let cpu = cpu_of(data, own, from, to).or(bound)?;
        Some(Self { cpu, from, to, owners: owners(data, own, cpu, (from, to)) })
    }

    /// `longest gap 3.012 ms: spin`, and how much of it that was if it was not all.
    pub fn text(&self, subject: &Subject<'_>) -> String {
        let noun = words::clean(&subject.latency.primary.noun);
        let time = |ns: u64| human_ns(i64::try_from(ns).unwrap_or(i64::MAX));
        let length = self.to - self.from;
        let whole = format!("longest {noun} {}", time(length));
        match self.owners.first() {
            None => whole,
            Some((actor, ns)) => {
                let name = name_of(subject.data, *actor);
                match *ns as f64 >= ALL * length as f64 {
                    true => format!("{whole}: {name}"),
                    false => format!("{whole}, of that {name} {}", time(*ns)),
                }
            }
        }
    }

    /// Its place in a map, wide enough to be seen.
    pub fn ends(&self, time: &Scale) -> [f64; 2] {
        let (left, right) = (time.map(self.from as f64), time.map(self.to as f64));
        let spare = (LEAST - (right - left)).max(0.0) / 2.0;
        [left - spare, right + spare]
    }

    /// A line from its name down to it.
    pub fn line(&self, subject: &Subject<'_>, time: &Scale) -> Upright {
        let [left, right] = self.ends(time);
        let text = self.text(subject);
        let label = cut(&text, WIDTH - LEFT);
        Upright { x: f64::midpoint(left, right), paint: MARK, label }
    }

    /// That the hypervisor may have had the CPU, if it gave time to others then.
    pub fn steal(&self, subject: &Subject<'_>) -> Option<String> {
        steal_then(subject.cell, subject.data, self.to)
    }
}

/// A text in bold type, cut to its room.
fn cut(text: &str, room: f64) -> String {
    typeface::wrapped(text, room, LARGEST, 1).pop().unwrap_or_default()
}

/// The CPU that the thread had before the gap, or after it: in a map of gaps only, that on which
/// somebody had all of it.
fn cpu_of(data: &CellData, own: Option<u32>, from: u64, to: u64) -> Option<u32> {
    let mut of_own = data.intervals.iter().filter(|one| Some(one.actor) == own);
    let before = of_own.clone().find(|one| one.to == from);
    if let Some(known) = before.or_else(|| of_own.find(|one| one.from == to)) {
        return Some(known.cpu);
    }
    let mut begun = data.intervals.iter().filter(|one| one.from == from);
    let ended = |cpu: u32| data.intervals.iter().any(|one| one.cpu == cpu && one.to == to);
    begun.find(|one| ended(one.cpu)).map(|one| one.cpu)
}

fn owners(data: &CellData, own: Option<u32>, cpu: u32, (from, to): (u64, u64)) -> Vec<(u32, u64)> {
    let mut times: BTreeMap<u32, u64> = BTreeMap::new();
    let others = data.intervals.iter().filter(|one| one.cpu == cpu && Some(one.actor) != own);
    for one in others {
        let ns = one.to.min(to).saturating_sub(one.from.max(from));
        if ns > 0 {
            *times.entry(one.actor).or_default() += ns;
        }
    }
    let mut owners: Vec<_> = times.into_iter().collect();
    owners.sort_by_key(|(actor, ns)| (std::cmp::Reverse(*ns), *actor));
    owners
}

pub fn name_of(data: &CellData, actor: u32) -> String {
    match data.actors.get(&actor) {
        Some(name) => words::clean(name).into_owned(),
        None => format!("actor {actor}"),
    }
}
