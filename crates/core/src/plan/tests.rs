//! Plans from files, whole and wrong.

use super::asked::{Asked, Names};
use super::*;
use crate::allowance::Allowance;

const STANDARD: &str = r#"
    name = "small"
    deadline = "1ms"
    duration = "30s"
    [[cell]]
    probe = "wakeup:threads=per-cpu"
    load = ["none", "paper"]
    [[cell]]
    probe = "clock"
    duration = "1s"
"#;

#[test]
fn a_plan_file_becomes_cells() {
    let plan = Plan::from_toml(STANDARD).unwrap();
    assert_eq!(plan.deadline_ns, Some(1_000_000));
    let keys: Vec<_> = plan.cells.iter().map(CellPlan::key).collect();
    assert_eq!(
        keys,
        [
            "wakeup:threads=per-cpu @ none @ 30s",
            "wakeup:threads=per-cpu @ paper @ 30s",
            "clock @ none @ 1s"
        ]
    );
    assert_eq!(plan.cells[0].dir(0), "00-wakeup-threads=per-cpu_none_30s");
}

#[test]
fn wrong_values_are_named() {
    for (from, to, error) in [
        ("\"1ms\"", "\"0ms\"", "deadline = 0: must be above zero"),
        ("\"1ms\"", "\"5\"", "deadline: \"5\" has no unit"),
        ("\"1ms\"", "\"1m\"", "m is a minute"),
        ("duration = \"30s\"", "duration = \"0s\"", "duration = 0"),
        ("name =", "tolerate = 2.0\nname =", "tolerate = 2: must lie between 0 and 1"),
        ("name =", "colour = 1\nname =", "unknown field `colour`"),
    ] {
        let text = STANDARD.replacen(from, to, 1);
        let message = Plan::from_toml(&text).unwrap_err().to_string();
        assert!(message.contains(error), "{message}");
    }
    assert!(matches!(Plan::from_toml("name = \"x\""), Err(PlanError::Empty)));
}

/// A plan with these keys.
fn with_keys(keys: &str) -> Result<Plan, String> {
    let text = STANDARD.replacen("duration = \"30s\"", keys, 1);
    Plan::from_toml(&text).map_err(|error| error.to_string())
}

#[test]
fn new_keys_say_what_the_old_ones_said() {
    for (new, old) in [
        ("at_most = \"1/h\"", "episodes = \"1/h\""),
        ("allow = \"6/min\"", "tolerate_episodes = \"6/min\""),
        ("allow = \"0.07%\"", "tolerate = 7e-4"),
        ("allow = \"1%\"\nsingly = true", "tolerate = 0.01\nsingly = true"),
        ("at_most = \"0.01%\"\nsingly = true", "probability = 1e-4\nsingly = true"),
    ] {
        assert_eq!(with_keys(new).unwrap(), with_keys(old).unwrap(), "{new}");
    }
}

#[test]
fn keys_that_do_not_fit_together_are_refused_with_what_to_write() {
    for (keys, says) in [
        ("at_most = \"1%\"", "allow 1% makes the deadline soft; with singly"),
        ("at_most = \"1ms\"", "at_most: \"1ms\" is a time"),
        ("allow = \"60\"", "allow: \"60\" has no unit"),
        ("at_most = \"6/min\"\nallow = \"1%\"", "at_most and allow: the first is of a hard"),
        ("at_most = \"6/min\"\nsingly = true", "give a share such as 0.01%"),
        ("allow = \"6/min\"\nsingly = true", "give a share such as 0.01%"),
        ("at_most = \"6/min\"\nepisodes = \"1/h\"", "episodes is an older name of at_most"),
        ("at_most = \"6/min\"\nprobability = 0.1", "probability is an older name of at_most"),
        ("allow = \"1%\"\ntolerate = 0.1", "tolerate is an older name of allow"),
        ("allow = \"1%\"\ntolerate_episodes = \"1/h\"", "tolerate_episodes is an older name"),
        ("at_most = \"1/h\"\n[variant.a]\nepisodes = \"1/h\"\n", "episodes is an older name"),
    ] {
        let said = with_keys(keys).unwrap_err();
        assert!(said.contains(says), "{keys}: {said}");
    }
    let without = STANDARD.replacen("deadline = \"1ms\"", "allow = \"1%\"", 1);
    let said = Plan::from_toml(&without).unwrap_err().to_string();
    assert_eq!(said, "allow 1% needs a deadline: give deadline too");
}

