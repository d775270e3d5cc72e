//! Known distributions through the whole pipeline: engine, recorder, collector,
//! run directory, statistics, verdict, exit status.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command};

use punctual_harness::{need, programs, root};
use serde_json::json;

use crate::support::{STRANGER, Scratch, json, stderr, stdout};

/// 900 starts 10 us late, then one 100 ms late: the example of METHODOLOGY.md, "Corrected
/// distribution".
const STALL: &str = "run sim:dist=list,values=10us*900/100ms -D 1 --no-report --out r --json";

#[test]
fn one_stall_of_100_ms_in_900_samples() {
    let scratch = Scratch::new("stall");
    let output = scratch.punctual(STALL);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stderr(&output), "", "nothing is drawn where stderr is no terminal");
    let run = json(&output);
    let file = std::fs::read(scratch.path("r/run.json")).unwrap();
    assert_eq!(run, serde_json::from_slice::<serde_json::Value>(&file).unwrap());
    let cell = &run["cells"][0];
    for (key, value) in [
        ("scheduled", json!(1_000)),
        ("samples", json!(901)),
        ("missed", json!(99)),
        ("early", json!(0)),
        ("min_ns", json!(10_000)),
        ("max_ns", json!(100_000_000)),
        ("p999_ns", json!(100_000_000)),
        ("p9999_ns", json!(null)),
        ("duration_ns", json!(1_000_000_000_u64)),
    ] {
        assert_eq!(cell[key], value, "{key}");
    }
    let near = |value: &serde_json::Value, truth: f64| {
        let value = value.as_f64().unwrap();
        assert!(value >= truth && value - truth <= 0.008 * truth, "{value} {truth}");
    };
    near(&cell["p50_ns"], 10_000.0);
    near(&cell["p99_ns"], 10_000.0);
    near(&cell["corrected"]["p99_ns"], 90_000_000.0);
    assert_eq!(cell["corrected"]["samples"], 1_000);
    let mean = (900.0 * 10_000.0 + 1e8) / 901.0;
    let spread =
        (900.0 / 901.0 * (10_000.0_f64 - mean).powi(2) + (1e8 - mean).powi(2) / 901.0).sqrt();
    assert!((cell["avg_ns"].as_f64().unwrap() - mean).abs() < 1e-3);
    let stddev = cell["stddev_ns"].as_f64().unwrap();
    assert!((stddev / spread - 1.0).abs() < 1e-4, "{stddev} {spread}");
    assert_eq!(run["verdict"]["outcome"], "NONE");
}

/// More than there are CPUs, until they are dropped.
struct Busy(Vec<Child>);

