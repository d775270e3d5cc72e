//! The command `lab` and its subcommands.

use std::path::PathBuf;

use clap::{Arg, ArgAction, Command, ValueHint};
use punctual_core::units::BareNumber;
use punctual_lab::board::{DEFAULT_MEMORY_MIB, DEFAULT_MIPS, RATES};
use punctual_lab::device::DEVICES;

use super::args::{duration, judgement, positive_seconds};
use super::run::{flag, probe_options, value, what};

const EXIT_STATUS: &str = "\
Exit status:
    0  pass, or nothing to judge
    1  a deadline was missed
    2  usage error: nothing was booted
    3  inconclusive: not enough evidence either way
    4  something was SKIPPED because a prerequisite is missing
   69  a guest failed (panic, hang, module that does not load): its console is in
       its run directory, and the other guests went on
  130  interrupted; what was measured is kept
The worst run counts.";

const RUN_EXAMPLES: &str = r"Examples:
  punctual lab run
      four preemption models of Debian's kernel, idle and under two loads
  punctual lab run --kernel debian:none,debian:rt --replicates 8 \
      wakeup --load none,hackbench -D 2s
      two kernels, eight boots each, and what can be concluded from them
  punctual lab run --board aarch64 --cpus 2 --kernel debian:rt \
      wakeup -t per-cpu -D 1s
  punctual lab run --kernel ~/linux --plan koolwal-geode
      a kernel build tree, measured by the plan of a paper";

const HISTORY_EXAMPLES: &str = r"Examples:
  punctual lab history
      5.10, 6.1, 6.12, 7.2 and the newest, idle and under two loads
  punctual lab history --kernel debian:6.12,debian:7.3-rt,~/linux \
      wakeup --load hackbench -D 6s --out my-history
      two releases and a kernel of your own under one load

Exit status: 0; 2 error; 69 a guest failed, the others went on; 130 interrupted,
what was measured is kept and the same command goes on.";

const CHECK_EXAMPLES: &str = r#"Examples:
  punctual lab check --kernel debian:rt wakeup --load hackbench \
      -D 2s --max 100us
  git bisect run sh -c '
      make olddefconfig >/dev/null && make -j"$(nproc)" vmlinux || exit 125
      punctual lab check --kernel . wakeup --load hackbench \
          -D 2s --max 100us
  '
      in a kernel tree, after `git bisect start BAD GOOD`: see docs/bisect.md

Exit status, as `git bisect run` expects it:
    0  good: every sample of every boot was at most --max
    1  bad: at least one sample was above it
  125  skip: no judgement, because the kernel was not found or does not boot, a
       guest failed, a cell was SKIPPED, the command line is wrong, or samples were
       above --max, but perhaps only because several CPUs take turns (docs/lab.md)
  130  interrupted, which ends the bisection"#;

