//! `run.json`: what a run records beside its samples.
//!
//! Minor versions only add keys and readers ignore keys they do not know, so
//! that every field added after 1.0 must carry `#[serde(default)]`. Latencies
//! and durations are integers in nanoseconds, named `_ns`; epochs are strings,
//! since nanoseconds since 1970 pass 2^53.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::plan::Plan;

/// The version written by this tool.
pub const SCHEMA: &str = "1.1";

/// One run: one execution of a plan on one board with one kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Version of this file's form, `major.minor`.
    pub schema: String,
    /// Unique name of the run: UTC time, board, kernel and random bits.
    pub run_id: String,
    /// Whether the run ended, and how.
    pub state: RunState,
    /// Measured by punctual, or imported from another tool's output.
    pub origin: Origin,
    /// Runs that belong together, as the replicates of one experiment.
    #[serde(default)]
    pub group: Option<String>,
    /// Number of this run within its group, from 0.
    #[serde(default)]
    pub replicate: Option<u32>,
    /// Delay added before the first release, ns: what varies between replicates.
    #[serde(default)]
    pub phase_ns: u64,
    /// SHA-256 of the canonical plan, hexadecimal.
    pub plan_hash: String,
    /// The plan as it was executed.
    pub plan: Plan,
    /// The measuring program.
    pub tool: Tool,
    /// The machine that was measured.
    pub board: Board,
    /// Its kernel.
    pub kernel: Kernel,
    /// Whether real-time scheduling and locked memory could be had.
    pub privileged: bool,
    /// Whether the machine is a virtual one.
    #[serde(rename = "virtual")]
    pub is_virtual: bool,
    /// Clocks at the start of the run.
    pub started: TimeBase,
    /// Clocks at its end; absent while it runs and after a SIGKILL.
    #[serde(default)]
    pub ended: Option<TimeBase>,
    /// What makes the numbers suspect.
    pub conditions: Vec<Condition>,
    /// What else a reader needs to judge the numbers, by group: `cpu`, `clock`,
    /// `scheduler`, `memory`, `interrupts`, … See docs/run-format.md.
    pub facts: BTreeMap<String, Value>,
    /// The cells in the order of the plan.
    pub cells: Vec<Cell>,
    /// The worst of the cells' verdicts.
    pub verdict: Verdict,
}

/// How a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// Under way; in a finished directory it says that the run was cut short.
    Running,
    /// The whole plan was executed.
    Complete,
    /// Ended by a signal or a break value; what was measured is kept.
    Interrupted,
    /// Ended by an error of punctual or of the board.
    Failed,
}

/// Where a run's numbers come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// Measured by punctual.
    Native,
    /// Converted from another tool's output.
    Imported,
}

/// The measuring program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// `punctual`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Target triple and libc it was built for.
    pub target: String,
    /// SHA-256 of the executable, hexadecimal; empty where it could not be read.
    #[serde(default)]
    pub sha256: String,
    /// The command line it was started with.
    #[serde(default)]
    pub command: Vec<String>,
}

/// The machine that was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Board {
    /// Host name, or the name given with `--board-name`.
    pub name: String,
    /// `local`, `virtual` (a deterministic virtual board) or `wire`.
    pub kind: String,
    /// SHA-256 over what identifies the hardware; equal for equal boards.
    pub fingerprint: String,
    /// CPU model as the kernel names it.
    pub cpu_model: String,
    /// CPUs online.
    pub cpus: u32,
    /// Hypervisor, where there is one.
    #[serde(default)]
    pub hypervisor: Option<String>,
    /// What the numbers of a virtual board follow from; absent elsewhere.
    #[serde(default)]
    pub lab: Option<Lab>,
}

impl Board {
    /// Whether a run of the same plan gives the same nanoseconds: a virtual
    /// board whose time is counted in instructions.
    #[must_use]
    pub fn is_deterministic(&self) -> bool {
        self.lab.as_ref().is_some_and(|lab| lab.counted)
    }

    /// Whether its latencies mean nothing: a virtual board whose time is the host's.
    #[must_use]
    pub fn is_plumbing(&self) -> bool {
        self.lab.as_ref().is_some_and(|lab| !lab.counted)
    }
}

/// A virtual board, with everything that its numbers follow from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lab {
    /// Time is counted in executed instructions. Otherwise the guest runs freely:
    /// its latencies are the host's noise, plumbing and no measurement.
    pub counted: bool,
    /// Why a repeated run need not give the same nanoseconds all the same.
    #[serde(default)]
    pub not_exact: Vec<String>,
    /// Version of QEMU.
    pub qemu: String,
    /// Its options, without the paths of files.
    pub options: Vec<String>,
    /// `x86_64` or `aarch64`.
    pub arch: String,
    /// CPUs.
    pub cpus: u32,
    /// Memory, MiB.
    pub memory_mib: u32,
    /// Instructions that take a microsecond of the board's time; 0 where time is not counted.
    pub mips: u32,
    /// Seed of the board's random numbers.
    pub seed: u64,
    /// Devices beside the board's own, by name.
    #[serde(default)]
    pub devices: Vec<String>,
    /// The kernel as it was asked for, as `debian:rt`.
    pub kernel: String,
    /// SHA-256 of the kernel's image as the distribution or the build made it.
    pub kernel_sha256: String,
    /// Modules that were loaded, in order.
    #[serde(default)]
    pub modules: Vec<String>,
    /// SHA-256 of the initramfs: punctual, modules, plan, phase.
    pub initramfs_sha256: String,
    /// SHA-256 of the punctual in it.
    pub punctual_sha256: String,
}

