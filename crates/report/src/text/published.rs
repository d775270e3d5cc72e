//! Runs beside a publication, in the terminal.

use std::borrow::Cow;

use punctual_core::units::human_ns;

use super::style::{Paint, Style};
use super::table::{Align, Table};
use super::wrap::push_wrapped;
use crate::published::PublishedBeside;
use crate::words;

/// Costs and latencies of runs beside those of a publication, with what is doubtful about them.
/// `width` and `colour` as for [`super::summary`].
#[must_use]
pub fn published(beside: &PublishedBeside, width: usize, colour: bool) -> String {
    let paint = Paint::new(colour);
    let mut out = String::new();
    let title = format!("Published: {}", beside.citation.title);
    for line in super::wrap(&title, width) {
        out.push_str(&format!("{}\n", paint.apply(&line, Style::Strong)));
    }
    push_wrapped(&mut out, &beside.platforms.join("; "), "  ", 2, width);
    push_wrapped(&mut out, words::PUBLISHED, &paint.apply("  ! ", Style::Doubt), 4, width);
    for doubt in beside.citation.doubts {
        push_wrapped(&mut out, doubt, &paint.apply("  ! ", Style::Doubt), 4, width);
    }
    out.push_str(&costs(beside, width, paint));
    out.push_str(&latencies(beside, width, paint));
    out
}

/// A row for each cost; as many runs and kernels stand beside each other as fit.
fn costs(beside: &PublishedBeside, width: usize, paint: Paint) -> String {
    let parts = beside.parts();
    if parts.is_empty() {
        return String::new();
    }
    let mut out = "\n".to_owned();
    let mut heads: Vec<String> = beside.runs.clone();
    heads.extend(beside.kernels.iter().map(|kernel| words::clean(kernel).into_owned()));
    let table = |from: usize, to: usize| {
        let mut columns: Vec<(Cow<'static, str>, Align)> = vec![("cost".into(), Align::Left)];
        columns.extend(heads[from..to].iter().map(|head| (head.clone().into(), Align::Right)));
        let mut table = Table::headed(columns);
        for (title, costs) in &parts {
            table.heading(title.clone());
            for (name, cost) in costs {
                let [runs, published] = PublishedBeside::values(cost);
                let runs = runs.into_iter().map(|value| (value, Style::Strong));
                let published = published.into_iter().map(|value| (value, Style::Plain));
                let values = runs.chain(published).skip(from).take(to - from);
                let mut row = vec![(name.clone(), Style::Plain)];
                row.extend(values);
                table.row(row);
            }
        }
        table
    };
    let mut from = 0;
    while from < heads.len() {
        let mut to = heads.len();
        while to > from + 1 && table(from, to).is_squeezed(width) {
            to -= 1;
        }
        out.push_str(&table(from, to).render(width, paint));
        from = to;
    }
    for doubt in beside.cost_doubts() {
        push_wrapped(&mut out, &doubt, &paint.apply("  ! ", Style::Doubt), 4, width);
    }
    out
}

fn latencies(beside: &PublishedBeside, width: usize, paint: Paint) -> String {
    if beside.published.is_empty() {
        return String::new();
    }
    let right = Align::Right;
    let heads = [("kernel", Align::Left), ("max", right), ("avg", right), ("min", right)];
    let mut table = Table::new(&heads).lesser(&["min", "avg"]);
    let plain = |text: &str| (words::clean(text).into_owned(), Style::Plain);
    let value = |ns: Option<i64>| ns.map_or_else(|| "-".to_owned(), human_ns);
    for same in beside.measured.chunk_by(|a, b| a.key == b.key) {
        let key = same.first().map_or("", |cell| cell.key.as_str());
        table.heading(format!("Measured: {}", words::key_name(key)));
        for cell in same {
            let name = beside.runs.get(cell.run).cloned().unwrap_or_default();
            let cells = vec![
                plain(&name),
                (value(cell.max_ns), Style::Strong),
                (cell.avg_ns.map_or_else(|| "-".to_owned(), words::mean_ns), Style::Plain),
                (value(cell.min_ns), Style::Plain),
            ];
            table.named_row(cells, name);
        }
    }
    for (title, latencies) in beside.tests() {
        table.heading(format!("Published: {}", words::clean(&title)));
        for latency in latencies {
            let number = |value: &Option<String>| match value {
                Some(value) => plain(&format!("{value} {}", latency.unit)),
                None => plain("-"),
            };
            let numbers = [number(&latency.max), number(&latency.avg), number(&latency.min)];
            let row = std::iter::once(plain(&latency.kernel)).chain(numbers).collect();
            table.named_row(row, words::clean(&latency.kernel).into_owned());
            if let Some(note) = &latency.note {
                table.note(format!("! {}", words::clean(note)));
            }
        }
    }
    format!("\n{}", table.render(width, paint))
}
