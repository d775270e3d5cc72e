use super::*;
use crate::aim::Aim;
use crate::block::{Block, Late, Moments, Outlier, Strain, System};
use crate::compare::tests::{cell, run};
use crate::dither::Dither;
use crate::format::{Part, Record, encode};
use crate::histogram::Histogram;
use crate::interval::{Actor, Interval};
use crate::schema::{BoardKind, Policy};

/// A run of a counted virtual board with two cells, and what their files hold.
struct Fixture {
    run: Run,
    files: Vec<Files>,
    facts: Value,
}

fn block(index: u64, max: i64) -> Record {
    let moments = Moments {
        count: 1_000,
        min: 14_000,
        max,
        max_at: index * 1_000_000_000 + 7,
        sum: 1_000 * 14_000 + i128::from(max),
        sum_sq: 196_000_000_000,
        ..Moments::EMPTY
    };
    Record::Block(Block { thread: 0, series: 0, index, moments, coarse: vec![(48, 999), (50, 1)] })
}

fn bytes(records: &[Record]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    records.iter().for_each(|record| encode(record, &mut out));
    Some(out)
}

fn histogram(values: &[u64]) -> Record {
    let mut counts = Histogram::new();
    values.iter().for_each(|value| counts.record(*value));
    Record::Histogram { thread: 0, series: 0, part: Part::Positive, counts: counts.sparse() }
}

impl Fixture {
    fn new() -> Self {
        let mut run =
            run("r", "rt", vec![cell("w @ none @ 2s", 1, 2), cell("w @ tree @ 2s", 3, 4)]);
        run.board.kind = BoardKind::Virtual;
        run.board.lab = Some(Lab { counted: true, qemu: "7.2".to_owned(), ..Lab::default() });
        let files = Files {
            blocks: bytes(&[block(0, 20_000), block(1, 21_024)]),
            histograms: bytes(&[histogram(&[14_000, 21_024])]),
        };
        Self { run, files: vec![files; 2], facts: serde_json::json!({"7": {"total": 40}}) }
    }

    fn changed(change: impl FnOnce(&mut Self)) -> Self {
        let mut fixture = Self::new();
        change(&mut fixture);
        fixture
    }

    fn against(&self, other: &Self) -> Exact {
        let json = |fixture: &Self| {
            let mut json = serde_json::to_value(&fixture.run).unwrap();
            json["facts"]["interrupts_during"] = fixture.facts.clone();
            json
        };
        let (a, b) = (json(self), json(other));
        compare(
            Candidate { name: "A", run: &self.run, json: &a, files: &self.files },
            Candidate { name: "B", run: &other.run, json: &b, files: &other.files },
        )
    }
}

/// The first difference of two runs of which one is changed.
fn first(change: impl FnOnce(&mut Fixture)) -> (Exact, String) {
    let exact = Fixture::new().against(&Fixture::changed(change));
    let Sameness::NotIdentical { first: First { cell, file, what } } = exact.outcome.clone() else {
        panic!("{exact:?}");
    };
    let cell = cell.map_or_else(String::new, |cell| format!("{cell}: "));
    (exact, format!("{cell}{what} [{file}]"))
}

#[test]
fn what_was_measured_is_compared_and_names_and_times_are_not() {
    let again = Fixture::changed(|other| {
        other.run.run_id = "another".to_owned();
        other.run.started.realtime_ns = 7;
        other.run.board.name = "another".to_owned();
        other.run.group = Some("another".to_owned());
    });
    let exact = Fixture::new().against(&again);
    assert_eq!(exact.outcome, Sameness::Identical);
    let whole = again.files.iter().map(Files::bytes).sum();
    assert!(whole > 100, "{whole}");
    assert_eq!((exact.cells, exact.cells_identical), (2, 2));
    assert_eq!((exact.bytes, exact.bytes_identical), (whole, whole));
}

