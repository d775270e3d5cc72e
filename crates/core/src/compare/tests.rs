use super::*;
use crate::compare::differences::Bearing;
use crate::plan::Plan;
use crate::schema::{
    Better, Board, BoardKind, Cell, CellState, Condition, Cost, CostEnd, Kernel, Lab, Latency,
    LoadWork, NOT_AT_REST, NOT_IDLE, Origin, Placement, Policy, RunState, Stats, Thread, TimeBase,
    Tool, UNREAD, Unit, Verdict, What, WorkCounter,
};
use std::collections::BTreeMap;

pub(crate) fn cell(key: &str, p999_us: i64, max_us: i64) -> Cell {
    let placement = Placement { policy: Policy::Fifo, priority: 80, ..Placement::default() };
    let latency = Latency {
        probe: "wakeup".to_owned(),
        interval_ns: Some(1_000_000),
        stats: Stats {
            scheduled: 10_000,
            samples: 10_000,
            min: Some(-5),
            avg: Some(10_000.0),
            max: Some(max_us * 1_000),
            p99: Some(p999_us * 500),
            p999: Some(p999_us * 1_000),
            ..Stats::default()
        },
        threads: vec![Thread { placement, ..Thread::default() }],
        ..Latency::default()
    };
    complete(key, What::Latency(latency))
}

pub(crate) fn cost(key: &str, low: f64, value: f64, high: f64) -> Cell {
    let cost = Cost {
        metric: "lat.syscall".to_owned(),
        meaning: "getppid()".to_owned(),
        params: BTreeMap::new(),
        unit: Unit::Ns,
        better: Better::Less,
        value: Some(value),
        low: Some(low),
        high: Some(high),
        confidence: 0.95,
        iterations: 1_000,
        repetitions: vec![low, value, high],
        spread: None,
        end: Some(CostEnd::Precise),
        ..Cost::default()
    };
    complete(key, What::Cost(cost))
}

/// A cost of the table without a load.
pub(crate) fn cost_of(
    column: &str,
    unit: Unit,
    better: Better,
    [low, value, high]: [f64; 3],
) -> Cell {
    let mut cell = cost(&format!("{column} @ none @ 1s"), low, value, high);
    if let What::Cost(cost) = &mut cell.what {
        (cost.unit, cost.better, cost.column) = (unit, better, Some(column.to_owned()));
    }
    cell.load = "none".to_owned();
    cell
}

fn complete(key: &str, what: What) -> Cell {
    let load_work = vec![LoadWork {
        load: "hackbench".to_owned(),
        counters: vec![WorkCounter {
            name: "messages".to_owned(),
            total: 1_000,
            per_second: 1_000.0,
        }],
        ..LoadWork::default()
    }];
    let cell = Cell::new(key.to_owned(), String::new(), "hackbench".to_owned(), 1, what);
    Cell { state: CellState::Complete, load_work, ..cell }
}

fn latency(cell: &mut Cell) -> &mut Latency {
    cell.latency_mut().expect("a cell of latencies")
}

pub(crate) fn run(id: &str, preemption: &str, cells: Vec<Cell>) -> Run {
    Run {
        schema: crate::schema::SCHEMA.to_owned(),
        run_id: id.to_owned(),
        state: RunState::Complete,
        origin: Origin::Native,
        group: None,
        replicate: None,
        phase_ns: 0,
        dither: None,
        aim: None,
        plan_hash: String::new(),
        plan: Plan::new("test"),
        tool: Tool {
            name: "punctual".to_owned(),
            version: "0.1.0".to_owned(),
            target: String::new(),
            sha256: String::new(),
            command: Vec::new(),
        },
        board: Board {
            name: "ebx11".to_owned(),
            kind: BoardKind::Local,
            fingerprint: "f".to_owned(),
            identity: Vec::new(),
            cpu_model: String::new(),
            cpus: 2,
            hypervisor: None,
            turn_wait_ns: None,
            marks: None,
            modules: Vec::new(),
            lab: None,
        },
        kernel: Kernel {
            release: format!("6.1.0-{preemption}"),
            version: String::new(),
            machine: "x86_64".to_owned(),
            preemption: preemption.parse().unwrap_or_default(),
            command_line: String::new(),
            config_sha256: None,
        },
        privileged: true,
        is_virtual: false,
        started: TimeBase::default(),
        ended: None,
        continued: Vec::new(),
        conditions: Vec::new(),
        facts: BTreeMap::new(),
        cells,
        verdict: Verdict::default(),
        judged: true,
    }
}

