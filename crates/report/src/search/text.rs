//! A search in the terminal: the best mixes, what each load of the best contributes, and the latest
//! release that was measured.

use punctual_core::search::{Confirmed, Found};
use punctual_core::units::grouped;

use super::{best, count, ends, how, of_kernel, or_dash, sentence, step, title};
use crate::explanation::times::length;
use crate::text::{Align, Paint, Style, Table, push_styled, push_wrapped};
use crate::words;

/// Mixes in a table; the page has all.
const ROWS: usize = 12;

/// The search in lines of at most `width` columns.
#[must_use]
pub fn text(found: &Found, width: usize, colour: bool) -> String {
    let paint = Paint::new(colour);
    let mut out = String::new();
    push_styled(&mut out, &title(found), Style::Strong, ("", 0, width), paint);
    push_wrapped(&mut out, &how(found), "", 0, width);
    push_styled(&mut out, &sentence(found), Style::Strong, ("", 2, width), paint);
    let several = found.origin.kernels.len() > 1;
    if several {
        out.push('\n');
        out.push_str(&scores(found).render(width, paint));
    }
    for (number, kernel) in found.origin.kernels.iter().enumerate() {
        out.push('\n');
        let name = words::clean(&kernel.name);
        push_styled(&mut out, &name, Style::Strong, ("", 2, width), paint);
        out.push_str(&longest(found, number).render(width, paint));
    }
    if !found.parts.is_empty() {
        out.push('\n');
        out.push_str(&parts(found).render(width, paint));
    }
    if !found.confirmed.is_empty() {
        out.push('\n');
        out.push_str(&confirmed(&found.confirmed).render(width, paint));
    }
    out
}

fn plain(text: impl Into<String>) -> (String, Style) {
    (text.into(), Style::Plain)
}

fn more(table: &mut Table, all: usize) {
    if all > ROWS {
        table.note(format!("{} more in search.html", grouped((all - ROWS) as u64)));
    }
}

fn scores(found: &Found) -> Table {
    let mut table =
        Table::new(&[("score", Align::Right), ("step", Align::Left), ("load", Align::Left)]);
    let best = best(found).map(|(best, _)| best.number);
    for mix in found.mixes.iter().take(ROWS) {
        let style = if best == Some(mix.number) { Style::Strong } else { Style::Plain };
        let load = words::clean(&mix.load).into_owned();
        let row = vec![(or_dash(mix.score_ns), style), plain(step(mix.step)), plain(load.clone())];
        table.named_row(row, load);
    }
    more(&mut table, found.mixes.len());
    table
}

fn longest(found: &Found, kernel: usize) -> Table {
    let left = Align::Left;
    let columns = [("longest", Align::Right), ("from", left), ("to", left), ("load", left)];
    let mut table = Table::new(&columns);
    let mixes = of_kernel(found, kernel);
    for (mix, longest) in mixes.iter().take(ROWS) {
        let [from, to] = ends(longest);
        let load = words::clean(&mix.load).into_owned();
        let length = length(longest.longest_ns);
        table.named_row(vec![plain(length), plain(from), plain(to), plain(load.clone())], load);
    }
    more(&mut table, mixes.len());
    table
}

/// What is left without each load, and what it executes alone: on the first kernel.
fn parts(found: &Found) -> Table {
    let right = Align::Right;
    let columns = [
        ("load of the best", Align::Left),
        ("without it", right),
        ("functions", right),
        ("that lock", right),
    ];
    let mut table = Table::new(&columns);
    for part in &found.parts {
        let first = |counts: &[Option<u64>]| count(counts.first().copied().flatten());
        table.row(vec![
            plain(words::clean(&part.load).into_owned()),
            plain(or_dash(part.without.score_ns)),
            plain(first(&part.functions)),
            plain(first(&part.locking)),
        ]);
    }
    table
}

fn confirmed(all: &[Confirmed]) -> Table {
    let right = Align::Right;
    let columns = [
        ("latest release", Align::Left),
        ("seed", right),
        ("sampled", right),
        ("predicted", right),
        ("aimed", right),
    ];
    let mut table = Table::new(&columns);
    for one in all {
        table.row(vec![
            plain(words::clean(&one.kernel).into_owned()),
            plain(grouped(one.seed)),
            plain(or_dash(one.sampled_max_ns)),
            plain(or_dash(one.predicted_ns)),
            (or_dash(one.aimed_ns), Style::Strong),
        ]);
    }
    table
}
