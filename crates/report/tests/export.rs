//! Exported data: every format has the same rows, and nothing is lost.

#[path = "common/mod.rs"]
mod common;

use std::collections::BTreeMap;

use common::costed::{costed, lacking};
use common::phased::phased;
use common::*;
use punctual_core::block::Outlier;
use punctual_core::run::LoadedRun;
use punctual_core::schema::{Unit, What};
use punctual_report::export::*;
use serde_json::Value;

const ALL: [Exported; 7] = [
    Exported::Histogram,
    Exported::Timeline,
    Exported::Phases,
    Exported::Worst,
    Exported::Load,
    Exported::Intervals,
    Exported::Costs,
];

fn written(run: &LoadedRun, what: Exported, choice: &Choice, format: Format) -> String {
    render(blocks(run, what, choice), format).collect()
}

fn rows(run: &LoadedRun, what: Exported, choice: &Choice) -> Vec<Value> {
    let text = written(run, what, choice, Format::Json);
    match serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")) {
        Value::Array(rows) => rows,
        other => panic!("not an array: {other}"),
    }
}

fn sum(rows: &[Value], column: &str) -> u64 {
    rows.iter().map(|row| row[column].as_u64().unwrap()).sum()
}

fn only(cell: usize) -> Choice {
    Choice { cell: Some(cell), series: None }
}

fn named(series: &str) -> Choice {
    Choice { cell: None, series: Some(series.to_owned()) }
}

#[test]
fn tables_account_for_every_release_of_every_thread() {
    let run = standard("6.1.0-rt", "rt", 1.0);
    for (number, cell) in (1..).zip(&run.run.cells) {
        let latency = cell.latency().unwrap();
        if latency.threads.is_empty() {
            assert!(rows(&run, Exported::Timeline, &only(number)).is_empty(), "{}", cell.key);
            continue;
        }
        for (what, samples) in [(Exported::Histogram, "samples"), (Exported::Timeline, "samples")] {
            let rows = rows(&run, what, &only(number));
            for thread in &latency.threads {
                let mut of: Vec<Value> = rows.clone();
                of.retain(|row| row["thread"] == thread.thread);
                assert_eq!(sum(&of, samples), thread.stats.samples, "{}: {what:?}", cell.key);
                assert_eq!(sum(&of, "missed"), thread.stats.missed, "{}: {what:?}", cell.key);
                assert!(of.iter().all(|row| row["cpus"] == thread.placement.affinity));
                assert!(of.iter().all(|row| row["key"] == cell.key && row["cell"] == number));
                let worst = if what == Exported::Histogram { "high_ns" } else { "max_ns" };
                let max = of.iter().filter_map(|row| row[worst].as_i64()).max();
                assert!(max >= thread.stats.max, "{}: {max:?}", cell.key);
            }
        }
        let worst = rows(&run, Exported::Worst, &only(number));
        let first = worst.iter().find(|row| row["thread"] == 0).unwrap();
        assert_eq!(first["latency_ns"].as_i64(), latency.threads[0].stats.max, "{}", cell.key);
    }
    let loads = rows(&run, Exported::Load, &Choice::default());
    for (number, cell) in (1..).zip(&run.run.cells) {
        for work in &cell.load_work {
            for counter in &work.counters {
                let mut of = loads.clone();
                of.retain(|row| row["cell"] == number && row["load"] == work.load);
                assert_eq!(sum(&of, "count"), counter.total, "{}: {}", cell.key, work.load);
            }
        }
    }
    assert!(!loads.is_empty());
}

/// A field of CSV, as JSON would have it.
fn of_csv(field: &str) -> Value {
    match field {
        "" => Value::Null,
        field => serde_json::from_str(field).unwrap_or_else(|_| field.into()),
    }
}

/// Splits a line at its commas outside quotes.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut is_quoted = false;
    for c in line.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            c => fields.last_mut().unwrap().push(c),
        }
    }
    fields
}

