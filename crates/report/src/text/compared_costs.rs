//! Costs side by side in the terminal: the published layout, with kernels as rows, where it fits,
//! else metrics as rows; ratios, what they come to, and latency beside cost.

use std::borrow::Cow;

use punctual_core::compare::{Against, Comparison, MatchedCost, ToFirst};
use unicode_width::UnicodeWidthStr;

use super::style::{Paint, Style};
use super::table::{Align, Table};
use super::wrap::push_wrapped;
use crate::cost_sides::{self, Side};
use crate::words;
use crate::words::CostHead;

/// Heads a row of what virtual boards count, below the values that it explains.
const INSTRUCTIONS: &str = "  instructions";

/// Longer names of kernels stand in a legend.
const LONGEST_NAME: usize = 17;

/// Costs of several runs side by side; nothing if they have none in common.
pub fn section(comparison: &Comparison, width: usize, paint: Paint) -> String {
    if comparison.costs.is_empty() {
        return String::new();
    }
    let sides = cost_sides::of(comparison);
    let parts = words::compared_parts(&comparison.costs);
    let mut out = String::new();
    if !comparison.cells.is_empty() {
        out.push('\n');
    }
    let published: Vec<_> = parts.iter().map(|part| as_published(part, &sides)).collect();
    if published.iter().all(|table| !table.is_squeezed(width)) {
        for ((head, _), table) in parts.iter().zip(&published) {
            push_wrapped(&mut out, &head.title, "  ", 2, width);
            out.push_str(&table.render(width, paint));
        }
        out.push_str(&by_metric(&parts, &sides, false, width, paint));
    } else {
        out.push_str(&by_metric(&parts, &sides, true, width, paint));
    }
    for note in cost_sides::absences(comparison, &sides) {
        push_wrapped(&mut out, &note, "      ", 6, width);
    }
    push_wrapped(&mut out, &cost_sides::about(comparison), "  ", 2, width);
    out.push_str(&index_table(comparison, &sides, width, paint));
    out.push_str(&trade_table(comparison, width, paint));
    let names: Vec<_> = sides.iter().map(|side| side.name.clone()).collect();
    for mean in &comparison.cost_means {
        push_wrapped(&mut out, &words::mean_sentence(&names, mean), "  ", 4, width);
    }
    out
}

