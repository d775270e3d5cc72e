//! What metrics are called: by key, by family, by the name of a column of the table of costs, or by
//! a part of one.

use std::collections::BTreeSet;

use punctual_core::params::Named;

use crate::costs::COSTS;
use crate::registry::cost::{Column, CostEntry};
use crate::registry::{Param, near, param};

/// What published tables write before the names of columns of context switches.
const BEFORE_SWITCHES: &str = "ctxsw ";

/// The cells of the summary: every column of the table, by section.
#[must_use]
pub fn summary() -> Vec<Named> {
    sorted().into_iter().flat_map(columns).collect()
}

/// The cells of the summary, and those metrics that have no column in it.
#[must_use]
pub fn all() -> Vec<Named> {
    sorted().into_iter().flat_map(whole).collect()
}

/// The cells that a name stands for.
///
/// # Errors
/// The name means nothing, or it may mean several things, which the message lists.
pub fn asked(text: &str) -> Result<Vec<Named>, String> {
    let (name, params) = with_params(text)?;
    let family = || COSTS.iter().filter(|entry| family(entry) == Some(&*name));
    if params.params.is_empty() {
        if let Some(entry) = COSTS.iter().find(|entry| entry.name == name)
            && entry.columns.len() > 1
        {
            return Ok(columns(entry));
        }
        if family().next().is_some() {
            return Ok(family().flat_map(whole).collect());
        }
    }
    if let Some(found) = exact(&name)? {
        return Ok(vec![merged(found, params)]);
    }
    let mut parts = parts(&name);
    match (parts.pop(), parts.is_empty()) {
        (Some((_, found)), true) => Ok(vec![merged(found, params)]),
        (Some(last), false) => {
            parts.push(last);
            Err(ambiguous(&name, &parts))
        }
        (None, _) => Err(unknown(&name)),
    }
}

/// The cell that a name stands for where only the name of a metric or of a column is one; `None` if
/// it is neither.
///
/// # Errors
/// The name may mean several things, or its parameters cannot be read.
pub fn named(text: &str) -> Result<Option<Named>, String> {
    let (name, params) = with_params(text)?;
    Ok(exact(&name)?.map(|found| merged(found, params)))
}

/// The names of all columns, each with the cell that it stands for.
#[must_use]
pub fn aliases() -> Vec<(&'static str, Named)> {
    let all = sorted().into_iter().flat_map(|entry| entry.columns.iter().map(move |c| (entry, c)));
    all.map(|(entry, column)| (column.name, cell(entry, column))).collect()
}

/// The families of metrics, such as `lat`.
#[must_use]
pub fn families() -> BTreeSet<&'static str> {
    COSTS.iter().filter_map(family).collect()
}

fn family(entry: &CostEntry) -> Option<&'static str> {
    entry.name.split_once('.').map(|(family, _)| family)
}

fn sorted() -> Vec<&'static CostEntry> {
    let mut all: Vec<_> = COSTS.iter().collect();
    all.sort_by_key(|entry| entry.section);
    all
}

fn columns(entry: &'static CostEntry) -> Vec<Named> {
    entry.columns.iter().map(|column| cell(entry, column)).collect()
}

/// Its columns, or else the metric as it is by default, if it is anything by default.
fn whole(entry: &'static CostEntry) -> Vec<Named> {
    let is_required = |param: &Param| matches!(param.default, param::Default::Required);
    match entry.columns {
        [] if entry.params.iter().any(is_required) => Vec::new(),
        [] => vec![plain(entry)],
        _ => columns(entry),
    }
}

fn plain(entry: &CostEntry) -> Named {
    Named { name: entry.name.to_owned(), params: Default::default() }
}

fn cell(entry: &CostEntry, column: &Column) -> Named {
    Named { params: column.given(), ..plain(entry) }
}

/// The name before the colon, and the parameters after it.
fn with_params(text: &str) -> Result<(String, Named), String> {
    let params = Named::parse(text, "").map_err(|error| format!("cost \"{text}\": {error}"))?;
    Ok((params.name.clone(), params))
}

/// The cell with parameters that were given besides.
fn merged(mut found: Named, given: Named) -> Named {
    found.params.extend(given.params);
    found
}

fn exact(name: &str) -> Result<Option<Named>, String> {
    if let Some(entry) = COSTS.iter().find(|entry| entry.name == name) {
        return Ok(Some(plain(entry)));
    }
    let lower = name.to_lowercase();
    let short = lower.strip_prefix(BEFORE_SWITCHES);
    let means = |column: &str| {
        let column = column.to_lowercase();
        column == lower || Some(&*column) == short
    };
    let mut found: Vec<_> = aliases().into_iter().filter(|(column, _)| means(column)).collect();
    match found.len() {
        0 | 1 => Ok(found.pop().map(|(_, cell)| cell)),
        _ => Err(ambiguous(name, &found)),
    }
}