#[test]
fn exported_data_say_that_they_are_made_up() {
    let measured = one("wakeup", "none", 1, None);
    let made_up = made_up(measured.clone());
    for what in [Exported::Histogram, Exported::Timeline, Exported::Worst] {
        let of = |run: &LoadedRun, format| written(run, what, &Choice::default(), format);
        assert!(
            rows(&made_up, what, &Choice::default()).iter().all(|r| r["origin"] == "simulated")
        );
        assert!(rows(&measured, what, &Choice::default()).iter().all(|r| r["origin"] == "native"));
        assert!(of(&made_up, Format::Csv).lines().skip(1).all(|l| l.contains(",simulated,")));
        assert!(of(&made_up, Format::Text).contains("# SIMULATED"));
        assert!(!of(&measured, Format::Text).contains("SIMULATED"));
    }
    // What reads cyclictest's histograms skips lines that begin with #.
    let layout = CyclictestLayout::default();
    let [of_made_up, of_measured] =
        [&made_up, &measured].map(|run| cyclictest(run, &Choice::default(), layout));
    let (comment, rest) = of_made_up.split_once('\n').unwrap();
    assert!(comment.starts_with("# SIMULATED"), "{comment}");
    assert_eq!(rest, of_measured);
}

#[test]
fn every_format_has_the_same_rows() {
    let under_load = standard("6.1.0", "none", 1.0);
    let map = mapped(2, 3);
    let changing = phased(&[("none", 5), ("hackbench", 5)], 20, Some(1_000_000));
    let mut run = all_kinds("6.1.0", "none", 1.0);
    run.run.cells[0].key = "wakeup:threads=2,interval=\"1ms\" @ none @ 9s".to_owned();
    run.run.cells[0].epoch_ns = Some(77);
    for what in ALL {
        let run = match what {
            Exported::Load => &under_load,
            Exported::Intervals => &map,
            Exported::Phases => &changing,
            _ => &run,
        };
        let json = rows(run, what, &Choice::default());
        assert!(!json.is_empty(), "{what:?}");
        let csv = written(run, what, &Choice::default(), Format::Csv);
        let mut lines = csv.lines();
        let header = fields(lines.next().unwrap());
        let mut count = 0;
        for (line, row) in lines.zip(&json) {
            // The quotes in the key are doubled in CSV.
            let fields = fields(&line.replace("\"\"", ""));
            assert_eq!(fields.len(), header.len(), "{line}");
            assert_eq!(row.as_object().unwrap().len(), header.len(), "{row}");
            for (name, field) in header.iter().zip(&fields) {
                match name.as_str() {
                    "key" | "origin" | "cpus" | "load" | "counter" | "actor" => {
                        assert_eq!(row[name].as_str().unwrap().replace('"', ""), *field);
                    }
                    // CSV has one digit after the point.
                    name if name.starts_with("avg") => {
                        let near = row[name].as_f64().unwrap() - field.parse::<f64>().unwrap();
                        assert!(near.abs() <= 0.05 + 1e-9, "{line}: {row}");
                    }
                    // CSV has 120 for 120.0.
                    "value" | "low" | "high" | "spread" | "instructions" => {
                        assert_eq!(of_csv(field).as_f64(), row[name].as_f64(), "{name}: {line}");
                    }
                    name => assert_eq!(of_csv(field), row[name], "{name}: {line}"),
                }
            }
            count += 1;
        }
        assert_eq!((count, csv.lines().count()), (json.len(), json.len() + 1), "{what:?}");

        let text = written(run, what, &Choice::default(), Format::Text);
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let columns =
            text.lines().filter(|line| line.contains('\t')).map(|l| l.split('\t').count());
        assert_eq!(lines.count(), json.len(), "{what:?}");
        assert!(columns.clone().min() == columns.max(), "{what:?}: a block of other columns");
        // gnuplot separates columns at any white space.
        let words = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        for line in words {
            assert_eq!(line.split_whitespace().count(), line.split('\t').count(), "{line}");
        }
    }
    let worst = rows(&run, Exported::Worst, &only(1));
    let (at, monotonic) = (&worst[0]["at_ns"], &worst[0]["monotonic_ns"]);
    assert_eq!(at.as_u64().unwrap() + 77, monotonic.as_u64().unwrap());
}

