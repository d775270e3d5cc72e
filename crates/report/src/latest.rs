//! The latest activation of a cell of which the legs are known, each with its own length.
//!
//! A record has the worst samples of every series, so a short leg of a late activation is often not
//! among them. The note that a probe leaves of its latest activation has all legs, rounded.

use punctual_core::run::CellData;
use punctual_core::schema::{Cell, Latency, Role, Unit};
use punctual_core::units::human_ns;

/// The id of that note, and how it begins.
const NOTE: &str = "latest";
const NOTED: &str = "the latest activation with legs, ";

/// An activation, leg by leg.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LatestLegs {
    /// Number of the thread.
    pub thread: usize,
    pub latency_ns: i64,
    /// Indices of series and lengths, ns, in the order of time.
    pub legs: Vec<(usize, i64)>,
    /// When it began its work, ns after the start of the cell, if that is known.
    pub at: Option<u64>,
    /// Whether a length is known only as the note has it.
    pub is_rounded: bool,
    /// What happened in the longest leg, as the note has it.
    pub why: Option<String>,
}

/// What the note says. Numbers are texts, as they were rounded.
struct Noted<'a> {
    thread: usize,
    latency: &'a str,
    legs: Vec<(&'a str, &'a str)>,
    why: &'a str,
}

impl<'a> Noted<'a> {
    fn of(cell: &'a Cell) -> Option<Self> {
        let note = cell.conditions.iter().find(|note| note.id == NOTE)?;
        let (latency, rest) = note.text.strip_prefix(NOTED)?.split_once(" of thread ")?;
        let (thread, rest) = rest.split_once(": ")?;
        let (legs, why) = rest.split_once("; ")?;
        // A name has no space, a length has one.
        let legs = legs.split(", ").map(|leg| leg.split_once(' ')).collect::<Option<_>>()?;
        Some(Self { thread: thread.parse().ok()?, latency, legs, why })
    }

    /// The length of a leg; one that is not said is zero.
    fn leg(&self, name: &str) -> &'a str {
        self.legs.iter().find(|(known, _)| *known == name).map_or("0 ns", |(_, length)| length)
    }
}

/// The rounded length, ns, of a text of [`human_ns`].
#[allow(clippy::cast_possible_truncation, reason = "`as` saturates")]
fn parsed(text: &str) -> Option<i64> {
    let (number, unit) = text.split_once(' ')?;
    let unit = match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    let number: f64 = number.parse().ok()?;
    Some((number * unit).round() as i64)
}

/// The legs that were recorded, by their index among the series.
fn recorded(latency: &Latency) -> Vec<usize> {
    let legs = latency.series.iter().enumerate().filter(|(_, series)| {
        series.role == Role::Leg && series.unit == Unit::Ns && series.stats.samples > 0
    });
    legs.map(|(index, _)| index).collect()
}

/// The latest activation with legs; none if it is not known which it was.
pub(crate) fn of(cell: &Cell, latency: &Latency, data: &CellData) -> Option<LatestLegs> {
    let legs = recorded(latency);
    if legs.len() < 2 {
        return None;
    }
    match Noted::of(cell) {
        Some(noted) => by_note(&noted, latency, data, &legs),
        None => by_samples(latency, data, &legs),
    }
}

/// What is recorded of a leg of the activation that began its work at an instant, ns.
fn length(data: &CellData, thread: usize, leg: usize, at: u64) -> Option<i64> {
    let samples = &data.threads.get(thread)?.series(leg + 1).outliers;
    samples.iter().find(|sample| sample.at == at).map(|sample| sample.latency)
}

/// The lengths of all legs that were found, and of one more by what is left of the latency.
fn completed(latency_ns: i64, found: &[Option<i64>]) -> Option<Vec<i64>> {
    let sum = found.iter().flatten().try_fold(0_i64, |sum, ns| sum.checked_add(*ns))?;
    let left = latency_ns.checked_sub(sum)?;
    match found.iter().filter(|leg| leg.is_none()).count() {
        0 => (left == 0).then(|| found.iter().flatten().copied().collect()),
        1 => (left >= 0).then(|| found.iter().map(|leg| leg.unwrap_or(left)).collect()),
        _ => None,
    }
}

