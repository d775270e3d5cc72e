//! How runs, cells, threads and numbers are called in every output.

use std::borrow::Cow;
use std::collections::BTreeMap;

use punctual_core::compare::{Comparison, Side, Span};
use punctual_core::preemption::Model;
use punctual_core::run::LoadedRun;
use punctual_core::schema::{Cell, CellState, LoadWork, Outcome, Run, RunState, Thread};
use punctual_core::units::{Civil, SECOND_NS, civil, exact_duration, grouped, human_ns};

/// Text from a board without control characters: names and command lines come
/// from elsewhere, and must neither steer a terminal nor break XML.
#[must_use]
pub fn clean(text: &str) -> Cow<'_, str> {
    let bad = |c: char| c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}');
    if text.contains(bad) { Cow::Owned(text.replace(bad, "\u{fffd}")) } else { Cow::Borrowed(text) }
}

/// The probe of a cell with the parameters that are not its defaults.
#[must_use]
pub fn probe_name(cell: &Cell) -> String {
    let name = cell.key.split(" @ ").next().unwrap_or_default();
    clean(if name.is_empty() { &cell.probe } else { name }).into_owned()
}

/// A cell in a few words: `wakeup · hackbench`.
#[must_use]
pub fn cell_name(cell: &Cell) -> String {
    format!("{} · {}", probe_name(cell), clean(&cell.load))
}

/// The CPU of a thread, or the list of those that it may run on.
#[must_use]
pub fn cpu_name(thread: &Thread) -> String {
    thread.cpu.map_or_else(|| clean(&thread.affinity).into_owned(), |cpu| cpu.to_string())
}

/// The preemption model as kernel developers write it.
#[must_use]
pub fn preemption_name(model: &str) -> Cow<'_, str> {
    match model.parse().ok().and_then(Model::option) {
        Some(option) => Cow::Borrowed(option),
        None if ["", Model::Unknown.as_str()].contains(&model) => {
            Cow::Borrowed("preemption model unknown")
        }
        None => clean(model),
    }
}

/// Board, kernel, CPUs, clock source and what else belongs at the head.
#[must_use]
pub fn headline(run: &Run) -> Vec<String> {
    let mut parts = vec![
        clean(&run.board.name).into_owned(),
        format!("Linux {} {}", clean(&run.kernel.release), preemption_name(&run.kernel.preemption)),
        format!(
            "{} {} {}",
            run.board.cpus,
            if run.board.cpus == 1 { "CPU" } else { "CPUs" },
            clean(&run.board.cpu_model)
        )
        .trim_end()
        .to_owned(),
    ];
    if let Some(source) = run.facts.get("clock").and_then(|clock| clock.get("source"))
        && let Some(source) = source.as_str()
    {
        parts.push(clean(source).into_owned());
    }
    if let Some(hypervisor) = &run.board.hypervisor {
        parts.push(format!("virtual machine ({})", clean(hypervisor)));
    } else if run.is_virtual {
        parts.push("virtual machine".to_owned());
    }
    if !run.privileged {
        parts.push("not real-time".to_owned());
    }
    parts
}

/// Short names that tell the runs apart: the kernel where that is enough, else
/// board and kernel, else the run's id.
#[must_use]
pub fn run_names(runs: &[LoadedRun]) -> Vec<String> {
    let kernel = |run: &Run| clean(&run.kernel.release).into_owned();
    let board = |run: &Run| format!("{} {}", clean(&run.board.name), clean(&run.kernel.release));
    let id = |run: &Run| clean(&run.run_id).into_owned();
    let ways: [&dyn Fn(&Run) -> String; 3] = [&kernel, &board, &id];
    for way in ways {
        let names: Vec<_> = runs.iter().map(|run| way(&run.run)).collect();
        let mut sorted = names.clone();
        sorted.sort();
        sorted.dedup();
        if sorted.len() == names.len() {
            return names;
        }
    }
    runs.iter().enumerate().map(|(i, run)| format!("{} ({})", id(&run.run), i + 1)).collect()
}

