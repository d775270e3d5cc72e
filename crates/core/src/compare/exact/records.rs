//! Where two files of a cell first differ, in the words of what they record.

use std::collections::BTreeMap;

use crate::block::{Block, Late, System, coarse_range};
use crate::format::{Part, Reader, Record};
use crate::histogram::{bin_high, bin_low};
use crate::units::grouped;

/// The first record that differs, such as `thread 0, second 1: largest 21,024 ns
/// against 21,034 ns`; the first byte if the difference is not in the records.
/// The files must differ.
pub(super) fn first_difference(a: &[u8], b: &[u8]) -> String {
    let (mut left, mut right) = (Reader::new(a), Reader::new(b));
    loop {
        let pair = (left.next(), right.next());
        // What follows a damaged stretch has lost its counterpart.
        if left.damaged + right.damaged > 0 {
            return byte(a, b);
        }
        match pair {
            (Some(a), Some(b)) if a == b => {}
            (Some(a), Some(b)) => return between(&a, &b),
            (Some(record), None) => return format!("{}: only in the first run", place(&record)),
            (None, Some(record)) => return format!("{}: only in the second run", place(&record)),
            (None, None) => return byte(a, b),
        }
    }
}

fn byte(a: &[u8], b: &[u8]) -> String {
    let at = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let shown = |bytes: &[u8]| {
        bytes
            .get(at)
            .map_or_else(|| "the end of the file".to_owned(), |byte| format!("{byte:#04x}"))
    };
    format!("byte {}: {} against {}", grouped(at as u64), shown(a), shown(b))
}

/// What a record is about.
fn place(record: &Record) -> String {
    let series = |number: &u32| match number {
        0 => String::new(),
        number => format!(", series {number}"),
    };
    match record {
        Record::Block(Block { thread, series: of, index, .. }) => {
            format!("thread {thread}{}, second {index}", series(of))
        }
        Record::Late(Late { thread, series: of, .. }) => {
            format!("thread {thread}{}, late sample", series(of))
        }
        Record::Work { second, part, .. } => format!("second {second}, part {part} of the load"),
        Record::System(System { second, .. }) => format!("second {second}, CPUs' time"),
        Record::Histogram { thread, series: of, part, .. } => {
            let part = match part {
                Part::Positive => "histogram",
                Part::Negative => "histogram below zero",
                Part::Behind => "histogram of missed releases",
            };
            format!("thread {thread}{}, {part}", series(of))
        }
        Record::Outliers { thread, series: of, .. } => {
            format!("thread {thread}{}, worst samples", series(of))
        }
        Record::Interval(interval) => format!("CPU {}, interval", interval.cpu),
        Record::Actor(actor) => format!("actor {}", actor.number),
        Record::Spell(spell) => format!("thread {}, spell of lateness", spell.thread),
        Record::Stop { number, .. } => format!("stop {}", u64::from(*number) + 1),
        Record::Phase { phase, .. } => format!("phase {} of the load", u64::from(*phase) + 1),
    }
}

fn systems(a: &System, b: &System) -> Option<String> {
    let share = |share: u32| format!("{share}/1000");
    let part = |part: Option<u32>| part.map_or_else(|| "unknown".to_owned(), share);
    let count = |count: Option<u64>| count.map_or_else(|| "unknown".to_owned(), grouped);
    let (of_a, of_b) = (&a.strain, &b.strain);
    let pressure = |n: usize| (part(of_a.pressure[n]), part(of_b.pressure[n]));
    let [cpu, memory, io] = [0, 1, 2].map(pressure);
    first_unlike(&[
        ("busy", share(a.busy), share(b.busy)),
        ("steal", share(a.steal), share(b.steal)),
        ("interrupts", count(of_a.interrupts), count(of_b.interrupts)),
        ("context switches", count(of_a.switches), count(of_b.switches)),
        ("CPU pressure", cpu.0, cpu.1),
        ("memory pressure", memory.0, memory.1),
        ("I/O pressure", io.0, io.1),
    ])
}

