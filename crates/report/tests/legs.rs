//! What latencies consist of: every output says the same, and nothing is shown of what is unknown.

mod common;

use common::legs_of_all;
use punctual_core::run::LoadedRun;
use punctual_report::figure::Figure;
use punctual_report::text::{legs, summary};
use punctual_report::{Options, figures, html};

const TITLE: &str = "Legs of every sample";

fn one() -> LoadedRun {
    legs_of_all(common::one("wakeup", "hackbench", 1, None), 0)
}

/// The same cell of two kernels.
fn two() -> [LoadedRun; 2] {
    let mut none = common::one("wakeup", "hackbench", 1, None);
    none.run.kernel.release = "6.1.0-56-amd64".to_owned();
    none.run.kernel.preemption = punctual_core::preemption::Model::None;
    [legs_of_all(none, 4), one()]
}

fn of_legs(figures: &[Figure]) -> Vec<&str> {
    let names = figures.iter().map(|figure| figure.name.as_str());
    names.filter(|name| name.starts_with("legs-") || name.starts_with("t1-")).collect()
}

#[test]
fn a_cell_has_a_table_of_its_legs() {
    insta::assert_snapshot!(legs(&[one()], 80, false));
}

#[test]
fn two_kernels_have_a_line_each_for_every_leg() {
    insta::assert_snapshot!(legs(&two(), 80, false));
}

#[test]
fn a_run_shows_its_legs_in_every_output() {
    let run = one();
    let table = legs(std::slice::from_ref(&run), 100, false);
    assert!(summary(&run, 100, false).contains(&table));
    let page = html(std::slice::from_ref(&run), &Options::default());
    assert!(page.contains(&format!(">{TITLE}</h2>")));
    // Whatever stands in the table stands on the page too.
    let row = table.lines().find(|line| line.contains("switch")).unwrap();
    for number in row.split("  ").map(str::trim).filter(|text| text.contains(" us")) {
        assert!(page.contains(&number.replace(" us", " µs")), "{number}");
    }
    let figures = figures(&[run]);
    assert_eq!(of_legs(&figures), ["legs-0-00-wakeup-hackbench"]);
    for figure in &figures {
        common::check_texts("legs", figure);
    }
}

#[test]
fn the_interrupt_latency_of_several_runs_has_a_figure() {
    let figures = figures(&two());
    let expected =
        ["legs-0-00-wakeup-hackbench", "legs-1-00-wakeup-hackbench", "t1-0-00-wakeup-hackbench"];
    assert_eq!(of_legs(&figures), expected);
    let t1 = figures.iter().find(|figure| figure.name.starts_with("t1-")).unwrap();
    assert_eq!(t1.title, "Interrupt latency (t1) · wakeup · hackbench");
    common::check_texts("t1", t1);
    assert!(t1.description.contains("max 270.3 us") && t1.description.contains("max 237 ns"));
}

#[test]
fn of_kernels_with_replicates_the_worst_run_is_shown() {
    let runs: Vec<_> =
        common::experiment(3, 2).into_iter().map(|run| legs_of_all(run, 1)).collect();
    let text = legs(&runs, 100, false);
    assert!(text.contains("of each kernel the run with the largest maximum"), "{text}");
    // One line for each kernel of each leg, and two cells.
    assert_eq!(text.matches("PREEMPT_RT").count(), 2 * 7, "{text}");
    assert!(html(&runs, &Options::default()).contains(TITLE));
}

#[test]
fn nothing_is_said_of_what_nobody_has_looked_for() {
    let mut runs = [common::one("wakeup", "hackbench", 1, None)];
    assert_eq!(legs(&runs, 80, false), "");
    assert!(!html(&runs, &Options::default()).contains(TITLE));
    assert!(of_legs(&figures(&runs)).is_empty());
    // Legs of another cell.
    runs = runs.map(|run| legs_of_all(run, 0));
    runs[0].legs.as_mut().unwrap().cells[0].key = "wakeup @ process @ 2s".to_owned();
    assert!(!html(&runs, &Options::default()).contains(TITLE));
    assert!(!summary(&runs[0], 100, false).contains(TITLE));
}

#[test]
fn lines_fit_the_terminal_and_damage_does_no_harm() {
    for width in [60, 80, 120] {
        common::check_width(&legs(&two(), width, false), width);
    }
    let mut run = one();
    for sample in &mut run.legs.as_mut().unwrap().cells[0].samples {
        sample.ends_ns = vec![u64::MAX, 3, 0];
    }
    run.legs.as_mut().unwrap().cells[0].legs[0].worst = u64::MAX;
    let runs = [run];
    assert!(legs(&runs, 80, false).contains("interrupt (t1)"));
    assert!(html(&runs, &Options::default()).contains(TITLE));
    assert_eq!(of_legs(&figures(&runs)).len(), 1);
}