/// Makes the run one of a virtual board that counts instructions.
pub(crate) fn virtual_board(run: &mut Run, seed: u64, phase_ns: u64) {
    run.board.kind = BoardKind::Virtual;
    run.board.lab = Some(Lab { counted: true, seed, ..Lab::default() });
    run.phase_ns = phase_ns;
}

/// Runs without recordings.
pub(crate) fn loaded(runs: impl IntoIterator<Item = Run>) -> Vec<LoadedRun> {
    let loaded = |run| LoadedRun {
        run,
        cells: Vec::new(),
        legs: None,
        damage: Vec::new(),
        label: None,
        side: None,
    };
    runs.into_iter().map(loaded).collect()
}

pub(crate) fn compared(runs: Vec<Run>) -> Comparison {
    compare(&loaded(runs))
}

fn has(comparison: &Comparison, text: &str) -> bool {
    comparison.caveats.iter().any(|c| c.contains(text))
}

#[test]
fn cells_are_matched_by_key_and_divided_by_the_first() {
    let a = run("a", "none", vec![cell("x", 100, 400), cell("x", 10, 40), cell("y", 1, 1)]);
    let b = run("b", "rt", vec![cell("z", 1, 1), cell("x", 50, 100), cell("x", 20, 40)]);
    let comparison = compared(vec![a, b]);
    let keys: Vec<_> = comparison.cells.iter().map(|c| c.key.as_str()).collect();
    assert_eq!(keys, ["x", "x (2)"]);
    let ratio = comparison.cells[0].rows[1].ratio;
    assert_eq!((ratio.p999, ratio.max, ratio.avg), (Some(0.5), Some(0.25), Some(1.0)));
    assert_eq!(ratio.min, None, "negative latencies have no ratio");
    assert_eq!(comparison.cells[1].rows[1].ratio.p999, Some(2.0));
    let single: Vec<_> = comparison.unmatched.iter().map(|u| (u.key.as_str(), u.run)).collect();
    assert_eq!(single, [("y", 0), ("z", 1)]);
}

#[test]
fn a_cell_without_samples_has_no_ratio() {
    let mut skipped = cell("x", 1, 1);
    latency(&mut skipped).stats = Stats::default();
    let comparison =
        compared(vec![run("a", "none", vec![skipped]), run("b", "rt", vec![cell("x", 1, 1)])]);
    assert_eq!(comparison.cells[0].rows[1].ratio, Ratios::default());
    assert!(has(&comparison, "not measured in every run: x"));
}

#[test]
fn one_pair_proves_nothing() {
    let pair =
        || vec![run("a", "none", vec![cell("x", 1, 1)]), run("b", "rt", vec![cell("x", 2, 2)])];
    let comparison = compared(pair());
    assert!(comparison.replicates.is_none());
    assert!(comparison.caveats[0].contains("one pair proves nothing about the kernels"));
    let roles: Vec<_> = comparison.differences.iter().map(|d| d.role).collect();
    assert_eq!(roles, [Bearing::Subject, Bearing::Subject]);
    assert!(!has(&comparison, "differ in more than their kernels"));

    let mut boards = pair();
    boards.iter_mut().for_each(|run| virtual_board(run, 1, 0));
    assert!(has(&compared(boards), "whole population"));
    assert!(has(&compared(vec![pair().remove(0)]), "nothing to compare"));
}

#[test]
fn every_confounder_is_found() {
    type Change = fn(&mut Run);
    let changes: [(&str, Change); 13] = [
        ("board", |r| r.board.fingerprint = "g".to_owned()),
        ("kind of board", |r| r.board.kind = BoardKind::Wire),
        ("CPUs online", |r| r.board.cpus = 4),
        ("virtual machine", |r| r.is_virtual = true),
        ("hypervisor", |r| r.board.hypervisor = Some("KVM".to_owned())),
        ("privileges", |r| r.privileged = false),
        ("clock source", |r| {
            r.facts.insert("clock".to_owned(), serde_json::json!({"source": "hpet"}));
        }),
        ("deadline", |r| r.plan.deadline_ns = Some(1)),
        ("conditions", |r| {
            r.conditions.push(Condition { id: "smt".to_owned(), text: String::new() });
        }),
        ("scheduling", |r| latency(&mut r.cells[0]).threads[0].placement.priority = 48),
        ("interval", |r| latency(&mut r.cells[0]).interval_ns = Some(250_000)),
        ("interval", |r| latency(&mut r.cells[0]).dithered = true),
        ("load work", |r| r.cells[0].load_work[0].counters[0].per_second = 700.0),
    ];
    for (what, change) in changes {
        let mut runs =
            vec![run("a", "rt", vec![cell("x", 1, 1)]), run("b", "rt", vec![cell("x", 1, 1)])];
        assert_eq!(compared(runs.clone()).differences, []);
        change(&mut runs[1]);
        let comparison = compared(runs);
        let found: Vec<_> = comparison.differences.iter().map(|d| d.what.as_str()).collect();
        assert_eq!(found, [what]);
        assert_eq!(comparison.differences[0].role, Bearing::Confounder);
        assert_ne!(comparison.differences[0].values[0], comparison.differences[0].values[1]);
        assert!(has(&comparison, &format!("more than the kernel ({what})")));
    }
}

