//! A load that changes on a schedule, as every output shows it.

mod common;

use common::phased::phased;
use common::{check_figures, check_width};
use punctual_core::compare::{MatchedCell, compare, compare_any_duration};
use punctual_core::preemption::Model;
use punctual_core::run::LoadedRun;
use punctual_report::figure::Figure;
use punctual_report::{Options, figures, html, text};

const THREE: [(&str, u64); 3] = [("none", 5), ("hackbench", 5), ("paper", 5)];

fn timeline(run: &LoadedRun) -> Figure {
    let all = figures(std::slice::from_ref(run));
    check_figures("phases", &all);
    all.into_iter().find(|figure| figure.name.contains("timeline")).expect("a timeline")
}

fn texts(figure: &Figure) -> Vec<String> {
    figure.texts().iter().map(|text| text.text.clone()).collect()
}

#[test]
fn the_summary_has_a_row_for_each_phase_and_fits_80_columns() {
    let run = phased(&THREE, 15, Some(1_000_000));
    let shown = text::summary(&run, 80, false);
    check_width(&shown, 80);
    insta::assert_snapshot!(shown);
}

#[test]
fn details_have_the_schedule_and_all_numbers_of_each_phase() {
    let run = phased(&THREE, 30, Some(1_000_000));
    for width in [60, 80, 120] {
        check_width(&text::details(&run, width, false), width);
    }
    let shown = text::details(&run, 100, false);
    let from = shown.find("phases of the load").expect("a schedule");
    let to = shown[from..].find("thread  CPU").expect("the threads behind it");
    insta::assert_snapshot!(&shown[from..from + to]);
}

#[test]
fn the_timeline_has_a_band_for_each_turn_of_each_phase() {
    let figure = timeline(&phased(&THREE, 15, None));
    let bands = ["1 idle", "2 hackbench", "3 paper"];
    let named =
        |figure: &Figure, name: &str| texts(figure).iter().filter(|text| *text == name).count();
    for name in bands {
        assert_eq!(named(&figure, name), 1, "{name}: {:?}", texts(&figure));
    }
    let svg = figure.svg();
    // From where the load was at work: 84 to 680 units are 15 s.
    let drawn = svg.matches("class=\"phase\"").count();
    assert!(drawn >= 3 + 4, "{drawn} bands and edges");
    let again = timeline(&phased(&[("none", 7), ("copy", 8)], 30, None));
    for name in ["1 idle", "2 copy"] {
        assert_eq!(named(&again, name), 2, "{name} comes twice: {:?}", texts(&again));
    }
    assert_eq!(texts(&again).iter().filter(|text| text.contains("in phase")).count(), 1);
    let plain = timeline(&common::one("wakeup", "none", 1, None));
    assert!(!plain.svg().contains("class=\"phase\""));
}

#[test]
fn narrow_bands_are_named_below_the_timeline() {
    let long = "hackbench:groups=4,fds=20+flood:size=1400+cmd:dd if=/dev/zero of=/dev/null bs=1M";
    let run = phased(&[("none", 2), (long, 2), ("copy", 3)], 600, None);
    let figure = timeline(&run);
    let all = texts(&figure);
    assert!(all.iter().any(|text| text == "1 idle"), "{all:?}");
    assert!(all.iter().any(|text| text.starts_with("2 hackbench:groups")), "{all:?}");
    assert!(figure.height() > timeline(&phased(&THREE, 600, None)).height() - 1.0);
}

#[test]
fn the_work_of_a_phase_has_no_holes_between_its_turns() {
    let run = phased(&[("none", 5), ("copy", 5)], 30, None);
    let figure = timeline(&run);
    let label =
        texts(&figure).into_iter().find(|text| text.starts_with("copy in phase 2")).unwrap();
    assert_eq!(label, "copy in phase 2: loops/s, at most 100");
    let mut idle = phased(&[("none", 5), ("copy", 5)], 30, None);
    let total = |second: u64| if second < 17 { 1_200 } else { 1_100 };
    for (second, _, totals) in idle.cells[0].work.iter_mut().filter(|one| one.1 == 1) {
        totals[0] = totals[0].min(total(*second));
    }
    let hatched = texts(&timeline(&idle)).into_iter().any(|text| text.contains("hatched: no work"));
    assert!(hatched, "a second without work in its own phase is one");
}

