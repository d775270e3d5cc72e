//! The time of a cell without that in which its process was stopped.

use std::borrow::Cow;

use crate::block::Spell;
use crate::schema::{Cell, Condition, STOPPED, Stop, StoppedBy};
use crate::units::{SECOND_NS, grouped, stretch};

/// More stops than this are told together.
const TOLD_EACH: usize = 3;

/// The intervals of a cell's stops, joined where they overlap and in order.
#[derive(Debug, Clone, Default)]
pub(super) struct Stopped(Vec<(u64, u64)>);

impl Stopped {
    pub(super) fn of(stops: &[Stop]) -> Self {
        let interval =
            |stop: &Stop| Some((stop.from_ns, stop.from_ns.saturating_add(stop.length_ns?)));
        let mut intervals: Vec<_> = stops.iter().filter_map(interval).collect();
        intervals.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::with_capacity(intervals.len());
        for (from, to) in intervals {
            match joined.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => joined.push((from, to)),
            }
        }
        Self(joined)
    }

    /// How long it was stopped until an instant, both ns.
    pub(super) fn until(&self, at: u64) -> u64 {
        let before = self.0.iter().take_while(|(from, _)| *from < at);
        before.fold(0, |sum, (from, to)| sum.saturating_add((*to).min(at) - from))
    }

    /// Spells at the times that they would have without the stops.
    pub(super) fn without<'a>(&self, spells: &'a [Spell]) -> Cow<'a, [Spell]> {
        if self.0.is_empty() {
            return Cow::Borrowed(spells);
        }
        let moved = |at: u64| at.saturating_sub(self.until(at));
        let move_one =
            |spell: &Spell| Spell { from: moved(spell.from), to: moved(spell.to), ..*spell };
        Cow::Owned(spells.iter().map(move_one).collect())
    }
}

/// Says of a cell when it was stopped, as its `stops` have it.
pub fn note_stops(cell: &mut Cell) {
    cell.conditions.retain(|condition| condition.id != STOPPED);
    let id = || STOPPED.to_owned();
    let texts = match cell.cost() {
        Some(_) => told_of_cost(&cell.stops).into_iter().collect(),
        None if cell.stops.len() > TOLD_EACH => vec![together(&cell.stops)],
        None => cell.stops.iter().map(told).collect(),
    };
    cell.conditions.extend(texts.into_iter().map(|text| Condition { id: id(), text }));
}

fn told(stop: &Stop) -> String {
    let from = second(stop.from_ns);
    let Some(length_ns) = stop.length_ns else {
        return format!(
            "stopped after second {from} for a time that no sample shows ({}): none is left out",
            witness(stop)
        );
    };
    format!(
        "stopped for {} from second {from} ({}): {}",
        stretch(length_ns),
        witness(stop),
        left_out(std::slice::from_ref(stop))
    )
}

/// Nothing tells for how long: repetitions have no time of their own.
fn told_of_cost(stops: &[Stop]) -> Option<String> {
    let first = stops.iter().min_by_key(|stop| stop.from_ns)?;
    let times = match stops.len() {
        1 => String::new(),
        more => format!(" {} times, first", grouped(more as u64)),
    };
    Some(format!(
        "stopped{times} after second {} ({}): a repetition of then has the time of the stop in it, which \
         widens the spread, and shifts the median if there are few: run it again",
        second(first.from_ns),
        witness(first)
    ))
}

fn together(stops: &[Stop]) -> String {
    let stopped_ns = Stopped::of(stops).until(u64::MAX);
    let mut witnesses: Vec<String> = stops.iter().map(witness).collect();
    witnesses.sort_unstable();
    witnesses.dedup();
    format!(
        "stopped {} times, for {} in all, first from second {} ({}): {}",
        grouped(stops.len() as u64),
        stretch(stopped_ns),
        second(stops.iter().map(|stop| stop.from_ns).min().unwrap_or(0)),
        witnesses.join("; "),
        left_out(stops)
    )
}

fn witness(stop: &Stop) -> String {
    match stop.by {
        StoppedBy::Signal => "a SIGCONT came after it".to_owned(),
        StoppedBy::Freezer => format!("control group {} was frozen", stop.name),
        StoppedBy::Debugger => format!("a debugger was attached, {}", stop.name),
    }
}

fn left_out(stops: &[Stop]) -> String {
    let sum = |of: fn(&Stop) -> u64| stops.iter().map(of).fold(0, u64::saturating_add);
    let count = |number: u64, one: &str| match number {
        1 => format!("1 {one}"),
        more => format!("{} {one}s", grouped(more)),
    };
    let samples = count(sum(|stop| stop.samples), "sample");
    let missed = count(sum(|stop| stop.missed), "missed release");
    format!("{samples} and {missed} are left out")
}

#[allow(clippy::cast_precision_loss, reason = "a tenth of a second needs no 16th digit")]
fn second(ns: u64) -> String {
    format!("{:.1}", ns as f64 / SECOND_NS as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Latency, What};

    fn stop(from_ns: u64, length_ns: Option<u64>) -> Stop {
        Stop { from_ns, length_ns, samples: 1, missed: 1_999, max_ns: 7, ..Stop::default() }
    }

    #[test]
    fn stops_that_overlap_count_once() {
        let stopped =
            Stopped::of(&[stop(50, Some(10)), stop(10, Some(5)), stop(12, Some(8)), stop(1, None)]);
        assert_eq!(stopped.0, [(10, 20), (50, 60)]);
        let until: Vec<_> = [5, 10, 14, 20, 50, 55, 99].map(|at| stopped.until(at)).into();
        assert_eq!(until, [0, 0, 4, 10, 10, 15, 20]);
        let spell = |from, to| Spell { thread: 0, from, to, late: 1 };
        assert_eq!(
            stopped.without(&[spell(5, 12), spell(30, 70)])[..],
            [spell(5, 10), spell(20, 50)]
        );
    }

    #[test]
    fn each_stop_is_told_and_many_are_told_together() {
        let mut cell = Cell::new(
            String::new(),
            String::new(),
            String::new(),
            1,
            What::Latency(Latency::default()),
        );
        let debugger =
            Stop { by: StoppedBy::Debugger, name: "process 7, gdb".to_owned(), ..stop(0, Some(1)) };
        cell.stops = vec![stop(3_100_000_000, Some(2_000_000_000)), debugger, stop(0, None)];
        note_stops(&mut cell);
        note_stops(&mut cell);
        let texts: Vec<_> = cell.conditions.iter().map(|one| one.text.as_str()).collect();
        assert_eq!(
            texts[0],
            "stopped for 2.0 s from second 3.1 (a SIGCONT came after it): 1 sample and 1,999 missed releases are left out"
        );
        assert!(texts[1].contains("a debugger was attached, process 7, gdb"), "{texts:?}");
        assert!(
            texts[2].contains("stopped after second 0.0 for a time that no sample shows"),
            "{texts:?}"
        );
        assert_eq!(texts.len(), 3);
        cell.stops.push(stop(9, Some(1)));
        note_stops(&mut cell);
        let [all] = &cell.conditions[..] else { panic!("{:?}", cell.conditions) };
        assert!(all.text.starts_with("stopped 4 times, for 2.0 s in all"), "{}", all.text);
    }
}
