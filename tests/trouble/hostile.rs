//! Run directories made to hurt whoever reads them: megabytes that are in order byte by byte
//! and cost far more than their size if a reader believes them.

use std::fs;
use std::path::Path;
use std::process::Command;

use punctual_core::block::{Block, Late, Moments};
use punctual_core::format::{Part, Record, encode};
use punctual_core::histogram::Sparse;
use serde_json::{Value, json};

use punctual_harness::{Place, end_of, has_time, need, programs, run_json, usage};

/// Bytes of each hostile file.
const SIZE: usize = 10_000_000;

/// CPU time that a command may take for [`SIZE`] bytes, s: 1 on a machine that is not busy, as
/// docs/run-format.md says.
const MOST_CPU: f64 = 2.0;

/// Memory that it may take, bytes.
const MOST_MEMORY: u64 = 200_000_000;

/// A run of one cell to be spoilt.
fn recorded(place: &Place) {
    place.run("run sim -D 1 --no-report --out r").with(0);
}

/// As many of these records as fill a file.
fn records(mut record: impl FnMut(u64) -> Record) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(SIZE + 1_000);
    for number in 0.. {
        encode(&record(number), &mut bytes);
        if bytes.len() >= SIZE {
            break;
        }
    }
    bytes
}

fn small(number: u64, most: u64) -> u32 {
    u32::try_from(number % most).unwrap()
}

fn block(thread: u32, series: u32, index: u64) -> Record {
    let moments = Moments { count: 1, missed: 1, max: 9, min: 9, ..Moments::EMPTY };
    Record::Block(Block { thread, series, index, moments, coarse: vec![(3, 1)] })
}

/// A cell that was cut short: it is rebuilt from its blocks.
fn running(run: &mut Value) {
    run["state"] = json!("running");
    run["cells"][0]["state"] = json!("running");
}

fn cells(run: &mut Value, count: usize, change: impl Fn(usize, &mut Value)) {
    let cell = run["cells"][0].clone();
    let list = (0..count).map(|number| {
        let mut cell = cell.clone();
        cell["key"] = json!(format!("{number}"));
        change(number, &mut cell);
        cell
    });
    run["cells"] = Value::Array(list.collect());
}

/// What is spoilt: `run.json` and the folder of its cell.
type Spoil = fn(&mut Value, &Path);

fn write(folder: &Path, file: &str, bytes: &[u8]) {
    fs::write(folder.join(file), bytes).unwrap();
}

