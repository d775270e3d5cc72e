//! What the terminal shows, letter by letter.

mod common;

use punctual_core::compare::compare;
use punctual_core::preemption::Model;
use punctual_core::run::{CellData, LoadedRun};
use punctual_core::schema::{CellState, Condition, Outcome, RunState, Verdict};
use punctual_report::text::{comparison, details, summary};
use punctual_report::{Options, html};
use unicode_width::UnicodeWidthStr;

#[test]
fn a_pass_with_a_skipped_cell() {
    insta::assert_snapshot!(summary(&common::standard("6.1.0-56-rt-amd64", "rt", 1.0), 100, false));
}

#[test]
fn a_failure_with_missed_periods_in_colour() {
    let text = summary(&common::standard("6.1.0-56-amd64", "voluntary", 9.0), 100, true);
    insta::assert_snapshot!(text.replace('\u{1b}', "<ESC>"));
}

#[test]
fn a_run_without_privileges_that_was_killed() {
    let mut run = common::standard("6.1.0-56-amd64", "none", 1.0);
    run.run.privileged = false;
    run.run.is_virtual = true;
    run.run.board.hypervisor = Some("KVM".to_owned());
    run.run.state = RunState::Running;
    run.run.verdict = Verdict::default();
    run.run.cells[1].state = CellState::Recovered;
    run.run.cells[2].state = CellState::Running;
    run.run.cells[2].conditions.push(Condition {
        id: "load-died".to_owned(),
        text: "the load flood ended after 9 s: killed by signal 9".to_owned(),
    });
    run.damage.push("cells/02: 1 stretch could not be read".to_owned());
    insta::assert_snapshot!(summary(&run, 100, false));
}

/// A long label before the first sentence would push it off a narrow terminal.
#[test]
fn no_line_of_a_verdict_is_wider_than_the_terminal() {
    let mut run = common::standard("6.1.0", "rt", 1.0);
    run.run.is_virtual = true;
    run.run.privileged = false;
    run.run.verdict.outcome = Outcome::Inconclusive;
    latency_simulated(&mut run);
    for width in [60, 80, 120] {
        let text = summary(&run, width, false);
        assert!(text.contains("INCONCLUSIVE (in part SIMULATED, not real-time,"), "{text}");
        let widest = text.lines().max_by_key(|line| line.width()).unwrap();
        assert!(widest.width() <= width, "{width}: {widest}");
    }
}

fn latency_simulated(run: &mut LoadedRun) {
    common::latency(&mut run.run.cells[0]).simulated = true;
}

#[test]
fn a_comparison_says_of_each_run_what_is_made_up_and_what_was_not_measured() {
    let measured = common::one("wakeup", "none", 1, None);
    let mut empty = measured.clone();
    empty.run.run_id = "empty".to_owned();
    empty.run.verdict = Verdict::default();
    common::latency(&mut empty.run.cells[0]).stats = Default::default();
    let text = comparison(&compare(&[common::made_up(measured), empty]), 100, false);
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with("A  ") && lines[0].ends_with(" · SIMULATED"), "{text}");
    assert!(lines[2].starts_with("B  ") && lines[2].ends_with(" · NOT MEASURED"), "{text}");
    assert!(text.contains("run: wakeup @ idle @ ") && !text.contains("@ none @"), "{text}");
}

#[test]
fn a_comparison_says_of_each_run_what_weakens_it() {
    let mut weak = common::one("wakeup", "none", 1, None);
    let mut plain = weak.clone();
    plain.run.run_id = "plain".to_owned();
    (weak.run.privileged, weak.run.is_virtual) = (false, true);
    let drift = Condition { id: "drift".to_owned(), text: String::new() };
    weak.run.cells[0].conditions.push(drift);
    let text = comparison(&compare(&[weak, plain]), 200, false);
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].ends_with(" · not real-time · virtual machine · drift"), "{text}");
    assert!(lines[2].starts_with("B  ") && !lines[2].contains("not real-time"), "{text}");
}

