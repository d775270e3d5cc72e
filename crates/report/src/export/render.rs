//! Tables as comma-separated values, as text for gnuplot, and as JSON.

use punctual_core::schema::Origin;
use serde_json::{Map, Number, Value};

use super::{Block, Field, MADE_UP};
use crate::words::{clean, key_name};

/// How a table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values (RFC 4180, with line feeds): one header, then a row per line
    /// that begins with cell, key, origin, thread and CPUs.
    Csv,
    /// Columns separated by tabs. A comment before each block names its cell and thread, and
    /// two empty lines end it, as gnuplot's `index` expects.
    Text,
    /// An array of objects, one per row, with the names of the CSV columns.
    Json,
}

/// Writes blocks. Each item is a piece of the output, to be written as it is.
pub fn render<'a>(
    blocks: impl Iterator<Item = Block> + 'a,
    format: Format,
) -> Box<dyn Iterator<Item = String> + 'a> {
    match format {
        Format::Csv => Box::new(blocks.enumerate().map(|(n, block)| csv(&block, n == 0))),
        Format::Text => Box::new(blocks.map(|block| text(&block))),
        Format::Json => {
            let objects = blocks.enumerate().map(|(n, block)| json(&block, n == 0));
            let (open, close) =
                (std::iter::once("[".to_owned()), std::iter::once("\n]\n".to_owned()));
            Box::new(open.chain(objects).chain(close))
        }
    }
}

/// Names and values of the columns that say whose rows these are.
fn whose(block: &Block) -> Vec<(&'static str, Field)> {
    let mut whose = Vec::new();
    if let Some((number, key, origin)) = &block.cell {
        let number = Field::Integer(i128::try_from(*number).unwrap_or(i128::MAX));
        whose.push(("cell", number));
        whose.push(("key", Field::Text(clean(key).into_owned())));
        whose.push(("origin", Field::Text(origin.name().to_owned())));
    }
    if let Some((thread, cpus)) = &block.thread {
        whose.push(("thread", Field::from(u64::from(*thread))));
        whose.push(("cpus", Field::Text(clean(cpus).into_owned())));
    }
    whose
}

fn csv(block: &Block, with_header: bool) -> String {
    let whose = whose(block);
    let mut text = String::new();
    if with_header {
        let names = whose.iter().map(|(name, _)| *name);
        let names: Vec<_> = names.chain(block.columns.iter().map(String::as_str)).collect();
        text.push_str(&(names.join(",") + "\n"));
    }
    let quoted = |field: &Field| match field {
        Field::Text(text) if text.contains([',', '"', '\n']) => {
            format!("\"{}\"", text.replace('"', "\"\""))
        }
        field => plain(field, ""),
    };
    let first: Vec<_> = whose.iter().map(|(_, field)| quoted(field)).collect();
    for row in &block.rows {
        let fields: Vec<_> = first.iter().cloned().chain(row.iter().map(quoted)).collect();
        text.push_str(&(fields.join(",") + "\n"));
    }
    text
}

fn text(block: &Block) -> String {
    let mut text = String::new();
    if block.is_first {
        if let Some((number, key, origin)) = &block.cell {
            text = format!("# cell {number}: {}\n", key_name(key));
            if *origin == Origin::Simulated {
                text.push_str(MADE_UP);
            }
        }
        if let Some((thread, cpus)) = &block.thread {
            text.push_str(&format!("# thread {thread}, CPU {}\n", clean(cpus)));
        }
        text.push_str(&format!("# {}\n", block.columns.join("\t")));
    }
    for row in &block.rows {
        // gnuplot separates columns at any white space.
        let one = |field: &Field| match field {
            Field::Text(text) => text.replace(char::is_whitespace, "-"),
            field => plain(field, "NaN"),
        };
        let fields: Vec<_> = row.iter().map(one).collect();
        text.push_str(&(fields.join("\t") + "\n"));
    }
    if block.is_last { text + "\n\n" } else { text }
}

fn json(block: &Block, is_first: bool) -> String {
    let whose = whose(block);
    let mut text = String::new();
    for (n, row) in block.rows.iter().enumerate() {
        let first = whose.iter().map(|(name, field)| ((*name).to_owned(), value(field)));
        let rest = block.columns.iter().cloned().zip(row.iter().map(value));
        let object: Map<String, Value> = first.chain(rest).collect();
        text.push_str(if is_first && n == 0 { "\n" } else { ",\n" });
        text.push_str(&Value::Object(object).to_string());
    }
    text
}

fn plain(field: &Field, absent: &str) -> String {
    match field {
        Field::Text(text) => text.clone(),
        Field::Integer(value) => value.to_string(),
        Field::Mean(value) => format!("{value:.1}"),
        Field::Number(value) => value.to_string(),
        Field::Absent => absent.to_owned(),
    }
}

fn value(field: &Field) -> Value {
    match field {
        Field::Text(text) => Value::String(text.clone()),
        Field::Integer(value) => Number::from_i128(*value).map_or(Value::Null, Value::Number),
        Field::Mean(value) | Field::Number(value) => {
            Number::from_f64(*value).map_or(Value::Null, Value::Number)
        }
        Field::Absent => Value::Null,
    }
}
