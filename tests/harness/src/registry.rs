//! What there is to test: taken from `punctual list --json`, so that a new probe or load is
//! tested by itself.

use serde_json::Value;

use crate::place::Place;

/// Every entry of a list: `probes`, `loads`, `plans`.
pub fn entries(place: &Place, list: &str) -> Vec<Value> {
    let entries = place.run("list --json").with(0).json()[list].as_array().unwrap().clone();
    assert!(!entries.is_empty(), "there are no {list}");
    entries
}

/// The name of an entry.
pub fn name(entry: &Value) -> &str {
    entry["name"].as_str().unwrap()
}

/// Whether this machine lacks something that the entry always needs.
pub fn unmet(entry: &Value) -> bool {
    let needs = entry["needs"].as_array().unwrap();
    needs.iter().any(|need| need["with"].is_null() && need["met"] == false)
}

/// A load with the parameters that it cannot do without.
pub fn load(name: &str) -> String {
    match name {
        // Longer than it takes to be believed that it has started.
        "cmd" => "cmd:sleep 0.4".to_owned(),
        // Not on the console of the machine that runs the tests.
        "console" => "console:tty=/dev/null".to_owned(),
        name => name.to_owned(),
    }
}
