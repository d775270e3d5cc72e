//! What a run is evidence of: late episodes as they are recorded, judged, pooled and planned for.

use crate::support::{Scratch, json, stderr, stdout};

/// Stalls of 3 ms, every 20 s; each makes three activations late, of which two are missed.
const STALLS: &str = "sim:stall=3ms,stall-every=20000 -D 300 --no-report";

#[test]
fn episodes_are_recorded_by_cell_thread_and_run() {
    let scratch = Scratch::new("episodes");
    let run =
        json(&scratch.punctual(&format!("run {STALLS} -t 2 --deadline 500us --out r --json")));
    let cell = &run["cells"][0];
    let of_cell = &cell["episodes"];
    // Both threads have their stalls within the same millisecond.
    assert_eq!(of_cell["count"], cell["threads"][0]["episodes"]["count"], "{of_cell}");
    assert_eq!(run["verdict"]["episodes"], of_cell["count"]);
    let count = of_cell["count"].as_u64().unwrap();
    assert!((14..=15).contains(&count), "{count}");
    let sizes = cell["threads"][0]["episodes"]["size_sum"].as_u64().unwrap();
    assert_eq!(sizes, 3 * cell["threads"][0]["episodes"]["count"].as_u64().unwrap());
    assert_eq!(of_cell["size_sum"], run["verdict"]["exceedances"]);
    assert_eq!(of_cell["observed_ns"], 300_000_000_000_u64);
    // Judged again by the same deadline, nothing is counted anew; by another, in seconds.
    let again = json(&scratch.punctual("show r --json --deadline 500us --allow 6/min"));
    assert_eq!(
        (&again["cells"][0]["episodes"], &again["verdict"]["outcome"]),
        (of_cell, &"PASS".into())
    );
    let other = json(&scratch.punctual("show r --json --deadline 700us --allow 6/min"));
    let by_seconds = &other["cells"][0]["episodes"];
    assert_eq!(
        (&by_seconds["in_seconds"], &by_seconds["count"]),
        (&true.into(), &of_cell["count"])
    );
    assert_eq!(other["verdict"]["outcome"], "PASS");
}

#[test]
fn a_run_without_a_deadline_is_judged_by_its_seconds() {
    let scratch = Scratch::new("afterwards");
    scratch.punctual(&format!("run {STALLS} --out r"));
    for (line, status) in [
        ("--deadline 4ms", 0),
        ("--deadline 4ms --at-most 1/h", 3),
        ("--deadline 1ms", 1),
        ("--deadline 1ms --allow 6/min", 0),
        ("--deadline 1ms --allow 1/min", 1),
    ] {
        let output = scratch.punctual(&format!("show r {line}"));
        assert_eq!(output.status.code(), Some(status), "{line}: {}", stdout(&output));
    }
}

#[test]
fn what_a_pass_needs_is_said_before_the_run_and_after_it() {
    let scratch = Scratch::new("needs");
    let output =
        scratch.punctual("run sim -D 60 --deadline 5ms --at-most 1/min --no-report --out r");
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("-D 180s is long enough"), "{}", stderr(&output));
    let said = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("are too short: 3.0 min without lateness are needed to show at most 1/min"),
        "{said}"
    );
    assert!(said.ends_with("at most 50 %") && said.contains("run with -D 180s"), "{said}");
    // A plan of before.
    let plan = "name = \"old\"\ndeadline = \"5ms\"\nduration = \"30s\"\nprobability = 1e-3\n\
                [[cell]]\nprobe = \"sim:interval=1ms\"\n";
    std::fs::write(scratch.path("old.toml"), plan).unwrap();
    let converted = scratch.punctual("run --plan old.toml --no-report --out s");
    assert_eq!(converted.status.code(), Some(0));
    assert!(stderr(&converted).contains("is judged as how often lateness begins: at most 1/s"));
    let singly = scratch
        .punctual("run sim -D 30 --deadline 5ms --singly --at-most 0.1% --no-report --out t");
    assert_eq!((singly.status.code(), stderr(&singly)), (Some(0), String::new()));
}

