//! Run directories of a load and a probe that no registry knows: files alone are enough.

use std::fs;
use std::path::PathBuf;

use punctual_core::block::{Block, Late, Moments};
use punctual_core::format::{Record, encode};
use punctual_core::layout::{BLOCKS, CELLS, RUN_JSON};
use punctual_core::plan::Plan;
use punctual_core::schema::*;
use punctual_sys::folder::Folder as Held;
use punctual_sys::written;
use serde_json::{Value, json};

use super::writer::{read_after, read_ended};
use super::*;

const MS: u64 = 1_000_000;

/// A separate folder, removed with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("punctual-store-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, run: &Value) {
        let text = serde_json::to_string_pretty(run).unwrap();
        fs::write(self.0.join(RUN_JSON), text).unwrap();
    }

    fn records(&self, records: &[Record]) {
        let mut bytes = Vec::new();
        records.iter().for_each(|record| encode(record, &mut bytes));
        let cell = self.0.join(CELLS).join("00-cell");
        fs::create_dir_all(&cell).unwrap();
        fs::write(cell.join(BLOCKS), bytes).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A run whose one cell was under way.
fn running(what: What) -> Value {
    let mut plan = Plan::new("of-another-build");
    plan.deadline_ns = Some(2 * MS);
    let counter = |name: &str| WorkCounter { name: name.to_owned(), ..WorkCounter::default() };
    let load_work = vec![LoadWork {
        load: "earthquake".to_owned(),
        counters: vec![counter("shocks"), counter("bytes")],
        ..LoadWork::default()
    }];
    let (key, dir) = ("quake @ earthquake @ 10s".to_owned(), "00-cell".to_owned());
    let cell = Cell::new(key, dir, "earthquake".to_owned(), 10_000 * MS, what);
    let run = Run {
        schema: SCHEMA.to_owned(),
        run_id: "r".to_owned(),
        state: RunState::Running,
        origin: Origin::Native,
        group: None,
        replicate: None,
        phase_ns: 0,
        dither: None,
        aim: None,
        plan_hash: String::new(),
        plan,
        tool: Tool {
            name: "punctual".to_owned(),
            version: "7".to_owned(),
            target: String::new(),
            sha256: String::new(),
            command: Vec::new(),
        },
        board: Board {
            name: "b".to_owned(),
            kind: BoardKind::Local,
            fingerprint: String::new(),
            identity: Vec::new(),
            cpu_model: String::new(),
            cpus: 1,
            hypervisor: None,
            turn_wait_ns: None,
            marks: None,
            modules: Vec::new(),
            lab: None,
        },
        kernel: Kernel {
            release: "6.1".to_owned(),
            version: String::new(),
            machine: String::new(),
            preemption: Default::default(),
            command_line: String::new(),
            config_sha256: None,
        },
        privileged: true,
        is_virtual: false,
        started: TimeBase::default(),
        ended: None,
        continued: Vec::new(),
        conditions: Vec::new(),
        facts: Default::default(),
        cells: vec![Cell { state: CellState::Running, load_work, ..cell }],
        verdict: Verdict::default(),
        judged: false,
    };
    serde_json::to_value(run).unwrap()
}

fn quake() -> Latency {
    Latency {
        probe: "quake".to_owned(),
        primary: Quantity {
            name: "latency".to_owned(),
            meaning: "tremor minus shock".to_owned(),
            noun: "tremor".to_owned(),
            nouns: "tremors".to_owned(),
        },
        interval_ns: Some(MS),
        series: vec![Series {
            name: "leg".to_owned(),
            meaning: "the first half".to_owned(),
            role: Role::Leg,
            unit: Unit::Ns,
            stats: Stats::default(),
        }],
        ..Latency::default()
    }
}

fn block(series: u32, index: u64, max: i64, missed: u64) -> Record {
    let moments = Moments {
        count: 1_000 - missed,
        missed,
        exceeded: u64::from(series == 0 && max > 2_000_000),
        min: 100,
        max,
        max_at: index * 1_000 * MS + 5,
        sum: 100 * 1_000 + i128::from(max),
        ..Moments::EMPTY
    };
    let count = u32::try_from(1_000 - missed).unwrap();
    Record::Block(Block { thread: 0, series, index, moments, coarse: vec![(3, count)] })
}

fn work(second: u64, part: u32, totals: &[u64]) -> Record {
    Record::Work { second, part, totals: totals.to_vec() }
}

#[test]
fn a_cut_short_run_of_an_unknown_load_and_probe_reads_back() {
    let folder = Folder::new("unknown");
    folder.write(&running(What::Latency(quake())));
    let late = Record::Late(Late { thread: 0, series: 0, at: 5, latency: 4 * MS + 1, missed: 4 });
    folder.records(&[
        work(0, 0, &[100, 5]),
        late,
        block(0, 0, 4_000_001, 4),
        block(1, 0, 50, 0),
        work(1, 0, &[300, 5]),
        block(0, 1, 900, 0),
        work(2, 0, &[700, 5]),
        work(2, 3, &[1]),
    ]);
    let mut loaded = load(&folder.0).unwrap();
    let cell = &loaded.run.cells[0];
    assert_eq!((cell.state, cell.duration_ns), (CellState::Recovered, 2_000 * MS));
    let [shocks, bytes] = &cell.load_work[0].counters[..] else { panic!("two counters") };
    assert_eq!((shocks.name.as_str(), shocks.total, shocks.per_second), ("shocks", 600, 300.0));
    assert_eq!((bytes.name.as_str(), bytes.total), ("bytes", 0));
    assert_eq!(cell.load_work[0].load, "earthquake");
    let latency = cell.latency().unwrap();
    assert_eq!((latency.stats.samples, latency.stats.max), (1_996, Some(4_000_001)));
    assert_eq!(
        (latency.series[0].stats.max, latency.threads[0].series[0].max),
        (Some(50), Some(50))
    );
    assert_eq!(latency.threads[0].placement.policy, Policy::Unknown);
    // The sample itself, and 3 and 2 ms of the releases missed after it.
    assert_eq!((cell.verdict.outcome, cell.verdict.exceedances), (Outcome::Fail, 3));
    assert!(cell.verdict.because.iter().any(|text| text.contains("tremors")), "{:?}", cell.verdict);
    assert!(loaded.damage[0].contains("no name for part 3"), "{:?}", loaded.damage);

    let relaxed = Plan { deadline_ns: Some(10 * MS), ..loaded.run.plan.clone() };
    judge_again(&mut loaded, relaxed);
    assert_eq!(loaded.run.verdict.exceedances, 0);
    let strict = Plan { deadline_ns: Some(500_000), ..loaded.run.plan.clone() };
    judge_again(&mut loaded, strict);
    assert_eq!(loaded.run.verdict.outcome, Outcome::Fail);
}

#[test]
fn a_cost_that_was_cut_short_has_no_value() {
    let folder = Folder::new("cost");
    let cost = Cost { metric: "lat.quake".to_owned(), ..Cost::default() };
    folder.write(&running(What::Cost(cost)));
    folder.records(&[work(0, 0, &[1, 1]), work(1, 0, &[2, 2])]);
    let loaded = load(&folder.0).unwrap();
    let cell = &loaded.run.cells[0];
    assert_eq!((cell.state, cell.verdict.outcome), (CellState::Pending, Outcome::None));
    assert_eq!(cell.reason.as_deref(), Some("punctual was killed before the cell's result"));
}

#[test]
fn another_major_version_is_refused_in_a_sentence() {
    let folder = Folder::new("major");
    let mut run = running(What::Latency(quake()));
    for version in ["1.1", "1.0", "3.0", "", "nonsense"] {
        run["schema"] = json!(version);
        // Whatever else such a record holds: its version is what is said.
        run["cells"] = json!(["another form"]);
        folder.write(&run);
        let error = format!("{:#}", load(&folder.0).unwrap_err());
        assert!(error.contains(&format!("is of schema version {version};")), "{error}");
        assert_eq!(error.lines().count(), 1);
    }
    let mut later = running(What::Latency(quake()));
    later["schema"] = json!("2.7");
    later["colour"] = json!("red");
    folder.write(&later);
    assert_eq!(load(&folder.0).unwrap().run.schema, "2.7");
}

#[test]
fn what_is_wrong_in_run_json_has_a_line_and_a_column() {
    let folder = Folder::new("line");
    let mut run = running(What::Latency(quake()));
    run["board"]["cpus"] = json!("two");
    folder.write(&run);
    let text = fs::read_to_string(folder.0.join(RUN_JSON)).unwrap();
    let line = text.lines().position(|line| line.contains("\"two\"")).unwrap() + 1;
    let error = format!("{:#}", load(&folder.0).unwrap_err());
    assert!(error.contains(&format!("line {line} column")), "{error}");
    run["board"]["cpus"] = json!(2);
    run["cells"][0]["kind"] = json!("tremor");
    folder.write(&run);
    let error = format!("{:#}", read_run(&folder.0).unwrap_err());
    assert!(error.contains("unknown variant `tremor`") && error.contains("line "), "{error}");
}

#[test]
fn a_run_is_written_as_long_as_its_writer_lives() {
    let folder = Folder::new("lives");
    folder.write(&running(What::Latency(quake())));
    // Between two cells no file of the run is open.
    let held = written::lock(&Held::open(&folder.0).unwrap()).unwrap();
    let said = read_run(&folder.0).and_then(|_| read_ended(&folder.0)).unwrap_err().to_string();
    let pid = std::process::id();
    assert!(said.contains(&format!("process {pid} still measures")), "{said}");
    drop(held);
    assert_eq!(read_ended(&folder.0).unwrap().0.state, RunState::Running);
}

#[test]
fn a_run_that_ends_while_it_is_read_is_not_taken_for_a_killed_one() {
    let folder = Folder::new("ends");
    folder.write(&running(What::Latency(quake())));
    let end = |_: &std::path::Path| {
        let mut run = running(What::Latency(quake()));
        run["state"] = json!("complete");
        folder.write(&run);
        Ok(())
    };
    let (run, bytes) = read_after(&folder.0, end).unwrap();
    assert_eq!(run.state, RunState::Complete);
    assert_eq!(bytes, fs::read(folder.0.join(RUN_JSON)).unwrap());
}

#[test]
fn all_names_in_the_folder_of_a_set_are_its_runs() {
    let set = Folder::new("set");
    let in_set = |name: &str| set.0.join(name).to_str().unwrap().to_owned();
    fs::create_dir(in_set("a")).unwrap();
    fs::write(in_set("a/run.json"), "{}").unwrap();
    for beside in ["experiment.json", "report.html"] {
        fs::write(in_set(beside), "").unwrap();
        assert_eq!(find_all(&in_set(beside)).unwrap(), Vec::<PathBuf>::new());
    }
    let run = PathBuf::from(in_set("a"));
    assert_eq!(find_all(&in_set("a")).unwrap(), std::slice::from_ref(&run));
    assert_eq!(find_all(&in_set("")).unwrap(), [run]);
    // A file elsewhere is none, which reading it says.
    let file = in_set("a/else");
    fs::write(&file, "").unwrap();
    assert_eq!(find_all(&file).unwrap(), [PathBuf::from(&file)]);
}