/// The command `lab`.
pub fn command() -> Command {
    Command::new("lab")
        .about("Boot kernels on virtual boards, with results that repeat to the nanosecond")
        .long_about(
            "Boot kernels on virtual boards, with results that repeat to the nanosecond.\n\n\
             A virtual board is QEMU with its time counted in executed instructions: the same \
             kernel, plan and seed give the same figures on every host, however busy. Latencies \
             reflect instruction counts only (no caches, buses or device delays): use them to \
             compare kernels, not to predict a board. The lab needs QEMU but no privileges. If a \
             plan has a variant \"virtual\", that one runs unless --variant names another.",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(run())
        .subcommand(check())
        .subcommand(history())
        .subcommand(kernels())
        .subcommand(fetch())
}

fn run() -> Command {
    let boots = Command::new("run")
        .about("Boot kernels, measure in the guests, compare and report")
        .after_help(format!("{RUN_EXAMPLES}\n\n{EXIT_STATUS}"))
        .next_help_heading("What to boot")
        .arg(kernel().help(
            "Kernels, separated by commas: debian:none|voluntary|full|lazy|rt, one of a series or a \
             release such as debian:6.12-rt or debian:sid, an exact version such as \
             debian:6.1.0-47-rt, a kernel image, or a kernel build tree [default: those of the \
             plan, else the distribution's with each model that it has]",
        ))
        .args(board())
        .arg(warm())
        .arg(replicates("1"));
    measured(boots)
        .next_help_heading("Judgement")
        .args(judgement())
        .next_help_heading("Output")
        .arg(
            value("out", "DIR", "Folder for the experiment, which must not exist yet; each guest's run becomes a folder in it [default: punctual-runs/<UTC time>-lab]")
                .value_parser(clap::value_parser!(PathBuf))
                .value_hint(ValueHint::DirPath),
        )
        .arg(value("group", "NAME", "Name of the experiment, recorded in its runs [default: derived from what it boots and measures]"))
        .arg(flag("json", "Print only the comparison, as JSON"))
        .arg(flag("quiet", "Show no progress").short('q'))
        .arg(flag("no-report", "Do not write report.html"))
}

fn check() -> Command {
    let boots = Command::new("check")
        .about(
            "Check a kernel against a latency limit and report by exit status, for `git bisect run`",
        )
        .after_help(CHECK_EXAMPLES)
        .arg(
            value("max", "TIME", "Largest latency of a good kernel, with a unit (e.g. 100us)")
                .required(true)
                .value_parser(duration(BareNumber::Refused)),
        )
        .next_help_heading("What to boot")
        .arg(kernel().required(true).help("The kernel, as for `punctual lab run`"))
        .args(board())
        .arg(warm())
        .arg(replicates("4"));
    measured(boots)
        .next_help_heading("Output")
        .arg(
            value(
                "out",
                "DIR",
                "Keep the runs in this folder, which must not exist yet [default: they are not kept]",
            )
            .value_parser(clap::value_parser!(PathBuf))
            .value_hint(ValueHint::DirPath),
        )
        .arg(flag("json", "Print the judgement as JSON"))
        .arg(flag("quiet", "Show no progress").short('q'))
}

fn history() -> Command {
    let boots = Command::new("history")
        .about("Measure kernels release by release, each once, and show how latency changed")
        .long_about(
            "Boots kernels of many releases with every preemption model that they have, and shows \
             how their latencies changed. The folder keeps what was measured: the same command \
             goes on if it was interrupted, and boots only what is new or has changed (kernel, \
             board, QEMU, plan or punctual).",
        )
        .after_help(HISTORY_EXAMPLES)
        .next_help_heading("What to boot")
        .arg(kernel().help(
            "Kernels, separated by commas, as for `punctual lab run`; those without a model are \
             booted with every model that they have [default: 5.10, 6.1, 6.12, 7.2 and the newest \
             that Debian has]",
        ))
        .args(board())
        .arg(replicates("4"));
    measured(boots)
        .next_help_heading("Output")
        .arg(
            value("out", "DIR", "Folder of the history; it gets history.html, .txt, .csv, .json and .svg [default: punctual-history]")
                .value_parser(clap::value_parser!(PathBuf))
                .value_hint(ValueHint::DirPath),
        )
        .arg(flag("json", "Print only the history, as JSON"))
        .arg(flag("quiet", "Show no progress").short('q'))
}

fn kernels() -> Command {
    Command::new("kernels")
        .about("List the kernels that can be booted by name")
        .arg(board_name())
        .arg(flag("all", "Show all that can be downloaded, not only the newest of each series"))
        .arg(flag("json", "Print the list as JSON: all of it"))
}

fn fetch() -> Command {
    Command::new("fetch")
        .about("Download kernels to the cache; they are unpacked, never installed")
        .after_help(
            "The cache is $PUNCTUAL_CACHE, else $XDG_CACHE_HOME/punctual, else ~/.cache/punctual.\n\
             Debian's package lists are read into it too, from http://deb.debian.org/debian or the \
             mirror in PUNCTUAL_MIRROR.\n\
             Examples:\n  punctual lab fetch debian:none debian:rt debian:7.3-lazy\n  \
             punctual lab fetch --board aarch64 debian:rt",
        )
        .arg(
            Arg::new("kernels")
                .value_name("KERNEL")
                .help("Kernels by name, as for `punctual lab run`")
                .required(true)
                .num_args(1..),
        )
        .arg(board_name())
        .arg(flag("json", "Print only what was fetched, as JSON"))
        .arg(flag("quiet", "Print nothing on success").short('q'))
}

/// A command that boots, with the arguments that say what to measure.
fn measured(boots: Command) -> Command {
    boots
        .next_help_heading("What to measure")
        .args(what())
        .args(warmup())
        .next_help_heading("Threads and releases (parameters of the probes given)")
        .args(probe_options())
}

fn kernel() -> Arg {
    Arg::new("kernel")
        .long("kernel")
        .short('k')
        .value_name("KERNEL")
        .value_delimiter(',')
        .action(ArgAction::Append)
        .value_hint(ValueHint::AnyPath)
}

fn board_name() -> Arg {
    value("board", "BOARD", "The virtual board: x86_64 or aarch64")
        .value_parser(["x86_64", "aarch64"])
        .hide_possible_values(true)
        .default_value("x86_64")
}

fn board() -> Vec<Arg> {
    let rates: Vec<_> = RATES.iter().map(|(mips, _)| mips.to_string()).collect();
    let devices: Vec<_> = DEVICES.iter().map(|device| device.name).collect();
    let count = clap::value_parser!(u32);
    vec![
        board_name(),
        value("cpus", "N", "CPUs, 1 to 4; several take turns (docs/lab.md), and on x86_64 need QEMU 10. With --free-running up to 8 on x86_64")
            .value_parser(count)
            .default_value("1"),
        value("memory", "MIB", "Memory")
            .help(format!("Memory in MiB [default: {DEFAULT_MEMORY_MIB}]"))
            .value_parser(count),
        value("mips", "N", "")
            .help(format!(
                "Instructions per microsecond of the board's time: {} [default: {DEFAULT_MIPS}]",
                rates.join(", ")
            ))
            .value_parser(count),
        value("device", "NAME", "")
            .help(format!("Devices besides the board's own: {}; runs with virtio-disk may not repeat exactly", devices.join(", ")))
            .value_delimiter(',')
            .action(ArgAction::Append),
        value("module", "NAME", "Load this kernel module and its dependencies; parameters follow the name, such as \"loop max_loop=1\"")
            .action(ArgAction::Append),
        value("modules", "DIR", "Folder with the modules of a kernel image, such as /lib/modules/RELEASE")
            .value_parser(clap::value_parser!(PathBuf))
            .value_hint(ValueHint::DirPath),
        value("append", "TEXT", "Parameters to append to the kernel's command line")
            .allow_hyphen_values(true)
            .action(ArgAction::Append),
        flag("free-running", "Do not count instructions: fast, on all CPUs, and labelled \"not a measurement\""),
        value("program", "FILE", "The punctual that the board runs: a static executable [default: this one, or punctual-BOARD next to it]")
            .value_parser(clap::value_parser!(PathBuf))
            .value_hint(ValueHint::FilePath),
        value("qemu", "FILE", "The QEMU to use, version 7.2 or newer [default: the newest in PATH]")
            .value_parser(clap::value_parser!(PathBuf))
            .value_hint(ValueHint::FilePath),
        flag("offline", "Use only kernels that are in the cache; download nothing"),
        value("jobs", "N", "Guests to run at the same time [default: one per CPU of this host]")
            .value_parser(clap::value_parser!(u32).range(1..)),
        value("patience", "TIME", "Terminate a guest that shows no sign of life for this long: CPU time of QEMU, or the host's time while QEMU uses none")
            .value_parser(positive_seconds)
            .default_value("2min"),
    ]
}

fn warm() -> Arg {
    flag(
        "warm",
        "Boot each board once, keep its state in the cache, and start every guest from there: saves \
         the boots, but all replicates are of one boot, and another cache gives other figures. Not \
         comparable with guests that boot (x86_64 only)",
    )
}

fn replicates(default: &'static str) -> Arg {
    value(
        "replicates",
        "N",
        "Boots of each kernel, each with its own seed and phase; conclusions about kernels rest on \
         them",
    )
    .value_parser(clap::value_parser!(u32).range(1..=1000))
    .default_value(default)
}

fn warmup() -> [Arg; 2] {
    [
        value("warmup", "TIME", "Warm-up before each cell, excluded from all results; a bare number is in seconds [default: that of the plan; 200ms for probes]")
            .value_parser(duration(BareNumber::Seconds)),
        flag("no-warmup", "Skip the warm-up").conflicts_with("warmup"),
    ]
}
