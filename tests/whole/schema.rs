//! docs/run.schema.json, against real runs.

use std::fs;

use serde_json::json;

use punctual_harness::Place;
use punctual_harness::schema::{validate, validator};

/// A schema that takes anything would prove nothing.
#[test]
fn the_schema_refuses_what_is_no_run() {
    let place = Place::new();
    let run = place.run("run sim -D 1 --json --no-report").with(0).json();
    validate(&run);
    let validator = validator();
    for (pointer, value) in [
        ("/schema", json!(1)),
        ("/state", json!("sleeping")),
        ("/cells/0/samples", json!(-1)),
        ("/cells/0/max_ns", json!("20 us")),
        ("/cells/0/threads/0/policy", json!(null)),
        ("/verdict/outcome", json!("MAYBE")),
        ("/plan_hash", json!("xyz")),
        ("/started/monotonic_ns", json!(12)),
    ] {
        let mut wrong = run.clone();
        *wrong.pointer_mut(pointer).unwrap_or_else(|| panic!("no {pointer}")) = value;
        assert!(!validator.is_valid(&wrong), "{pointer} may be anything");
    }
    for key in ["schema", "run_id", "cells", "verdict", "board", "kernel", "privileged"] {
        let mut wrong = run.clone();
        wrong.as_object_mut().unwrap().remove(key);
        assert!(!validator.is_valid(&wrong), "{key} may be missing");
    }
}

/// What only some plans have, and cells that can only be skipped.
#[test]
fn a_run_of_planned_probes_is_as_the_schema_says() {
    let place = Place::new();
    let plan = "name = \"ahead\"\nkernels = [\"none\", \"rt\"]\n\
                [[cell]]\nprobe = \"respond-net\"\n[[cell]]\nprobe = \"sim\"\nduration = \"1s\"\n\
                [variant.short]\nduration = \"1s\"\n";
    fs::write(place.at("ahead.toml"), plan).unwrap();
    let run = place.run("run --plan ahead.toml --variant short --json --no-report").with(4).json();
    assert_eq!(run["plan"]["variant"], "short");
    validate(&run);
    let validator = validator();
    for (pointer, value) in [
        ("/plan/kernels/0", json!("preempt")),
        ("/plan/variant", json!("")),
        ("/cells/0/reason", json!(null)),
    ] {
        let mut wrong = run.clone();
        *wrong.pointer_mut(pointer).unwrap() = value;
        assert!(!validator.is_valid(&wrong), "{pointer}");
    }
}
