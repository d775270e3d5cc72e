//! Interrupts during the measurement, as a table: one row each, one column for each CPU.

use std::collections::BTreeSet;

use maud::{Markup, html};
use punctual_core::schema::Run;
use punctual_core::units::grouped;
use serde_json::Value;

use super::parts::{heads, number};
use crate::words;

/// The groups of facts that this table stands for.
pub const GROUPS: [&str; 3] = ["interrupts_before", "interrupts_during", "interrupts_after"];

/// Beyond this many CPUs only the busiest of them is named.
const MOST_CPUS: usize = 16;

/// The table; nothing if they were not counted.
pub fn table(run: &Run) -> Markup {
    let Some(Value::Object(found)) = run.facts.get("interrupts_during") else {
        return html! {};
    };
    let mut rows: Vec<Source<'_>> =
        found.iter().map(|(name, counts)| Source::of(name, counts)).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.total));
    let cpus: BTreeSet<u64> =
        rows.iter().flat_map(|row| row.cpus.iter().map(|(n, _)| *n)).collect();
    let cpus: Vec<u64> = cpus.into_iter().collect();
    let each = cpus.len() <= MOST_CPUS;
    let mut names: Vec<String> = vec!["all CPUs".to_owned()];
    if each {
        names.extend(cpus.iter().map(|cpu| format!("CPU {cpu}")));
    } else {
        names.extend(["most".to_owned(), "on CPU".to_owned()]);
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    html! {
        @if !rows.is_empty() {
            div class="scroll" { table {
                (heads("Interrupts during the measurement (before and after: see run.json)", &["interrupt"], &names))
                tbody { @for row in &rows {
                    tr {
                        th scope="row" { (words::clean(row.name)) " " span class="soft" { (words::clean(row.description)) } }
                        (number(grouped(row.total)))
                        @if each {
                            @for cpu in &cpus { (number(row.on(*cpu))) }
                        } @else if let Some((cpu, count)) = row.cpus.iter().max_by_key(|(_, count)| *count) {
                            (number(grouped(*count)))
                            (number(cpu.to_string()))
                        }
                    }
                } }
            } }
        }
    }
}

struct Source<'a> {
    name: &'a str,
    description: &'a str,
    total: u64,
    cpus: Vec<(u64, u64)>,
}

impl<'a> Source<'a> {
    fn of(name: &'a str, counts: &'a Value) -> Self {
        let number = |value: &Value| value.as_u64().unwrap_or(0);
        let cpus = counts.get("cpus").and_then(Value::as_object).into_iter().flatten();
        Self {
            name,
            description: counts.get("description").and_then(Value::as_str).unwrap_or_default(),
            total: counts.get("total").map_or(0, number),
            cpus: cpus.filter_map(|(cpu, n)| Some((cpu.parse().ok()?, number(n)))).collect(),
        }
    }

    fn on(&self, cpu: u64) -> String {
        let count = self.cpus.iter().find(|(number, _)| *number == cpu);
        count.map_or_else(|| "–".to_owned(), |(_, count)| grouped(*count))
    }
}