#[test]
fn a_variant_asks_for_another_rate() {
    let plan = VARIED.replacen("probability = 1e-3", "at_most = \"1/s\"", 1);
    let rate = |variant| Plan::from_toml_variant(&plan, variant).unwrap().episodes.to_string();
    assert_eq!([rate(Some("virtual")), rate(Some("night"))], ["1/s", "6/min"]);
}

#[test]
fn what_is_asked_replaces_what_the_plan_says_of_the_same() {
    let of = |asked: &str| -> Allowance { asked.parse().unwrap() };
    let asked = |keys: &str, asked: Asked| {
        let mut plan = with_keys(keys)?;
        plan.ask(&asked, Names::OPTIONS).map(|()| plan).map_err(|error| error.to_string())
    };
    let hard = Asked { at_most: Some(of("1/h")), ..Asked::default() };
    for keys in ["allow = \"1%\"\nsingly = true", "tolerate_episodes = \"6/min\""] {
        let plan = asked(keys, hard).unwrap();
        assert!(plan.is_hard() && !plan.singly && plan.episodes.to_string() == "1/h", "{keys}");
    }
    let share = Asked { at_most: Some(of("0.1%")), ..Asked::default() };
    let said = asked("", share).unwrap_err();
    assert!(said.contains("with --singly, which") && said.contains("--allow 0.1%"), "{said}");
    assert_eq!(asked("singly = true", share).unwrap().probability, Some(1e-3));
    let singly = Asked { singly: true, ..Asked::default() };
    let said = asked("allow = \"6/min\"", singly).unwrap_err();
    assert!(said.starts_with("--allow 6/min with --singly"), "{said}");
    assert!(asked("allow = \"1%\"", singly).unwrap().singly);
    let soft = Asked { allow: Some(of("6/min")), ..Asked::default() };
    let plan = asked("singly = true", soft).unwrap();
    assert_eq!((plan.is_hard(), plan.singly), (false, false));
}

#[test]
fn a_cell_is_as_long_as_the_schedule_of_its_load() {
    let schedule = "none for 5s then paper for 10s";
    let read = |load: &str, rest: &str| {
        let text = format!(
            "name = \"x\"\nduration = \"7s\"\n[[cell]]\nload = [\"none\", {load:?}]\n{rest}"
        );
        Plan::from_toml(&text)
    };
    let seconds = |plan: Plan| -> Vec<u64> {
        plan.cells.iter().map(|cell| cell.duration_ns / SECOND_NS).collect()
    };
    assert_eq!(seconds(read(schedule, "probe = \"wakeup\"").unwrap()), [7, 15]);
    let repeated = read(schedule, "probe = \"wakeup\"\nduration = \"40s\"").unwrap();
    assert_eq!(repeated.cells[1].key(), "wakeup @ none for 5s then paper for 10s @ 40s");
    assert_eq!(repeated.cells[1].dir(1), "01-wakeup_none-for-5s-then-paper-for-10s_40s");
    for (load, rest, expected) in [
        (schedule, "probe = \"wakeup\"\nduration = \"14s\"", "duration = 14s: the schedule"),
        (schedule, "cost = \"syscall\"", "a cost is measured under one load"),
        ("none for 5s then paper", "probe = \"wakeup\"", "load \"paper\" has no duration"),
        ("none for 2s then paper for 2s", "probe = \"wakeup\"\nduration = \"6h\"", "at most 10000"),
    ] {
        let said = read(load, rest).unwrap_err().to_string();
        assert!(said.contains(expected), "{load}: {said}");
    }
}

const VARIED: &str = r#"
    name = "varied"
    kernels = ["none", "rt"]
    [[cell]]
    probe = "wakeup"
    load = ["none", "paper"]
    duration = "1min"
    [[cell]]
    probe = "wakeup"
    load = ["paper"]
    duration = "24h"
    [[cell]]
    probe = "clock"
    duration = "1min"
    samples = 1000
    [variant.virtual]
    duration = "2s"
    warmup = "200ms"
    probability = 1e-3
    [variant.night]
"#;

