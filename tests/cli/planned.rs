//! What later versions bring is SKIPPED with a reason; what nobody knows is an error.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Scratch, json, stderr, stdout};

const SKIPPED: i32 = 4;
const USAGE: i32 = 2;

fn reasons(run: &Value) -> Vec<(&str, Option<&str>)> {
    let cells = run["cells"].as_array().unwrap().iter();
    cells.map(|cell| (cell["state"].as_str().unwrap(), cell["reason"].as_str())).collect()
}

#[test]
fn planned_probes_of_a_plan_are_skipped_with_a_reason() {
    let scratch = Scratch::new("planned");
    let plan = r#"
        name = "ahead"
        kernels = ["none", "rt"]
        duration = "1s"
        [[cell]]
        probe = "respond-net:rate=2048"
        load = ["none", "copy"]
        [[cell]]
        probe = "sim"
        [variant.short]
        duration = "500ms"
    "#;
    fs::write(scratch.path("ahead.toml"), plan).unwrap();
    let output =
        scratch.punctual("run --plan ahead.toml --variant short --no-report --out r --json");
    assert_eq!(output.status.code(), Some(SKIPPED), "{}", stderr(&output));
    let run = json(&output);
    assert_eq!(
        reasons(&run),
        [
            ("skipped", Some("the probe respond-net is not in this version")),
            ("skipped", Some("the probe respond-net is not in this version")),
            ("complete", None),
        ]
    );
    assert_eq!(run["cells"][0]["params"], json!({"rate": "2048"}));
    assert_eq!(run["cells"][2]["scheduled"], 500);
    assert_eq!(run["plan"]["name"], "ahead, variant short");
    assert_eq!(run["plan"]["variant"], "short");
    assert_eq!(run["plan"]["kernels"], json!(["none", "rt"]));
}

#[test]
fn a_planned_or_misspelt_probe_of_the_command_line_is_an_error() {
    let scratch = Scratch::new("planned-line");
    for (line, said) in [
        ("run respond-net -D 1 -i 500", "the probe respond-net is planned, not in this version"),
        ("run rtd -D 1", "unknown probe"),
        ("run sim -D 1 --load wurst", "wurst"),
        ("run sim -D 1 --load worst:x", "worst"),
    ] {
        let output = scratch.punctual(&format!("{line} --out wrong"));
        assert_eq!(output.status.code(), Some(USAGE), "{line}: {}", stderr(&output));
        assert!(stderr(&output).contains(said), "{line}: {}", stderr(&output));
        assert!(!scratch.path("wrong").exists(), "{line}");
    }
}

#[test]
fn lists_say_what_is_planned_apart_from_what_is_there() {
    let scratch = Scratch::new("planned-list");
    let there = stdout(&scratch.punctual("list probes"));
    assert!(there.contains("  wakeup ") && !there.contains("  respond-net "), "{there}");
    let planned = stdout(&scratch.punctual("list --planned"));
    assert!(planned.contains("  respond-net ") && !planned.contains("  wakeup "), "{planned}");
    let all = stdout(&scratch.punctual("list"));
    assert!(all.contains("punctual list --planned") && !all.contains("  respond-net "), "{all}");
    let (lists, planned) =
        (json(&scratch.punctual("list --json")), json(&scratch.punctual("list --planned --json")));
    let names = |lists: &serde_json::Value, list: &str| -> Vec<String> {
        let entries = lists[list].as_array().unwrap().iter();
        entries.map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
    };
    assert!(names(&planned, "planned_probes").contains(&"respond-net".to_owned()));
    assert_eq!(planned.as_object().unwrap().len(), 1, "no load is only planned");
    assert!(!names(&lists, "probes").contains(&"respond-net".to_owned()));
    assert!(names(&lists, "costs").contains(&"lat.syscall".to_owned()));
    let plans = lists["plans"].as_array().unwrap();
    let geode = plans.iter().find(|plan| plan["name"] == "koolwal-geode").unwrap();
    assert_eq!(geode["kernels"], json!(["none", "full", "rt"]));
    assert_eq!(geode["variants"], json!(["virtual"]));
    assert_eq!((&geode["cells"], &geode["cells_in_this_version"]), (&json!(10), &json!(7)));
    assert!(geode["citation"].as_str().unwrap().starts_with("Kushal Koolwal"));
}