#[test]
fn a_load_that_did_about_the_same_work_is_the_same_load() {
    let mut runs =
        vec![run("a", "rt", vec![cell("x", 1, 1)]), run("b", "rt", vec![cell("x", 1, 1)])];
    runs[1].cells[0].load_work[0].counters[0].per_second = 810.0;
    assert_eq!(compared(runs.clone()).differences, []);
    runs[1].cells[0].load_work.clear();
    let comparison = compared(runs.clone());
    assert_eq!(
        comparison.differences[0].values,
        ["hackbench 1000 messages/s", "hackbench 0 messages/s"]
    );
    runs.reverse();
    assert_eq!(compared(runs).differences[0].what, "load work");
}

#[test]
fn what_is_wrong_with_a_run_is_said() {
    let mut cut = run("b", "rt", vec![]);
    cut.state = RunState::Running;
    let comparison = compared(vec![run("a", "rt", vec![]), run("a", "rt", vec![]), cut]);
    assert!(has(&comparison, "a is given more than once"));
    assert!(has(&comparison, "b was cut short"));
}

#[test]
fn a_comparison_is_json() {
    let runs = vec![run("a", "none", vec![cell("x", 1, 1)]), run("b", "rt", vec![cell("x", 2, 2)])];
    let json = serde_json::to_value(compared(runs)).unwrap();
    assert_eq!(json["cells"][0]["rows"][1]["ratio"]["max"], 2.0);
    assert_eq!(json["differences"][0]["role"], "subject");
    assert_eq!(json["groups"][1]["runs"], serde_json::json!([1]));
    let spread = &json["cells"][0]["spreads"][1];
    assert_eq!(spread["max_ns"]["highest"], 2_000);
    assert_eq!(spread["ratio"]["max"], 2.0);
}

#[test]
fn kernels_of_one_name_are_told_apart_by_configuration_image_and_board() {
    type Change = fn(&mut Run);
    let changes: [(&str, Change); 6] = [
        ("kernel configuration", |run| run.kernel.config_sha256 = Some("bb".to_owned())),
        ("kernel build ID", |run| {
            run.facts.insert("kernel".to_owned(), serde_json::json!({"build_id": "bb"}));
        }),
        ("kernel image", |run| {
            run.board.lab = Some(Lab { kernel_sha256: "bb".to_owned(), ..Lab::default() });
        }),
        ("board", |run| run.board.fingerprint = "another".to_owned()),
        ("name of the board", |run| run.board.name = "another".to_owned()),
        ("setting huge-pages", |run| {
            let memory = serde_json::json!({"transparent_huge_pages": "always"});
            run.facts.insert("memory".to_owned(), memory);
        }),
    ];
    let known = |id: &str| {
        let mut run = run(id, "rt", vec![cell("w", 1, 2)]);
        run.kernel.config_sha256 = Some("aa".to_owned());
        run.facts.insert("kernel".to_owned(), serde_json::json!({"build_id": "aa"}));
        let memory = serde_json::json!({"transparent_huge_pages": "never"});
        run.facts.insert("memory".to_owned(), memory);
        run.board.lab = Some(Lab { kernel_sha256: "aa".to_owned(), ..Lab::default() });
        run
    };
    let groups = |runs: &[Run]| -> Vec<usize> {
        let records: Vec<&Run> = runs.iter().collect();
        groups::by_side(&records, &[]).0.iter().map(|group| group.runs.len()).collect()
    };
    for (what, change) in changes {
        let mut runs = ["a", "b", "c", "d"].map(known);
        assert_eq!(groups(&runs), [4], "{what}");
        runs[2..].iter_mut().for_each(change);
        assert_eq!(groups(&runs), [2, 2], "{what}");
        let records: Vec<&Run> = runs.iter().collect();
        let differences = differences::between(&records, &[]);
        assert!(differences.iter().any(|difference| difference.what == what), "{what}");
    }
    // Sides that their reader makes are kept apart, and pooled only if that was asked for.
    let mut runs = ["a", "b", "c", "d"].map(known);
    runs[3].board.name = "another".to_owned();
    let records: Vec<&Run> = runs.iter().collect();
    for (whole, sizes) in [(false, vec![2, 1, 1]), (true, vec![2, 2])] {
        let sides = ["before", "before", "after", "after"]
            .map(|name| ComparedSide { name: name.to_owned(), whole });
        let (groups, _) = groups::by_side(&records, &sides.each_ref().map(Some));
        assert_eq!(groups.iter().map(|group| group.runs.len()).collect::<Vec<_>>(), sizes);
        assert_eq!(groups[1].side.as_deref(), Some("after"));
    }
    let mut unread = ["a", "b"].map(known);
    unread[1].kernel.config_sha256 = None;
    assert_eq!(groups(&unread), [2], "what could not be read tells nothing apart");
}

