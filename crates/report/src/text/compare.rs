//! `punctual compare`: runs side by side, and what may not be concluded.

use punctual_core::compare::{Comparison, Difference, Estimate, Quantity, Replicates, Role, Row};
use punctual_core::units::{grouped, human_ns};

use super::style::{Paint, Style, of_outcome};
use super::table::{Align, Table, push_wrapped};
use crate::words;

/// Runs side by side in the terminal: a letter for every run, a row for every
/// cell and run with its ratio to the first, estimates over replicates, what
/// differs, and last what may not be concluded. `width` and `colour` as for
/// [`super::summary`].
#[must_use]
pub fn comparison(comparison: &Comparison, width: usize, colour: bool) -> String {
    let paint = Paint::new(colour);
    let mut out = String::new();
    for (i, run) in comparison.runs.iter().enumerate() {
        let outcome = paint.apply(words::outcome(run.outcome), of_outcome(run.outcome));
        out.push_str(&format!(
            "{}  {} · Linux {} {} · {outcome}\n   {}\n",
            paint.apply(&words::letter(i), Style::Strong),
            words::clean(&run.board),
            words::clean(&run.kernel),
            words::preemption_name(&run.preemption),
            paint.apply(&words::clean(&run.run_id), Style::Faint),
        ));
    }
    out.push('\n');
    out.push_str(&cells(comparison).render(width, paint));
    for cell in &comparison.unmatched {
        let run = words::letter(cell.run);
        out.push_str(&format!("  only in {run}: {}\n", words::clean(&cell.key)));
    }
    if let Some(replicates) = &comparison.replicates {
        out.push_str(&estimates(replicates, width, paint));
    }
    if !comparison.differences.is_empty() {
        out.push_str(&format!("\n{}\n", paint.apply("What differs", Style::Strong)));
        for difference in &comparison.differences {
            let first = match difference.role {
                Role::Subject => "    ".to_owned(),
                Role::Confounder => paint.apply("  ! ", Style::Doubt),
            };
            push_wrapped(&mut out, &difference_text(difference), &first, 4, width);
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
    ]);
    for cell in &comparison.cells {
        table.heading(words::clean(&cell.key).into_owned());
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

fn estimates(replicates: &Replicates, width: usize, paint: Paint) -> String {
    let mut out = format!("\n{}\n", paint.apply(&estimates_title(replicates), Style::Strong));
    let right = Align::Right;
    let mut table = Table::new(&[
        ("quantity", Align::Left),
        ("runs", right),
        ("ratio", right),
        ("interval", right),
        ("at most", right),
        ("bootstrap", right),
        ("p (Holm)", right),
    ]);
    let mut key = None;
    for estimate in &replicates.estimates {
        if key != Some(&estimate.key) {
            table.heading(words::clean(&estimate.key).into_owned());
            key = Some(&estimate.key);
        }
        let cells = estimate_texts(estimate);
        table.row(cells.into_iter().map(|text| (text, Style::Plain)).collect());
    }
    out.push_str(&table.render(width, paint));
    out
}

/// Which kernels the ratios of replicates are of, and at what confidence.
pub(crate) fn estimates_title(replicates: &Replicates) -> String {
    format!(
        "{} over {}, runs as replicates, {:.0} % confidence",
        words::clean(&replicates.other.kernel),
        words::clean(&replicates.base.kernel),
        replicates.confidence * 100.0
    )
}

/// Quantity, runs, ratio, interval, upper bound, bootstrap and adjusted p.
pub(crate) fn estimate_texts(estimate: &Estimate) -> [String; 7] {
    let interval = |ends: Option<[f64; 2]>| {
        ends.map_or_else(
            || "-".to_owned(),
            |[low, high]| format!("{} to {}", words::ratio(Some(low)), words::ratio(Some(high))),
        )
    };
    let quantity = match estimate.quantity {
        Quantity::P999Ns => "p99.9",
        Quantity::MaxNs => "max",
    };
    [
        quantity.to_owned(),
        format!("{} / {}", estimate.runs[1], estimate.runs[0]),
        words::ratio(estimate.ratio),
        interval(estimate.interval),
        words::ratio(estimate.upper),
        interval(estimate.bootstrap),
        estimate.p_adjusted.map_or_else(|| "-".to_owned(), |p| format!("{p:.3}")),
    ]
}

/// `kernel release: A 6.1.0-rt, B 6.1.0`.
pub(crate) fn difference_text(difference: &Difference) -> String {
    let values: Vec<_> = difference
        .values
        .iter()
        .enumerate()
        .map(|(i, value)| format!("{} {}", words::letter(i), words::clean(value)))
        .collect();
    let cell = difference
        .cell
        .as_deref()
        .map_or_else(String::new, |cell| format!(" of {}", words::clean(cell)));
    format!("{}{cell}: {}", words::clean(&difference.what), values.join(", "))
}
