//! What tracing costs a wake-up, seen from outside: the legs of a traced one without the instructions
//! of tracing are those of one that is not traced.

use serde_json::Value;

use crate::boards::x86_64;
use punctual_harness::{Place, count, items, need, run_json};

/// How long after its release a timer interrupts a CPU that does not keep it waiting, ns.
const OWN_NS: std::ops::Range<u64> = 100..300;

/// Whether a function of the kernel is there to trace (kernel/trace/, and what trace events are made
/// of). What they call is tracing's as well.
fn traces(name: &str) -> bool {
    let begins = [
        "__traceiter_",
        "trace_",
        "tracing_",
        "ring_buffer_",
        "rb_commit",
        "__rb_reserve_next",
        "filter_match_preds",
        "probe_sched_",
    ];
    begins.iter().any(|begin| name.starts_with(begin))
}

/// A stretch of a sample: from, to, and the functions that were active, ns since the release.
struct Span<'a> {
    from: u64,
    to: u64,
    stack: Vec<&'a str>,
}

impl Span<'_> {
    fn is_tracing(&self) -> bool {
        self.stack.iter().any(|name| traces(name))
    }

    /// How much of it lies between two instants, ns.
    fn within(&self, [from, to]: [u64; 2]) -> u64 {
        self.to.min(to).saturating_sub(self.from.max(from))
    }
}

fn spans(sample: &Value) -> Vec<Span<'_>> {
    let functions = items(&sample["functions"]);
    let name = |number: &Value| {
        functions[usize::try_from(number.as_u64().unwrap()).unwrap()].as_str().unwrap()
    };
    let mut from = 0;
    let span = |span| {
        let to = count(span, "end_ns");
        let stack = items(&span["stack"]).iter().map(name).collect();
        Span { from: std::mem::replace(&mut from, to), to, stack }
    };
    items(&sample["spans"]).iter().map(span).collect()
}

/// The name of each leg, with its length and how much of it is tracing, ns.
fn legs(sample: &Value) -> Vec<(&str, u64, u64)> {
    let spans = spans(sample);
    let mut from = 0;
    let leg = |leg| {
        let ends = [from, count(leg, "end_ns")];
        from = ends[1];
        let traced = spans.iter().filter(|span| span.is_tracing()).map(|span| span.within(ends));
        (leg["until"].as_str().unwrap(), ends[1] - ends[0], traced.sum())
    };
    items(&sample["legs"]).iter().map(leg).collect()
}

/// When events of the trace read their time, and the clock at the end, ns since the release.
fn stamps(sample: &Value, latency: u64) -> Vec<u64> {
    let spans = spans(sample);
    let reads = |span: &&Span| span.is_tracing() && span.stack.last() == Some(&"read_tsc");
    spans.iter().filter(reads).map(|span| span.to).chain([latency]).collect()
}

#[test]
fn a_traced_wake_up_is_one_that_is_not_and_its_tracing() {
    need!(x86_64());
    let place = Place::of_build();
    let line = "lab run --offline -q --no-report --out p";
    place.run(&format!("{line} --kernel debian:full,debian:rt timer-irq wakeup -D 1s")).with(0);
    for model in ["full", "rt"] {
        a_course_compares(&place, model);
    }
}

/// Compares a release of each cell that is as late as most, and has an interrupt of its own: of those
/// beside another event of the timer, that event's interrupt is part.
fn a_course_compares(place: &Place, model: &str) {
    let guest = format!("p/debian-{model}-0");
    // Of every other kind: the timer's tick is due every fourth.
    let times: Vec<String> = (0..24).map(|number| format!("{}ms", 500 + 3 * number)).collect();
    let line = format!("lab explain --offline -q --json --at {} {guest}", times.join(","));
    let explained = place.run(&line).with(0).json();
    let recorded = run_json(&place.path.join(&guest));
    let cells = items(&explained[0]["cells"]).iter().zip(items(&recorded["cells"]));
    let typical: Vec<&Value> = cells
        .map(|(cell, recorded)| {
            let samples = items(&cell["samples"]).iter();
            let own = samples.filter(|sample| OWN_NS.contains(&legs(sample)[0].1));
            let median = count(recorded, "p50_ns");
            own.min_by_key(|sample| count(sample, "latency_ns").abs_diff(median)).unwrap()
        })
        .collect();
    let [traced, plain] = typical[..] else { panic!("{explained}") };
    compare_legs(model, traced, plain);
    assert_stamps(place, &guest, traced);
    // Nothing but tracing is called besides.
    let known: Vec<&str> =
        spans(plain).iter().filter_map(|span| span.stack.last().copied()).collect();
    for span in spans(traced).iter().filter(|span| !span.is_tracing()) {
        let own = span.stack.last();
        assert!(own.is_none_or(|name| known.contains(name)), "{model}: {own:?} {}", span.from);
    }
}

/// Beside what is subtracted, an event that is on takes some ten instructions of its caller.
fn compare_legs(model: &str, traced: &Value, plain: &Value) {
    let (with, without) = (legs(traced), legs(plain));
    assert!(without.len() == 6 && without.iter().all(|(.., tracing)| *tracing == 0));
    for ((name, whole, tracing), (_, ns, _)) in with.iter().zip(&without) {
        let rest = whole - tracing;
        println!("{model}, {name}: {whole} - {tracing} = {rest} ns, not traced {ns} ns");
        // Either release may come anywhere between two instructions and be noticed five later.
        assert!(rest.abs_diff(*ns) <= (ns / 20).max(40), "{model}, {name}");
    }
    let tracing: u64 = with.iter().map(|(.., tracing)| tracing).sum();
    assert!(tracing > 5_000, "{tracing} ns are tracing's");
}

/// The legs of the probe end where events are seen to read their time.
fn assert_stamps(place: &Place, guest: &str, traced: &Value) {
    let cell = &run_json(&place.path.join(guest))["cells"][0];
    let stamps = stamps(traced, count(traced, "latency_ns"));
    let mut from = 0;
    let names = items(&cell["series"]).iter().map(|series| series["name"].as_str().unwrap());
    let medians = items(&cell["threads"][0]["series"]).iter().map(|series| &series["p50"]);
    let own: Vec<(&str, u64)> =
        names.zip(medians).filter_map(|(name, median)| Some((name, median.as_u64()?))).collect();
    assert_eq!((own.len(), stamps.len()), (4, 4), "{own:?}, {stamps:?}");
    for ((name, median), to) in own.into_iter().zip(stamps) {
        let leg = to - std::mem::replace(&mut from, to);
        println!("{guest}, {name}: {median} ns, from outside {leg} ns");
        assert!(leg.abs_diff(median) <= leg / 20, "{name}");
    }
}
