use super::*;
use crate::compare::tests::{cost_of, run};
use crate::schema::Unit;

/// A run with every published cost of a kernel of the baseline's publication, its times
/// multiplied and its rates divided by `slower`.
fn like(kernel: &str, slower: f64) -> Run {
    let costs = published::find(BASELINE.0).unwrap().costs();
    let cells = costs.iter().filter(|cost| cost.kernel == kernel && cost.value.is_some());
    let cells = cells.map(|cost| {
        let value = cost.value.unwrap();
        let (unit, better, value) = match &*cost.unit {
            "MB/s" => (Unit::MegabytesPerSecond, Better::More, value / slower),
            "us" => (Unit::Us, Better::Less, value * slower),
            _ => (Unit::Pages, Better::More, value),
        };
        cost_of(&cost.column, unit, better, [value * 0.99, value, value * 1.01])
    });
    run("x", "none", cells.collect())
}

fn value(found: &[IndexValue], name: &str) -> f64 {
    found.iter().find(|index| index.name == name).unwrap().value.unwrap()
}

#[test]
fn the_index_of_the_baseline_itself_is_100() {
    for (slower, index) in [(1.0, 100.0), (2.0, 50.0), (0.1, 1_000.0)] {
        let found = of_run(&like(BASELINE.1, slower));
        assert_eq!(found.len(), INDICES.len());
        for one in &found {
            let of = one.value.unwrap();
            assert!((of / index - 1.0).abs() < 1e-12, "{one:?}");
            assert!(one.low.unwrap() < of && of < one.high.unwrap());
            // Independent parts of 1 % each: together they are known better than one.
            assert!(one.low.unwrap() > 0.99 * of && one.high.unwrap() < 1.01 * of, "{one:?}");
        }
    }
}

#[test]
fn weights_count_as_shares() {
    // The real-time kernel of the publication, by hand from cost.csv.
    let ratios = [0.89 / 0.74, 15.9 / 15.1, 230.6 / 65.9, 687.0 / 383.0, 2816.0 / 4156.0]
        .into_iter()
        .chain([15000.0 / 18000.0, 12.4 / 9.25]);
    let mean = ratios.map(f64::ln).sum::<f64>() / 7.0;
    let found = value(&of_run(&like("2.6.26-rt1-ebx11", 1.0)), "index.unix");
    assert!((found - 100.0 * (-mean).exp()).abs() < 1e-9, "{found}");
    let mut one = like(BASELINE.1, 1.0);
    let cell = one.cells.iter_mut().find(|cell| cell.key.starts_with("sig hdl")).unwrap();
    let crate::schema::What::Cost(cost) = &mut cell.what else { panic!("a cost") };
    cost.value = cost.value.map(|value| value * 1024.0);
    // 6 of 60: a tenth of ten powers of two.
    assert!((value(&of_run(&one), "index.aim") - 50.0).abs() < 1e-9);
    let total: u32 = INDICES[1].parts.iter().map(|part| part.weight).sum();
    assert_eq!(total, 60);
}

#[test]
fn an_index_with_a_missing_part_has_no_value_and_says_which() {
    let mut without = like(BASELINE.1, 1.0);
    without.cells.retain(|cell| !cell.key.starts_with("sh proc"));
    for one in of_run(&without) {
        assert_eq!((one.value, one.low, &one.missing[..]), (None, None, &["sh proc"][..]));
    }
    // Under another load, in another unit, or not measurable is missing too.
    let mut wrong = like(BASELINE.1, 1.0);
    for cell in &mut wrong.cells {
        let crate::schema::What::Cost(cost) = &mut cell.what else { panic!("a cost") };
        match cost.column.as_deref() {
            Some("null call") => cell.load = "hackbench".to_owned(),
            Some("bw pipe") => cost.unit = Unit::PerSecond,
            Some("2p/0K") => cost.value = None,
            _ => {}
        }
    }
    let found = of_run(&wrong);
    assert_eq!(found[0].missing, ["null call", "bw pipe", "2p/0K"]);
    let loaded: Vec<_> = found.iter().filter(|index| index.load == "hackbench").collect();
    assert_eq!((loaded.len(), loaded[0].missing.len()), (1, 6));
    assert_eq!(of_run(&run("x", "none", Vec::new())), []);
}

#[test]
fn every_part_has_a_baseline() {
    let baseline = baseline();
    for index in INDICES {
        for part in index.parts {
            let found = baseline.iter().filter(|(column, ..)| column == part.column);
            assert_eq!(found.count(), 1, "{}: {}", index.name, part.column);
        }
    }
}
