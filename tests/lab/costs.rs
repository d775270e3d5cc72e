//! What operations cost on virtual boards, counted.

use punctual_harness::schema::validate;
use punctual_harness::{Place, count, items, need, run_json};

use crate::boards::{hog, x86_64};
use crate::exact::same_twice;

/// Metrics of one process, of several, of a file, of memory, and through the loopback interface.
const SOME: &str = "lat.syscall,lat.pipe,lat.tcp,lat.fork,2p/0K,2p/64K,lat.create:kb=10,lat.pagefault,\
                    lat.futex,bw.pipe,bw.mem:op=write,sys.clock";

#[test]
fn costs_repeat_to_the_last_digit_and_have_their_instructions() {
    need!(x86_64());
    let place = Place::of_build();
    let _hog = hog();
    let line = format!("--kernel debian:none,debian:rt -D 500ms --cost {SOME}");
    same_twice(&place, &line, ["a", "b"]);
    for model in ["none", "rt"] {
        let [run, again] = ["a", "b"].map(|out| {
            let run = run_json(&place.path.join(format!("{out}/debian-{model}-0")));
            validate(&run);
            run
        });
        let cells = items(&run["cells"]);
        assert_eq!(cells.len(), SOME.split(',').count());
        for (cell, other) in cells.iter().zip(items(&again["cells"])) {
            let of = |key: &str| cell[key].as_f64().unwrap_or_else(|| panic!("{key}: {cell}"));
            assert_eq!((&cell["status"], &cell["state"]), (&"measured".into(), &"complete".into()));
            assert_eq!(cell["value"].to_string(), other["value"].to_string(), "{cell}");
            // Absent with too few repetitions.
            let interval = cell["low"].as_f64().zip(cell["high"].as_f64());
            let around = |(low, high)| low <= of("value") && of("value") <= high;
            assert!(interval.is_none_or(around), "{cell}");
            println!(
                "{model} {}: {} {}, {} instructions",
                cell["metric"], cell["value"], cell["unit"], cell["instructions"]
            );
            if cell["unit"] == "us" {
                // At 250 instructions a microsecond.
                assert!((of("instructions") / of("value") - 250.0).abs() < 0.01, "{cell}");
            }
        }
        let value = |metric: &str| {
            cells.iter().find(|cell| cell["metric"] == metric).unwrap()["value"].as_f64().unwrap()
        };
        let of_column = |column: &str| {
            cells.iter().find(|cell| cell["column"] == column).unwrap()["value"].as_f64().unwrap()
        };
        // Sums are subtracted, and this board has no caches to lose.
        assert!(of_column("2p/64K") > 0.98 * of_column("2p/0K"));
        // Two system calls and a switch on each side; and one more instruction takes one tick.
        assert!(value("lat.pipe") >= 4.0 * value("lat.syscall"));
        assert!((value("sys.clock") - 250.0).abs() < 1.0, "{}", value("sys.clock"));
    }
    let compared = place.run("compare a/debian-none-0 a/debian-rt-0").with(0).stdout;
    assert!(compared.contains("geometric mean"), "{compared}");
}

#[test]
fn costs_on_a_board_with_64_mb_are_measured_or_say_what_they_lack() {
    need!(x86_64());
    let place = Place::of_build();
    // Debian's kernel takes a good part of it, and QEMU does not start it with so little memory of
    // its own.
    let line = "lab run --offline -q --no-report --replicates 1 --kernel debian:rt \
                --append mem=110M --out r --cost summary -D 50ms";
    place.run(line).with(0);
    let run = run_json(&place.path.join("r/debian-rt-0"));
    validate(&run);
    let memory = count(&run["facts"]["memory"], "total_bytes");
    assert!(memory < 64 << 20, "{memory} bytes");
    assert_eq!(run["state"], "complete", "the guest lived to its end");
    let mut lacking = Vec::new();
    for cell in items(&run["cells"]) {
        let (metric, reason) = (cell["key"].as_str().unwrap(), cell["reason"].as_str());
        println!("{metric}: {} {}", cell["status"], reason.unwrap_or_default());
        match cell["state"].as_str().unwrap() {
            "complete" => {
                let status = cell["status"].as_str().unwrap();
                assert!(["measured", "not-measurable"].contains(&status), "{cell}");
            }
            "skipped" => lacking.push((metric, reason.unwrap())),
            _ => panic!("neither measured nor skipped: {cell}"),
        }
    }
    // A board has no shell, and nothing else may be missing but memory.
    lacking.retain(|(metric, _)| !metric.starts_with("lat.sh "));
    assert!(!lacking.is_empty() && lacking.len() < 8, "{lacking:?}");
    for (metric, reason) in lacking {
        let says = ["bytes of memory", "are available: "].iter().all(|part| reason.contains(part));
        assert!(says, "{metric}: {reason}");
    }
}