/// The kernel of the board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// `uname -r`.
    pub release: String,
    /// `uname -v`.
    pub version: String,
    /// `uname -m`.
    pub machine: String,
    /// `none`, `voluntary`, `full`, `lazy`, `rt` or `unknown`.
    pub preemption: String,
    /// `/proc/cmdline`.
    pub command_line: String,
    /// SHA-256 of the configuration, where it can be read.
    #[serde(default)]
    pub config_sha256: Option<String>,
}

/// The clocks, read together: aligns traces (trace clock `mono`) and shows
/// suspends and clock steps. Nanoseconds as strings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeBase {
    /// `CLOCK_MONOTONIC`.
    #[serde(with = "ns_text")]
    pub monotonic_ns: u64,
    /// `CLOCK_MONOTONIC_RAW`.
    #[serde(with = "ns_text")]
    pub monotonic_raw_ns: u64,
    /// `CLOCK_BOOTTIME`.
    #[serde(with = "ns_text")]
    pub boottime_ns: u64,
    /// `CLOCK_REALTIME`.
    #[serde(with = "ns_text")]
    pub realtime_ns: u64,
    /// Time stamp counter, cycles, on x86.
    #[serde(default)]
    pub tsc: Option<String>,
}

mod ns_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(value: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// One circumstance that makes the numbers suspect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// Stable name for programs, as `virtual-machine` or `unprivileged`.
    pub id: String,
    /// One line for people: what is so, and what it does to the numbers.
    pub text: String,
}

/// One probe under one load for one duration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Probe, its parameters that are not defaults, load and duration: what
    /// compare matches by.
    pub key: String,
    /// Folder of the cell below `cells/`.
    pub dir: String,
    /// `latency` or `cost`.
    pub kind: String,
    /// How the cell stands.
    pub state: CellState,
    /// Why the cell was skipped or failed.
    #[serde(default)]
    pub reason: Option<String>,
    /// Name of the probe.
    pub probe: String,
    /// Every parameter as it took effect, defaults included.
    pub params: BTreeMap<String, String>,
    /// The load as it was asked for, `a+b` where they run together.
    pub load: String,
    /// How long was measured, warm-up excluded, ns.
    pub duration_ns: u64,
    /// The period between releases, ns; absent where the probe has none.
    #[serde(default)]
    pub interval_ns: Option<u64>,
    /// Statistics over all threads, of the first series.
    #[serde(flatten)]
    pub stats: Stats,
    /// What the cell measured; the first one is what `stats` and `threads` hold.
    pub series: Vec<Series>,
    /// For cells of two machines: whose side each part is.
    #[serde(default)]
    pub parts: Vec<Value>,
    /// The threads, in order.
    pub threads: Vec<Thread>,
    /// The work that each part of the load did.
    pub load_work: Vec<LoadWork>,
    /// Share of all CPUs' time that was not idle over the cell, 0 to 1.
    #[serde(default)]
    pub cpu_utilisation: Option<f64>,
    /// Share of all CPUs' time that the hypervisor gave to others, 0 to 1.
    #[serde(default)]
    pub steal: Option<f64>,
    /// Extreme of the warm-up, which is outside all other numbers, ns.
    #[serde(default)]
    pub warmup_max_ns: Option<i64>,
    /// Clocks at the start of the measurement.
    #[serde(default)]
    pub started: Option<TimeBase>,
    /// Clocks at its end.
    #[serde(default)]
    pub ended: Option<TimeBase>,
    /// Notes on this cell alone: a load that died, a late ring that filled up.
    #[serde(default)]
    pub conditions: Vec<Condition>,
    /// The worst of the threads' verdicts.
    pub verdict: Verdict,
}

/// How a cell stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CellState {
    /// Not yet started.
    Pending,
    /// Under way; in a finished directory: cut short.
    Running,
    /// Measured for its whole duration.
    Complete,
    /// Ended early by a signal or a break value; its samples count.
    Interrupted,
    /// Not measured, for the reason given.
    Skipped,
    /// Ended early by an error; its samples count.
    Failed,
    /// Rebuilt from its blocks after punctual was killed: quantiles are
    /// within 25 % (32 ns below 256 ns), everything else is exact.
    Recovered,
}