/// Short names that tell kernels apart: the preemption model, with the release
/// where two share a model, and a number where they share both.
#[must_use]
pub fn kernel_names(groups: &[Side]) -> Vec<String> {
    let model = |group: &Side| match group.preemption.as_str() {
        "" => "unknown".to_owned(),
        model => clean(model).into_owned(),
    };
    let both = |group: &Side| format!("{} {}", model(group), clean(&group.kernel));
    let shared = |name: &str, of: &dyn Fn(&Side) -> String| {
        groups.iter().filter(|group| of(group) == name).count() > 1
    };
    let name = |(i, group): (usize, &Side)| match (model(group), both(group)) {
        (model_alone, _) if !shared(&model_alone, &model) => model_alone,
        (_, with_release) if !shared(&with_release, &both) => with_release,
        (_, with_release) => format!("{with_release} ({})", i + 1),
    };
    groups.iter().enumerate().map(name).collect()
}

/// `8 runs`.
#[must_use]
pub fn runs(count: usize) -> String {
    if count == 1 { "1 run".to_owned() } else { format!("{count} runs") }
}

/// How many runs of a kernel ended how, the worst first: `3 FAIL`, `5 PASS`.
#[must_use]
pub fn outcomes(comparison: &Comparison, group: &Side) -> Vec<(Outcome, String)> {
    let mut counts: BTreeMap<Outcome, usize> = BTreeMap::new();
    for run in group.runs.iter().filter_map(|run| comparison.runs.get(*run)) {
        *counts.entry(run.outcome).or_default() += 1;
    }
    let text = |(of, count): (Outcome, usize)| match of {
        Outcome::None => (of, outcome(of).to_owned()),
        _ => (of, format!("{count} {}", outcome(of))),
    };
    counts.into_iter().rev().map(text).collect()
}

/// How the tables of replicates are to be read.
pub const SPREAD: &str = "Over the runs of each kernel: median (lowest to highest), or the median \
    alone. The median of an even number of runs is the mean of the middle two. Ratio: of the \
    medians, to the first kernel.";

/// Lowest, median and highest of a quantity over runs, ns.
pub type Ends = Option<[f64; 3]>;

/// The ends of a span of integers.
#[must_use]
pub fn ends(span: Option<Span<i64>>) -> Ends {
    span.map(|span| [span.lowest as f64, span.median, span.highest as f64])
}

/// The ends of a span of means.
#[must_use]
pub fn mean_ends(span: Option<Span<f64>>) -> Ends {
    span.map(|span| [span.lowest, span.median, span.highest])
}

/// `566.0 (541.0 to 854.0) us`: in one unit where that leaves the lowest its
/// digits, and the value alone where all runs agree.
#[must_use]
pub fn span(ends: Ends) -> String {
    let Some([lowest, median, highest]) = ends else {
        return "-".to_owned();
    };
    let (unit, name, digits) = match highest.abs() {
        v if v < 1e3 => (1.0, "ns", 1),
        v if v < 1e6 => (1e3, "us", 1),
        v if v < 1e9 => (1e6, "ms", 3),
        _ => (1e9, "s", 3),
    };
    if lowest == highest {
        return mean_ns(median);
    }
    if lowest < unit / 10.0 && unit > 1.0 {
        return format!("{} ({} to {})", mean_ns(median), mean_ns(lowest), mean_ns(highest));
    }
    let text = |ns: f64| format!("{:.digits$}", ns / unit);
    format!("{} ({} to {}) {name}", text(median), text(lowest), text(highest))
}

