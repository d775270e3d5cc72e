//! Costs in every output, from runs with every column of the table.

mod common;

use common::costed::{COLUMNS, as_real_time, costed, costed_experiment, lacking};
use common::{check_texts, check_width};
use punctual_core::compare::{Comparison, compare};
use punctual_core::run::LoadedRun;
use punctual_core::schema::{Unit, What};
use punctual_report::text::{comparison, costs, summary};
use punctual_report::{Options, figures, html};

fn pair() -> Vec<LoadedRun> {
    let none = costed("6.1.0-56-amd64", "none", |_| 1.0, 0.01);
    let rt = costed("6.1.0-56-rt-amd64", "rt", as_real_time, 0.02);
    let rt = lacking(rt, "lat.sh", "there is no /bin/sh");
    vec![none, lacking(rt, "lat.exec", "there is no /bin/sh")]
}

#[test]
fn a_run_has_the_sections_of_the_published_table() {
    let run = &pair()[1];
    let text = costs(&run.run, 80, false);
    check_width(&text, 80);
    insta::assert_snapshot!(text);
    assert!(summary(run, 80, false).contains(&text));
}

#[test]
fn kernels_are_rows_where_they_fit_and_columns_in_80() {
    let compared = compare(&pair());
    let narrow = comparison(&compared, 80, false);
    check_width(&narrow, 80);
    insta::assert_snapshot!("kernels_are_columns", narrow);
    let wide = comparison(&compared, 160, false);
    check_width(&wide, 160);
    insta::assert_snapshot!("kernels_are_rows", wide);
}

#[test]
fn four_kernels_with_replicates_and_the_trade() {
    let text = comparison(&compare(&costed_experiment(4)), 80, false);
    check_width(&text, 80);
    insta::assert_snapshot!(text);
}

/// Two runs or more of two kernels each, with nothing but costs.
fn costs_only(replicates: usize) -> Vec<LoadedRun> {
    let of = |number: usize| {
        let kernel = [("6.1.0-56-amd64", "none"), ("6.1.0-56-rt-amd64", "rt")][number % 2];
        let worse = |_| [1.0, 1.3][number % 2] + 0.01 * number as f64;
        let mut run = costed(kernel.0, kernel.1, worse, 0.01);
        run.run.run_id.push_str(&number.to_string());
        run
    };
    (0..2 * replicates).map(of).collect()
}

#[test]
fn kernels_with_costs_only_have_no_tables_of_latencies() {
    for replicates in [2, 4] {
        let runs = costs_only(replicates);
        let text = comparison(&compare(&runs), 80, false);
        check_width(&text, 80);
        let page = html(&runs, &Options::default());
        for word in ["p99.9  ", "runs as replicates", "comparisons can reach", "\n\n\n"] {
            assert!(!text.contains(word), "{replicates}: {word:?} in {text}");
        }
        for word in [
            "Cells, run by run",
            "runs as replicates",
            "<h2>Cells",
            "half of all pairs",
            ">largest latency<",
        ] {
            assert!(!page.contains(word), "{replicates}: {word}");
        }
        assert!(text.contains("  null call ") && page.contains("What it costs"), "{text}");
    }
}

/// A few times and a rate, as a board has them that executes 250 instructions in a microsecond.
fn counted(run: LoadedRun) -> LoadedRun {
    let mut run = lacking(run, "lat.io", "no memory");
    for range in [39..53, 23..36, 16..21, 6..14, 0..4] {
        run.run.cells.drain(range.clone());
        run.cells.drain(range);
    }
    for cell in &mut run.run.cells {
        let What::Cost(cost) = &mut cell.what else { continue };
        let is_time = cost.unit == Unit::Us;
        cost.instructions = cost.value.filter(|_| is_time).map(|us| us * 250.0);
    }
    run
}

