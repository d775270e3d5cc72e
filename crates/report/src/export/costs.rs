//! What operations cost: a row for each cell of a cost.

use punctual_core::run::LoadedRun;
use punctual_core::schema::{Better, Cell, Cost, Origin};

use super::{Block, Choice, Field, chosen_cells, origin_of};
use crate::words::clean;

const COLUMNS: [&str; 15] = [
    "cell",
    "key",
    "origin",
    "metric",
    "column",
    "unit",
    "better",
    "value",
    "low",
    "high",
    "repetitions",
    "spread",
    "instructions",
    "status",
    "note",
];

/// One table: a block for each row would be of no use to gnuplot.
pub(super) fn block(run: &LoadedRun, choice: &Choice) -> Option<Block> {
    let costs = chosen_cells(run, choice).filter_map(|(number, cell, _)| {
        Some(row(number, cell, cell.cost()?, origin_of(run, cell)))
    });
    let rows: Vec<_> = costs.collect();
    (!rows.is_empty()).then(|| Block {
        cell: None,
        thread: None,
        columns: COLUMNS.map(str::to_owned).to_vec(),
        rows,
        is_first: true,
        is_last: true,
    })
}

fn row(number: usize, cell: &Cell, cost: &Cost, origin: Origin) -> Vec<Field> {
    let text = |text: &str| Field::Text(clean(text).into_owned());
    let text_or_none = |some: &Option<String>| some.as_deref().map_or(Field::Absent, text);
    let number_or_none = |some: Option<f64>| some.map_or(Field::Absent, Field::Number);
    vec![
        (number as u64).into(),
        text(&cell.key),
        text(origin.name()),
        text(&cost.metric),
        text_or_none(&cost.column),
        text(cost.unit.name()),
        text(if cost.better == Better::More { "more" } else { "less" }),
        number_or_none(cost.value),
        number_or_none(cost.low),
        number_or_none(cost.high),
        (cost.repetitions.len() as u64).into(),
        number_or_none(cost.spread),
        number_or_none(cost.instructions),
        text(cost.status.name()),
        text_or_none(&cost.note),
    ]
}
