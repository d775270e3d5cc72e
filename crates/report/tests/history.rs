//! The history of kernels: its table, figure, page and data.

mod common;

use punctual_core::history::History;
use punctual_core::run::LoadedRun;
use punctual_core::schema::Lab;
use punctual_report::history::{csv, figure, page, text};
use unicode_width::UnicodeWidthStr;

/// Two boots each of kernels in no order; the newest real-time one is the slowest of its kind.
fn history() -> History {
    let mut runs: Vec<LoadedRun> = Vec::new();
    for (release, model, factor) in [
        ("7.3.4+deb13-rt-amd64", "rt", 1.6),
        ("6.1.0-56-amd64", "none", 9.0),
        ("6.1.0-56-rt-amd64", "rt", 1.0),
        ("5.10.0-32-rt-amd64", "rt", 0.9),
        ("6.12.9+deb13-amd64", "full", 3.0),
    ] {
        for boot in [1.0, 1.1] {
            let mut run = common::standard(release, model, factor * boot);
            run.run.run_id = format!("{release}-{model}-{boot}");
            runs.push(run);
        }
    }
    History::of(&runs)
}

#[test]
fn kernels_are_in_the_order_of_their_releases_with_the_spread_of_their_boots() {
    let history = history();
    let names: Vec<_> =
        history.kernels.iter().map(|one| (one.short_release(), one.model.as_str())).collect();
    let expected = [
        ("5.10.0-32", "rt"),
        ("6.1.0-56", "none"),
        ("6.1.0-56", "rt"),
        ("6.12.9+deb13", "full"),
        ("7.3.4+deb13", "rt"),
    ];
    assert_eq!(names, expected);
    assert_eq!(history.series(), ["5.10", "6.1", "6.12", "7.3"]);
    let max = |number: usize| history.kernels[number].cells[1].as_ref().unwrap().max_ns.unwrap();
    assert!(history.kernels.iter().all(|kernel| kernel.boots == 2));
    assert!(max(4).lowest > max(0).lowest && max(1).highest > max(1).lowest);
}

#[test]
fn one_run_is_a_history() {
    let mut run = common::standard("6.1.0-56-rt-amd64", "rt", 1.0);
    let (qemu, arch) = ("7.2.22".to_owned(), "x86_64".to_owned());
    run.run.board.lab = Some(Lab { qemu, arch, cpus: 2, ..Lab::default() });
    let history = History::of(&[run]);
    for shown in [text(&history, 80, false), page(&history)] {
        assert!(shown.contains("Measured on QEMU 7.2.22, x86_64, 2 CPUs."), "{shown}");
    }
    assert_eq!((history.kernels.len(), history.caveats.len()), (1, 0));
    assert_eq!(history.kernels[0].cells[0].as_ref().unwrap().runs, 1);
    assert!(text(&history, 80, false).contains("wakeup @ idle"));
}

#[test]
fn the_table_fits_the_terminal() {
    let history = history();
    insta::assert_snapshot!(text(&history, 100, false));
    for width in [60, 80, 120] {
        let text = text(&history, width, false);
        let widest = text.lines().max_by_key(|line| line.width()).unwrap();
        assert!(widest.width() <= width, "{width}: {widest}");
    }
}

#[test]
fn a_line_of_the_data_has_what_the_table_has() {
    let history = history();
    let csv = csv(&history);
    let lines: Vec<&str> = csv.lines().collect();
    let measured: usize =
        history.kernels.iter().map(|one| one.cells.iter().flatten().count()).sum();
    assert_eq!(lines.len(), 1 + measured);
    let names: Vec<&str> = lines[0].split(',').collect();
    let fields: Vec<&str> = lines[1].split(',').collect();
    let field = |name: &str| fields[names.iter().position(|other| *other == name).unwrap()];
    let max = history.kernels[0].cells[0].as_ref().unwrap().max_ns.unwrap();
    assert_eq!((field("series"), field("model"), field("boots")), ("5.10", "rt", "2"));
    assert_eq!(field("max_highest_ns"), max.highest.to_string());
}

#[test]
fn the_figure_has_a_panel_for_each_load_and_every_number_in_words() {
    let history = history();
    let figure = figure(&history).unwrap();
    let texts: Vec<String> = figure.texts().into_iter().map(|text| text.text).collect();
    for series in history.series() {
        let count = texts.iter().filter(|text| *text == series).count();
        assert_eq!(count, history.cells.len(), "{series}");
    }
    for model in ["PREEMPT_NONE", "PREEMPT", "PREEMPT_RT"] {
        assert!(texts.iter().any(|text| text == model), "{model}: {texts:?}");
    }
    assert_eq!(
        figure.description.matches("7.3.4+deb13 PREEMPT_RT: max").count(),
        history.cells.len()
    );
    assert!(figure.svg().contains("</svg>"));
    let page = page(&history);
    assert!(page.contains("<svg") && page.contains("6.12.9+deb13") && !page.contains("<script"));
    let nothing = History { kernels: Vec::new(), ..history };
    assert!(punctual_report::history::figure(&nothing).is_none());
}