/// Statistics of a set of samples. Absent where there are no samples, or too
/// few for the quantile: q is the value at rank ceil(q N), given where
/// N (1 - q) >= 1.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// Releases that were due: always `samples + missed`.
    pub scheduled: u64,
    /// Latencies measured.
    pub samples: u64,
    /// Releases that passed while an earlier one was still waiting.
    pub missed: u64,
    /// Samples below zero: the work started before its release.
    pub early: u64,
    /// Smallest sample, exact.
    pub min_ns: Option<i64>,
    /// Mean, from integer sums.
    pub avg_ns: Option<f64>,
    /// Largest sample, exact.
    pub max_ns: Option<i64>,
    /// Population standard deviation, from integer sums.
    pub stddev_ns: Option<f64>,
    /// Median.
    pub p50_ns: Option<i64>,
    /// 99 % quantile.
    pub p99_ns: Option<i64>,
    /// 99.9 % quantile.
    pub p999_ns: Option<i64>,
    /// 99.99 % quantile.
    pub p9999_ns: Option<i64>,
    /// The same quantiles with every missed release counted as late as it was.
    pub corrected: Corrected,
}

/// Quantiles of the corrected distribution (measurement.md, 2).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Corrected {
    /// Values: samples and missed periods.
    pub samples: u64,
    /// Median.
    pub p50_ns: Option<i64>,
    /// 99 % quantile.
    pub p99_ns: Option<i64>,
    /// 99.9 % quantile.
    pub p999_ns: Option<i64>,
    /// 99.99 % quantile.
    pub p9999_ns: Option<i64>,
    /// Whether part of it was expanded from histogram bins (under 0.8 % wide)
    /// since the late ring was full.
    #[serde(default)]
    pub from_bins: bool,
}

/// One quantity that a cell measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Name, as `latency` or `gap`.
    pub name: String,
    /// What a value is, in words.
    pub meaning: String,
    /// Unit of the values: `ns`.
    pub unit: String,
    /// Statistics over all threads.
    #[serde(flatten)]
    pub stats: Stats,
}

/// One thread of a probe.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    /// Number, from 0.
    pub thread: u32,
    /// The one CPU it is bound to; absent where it may run on several.
    pub cpu: Option<u32>,
    /// CPUs it may run on, read back after the start, as `0-3,8`.
    pub affinity: String,
    /// Policy read back after the start: `fifo`, `rr`, `other`, …
    pub policy: String,
    /// Real-time priority read back after the start, 0 for `other`.
    pub priority: u32,
    /// What of the above was different at the end (hotplug resets affinity).
    #[serde(default)]
    pub changed: Option<String>,
    /// Timer slack that took effect, ns.
    #[serde(default)]
    pub timer_slack_ns: Option<u64>,
    /// Page faults while it measured; 0 where its memory is locked.
    #[serde(default)]
    pub page_faults: Option<u64>,
    /// Offset of its releases within the period, ns.
    #[serde(default)]
    pub offset_ns: u64,
    /// Statistics of the first series.
    #[serde(flatten)]
    pub stats: Stats,
    /// Instant (`CLOCK_MONOTONIC`) of the largest sample, ns after the cell's start.
    #[serde(default)]
    pub max_at_ns: Option<u64>,
    /// Samples above the trace threshold that its cap left out.
    #[serde(default)]
    pub outliers_left_out: u64,
    /// Seconds in which a deadline was exceeded: exceedances cluster, and this
    /// is how many clusters there were.
    #[serde(default)]
    pub exceedance_clusters: u64,
    /// Judgement of this thread.
    pub verdict: Verdict,
}

/// The work that one part of a load did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadWork {
    /// Name of the load, as `hackbench`.
    pub load: String,
    /// Every parameter as it took effect.
    #[serde(default)]
    pub params: BTreeMap<String, String>,
    /// What it counted.
    pub counters: Vec<WorkCounter>,
    /// Seconds of the measurement in which it did nothing.
    pub idle_seconds: u64,
    /// How often it ended and was started again.
    pub restarts: u64,
    /// What held its processes together: `pid-namespace`, `user-namespace`,
    /// `cgroup`, `subreaper`; empty for a load without processes.
    #[serde(default)]
    pub containment: String,
    /// Why it stopped working, or a part of it could not start.
    #[serde(default)]
    pub trouble: Option<String>,
}

/// One counter of a load's work over the measured time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkCounter {
    /// What is counted, as `messages` or `bytes`.
    pub name: String,
    /// How many over the cell.
    pub total: u64,
    /// How many a second.
    pub per_second: f64,
}

/// Outcome of a judgement. Ordered from the best to the worst.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Outcome {
    /// No deadline was given: nothing to judge.
    #[default]
    None,
    /// Good enough, with the evidence asked for.
    Pass,
    /// Something asked for could not be measured.
    Skipped,
    /// Not enough evidence either way.
    Inconclusive,
    /// A deadline was missed, or missed too often.
    Fail,
}

/// A judgement against a deadline, with its evidence.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The judgement.
    pub outcome: Outcome,
    /// The deadline, ns.
    pub deadline_ns: Option<u64>,
    /// Releases later than the deadline, missed periods included.
    pub exceedances: u64,
    /// Upper bound of the probability that a release exceeds the deadline (L1, one-sided).
    pub upper_bound: Option<f64>,
    /// Confidence of the bound, as 0.95.
    pub confidence: f64,
    /// The reasons, one sentence each, the most important first.
    pub because: Vec<String>,
}
