use proptest::prelude::*;
use serde_json::json;

use super::super::tests::{cell, compared, loaded, run, virtual_board};
use super::super::{Comparison, compare};
use super::*;

/// A run of a virtual board among others of one `lab run`: it differs from them in all that
/// replicates differ in.
fn replicate(number: u64) -> Run {
    let mut run = run(&format!("r{number}"), "rt", vec![cell("x", 10, 20)]);
    virtual_board(&mut run, number, 1_000 * (number % 3));
    run.group = Some("night".to_owned());
    run.replicate = u32::try_from(number).ok();
    run.started.realtime_ns = 3_600_000_000_000 * number;
    run.facts.insert("activity".to_owned(), json!({ "load_average": [number, 0, 0] }));
    // Some could not read a setting.
    let memory = json!({ "available_bytes": number });
    let with_pages = json!({ "available_bytes": number, "transparent_huge_pages": "never" });
    let is_read = !number.is_multiple_of(4);
    run.facts.insert("memory".to_owned(), if is_read { with_pages } else { memory });
    run
}

proptest! {
    #[test]
    fn replicates_of_a_lab_are_one_side_in_any_order(
        order in Just((0..9_u64).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let runs: Vec<Run> = order.iter().map(|number| replicate(*number)).collect();
        let comparison = compared(runs.clone());
        prop_assert_eq!(comparison.groups.len(), 1);
        prop_assert_eq!(comparison.groups[0].runs.clone(), (0..9).collect::<Vec<_>>());
        prop_assert_eq!(comparison.groups[0].group.as_deref(), Some("night"));
        // With those of another kernel among them they are two.
        let mixed = runs.into_iter().enumerate().map(|(number, mut run)| {
            if order[number] >= 5 {
                run.kernel.preemption = Model::None;
            }
            run
        });
        let mut sizes: Vec<_> =
            compared(mixed.collect()).groups.iter().map(|group| group.runs.len()).collect();
        sizes.sort_unstable();
        prop_assert_eq!(sizes, [4, 5]);
    }
}

fn sizes(runs: &[Run]) -> Vec<usize> {
    let records: Vec<&Run> = runs.iter().collect();
    by_side(&records, &[]).0.iter().map(|group| group.runs.len()).collect()
}

#[test]
fn groups_tell_runs_apart_unless_they_are_pooled_or_made_twice() {
    let mut runs = [1, 2, 3, 4].map(replicate);
    for run in &mut runs[2..] {
        run.group = Some("day".to_owned());
    }
    assert_eq!(sizes(&runs), [2, 2]);
    let records: Vec<&Run> = runs.iter().collect();
    assert_eq!(by_kernel(&records).len(), 1, "pool judges runs of several groups as one");
    let telling: Vec<_> =
        compared(runs.to_vec()).differences.into_iter().map(|found| found.what).collect();
    assert!(telling.contains(&"group".to_owned()), "{telling:?}");
    runs[2].group = None;
    assert_eq!(sizes(&runs), [3, 1], "no group tells nothing apart");
    // The same course once more is no other side.
    let mut again = replicate(1);
    again.run_id = "again".to_owned();
    again.group = Some("day".to_owned());
    assert!(!are_replicates(&runs[0], &again));
    let (groups, notes) = by_side(&[&runs[0], &runs[1], &again], &[]);
    assert_eq!((groups.len(), groups[0].runs.len(), notes.len()), (1, 2, 1), "{notes:?}");
}

/// The runs as those of two arguments.
fn of_two_arguments(runs: &[Run], first: usize) -> Comparison {
    let mut runs = loaded(runs.iter().cloned());
    for (number, run) in runs.iter_mut().enumerate() {
        let name = if number < first { "before" } else { "after" }.to_owned();
        run.side = Some(ComparedSide { name, whole: false });
    }
    compare(&runs)
}

#[test]
fn an_argument_of_several_sides_is_said_once_with_what_differs() {
    let said = |comparison: &Comparison| -> Vec<String> {
        let caveats = comparison.caveats.iter();
        caveats.filter(|text| text.contains("several sides")).cloned().collect()
    };
    let mut runs = [1, 2, 5, 6].map(replicate);
    assert_eq!(said(&of_two_arguments(&runs, 2)), [""; 0]);
    runs[1].board.name = "other".to_owned();
    let memory = json!({ "transparent_huge_pages": "always" });
    runs[3].facts.insert("memory".to_owned(), memory);
    let comparison = of_two_arguments(&runs, 2);
    assert_eq!(comparison.groups.len(), 4);
    let [caveat] = &said(&comparison)[..] else { panic!("{:?}", comparison.caveats) };
    for text in
        ["the runs of after differ in huge-pages; ", "the runs of before differ in board,", "--by"]
    {
        assert!(caveat.contains(text), "{text}: {caveat}");
    }
}

#[test]
fn a_setting_that_differs_beside_the_kernel_is_a_cause_too() {
    let said = |runs: &[Run]| {
        let caveats = compared(runs.to_vec()).caveats.into_iter();
        caveats.filter(|text| text.contains("only cause")).collect::<Vec<_>>()
    };
    let governor = |run: &mut Run, name: &str| {
        let power = json!({ "frequency": [{ "governor": name }] });
        run.facts.insert("power".to_owned(), power);
    };
    let mut runs = [1, 2].map(replicate);
    governor(&mut runs[0], "performance");
    governor(&mut runs[1], "powersave");
    assert_eq!(said(&runs), [""; 0], "the governor alone is what is compared");
    runs[1].kernel.release = "6.6.0".to_owned();
    assert_eq!(
        said(&runs),
        ["governor differs too: performance with Linux 6.1.0-rt (rt), powersave with Linux 6.6.0 \
          (rt), so the kernel is not the only cause"]
    );
    assert_eq!(compared(runs.to_vec()).differences[0].what, "setting governor");
    governor(&mut runs[1], "performance");
    assert_eq!(said(&runs), [""; 0]);
}

#[test]
fn sides_are_kernels_only_if_kernels_are_what_they_are_named_by() {
    let side = |name: Option<&str>, model: Model, kernel: &str, whole: bool| KernelRuns {
        side: name.map(str::to_owned),
        preemption: model,
        kernel: kernel.to_owned(),
        whole,
        ..KernelRuns::default()
    };
    let (none, rt) = (Model::None, Model::Rt);
    for (sides, noun) in [
        (vec![side(None, none, "6.1", false), side(None, rt, "6.1", false)], "kernel"),
        (vec![side(None, rt, "6.1", false), side(None, rt, "6.6", false)], "kernel"),
        (vec![side(Some("a"), none, "6.1", false), side(Some("b"), rt, "6.1", false)], "kernel"),
        (vec![side(Some("a"), rt, "6.1", false), side(Some("b"), rt, "6.6", false)], "side"),
        (vec![side(None, rt, "6.1", false), side(None, rt, "6.1", false)], "side"),
        (vec![side(Some("a"), none, "6.1", true), side(Some("b"), rt, "6.1", true)], "side"),
    ] {
        assert_eq!(side_noun(&sides), noun, "{sides:?}");
    }
}

#[test]
fn the_largest_maximum_of_a_side_is_of_cells_that_others_lack_too() {
    let mut runs = [1, 2].map(replicate);
    runs[1].cells.push(cell("only here", 1, 5_000));
    let comparison = compared(runs.to_vec());
    assert_eq!(comparison.groups[0].max_ns, Some(5_000_000));
    assert_eq!(comparison.cells.len(), 1);
}
