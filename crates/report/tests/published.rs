//! Runs beside publications.

mod common;

use common::costed::{as_real_time, costed};
use common::{check_width, standard};
use punctual_core::published::{CITATIONS, Citation, find};
use punctual_core::run::LoadedRun;
use punctual_report::published::{PublishedBeside, beside};
use punctual_report::{Options, html, text};

fn koolwal() -> &'static Citation {
    find("koolwal-geode").unwrap()
}

/// A run with latencies and every cost.
fn whole() -> LoadedRun {
    let mut run = standard("6.1.0-56-rt-amd64", "rt", 1.0);
    let costs = costed("6.1.0-56-rt-amd64", "rt", as_real_time, 0.01);
    run.run.cells.extend(costs.run.cells);
    run.cells.extend(costs.cells);
    run
}

fn values(found: &PublishedBeside, column: &str) -> Vec<Option<f64>> {
    let cost = found.costs.iter().find(|cost| cost.column == column).unwrap();
    cost.runs.iter().chain(&cost.published).copied().collect()
}

#[test]
fn columns_of_a_run_stand_beside_those_of_the_same_name() {
    let run = costed("6.1.0", "none", |_| 1.0, 0.01);
    let found = beside(&[run], koolwal());
    assert_eq!(found.kernels, ["2.6.26-1-486", "2.6.26-vl-custom", "2.6.26-rt1-ebx11"]);
    assert_eq!(values(&found, "2p/0K"), [Some(65.9), None, Some(65.9), Some(230.6)]);
    assert_eq!(values(&found, "bw TCP"), [Some(11.9), Some(15.3), Some(11.9), Some(1.46)]);
    // Measured here and blank there, and the other way round.
    assert_eq!(values(&found, "8p/16K"), [Some(240.0), None, None, None]);
    assert_eq!(values(&found, "scal load"), [None, Some(1.0), Some(1.0), Some(1.0)]);
    assert!(found.costs.iter().all(|cost| !cost.column.contains("unknown")));
    let doubts = found.cost_doubts();
    assert!(doubts.iter().any(|doubt| doubt.starts_with("fork proc: 34.K")), "{doubts:?}");
    assert!(doubts.iter().any(|doubt| doubt.starts_with("RPC/UDP, TCP: column ambiguous")));
}

#[test]
fn a_publication_stands_beside_a_run_in_80_columns() {
    let text = text::published(&beside(&[whole()], koolwal()), 80, false);
    check_width(&text, 80);
    insta::assert_snapshot!(text);
}

/// With its title and each of its doubts, on the terminal and on the page.
#[test]
fn every_publication_is_shown_with_its_doubts() {
    let runs = [whole(), standard("6.1.0-56-amd64", "none", 9.0)];
    for citation in CITATIONS {
        for runs in [&runs[..1], &runs] {
            let found = beside(runs, citation);
            for width in [60, 80, 200] {
                check_width(&text::published(&found, width, false), width);
            }
            let text = text::published(&found, 2_000, false);
            let options = Options { published: Some(*citation), ..Options::default() };
            let page = html(runs, &options);
            let page = page
                .replace("&quot;", "\"")
                .replace(" µs", " us")
                .replace("&lt;", "<")
                .replace("&gt;", ">");
            let notes = citation.latencies().into_iter().filter_map(|latency| latency.note);
            let notes = notes.chain(found.cost_doubts());
            let doubts = citation.doubts.iter().map(|doubt| (*doubt).to_owned());
            for said in notes.chain(doubts).chain([citation.title.to_owned()]) {
                assert!(text.contains(&said) && page.contains(&said), "{}: {said}", citation.name);
            }
            let value = serde_json::to_value(&found).unwrap();
            assert_eq!(value["citation"]["name"], citation.name);
            assert_eq!(value["published"].as_array().unwrap().len(), citation.latencies().len());
        }
    }
}

#[test]
fn what_was_measured_under_a_load_stands_beside_nothing() {
    let mut run = costed("6.1.0", "none", |_| 1.0, 0.01);
    run.run.cells.iter_mut().for_each(|cell| cell.load = "hackbench".to_owned());
    let found = beside(&[run], koolwal());
    assert!(found.costs.iter().all(|cost| cost.runs == [None] && cost.section.is_none()));
}