/// What is to be said of a run that did not end as planned, or was not measured here.
#[must_use]
pub fn run_notes(loaded: &LoadedRun) -> Vec<String> {
    let run = &loaded.run;
    let mut notes = Vec::new();
    match run.state {
        RunState::Complete => {}
        RunState::Running => {
            let what = match run.board.lab {
                Some(_) => "its guest failed or was ended (console.log is in the run directory)",
                None => "punctual was killed before the run ended",
            };
            notes.push(format!("cut short: {what}; what was recorded up to then is below"));
        }
        RunState::Interrupted => notes.push(
            "interrupted: the plan was not executed to its end; what was measured counts"
                .to_owned(),
        ),
        RunState::Failed => {
            notes.push("failed: an error ended the run; what was measured counts".to_owned());
        }
    }
    if run.origin == punctual_core::schema::Origin::Imported {
        notes.push("imported: measured by another tool, not by punctual".to_owned());
    }
    notes.extend(loaded.damage.iter().map(|text| clean(text).into_owned()));
    notes
}

/// What is to be said of a cell beside its numbers: how it ended, what was
/// missed, early or left out.
#[must_use]
pub fn cell_notes(cell: &Cell) -> Vec<String> {
    let mut notes = Vec::new();
    let reason = cell.reason.as_deref().map(clean);
    let because = reason.as_deref().map_or_else(String::new, |reason| format!(": {reason}"));
    match cell.state {
        CellState::Complete | CellState::Pending | CellState::Skipped => {}
        CellState::Running => notes.push("cut short while it was measured".to_owned()),
        CellState::Interrupted => notes.push(format!("ended early{because}")),
        CellState::Failed => notes.push(format!("ended by an error{because}")),
        CellState::Recovered => notes.push(
            "recovered from its blocks after a crash: quantiles are within 25 %, \
             all else is exact"
                .to_owned(),
        ),
    }
    let stats = &cell.stats;
    if stats.missed > 0 {
        let corrected = stats.corrected.p999_ns.map_or_else(String::new, |p999| {
            format!("; counted as late as they were, p99.9 is {}", human_ns(p999))
        });
        notes.push(format!(
            "{} of {} releases missed{corrected}",
            grouped(stats.missed),
            grouped(stats.scheduled)
        ));
    }
    if stats.early > 0 {
        let least = stats.min_ns.map_or_else(String::new, |min| {
            format!(", the earliest by {}", human_ns(min.saturating_neg()))
        });
        notes.push(format!("{} samples early{least}", grouped(stats.early)));
    }
    for thread in &cell.threads {
        if let Some(changed) = &thread.changed {
            notes.push(format!("thread {}: {}", thread.thread, clean(changed)));
        }
    }
    notes.extend(cell.conditions.iter().map(|c| clean(&c.text).into_owned()));
    notes
}

/// Why a cell has no numbers; none where it has some.
#[must_use]
pub fn absence(cell: &Cell) -> Option<String> {
    let reason = || {
        let reason = cell.reason.as_deref().unwrap_or("no reason recorded");
        clean(reason).into_owned()
    };
    match cell.state {
        CellState::Skipped => Some(format!("SKIPPED: {}", reason())),
        CellState::Pending => Some("not started".to_owned()),
        CellState::Failed if cell.stats.samples == 0 => Some(format!("no samples: {}", reason())),
        _ if cell.stats.samples == 0 => Some("no samples".to_owned()),
        _ => None,
    }
}

/// What a part of the load did: `hackbench 41.2 MB/s, 512 forks/s`.
#[must_use]
pub fn work(part: &LoadWork) -> String {
    let rates: Vec<_> =
        part.counters.iter().map(|counter| rate(&counter.name, counter.per_second)).collect();
    let mut text = format!("{} {}", clean(&part.load), rates.join(", "));
    if part.idle_seconds > 0 {
        text.push_str(&format!(", idle for {} s", grouped(part.idle_seconds)));
    }
    if part.restarts > 0 {
        text.push_str(&format!(", restarted {} times", grouped(part.restarts)));
    }
    if let Some(trouble) = &part.trouble {
        text.push_str(&format!(" ({})", clean(trouble)));
    }
    text
}