#[test]
fn no_samples_and_early_samples() {
    let mut run = common::standard("6.1.0", "full", 1.0);
    let latency = common::latency(&mut run.run.cells[0]);
    latency.threads[1].stats = Default::default();
    latency.threads[1].placement.cpu = None;
    latency.threads[1].placement.affinity = "0-1".to_owned();
    latency.stats.early = 12;
    latency.stats.min = Some(-850);
    latency.warmup_max_ns = Some(1_204_000);
    common::latency(&mut run.run.cells[1]).stats = Default::default();
    run.cells[1] = CellData::default();
    run.run.verdict.outcome = Outcome::Inconclusive;
    run.run.verdict.because =
        vec!["too few samples: needs 29,956 releases, 15.0 s more at this interval".to_owned()];
    insta::assert_snapshot!(summary(&run, 72, false));
}

/// Rows of threads are told by their first column, the rest of a line by what follows.
fn row<'t>(text: &'t str, name: &str) -> &'t str {
    text.lines().find_map(|line| line.trim_start().strip_prefix(name)).unwrap_or_default().trim()
}

/// R-A12: a row said "all" although isolated CPUs were not measured.
#[test]
fn only_all_cpus_are_called_all() {
    let mut run = common::standard("6.1.0", "rt", 1.0);
    let first = |run: &LoadedRun| summary(run, 120, false);
    assert!(row(&first(&run), "wakeup").starts_with("idle         all"), "{}", first(&run));
    let page = |run: &LoadedRun| html(std::slice::from_ref(run), &Options::default());
    assert!(page(&run).contains("<td>all<wbr></td>"));
    for (online, cpus) in [(Some("0-3"), "0-1"), (Some("(null)"), "0-1"), (None, "0-1")] {
        let cpu = online.map(|online| serde_json::json!({ "online": online }));
        run.run.facts.insert("cpu".to_owned(), cpu.unwrap_or_default());
        let text = first(&run);
        let of_cell = row(&text, "wakeup").split_whitespace().nth(1);
        assert_eq!(of_cell, Some(cpus), "{text}");
        assert!(!page(&run).contains("<td>all<wbr></td>"));
    }
    common::latency(&mut run.run.cells[0]).threads[1].placement.cpu = Some(3);
    assert_eq!(row(&first(&run), "wakeup").split_whitespace().nth(1), Some("0,3"));
}

#[test]
fn cores_of_each_type_have_a_row() {
    let mut run = common::standard("6.1.0", "rt", 1.0);
    let threads: Vec<_> = common::latency(&mut run.run.cells[0]).threads.clone();
    let with = |run: &mut LoadedRun, facts: serde_json::Value| {
        run.run.facts.insert("cpu".to_owned(), facts);
        (summary(run, 120, false), html(std::slice::from_ref(run), &Options::default()))
    };
    let hybrid = serde_json::json!({
        "online": "0-1", "core_types": { "cpu_atom": "1", "cpu_core": "0" }
    });
    let (text, page) = with(&mut run, hybrid);
    // With one thread on each type its numbers are those of the thread.
    for (thread, name) in [(0, "cpu_core"), (1, "cpu_atom")] {
        let of_thread = row(&text, &format!("thread {thread}"));
        assert_eq!(row(&text, name), of_thread, "{text}");
        assert!(of_thread.contains("15,000"), "{text}");
        assert!(page.contains(&format!("<th scope=\"row\">{name}</th>")));
    }
    assert!(text.find("cpu_core") < text.find("cpu_atom"), "{text}");
    assert_eq!(threads.len(), 2);

    let arm = serde_json::json!({
        "online": "0-1",
        "topology": { "0": { "capacity": 446 }, "1": { "capacity": 1024 } }
    });
    let (text, _) = with(&mut run, arm);
    assert_eq!(row(&text, "capacity 1024"), row(&text, "thread 1"), "{text}");
    assert!(text.find("capacity 1024") < text.find("capacity 446"), "{text}");
    // Of one type there is nothing to tell apart.
    let (text, _) = with(&mut run, serde_json::json!({ "core_types": { "cpu_core": "0-1" } }));
    assert!(!text.contains("cpu_core"), "{text}");
}

