//! Two explanations side by side: the same sample of the same cell on two kernels.

use std::collections::BTreeMap;

use punctual_core::explanation::{Explained, ExplainedCell, Explanation};
use punctual_core::preemption::Model;
use punctual_core::units::human_ns;

use super::sentence::cause;
use super::text::unexplained;
use super::times::{Asked, asked, leg_ns, length, own_all, rank_name, rest_ns};
use crate::text::{Align, Paint, Style, Table, push_styled, push_wrapped};
use crate::words;

/// Functions of a pair that are listed.
const FUNCTIONS: usize = 10;
/// Columns before the sentence of a sample.
const INDENT: usize = 5;

/// The typical sample of each cell beside the typical one, and the worst ones beside those of the
/// same rank, in lines of at most `width` columns. `A` is `a`; ratios are B over A.
#[must_use]
pub fn text_against(a: &Explanation, b: &Explanation, width: usize, colour: bool) -> String {
    let paint = Paint::new(colour);
    let mut out = String::new();
    for (letter, one) in [("A", a), ("B", b)] {
        let [release, run] = [&one.release, &one.run].map(|text| words::clean(text).into_owned());
        let model = words::preemption_name(one.model);
        let text = format!("Linux {release} {model} · {run}");
        push_wrapped(&mut out, &text, &format!("{letter}  "), 3, width);
    }
    for cell in &a.cells {
        let Some(other) = b.cells.iter().find(|other| other.key == cell.key) else { continue };
        let ranks = |cell: &ExplainedCell| -> Vec<&'static str> {
            (0..cell.samples.len()).map(|number| rank_name(cell, number)).collect()
        };
        for (rank, one) in ranks(cell).into_iter().zip(&cell.samples) {
            let Some(at) = ranks(other).iter().position(|name| *name == rank) else { continue };
            let pair = Pair { samples: [one, &other.samples[at]], models: [a.model, b.model] };
            out.push('\n');
            let head = format!("{} · {rank}", words::key_name(&cell.key));
            push_styled(&mut out, &head, Style::Strong, ("", 0, width), paint);
            pair.push(&mut out, width, paint);
        }
    }
    unmatched(&mut out, a, b, width);
    for caveat in a.caveats.iter().chain(b.caveats.iter().filter(|one| !a.caveats.contains(one))) {
        push_wrapped(&mut out, &words::clean(caveat), "  ! ", 4, width);
    }
    out
}

/// The cells that only one of the two has, and the samples that could not be explained.
fn unmatched(out: &mut String, a: &Explanation, b: &Explanation, width: usize) {
    for (letter, one, other) in [("A", a, b), ("B", b, a)] {
        for cell in &one.cells {
            for asked in asked(cell) {
                if let Asked::Unexplained(name, sample) = asked {
                    let (key, why) = (words::key_name(&cell.key), unexplained(sample));
                    let text = format!("{letter}, {key} · {name}: {why}");
                    push_wrapped(out, &text, "  ", 4, width);
                }
            }
            if !other.cells.iter().any(|two| two.key == cell.key) {
                let text = format!("only in {letter}: {}", words::key_name(&cell.key));
                push_wrapped(out, &text, "  ", 4, width);
            }
        }
    }
}

/// The same sample on two kernels.
struct Pair<'a> {
    samples: [&'a Explained; 2],
    models: [Model; 2],
}

impl Pair<'_> {
    fn push(&self, out: &mut String, width: usize, paint: Paint) {
        for ((letter, sample), model) in ["A", "B"].into_iter().zip(self.samples).zip(self.models) {
            let cause = cause(sample, model).sentence;
            let first = format!("  {letter}  ");
            push_styled(out, &cause, Style::Plain, (&first, INDENT, width), paint);
        }
        out.push_str(&self.legs().render(width, paint));
        let functions = self.functions();
        let changed = functions.iter().filter(|(_, [a, b])| a != b).count();
        if changed == 0 {
            push_wrapped(out, "no function's own time differs", "  ", 2, width);
            return;
        }
        let (shown, others) = functions.split_at(changed.min(FUNCTIONS));
        let mut table = table("function");
        shown.iter().for_each(|(name, times)| table.row(row(name, *times)));
        if !others.is_empty() {
            let sum = |i: usize| others.iter().map(|(_, times)| times[i]).sum::<u64>();
            table.row(row(&format!("{} others", others.len()), [sum(0), sum(1)]));
        }
        out.push_str(&table.render(width, paint));
    }

    fn legs(&self) -> Table {
        let mut table = table("leg");
        for leg in words::LEGS {
            let times = self.samples.map(|sample| leg_ns(sample, leg));
            if times != [None, None] {
                table.row(row(words::leg_name(leg), times.map(Option::unwrap_or_default)));
            }
        }
        let rest = self.samples.map(rest_ns);
        if rest != [0, 0] {
            table.row(row("not known", rest));
        }
        table.row(row("latency", self.samples.map(|sample| sample.latency_ns)));
        table
    }

    /// Own time of every function on both kernels, what changed most first.
    fn functions(&self) -> Vec<(String, [u64; 2])> {
        let mut times: BTreeMap<String, [u64; 2]> = BTreeMap::new();
        for (i, sample) in self.samples.into_iter().enumerate() {
            for (name, ns) in own_all(sample) {
                times.entry(name).or_default()[i] += ns;
            }
        }
        let mut all: Vec<_> = times.into_iter().collect();
        all.sort_by_key(|(_, [a, b])| std::cmp::Reverse(a.abs_diff(*b)));
        all
    }
}

fn table(first: &'static str) -> Table {
    let right = Align::Right;
    let columns =
        [(first, Align::Left), ("A", right), ("B", right), ("difference", right), ("ratio", right)];
    Table::new(&columns)
}

fn row(name: &str, [a, b]: [u64; 2]) -> Vec<(String, Style)> {
    let plain = |text: String| (text, Style::Plain);
    let ratio = match (a, b) {
        (0, 0) => "-".to_owned(),
        (0, _) => "new".to_owned(),
        (_, 0) => "gone".to_owned(),
        _ => words::ratio(Some(b as f64 / a as f64)),
    };
    vec![
        plain(name.to_owned()),
        plain(length(a)),
        plain(length(b)),
        (difference(a, b), Style::Strong),
        plain(ratio),
    ]
}

/// `+12.3 us`, `-3.0 us`, `0 ns`.
fn difference(a: u64, b: u64) -> String {
    let ns = i64::try_from(i128::from(b) - i128::from(a)).unwrap_or(i64::MAX);
    if ns > 0 { format!("+{}", human_ns(ns)) } else { human_ns(ns) }
}