#[test]
fn what_was_judged_and_by_whom_is_not_compared() {
    let again = Fixture::changed(|other| {
        other.run.tool.version = "2.0.0".to_owned();
        other.run.plan_hash = "of another name".to_owned();
        other.run.plan.name = "another".to_owned();
        other.run.plan.citation = Some("a paper".to_owned());
        other.run.plan.confidence = 0.99;
        other.run.plan.tolerate = Some(0.5);
        other.run.judged = false;
        for cell in &mut other.run.cells {
            cell.verdict.because = vec!["in other words".to_owned()];
            cell.verdict.outcome = crate::schema::Outcome::Inconclusive;
        }
    });
    assert_eq!(Fixture::new().against(&again).outcome, Sameness::Identical);
    let (_, text) = first(|other| other.run.cells[1].verdict.exceedances = 1);
    assert_eq!(text, "w @ tree @ 2s: cells[1].verdict.exceedances: 0 against 1 [run.json]");
}

#[test]
fn the_first_difference_is_said_in_the_words_of_its_record() {
    let blocks = |records: &[Record]| {
        let blocks = bytes(records);
        first(|other| other.files[1].blocks = blocks)
    };
    let (exact, text) = blocks(&[block(0, 20_000), block(1, 21_034)]);
    assert_eq!(
        text,
        "w @ tree @ 2s: thread 0, second 1: largest 21,024 ns against 21,034 ns [blocks]"
    );
    assert_eq!((exact.cells, exact.cells_identical), (2, 1));
    assert_eq!(
        exact.bytes - exact.bytes_identical,
        Fixture::new().files[1].blocks.as_ref().unwrap().len()
    );

    let (_, text) = blocks(&[block(0, 20_000)]);
    assert_eq!(text, "w @ tree @ 2s: thread 0, second 1: only in the first run [blocks]");
    let (_, text) = blocks(&[block(0, 20_000), block(2, 21_024)]);
    assert_eq!(text, "w @ tree @ 2s: thread 0, second 1 against thread 0, second 2 [blocks]");
    let late = Record::Late(Late { thread: 3, series: 0, at: 1, latency: 2, missed: 1 });
    let (_, text) = blocks(&[block(0, 20_000), block(1, 21_024), late]);
    assert_eq!(text, "w @ tree @ 2s: thread 3, late sample: only in the second run [blocks]");
}

#[test]
fn every_kind_of_record_is_told_apart() {
    let late = |latency| Record::Late(Late { thread: 0, series: 0, at: 5, latency, missed: 1 });
    let work = |total| Record::Work { second: 3, part: 1, totals: vec![7, total] };
    let system =
        |steal| Record::System(System { second: 3, busy: 100, steal, ..System::default() });
    let switching = |switches| {
        let strain = Strain { switches, ..Strain::default() };
        Record::System(System { second: 3, strain, ..System::default() })
    };
    let worst = |samples: &[i64]| Record::Outliers {
        thread: 0,
        series: 0,
        samples: samples.iter().map(|latency| Outlier { at: 9, latency: *latency }).collect(),
    };
    let interval = |to, actor| Record::Interval(Interval { cpu: 1, from: 5, to, actor });
    let actor = |name: &str| Record::Actor(Actor { number: 3, name: name.to_owned() });
    let coarse = |bin| match block(0, 20_000) {
        Record::Block(block) => Record::Block(Block { coarse: vec![(bin, 1)], ..block }),
        other => other,
    };
    for (a, b, text) in [
        (late(1_200), late(1_201), "thread 0, late sample: latency 1,200 ns against 1,201 ns"),
        (work(10), work(1_011), "second 3, part 1 of the load: counter 1: 10 against 1,011"),
        (system(0), system(4), "second 3, CPUs' time: steal 0/1000 against 4/1000"),
        (
            switching(None),
            switching(Some(1_200)),
            "second 3, CPUs' time: context switches unknown against 1,200",
        ),
        (
            worst(&[9_000]),
            worst(&[9_000, -20]),
            "thread 0, worst samples: sample 1: none against -20 ns at 9 ns",
        ),
        (
            histogram(&[200, 21_024]),
            histogram(&[200, 201, 21_024]),
            "thread 0, histogram: 201 ns: 0 against 1 samples",
        ),
        (
            histogram(&[21_024]),
            histogram(&[30_000]),
            "thread 0, histogram: 20,992 ns to 21,119 ns: 1 against 0 samples",
        ),
        (interval(20, 1), interval(21, 1), "CPU 1, interval: to 20 ns against 21 ns"),
        (actor("sh"), actor("ls"), "actor 3: name \"sh\" against \"ls\""),
        (
            late(1_200),
            Record::Late(Late { thread: 0, series: 2, at: 5, latency: 1_200, missed: 1 }),
            "thread 0, late sample against thread 0, series 2, late sample",
        ),
        (coarse(0), coarse(-1), "thread 0, second 0: -31 ns to 0 ns: 0 against 1 samples"),
    ] {
        let file = |record| bytes(&[block(7, 1), record]).unwrap();
        assert_eq!(records::first_difference(&file(a), &file(b)), text);
    }
}

