//! Plans in TOML: what is accepted can be checked, named and stored.

use punctual_core::plan::{Plan, PlanError};

pub fn target(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    check(Plan::from_toml(text));
    for variant in Plan::variants(text).unwrap_or_default() {
        check(Plan::from_toml_variant(text, Some(&variant)));
    }
}

fn check(read: Result<Plan, PlanError>) {
    match read {
        Ok(plan) => {
            let _ = plan.check();
            for (number, cell) in plan.cells.iter().enumerate() {
                let _ = cell.key();
                let dir = cell.dir(number);
                assert!(!dir.contains('/') && dir != "." && dir != "..", "{dir}");
            }
            let stored = serde_json::to_string(&plan).unwrap();
            assert_eq!(serde_json::from_str::<Plan>(&stored).unwrap(), plan);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