#[test]
fn a_run_that_ended_by_its_samples_is_advised_to_have_more_of_them() {
    let scratch = Scratch::new("loops");
    let run = |line: &str, out: &str| {
        scratch.punctual(&format!("run sim {line} --deadline 5ms --no-report --out {out}"))
    };
    let short = run("-l 1000", "r");
    assert_eq!(short.status.code(), Some(3));
    assert!(stderr(&short).contains("-l 30000 is long enough"), "{}", stderr(&short));
    let said = words(&short);
    assert!(said.contains("run with -l 30000") && !said.contains("run with -D"), "{said}");
    assert_eq!(run("-l 30000", "s").status.code(), Some(0), "the advice is right");
    let short = run("-l 100000 -D 5", "t");
    assert!(words(&short).contains("run with -D 30s"), "the time ended it: {}", words(&short));
}

#[test]
fn options_that_do_not_fit_are_refused_with_what_to_write() {
    let scratch = Scratch::new("asked");
    scratch.punctual(&format!("run {STALLS} --deadline 1ms --allow 6/min --out r"));
    for (line, says) in [
        ("--at-most 1ms", "did you mean --deadline 1ms"),
        ("--at-most 1%", "--allow 1% makes the deadline soft"),
        ("--at-most 6", "has no unit"),
        ("--at-most 6/min --allow 60/min", "cannot be used with"),
        ("--allow 1e-3", "has no unit"),
        ("--singly", "--allow 6/min with --singly"),
        ("--singly --at-most 6/min", "give a share such as 0.01%"),
        ("--episodes 1/h", "write --at-most 1/h"),
        ("--tolerate-episodes 1/h", "write --allow 1/h"),
        ("--tolerate=1e-3", "write --allow 0.1%"),
        ("--probability 1e-4", "--singly --at-most 0.01%"),
    ] {
        for command in ["show r", "pool r r", "run sim -D 1 --deadline 1ms --allow 6/min"] {
            let both = command.contains("--allow") && line.contains("--a");
            if both {
                continue;
            }
            let output = scratch.punctual(&format!("{command} {line}"));
            let said = stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(output.status.code(), Some(2), "{command} {line}: {said}");
            assert!(said.contains(says), "{command} {line}: {said}");
        }
    }
    let output = scratch.punctual("run sim -D 1 --allow 1%");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("give --deadline too"), "{}", stderr(&output));
    // What is asked for replaces what was: the deadline is hard now.
    assert_eq!(scratch.punctual("show r").status.code(), Some(0));
    assert_eq!(scratch.punctual("show r --at-most 6/min").status.code(), Some(1));
}