#[test]
fn instructions_stand_below_the_times_of_boards_that_count_them() {
    let runs: Vec<_> = costs_only(2).into_iter().map(counted).collect();
    let shown = costs(&runs[0].run, 80, false);
    check_width(&shown, 80);
    let text = comparison(&compare(&runs), 80, false);
    let [narrow, page] = [comparison(&compare(&runs), 34, false), html(&runs, &Options::default())];
    let table = text.split("\n\n").find(|part| part.contains("PREEMPT_RT: ratio")).unwrap();
    insta::assert_snapshot!(format!("{shown}\n{table}"));
    // 0.74 us on the first board, and of each kernel the mean of two.
    for (text, count) in [(&shown, "185.0"), (&text, "186.9"), (&page, "186.9")] {
        assert!(text.contains(count), "{count}: {text}");
    }
    let row = |text: &str| text.lines().filter(|line| line.starts_with("    instructions")).count();
    assert_eq!(row(&text), 2 * 3, "for each kernel, of each part but the bandwidths: {text}");
    assert!(row(&narrow) > 0, "{narrow}");
    assert_eq!(page.matches("  instructions</th>").count(), 2 * 3);
    let page = html(&runs[..1], &Options::default());
    assert_eq!(page.matches(">instructions</th>").count(), 1);
    for plain in [costs(&pair()[0].run, 200, false), comparison(&compare(&pair()), 80, false)] {
        assert!(!plain.contains("instructions"), "{plain}");
    }
}

/// Every cell of every metric is in the table once, whatever the width.
#[test]
fn every_column_has_a_row() {
    for width in [60, 80, 120, 200] {
        let run = &pair()[0];
        let text = costs(&run.run, width, false);
        for (column, key, ..) in COLUMNS {
            let start = format!("  {}", if column.is_empty() { key } else { column });
            assert!(text.lines().any(|line| line.starts_with(&start)), "{width}:{start}\n{text}");
        }
        for text in [
            comparison(&compare(&pair()), width, false),
            comparison(&compare(&costed_experiment(4)), width, false),
        ] {
            check_width(&text, width);
        }
    }
}

/// The escape sequence that a ratio stands in, if there is one.
fn styles(text: &str, cost: &str) -> (bool, bool) {
    let line = text.lines().find(|line| line.starts_with(&format!("  {cost} "))).unwrap();
    (line.contains("\x1b[1;31m"), line.contains("\x1b[1;32m"))
}

#[test]
fn only_an_interval_that_excludes_1_is_coloured() {
    let worse = |by: f64| move |number: usize| if number == 4 { by } else { 1.0 };
    for (by, expected) in [(1.5, (true, false)), (0.7, (false, true)), (1.01, (false, false))] {
        let runs = [costed("a", "none", |_| 1.0, 0.04), costed("b", "rt", worse(by), 0.04)];
        let text = comparison(&compare(&runs), 80, true);
        assert_eq!(styles(&text, "null call"), expected, "{by}: {text}");
        assert_eq!(styles(&text, "null I/O"), (false, false));
    }
    // A bandwidth that falls is worse.
    let at = COLUMNS.iter().position(|column| column.0 == "bw pipe").unwrap();
    let slower = move |number: usize| if number == at { 2.0 } else { 1.0 };
    let runs = [costed("a", "none", |_| 1.0, 0.04), costed("b", "rt", slower, 0.04)];
    let text = comparison(&compare(&runs), 80, true);
    assert_eq!(styles(&text, "bw pipe"), (true, false), "{text}");
    let page = html(&runs, &Options::default());
    assert_eq!(page.matches("class=\"n fail\">worse").count(), 1);
    assert_eq!(page.matches("class=\"n pass\"").count(), 0);
}