/// A row for each kernel and a column for each metric.
fn as_published((head, costs): &(CostHead, Vec<&MatchedCost>), sides: &[Side]) -> Table {
    let mut columns: Vec<(Cow<'static, str>, Align)> = vec![("".into(), Align::Left)];
    let names = costs.iter().map(|cost| head.row(cost.name(), cost.better));
    columns.extend(names.map(|name| (Cow::Owned(name), Align::Right)));
    let mut table = Table::headed(columns);
    for side in sides {
        let mut row = vec![(side.name.clone(), Style::Plain)];
        row.extend(costs.iter().map(|cost| (side.value(cost, head), Style::Plain)));
        table.row(row);
        let counts: Vec<_> = costs.iter().map(|cost| side.instructions(cost)).collect();
        if counts.iter().any(|count| !count.is_empty()) {
            let row = [INSTRUCTIONS.to_owned()].into_iter().chain(counts);
            table.row(row.map(|text| (text, Style::Faint)).collect());
        }
    }
    table
}

/// A row for each metric. As many kernels stand beside each other as fit.
fn by_metric(
    parts: &[(CostHead, Vec<&MatchedCost>)],
    sides: &[Side],
    with_values: bool,
    width: usize,
    paint: Paint,
) -> String {
    let mut out = String::new();
    let lettered = sides.iter().any(|side| side.name.width() > LONGEST_NAME);
    let heads: Vec<String> = sides
        .iter()
        .enumerate()
        .map(|(i, side)| if lettered { words::letter(i) } else { side.name.clone() })
        .collect();
    if lettered {
        for (letter, side) in heads.iter().zip(sides) {
            push_wrapped(&mut out, &side.name, &format!("  {letter}  "), 5, width);
        }
    }
    let mut from = if with_values { 0 } else { 1 };
    while from < sides.len() {
        let table = |to: usize| metric_table(parts, sides, &heads, from..to, with_values);
        let mut to = sides.len();
        while to > from + 1 && table(to).is_squeezed(width) {
            to -= 1;
        }
        out.push_str(&table(to).render(width, paint));
        from = to;
    }
    out
}

fn metric_table(
    parts: &[(CostHead, Vec<&MatchedCost>)],
    sides: &[Side],
    heads: &[String],
    shown: std::ops::Range<usize>,
    with_values: bool,
) -> Table {
    let right = Align::Right;
    let mut columns: Vec<(Cow<'static, str>, Align)> = vec![("cost".into(), Align::Left)];
    for number in shown.clone() {
        let name = heads.get(number).cloned().unwrap_or_default();
        if with_values {
            columns.push((name.into(), right));
            if number > 0 {
                columns.push(("ratio".into(), right));
            }
        } else {
            columns.push((format!("{name}: ratio").into(), right));
        }
        if number > 0 {
            columns.push(("interval".into(), right));
        }
    }
    let mut table = Table::headed(columns).lesser(&["interval"]);
    for (head, costs) in parts {
        table.heading(head.title.clone());
        for cost in costs {
            let mut row = vec![(head.row(cost.name(), cost.better), Style::Plain)];
            let mut counts = vec![(INSTRUCTIONS.to_owned(), Style::Faint)];
            for number in shown.clone() {
                let Some(side) = sides.get(number) else { continue };
                if with_values {
                    row.push((side.value(cost, head), Style::Plain));
                    counts.push((side.instructions(cost), Style::Faint));
                }
                if number > 0 {
                    counts.resize(row.len() + 2, (String::new(), Style::Plain));
                    let to_first = side.to_first(cost);
                    let style = style(&to_first);
                    row.push((words::cost_ratio(to_first.ratio), style));
                    row.push((words::ratio_interval(&to_first), Style::Plain));
                }
            }
            table.row(row);
            if counts.iter().skip(1).any(|(count, _)| !count.is_empty()) {
                table.row(counts);
            }
        }
    }
    table
}

fn style(to_first: &ToFirst) -> Style {
    match to_first.against_first {
        Some(Against::Better) => Style::Good,
        Some(Against::Worse) => Style::Bad,
        Some(Against::Alike) | None => Style::Plain,
    }
}

fn index_table(comparison: &Comparison, sides: &[Side], width: usize, paint: Paint) -> String {
    let rows = words::index_rows(comparison);
    if rows.is_empty() {
        return String::new();
    }
    let mut out = format!("\n{}\n", paint.apply("Indices", Style::Strong));
    push_wrapped(&mut out, &words::index_baseline(), "  ", 2, width);
    for row in &rows {
        push_wrapped(&mut out, &row.name, "  ", 4, width);
        for (side, text) in sides.iter().zip(&row.texts) {
            push_wrapped(&mut out, &format!("{} {text}", side.name), "    ", 6, width);
        }
    }
    for same in rows.chunk_by(|a, b| a.index == b.index) {
        push_wrapped(&mut out, &words::index_about(&same[0].index), "  ", 4, width);
    }
    out
}

fn trade_table(comparison: &Comparison, width: usize, paint: Paint) -> String {
    let trade = &comparison.trade;
    if trade.is_empty() {
        return String::new();
    }
    let names = words::kernel_names(&comparison.groups);
    let mut out = format!("\n{}\n", paint.apply("Latency and cost", Style::Strong));
    push_wrapped(&mut out, &words::trade_about(trade), "  ", 2, width);
    let noun = words::side_noun(&comparison.groups);
    let mut table =
        Table::new(&[(noun, Align::Left), ("cost", Align::Right), ("latest", Align::Left)]);
    for one in trade {
        let name = names.get(one.group).cloned().unwrap_or_default();
        let latency = words::trade_latency(one);
        let full = format!("{name}: {latency}");
        let cells = vec![
            (name, Style::Plain),
            (words::cost_ratio(Some(one.cost)), Style::Strong),
            (latency, Style::Plain),
        ];
        table.named_row(cells, full);
    }
    out.push_str(&table.render(width, paint));
    out.push('\n');
    out
}
