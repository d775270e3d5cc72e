//! `punctual compare`: runs side by side, and what may not be concluded.

use punctual_core::compare::{
    Bearing, Comparison, Difference, EpisodeRates, Estimate, KernelRuns, Measure, Replicates, Row,
    Unmatched,
};
use punctual_core::units::{SECOND_NS, grouped, human_ns};

use super::style::{Paint, Style, of_outcome};
use super::table::{Align, Table};
use super::wrap::{push_parts, push_wrapped};
use super::{compared_costs, spread};
use crate::words;

/// Kernels of which no more runs than this are there are shown run by run too.
const FEW_RUNS: usize = 2;

/// Runs side by side in the terminal: a row for every cell and run with its ratio
/// to the first, or for every cell and kernel if kernels have replicates, then
/// estimates over replicates, what differs, and last what may not be concluded.
/// `width` and `colour` as for [`super::summary`].
#[must_use]
pub fn comparison(comparison: &Comparison, width: usize, colour: bool) -> String {
    let paint = Paint::new(colour);
    let letters: Vec<_> = (0..comparison.runs.len()).map(words::letter).collect();
    let mut out = String::new();
    if comparison.is_replicated() {
        out.push_str(&spread::section(comparison, width, paint));
    }
    if !is_by_kernel(comparison) {
        if comparison.is_replicated() && !comparison.cells.is_empty() {
            out.push('\n');
        }
        out.push_str(&run_by_run(comparison, width, paint));
    }
    out.push_str(&compared_costs::section(comparison, width, paint));
    for text in unmatched_texts(comparison, &letters) {
        push_wrapped(&mut out, &text, "  ", 4, width);
    }
    if let Some(replicates) = &comparison.replicates {
        out.push_str(&estimates(comparison, replicates, width, paint));
    }
    if !comparison.differences.is_empty() {
        out.push_str(&format!("\n{}\n", paint.apply("What differs", Style::Strong)));
        for difference in &comparison.differences {
            let first = match difference.role {
                Bearing::Subject | Bearing::Setting => "    ".to_owned(),
                Bearing::Confounder => paint.apply("  ! ", Style::Doubt),
            };
            push_wrapped(
                &mut out,
                &difference_text(comparison, &letters, difference),
                &first,
                4,
                width,
            );
        }
    }
    if !comparison.caveats.is_empty() {
        let head = paint.apply("What may not be concluded", Style::Strong);
        out.push_str(&format!("\n{head}\n"));
        for caveat in &comparison.caveats {
            let first = paint.apply("  ! ", Style::Doubt);
            push_wrapped(&mut out, &words::clean(caveat), &first, 4, width);
        }
    }
    out
}

/// Whether there are too many runs to name them by letters: then kernels stand for
/// them.
pub(crate) fn is_by_kernel(comparison: &Comparison) -> bool {
    comparison.is_replicated() && comparison.groups.iter().any(|group| group.runs.len() > FEW_RUNS)
}

fn run_by_run(comparison: &Comparison, width: usize, paint: Paint) -> String {
    let mut out = String::new();
    for (i, run) in comparison.runs.iter().enumerate() {
        let kernel = words::clean(&run.kernel);
        let label =
            run.label.as_deref().map(|label| (words::clean(label).into_owned(), Style::Strong));
        let mut parts: Vec<_> = label.into_iter().collect();
        parts.extend([
            (words::clean(&run.board).into_owned(), Style::Plain),
            (format!("Linux {kernel} {}", words::preemption_name(run.preemption)), Style::Plain),
            (words::compared_outcome(run).to_owned(), of_outcome(run.outcome)),
        ]);
        let labels = words::compared_labels(run).into_iter();
        parts.extend(labels.map(|text| (text.to_owned(), Style::Doubt)));
        let letter = format!("{}  ", words::letter(i));
        push_parts(&mut out, &parts, (&letter, Style::Strong), 3, width, paint);
        let id = words::clean(&run.run_id).into_owned();
        push_parts(&mut out, &[(id, Style::Faint)], ("   ", Style::Plain), 3, width, paint);
    }
    out.push('\n');
    if !comparison.cells.is_empty() {
        out.push_str(&cells(comparison).render(width, paint));
    }
    out
}