fn by_note(
    noted: &Noted<'_>,
    latency: &Latency,
    data: &CellData,
    legs: &[usize],
) -> Option<LatestLegs> {
    let name = |leg: usize| latency.series[leg].name.as_str();
    if noted.legs.iter().any(|(noted, _)| legs.iter().all(|leg| name(*leg) != *noted)) {
        return None;
    }
    let texts: Vec<&str> = legs.iter().map(|leg| noted.leg(name(*leg))).collect();
    let is_noted = |lengths: &[i64]| {
        lengths.iter().zip(&texts).all(|(length, text)| human_ns(*length) == **text)
    };
    let thread = noted.thread;
    let samples = data.threads.get(thread).map_or(&[][..], |one| &one.primary().outliers);
    let samples = samples.iter().filter(|sample| human_ns(sample.latency) == noted.latency);
    // Of several with the same rounded latency it is the one that most is found of.
    let found = samples.map(|sample| {
        let of = |(leg, text): (&usize, &&str)| match *text {
            "0 ns" => Some(0),
            text => length(data, thread, *leg, sample.at).filter(|ns| human_ns(*ns) == text),
        };
        let found: Vec<_> = legs.iter().zip(&texts).map(of).collect();
        (found.iter().flatten().count(), sample, found)
    });
    let all: Vec<_> = found.collect();
    let most = all.iter().map(|(count, ..)| *count).max();
    let best: Vec<_> = all.iter().filter(|(count, ..)| Some(*count) == most).collect();
    let sample = if let [(_, sample, found)] = best[..] { Some((sample, found)) } else { None };
    let exact = sample.and_then(|(sample, found)| {
        completed(sample.latency, found).filter(|lengths| is_noted(lengths))
    });
    let rounded = || texts.iter().map(|text| parsed(text)).collect::<Option<Vec<_>>>();
    let is_rounded = exact.is_none();
    let lengths = exact.or_else(rounded)?;
    Some(LatestLegs {
        thread,
        latency_ns: sample.map(|(sample, _)| sample.latency).or_else(|| parsed(noted.latency))?,
        legs: legs.iter().copied().zip(lengths).collect(),
        at: sample.map(|(sample, _)| sample.at),
        is_rounded,
        why: Some(noted.why.to_owned()),
    })
}

/// The largest sample of all, if its legs are among the worst of their series.
fn by_samples(latency: &Latency, data: &CellData, legs: &[usize]) -> Option<LatestLegs> {
    let threads = data.threads.iter().enumerate();
    let samples = threads.flat_map(|(number, thread)| {
        thread.primary().outliers.iter().map(move |one| (number, one))
    });
    let largest = samples.filter(|(_, sample)| Some(sample.latency) == latency.stats.max);
    let (thread, sample) = largest.min_by_key(|(_, sample)| sample.at)?;
    let found: Vec<_> = legs.iter().map(|leg| length(data, thread, *leg, sample.at)).collect();
    let lengths = completed(sample.latency, &found)?;
    Some(LatestLegs {
        thread,
        latency_ns: sample.latency,
        legs: legs.iter().copied().zip(lengths).collect(),
        at: Some(sample.at),
        is_rounded: false,
        why: None,
    })
}

/// The latest activation of all, if it is another than the one with legs that the cell's note is of:
/// its latency, ns, and the number of its thread.
pub(crate) fn untraced(cell: &Cell) -> Option<(i64, u32)> {
    let (noted, latency) = (Noted::of(cell)?, cell.latency()?);
    let max = latency.stats.max.filter(|max| human_ns(*max) != noted.latency)?;
    let thread = latency.threads.iter().find(|thread| thread.stats.max == Some(max))?;
    Some((max, thread.thread))
}

/// The note of the latest activation, if that has no legs: which one it is of is said first.
pub(crate) fn note(cell: &Cell, id: &str, text: &str) -> Option<String> {
    let rest = text.strip_prefix(NOTED).filter(|_| id == NOTE)?;
    let (max, thread) = untraced(cell)?;
    let noun = cell.latency().map_or("", |latency| &latency.primary.noun);
    Some(format!(
        "the latest {noun}, {} of thread {thread}, has no legs in the trace; the latest traced one, \
         {rest}",
        human_ns(max)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounded_lengths_are_read_back() {
        for ns in [0, 7, 999, 1_200, 12_300, 999_900, 3_060_000, 1_234_000_000] {
            assert_eq!(parsed(&human_ns(ns)), Some(ns));
        }
        assert_eq!(["", "3", "x us", "3 weeks"].map(parsed), [None; 4]);
    }

    #[test]
    fn one_leg_is_what_is_left() {
        assert_eq!(completed(10, &[Some(3), Some(7)]), Some(vec![3, 7]));
        assert_eq!(completed(10, &[Some(3), None]), Some(vec![3, 7]));
        assert_eq!(completed(10, &[Some(3), Some(6)]), None);
        assert_eq!(completed(10, &[Some(30), None]), None);
        assert_eq!(completed(10, &[None, None]), None);
    }
}