const READ: &[(&str, Spoil)] = &[
    ("heads that claim much", |_, folder| {
        let head = [&[0xB5, 0x1A][..], &500_000_u32.to_le_bytes(), &[1, 2, 3, 4]].concat();
        write(folder, "blocks", &head.repeat(SIZE / head.len()));
    }),
    ("threads of many series, cut short", |run, folder| {
        running(run);
        let of = |n| block(small(n, 70_000), 15, n);
        write(folder, "blocks", &records(of));
    }),
    ("many cells of many threads, cut short", |run, folder| {
        running(run);
        cells(run, 1_000, |number, cell| cell["dir"] = json!(format!("{number}")));
        for number in 0..1_000_u32 {
            let folder = folder.with_file_name(number.to_string());
            fs::create_dir(&folder).unwrap();
            let mut bytes = Vec::new();
            encode(&block(4_095, 15, 0), &mut bytes);
            encode(&block(4_095, 0, 0), &mut bytes);
            write(&folder, "blocks", &bytes);
        }
    }),
    ("histograms of one bin", |_, folder| {
        let parts = [Part::Positive, Part::Negative, Part::Behind];
        let of = |n: u64| Record::Histogram {
            thread: small(n / 48, 4_096),
            series: small(n / 3, 16),
            part: parts[small(n, 3) as usize],
            counts: Sparse::of([(small(n, 7_000) as usize, 1 << 48)]),
        };
        write(folder, "histograms", &records(of));
    }),
    ("full histograms of many threads", |_, folder| {
        let counts = Sparse::of((0..7_424).map(|bin| (bin, 1)));
        let of = |n| {
            let counts = counts.clone();
            Record::Histogram { thread: small(n, 4_096), series: 0, part: Part::Positive, counts }
        };
        write(folder, "histograms", &records(of));
    }),
    ("late samples that missed much", |run, folder| {
        running(run);
        let missed = 1 << 48;
        let of = |n| match n {
            0 => block(0, 0, 0),
            _ => Record::Late(Late { thread: 0, series: 0, at: n, latency: u64::MAX / 2, missed }),
        };
        write(folder, "blocks", &records(of));
        run["cells"][0]["interval_ns"] = json!(1);
    }),
    ("work back and forth, of many parts", |run, folder| {
        running(run);
        let part = json!({"load": "x", "counters": [], "idle_seconds": 0, "restarts": 0});
        run["cells"][0]["load_work"] = Value::Array(vec![part; 20_000]);
        run["cells"][0]["duration_ns"] = json!(1_000_000_000_000_000_u64);
        let of = |n: u64| match n {
            0 => block(0, 0, 999_999),
            _ => Record::Work {
                second: n % 2 * 999_990,
                part: small(n / 2, 20_000),
                totals: vec![n],
            },
        };
        write(folder, "blocks", &records(of));
    }),
    ("blocks of distant seconds", |_, folder| {
        let of = |n: u64| block(small(n, 3), 0, n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40);
        write(folder, "blocks", &records(of));
    }),
    ("late samples of many cells, each with its block, cut short", |run, folder| {
        running(run);
        cells(run, 1_000, |number, cell| cell["dir"] = json!(format!("{number}")));
        run["cells"][0]["interval_ns"] = json!(1);
        let of = |n: u64| match n % 2 {
            0 => {
                let thread = small(n / 2, 4_096);
                Record::Late(Late { thread, series: 0, at: n, latency: 9, missed: 1 })
            }
            _ => block(small(n / 2, 4_096), 0, n),
        };
        let folder = folder.with_file_name("0");
        fs::create_dir(&folder).unwrap();
        write(&folder, "blocks", &records(of));
    }),
    ("late samples that missed much, of many threads, cut short", |run, folder| {
        running(run);
        run["cells"][0]["interval_ns"] = json!(1);
        let of = |n: u64| match n % 2 {
            0 => {
                let (thread, latency) = (small(n / 2, 3_700), 1 << 40);
                Record::Late(Late { thread, series: 0, at: n, latency, missed: (1 << 40) - 1 })
            }
            _ => {
                let moments = Moments { count: 1, missed: (1 << 40) - 1, max: 9, ..Moments::EMPTY };
                let thread = small(n / 2, 3_700);
                Record::Block(Block { thread, series: 0, index: 0, moments, coarse: vec![] })
            }
        };
        let bytes: Vec<u8> = (0..2 * 3_700).fold(Vec::new(), |mut bytes, n| {
            encode(&of(n), &mut bytes);
            bytes
        });
        write(folder, "blocks", &bytes);
    }),
    ("conditions without end", |run, _| {
        let of = |n| json!({"id": "x", "text": format!("{n}")});
        run["conditions"] = (0..SIZE / 40).map(of).collect();
    }),
    ("facts without end", |run, _| {
        run["facts"]["cpu"] = Value::Array(vec![json!(0); SIZE / 8]);
    }),
    ("reasons, counters and series of many cells", |run, _| {
        cells(run, 1_000, |number, cell| {
            cell["dir"] = json!(format!("{number}"));
            cell["verdict"]["because"] = json!(vec!["because"; 500]);
            let counter = json!({"name": "n", "meaning": "m", "total": 1, "tells": "loss"});
            cell["counters"] = Value::Array(vec![counter; 40]);
        });
    }),
];