/// A rate with three significant digits: `41.2 MB/s`, `1.20 k messages/s`.
#[must_use]
pub fn rate(name: &str, per_second: f64) -> String {
    let (value, prefix) = match per_second.abs() {
        v if v >= 1e9 => (per_second / 1e9, "G"),
        v if v >= 1e6 => (per_second / 1e6, "M"),
        v if v >= 1e4 => (per_second / 1e3, "k"),
        _ => (per_second, ""),
    };
    let digits = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    };
    if name == "bytes" {
        format!("{value:.digits$} {prefix}B/s")
    } else {
        let gap = if prefix.is_empty() { "" } else { " " };
        format!("{value:.digits$} {prefix}{gap}{}/s", clean(name))
    }
}

/// A mean or a deviation; below a microsecond with a tenth of a nanosecond.
#[must_use]
#[allow(
    clippy::cast_possible_truncation,
    reason = "a mean of i64 values fits i64, and `as` saturates"
)]
pub fn mean_ns(ns: f64) -> String {
    if ns.abs() < 1_000.0 { format!("{ns:.1} ns") } else { human_ns(ns.round() as i64) }
}

/// An instant of a cell: `4.218 s after the start`.
#[must_use]
pub fn instant(ns: u64) -> String {
    let seconds = ns / SECOND_NS;
    if seconds < 60 {
        return human_ns(i64::try_from(ns).unwrap_or(i64::MAX));
    }
    let (h, m, s) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let ms = ns % SECOND_NS / 1_000_000;
    if h > 0 {
        format!("{h} h {m:02} min {s:02}.{ms:03} s")
    } else {
        format!("{m} min {s:02}.{ms:03} s")
    }
}

/// A duration in words where it is a whole number of its unit: `10 s`, `24 h`.
#[must_use]
pub fn duration(ns: u64) -> String {
    let text = exact_duration(ns);
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(0);
    let (number, unit) = text.split_at(split);
    if number.len() > 4 {
        return instant(ns);
    }
    format!("{number} {unit}")
}

/// The outcome as it is printed; nothing was judged without a deadline.
#[must_use]
pub fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::None => "NO DEADLINE",
        Outcome::Pass => "PASS",
        Outcome::Skipped => "SKIPPED",
        Outcome::Inconclusive => "INCONCLUSIVE",
        Outcome::Fail => "FAIL",
    }
}

/// Where the largest latency of a run was seen, in words.
#[must_use]
pub fn worst(run: &Run) -> Option<String> {
    let (cell, max) = run
        .cells
        .iter()
        .filter(|cell| cell.kind != "cost")
        .filter_map(|cell| cell.stats.max_ns.map(|max| (cell, max)))
        .max_by_key(|(_, max)| *max)?;
    let mut text =
        format!("worst {}: {} under {}", human_ns(max), probe_name(cell), clean(&cell.load));
    let thread = cell.threads.iter().find(|t| t.stats.max_ns == Some(max));
    if let Some(thread) = thread {
        text.push_str(&format!(", CPU {}", cpu_name(thread)));
        if let Some(at) = thread.max_at_ns {
            text.push_str(&format!(", {} after the start of the cell", instant(at)));
        }
    }
    Some(text)
}

/// A letter for a run or a curve: `A` to `Z`, then `A1` to `Z1` and so on.
#[must_use]
pub fn letter(i: usize) -> String {
    let letter = char::from(b'A' + u8::try_from(i % 26).unwrap_or(0));
    if i < 26 { letter.to_string() } else { format!("{letter}{}", i / 26) }
}

/// A ratio with three significant digits from 0.01 to 100; `-` without one.
#[must_use]
pub fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or_else(
        || "-".to_owned(),
        |ratio| match ratio {
            r if r >= 100.0 => format!("{r:.0}"),
            r if r >= 10.0 => format!("{r:.1}"),
            r if r >= 1.0 => format!("{r:.2}"),
            r => format!("{r:.3}"),
        },
    )
}