#[test]
fn every_cost_has_a_row_with_all_of_its_digits() {
    let mut run = lacking(costed("6.1.0", "none", |_| 1.0 / 3.0, 0.01), "lat.sh", "no /bin/sh");
    for cell in &mut run.run.cells {
        let What::Cost(cost) = &mut cell.what else { continue };
        let is_time = cost.unit == Unit::Us;
        cost.instructions = cost.value.filter(|_| is_time).map(|us| us * 250.0);
        cost.note = cell.reason.clone();
    }
    let table = rows(&run, Exported::Costs, &Choice::default());
    assert_eq!(table.len(), run.run.cells.len());
    for (number, (row, cell)) in (1_u64..).zip(table.iter().zip(&run.run.cells)) {
        let cost = cell.cost().unwrap();
        let recorded = serde_json::to_value(cost).unwrap();
        assert_eq!((&row["cell"], &row["key"]), (&number.into(), &cell.key.as_str().into()));
        assert_eq!((&row["origin"], &row["column"]), (&"native".into(), &recorded["column"]));
        assert_eq!(row["repetitions"], cost.repetitions.len());
        assert_eq!(row["instructions"].as_f64(), cost.instructions);
        let same = ["metric", "unit", "better", "value", "low", "high", "spread", "status", "note"];
        for name in same {
            assert_eq!(row[name], recorded[name], "{name}: {row}");
        }
    }
    assert_eq!(rows(&run, Exported::Costs, &only(2))[0]["metric"], "sys.cacheline");
    let text = written(&run, Exported::Costs, &Choice::default(), Format::Text);
    assert!(text.starts_with("# cell\tkey\torigin\tmetric\tcolumn\tunit\tbetter\t"), "{text}");
    assert_eq!(text.trim_end().lines().count(), table.len() + 1, "one block of gnuplot");
    let none = one("wakeup", "none", 1, None);
    assert!(rows(&none, Exported::Costs, &Choice::default()).is_empty());
}

#[test]
fn phases_have_the_rows_of_their_seconds() {
    let run = phased(&[("none", 3), ("hackbench", 2), ("copy", 5)], 30, Some(1_000_000));
    let cell = &run.run.cells[0];
    let seconds = rows(&run, Exported::Timeline, &Choice::default());
    let phases = rows(&run, Exported::Phases, &Choice::default());
    let changes = cell.changes.as_ref().filter(|found| found.seconds > 0).expect("changes");
    let found = cell.phases.iter().map(|phase| (phase.load.as_str(), &phase.found));
    let found: Vec<_> = found.chain([("changes", changes)]).collect();
    assert_eq!(phases.len(), found.len() * cell.threads().len());
    for (number, (load, found)) in (1_u64..).zip(found) {
        let phase = if load == "changes" { Value::Null } else { number.into() };
        let of = |table: &[Value]| {
            let own = table.iter().filter(|row| row["phase"] == phase);
            own.cloned().collect::<Vec<_>>()
        };
        let (seconds, own) = (of(&seconds), of(&phases));
        assert!(own.iter().all(|row| row["load"] == load && row["seconds"] == found.seconds));
        assert_eq!(seconds.len() as u64, found.seconds * own.len() as u64, "{load}");
        for column in ["samples", "missed", "early", "above_deadline"] {
            assert_eq!(sum(&seconds, column), sum(&own, column), "{load}: {column}");
        }
        assert_eq!(sum(&own, "samples"), found.stats.samples);
        let max = own.iter().filter_map(|row| row["max_ns"].as_i64()).max();
        assert_eq!(max, found.stats.max);
        let worst = own.iter().find(|row| row["max_ns"].as_i64() == max).unwrap();
        assert_eq!(worst["max_at_ns"].as_u64(), found.max_at_ns);
        assert!(own.iter().all(|row| row["all_p999_ns"].as_i64() == found.stats.p999));
    }
    let plain = one("wakeup", "none", 1, None);
    assert!(rows(&plain, Exported::Phases, &Choice::default()).is_empty());
    let seconds = rows(&plain, Exported::Timeline, &Choice::default());
    assert!(seconds.iter().all(|row| row["phase"].is_null()));
}