#[test]
fn a_blank_has_its_reason() {
    let text = comparison(&compare(&pair()), 100, false);
    let note = "blank: exec proc, sh proc of PREEMPT_RT: there is no /bin/sh";
    assert!(text.contains(note), "{text}");
    let line = text.lines().find(|line| line.starts_with("  sh proc")).unwrap();
    assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["sh", "proc", "18,000", "-", "-"]);
    let index = "index.unix\n    PREEMPT_NONE 100.0";
    assert!(text.contains(index), "{text}");
    assert!(text.contains("PREEMPT_RT no value, for want of exec proc, sh proc"), "{text}");
    let page = html(&pair(), &Options::default());
    for text in [note, "no value, for want of exec proc, sh proc"] {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn the_sentence_has_the_mean_and_the_extremes() {
    // Three costs, twice, four times and once as dear: the mean is 2.
    let dear = |number: usize| [2.0, 4.0, 1.0][number % 3];
    let mut runs = [costed("a", "none", |_| 1.0, 0.01), costed("b", "rt", dear, 0.01)];
    for run in &mut runs {
        run.run.cells.truncate(7);
        run.cells.truncate(7);
    }
    let text = comparison(&compare(&runs), 200, false);
    let sentence = "PREEMPT_RT costs 2.000 times what PREEMPT_NONE does (geometric mean of 3 \
                    ratios, above 1 is worse; 2 shown to be worse, 0 better); worst: null call \
                    4.000, stat 2.000, null I/O 1.000";
    assert!(text.contains(sentence), "{text}");
    assert!(html(&runs, &Options::default()).contains(sentence));
}

fn json(compared: &Comparison) -> serde_json::Value {
    serde_json::to_value(compared).unwrap()
}

#[test]
fn programs_get_the_same_as_readers() {
    let found = json(&compare(&pair()));
    let cost = &found["costs"][4];
    assert_eq!((&cost["column"], &cost["section"]), (&"null call".into(), &"processor".into()));
    let row = &cost["rows"][1];
    assert!(row["ratio_interval"][0].as_f64().unwrap() < row["ratio"].as_f64().unwrap());
    assert_eq!(found["cost_means"][0]["costs"], 46);
    assert_eq!(found["indices"][0][0]["name"], "index.unix");
    assert!((found["indices"][0][0]["value"].as_f64().unwrap() - 100.0).abs() < 1e-9);
    assert_eq!(found["indices"][1][0]["missing"], serde_json::json!(["exec proc", "sh proc"]));
    let trade = json(&compare(&costed_experiment(2)))["trade"].clone();
    assert_eq!(trade.as_array().unwrap().len(), 4);
    assert_eq!(trade[0]["cost"], 1.0);
    assert!(trade[3]["cost"].as_f64().unwrap() > 1.05, "{trade}");
}

fn named(runs: &[LoadedRun]) -> Vec<String> {
    figures(runs).into_iter().map(|figure| figure.name).collect()
}

#[test]
fn figures_have_bars_with_whiskers_and_the_trade() {
    assert_eq!(named(&pair()[..1]), Vec::<String>::new());
    assert_eq!(named(&pair()), ["costs"]);
    let experiment = costed_experiment(4);
    let names = named(&experiment);
    assert!(names.contains(&"trade".to_owned()) && names.contains(&"costs".to_owned()));
    for runs in [&pair()[..], &experiment, &costed_experiment(1)] {
        for figure in figures(runs) {
            check_texts("costs", &figure);
        }
    }
    let all = figures(&pair());
    let (bars, svg) = (47, all[0].svg());
    let of = |class: &str| svg.matches(&format!("class=\"{class}")).count();
    assert_eq!(of("bar") + of("hollow"), bars + 2, "and two in the legend");
    assert_eq!(of("whisker"), bars);
}

/// What a shell takes for names of kernels, costs and reasons is theirs, not ours.
#[test]
fn foreign_names_stay_text() {
    let mut runs = pair();
    runs[1].run.kernel.release = "6.1\u{1b}<script>".to_owned();
    runs[0].run.kernel.preemption = runs[1].run.kernel.preemption;
    for run in &mut runs {
        for cell in &mut run.run.cells {
            let What::Cost(cost) = &mut cell.what else { continue };
            cost.column = cost.column.as_ref().map(|name| format!("{name}\u{1b}<script>"));
        }
    }
    let texts = vec![comparison(&compare(&runs), 80, false), summary(&runs[0], 80, false)];
    let page = html(&runs, &Options::default());
    common::check_foreign(&texts, &page, &figures(&runs));
}
