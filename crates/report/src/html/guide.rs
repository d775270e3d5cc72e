//! How to read the report.

use maud::{Markup, html};

const WORDS: [(&str, &str); 9] = [
    (
        "latency",
        "start of the work minus its release, signed. Nothing is clipped, and nothing is subtracted.",
    ),
    (
        "max",
        "the largest latency seen. It is what a deadline meets, and it grows with time: for like samples, \
        a maximum found in some time has an even chance to be beaten in the same time again.",
    ),
    ("p99.9", "999 of 1000 samples are at most this. Given where there are samples enough for it."),
    (
        "missed",
        "releases that passed while an earlier one was still waiting. Scheduled releases are samples plus missed periods, always.",
    ),
    (
        "corrected",
        "the distribution in which every missed release counts as late as it was. \
        One stall of 100 ms at a period of 1 ms is one sample, and 99 missed releases.",
    ),
    ("early", "samples below zero: the work started before its release."),
    (
        "load",
        "background activity that tries to make the probe late. Its work is listed and drawn: a load that did nothing proves nothing.",
    ),
    (
        "verdict",
        "FAIL: an activation was later than the deadline. PASS: none was, and the bound on how often one can be is low enough. \
        INCONCLUSIVE: none was, but too few were measured. Bounds are one-sided and hold under the tested load only.",
    ),
    (
        "warm-up",
        "the time before each cell's measurement. Its maximum is shown apart and is outside all other numbers.",
    ),
];

pub fn section() -> Markup {
    html! {
        section {
            h2 { "How to read this report" }
            dl { @for (word, meaning) in WORDS { dt { (word) } dd { (meaning) } } }
        }
    }
}
