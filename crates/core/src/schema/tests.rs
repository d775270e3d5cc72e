//! Cells of every kind, written and read.

use serde_json::{Value, json};

use super::*;

fn stats(max: i64) -> Stats {
    let corrected =
        Corrected { samples: 12, p50: Some(9), from_bins: true, ..Corrected::default() };
    Stats { scheduled: 12, samples: 10, missed: 2, max: Some(max), corrected, ..Stats::default() }
}

fn latency() -> Latency {
    let leg = Series {
        name: "interrupt".to_owned(),
        meaning: "from the timer to its handler".to_owned(),
        role: Role::Leg,
        unit: Unit::Ns,
        stats: stats(20),
    };
    let aside = Series {
        name: "queue".to_owned(),
        meaning: "packets that waited".to_owned(),
        role: Role::Aside,
        unit: Unit::Packets,
        stats: stats(3),
    };
    let placement =
        Placement { cpu: Some(1), policy: Policy::Deadline, priority: 80, ..Placement::default() };
    Latency {
        probe: "wakeup".to_owned(),
        primary: Quantity {
            name: "latency".to_owned(),
            noun: "activation".to_owned(),
            ..Quantity::default()
        },
        ideal: Some(Ideal::Interval { ns: 9, limit_ns: 27 }),
        interval_ns: Some(1_000_000),
        stats: stats(40),
        threads: vec![Thread {
            placement: placement.clone(),
            stats: stats(40),
            series: vec![stats(20), stats(3)],
            ..Thread::default()
        }],
        series: vec![leg, aside],
        helpers: vec![Helper { name: "posts to thread 0".to_owned(), placement }],
        ..Latency::default()
    }
}

fn written(what: What) -> (Cell, Value) {
    let mut cell = Cell::new("k".to_owned(), "00-k".to_owned(), "none".to_owned(), 5, what);
    cell.counters = vec![Counter {
        name: "dropouts".to_owned(),
        meaning: "buffers that came too late".to_owned(),
        total: 3,
        tells: Tells::Loss,
    }];
    cell.load_work = vec![LoadWork { load: "hackbench".to_owned(), ..LoadWork::default() }];
    let json = serde_json::to_string(&cell).unwrap();
    assert_eq!(serde_json::from_str::<Cell>(&json).unwrap(), cell);
    (cell, serde_json::from_str(&json).unwrap())
}

#[test]
fn latencies_have_the_primary_series_where_programs_look_for_it() {
    let (cell, json) = written(What::Latency(latency()));
    assert_eq!(json["kind"], "latency");
    assert_eq!(json["max_ns"], 40);
    assert_eq!(json["corrected"]["p50_ns"], 9);
    assert_eq!(json["threads"][0]["max_ns"], 40);
    assert_eq!(json["threads"][0]["policy"], "deadline");
    // Keys of the others name no unit: it is given next to them.
    assert_eq!(json["series"][1]["stats"]["max"], 3);
    assert_eq!(json["series"][1]["unit"], "packets");
    assert_eq!(json["threads"][0]["series"][0]["max"], 20);
    assert_eq!(json["helpers"][0]["cpu"], 1);
    assert_eq!((cell.name(), cell.max_ns(), cell.samples()), ("wakeup", Some(40), 10));
    assert_eq!(cell.bad_counters().count(), 1);
}