#[test]
fn a_mixture_of_loads_is_not_extrapolated() {
    let shown = text::extremes(&phased(&THREE, 60, None), 80);
    assert!(shown.contains("no extrapolation: its load changes on a schedule"), "{shown}");
}

#[test]
fn the_page_has_a_table_by_phase() {
    let run = phased(&THREE, 15, Some(1_000_000));
    let runs = [run];
    let page = html(&runs, &Options::default());
    for part in
        ["By phase of the load", "phases of the load (once in 15s)", "phase 3 · paper", "changes"]
    {
        assert!(page.contains(part), "{part}");
    }
    let plain = html(&[common::one("wakeup", "none", 1, None)], &Options::default());
    assert!(!plain.contains("By phase"));
}

/// Runs of two kernels in turn; on the second one the hackbench of phase 2 delays more.
fn kernels(replicates: usize) -> Vec<LoadedRun> {
    let of = |number: usize| {
        let mut run = phased(&THREE, 15, None);
        run.run.run_id.push_str(&number.to_string());
        if number % 2 == 1 {
            run.run.kernel.release = "6.1.0-none".to_owned();
            run.run.kernel.preemption = Model::None;
            let stats = &mut run.run.cells[0].phases[1].found.stats;
            stats.max = stats.max.map(|max| max * 4);
        }
        run
    };
    (0..2 * replicates).map(of).collect()
}

fn cell_of(runs: &[LoadedRun]) -> MatchedCell {
    compare(runs).cells.remove(0)
}

#[test]
fn a_comparison_has_the_rows_of_each_phase_below_those_of_its_cell() {
    let runs = kernels(1);
    let cell = cell_of(&runs);
    let loads: Vec<_> = cell.phases.iter().map(|phase| phase.key.as_str()).collect();
    assert_eq!(loads, ["none", "hackbench", "paper", "changes"]);
    for (number, phase) in cell.phases.iter().take(3).enumerate() {
        for (row, run) in phase.rows.iter().zip(&runs) {
            let found = &run.run.cells[0].phases[number].found.stats;
            assert_eq!((row.max_ns, row.p999_ns, row.avg_ns), (found.max, found.p999, found.avg));
        }
        let ratio = if number == 1 { 4.0 } else { 1.0 };
        assert_eq!(phase.rows[1].ratio.max, Some(ratio), "to the same phase of the first run");
        assert_eq!(phase.spreads[1].ratio.max, Some(ratio));
    }
    let shown = text::comparison(&compare(&runs), 80, false);
    check_width(&shown, 80);
    let table = shown.split("\n\n").find(|part| part.contains("phase 1")).unwrap();
    let replicated = text::comparison(&compare(&kernels(3)), 80, false);
    check_width(&replicated, 80);
    let spread = replicated.split("\n\n").find(|part| part.contains("phase 1")).unwrap();
    insta::assert_snapshot!(format!("{table}\n\n{spread}"));
    for runs in [runs, kernels(3)] {
        let page = html(&runs, &Options::default());
        for name in ["phase 1: idle", "phase 2: hackbench", "changes between the phases"] {
            // Of kernels with replicates the runs have a table of their own too.
            let tables = if runs.len() > 2 { 2 } else { 1 };
            assert_eq!(page.matches(&format!(">{name}</th>")).count(), tables, "{name}");
        }
    }
}

#[test]
fn only_phases_of_one_schedule_are_compared() {
    let mut runs = kernels(2);
    // One that was not measured has none.
    runs[1].run.cells[0].phases.clear();
    let cell = cell_of(&runs);
    assert_eq!((cell.rows.len(), cell.phases[1].rows.len()), (4, 3));
    runs[3].run.cells[0].phases[1].for_ns += 1;
    assert!(cell_of(&runs).phases.is_empty());
    let plain = [0, 1].map(|_| common::one("wakeup", "none", 1, None));
    assert!(cell_of(&plain).phases.is_empty());
}

#[test]
fn phases_of_any_duration_have_no_extremes() {
    let runs = [phased(&THREE, 15, None), phased(&THREE, 30, None)];
    let comparison = compare_any_duration(&runs);
    let phase = &comparison.cells[0].phases[1];
    let extremes = phase.rows.iter().map(|row| (row.max_ns, row.min_ns));
    assert!(extremes.clone().count() == 2 && extremes.into_iter().all(|of| of == (None, None)));
    assert!(phase.rows.iter().all(|row| row.p999_ns.is_some()));
}
