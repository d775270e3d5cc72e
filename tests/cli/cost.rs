//! Costs by name: what is measured, what is told of it, and what is refused.

use serde_json::Value;

use crate::support::{Scratch, json, stderr, stdout};

/// The keys that other programs read of a cost.
const KEYS: [&str; 11] = [
    "key",
    "column",
    "metric",
    "unit",
    "better",
    "value",
    "low",
    "high",
    "repetitions",
    "status",
    "note",
];

fn costs(run: &Value) -> Vec<&Value> {
    run["cells"].as_array().unwrap().iter().filter(|cell| cell["kind"] == "cost").collect()
}

#[test]
fn a_cost_is_measured_by_every_name_and_printed_as_one_document() {
    let scratch = Scratch::new("cost-names");
    for words in [&["null call"][..], &["NULL CALL"], &["syscall"], &["lat.syscall"]] {
        let line: Vec<_> = ["cost"].iter().chain(words).copied().collect();
        let more = ["-D", "100ms", "--json", "--no-report"];
        let words: Vec<_> = line.into_iter().chain(more).collect();
        let output = scratch.through(&[], &words).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let run = json(&output);
        let costs = costs(&run);
        assert_eq!((costs.len(), run["cells"].as_array().unwrap().len()), (1, 1));
        for key in KEYS {
            assert!(costs[0].get(key).is_some(), "{key}");
        }
        assert_eq!(
            (&costs[0]["metric"], &costs[0]["column"]),
            (&"lat.syscall".into(), &"null call".into())
        );
        assert_eq!(
            (&costs[0]["status"], &costs[0]["better"]),
            (&"measured".into(), &"less".into())
        );
        assert!(costs[0]["value"].as_f64().unwrap() > 0.0);
        assert!(costs[0]["repetitions"].as_array().unwrap().len() >= 3);
    }
}

#[test]
fn details_have_every_repetition_and_where_it_ran() {
    let scratch = Scratch::new("cost-verbose");
    let line = "cost lat.syscall:cpu=0 -D 100ms --verbose --no-report --out r";
    let told = stdout(&scratch.punctual(line));
    for words in ["lat.syscall:cpu=0", "repetitions of", "ended: ", "thread: ", "interval"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    // The run is one like any other.
    let shown = stdout(&scratch.punctual("show r --all"));
    assert!(shown.contains("repetitions of"), "{shown}");
    let rows = json(&scratch.punctual("export r --costs --json"));
    let recorded = json(&scratch.punctual("show r --json"));
    for name in ["key", "metric", "value", "low", "status"] {
        assert_eq!(rows[0][name], recorded["cells"][0][name], "{name}: {rows}");
    }
}

#[test]
fn each_cost_is_a_cell_under_each_load() {
    let scratch = Scratch::new("cost-cells");
    let line = "cost lat.syscall lat.syscall:cpu=0 --load none,process -D 100ms --no-report --json";
    let run = json(&scratch.punctual(line));
    let keys: Vec<_> = costs(&run).iter().map(|cost| cost["key"].as_str().unwrap()).collect();
    let expected = ["lat.syscall @ none @ 100ms", "lat.syscall @ process @ 100ms"];
    assert_eq!((&keys[..2], keys.len()), (&expected[..], 4));
    for cost in costs(&run) {
        assert_eq!((&cost["status"], &cost["state"]), (&"measured".into(), &"complete".into()));
    }
}

#[test]
fn an_unknown_name_is_an_error_that_suggests_one() {
    let scratch = Scratch::new("cost-unknown");
    for (name, said) in [
        ("nonsense", "unknown cost \"nonsense\""),
        ("lat.syscla", "did you mean \"lat.syscall\"?"),
        ("lat.syscall:cpu=many", "cpu=many: must be"),
        ("lat.syscall:nonsense=1", "has no parameter"),
    ] {
        let output = scratch.punctual(&format!("cost {name} --out wrong --json"));
        assert_eq!(output.status.code(), Some(2), "{name}: {}", stderr(&output));
        assert!(stderr(&output).contains(said), "{name}: {}", stderr(&output));
        assert_eq!(json(&output)["error"]["status"], 2);
    }
}

#[test]
fn a_plan_and_run_take_the_names_of_columns() {
    let scratch = Scratch::new("cost-plan");
    let plan = "name = \"costs\"\n[[cell]]\ncost = \"Null call\"\nduration = \"100ms\"\n";
    std::fs::write(scratch.path("plan.toml"), plan).unwrap();
    let run = json(&scratch.punctual("run --plan plan.toml --json --no-report --out r"));
    assert_eq!(costs(&run)[0]["key"], "lat.syscall @ none @ 100ms");
    let listed = json(&scratch.punctual("list costs --json"));
    let first = &listed["costs"][0];
    assert_eq!(first["columns"][0]["name"], "null call", "{first}");
}