#[test]
fn all_details_of_a_run() {
    insta::assert_snapshot!(details(
        &common::standard("6.1.0-56-amd64", "voluntary", 9.0),
        100,
        false
    ));
}

#[test]
fn one_pair_side_by_side() {
    let mut runs = [
        common::standard("6.1.0-56-rt-amd64", "rt", 1.0),
        common::standard("6.1.0-56-amd64", "voluntary", 9.0),
    ];
    runs[1].run.cells.remove(3);
    runs[1].cells.remove(3);
    common::latency(&mut runs[1].run.cells[1]).stats = Default::default();
    insta::assert_snapshot!(comparison(&compare(&runs), 100, false));
}

#[test]
fn replicates_of_two_kernels() {
    let mut runs = Vec::new();
    for i in 0..4_u32 {
        for (kernel, preemption, worse) in [("6.1-rt", "rt", 1.0), ("6.1", "voluntary", 9.0)] {
            let mut run = common::standard(kernel, preemption, worse + f64::from(i) / 10.0);
            run.run.run_id = format!("{kernel}-{i}");
            run.run.replicate = Some(i);
            run.run.cells.truncate(2);
            runs.push(run);
        }
    }
    insta::assert_snapshot!(comparison(&compare(&runs), 100, false));
}

#[test]
fn four_kernels_with_replicates() {
    let runs = common::experiment(4, 4);
    insta::assert_snapshot!(comparison(&compare(&runs), 100, false));
}

#[test]
fn few_runs_are_shown_one_by_one_too() {
    let mut runs = common::experiment(2, 2);
    // In the order of the runs: none, voluntary, full, rt; twice.
    runs.remove(7);
    runs.truncate(5);
    let text = comparison(&compare(&runs), 100, false);
    insta::assert_snapshot!(text);
}

#[test]
fn a_spread_drops_its_lesser_ends_where_it_does_not_fit() {
    let compared = compare(&common::experiment(3, 2));
    let rows = |width| {
        let text = comparison(&compared, width, false);
        let row = text.lines().find(|line| line.starts_with("  PREEMPT_NONE ")).unwrap().to_owned();
        (row.matches(" to ").count(), row)
    };
    assert_eq!([150, 110, 70].map(|width| rows(width).0), [3, 2, 1], "{:?}", rows(110));
}

#[test]
fn every_kind_of_data_in_a_run() {
    insta::assert_snapshot!(details(&common::all_kinds("6.1.0", "rt", 1.0), 100, false));
}

#[test]
fn costs_stand_beside_costs() {
    let runs = [common::all_kinds("6.1-rt", "rt", 1.0), common::all_kinds("6.1", "none", 1.2)];
    insta::assert_snapshot!(comparison(&compare(&runs), 100, false));
}

#[test]
fn names_from_a_board_cannot_steer_the_terminal() {
    let mut run = common::standard("6.1.0\u{1b}[2J", "rt", 1.0);
    run.run.board.name = "b\u{7}oard\n".to_owned();
    run.run.conditions[0].text = "\u{9b}31m".to_owned();
    run.run.cells[0].load = "cmd:\u{1b}]0;x\u{7}".to_owned();
    for text in [summary(&run, 100, false), details(&run, 100, false)] {
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    }
}

