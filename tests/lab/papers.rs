//! The plans that follow publications come to their end on boards of every model, and their loads work.

use std::env;
use std::fmt::Write as _;

use serde_json::Value;

use crate::boards::x86_64;
use punctual_harness::{Place, keep, need, run_json};

const PAPERS: [&str; 4] = ["koolwal-geode", "arthur-emde-mcguire", "celf-rtwg", "mitsubishi-celf"];
const MODELS: [&str; 4] = ["none", "voluntary", "full", "rt"];

/// All with `make papers`, else the one that once stopped in hackbench.
fn asked() -> Vec<(&'static str, &'static str)> {
    match env::var_os("PAPERS") {
        Some(_) => PAPERS.iter().flat_map(|paper| MODELS.map(|model| (*paper, model))).collect(),
        None => vec![("celf-rtwg", "rt")],
    }
}

/// A line for a cell: what it measured, or why not, and in how many seconds its loads did nothing.
fn line(cell: &Value) -> String {
    let mut line = format!("  {}: ", cell["key"].as_str().unwrap());
    match (cell["max_ns"].as_i64(), cell["reason"].as_str()) {
        (Some(max), _) => write!(line, "max {:.1} us", max as f64 / 1e3).unwrap(),
        (None, reason) => write!(line, "{}", reason.unwrap_or("no samples")).unwrap(),
    }
    for work in cell["load_work"].as_array().into_iter().flatten() {
        let counters = work["counters"].as_array().unwrap().iter();
        let counters: Vec<String> = counters
            .map(|one| format!("{} {}", one["total"], one["name"].as_str().unwrap()))
            .collect();
        let (load, idle) = (work["load"].as_str().unwrap(), &work["idle_seconds"]);
        write!(line, "; {load} {}, idle in {idle} s", counters.join(", ")).unwrap();
    }
    line
}

#[test]
fn the_plan_of_a_publication_comes_to_its_end() {
    need!(x86_64());
    let place = Place::of_build();
    for (paper, model) in asked() {
        let out = format!("{paper}-{model}");
        let ended = place.run(&format!(
            "lab run -q --no-report --kernel debian:{model} --plan {paper} --variant virtual \
             --replicates 1 --out {out}"
        ));
        let status = ended.status;
        let run = run_json(&place.path.join(format!("{out}/debian-{model}-0")));
        let cells = run["cells"].as_array().unwrap();
        let mut table = format!("{paper} on {model}: status {}", status.unwrap_or(-1));
        cells.iter().for_each(|cell| write!(table, "\n{}", line(cell)).unwrap());
        keep(&table);
        assert!(matches!(status, Some(0 | 4)), "{paper} on {model}: {ended:#?}");
        assert!(cells.iter().any(|cell| cell["max_ns"].is_i64()), "{table}");
        for cell in cells {
            let (key, seconds) =
                (&cell["key"], cell["duration_ns"].as_u64().unwrap() / 1_000_000_000);
            assert!(["complete", "skipped"].contains(&cell["state"].as_str().unwrap()), "{cell}");
            for work in cell["load_work"].as_array().into_iter().flatten() {
                let idle = work["idle_seconds"].as_u64().unwrap();
                assert!(2 * idle < seconds, "{paper} on {model}, {key}: {work}");
            }
        }
    }
}