#[test]
fn warm_boards_are_one_boot_and_not_compared_with_cold_ones() {
    let virtual_run = |id: &str, model: &'static str, seed: u64, snapshot: Option<&str>| {
        let mut run = run(id, model, vec![cell("x", 10, 20)]);
        virtual_board(&mut run, seed, 0);
        run.board.lab.as_mut().unwrap().snapshot_sha256 = snapshot.map(str::to_owned);
        run
    };
    let of = |model: &'static str, snapshot: Option<&'static str>| {
        (0..4).map(move |seed| virtual_run(&format!("{model}{seed}"), model, seed, snapshot))
    };
    let cold: Vec<Run> = of("none", None).chain(of("rt", None)).collect();
    let warm: Vec<Run> = of("none", Some("aa")).chain(of("rt", Some("bb"))).collect();
    assert!(compared(cold.clone()).replicates.is_some());
    let comparison = compared(warm.clone());
    assert!(comparison.replicates.is_none());
    assert!(has(&comparison, "they count as one boot"));
    assert_eq!(comparison.groups.len(), 2);

    assert_eq!(warm_against_cold(&loaded(warm.clone())), None);
    assert_eq!(warm_against_cold(&loaded(cold.clone())), None);
    let mixed = [cold[0].clone(), warm[4].clone()];
    let why = warm_against_cold(&loaded(mixed)).unwrap();
    assert!(why.starts_with("rt0 is of a warm board (--warm), none0 of one that booted"), "{why}");
    // Nor are they replicates of one kernel, or repeats of one run.
    let alike = [cold[0].clone(), warm[0].clone()];
    let records: Vec<&Run> = alike.iter().collect();
    assert_eq!(groups::by_side(&records, &[]).0.len(), 2);
    let mut other = virtual_run("again", "none", 0, Some("cc"));
    other.plan_hash.clone_from(&warm[0].plan_hash);
    let (groups, notes) = groups::by_side(&[&warm[0], &other], &[]);
    assert_eq!((groups[0].runs.len(), notes.len()), (2, 0), "another boot of the kernel");
}

#[test]
fn what_was_not_idle_is_said_and_is_not_of_the_kernel() {
    let condition = |id: &str, text: &str| Condition { id: id.to_owned(), text: text.to_owned() };
    let mut busy = cell("x @ none", 1, 600);
    busy.conditions.push(condition(NOT_IDLE, "other processes used 48 % of the CPUs"));
    let mut runs = vec![
        run("a", "none", vec![busy, cell("y", 1, 1)]),
        run("b", "full", vec![cell("x @ none", 1, 24), cell("y", 1, 1)]),
    ];
    let keys = |run: &Run| run.cells_at_rest().map(|cell| cell.key.clone()).collect::<Vec<_>>();
    assert_eq!((keys(&runs[0]), runs[1].unrest()), (vec!["y".to_owned()], vec![]));
    assert_eq!(runs[0].unrest(), ["x @ idle: other processes used 48 % of the CPUs"]);
    let comparison = compared(runs.clone());
    assert!(has(&comparison, "x @ idle: not idle in 1 of 2 runs; a: other processes used 48 %"));

    let unknown = "x @ idle: whether it was idle is not known in 1 of 2 runs";
    assert!(!has(&compared(runs.clone()), unknown));
    runs[1].cells[0].load = "none".to_owned();
    runs[1].conditions.push(condition(UNREAD, "/proc/stat cannot be read"));
    assert!(has(&compared(runs.clone()), unknown));
    runs[1].cells[0].cpu_utilisation = Some(0.02);
    assert!(!has(&compared(runs.clone()), unknown));

    runs[1].conditions.push(condition(NOT_AT_REST, "the kernel did not come to rest"));
    assert!(keys(&runs[1]).is_empty());
    assert!(has(&compared(runs), "in 1 of 2 runs the kernel did not come to rest"));
}
