//! Return levels and the extremal index.

mod common;

use common::{CellSpec, MS, Shape, check_texts, run};
use punctual_core::run::LoadedRun;
use punctual_report::figure::Figure;
use punctual_report::figures;

/// A run of 700 s on two threads.
fn long(deadline: Option<u64>) -> LoadedRun {
    let shape = Shape { base: 14_000.0, spread: 900.0, rare: 400, tail: 9_000.0 };
    let spec = CellSpec {
        probe: "wakeup",
        load: "hackbench",
        seconds: 700,
        interval: 10 * MS,
        threads: 2,
        shape,
        stall: None,
    };
    run("6.1.0-56-rt-amd64", "rt", deadline, &[spec])
}

/// Every sample of each 60th second is late, and no other is by much.
fn in_bursts() -> LoadedRun {
    let mut run = long(None);
    for block in &mut run.cells[0].threads[0].series[0].blocks {
        if block.index % 60 == 0 {
            block.coarse = vec![(punctual_core::block::coarse_bin(900_000), 100)];
            block.moments.max = 900_000;
        }
    }
    run
}

fn named(run: LoadedRun, start: &str) -> Option<Figure> {
    figures(&[run]).into_iter().find(|figure| figure.name.starts_with(start))
}

fn points(figure: &Figure) -> Vec<(f64, f64)> {
    let svg = figure.svg();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let points = document.descendants().filter(|node| node.attribute("class") == Some("point"));
    let place = |node: roxmltree::Node<'_, '_>| {
        let number = |name| node.attribute(name)?.parse().ok();
        Some((number("cx")?, number("cy")?))
    };
    points.filter_map(place).collect()
}

#[test]
fn blocks_of_all_lengths_have_one_curve_if_seconds_are_independent() {
    let figure = named(long(None), "returns").unwrap();
    check_texts("long", &figure);
    let texts: Vec<_> = figure.texts().into_iter().map(|text| text.text).collect();
    for name in ["1 s (700)", "10 s (70)", "1 min (11)", "10 min"] {
        assert!(texts.iter().any(|text| text == name), "{name}: {texts:?}");
    }
    assert!(!texts.iter().any(|text| text.starts_with("1 h (")));
    // Five points each, the largest maximum last: its return period is L (n + 1/2), whatever L is.
    let points = points(&figure);
    assert_eq!(points.len(), 15);
    let largest = [points[4], points[9], points[14]];
    for (x, y) in largest {
        assert!((x - largest[0].0).abs() < 6.0 && y == largest[0].1, "{largest:?}");
    }
}

#[test]
fn samples_that_come_in_bursts_are_told_from_those_that_do_not() {
    let clusters = |run| named(run, "clusters").unwrap();
    let (alone, bursts) = (clusters(long(None)), clusters(in_bursts()));
    check_texts("bursts", &bursts);
    assert!(alone.description.contains("do samples cluster more than by chance"));
    assert!(bursts.description.contains("they cluster most"), "{}", bursts.description);
}

#[test]
fn a_deterministic_board_has_neither() {
    let mut run = long(Some(200_000));
    assert!(named(run.clone(), "returns").is_some());
    let lab = punctual_core::schema::Lab { counted: true, ..Default::default() };
    run.run.board.lab = Some(lab);
    assert!(run.run.board.is_deterministic());
    assert!(named(run.clone(), "returns").is_none() && named(run, "clusters").is_none());
}

#[test]
fn what_was_required_and_what_is_shown_are_lines_of_the_distribution() {
    let mut run = long(Some(200_000));
    let texts = |run: LoadedRun| {
        let figure = named(run, "ccdf").unwrap();
        check_texts("levels", &figure);
        figure.texts().into_iter().map(|text| text.text).collect::<Vec<_>>()
    };
    (run.run.verdict.upper_bound, run.run.verdict.episode_rate_upper) = (None, Some(0.05));
    let both = texts(run.clone());
    for label in ["required 6/min", "upper bound 3/min"] {
        assert!(both.iter().any(|text| text == label), "{both:?}");
    }
    run.run.verdict.upper_bound = Some(2.14e-5);
    (run.run.plan.probability, run.run.plan.singly) = (Some(1e-4), true);
    let both = texts(run.clone());
    for label in ["required 1e-4", "upper bound 2.1e-5"] {
        assert!(both.iter().any(|text| text == label), "{both:?}");
    }
    (run.run.verdict.upper_bound, run.run.verdict.episode_rate_upper) = (None, None);
    assert!(!texts(run).iter().any(|text| text.starts_with("upper bound")));
    assert!(!texts(long(None)).iter().any(|text| text.starts_with("required")));
}
