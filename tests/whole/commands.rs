//! Every command on real runs, and the examples of the README's first page.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use punctual_harness::processes::signal;
use punctual_harness::registry::{entries, name};
use punctual_harness::schema::validate;
use punctual_harness::{Place, end_of, need, programs, run_json};
use punctual_suite::loads::LOADS;
use punctual_suite::probes::PROBES;

use crate::leftovers::Before;

#[test]
fn runs_are_measured_shown_reported_and_compared() {
    let place = Place::apart();
    let before = Before::look(&place);
    for out in ["r1", "r2"] {
        let line = format!("run wakeup clock --load none,paper -D 2s --deadline 5ms --out {out}");
        let ended = place.run(&line);
        assert!(matches!(ended.status, Some(0 | 1 | 3)), "{ended:#?}");
        assert!(!ended.stderr.contains("panicked"), "{ended:#?}");
        let run = run_json(&place.path.join(out));
        validate(&run);
        assert_eq!(run["cells"].as_array().unwrap().len(), 4);
        let outcome = run["verdict"]["outcome"].as_str().unwrap().to_owned();
        ended.says(&[&outcome, "wakeup", "paper", &format!("{out}/report.html")]);
        assert!(place.path.join(out).join("report.html").metadata().unwrap().len() > 10_000);
    }
    before.still(&place);

    let run = run_json(&place.path.join("r1"));
    let status = match run["verdict"]["outcome"].as_str().unwrap() {
        "PASS" => 0,
        "FAIL" => 1,
        _ => 3,
    };
    assert_eq!(place.run("show r1 --json").with(status).json(), run);
    for cell in run["cells"].as_array().unwrap() {
        let key = cell["key"].as_str().unwrap();
        place.run("show r1 --all").with(status).says(&[cell["probe"].as_str().unwrap()]);
        place.run("compare r1 r2 --json").with(0).says(&[key]);
    }
    place.run("compare r1 r2").with(0).says(&["wakeup", "What may not be concluded"]);
    place.run("report r1 r2 -o both.html --figures figures --title Both").with(0);
    let page = fs::read_to_string(place.path.join("both.html")).unwrap();
    assert!(page.contains("<title>Both</title>"));
    let figures: Vec<_> = fs::read_dir(place.path.join("figures")).unwrap().flatten().collect();
    let drawn = page.matches("<figure>").count();
    for form in ["svg", "pdf", "png"] {
        let of_form = |file: &&fs::DirEntry| file.path().extension().is_some_and(|end| end == form);
        assert_eq!(figures.iter().filter(of_form).count(), drawn, "each figure as {form} too");
    }
    assert!(drawn >= 8 && figures.len() == 3 * drawn, "{figures:?}");

    // A deadline may be judged later.
    place.run("show r1 --deadline 1ns").with(1).says(&["FAIL"]);
}

#[test]
fn json_of_a_run_is_for_any_program() {
    need!(programs(&["python3"]));
    let place = Place::new();
    let line = ["run", "wakeup", "-t", "per-cpu", "-p", "80", "-i", "1000", "-D", "2s"];
    let more = ["--load", "hackbench", "--json"];
    let mut child =
        place.command(&[&line[..], &more].concat()).stdout(Stdio::piped()).spawn().unwrap();
    let mut python = Command::new("python3");
    python.args(["-m", "json.tool"]).stdin(child.stdout.take().unwrap());
    let read = end_of(python).with(0).json();
    assert!(child.wait().unwrap().success());
    validate(&read);
    let threads = read["cells"][0]["threads"].as_array().unwrap();
    assert_eq!(threads.len(), thread::available_parallelism().unwrap().get());
}