const REFUSED: &[(&str, &str, Spoil)] = &[
    ("cells without end", "it has 2,000 cells; at most 1,000", |run, _| {
        cells(run, 2_000, |_, _| ());
    }),
    ("threads without end", "it has 5,000 threads; at most 4,096", |run, _| {
        let thread = run["cells"][0]["threads"][0].clone();
        run["cells"][0]["threads"] = Value::Array(vec![thread; 5_000]);
    }),
    ("values without end", "more values than a run can have", |run, _| {
        run["facts"]["cpu"] = Value::Array(vec![json!(0); 5_000_000]);
    }),
];

/// A copy of the recorded run, spoilt.
fn spoilt(place: &Place, name: &str, spoil: Spoil) -> String {
    let to = place.path.join(name.replace([' ', ','], "-"));
    let mut copy = Command::new("cp");
    copy.arg("-r").arg(place.path.join("r")).arg(&to);
    end_of(copy).with(0);
    let mut run = run_json(&to);
    let folder = to.join("cells").join(run["cells"][0]["dir"].as_str().unwrap());
    spoil(&mut run, &folder);
    fs::write(to.join("run.json"), serde_json::to_vec(&run).unwrap()).unwrap();
    to.to_str().unwrap().to_owned()
}

#[test]
fn megabytes_that_lie_cost_what_their_size_costs() {
    need!(has_time());
    let place = Place::new();
    recorded(&place);
    let page = place.at("page.html");
    let mut dear = Vec::new();
    for (name, spoil) in READ {
        let run = spoilt(&place, name, *spoil);
        for line in [&["show", &run][..], &["report", &run, "-o", &page]] {
            let used = usage(place.folder(), place.binary(), line);
            println!("{name}: {}: {:.2} s, {} MB", line[0], used.cpu, used.peak / 1_000_000);
            if used.cpu > MOST_CPU || used.peak > MOST_MEMORY {
                dear.push(format!("{} {name}: {:.2} s, {} bytes", line[0], used.cpu, used.peak));
            }
        }
        fs::remove_dir_all(run).unwrap();
    }
    assert!(dear.is_empty(), "{dear:#?}");
}

#[test]
fn what_no_run_has_so_many_of_is_refused() {
    let place = Place::new();
    recorded(&place);
    for (name, says, spoil) in REFUSED {
        let run = spoilt(&place, name, *spoil);
        for line in [&["show", &run][..], &["report", &run, "-o", "page.html"]] {
            place.words(line).with(2).says(&["run.json", says]);
        }
    }
}

#[test]
fn only_regular_files_are_read_and_each_once() {
    need!(programs(&["mkfifo"]));
    let place = Place::new();
    recorded(&place);
    let fifo = |path: &Path| {
        let _ = fs::remove_file(path);
        let mut mkfifo = Command::new("mkfifo");
        mkfifo.arg(path);
        end_of(mkfifo).with(0);
    };
    for file in ["blocks", "histograms"] {
        let run = spoilt(&place, "fifo", |_, _| ());
        let of = punctual_harness::cell_file(Path::new(&run), file);
        fifo(&of);
        place.words(&["show", &run]).with(0).says(&[file, "it is a FIFO, and no regular file"]);
        fs::remove_file(&of).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &of).unwrap();
        place.words(&["show", &run]).with(0).says(&[file, "it is a device, and no regular file"]);
        fs::remove_dir_all(run).unwrap();
    }
    let run = spoilt(&place, "json", |_, _| ());
    let json = Path::new(&run).join("run.json");
    fifo(&json);
    let other = spoilt(&place, "other", |_, _| ());
    for line in [
        &["show", &run][..],
        &["report", &run, "-o", "page.html"],
        &["compare", &run, &run],
        &["compare", "--exact", &run, &other],
        &["run", "--plan", json.to_str().unwrap()],
    ] {
        place.words(line).with(2).says(&["FIFO"]);
    }
    // As many cells as there may be, all of one folder.
    let one = spoilt(&place, "one", |run, _| cells(run, 1_000, |_, _| ()));
    let all = place.words(&["show", &one, "--all"]).with(0);
    all.says(&["it is a file of another cell too"]);
}
