//! How to read the report.

use maud::{Markup, html};

const WORDS: [(&str, &str); 10] = [
    (
        "latency",
        "the start of the work minus its release, signed. Nothing is clipped and nothing is subtracted.",
    ),
    (
        "max",
        "the largest latency seen, the one that has to meet a deadline. It grows with time: if conditions stay the same, \
        a maximum seen in an hour has a chance of at most 50 % of being exceeded in the next hour.",
    ),
    (
        "p99.9",
        "999 of 1000 samples are at most this. Given only if there are enough samples for it.",
    ),
    (
        "missed",
        "releases that passed while an earlier one was still waiting. Samples plus missed periods are always the scheduled releases.",
    ),
    (
        "corrected",
        "the distribution in which missed releases are counted with their actual delay. \
        One stall of 100 ms at a period of 1 ms is one sample and 99 missed releases.",
    ),
    ("early", "samples below zero: the work started before its release."),
    (
        "load",
        "background activity that may delay the probe. Its work is listed and drawn, since a load that did nothing proves nothing.",
    ),
    (
        "verdict",
        "FAIL: an activation was later than the deadline; if some lateness is allowed, there was more. \
        PASS: none was, for long enough to show how often lateness may still begin; or no more than is allowed. \
        BREAK: a sample was above the break value, which ended the run. INCONCLUSIVE: neither is shown, since the run was too short, or something speaks against it. \
        MEASURED: no deadline was given, so nothing is judged. What weakens a verdict stands beside it. It holds only under the tested load.",
    ),
    (
        "how often lateness begins",
        "what goes wrong once delays many activations, so that their number says little. Late ones at most 1 s apart are one time, \
        and what a verdict bounds is how often such a time begins, if the time that was measured is like the time asked about.",
    ),
    (
        "warm-up",
        "the time before the measurement of each cell. Its maximum is shown separately and is excluded from all other numbers.",
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