/// A process that is stopped for a second wakes up to a thousand missed periods, which are no fault of
/// the kernel.
#[test]
fn a_stop_of_one_second_is_a_thousand_missed_periods_that_are_left_out() {
    let place = Place::new();
    let line = ["run", "wakeup", "-i", "1000", "-D", "5", "--no-warmup", "--no-report", "--json"];
    let child = place.command(&line).stdout(Stdio::piped()).spawn().unwrap();
    thread::sleep(Duration::from_millis(2_500));
    let start = Instant::now();
    signal(&child, "STOP");
    thread::sleep(Duration::from_secs(1));
    signal(&child, "CONT");
    let stopped = u64::try_from(start.elapsed().as_millis()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let run: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let cell = &run["cells"][0];
    let of = |from: &serde_json::Value, key: &str| from[key].as_u64().unwrap();
    assert_eq!(of(cell, "scheduled"), of(cell, "samples") + of(cell, "missed"));
    let stops = cell["stops"].as_array().unwrap();
    let [stop] = stops.as_slice() else { panic!("{cell}") };
    assert_eq!((stop["by"].as_str(), of(stop, "samples")), (Some("signal"), 1), "{stop}");
    assert_eq!(of(cell, "scheduled") + of(stop, "samples") + of(stop, "missed"), 5_000, "{cell}");
    // A busy machine stops it a little longer than told, and misses some of its own.
    let times = 990..stopped + 300;
    assert!(times.contains(&of(stop, "missed")), "{stopped} ms: {cell}");
    for key in ["length_ns", "max_ns"] {
        assert!(times.contains(&(of(stop, key) / 1_000_000)), "{stopped} ms, {key}: {cell}");
    }
    assert!(of(cell, "max_ns") < 900_000_000, "{cell}");
}

#[test]
fn manuals_and_completions_know_every_command() {
    let place = Place::new();
    let help = place.run("--help").with(0).stdout;
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|line| !line.starts_with("Commands:"))
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(commands.len() >= 9, "{commands:?}");
    place.run("man pages").with(0);
    for name in &commands {
        let page = fs::read_to_string(place.path.join(format!("pages/punctual-{name}.1"))).unwrap();
        assert!(page.contains(".TH"), "{name}");
    }
    for name in ["run", "check", "kernels", "fetch"] {
        let path = place.path.join(format!("pages/punctual-lab-{name}.1"));
        assert!(fs::read_to_string(path).unwrap().contains(".TH"), "lab {name}");
    }
    let page = fs::read_to_string(place.path.join("pages/punctual-run.1")).unwrap();
    let plain = page.replace('\\', "");
    for word in ["--deadline", "--interval", "--dma-latency", "--at-most", "--allow"] {
        assert!(plain.contains(word), "{word} is not in the page of run");
    }
    // The shells ask punctual itself what can follow; tests/cli presses Tab in each of them.
    let asked = |words: &[&str]| {
        let line = [&["__complete"], words].concat();
        place.words(&line).with(0).stdout
    };
    let offered = asked(&[""]);
    for name in &commands {
        assert!(offered.contains(name), "{name} is not completed: {offered}");
    }
    assert!(asked(&["run", "--dead"]).contains("--deadline"));
    for shell in ["bash", "zsh", "fish", "elvish"] {
        let script = place.run(&format!("completions {shell}")).with(0).stdout;
        assert!(script.contains("__complete"), "{shell}");
        if shell == "bash" {
            fs::write(place.path.join("complete"), script).unwrap();
            let mut check = Command::new("bash");
            check.args(["-n", &place.at("complete")]);
            end_of(check).with(0);
        }
    }
}

/// Lists for programs have every entry of the registries, and say the same of each.
#[test]
fn everything_in_the_registry_is_in_the_json() {
    let place = Place::new();
    let probes: Vec<&str> =
        PROBES.iter().filter(|entry| !entry.is_planned()).map(|entry| entry.name).collect();
    let loads: Vec<&str> = LOADS.iter().map(|entry| entry.name).collect();
    for (list, names) in [("probes", probes), ("loads", loads)] {
        let entries = entries(&place, list);
        assert_eq!(entries.iter().map(name).collect::<Vec<_>>(), names, "{list}");
        for entry in &entries {
            for key in ["name", "summary"] {
                assert!(entry[key].as_str().is_some_and(|text| !text.is_empty()), "{key}: {entry}");
            }
            assert!(entry["needs"].is_array(), "{entry}");
            for param in entry["parameters"].as_array().unwrap() {
                for key in ["name", "default", "help"] {
                    assert!(param[key].is_string(), "{key}: {param}");
                }
            }
        }
    }
}

#[test]
fn everything_in_the_registry_is_explained() {
    let place = Place::new();
    let list = place.run("list --json").with(0).json();
    let text = place.run("list").with(0).stdout;
    for kind in ["probes", "loads", "plans"] {
        for entry in list[kind].as_array().unwrap() {
            let name = entry["name"].as_str().unwrap();
            assert!(text.contains(name), "{name} is not listed");
            let about = place.run(&format!("list {name}")).with(0).says(&[name]);
            for param in entry["parameters"].as_array().into_iter().flatten() {
                let param = param["name"].as_str().unwrap();
                assert!(about.stdout.contains(param), "{name}: {param} is not explained");
            }
        }
    }
}
