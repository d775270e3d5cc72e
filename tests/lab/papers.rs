//! The plans that follow publications come to their end on boards of every model, and their loads work.

use std::env;
use std::fmt::Write as _;
use std::thread::scope;

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

/// How long a load was counted, s, which ends with the cell's last sample; endless of the load `none`.
fn seconds(work: &Value) -> Result<f64, String> {
    let counters = work["counters"].as_array().unwrap();
    if counters.is_empty() {
        return Ok(f64::INFINITY);
    }
    let worked = counters.iter().find(|one| one["total"] != 0);
    let worked = worked.ok_or_else(|| format!("it did nothing: {work}"))?;
    Ok(worked["total"].as_f64().unwrap() / worked["per_second"].as_f64().unwrap())
}

/// Runs a plan on boards of a model; what its cells measured, as text, and what is wrong with them.
fn run((paper, model): (&str, &str)) -> (String, Result<(), String>) {
    let place = Place::of_build();
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
    let is_right =
        matches!(status, Some(0 | 4)) && cells.iter().any(|cell| cell["max_ns"].is_i64());
    let right = if is_right { check(cells) } else { Err(format!("{ended:#?}")) };
    (table, right)
}

fn check(cells: &[Value]) -> Result<(), String> {
    for cell in cells {
        // A load that cannot start makes its cell skipped too.
        let of_probe = |reason: &Value| reason.as_str().unwrap().starts_with("the probe ");
        match cell["state"].as_str().unwrap() {
            "complete" => {}
            "skipped" if of_probe(&cell["reason"]) => {}
            _ => return Err(format!("{cell:#}")),
        }
        for work in cell["load_work"].as_array().into_iter().flatten() {
            let seconds = seconds(work)?;
            if 2.0 * work["idle_seconds"].as_f64().unwrap() >= seconds {
                return Err(format!("{}, {seconds} s: {work}", cell["key"]));
            }
        }
    }
    Ok(())
}

#[test]
fn the_plan_of_a_publication_comes_to_its_end() {
    need!(x86_64());
    // As many at a time as the smallest machine has CPUs.
    for some in asked().chunks(2) {
        let ended: Vec<_> = scope(|scope| {
            let each = some.iter().map(|one| scope.spawn(move || run(*one)));
            let all: Vec<_> = each.collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        for (table, right) in ended {
            keep(&table);
            assert_eq!(right, Ok(()), "{table}");
        }
    }
}
