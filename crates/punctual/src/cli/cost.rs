//! The command `cost`.

use clap::{Arg, Command};
use punctual_core::units::{SECOND_NS, exact_duration};

use super::args::positive_seconds;
use super::run::{LOADS, flag, how, load_cpus, output, value};

/// Default duration of a cost, ns: most are known well enough before that.
pub const DEFAULT_COST_NS: u64 = SECOND_NS;

const EXAMPLES: &str = r#"Examples:
  punctual cost
      the summary: every column of the table, at most a second each
  punctual cost pipe "2p/64K" --verbose
      two of them, with every repetition
  punctual cost lat bw --load none,hackbench
      two families, idle and under a load
  punctual cost lat.pipe:peer=other ctx:procs=4,kb=32 -D 5s
      metrics with parameters, up to 5 s each
  punctual cost --all --json > costs.json"#;

const EXIT_STATUS: &str = "\
Exit status:
    0  done
    2  usage error, or a metric failed, and the others went on
    4  a metric that was named was SKIPPED: something is missing or forbidden
  130  interrupted; what was measured is kept";

/// The options of `run` that make sense for a cost.
const HOW: [&str; 2] = ["dma-latency", "sync"];

/// Its output, the same.
const OUTPUT: [&str; 8] =
    ["out", "json", "quiet", "no-report", "open", "board-name", "group", "replicate"];

/// The command `cost`.
pub fn command() -> Command {
    let how = how().into_iter().filter(|arg| HOW.contains(&arg.get_id().as_str()));
    let output = output().into_iter().filter(|arg| OUTPUT.contains(&arg.get_id().as_str()));
    Command::new("cost")
        .about("Measure what the kernel costs: system calls, context switches, bandwidths")
        .long_about(
            "Measure what the kernel costs: system calls, context switches, round trips, files and \
             memory, bandwidths.\n\n\
             Each metric is repeated until the median is known to 2 %, or until its time is over. \
             Without a name, the summary is measured: all that has a column in the table. Results \
             are kept in a run directory as those of `punctual run`, which takes the same metrics \
             by their keys and columns.",
        )
        .after_help(format!("{EXAMPLES}\n\n{EXIT_STATUS}"))
        .next_help_heading("What to measure")
        .arg(
            Arg::new("metrics")
                .value_name("METRIC")
                .help(
                    "Metrics: by key (lat.pipe, with parameters: ctx:procs=2,kb=64), family (lat), \
                     column of the table (\"2p/64K\"), or a part of one name only; `punctual list \
                     costs` names them",
                )
                .num_args(0..),
        )
        .arg(
            flag("all", "Measure those metrics too that have no column in the table")
                .conflicts_with("metrics"),
        )
        .arg(value("load", "LIST", LOADS).default_value("none"))
        .arg(load_cpus())
        .arg(
            value("duration", "TIME", "")
                .help(format!(
                    "How long to measure each at most; slow ones are repeated 3 times anyway. A bare \
                     number is in seconds [default: {}]",
                    exact_duration(DEFAULT_COST_NS)
                ))
                .short('D')
                .value_parser(positive_seconds),
        )
        .next_help_heading("How to measure")
        // How long a CPU takes to wake up is a part of what is measured.
        .args(how.map(|arg| match arg.get_id() == "dma-latency" {
            true => arg.default_value("none"),
            false => arg,
        }))
        .next_help_heading("Output")
        .arg(flag("verbose", "Also show every repetition, where threads ran, and how each ended"))
        .args(output)
}