fn cells(comparison: &Comparison) -> Table {
    let right = Align::Right;
    let mut table = Table::new(&[
        ("run", Align::Left),
        ("max", right),
        ("ratio", right),
        ("p99.9", right),
        ("ratio", right),
        ("p99", right),
        ("avg", right),
        ("min", right),
        ("samples", right),
        ("missed", right),
    ])
    .lesser(&["p99", "min", "samples", "avg", "missed"]);
    for (name, cell) in words::with_phases(&comparison.cells) {
        table.heading(name);
        for row in &cell.rows {
            table.row(row_cells(row));
        }
    }
    table
}

fn row_cells(row: &Row) -> Vec<(String, Style)> {
    let plain = |text: String| (text, Style::Plain);
    let mut cells = vec![plain(words::letter(row.run))];
    if row.samples == 0 {
        cells.push(("no samples".to_owned(), Style::Doubt));
        return cells;
    }
    let value = |ns: Option<i64>| ns.map_or_else(|| "-".to_owned(), human_ns);
    cells.extend([
        (value(row.max_ns), Style::Strong),
        plain(words::ratio(row.ratio.max)),
        plain(value(row.p999_ns)),
        plain(words::ratio(row.ratio.p999)),
        plain(value(row.p99_ns)),
        plain(row.avg_ns.map_or_else(|| "-".to_owned(), words::mean_ns)),
        plain(value(row.min_ns)),
        plain(grouped(row.samples)),
        plain(grouped(row.missed)),
    ]);
    cells
}

fn estimates(
    comparison: &Comparison,
    replicates: &Replicates,
    width: usize,
    paint: Paint,
) -> String {
    let names = words::kernel_names(&comparison.groups);
    let noun = words::side_noun(&comparison.groups);
    let title = estimates_title(&names, noun, replicates);
    let mut out = "\n".to_owned();
    push_parts(&mut out, &[(title, Style::Strong)], ("", Style::Plain), 0, width, paint);
    let right = Align::Right;
    let mut table = Table::new(&[
        (noun, Align::Left),
        ("quantity", Align::Left),
        ("runs", right),
        ("ratio", right),
        ("interval", right),
        ("at most", right),
        ("bootstrap", right),
        ("p (Holm)", right),
    ])
    .lesser(&["bootstrap", "at most", "runs"]);
    let mut key = None;
    for estimate in &replicates.estimates {
        if key != Some(&estimate.key) {
            table.heading(words::key_name(&estimate.key));
            key = Some(&estimate.key);
        }
        let cells = estimate_texts(&names, estimate);
        table.row(cells.into_iter().map(|text| (text, Style::Plain)).collect());
    }
    out.push_str(&table.render(width, paint));
    push_wrapped(&mut out, &words::estimates_note(replicates), "  ", 2, width);
    for rates in &replicates.episodes {
        push_wrapped(&mut out, &episodes_text(&names, rates), "  ", 4, width);
    }
    out
}

/// Which sides the ratios of replicates are of, and at what confidence; `noun` is that of sides.
pub(crate) fn estimates_title(names: &[String], noun: &str, replicates: &Replicates) -> String {
    let base = names.first().map_or("", String::as_str);
    let other = match names {
        [_, other] => other.clone(),
        _ => format!("each {noun}"),
    };
    format!(
        "{other} over {base}, runs as replicates, {:.0} % confidence",
        replicates.confidence * 100.0
    )
}

/// Kernel, quantity, runs, ratio, interval, upper bound, bootstrap and adjusted p.
pub(crate) fn estimate_texts(names: &[String], estimate: &Estimate) -> [String; 8] {
    let interval = |ends: Option<[f64; 2]>| {
        ends.map_or_else(
            || "-".to_owned(),
            |[low, high]| format!("{} to {}", words::ratio(Some(low)), words::ratio(Some(high))),
        )
    };
    [
        names.get(estimate.group).cloned().unwrap_or_default(),
        quantity_name(estimate.quantity).to_owned(),
        format!("{} / {}", estimate.runs[1], estimate.runs[0]),
        words::ratio(estimate.ratio),
        interval(estimate.interval),
        words::ratio(estimate.upper),
        interval(estimate.bootstrap),
        estimate.p_adjusted.map_or_else(|| "-".to_owned(), |p| format!("{p:.3}")),
    ]
}