#[test]
fn where_no_record_can_be_read_the_byte_is_said() {
    let (_, text) = first(|other| other.files[0].histograms.as_mut().unwrap()[3] ^= 1);
    assert!(text.starts_with("w @ none @ 2s: byte 3: 0x"), "{text}");
    let (_, text) = first(|other| {
        let file = other.files[0].blocks.as_mut().unwrap();
        file.truncate(file.len() - 2);
    });
    assert!(text.ends_with("against the end of the file [blocks]"), "{text}");
    let (_, text) = first(|other| other.files[0].histograms = None);
    assert_eq!(text, "w @ none @ 2s: the file histograms is missing in B [histograms]");
}

#[test]
fn a_difference_in_run_json_has_its_path() {
    let (exact, text) = first(|other| {
        other.run.cells[1].latency_mut().unwrap().threads[0].placement.policy = Policy::Rr
    });
    assert_eq!(
        text,
        "w @ tree @ 2s: cells[1].threads[0].policy: \"fifo\" against \"rr\" [run.json]"
    );
    assert_eq!((exact.cells_identical, exact.bytes_identical), (1, exact.bytes));
    let (_, text) = first(|other| {
        other.run.cells[0].started = Some(crate::schema::TimeBase::default());
    });
    assert!(text.starts_with("w @ none @ 2s: cells[0].started: null against {"), "{text}");
    let (_, text) = first(|other| other.run.cells.truncate(1));
    assert!(text.contains("w @ tree @ 2s: cells[1]: {"), "{text}");
    assert!(text.contains("… against nothing"), "{text}");
}

#[test]
fn interrupts_are_compared_where_both_have_them() {
    let (exact, text) = first(|other| other.facts["7"]["total"] = 41.into());
    assert_eq!(text, "facts.interrupts_during.7.total: 40 against 41 [run.json]");
    assert_eq!(exact.cells_identical, 2);
    let without = Fixture::changed(|other| other.facts = Value::Null);
    let exact = Fixture::new().against(&without);
    assert_eq!(exact.outcome, Sameness::Identical);
    assert_eq!(exact.notes, ["B has no record of its interrupts: they are not compared"]);
}

#[test]
fn runs_that_measured_nothing_are_refused() {
    let refused = |change: fn(&mut Fixture)| match Fixture::changed(change)
        .against(&Fixture::changed(change))
        .outcome
    {
        Sameness::Refused { refused } => refused,
        other => panic!("{other:?}"),
    };
    let skipped = refused(|run| {
        for cell in &mut run.run.cells {
            *cell = Cell { state: crate::schema::CellState::Skipped, ..cell.clone() };
            cell.latency_mut().unwrap().stats = crate::schema::Stats::default();
        }
    });
    assert_eq!(skipped[0], "A measured nothing: there is nothing to compare");
    assert_eq!(skipped.len(), 2);
    let emptied = refused(|run| run.files = vec![Files::default(); 2]);
    assert!(emptied[0].starts_with("A has samples but no records of them"), "{emptied:?}");
}

#[test]
fn the_plan_and_the_settings_are_compared() {
    let refused = |change: fn(&mut Fixture)| match Fixture::new()
        .against(&Fixture::changed(change))
        .outcome
    {
        Sameness::Refused { refused } => refused,
        other => panic!("{other:?}"),
    };
    let plan = refused(|other| other.run.plan.warmup_ns += 1);
    assert!(plan[0].starts_with("plan.warmup"), "{plan:?}");
    let plan = refused(|other| other.run.plan.deadline_ns = Some(1));
    assert!(plan[0].starts_with("plan.deadline_ns"), "{plan:?}");
    let engine = refused(|other| {
        other.run.facts.insert("engine".to_owned(), serde_json::json!({"break_ns": 7}));
    });
    assert_eq!(engine, ["facts.engine.break_ns: nothing against 7"]);
    let hardware = refused(|other| {
        other.run.facts.insert("hardware".to_owned(), serde_json::json!({"firmware": "1.16.3"}));
    });
    assert_eq!(hardware, ["facts.hardware.firmware: nothing against \"1.16.3\""]);
}