#[test]
fn the_header_has_the_unit_of_the_series() {
    let run = all_kinds("6.1.0", "none", 1.0);
    assert_eq!(series_names(&run), ["latency", "interrupt", "queue"]);
    for (series, unit) in [("latency", "ns"), ("interrupt", "ns"), ("queue", "packets")] {
        for (what, columns) in [
            (Exported::Histogram, &["low", "high"][..]),
            (Exported::Timeline, &["min", "avg", "max"]),
            (Exported::Worst, &["latency"]),
        ] {
            let rows = rows(&run, what, &named(series));
            if what == Exported::Worst && series != "latency" {
                // Only the primary series of these runs has kept samples.
                assert!(rows.is_empty());
                continue;
            }
            assert!(!rows.is_empty(), "{series}: {what:?}");
            for column in columns {
                assert!(!rows[0][format!("{column}_{unit}")].is_null(), "{series}: {}", rows[0]);
            }
        }
    }
    assert!(rows(&run, Exported::Histogram, &named("none")).is_empty());
}

#[test]
fn a_cell_that_was_cut_short_has_the_bins_of_its_seconds() {
    let mut run = standard("6.1.0-rt", "rt", 1.0);
    assert!(cut_short(&run, &Choice::default()).is_empty());
    let whole = rows(&run, Exported::Histogram, &only(1));
    for series in primaries(&mut run.cells[..1]) {
        series.histogram = None;
        series.behind = None;
        series.outliers = Vec::new();
    }
    assert_eq!(cut_short(&run, &Choice::default()), [1]);
    assert!(cut_short(&run, &only(2)).is_empty());
    let coarse = rows(&run, Exported::Histogram, &only(1));
    assert_eq!(sum(&coarse, "samples"), sum(&whole, "samples"));
    assert!(coarse.len() < whole.len());
    assert!(rows(&run, Exported::Worst, &only(1)).is_empty());
    assert!(!rows(&run, Exported::Timeline, &only(1)).is_empty());
}

/// Numbers and names of a damaged or hostile directory: rows that fit, and no escape sequence.
#[test]
fn foreign_text_and_missing_threads_do_no_harm() {
    let mut run = standard("6.1.0", "none", 1.0);
    run.run.cells[0].key = "wake\u{1b}[2J\nup".to_owned();
    for work in &mut run.run.cells[1].load_work {
        work.load = "tab\t\"quote\" \u{7}bell".to_owned();
    }
    run.cells[1].threads.clear();
    run.cells[0].work.push((1, 4_000_000_000, vec![1]));
    run.cells[0].threads[0]
        .series_mut(0)
        .outliers
        .push(Outlier { at: u64::MAX, latency: i64::MIN });
    run.run.cells[0].epoch_ns = Some(77);
    for what in ALL {
        for format in [Format::Csv, Format::Text, Format::Json] {
            let text = written(&run, what, &Choice::default(), format);
            let bad = |c: char| c.is_control() && c != '\n' && c != '\t';
            assert!(!text.contains(bad), "{what:?} {format:?}");
        }
    }
    let text = cyclictest(&run, &Choice::default(), CyclictestLayout::default());
    assert!(text.starts_with("# Cell 1: wake\u{fffd}[2J\u{fffd}up\n# Histogram\n"), "{text}");
}

