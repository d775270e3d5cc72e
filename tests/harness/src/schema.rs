//! docs/run.schema.json.

use std::fs;

use jsonschema::Validator;
use serde_json::Value;

/// What tells whether a `run.json` is as its schema says.
pub fn validator() -> Validator {
    let path = crate::sources().join("docs/run.schema.json");
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    jsonschema::validator_for(&serde_json::from_str(&text).unwrap()).unwrap()
}

/// Checks that a `run.json` is as its schema says.
#[track_caller]
pub fn validate(run: &Value) {
    let validator = validator();
    let errors = validator.iter_errors(run).take(5);
    let errors: Vec<_> =
        errors.map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}
