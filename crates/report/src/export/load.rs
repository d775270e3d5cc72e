//! The work of the loads in every second, and the use of the CPUs.

use punctual_core::block::System;
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
    for System { second, busy, steal, strain } in &data.system {
        let [cpu, memory, io] = strain.pressure.map(|share| share.map(u64::from));
        let found = [
            ("CPUs", "busy_permille", Some(u64::from(*busy))),
            ("CPUs", "steal_permille", Some(u64::from(*steal))),
            ("CPUs", "interrupts", strain.interrupts),
            ("CPUs", "context_switches", strain.switches),
            ("pressure", "cpu_permille", cpu),
            ("pressure", "memory_permille", memory),
            ("pressure", "io_permille", io),
        ];
        let known = found.into_iter().filter_map(|(of, name, count)| Some((of, name, count?)));
        rows.extend(known.map(|(of, name, count)| row(*second, of, name, count)));
    }
    let columns = ["second", "load", "counter", "count"];
    (!rows.is_empty()).then(|| Block {
        cell: Some((number, cell.key.clone(), origin)),
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
