//! The list of an experiment's runs.

use punctual_lab::experiment::runs_listed;

pub fn target(bytes: &[u8]) {
    let runs = runs_listed(bytes);
    let written = serde_json::to_vec(&serde_json::json!({"runs": runs})).unwrap();
    assert_eq!(runs_listed(&written), runs);
}
