//! A history in the terminal: a row for each kernel under each load.

use punctual_core::history::{History, HistoryKernel};

use super::READ;
use crate::text::{Align, Paint, Style, Table, push_wrapped};
use crate::words;

/// The table, and what may not be concluded from it.
#[must_use]
pub fn text(history: &History, width: usize, colour: bool) -> String {
    let right = Align::Right;
    let mut table = Table::new(&[
        ("release", Align::Left),
        ("model", Align::Left),
        ("max", right),
        ("p99.9", right),
        ("avg", right),
        ("boots", right),
    ])
    .lesser(&["boots", "p99.9"]);
    for (number, key) in history.cells.iter().enumerate() {
        table.heading(words::key_name(key));
        let mut before = "";
        for kernel in &history.kernels {
            let release = kernel.short_release();
            table.row(row(kernel, number, if release == before { "" } else { release }));
            before = release;
        }
    }
    let mut out = String::new();
    push_wrapped(&mut out, READ, "", 0, width);
    out.push_str(&table.render(width, Paint::new(colour)));
    if !history.boards.is_empty() {
        let boards = words::clean(&history.boards.join("; ")).into_owned();
        push_wrapped(&mut out, &format!("Measured on {boards}."), "", 0, width);
    }
    for caveat in &history.caveats {
        push_wrapped(&mut out, &words::clean(caveat), "  ! ", 4, width);
    }
    out
}

/// What a kernel measured, as cells of a table: maximum, p99.9, average, boots.
pub(super) fn values(kernel: &HistoryKernel, cell: usize) -> Option<[String; 4]> {
    let spread = kernel.cells.get(cell)?.as_ref()?;
    let median = |ends: words::Ends| words::span(ends.map(|[_, median, _]| [median; 3]));
    Some([
        words::span(words::ends(spread.max_ns)),
        median(words::ends(spread.p999_ns)),
        median(words::mean_ends(spread.avg_ns)),
        spread.runs.to_string(),
    ])
}

fn row(kernel: &HistoryKernel, cell: usize, release: &str) -> Vec<(String, Style)> {
    let plain = |text: String| (text, Style::Plain);
    let mut cells =
        vec![plain(words::clean(release).into_owned()), plain(kernel.model.as_str().to_owned())];
    match values(kernel, cell) {
        Some([max, p999, avg, boots]) => {
            cells.push((max, Style::Strong));
            cells.extend([p999, avg, boots].map(plain));
        }
        None => cells.push(("no samples".to_owned(), Style::Doubt)),
    }
    cells
}