/// Two records that differ.
fn between(a: &Record, b: &Record) -> String {
    let (of_a, of_b) = (place(a), place(b));
    if of_a != of_b {
        return format!("{of_a} against {of_b}");
    }
    let what = match (a, b) {
        (Record::Block(a), Record::Block(b)) => blocks(a, b),
        (Record::Late(a), Record::Late(b)) => first_unlike(&[
            ("at", ns(a.at), ns(b.at)),
            ("latency", ns(a.latency), ns(b.latency)),
            ("missed", grouped(a.missed), grouped(b.missed)),
        ]),
        (Record::Work { totals: a, .. }, Record::Work { totals: b, .. }) => {
            list("counter", a, b, |total| grouped(*total))
        }
        (Record::System(a), Record::System(b)) => systems(a, b),
        (Record::Histogram { counts: a, .. }, Record::Histogram { counts: b, .. }) => {
            let range = |bin| (signed(bin_low(bin)), signed(bin_high(bin)));
            bins(a.iter().map(|(bin, n)| (range(bin), n)), b.iter().map(|(bin, n)| (range(bin), n)))
        }
        (Record::Outliers { samples: a, .. }, Record::Outliers { samples: b, .. }) => {
            list("sample", a, b, |sample| format!("{} at {}", ns(sample.latency), ns(sample.at)))
        }
        (Record::Interval(a), Record::Interval(b)) => first_unlike(&[
            ("from", ns(a.from), ns(b.from)),
            ("to", ns(a.to), ns(b.to)),
            ("actor", a.actor.to_string(), b.actor.to_string()),
        ]),
        (Record::Spell(a), Record::Spell(b)) => first_unlike(&[
            ("from", ns(a.from), ns(b.from)),
            ("to", ns(a.to), ns(b.to)),
            ("late", grouped(a.late), grouped(b.late)),
        ]),
        (Record::Actor(a), Record::Actor(b)) => {
            first_unlike(&[("name", format!("{:?}", a.name), format!("{:?}", b.name))])
        }
        _ => None,
    };
    format!("{of_a}: {}", what.unwrap_or_else(|| "recorded differently".to_owned()))
}

fn blocks(a: &Block, b: &Block) -> Option<String> {
    let (m, n) = (&a.moments, &b.moments);
    first_unlike(&[
        ("samples", grouped(m.count), grouped(n.count)),
        ("missed", grouped(m.missed), grouped(n.missed)),
        ("early", grouped(m.early), grouped(n.early)),
        ("late", grouped(m.exceeded), grouped(n.exceeded)),
        ("largest", ns(m.max), ns(n.max)),
        ("smallest", ns(m.min), ns(n.min)),
        ("largest at", ns(m.max_at), ns(n.max_at)),
        ("sum", ns(m.sum), ns(n.sum)),
        ("sum of squares", m.sum_sq.to_string(), n.sum_sq.to_string()),
    ])
    .or_else(|| {
        let counts = |block: &'_ Block| -> Vec<_> {
            let bins = block.coarse.iter();
            bins.map(|(bin, n)| (coarse_range(*bin), u64::from(*n))).collect()
        };
        bins(counts(a).into_iter(), counts(b).into_iter())
    })
}

fn first_unlike(fields: &[(&str, String, String)]) -> Option<String> {
    let (name, a, b) = fields.iter().find(|(_, a, b)| a != b)?;
    Some(format!("{name} {a} against {b}"))
}

fn list<T: PartialEq>(
    name: &str,
    a: &[T],
    b: &[T],
    shown: impl Fn(&T) -> String,
) -> Option<String> {
    let at = (0..a.len().max(b.len())).find(|at| a.get(*at) != b.get(*at))?;
    let value = |of: &[T]| of.get(at).map_or_else(|| "none".to_owned(), &shown);
    Some(format!("{name} {at}: {} against {}", value(a), value(b)))
}

type Range = (i64, i64);

/// The lowest bin whose counts differ.
fn bins(
    a: impl Iterator<Item = (Range, u64)>,
    b: impl Iterator<Item = (Range, u64)>,
) -> Option<String> {
    let mut counts: BTreeMap<Range, [u64; 2]> = BTreeMap::new();
    a.for_each(|(range, n)| counts.entry(range).or_default()[0] += n);
    b.for_each(|(range, n)| counts.entry(range).or_default()[1] += n);
    let ((low, high), [a, b]) = counts.into_iter().find(|(_, [a, b])| a != b)?;
    let range = if low == high { ns(low) } else { format!("{} to {}", ns(low), ns(high)) };
    Some(format!("{range}: {} against {} samples", grouped(a), grouped(b)))
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Nanoseconds, every digit of them.
fn ns(value: impl Into<i128>) -> String {
    let value = value.into();
    let sign = if value < 0 { "-" } else { "" };
    let magnitude = value.unsigned_abs();
    let digits = u64::try_from(magnitude).map_or_else(|_| magnitude.to_string(), grouped);
    format!("{sign}{digits} ns")
}