#[test]
fn a_variant_replaces_what_it_names() {
    let plan = Plan::from_toml_variant(VARIED, Some("virtual")).unwrap();
    let keys: Vec<_> = plan.cells.iter().map(CellPlan::key).collect();
    assert_eq!(
        keys,
        ["wakeup @ none @ 2s", "wakeup @ paper @ 2s", "clock @ none @ 2s @ 1000 samples"]
    );
    assert_eq!(plan.name, "varied, variant virtual");
    assert_eq!(plan.variant.as_deref(), Some("virtual"));
    assert_eq!((plan.warmup_ns, plan.probability), (200_000_000, Some(1e-3)));

    let night = Plan::from_toml_variant(VARIED, Some("night")).unwrap();
    let plain = Plan::from_toml(VARIED).unwrap();
    assert_eq!((&night.cells, night.warmup_ns), (&plain.cells, plain.warmup_ns));
    assert_eq!((plain.name.as_str(), plain.variant), ("varied", None));
    assert_eq!(Plan::variants(VARIED).unwrap(), ["night", "virtual"]);
}

#[test]
fn an_unknown_variant_is_refused_with_those_there_are() {
    let message = |text| Plan::from_toml_variant(text, Some("x")).unwrap_err().to_string();
    assert_eq!(message(VARIED), "the plan \"varied\" has no variant \"x\"; it has: night, virtual");
    assert_eq!(message(STANDARD), "the plan \"small\" has no variant \"x\"; it has: none");
    let wrong = VARIED.replacen("\"2s\"", "\"2parsec\"", 1);
    assert!(Plan::from_toml(&wrong).is_ok());
    assert!(Plan::from_toml_variant(&wrong, Some("virtual")).is_err());
    let misspelt = VARIED.replacen("warmup", "warm-up", 1);
    let error = Plan::from_toml(&misspelt).unwrap_err().to_string();
    assert!(error.contains("unknown field `warm-up`"), "{error}");
}

#[test]
fn kernels_are_preemption_models() {
    let plan = Plan::from_toml(VARIED).unwrap();
    assert_eq!(plan.kernels, [Model::None, Model::Rt]);
    let stored = serde_json::to_string(&plan).unwrap();
    assert!(stored.contains(r#""kernels":["none","rt"]"#), "{stored}");
    assert_eq!(serde_json::from_str::<Plan>(&stored).unwrap(), plan);
    let error = Plan::from_toml(&VARIED.replacen("\"rt\"", "\"preempt\"", 1)).unwrap_err();
    assert_eq!(error.to_string(), "kernels = preempt: must be none, voluntary, full, lazy or rt");
    let of_a_record = Plan { kernels: vec![Model::Unknown], ..plan };
    assert!(of_a_record.check().unwrap_err().to_string().contains("kernels = unknown"));
}

#[test]
fn a_cell_measures_a_probe_or_a_cost() {
    let text = STANDARD.replacen("probe = \"clock\"", "cost = \"lat.syscall:call=getppid\"", 1);
    let plan = Plan::from_toml(&text).unwrap();
    let cost = &plan.cells[2];
    assert_eq!(cost.subject, Subject::Cost("lat.syscall".to_owned()));
    assert_eq!(cost.key(), "lat.syscall:call=getppid @ none @ 1s");
    let stored = serde_json::to_value(&plan).unwrap();
    assert_eq!(stored["cells"][2]["cost"], "lat.syscall");
    assert_eq!(stored["cells"][0]["probe"], "wakeup");
    assert_eq!(serde_json::from_value::<Plan>(stored).unwrap(), plan);
    for wrong in ["probe = \"clock\"\ncost = \"lat.syscall\"", ""] {
        let text = STANDARD.replacen("probe = \"clock\"", wrong, 1);
        assert!(matches!(Plan::from_toml(&text), Err(PlanError::Subject)), "{text}");
    }
}

#[test]
fn durations_and_loads_of_a_plan_can_be_replaced() {
    let text = "name = \"p\"\nadjustable = true\n[[cell]]\nprobe = \"clock\"\n\
                load = [\"none\", \"fork\"]\nwhere = \"available\"";
    assert!(Plan::is_adjustable(text).unwrap() && !Plan::is_adjustable("name = \"p\"").unwrap());
    let mut plan = Plan::from_toml(text).unwrap();
    plan.adjust(Some(7), None);
    assert_eq!(plan.cells.len(), 2);
    plan.adjust(None, Some(&["flood".to_owned()]));
    let [cell] = &plan.cells[..] else { panic!("equal cells are one") };
    assert!(cell.duration_ns == 7 && cell.load == "flood" && cell.available);
    let error = Plan::from_toml(&text.replace("available", "anywhere")).unwrap_err();
    assert!(error.to_string().starts_with("where = anywhere: must be available"), "{error}");
}
