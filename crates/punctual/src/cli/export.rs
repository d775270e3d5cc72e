//! The command `export`.

use clap::{Arg, ArgGroup, Command};

use super::RUN_HELP;
use super::run::{flag, value};

/// The most rows that `--rows` takes: latencies of ten seconds.
const ROWS_LIMIT: u64 = 10_000_000;

/// Options that ask for something else than the layout of cyclictest.
const OTHER_LAYOUTS: [&str; 9] =
    ["timeline", "phases", "worst", "load", "intervals", "costs", "csv", "json", "perfetto"];

const EXAMPLES: &str = r#"Examples:
  punctual export last --histogram --text > h.txt
      as `cyclictest -h` prints it: rows of 1 us, a column per thread
  punctual export last --histogram --text --rows 400 --sum
      as `cyclictest -H 400`: later samples are overflows
  punctual export last --timeline --csv --cell 2 > t.csv
  punctual export last --intervals --perfetto > map.json
      for ui.perfetto.dev and chrome://tracing
  gnuplot -p -e 'set logscale y; plot "h.txt" using 1:2 with steps'"#;

const COLUMNS: &str = "\
Columns of --csv and --json: cell (its number, from 1), key, origin (native, or
simulated if the latencies are made up), thread, cpus, and
  --histogram  low and high end of a bin, samples in it, and missed releases
               with that delay
  --timeline   second; samples, missed releases, samples that were early and
               above the deadline; least, mean and largest sample; when the
               largest was taken, after the cell's start; and the phase of the
               load (its number, from 1; empty if the load changed)
  --phases     phase, load (changes: between the phases), seconds; what --timeline
               has, of these seconds; and quantiles over all threads
  --worst      latency; when it was taken, after the cell's start and by
               CLOCK_MONOTONIC
  --load       second, load, counter and count; no thread and cpus
  --intervals  CPU, start and end of the time that an actor had it (after the
               cell's start), and the actor; no thread and cpus
  --costs      metric, column (its published name), unit, better (less or
               more); value (the median), low and high end of its interval,
               repetitions (how many), spread, instructions (of virtual
               boards), status and note; no thread and cpus\n\n\
A column that ends in _ns is in nanoseconds; those of another series end in its unit. Latencies \
of early samples are negative. --text leaves out cell, key, origin, thread and cpus: comments before \
each block name them, and two empty lines end it (gnuplot's index); --costs is one block, with all \
columns. An unknown value \
is empty, NaN or null.\n\n\
Bins are under 0.8 % wide. The rows of --histogram --text are 1 us, and a bin is counted in the \
row of its upper end. Early samples have no row there: a comment counts them.";

/// The command `export`.
pub fn command() -> Command {
    Command::new("export")
        .about("Print the data of a run for gnuplot, spreadsheets and programs")
        // Its own would not fit a line.
        .override_usage("punctual export <--WHAT> [OPTIONS] <RUN>")
        .after_help(format!("{EXAMPLES}\n\n{COLUMNS}"))
        .arg(super::runs(RUN_HELP, 1).num_args(1))
        .next_help_heading("What")
        .arg(flag("histogram", "Counts of latencies, by cell and thread"))
        .arg(flag("timeline", "Every second, by cell and thread"))
        .arg(flag("phases", "Every phase of a load that changes on a schedule, by cell and thread"))
        .arg(flag("worst", "The worst samples by cell and thread, and those kept by --keep-above"))
        .arg(flag("load", "The work of the loads and the use of the CPUs, every second"))
        .arg(flag(
            "intervals",
            "Who had which CPU, and when, of probes that find it out (cpumap, noise)",
        ))
        .arg(flag("costs", "What each cost came to, a row for each cell"))
        .group(
            ArgGroup::new("what")
                .args(["histogram", "timeline", "phases", "worst", "load", "intervals", "costs"])
                .required(true),
        )
        .next_help_heading("How")
        .arg(flag("csv", "Comma-separated values with a header"))
        .arg(flag(
            "text",
            "Columns for gnuplot; of --histogram, the layout of cyclictest [default]",
        ))
        .arg(flag("json", "An array of objects, one per row"))
        .arg(flag("perfetto", "Trace events (JSON) of --intervals").requires("intervals"))
        .group(ArgGroup::new("format").args(["csv", "text", "json", "perfetto"]))
        .next_help_heading("Which part")
        .arg(
            value("cell", "N", "Only this cell, by its number from 1 [default: all]")
                .value_parser(clap::value_parser!(u32).range(1..)),
        )
        .arg(
            value("series", "NAME", "Another series of the probe than the one it is judged by")
                .conflicts_with_all(["load", "intervals", "costs"]),
        )
        .args(cyclictest())
}

/// Options of the layout of cyclictest.
fn cyclictest() -> [Arg; 2] {
    let rows = "Rows of --histogram --text, as for `cyclictest -h N`: latencies of N us and more \
                are overflows [default: up to the largest latency, at most 10000]";
    [
        value("rows", "N", rows)
            .value_parser(clap::value_parser!(u64).range(1..=ROWS_LIMIT))
            .conflicts_with_all(OTHER_LAYOUTS),
        flag(
            "sum",
            "Add a column with the sum of all threads to --histogram --text, as -H of cyclictest",
        )
        .conflicts_with_all(OTHER_LAYOUTS),
    ]
}