/// `times late (late ones at most 1 s apart are one time), wakeup @ idle @ 1h: rt 3 in 4 h, none 12 in
/// 4 h, ratio 0.25 (0.05 to 0.93)`.
pub(crate) fn episodes_text(names: &[String], rates: &EpisodeRates) -> String {
    let side = |group: usize, of: usize| {
        let name = names.get(group).map_or("", String::as_str);
        let seconds = rates.observed_ns[of] / SECOND_NS;
        format!("{name} {} in {} s", grouped(rates.episodes[of]), grouped(seconds))
    };
    let ends = rates.interval.map(|ends| {
        let [low, high] =
            ends.map(|end| end.map_or_else(|| "any".to_owned(), |end| words::ratio(Some(end))));
        let p = rates.p.map_or_else(String::new, |p| format!(", p {p:.3}"));
        format!(
            " ({low} to {high}){p}, if they come singly and at one rate in all runs of a kernel"
        )
    });
    let nothing = match rates.episodes {
        [0, 0] => "",
        _ => ": they come in clusters, so no interval is given",
    };
    format!(
        "times late (late ones at most 1 s apart are one time), {}: {}, {}, ratio {}{}",
        words::key_name(&rates.key),
        side(rates.group, 1),
        side(0, 0),
        words::ratio(rates.ratio),
        ends.unwrap_or_else(|| nothing.to_owned())
    )
}

/// What a quantity is called.
pub(crate) const fn quantity_name(quantity: Measure) -> &'static str {
    match quantity {
        Measure::P999Ns => "p99.9",
        Measure::MaxNs => "max",
    }
}

/// A value as it is printed: of a hash the beginning, which tells it from others.
fn brief(value: &str) -> String {
    const SHOWN: usize = 12;
    let is_hash = value.len() == 64 && value.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hash { format!("{}…", &value[..SHOWN]) } else { words::clean(value).into_owned() }
}

/// `kernel release: A 6.1.0-rt, B 6.1.0`, by the names `runs`, or by kernel if there are too many runs.
pub(crate) fn difference_text(
    comparison: &Comparison,
    runs: &[String],
    difference: &Difference,
) -> String {
    let values = if is_by_kernel(comparison) {
        let names = words::kernel_names(&comparison.groups);
        let groups = comparison.groups.iter().zip(names);
        groups.map(|(group, name)| format!("{name} {}", values_of(difference, group))).collect()
    } else {
        let values = difference.values.iter().zip(runs);
        values.map(|(value, run)| format!("{run} {}", brief(value))).collect::<Vec<_>>()
    };
    let cell = difference
        .cell
        .as_deref()
        .map_or_else(String::new, |cell| format!(" of {}", words::key_name(cell)));
    format!("{}{cell}: {}", words::clean(&difference.what), values.join(", "))
}

/// What the runs of one kernel have: one value, or how many others there are.
fn values_of(difference: &Difference, group: &KernelRuns) -> String {
    let mut values: Vec<&str> = Vec::new();
    for value in group.runs.iter().filter_map(|run| difference.values.get(*run)) {
        if !values.contains(&value.as_str()) {
            values.push(value);
        }
    }
    match values.as_slice() {
        [] => "-".to_owned(),
        [one] => brief(one),
        [one, others @ ..] => {
            let noun = if others.len() == 1 { "value" } else { "values" };
            format!("{} (and {} other {noun})", brief(one), others.len())
        }
    }
}

/// For each run that has cells of its own `only in A: wakeup @ none @ 10s, lat.io @ none @ 1s`.
pub(crate) fn unmatched_texts(comparison: &Comparison, runs: &[String]) -> Vec<String> {
    let of_run = |cells: &[Unmatched]| {
        let number = cells.first().map_or(0, |cell| cell.run);
        let run = match comparison.runs.get(number) {
            Some(run) if is_by_kernel(comparison) => words::clean(&run.run_id).into_owned(),
            _ => runs.get(number).cloned().unwrap_or_default(),
        };
        let keys: Vec<_> = cells.iter().map(|cell| words::key_name(&cell.key)).collect();
        format!("only in {run}: {}", keys.join(", "))
    };
    comparison.unmatched.chunk_by(|a, b| a.run == b.run).map(of_run).collect()
}