/// A time since 1970 as `2026-11-20 17:00:03 UTC`; none where it was not recorded.
#[must_use]
pub fn utc(realtime_ns: u64) -> Option<String> {
    if realtime_ns == 0 {
        return None;
    }
    let Civil { year, month, day, hour, minute, second } = civil(realtime_ns);
    Some(format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_follow_the_calendar() {
        // From `date -u -d @N`.
        for (seconds, text) in [
            (1, "1970-01-01 00:00:01 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_795_194_003, "2026-11-20 17:00:03 UTC"),
            (4_107_542_399, "2100-02-28 23:59:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(utc(seconds * SECOND_NS).as_deref(), Some(text));
        }
        assert_eq!(utc(0), None);
    }

    #[test]
    fn kernels_are_named_by_their_model_first() {
        let side = |preemption: &str, kernel: &str| Side {
            kernel: kernel.to_owned(),
            preemption: preemption.to_owned(),
            runs: Vec::new(),
        };
        let names = |sides: &[(&str, &str)]| {
            kernel_names(&sides.iter().map(|(p, k)| side(p, k)).collect::<Vec<_>>())
        };
        assert_eq!(
            names(&[("none", "6.1"), ("rt", "6.1"), ("", "6.1")]),
            ["none", "rt", "unknown"]
        );
        assert_eq!(
            names(&[("rt", "6.1"), ("rt", "6.6"), ("full", "6.6")]),
            ["rt 6.1", "rt 6.6", "full"]
        );
        assert_eq!(names(&[("rt", "6.1"), ("rt", "6.1")]), ["rt 6.1 (1)", "rt 6.1 (2)"]);
    }

    #[test]
    fn spans_have_one_unit_where_it_serves_them() {
        for (ends, text) in [
            ([541e3, 566e3, 854e3], "566.0 (541.0 to 854.0) us"),
            ([905e3, 1.5e6, 12e6], "1.500 (0.905 to 12.000) ms"),
            ([21e3, 1.5e6, 12e6], "1.500 ms (21.0 us to 12.000 ms)"),
            ([-850.0, 20.0, 2_000.0], "20.0 ns (-850.0 ns to 2.0 us)"),
            ([21.5, 22.0, 30.0], "22.0 (21.5 to 30.0) ns"),
            ([23_400.0; 3], "23.4 us"),
        ] {
            assert_eq!(span(Some(ends)), text);
        }
        assert_eq!(span(None), "-");
    }

    #[test]
    fn control_characters_do_not_pass() {
        assert_eq!(clean("a\u{1b}[2Jb\n"), "a\u{fffd}[2Jb\u{fffd}");
        assert!(matches!(clean("µs · ü"), Cow::Borrowed(_)));
    }

    #[test]
    fn rates_have_three_digits() {
        for (name, value, text) in [
            ("bytes", 41_234_567.0, "41.2 MB/s"),
            ("forks", 512.3, "512 forks/s"),
            ("messages", 52_123.0, "52.1 k messages/s"),
            ("files", 0.0, "0.00 files/s"),
        ] {
            assert_eq!(rate(name, value), text);
        }
    }

    #[test]
    fn times_read_well() {
        assert_eq!(instant(4_218_000_000), "4.218 s");
        assert_eq!(instant(125_007_000_000), "2 min 05.007 s");
        assert_eq!(instant(86_399_001_000_000), "23 h 59 min 59.001 s");
        assert_eq!(duration(10 * SECOND_NS), "10 s");
        assert_eq!(duration(86_400 * SECOND_NS), "24 h");
        assert_eq!(duration(1_234_567_890), "1.235 s");
        assert_eq!([0, 25, 26].map(letter), ["A", "Z", "A1"]);
        assert_eq!(
            [0.9, 1.0, 12.34, 127.6].map(|r| ratio(Some(r))),
            ["0.900", "1.00", "12.3", "128"]
        );
    }
}