#[test]
fn other_boards_are_refused_and_every_difference_is_listed() {
    type Change = fn(&mut Run, &mut Lab);
    let changes: [(&str, Change); 18] = [
        ("qemu: 7.2 against 8.0", |_, lab| lab.qemu = "8.0".to_owned()),
        ("options: none against -cpu max", |_, lab| {
            lab.options = vec!["-cpu".to_owned(), "max".to_owned()];
        }),
        ("firmware_sha256: none against f", |_, lab| lab.firmware_sha256 = Some("f".to_owned())),
        ("arch: none against aarch64", |_, lab| lab.arch = "aarch64".to_owned()),
        ("cpus: 0 against 2", |_, lab| lab.cpus = 2),
        ("memory_mib: 0 against 256", |_, lab| lab.memory_mib = 256),
        ("mips: 0 against 250", |_, lab| lab.mips = 250),
        ("seed: 0 against 1", |_, lab| lab.seed = 1),
        ("devices: none against edu", |_, lab| lab.devices = vec!["edu".to_owned()]),
        ("kernel_sha256: none against k", |_, lab| lab.kernel_sha256 = "k".to_owned()),
        ("modules: none against brd", |_, lab| lab.modules = vec!["brd".to_owned()]),
        ("initramfs_sha256: none against i", |_, lab| lab.initramfs_sha256 = "i".to_owned()),
        ("punctual_sha256: none against p", |_, lab| lab.punctual_sha256 = "p".to_owned()),
        ("snapshot_sha256: none against s", |_, lab| lab.snapshot_sha256 = Some("s".to_owned())),
        ("kernel.command_line: none against quiet", |run, _| {
            run.kernel.command_line = "quiet".to_owned();
        }),
        ("phase_ns: 0 against 5", |run, _| run.phase_ns = 5),
        ("dither: none against seed 2", |run, _| run.dither = Some(Dither::of_seed(2))),
        ("aim: none against release 5 of cell 0 at 0.0042 s", |run, _| {
            run.aim = Some(Aim { cell: 0, release: 5, at_ns: 4_200_000 });
        }),
    ];
    let mut all = Fixture::new();
    let mut expected = Vec::new();
    for (text, change) in changes {
        let apply = |fixture: &mut Fixture| {
            let mut lab = fixture.run.board.lab.take().unwrap();
            change(&mut fixture.run, &mut lab);
            fixture.run.board.lab = Some(lab);
        };
        let exact = Fixture::new().against(&Fixture::changed(apply));
        assert_eq!(exact.outcome, Sameness::Refused { refused: vec![text.to_owned()] });
        apply(&mut all);
        expected.push(text.to_owned());
    }
    let exact = Fixture::new().against(&all);
    assert_eq!(exact.outcome, Sameness::Refused { refused: expected });
    assert_eq!((exact.cells, exact.bytes), (0, 0));
}

#[test]
fn only_counted_virtual_boards_are_compared() {
    let local = Fixture::changed(|other| {
        other.run.board.kind = BoardKind::Local;
        other.run.board.lab = None;
    });
    let free = Fixture::changed(|other| {
        other.run.board.lab = Some(Lab::default());
    });
    let exact = local.against(&free);
    let Sameness::Refused { refused } = exact.outcome else {
        panic!("{exact:?}");
    };
    assert_eq!(
        refused,
        [
            "A is from a local board: only a virtual board with counted instructions repeats exactly",
            "B is from a virtual board without instruction counting: only a virtual board with counted \
             instructions repeats exactly"
        ]
    );
}

#[test]
fn reasons_to_doubt_are_notes_and_refuse_nothing() {
    let doubtful = Fixture::changed(|other| {
        other.run.board.lab.as_mut().unwrap().not_exact = vec!["a peer outside".to_owned()];
        other.run.state = RunState::Interrupted;
    });
    let exact = Fixture::new().against(&doubtful);
    assert_eq!(exact.outcome, Sameness::Identical);
    assert_eq!(
        exact.notes,
        [
            "B was interrupted: what it contains is compared",
            "B may not repeat exactly: a peer outside"
        ]
    );
}
