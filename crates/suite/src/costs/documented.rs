//! The table of docs/costs.md has every metric, with the names and units of the registry.

use std::collections::BTreeSet;
use std::path::Path;

use punctual_core::schema::Better;

use super::COSTS;

fn repository(file: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(file)).unwrap()
}

/// The cells of each row that begins with a key.
fn rows(document: &str) -> Vec<Vec<String>> {
    let rows = document.lines().filter(|line| line.starts_with("| `"));
    let cell = |cell: &str| cell.trim().trim_matches('`').to_owned();
    rows.map(|row| row.trim_matches('|').split('|').map(cell).collect()).collect()
}

/// The metrics of published tables.
fn published() -> BTreeSet<String> {
    let table = repository("published/cost.csv");
    let name = |line: &str| line.split(',').nth(3).unwrap().to_owned();
    table.lines().skip(1).map(name).map(|name| name.replace("ctxsw ", "")).collect()
}

#[test]
fn every_metric_is_in_the_table() {
    let (rows, published) = (rows(&repository("docs/costs.md")), published());
    for entry in COSTS {
        let better = if entry.better == Better::More { "more" } else { "less" };
        let end = [entry.unit.name(), better];
        if entry.columns.is_empty() {
            let row = [entry.name, end[0], end[1]];
            assert!(rows.iter().any(|found| *found == row), "{row:?}");
        }
        for column in entry.columns {
            let params = column.given().into_iter().map(|(key, value)| format!("{key}={value}"));
            let params = params.collect::<Vec<_>>().join(",");
            let separator = if params.is_empty() { "" } else { ":" };
            let key = format!("{}{separator}{params}", entry.name);
            let known = published.contains(column.name);
            let name = if known { column.name.to_owned() } else { format!("({})", column.name) };
            let row = [key.as_str(), name.as_str(), end[0], end[1]];
            assert!(rows.iter().any(|found| *found == row), "{row:?}");
        }
    }
}

#[test]
fn every_name_of_the_table_is_published_or_said_to_be_our_own() {
    let published = published();
    for row in rows(&repository("docs/costs.md")).iter().filter(|row| row.len() == 4) {
        let own = row[1].starts_with('(') && row[1].ends_with(')');
        assert!(own || published.contains(&row[1]), "{row:?}");
    }
}

#[test]
fn a_column_is_found_by_its_parameters() {
    for entry in COSTS {
        for column in entry.columns {
            let values = entry.read(&column.given()).unwrap();
            let found = entry.column(&values).map(|found| found.name);
            assert_eq!(found, Some(column.name), "{}", entry.name);
        }
    }
}
