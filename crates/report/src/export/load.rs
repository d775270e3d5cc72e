//! The work of the loads in every second, and the use of the CPUs.

use punctual_core::run::CellData;
use punctual_core::schema::{Cell, Origin};

use super::{Block, Field};
use crate::words::clean;

pub(super) fn block(number: usize, cell: &Cell, origin: Origin, data: &CellData) -> Option<Block> {
    let mut rows = Vec::new();
    let mut before: Vec<Vec<u64>> = Vec::new();
    for (second, part, totals) in &data.work {
        let part = *part as usize;
        let Some(work) = cell.load_work.get(part) else {
            continue;
        };
        if before.len() <= part {
            before.resize_with(part + 1, Vec::new);
        }
        for (n, (counter, total)) in work.counters.iter().zip(totals).enumerate() {
            let done = total.saturating_sub(before[part].get(n).copied().unwrap_or(0));
            rows.push(row(*second, &work.load, &counter.name, done));
        }
        before[part].clone_from(totals);
    }
    for (second, busy, steal) in &data.system {
        rows.push(row(*second, "CPUs", "busy_permille", u64::from(*busy)));
        rows.push(row(*second, "CPUs", "steal_permille", u64::from(*steal)));
    }
    let columns = ["second", "load", "counter", "count"];
    (!rows.is_empty()).then(|| Block {
        cell: number,
        key: cell.key.clone(),
        origin,
        thread: None,
        columns: columns.map(str::to_owned).to_vec(),
        rows,
        is_first: true,
        is_last: true,
    })
}

fn row(second: u64, load: &str, counter: &str, count: u64) -> Vec<Field> {
    let text = |text: &str| Field::Text(clean(text).replace(char::is_whitespace, "-"));
    vec![second.into(), text(load), text(counter), count.into()]
}