/// What has `part` in its name, each cell once.
fn parts(part: &str) -> Vec<(&'static str, Named)> {
    let part = part.to_lowercase();
    let without = COSTS.iter().filter(|entry| entry.columns.is_empty());
    let without = without.map(|entry| (entry.name, plain(entry)));
    let has = |(name, cell): &(&str, Named)| {
        name.to_lowercase().contains(&part) || cell.to_string().contains(&part)
    };
    aliases().into_iter().chain(without).filter(has).collect()
}

fn ambiguous(name: &str, found: &[(&str, Named)]) -> String {
    let list: Vec<_> = found.iter().map(|(name, cell)| format!("\"{name}\" ({cell})")).collect();
    format!("the cost \"{name}\" may be {}: name one of them", list.join(", "))
}

fn unknown(name: &str) -> String {
    let metrics: Vec<_> = COSTS.iter().map(|entry| entry.name).collect();
    let columns = aliases();
    let known = metrics.iter().copied().chain(columns.iter().map(|(column, _)| *column));
    let hint = near::hint(name, known);
    format!("unknown cost \"{name}\"{hint} (punctual list costs names them all)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_column_is_the_name_of_one_cell() {
        let mut cells = BTreeSet::new();
        for entry in COSTS {
            for column in entry.columns {
                let values = entry.read(&column.given()).unwrap();
                let cell = Named { name: entry.name.to_owned(), params: values.canonical() };
                assert_eq!(cell.params, column.given(), "{}: not in canonical form", column.name);
                for name in [column.name.to_owned(), column.name.to_uppercase()] {
                    assert_eq!(named(&name), Ok(Some(cell.clone())), "{name}");
                    assert_eq!(asked(&name), Ok(vec![cell.clone()]), "{name}");
                }
                let back = entry.column(&values).map(|column| column.name);
                assert_eq!(back, Some(column.name));
                assert!(cells.insert(cell.to_string()), "{} twice", column.name);
                // Nor is it the name of something else.
                assert!(!families().contains(column.name), "{}", column.name);
                assert!(COSTS.iter().all(|entry| entry.name != column.name), "{}", column.name);
            }
        }
        assert_eq!(summary().len(), cells.len());
    }

    #[test]
    fn the_summary_is_a_part_of_all_and_each_is_measured_once() {
        let keys: Vec<_> = all().iter().map(Named::to_string).collect();
        let distinct: BTreeSet<_> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len());
        assert!(summary().iter().all(|cell| keys.contains(&cell.to_string())));
        for entry in COSTS {
            assert!(asked(entry.name).is_ok(), "{}", entry.name);
        }
    }

    /// Columns of published tables that are no metric, and why.
    const NOT_OURS: [&str; 2] = [
        // A load that a table gives without saying what it is of.
        "scal load",
        // Values that the table gives without saying which column they belong to.
        "ctxsw column/row unknown",
    ];

    #[test]
    fn published_names_are_those_of_metrics() {
        let text = include_str!("../../../published/cost.csv");
        let published: BTreeSet<_> =
            text.lines().skip(1).filter_map(|line| line.split(',').nth(3)).collect();
        for name in published.into_iter().filter(|name| !NOT_OURS.contains(name)) {
            assert!(matches!(named(name), Ok(Some(_))), "{name} is published, but no metric");
        }
    }

    #[test]
    fn parameters_ride_on_every_name() {
        for name in ["lat.syscall:cpu=1", "null call:cpu=1", "syscall:cpu=1"] {
            let found = asked(name).unwrap();
            assert_eq!((found.len(), found[0].to_string()), (1, "lat.syscall:cpu=1".to_owned()));
        }
        assert_eq!(named("syscall"), Ok(None), "a part is no name elsewhere");
        assert!(asked("lat").unwrap().iter().any(|cell| cell.name == "lat.syscall"));
        let error = asked("null cal:x").unwrap_err();
        assert!(error.contains("key=value"), "{error}");
        let error = asked("nul cxll").unwrap_err();
        assert!(error.contains("did you mean \"null call\"?"), "{error}");
        // What may be several things is told with all of them.
        let several = [("a b", plain(&COSTS[0])), ("b c", plain(&COSTS[0]))];
        assert_eq!(
            ambiguous("b", &several),
            "the cost \"b\" may be \"a b\" (lat.syscall), \"b c\" (lat.syscall): name one of them"
        );
    }
}