impl Busy {
    fn begin() -> Self {
        let one = |_| Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        Self((0..4).map(one).collect())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn simulated_time_waits_so_that_a_run_repeats_to_the_byte_however_busy_the_machine_is() {
    let scratch = Scratch::new("repeats");
    // More late ones, spells and seconds than any ring has room for, and two threads.
    let what = "sim:stall=3ms,stall-every=2000,threads=2 -D 1h --deadline 1ms --no-report -q";
    let run = |name: &str| {
        let ended = scratch.punctual(&format!("run {what} --out {name}"));
        assert_eq!(ended.status.code(), Some(1), "{}", stderr(&ended));
        let folder = scratch.path(name).join("cells");
        let cell = fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
        let mut json: serde_json::Value =
            serde_json::from_slice(&fs::read(scratch.path(name).join("run.json")).unwrap())
                .unwrap();
        let found = json["cells"][0].as_object_mut().unwrap();
        for key in ["started", "ended", "cpu_utilisation", "cpu_own", "steal"] {
            found.remove(key);
        }
        for thread in found["threads"].as_array_mut().unwrap() {
            thread.as_object_mut().unwrap().remove("placement");
        }
        let files = ["blocks", "histograms"].map(|file| fs::read(cell.join(file)).unwrap());
        (json["cells"][0].clone(), files)
    };
    let (calm, calm_files) = run("calm");
    let busy = Busy::begin();
    let (beside, beside_files) = run("beside");
    drop(busy);
    assert_eq!(calm, beside);
    assert!(calm_files == beside_files, "files of the cell differ");
    assert_eq!(calm["episodes"]["joined"], json!(null));
    let conditions = calm["conditions"].as_array().unwrap();
    assert!(conditions.iter().all(|one| one["id"] != "late-ring-full"), "{conditions:?}");
    let longest = calm["episodes"]["longest_ns"].as_u64().unwrap();
    assert!(longest < 10_000_000_000, "{longest}");
}

#[test]
fn exit_status_is_the_verdict() {
    let scratch = Scratch::new("verdicts");
    for (number, (line, status, outcome)) in [
        // 30,000 releases of at most 20 us bound a miss by 1e-4.
        ("sim -D 30 --deadline 25us", 0, "PASS"),
        ("sim -D 10 --deadline 25us", 3, "INCONCLUSIVE"),
        ("sim -D 30 --deadline 15us", 1, "FAIL"),
        ("sim:stall=3ms,stall-every=9000 -D 30 --deadline 1ms", 1, "FAIL"),
        ("sim:stall=3ms,stall-every=9000 -D 90 --deadline 1ms --allow 0.1% --singly", 0, "PASS"),
        ("sim:stall=3ms,stall-every=9000 -D 90 --deadline 1ms --allow 0.1%", 3, "INCONCLUSIVE"),
        ("sim:stall=3ms,stall-every=9000 -D 300 --deadline 1ms --allow 0.1%", 0, "PASS"),
        ("sim:stall=3ms,stall-every=9000 -D 300 --deadline 1ms --allow 0.005%", 1, "FAIL"),
        ("sim:stall=3ms,stall-every=9000 -D 300 --deadline 1ms --allow 12/min", 0, "PASS"),
        ("sim:stall=3ms,stall-every=9000 -D 300 --deadline 1ms --allow 3/min", 1, "FAIL"),
        ("sim -D 60 --deadline 25us --at-most 1/min", 3, "INCONCLUSIVE"),
        ("sim -D 180 --deadline 25us --at-most 1/min", 0, "PASS"),
        ("sim -D 5", 0, "NONE"),
        ("sim -D 30 --deadline 25us --load cmd:/does/not/exist", 4, "SKIPPED"),
        ("sim -D 10 --deadline 25us --load none,cmd:/does/not/exist", 3, "INCONCLUSIVE"),
    ]
    .into_iter()
    .enumerate()
    {
        let output = scratch.punctual(&format!("run {line} --no-report --json --out r{number}"));
        let run = json(&output);
        assert_eq!(run["verdict"]["outcome"], outcome, "{line}: {}", run["verdict"]);
        assert_eq!(output.status.code(), Some(status), "{line}");
    }
}

#[test]
fn cells_are_kept_shown_reported_and_compared() {
    let scratch = Scratch::new("kept");
    let line = "sim sim:seed=2,order=random -t 3 -D 20 --deadline 25us";
    for name in ["one", "two"] {
        let output = scratch.punctual(&format!("run {line} --out punctual-runs/{name}"));
        assert_eq!(output.status.code(), Some(3));
        let text = stdout(&output);
        assert!(text.ends_with(&format!("punctual-runs/{name}/report.html\n")), "{text}");
        assert!(text.contains("60,000"), "three threads of 20,000 samples: {text}");
    }
    let page = std::fs::read_to_string(scratch.path("punctual-runs/one/report.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("<svg"));
    let shown = json(&scratch.punctual("show on --json"));
    assert_eq!(shown["cells"][1]["threads"][2]["samples"], 20_000);
    let last = json(&scratch.punctual("show last --json"));
    assert!(last["run_id"] != shown["run_id"]);
    let compared = scratch.punctual("compare one two --json");
    assert_eq!(compared.status.code(), Some(0));
    let compared = json(&compared);
    assert_eq!(compared["cells"].as_array().unwrap().len(), 2);
    assert_eq!(compared["cells"][0]["rows"][1]["ratio"]["max"], 1.0);
    let reported = scratch.punctual("report one two -o both.html --figures figures");
    assert_eq!(reported.status.code(), Some(0), "{}", stderr(&reported));
    assert!(std::fs::read_dir(scratch.path("figures")).unwrap().count() >= 4);
    let listed = json(&scratch.punctual("list runs --json"));
    assert_eq!(listed["runs"].as_array().unwrap().len(), 2);
}

#[test]
fn a_recorded_run_is_judged_again() {
    let scratch = Scratch::new("again");
    let run = "run sim:dist=list,values=10us*999/300us -D 40 --deadline 100us --no-report --out r";
    assert_eq!(scratch.punctual(run).status.code(), Some(1));
    assert_eq!(scratch.punctual("show r").status.code(), Some(1));
    let strict = scratch.punctual("show r --json --deadline 100us --singly --at-most 0.0001%");
    assert_eq!(strict.status.code(), Some(1));
    assert_eq!(json(&strict)["verdict"]["exceedances"], 40);
    let other = scratch.punctual("show r --json --deadline 200us");
    assert_eq!(json(&other)["verdict"]["exceedances"], 40);
    assert_eq!(json(&other)["verdict"]["deadline_ns"], 200_000);
    assert_eq!(scratch.punctual("show r --deadline 301us").status.code(), Some(0));
    assert_eq!(
        scratch.punctual("show r --deadline 301us --confidence 0.999").status.code(),
        Some(3)
    );
}

#[test]
fn a_break_value_ends_the_run() {
    let scratch = Scratch::new("break");
    let output = scratch.punctual(
        "run sim:stall=3ms,stall-every=5000 sim -D 1h -b 2000 --no-report --json --out r",
    );
    assert_eq!(output.status.code(), Some(5));
    let run = json(&output);
    assert_eq!(run["state"], "interrupted");
    assert_eq!(run["verdict"]["outcome"], "BREAK");
    let broke = &run["cells"][0]["broke"];
    assert_eq!(broke["limit_ns"], 2_000_000);
    assert_eq!(broke["latency_ns"], 3_000_000);
    assert_eq!(broke["thread"], 0);
    assert_eq!(run["cells"][0]["samples"], 5_000);
    assert_eq!(run["cells"][0]["max_ns"], 3_000_000);
    assert_eq!(run["cells"][1]["state"], "pending");
    let late = "run sim:stall=3ms,stall-every=5000 -D 1h -b 2ms --no-report --out late --deadline";
    assert_eq!(scratch.punctual(&format!("{late} 2500us")).status.code(), Some(1), "FAIL too");
    assert_eq!(scratch.punctual("show late --deadline 4ms").status.code(), Some(5));
}

#[test]
fn runs_are_called_as_they_were_given() {
    let scratch = Scratch::new("labels");
    for (name, seconds) in [("before", 20), ("after", 5)] {
        let line = format!("run sim:dist=exponential -D {seconds} --no-report --out set/{name}");
        scratch.punctual(&line);
    }
    let text = stdout(&scratch.punctual("compare set/before set/after"));
    assert!(text.starts_with("A  before · "), "{text}");
    assert!(text.contains("--any-duration") && text.contains("20s, 5s"), "{text}");
    let compared = json(&scratch.punctual("compare set/before set/after --any-duration --json"));
    assert_eq!(compared["runs"][1]["label"], "after");
    let row = &compared["cells"][0]["rows"][1];
    assert!(row["ratio"]["p99"].is_number() && row["ratio"]["max"].is_null(), "{row}");
    let said = compared["caveats"].to_string();
    assert!(said.contains("the largest and the smallest sample are not"), "{said}");
    assert_eq!(scratch.punctual("report set/before set/after -o r.html").status.code(), Some(0));
    let page = std::fs::read_to_string(scratch.path("r.html")).unwrap();
    assert!(page.contains("<h3>before</h3>") && page.contains("<h3>after</h3>"));
}

/// A stand-in for the browser writes down what it is given.
#[test]
fn a_report_is_opened_on_request_and_its_address_printed() {
    let scratch = Scratch::new("open");
    let tool = scratch.path("xdg-open");
    std::fs::write(&tool, "#!/bin/sh\nprintf %s \"$1\" > \"${0%/*}/opened\"\n").unwrap();
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    // No browser is started as root.
    let is_root = root().is_ok();
    let user: &[&str] = if is_root { STRANGER } else { &[] };
    if is_root {
        need!(programs(&["setpriv"]));
        let all = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(scratch.path(""), all).unwrap();
    }
    let with = |line: &str, path: &str| {
        let words: Vec<_> = line.split(' ').collect();
        let path = format!("PATH={path}");
        let program = [user, &["env", &path]].concat();
        scratch.through(&program, &words).output().unwrap()
    };
    let path = format!("{}:/usr/bin:/bin", scratch.path("").display());
    let output = with("run sim -D 1 --out r --open", &path);
    let address =
        format!("file://{}", scratch.path("r/report.html").canonicalize().unwrap().display());
    assert!(stdout(&output).ends_with(&format!("      {address}\n")), "{}", stdout(&output));
    let opened = || std::fs::read_to_string(scratch.path("opened")).unwrap();
    assert!(opened().ends_with("r/report.html"), "{}", opened());
    assert_eq!(with("report r -o x.html --open", &path).status.code(), Some(0));
    assert_eq!(opened(), "x.html");
    if is_root {
        std::fs::remove_file(scratch.path("opened")).unwrap();
        let output = scratch.command("report r -o z.html --open").env("PATH", &path).output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(0));
        let said = stderr(&output);
        assert!(said.contains("no browser is started as root; the report is file:///"), "{said}");
        assert!(!scratch.path("opened").exists(), "{said}");
    }
    // Without a browser the report is there nevertheless.
    let output = with("report r -o y.html --open", "/nowhere");
    assert_eq!(output.status.code(), Some(0));
    assert!(stderr(&output).contains("--open: xdg-open: "), "{}", stderr(&output));
    assert!(scratch.path("y.html").exists());
}

#[test]
fn a_simulated_run_is_labelled_wherever_it_is_shown() {
    let scratch = Scratch::new("labelled");
    let output = scratch.punctual("run sim -D 30 --deadline 25us --out r --json --no-report");
    let run = json(&output);
    assert_eq!(run["origin"], "simulated");
    assert_eq!(run["cells"][0]["simulated"], true);
    let ids: Vec<_> = run["conditions"].as_array().unwrap().iter().map(|c| &c["id"]).collect();
    assert_eq!(ids, ["simulated"], "the machine's conditions are no conditions of it");
    let groups: Vec<_> = run["facts"].as_object().unwrap().keys().collect();
    assert_eq!(groups, ["engine"]);
    assert!(run["cells"][0]["cpu_utilisation"].is_null());

    let text = |line: &str| {
        let output = scratch.punctual(line);
        String::from_utf8(output.stdout).unwrap()
    };
    let shown = text("show r");
    assert!(shown.contains("PASS (SIMULATED)"), "{shown}");
    assert!(shown.lines().next().unwrap().contains("SIMULATED"), "{shown}");
    assert!(!shown.contains("virtual machine") && !shown.contains("load average"), "{shown}");
    assert_eq!(scratch.punctual("report r -o r.html").status.code(), Some(0));
    let page = std::fs::read_to_string(scratch.path("r.html")).unwrap();
    assert!(page.contains("<span>SIMULATED</span>"));
    scratch.punctual("run sim -D 30 --out other --no-report");
    assert!(text("compare r other").contains("SIMULATED: the latencies of these runs are made up"));
    let mixed = json(&scratch.punctual("run sim clock -D 200ms --out mixed --json --no-report"));
    assert_eq!(mixed["origin"], "native");
    assert!(text("show mixed").contains("in part SIMULATED"));
    scratch.punctual("run sim -D 30 --no-report");
    assert!(text("list runs").contains("MEASURED (SIMULATED)"));
}

#[test]
fn runs_of_other_durations_are_compared_on_the_page_too() {
    let scratch = Scratch::new("any-duration");
    for (out, seconds) in [("a", 20), ("b", 30)] {
        let line = format!("run sim -D {seconds} --no-report --out {out}");
        assert_eq!(scratch.punctual(&line).status.code(), Some(0), "{out}");
    }
    for line in
        ["compare a b --any-duration -o page.html", "report a b --any-duration -o page.html"]
    {
        let output = scratch.punctual(line);
        assert_eq!(output.status.code(), Some(0), "{line}: {}", stderr(&output));
        let page = std::fs::read_to_string(scratch.path("page.html")).unwrap();
        assert!(page.contains("sim @ idle @ any duration"), "{line}");
        assert!(page.contains("sim @ idle: measured for 20s, 30s: quantiles"), "{line}");
        std::fs::remove_file(scratch.path("page.html")).unwrap();
    }
}

#[test]
fn exported_figures_say_which_are_left_out() {
    let scratch = Scratch::new("left-out");
    scratch.punctual("run sim -D 5 --no-report --out short");
    let output = scratch.punctual("report short -o r.html --figures figures");
    assert_eq!(output.status.code(), Some(0));
    assert!(stderr(&output).contains("Cells of less than 10 s have no timeline"));
    let json = json(&scratch.punctual("report short -o r.html --figures figures --json"));
    assert!(json["left_out"].as_str().unwrap().contains("no timeline"));
    let files = std::fs::read_dir(scratch.path("figures")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    assert!(names.filter(|name| name.starts_with("timeline")).count() == 0);
}
