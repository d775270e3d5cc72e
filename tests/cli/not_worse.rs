//! `compare --not-worse-than`, on sets of runs.

use std::fs;
use std::process::{Command, Output};

use punctual_harness::{edit, make_virtual};
use serde_json::json;

use crate::support::{Scratch, json, stderr, stdout};

/// The folder of a test with the simulated run `one`.
fn simulated(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    let run = scratch.punctual("run sim -D 3 --no-report --out one");
    assert_eq!(run.status.code(), Some(0), "{}", stderr(&run));
    scratch
}

/// Sets of runs of a kernel, with these maxima (us) and half of them as their 99.9 % quantiles.
fn set(scratch: &Scratch, name: &str, model: &str, maxima: &[i64]) {
    fs::create_dir(scratch.path(name)).unwrap();
    for (number, us) in maxima.iter().enumerate() {
        let run = scratch.path(name).join(number.to_string());
        let copied = Command::new("cp").arg("-r").arg(scratch.path("one")).arg(&run).status();
        assert!(copied.unwrap().success());
        edit(&run, |value| {
            value["run_id"] = json!(format!("{name}-{number}"));
            value["kernel"]["preemption"] = json!(model);
            value["kernel"]["release"] = json!(format!("6.1.0-{model}"));
            let cell = &mut value["cells"][0];
            // The maximum of a cell is that of its threads.
            cell["max_ns"] = json!(us * 1_000);
            cell["threads"][0]["max_ns"] = json!(us * 1_000);
            cell["p999_ns"] = json!(us * 500);
        });
    }
}

fn says(output: &Output, status: i32, texts: &[&str]) {
    let said = format!("{}{}", stdout(output), stderr(output));
    assert_eq!(output.status.code(), Some(status), "{said}");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for text in texts {
        assert!(words(&said).contains(text), "\"{text}\" is missing in {said}");
    }
}

const BASE: [i64; 8] = [1_000, 1_040, 980, 1_100, 1_020, 1_010, 990, 1_060];
const NEAR: [i64; 8] = [1_010, 1_050, 970, 1_090, 1_030, 1_000, 1_002, 1_044];

#[test]
fn sets_are_judged_by_a_factor_and_the_exit_status_says_it() {
    let scratch = simulated("margin");
    set(&scratch, "a", "none", &BASE);
    set(&scratch, "near", "rt", &NEAR);
    set(&scratch, "slow", "rt", &NEAR.map(|us| 2 * us));
    set(&scratch, "wide", "rt", &[800, 1_300, 900, 1_250, 1_000, 1_100, 950, 1_020]);
    let compare = |line: &str| scratch.punctual(&format!("compare --not-worse-than {line}"));

    let near = compare("1.1 a near");
    says(
        &near,
        0,
        &["At most 1.1 times PREEMPT_NONE?", "NOT WORSE every upper bound is at most 1.1"],
    );
    says(&compare("1.1 a slow"), 1, &["WORSE 2 of 2 figures are shown to be more than 1.1 times"]);
    says(&compare("2.2 a slow"), 0, &["NOT WORSE"]);
    says(&compare("0.9 near a"), 1, &["WORSE"]);
    let open = "2 of 2 figures are neither shown to be at most 1.1 nor above it: about";
    says(&compare("1.1 a wide"), 3, &["INCONCLUSIVE", open, "runs of each kernel would tell"]);
    // Every other kernel must be shown, and one that is not shown is enough.
    set(&scratch, "full", "full", &NEAR.map(|us| 3 * us));
    says(&compare("1.1 a near full"), 1, &["WORSE 2 of 4 figures"]);

    let judged = json(&compare("1.1 a near --json"));
    assert_eq!(judged["not_worse_than"]["outcome"], "not_worse");
    assert_eq!(judged["not_worse_than"]["limit"], 1.1);
    let cells = judged["not_worse_than"]["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2);
    assert_eq!(cells[1]["method"], "brunner_munzel");
    // One ratio: that of the table is the one that is estimated.
    let estimate = &judged["replicates"]["estimates"][1];
    assert_eq!(estimate["quantity"], "max_ns");
    let ratios =
        [&cells[1]["ratio"], &estimate["ratio"], &judged["cells"][0]["spreads"][1]["ratio"]["max"]];
    assert_eq!([ratios[0]; 3], ratios);
    let plain = json(&scratch.punctual("compare a near --json"));
    assert!(plain.get("not_worse_than").is_none());
    says(&scratch.punctual("compare a near"), 0, &["By the test of Brunner and Munzel"]);
}

#[test]
fn too_few_runs_are_inconclusive_and_runs_of_one_kernel_refused() {
    let scratch = simulated("margin-few");
    set(&scratch, "a", "none", &BASE[..2]);
    set(&scratch, "b", "rt", &NEAR[..2]);
    let compare = |line: &str| scratch.punctual(&format!("compare --not-worse-than 1.1 {line}"));
    let pair = compare("a/0 b/0");
    says(
        &pair,
        3,
        &["INCONCLUSIVE one run of a kernel: one pair proves nothing about the kernels"],
    );
    says(&compare("a b"), 3, &["open: about 8 runs", "2 of 2 figures"]);
    let judged = json(&compare("a/0 b/0 --json"));
    assert_eq!(judged["not_worse_than"]["outcome"], "inconclusive");
    assert_eq!(judged["not_worse_than"]["cells"], json!([]));
    says(&compare("a/0 a/1"), 3, &["one run of a side: one pair proves nothing about the sides"]);
    says(&compare("a"), 4, &["all runs are of one side"]);
    // One course of a deterministic board is not the kernel either.
    for run in ["a/0", "b/0"] {
        make_virtual(&scratch.path(run), true);
    }
    says(&compare("a/0 b/0"), 3, &["another phase may reverse their order"]);
}

#[test]
fn a_factor_is_a_number_above_zero() {
    let scratch = Scratch::new("margin-factor");
    for factor in ["0", "=-1.1", "x", "nan", "inf", "10%"] {
        let space = if factor.starts_with('=') { "" } else { " " };
        let output = scratch.punctual(&format!("compare --not-worse-than{space}{factor} a b"));
        says(&output, 2, &["not a factor above 0, such as 1.1"]);
    }
    says(
        &scratch.punctual("compare --not-worse-than 1.1 --exact a b"),
        2,
        &["cannot be used with"],
    );
}