/// Runs with names, numbers and lists that are longer than usual.
fn wide() -> LoadedRun {
    let mut run = common::all_kinds("6.12.41+deb13-rt-amd64-with-a-long-local-version", "rt", 9e5);
    run.run.board.name = "a-board-with-a-name-of-forty-characters-".to_owned();
    run.run.board.cpu_model = "AMD EPYC 9B45 128-Core Processor with a long name".to_owned();
    run.run.tool.command.push("x".repeat(300));
    run.run.state = RunState::Interrupted;
    run.damage.push("cells/02-wakeup/blocks: 1 stretch could not be read, ".repeat(4));
    let cells = run.run.cells.len();
    for (number, cell) in run.run.cells.iter_mut().enumerate() {
        cell.key = "wakeup:threads=per-cpu,clock=monotonic,timer=posix,stack=2MiB @ \
                    hackbench:groups=4,fds=20+flood:size=1400+cmd:dd_if=/dev/zero @ 24h"
            .to_owned();
        cell.load = "hackbench:groups=4,fds=20+flood:size=1400+cmd:dd_if=/dev/zero".to_owned();
        cell.verdict.because.push("a reason with /a/path/that/is/long".repeat(5));
        if number + 1 == cells {
            cell.state = CellState::Skipped;
            cell.reason = Some("the probe needs /dev/something-that-is-not-there".repeat(3));
        }
        if let Some(latency) = cell.latency_mut() {
            for thread in &mut latency.threads {
                thread.placement.cpu = None;
                thread.placement.affinity =
                    (0..64).step_by(2).map(|cpu| format!("{cpu},")).collect();
            }
        }
    }
    run
}

#[test]
fn nothing_is_wider_than_the_terminal() {
    let runs = [
        common::standard("6.1.0-56-amd64", "voluntary", 9.0),
        common::all_kinds("6.1.0", "rt", 1.0),
        wide(),
    ];
    let mut wides = vec![wide(), wide(), wide()];
    for (number, run) in wides.iter_mut().enumerate() {
        run.run.run_id = format!("20261120T170003Z-{}-{number}", "name-".repeat(12));
        run.run.kernel.preemption = if number < 2 { Model::None } else { Model::Rt };
    }
    let sets = [&runs[..2], &runs[1..], &wides, &common::experiment(2, 4)].map(compare);
    for width in [60, 80, 100, 120, 200] {
        let of_one = runs.iter().flat_map(|run| [summary, details].map(|of| of(run, width, false)));
        let of_several = sets.iter().map(|compared| comparison(compared, width, false));
        for text in of_one.chain(of_several) {
            for line in text.lines() {
                assert!(line.width() <= width, "{width}: {line}\n{text}");
            }
        }
    }
}

#[test]
fn a_wider_terminal_shows_more_columns_and_longer_names() {
    let standard = common::standard("6.1.0-56-amd64", "voluntary", 9.0);
    let heads = |width: usize| {
        let text = summary(&standard, width, false);
        let head = text.lines().find(|line| line.trim().starts_with("probe")).unwrap().to_owned();
        head.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let all = ["probe", "load", "CPU", "max", "p99.9", "p99", "avg", "min", "samples", "missed"];
    let lesser = ["p99", "min", "samples"];
    let mut counts = Vec::new();
    for width in 70..=120 {
        let heads = heads(width);
        let gone: Vec<_> =
            all.into_iter().filter(|head| !heads.iter().any(|h| h == head)).collect();
        assert!(lesser.starts_with(&gone), "{width}: {gone:?}");
        counts.push(gone.len());
    }
    assert!(counts.is_sorted_by(|a, b| a >= b) && counts[0] == lesser.len(), "{counts:?}");
    assert_eq!(counts.last(), Some(&0));
    let wide = wide();
    let longest = |width: usize| {
        let text = summary(&wide, width, false);
        let row = text.lines().find(|line| line.trim().starts_with("wakeup:")).unwrap().to_owned();
        row.split_whitespace().next().unwrap().chars().count()
    };
    let (narrow, broad) = (longest(120), longest(200));
    assert!(narrow >= 12 && broad > 2 * narrow, "{narrow} {broad}");
}
