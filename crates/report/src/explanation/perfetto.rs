//! An explanation as trace events, which ui.perfetto.dev and chrome://tracing open.

use punctual_core::explanation::{Explained, Explanation, Held, Hold};
use serde::Serialize;
use serde_json::{Value, json};

use super::threads;
use super::times::{Names, function_name, rank_name, sections, stretches, switch_ns};
use crate::words;

/// Tracks of a process, from the top.
const LEGS: u32 = 1;
const FUNCTIONS: u32 = 2;
const INTERRUPTS: u32 = 3;
const SCHEDULER: u32 = 4;
const PREFERRED: u32 = 5;
const THREADS: u32 = 6;

const TRACKS: [(u32, &str); 6] = [
    (LEGS, "legs"),
    (FUNCTIONS, "functions"),
    (INTERRUPTS, "interrupts off"),
    (SCHEDULER, "no call of the scheduler"),
    (PREFERRED, "another thread preferred"),
    (THREADS, "threads"),
];

/// Deeper stacks are cut: viewers draw no more.
const DEEPEST: usize = 512;

/// An event of the Trace Event Format, times in us.
#[derive(Debug, Serialize)]
struct TraceEvent<'a> {
    ph: &'static str,
    pid: usize,
    tid: u32,
    ts: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Value>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Trace<'a> {
    display_time_unit: &'static str,
    trace_events: Vec<TraceEvent<'a>>,
}

/// The samples as a JSON object: each a process, whose time begins at the release. Of what began
/// before it the tracks have the part after it, and `args.from_ns` when it began, since Perfetto
/// drops events with negative times.
#[must_use]
pub fn perfetto(explanation: &Explanation) -> String {
    let samples = || {
        explanation.cells.iter().flat_map(|cell| {
            cell.samples.iter().enumerate().map(move |(rank, sample)| {
                let key = words::key_name(&cell.key);
                let title = format!("{key} · {}", rank_name(cell, rank));
                (sample, Names::of(&sample.functions), threads::slices(sample), title)
            })
        })
    };
    let all: Vec<_> = samples().collect();
    let mut events = Vec::new();
    for (number, (sample, names, turns, title)) in all.iter().enumerate() {
        let pid = number + 1;
        describe(&mut events, pid, title, !turns.is_empty());
        legs(&mut events, pid, sample);
        functions(&mut events, pid, sample, names);
        events.extend(sample.held.iter().map(|held| hold(pid, held)));
        events.extend(turns.iter().map(|(from, to, thread)| TraceEvent {
            ph: "X",
            pid,
            tid: THREADS,
            ts: us(*from),
            name: Some(thread),
            dur: Some(us(to - from)),
            args: None,
        }));
    }
    let trace = Trace { display_time_unit: "ns", trace_events: events };
    // Neither a map with other keys than texts nor a writer that fails is in it.
    serde_json::to_string(&trace).unwrap_or_default()
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

/// The names of the process and of its tracks.
fn describe<'a>(events: &mut Vec<TraceEvent<'a>>, pid: usize, title: &str, has_threads: bool) {
    let mut meta = |tid: u32, name: &'a str, args: Value| {
        let args = Some(args);
        events.push(TraceEvent { ph: "M", pid, tid, ts: 0.0, name: Some(name), dur: None, args });
    };
    meta(0, "process_name", json!({ "name": title }));
    meta(0, "process_sort_index", json!({ "sort_index": pid }));
    for (tid, name) in TRACKS.into_iter().filter(|(tid, _)| has_threads || *tid != THREADS) {
        meta(tid, "thread_name", json!({ "name": name }));
        meta(tid, "thread_sort_index", json!({ "sort_index": tid }));
    }
}

fn legs(events: &mut Vec<TraceEvent<'_>>, pid: usize, sample: &Explained) {
    events.extend(sections(sample).iter().map(|section| TraceEvent {
        ph: "X",
        pid,
        tid: LEGS,
        ts: us(section.from),
        name: Some(words::leg_name(section.until)),
        dur: Some(us(section.ns())),
        args: None,
    }));
}

/// A pair of events for every function while it stays on the stack.
fn functions<'a>(
    events: &mut Vec<TraceEvent<'a>>,
    pid: usize,
    sample: &Explained,
    names: &'a Names,
) {
    let event = |ph: &'static str, ns: u64, name: Option<&'a str>| TraceEvent {
        ph,
        pid,
        tid: FUNCTIONS,
        ts: us(ns),
        name,
        dur: None,
        args: None,
    };
    let switch = switch_ns(sample);
    let mut open: &[u32] = &[];
    let (mut before, mut now) = (0, 0);
    for stretch in stretches(sample, 0, u64::MAX) {
        let stack = &stretch.stack[..stretch.stack.len().min(DEEPEST)];
        let same = open.iter().zip(stack).take_while(|(one, other)| one == other).count();
        let kept = if (before + 1..=stretch.from).contains(&switch) { 0 } else { same };
        events.extend(open[kept..].iter().map(|_| event("E", stretch.from, None)));
        let begun = stack[kept..].iter().map(|number| names.get(*number));
        events.extend(begun.map(|name| event("B", stretch.from, Some(name))));
        (open, before, now) = (stack, stretch.from, stretch.to);
    }
    events.extend(open.iter().map(|_| event("E", now, None)));
}

fn hold<'a>(pid: usize, held: &Held) -> TraceEvent<'a> {
    let tid = match held.how {
        Hold::Interrupts => INTERRUPTS,
        Hold::Scheduler => SCHEDULER,
        Hold::Preferred => PREFERRED,
    };
    let begin = held.from_ns.map_or(0, |ns| u64::try_from(ns).unwrap_or(0));
    let end = u64::try_from(held.to_ns).unwrap_or(0).max(begin);
    TraceEvent {
        ph: "X",
        pid,
        tid,
        ts: us(begin),
        name: Some(words::hold_name(held.how)),
        dur: Some(us(end - begin)),
        args: Some(json!({
            "from_ns": held.from_ns,
            "to_ns": held.to_ns,
            "began_in": function_name(&held.began_in),
            "ended_in": function_name(&held.ended_in),
        })),
    }
}
