//! docs/run.schema.json, against a run with a cell of every kind.

mod common;

use punctual_core::plan::{CellPlan, Subject};
use punctual_core::schema::{
    AtWork, BoardIdentity, Ideal, IdentityKind, LoadPhase, PhaseFound, Run,
};
use serde_json::{Value, json};

/// What is not of a cell, as a run has it.
fn example() -> Value {
    let mut run = common::all_kinds("6.1.0", "rt", 1.0).run;
    let hash = "0123456789abcdef".repeat(4);
    (run.plan_hash, run.board.fingerprint, run.tool.sha256) = (hash.clone(), hash.clone(), hash);
    run.board.identity = vec![BoardIdentity::of(IdentityKind::Serial, "10000000abcdef01")];
    let cell = |subject| CellPlan {
        subject,
        params: Default::default(),
        load: "none".to_owned(),
        duration_ns: 1,
        samples: None,
        available: false,
    };
    run.plan.cells = vec![
        cell(Subject::Probe("wakeup".to_owned())),
        cell(Subject::Cost("lat.syscall".to_owned())),
    ];
    run.cells.push(common::skipped());
    let cell = &mut run.cells[0];
    let stats = cell.latency().unwrap().stats.clone();
    let found = PhaseFound { seconds: 1, stats, max_at_ns: Some(5), late: None };
    let phase = LoadPhase {
        load: "copy".to_owned(),
        for_ns: 2_000_000_000,
        at_work: vec![AtWork { from_ns: 1, to_ns: 2_000_000_000 }],
        found: found.clone(),
    };
    (cell.phases, cell.changes) = (vec![phase.clone(), phase], Some(found));
    cell.load_work[0].phase = Some(1);
    serde_json::to_value(run).unwrap()
}

fn validator() -> jsonschema::Validator {
    let schema = include_str!("../../../docs/run.schema.json");
    jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap()
}

#[test]
fn a_cell_of_every_kind_is_as_the_schema_says() {
    let run = example();
    let kinds: Vec<_> = run["cells"].as_array().unwrap().iter().map(|c| &c["kind"]).collect();
    for kind in ["latency", "cost", "response"] {
        assert!(kinds.contains(&&json!(kind)), "{kind}");
    }
    let validator = validator();
    let errors = validator.iter_errors(&run).take(5);
    let errors: Vec<_> = errors.map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    let read: Run = serde_json::from_value(run.clone()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), run);
}

#[test]
fn what_samples_would_be_is_an_interval_or_a_pulse() {
    let validator = validator();
    let valid = |ideal: Value| {
        let mut run = example();
        run["cells"][0]["ideal"] = ideal;
        validator.is_valid(&run)
    };
    for ideal in [Ideal::Interval { ns: 9, limit_ns: 27 }, Ideal::Pulse { width_ns: 50_000 }] {
        assert!(valid(serde_json::to_value(&ideal).unwrap()), "{ideal:?}");
    }
    assert!(valid(json!(null)));
    for wrong in [json!({ "kind": "pulse", "ns": 9 }), json!({ "kind": "square", "width_ns": 9 })] {
        assert!(!valid(wrong.clone()), "{wrong}");
    }
}

#[test]
fn the_schema_refuses_what_is_no_cell_of_its_kind() {
    let run = example();
    let place = |kind: &str| {
        let cells = run["cells"].as_array().unwrap();
        cells.iter().position(|cell| cell["kind"] == kind).unwrap()
    };
    let (latency, cost, response) = (place("latency"), place("cost"), place("response"));
    let validator = validator();
    let refused = |pointer: String, value: Value| {
        let mut wrong = run.clone();
        *wrong.pointer_mut(&pointer).unwrap_or_else(|| panic!("no {pointer}")) = value;
        assert!(!validator.is_valid(&wrong), "{pointer} may be anything");
    };
    refused("/schema".to_owned(), json!("1.1"));
    for (of, key, value) in [
        (latency, "kind", json!("cost")),
        (latency, "kind", json!("tremor")),
        (latency, "max_ns", json!("20 us")),
        (latency, "series/0/role", json!("primary")),
        (latency, "series/1/unit", json!("furlongs")),
        (latency, "series/0/stats/max", json!(null)),
        (latency, "threads/0/policy", json!("fast")),
        (latency, "threads/0/series/0/samples", json!(-1)),
        (latency, "helpers/0/name", json!("")),
        (latency, "counters/0/tells", json!("bad")),
        (latency, "primary/noun", json!(null)),
        (latency, "phases/0/for_ns", json!(1_999_999_999)),
        (latency, "phases/1/at_work/0/to_ns", json!(null)),
        (latency, "phases/1/max_ns", json!("20 us")),
        (latency, "changes/seconds", json!(-1)),
        (latency, "load_work/0/phase", json!("first")),
        (cost, "kind", json!("latency")),
        (cost, "unit", json!("ns/op")),
        (cost, "better", json!("bigger")),
        (cost, "end", json!("bored")),
        (cost, "value", json!("1")),
        (response, "sides/0/role", json!("guest")),
        (response, "line_ns", json!(-1)),
    ] {
        refused(format!("/cells/{of}/{key}"), value);
    }
    for (of, key) in
        [(latency, "primary"), (latency, "max_ns"), (cost, "metric"), (response, "sides")]
    {
        let mut wrong = run.clone();
        wrong["cells"][of].as_object_mut().unwrap().remove(key).unwrap();
        assert!(!validator.is_valid(&wrong), "{key} may be missing");
    }
}
