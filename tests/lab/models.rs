//! What the lab's own plan says of the preemption models.

use serde_json::Value;

use crate::boards::x86_64;
use punctual_harness::schema::validate;
use punctual_harness::{Place, need, run_json};

const REPLICATES: usize = 3;

/// The load under which processes begin and end all the time, and nothing else happens:
/// the averages of the models lie apart in it.
const PROCESSES: &str = "process:jobs=1";

const HACKBENCH: &str = "hackbench:groups=1,loops=20";

/// A figure of a model's cell under a load in every replicate, sorted, us.
fn figures(runs: &[Value], load: &str, key: &str) -> [f64; REPLICATES] {
    let of = |run: &Value| {
        let cells = run["cells"].as_array().unwrap();
        let cell = cells.iter().find(|cell| cell["load"] == load).unwrap();
        assert_eq!((&cell["scheduled"], &cell["interval_ns"]), (&2000.into(), &1_000_000.into()));
        cell[key].as_f64().unwrap_or_else(|| panic!("no {key} in {cell}")) / 1e3
    };
    let mut figures: Vec<f64> = runs.iter().map(of).collect();
    figures.sort_by(f64::total_cmp);
    figures.try_into().unwrap()
}

#[test]
fn the_default_plan_tells_the_models_apart() {
    need!(x86_64());
    let place = Place::of_build();
    let line = format!("lab run --offline --jobs 2 --replicates {REPLICATES} -q --out r");
    place.run(&line).with(0).says(&["PREEMPT_RT", "r/report.html"]);
    let runs = ["none", "voluntary", "full", "rt"].map(|model| {
        let run = |number| run_json(&place.path.join(format!("r/debian-{model}-{number}")));
        let runs: Vec<Value> = (0..REPLICATES).map(run).collect();
        runs.iter().for_each(validate);
        runs
    });
    let [none, voluntary, full, rt] = &runs;
    for load in ["none", HACKBENCH, PROCESSES] {
        let figures = |key: &str| runs.each_ref().map(|runs| figures(runs, load, key));
        println!("{load}: none, voluntary, full, rt, us");
        println!("  max {:.1?}", figures("max_ns"));
        println!("  avg {:.1?}", figures("avg_ns"));
    }

    for load in ["none", HACKBENCH, PROCESSES] {
        let worst = figures(rt, load, "max_ns")[REPLICATES - 1];
        assert!(worst <= 50.0, "max of rt under {load}: {worst} us");
    }
    for (load, least) in [(HACKBENCH, 5.0), (PROCESSES, 3.0)] {
        let median = |runs| figures(runs, load, "max_ns")[REPLICATES / 2];
        let ratio = median(none) / median(rt);
        assert!(ratio >= least, "under {load} the max of none is {ratio} times that of rt");
    }
    let averages = |runs| figures(runs, PROCESSES, "avg_ns");
    for (slower, faster) in [(none, voluntary), (voluntary, full)] {
        let (slower, faster) = (averages(slower), averages(faster));
        assert!(slower[0] > faster[REPLICATES - 1], "averages: {slower:?} and {faster:?}");
    }

    // Replicates differ in what they were given, so that nothing follows from a difference.
    place
        .run("compare --exact r/debian-rt-0 r/debian-rt-1")
        .with(4)
        .says(&["refused", "seed: 1 against 2"]);
}
