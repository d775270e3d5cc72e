//! `compare --published`: one run beside the figures of a publication.

use std::fs;

use crate::support::{Scratch, json, stderr, stdout};

#[test]
fn a_run_stands_beside_a_publication() {
    let scratch = Scratch::new("published");
    let run = scratch.punctual("run lat.syscall -D 1 --no-report --out one");
    assert_eq!(run.status.code(), Some(0), "{}", stderr(&run));
    let shown = scratch.punctual("compare one --published koolwal-geode -o page.html");
    assert_eq!(shown.status.code(), Some(0), "{}", stderr(&shown));
    let text = stdout(&shown);
    for said in ["Kushal Koolwal", "null call", "2.6.26-vl-custom", "quotes the minima", "4394 us"]
    {
        let is_said = text.split_whitespace().collect::<Vec<_>>().join(" ").contains(said);
        assert!(is_said, "{said}: {text}");
    }
    assert!(fs::read_to_string(scratch.path("page.html")).unwrap().contains("Kushal Koolwal"));
    let found = json(&scratch.punctual("compare one --published koolwal-geode --json"));
    let costs = found["published"]["costs"].as_array().unwrap();
    let call = costs.iter().find(|cost| cost["column"] == "null call").unwrap();
    assert_eq!(call["published"], serde_json::json!([0.55, 0.74, 0.89]));
    assert!(call["runs"][0].as_f64().unwrap() > 0.0, "{call}");
    assert_eq!(found["indices"][0][0]["name"], "index.unix");
    assert!(found["indices"][0][0]["value"].is_null());
    // Without a publication one run is nothing to compare.
    assert_eq!(scratch.punctual("compare one").status.code(), Some(2));
}

#[test]
fn an_unknown_publication_is_an_error_that_lists_those_that_are_known() {
    let scratch = Scratch::new("unpublished");
    let refused = scratch.punctual("compare one --published koolwal");
    assert_eq!(refused.status.code(), Some(2));
    for name in ["koolwal-geode", "arthur-emde-mcguire", "celf-rtwg", "mitsubishi-celf"] {
        assert!(stderr(&refused).contains(name), "{}", stderr(&refused));
    }
}