fn words(output: &std::process::Output) -> String {
    stdout(output).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn runs_of_one_kernel_are_judged_as_one() {
    let scratch = Scratch::new("pool");
    for name in ["a", "b", "c"] {
        let line = format!("run sim -D 60 --deadline 1ms --no-report --out set/{name}");
        assert_eq!(scratch.punctual(&line).status.code(), Some(0));
    }
    let pooled = |line: &str| scratch.punctual(&format!("pool {line}"));
    let all = pooled("set --at-most 3/min");
    assert_eq!(all.status.code(), Some(0));
    let said = words(&all);
    assert!(
        said.contains("3 runs, none late in 60.0 s; up to 64 % of runs like these may"),
        "{said}"
    );
    assert!(said.starts_with("PASS (SIMULATED) 3 runs, none late in 60.0 s; up to 64 %"), "{said}");
    assert_eq!(words(&scratch.punctual("show set/a set/b set/c --at-most 3/min")), said);
    // However many there are, each is to be long enough by itself.
    let short = pooled("set --at-most 1/min");
    assert_eq!(short.status.code(), Some(3));
    let said = words(&short);
    assert!(said.contains("a PASS needs each run to pass"), "{said}");
    assert!(said.contains("run with -D 180s"), "{said}");
    let twice = pooled("set/a set/a set/b --at-most 3/min --json");
    assert_eq!(json(&twice)["runs"].as_array().unwrap().len(), 2, "one of them was given twice");
    assert_eq!(json(&twice)["weakened"]["simulated"], 2);
    let details = scratch.punctual("show set/a set/b --all");
    assert_eq!(details.status.code(), Some(2), "{}", stderr(&details));
    scratch
        .punctual("run sim:stall=3ms,stall-every=20000 -D 60 --deadline 1ms --no-report --out d");
    let report = scratch.punctual("report set -o set.html");
    assert_eq!(report.status.code(), Some(0), "{}", stderr(&report));
    let page = std::fs::read_to_string(scratch.path("set.html")).unwrap();
    assert!(page.contains("Judged as one: PASS. 3 runs, none late in 60.0 s; up to 64 % of runs"));
    // What is late in one run only fails by itself, and so together with others.
    assert_eq!(scratch.punctual("show d").status.code(), Some(1));
    let other = pooled("set d");
    assert_eq!(other.status.code(), Some(1));
    assert!(stdout(&other).contains("not every run has"), "{}", stdout(&other));
    let alone = pooled("d");
    assert_eq!(alone.status.code(), Some(2));
    assert!(stderr(&alone).contains("two different runs"));
}

#[test]
fn a_plan_has_the_length_that_its_evidence_needs() {
    let scratch = Scratch::new("length");
    let seconds = |line: &str| {
        let answer = json(&scratch.punctual(&format!("plan-length --json {line}")));
        answer["duration_s"].as_u64().unwrap()
    };
    assert_eq!(seconds(""), 30);
    assert_eq!(seconds("--at-most 1/h"), 10_785);
    assert_eq!(seconds("--allow 6/min --late 3"), 80);
    assert_eq!(seconds("--singly"), 30);
    assert_eq!(seconds("--singly --at-most 0.01% -i 1ms"), 30);
    assert_eq!(seconds("--singly --allow 0.1% --late 3"), 8);
    let said = |line: &str| scratch.punctual(&format!("plan-length {line}"));
    assert!(stdout(&said("--at-most 1/h")).starts_with("-D 10785s (3.0 h): "));
    let centuries = said("--singly --at-most 0.0000001% -i 1s");
    assert_eq!(centuries.status.code(), Some(2));
    assert!(stderr(&centuries).contains("no practical time shows that: it is more than ten years"));
    for wrong in [
        "--at-most 0/h",
        "--at-most 1%",
        "--allow 1%",
        "--at-most 1/h --late 1",
        "--singly --at-most 1/h",
        "-i 1ms",
        "--probability 0.1",
    ] {
        assert_eq!(
            scratch.punctual(&format!("plan-length {wrong}")).status.code(),
            Some(2),
            "{wrong}"
        );
    }
}

#[test]
fn drift_is_in_the_first_line_wherever_a_run_is_judged() {
    let scratch = Scratch::new("drift-label");
    for name in ["a", "b"] {
        scratch.punctual(&format!("run sim -D 60 --deadline 1ms --no-report --out set/{name}"));
    }
    let file = scratch.path("set/a/run.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let mut run: serde_json::Value = serde_json::from_str(&text).unwrap();
    let drift = serde_json::json!({ "id": "drift", "text": "its second half was slower" });
    run["cells"][0]["conditions"].as_array_mut().unwrap().push(drift);
    std::fs::write(&file, run.to_string()).unwrap();
    for line in ["show set/a", "pool set", "list runs set"] {
        let said = words(&scratch.punctual(line));
        assert!(said.contains("PASS (SIMULATED, drift)"), "{line}: {said}");
    }
    let listed = json(&scratch.punctual("list runs set --json"));
    assert_eq!(listed["runs"][0]["labels"], serde_json::json!(["SIMULATED", "drift"]));
    assert_eq!(listed["runs"][1]["labels"], serde_json::json!(["SIMULATED"]));
    scratch.punctual("report set/a -o a.html");
    let page = std::fs::read_to_string(scratch.path("a.html")).unwrap();
    assert!(page.contains("<span>drift</span>"));
}

/// A stall of 3 ms is no lateness of whole seconds, whose number is all that is known of it.
#[test]
fn of_another_deadline_nothing_says_how_long_lateness_lasted() {
    let scratch = Scratch::new("no-longest");
    scratch.punctual(&format!("run {STALLS} --deadline 500us --out r"));
    let said = words(&scratch.punctual("show r"));
    assert!(
        said.contains(" times, the longest spanning 3.000 ms (late ones at most 1 s"),
        "{said}"
    );
    let said = words(&scratch.punctual("show r --deadline 700us"));
    assert!(said.contains(" times (seconds with late ones that follow each other"), "{said}");
    assert!(!said.contains("spanning"), "{said}");
}