/// `cyclictest -h` of more threads, with the sum of -H, of a run of several cells.
#[test]
fn the_layout_of_cyclictest_has_a_column_per_thread() {
    let run = standard("6.1.0-rt", "rt", 1.0);
    let cells = run.run.cells.iter().filter_map(|cell| cell.latency());
    let cells: Vec<_> = cells.filter(|latency| !latency.threads.is_empty()).collect();
    assert!(cells.len() > 1 && cells.len() < run.run.cells.len(), "one cell was skipped");
    let text = cyclictest(&run, &Choice::default(), CyclictestLayout { rows: Some(50), sum: true });
    let parts: Vec<&str> = text.split("\n\n\n").filter(|part| !part.is_empty()).collect();
    assert_eq!(parts.len(), cells.len());
    for (number, (part, latency)) in (1..).zip(parts.iter().zip(&cells)) {
        assert!(part.starts_with(&format!("# Cell {number}: ")), "{part}");
        let rows = part.lines().filter(|line| !line.starts_with('#'));
        let mut sums = vec![0_u64; latency.threads.len()];
        assert_eq!(rows.clone().count(), 50);
        for (n, row) in rows.enumerate() {
            let fields: Vec<u64> =
                row.split([' ', '\t']).map(|field| field.parse().unwrap()).collect();
            assert_eq!(fields[0], n as u64);
            let threads = &fields[1..=latency.threads.len()];
            threads.iter().zip(&mut sums).for_each(|(count, sum)| *sum += count);
            if threads.len() > 1 {
                assert_eq!(fields[threads.len() + 1], threads.iter().sum::<u64>(), "{row}");
            }
        }
        let line = |title: &str| -> Vec<i64> {
            let start = format!("# {title}:");
            let line = part.lines().find(|line| line.starts_with(&start)).unwrap();
            line[start.len()..].split_whitespace().map(|field| field.parse().unwrap()).collect()
        };
        for (n, thread) in latency.threads.iter().enumerate() {
            let us = |ns: Option<i64>| ns.unwrap() / 1_000;
            assert_eq!(line("Total")[n], i64::try_from(sums[n]).unwrap());
            assert_eq!(line("Min Latencies")[n], us(thread.stats.min));
            assert_eq!(line("Max Latencies")[n], us(thread.stats.max));
            let avg = (thread.stats.avg.unwrap() / 1e3).floor().to_string();
            assert_eq!(line("Avg Latencies")[n].to_string(), avg);
            let overflows = u64::try_from(line("Histogram Overflows")[n]).unwrap();
            assert_eq!(overflows + sums[n], thread.stats.samples);
        }
    }
    let alone = cyclictest(&run, &only(1), CyclictestLayout::default());
    assert!(alone.starts_with("# Histogram\n000000 "), "{alone}");
    assert!(!alone.contains("Early"), "{alone}");
}

/// Length of all intervals by CPU and actor, ns.
fn lengths(run: &LoadedRun) -> BTreeMap<(u64, String), u64> {
    let data = &run.cells[0];
    let mut lengths = BTreeMap::new();
    for one in &data.intervals {
        let name = words(&data.actors[&one.actor]);
        *lengths.entry((u64::from(one.cpu), name)).or_default() += one.to - one.from;
    }
    lengths
}

/// A name with a sign for what cannot be printed.
fn words(name: &str) -> String {
    name.replace(char::is_control, "\u{fffd}")
}

#[test]
fn trace_events_have_every_interval_of_every_actor() {
    let run = mapped(2, 3);
    let text: String = trace_events(&run, &Choice::default()).collect();
    let trace: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(trace["displayTimeUnit"], "ns");
    let events = trace["traceEvents"].as_array().unwrap();
    #[allow(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "rounded ns")]
    let ns = |us: &Value| (us.as_f64().unwrap() * 1e3).round() as u64;
    let mut found = BTreeMap::new();
    let slices: Vec<_> = events.iter().filter(|event| event["ph"] == "X").collect();
    for event in &slices {
        let name = event["name"].as_str().unwrap().to_owned();
        *found.entry((event["tid"].as_u64().unwrap(), name)).or_default() += ns(&event["dur"]);
        assert_eq!(event["pid"], 0);
    }
    assert_eq!(found, lengths(&run));
    let (first, last) = (run.cells[0].intervals[0], run.cells[0].intervals.last().unwrap());
    assert_eq!((ns(&slices[0]["ts"]), ns(&slices.last().unwrap()["ts"])), (first.from, last.from));
    let named = |what: &str| -> Vec<&Value> {
        let meta = events.iter().filter(|event| event["ph"] == "M" && event["name"] == what);
        meta.map(|event| &event["args"]["name"]).collect()
    };
    assert_eq!(named("thread_name"), ["CPU 0", "CPU 1"]);
    assert_eq!(named("process_name").len(), 1);
    assert_eq!(trace_events(&run, &only(2)).count(), 0);
    assert_eq!(trace_events(&one("wakeup", "none", 1, None), &Choice::default()).count(), 0);
}

/// However many intervals there are, they are one table, made piece by piece.
#[test]
fn a_long_map_is_one_table() {
    let run = mapped(2, 3);
    assert!(blocks(&run, Exported::Intervals, &Choice::default()).count() > 4);
    let text = written(&run, Exported::Intervals, &Choice::default(), Format::Text);
    assert_eq!(text.matches("# cpu\tfrom_ns\tto_ns\tactor").count(), 1);
    assert!(text.ends_with("\n\n\n") && !text.trim_end().contains("\n\n"));
}