#[test]
fn phases_are_written_of_a_load_that_changes_only() {
    let (mut cell, json) = written(What::Latency(latency()));
    assert!(json.get("phases").is_none() && json.get("changes").is_none());
    assert!(json["load_work"][0].get("phase").is_none());
    let found = PhaseFound { seconds: 4, stats: stats(40), late: Some(2), ..PhaseFound::default() };
    let at_work = vec![AtWork { from_ns: 7, to_ns: 9 }];
    cell.phases =
        vec![LoadPhase { load: "copy".to_owned(), for_ns: 5, at_work, found: found.clone() }];
    (cell.changes, cell.load_work[0].phase) = (Some(found), Some(0));
    let json = serde_json::to_value(&cell).unwrap();
    let phase = &json["phases"][0];
    assert_eq!((&phase["load"], &phase["at_work"][0]["from_ns"]), (&json!("copy"), &json!(7)));
    for found in [phase, &json["changes"]] {
        assert_eq!(
            (&found["max_ns"], &found["seconds"], &found["late"]),
            (&40.into(), &4.into(), &2.into())
        );
        assert_eq!(found["corrected"]["p50_ns"], 9);
    }
    assert_eq!(json["load_work"][0]["phase"], 0);
    assert_eq!(serde_json::from_value::<Cell>(json).unwrap(), cell);
}

#[test]
fn costs_have_no_latencies() {
    let cost = Cost {
        metric: "lat.syscall".to_owned(),
        unit: Unit::Us,
        value: Some(0.12),
        high: Some(0.5),
        end: Some(CostEnd::NotMeasurable),
        ..Cost::default()
    };
    let (cell, json) = written(What::Cost(cost));
    assert_eq!((&json["kind"], &json["end"]), (&json!("cost"), &json!("not-measurable")));
    assert!(json.get("max_ns").is_none() && json.get("threads").is_none());
    assert_eq!((cell.name(), cell.max_ns(), cell.samples()), ("lat.syscall", None, 0));
    assert!(cell.is_measured() && cell.latency().is_none() && cell.threads().is_empty());
}

#[test]
fn responses_have_two_sides() {
    let side =
        |role| Side { role, board: "ebx11".to_owned(), kernel: "6.1".to_owned(), run_id: None };
    let response = Response {
        sides: vec![side(SideRole::Target), side(SideRole::Host)],
        line_ns: Some(87_000),
        latency: latency(),
    };
    let (cell, json) = written(What::Response(response));
    assert_eq!((&json["kind"], &json["sides"][1]["role"]), (&json!("response"), &json!("host")));
    assert_eq!((&json["max_ns"], &json["line_ns"]), (&json!(40), &json!(87_000)));
    assert_eq!((cell.name(), cell.max_ns()), ("wakeup", Some(40)));
}

#[test]
fn keys_of_later_versions_are_ignored() {
    let (cell, mut json) = written(What::Latency(latency()));
    json["since"] = json!("2.1");
    json["threads"][0]["since"] = json!("2.1");
    json["threads"][0]["policy"] = json!("ext");
    let read: Cell = serde_json::from_value(json).unwrap();
    assert_eq!(read.threads()[0].placement.policy, Policy::Unknown);
    assert_eq!(read.key, cell.key);
}

#[test]
fn what_is_not_a_cell_is_named_with_its_line() {
    let (_, mut json) = written(What::Latency(latency()));
    json["max_ns"] = json!("forty");
    let text = serde_json::to_string_pretty(&json).unwrap();
    let error = serde_json::from_str::<Cell>(&text).unwrap_err();
    assert!(error.line() > 1 && error.to_string().contains("forty"), "{error}");
}

#[test]
fn names_are_those_of_the_record() {
    for unit in [
        Unit::Ns,
        Unit::Us,
        Unit::Packets,
        Unit::MegabytesPerSecond,
        Unit::PerSecond,
        Unit::Megahertz,
        Unit::Bytes,
        Unit::Pages,
        Unit::Ratio,
    ] {
        assert_eq!(serde_json::to_value(unit).unwrap(), unit.name());
    }
    for kind in [BoardKind::Local, BoardKind::Virtual, BoardKind::Wire] {
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
    }
    let policies = [
        Policy::Fifo,
        Policy::Rr,
        Policy::Deadline,
        Policy::Other,
        Policy::Batch,
        Policy::Idle,
        Policy::Unknown,
    ];
    for policy in policies {
        assert_eq!(serde_json::to_value(policy).unwrap(), policy.name());
    }
}
