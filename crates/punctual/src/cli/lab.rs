//! The command `lab` and its own commands.

use std::path::PathBuf;

use clap::{Arg, ArgAction, Command, ValueHint};
use punctual_core::units::BareNumber;
use punctual_lab::board::{DEFAULT_MEMORY_MIB, DEFAULT_MIPS, RATES};
use punctual_lab::device::DEVICES;

use super::args::{duration, judgement, positive_seconds};
use super::run::{PROBE_OPTIONS, flag, probe_option, value, what};

const EXIT_STATUS: &str = "\
Exit status:
    0  pass, or nothing to judge
    1  a deadline was missed
    2  usage error: nothing was booted
    3  inconclusive; 4  something asked for was SKIPPED
   69  a guest failed (panic, hang, module that does not load): its console is in its run
       directory, and the other guests went on
  130  interrupted; what was measured is kept
Over runs the worst counts.";

const RUN_EXAMPLES: &str = "\
Examples:
  punctual lab run
      four preemption models of Debian's kernel, idle and under two loads
  punctual lab run --kernel debian:none,debian:rt wakeup --load none,hackbench -D 2s --replicates 8
      two kernels, eight boots each, and what may be said of them
  punctual lab run --board aarch64 --cpus 2 --kernel debian:rt wakeup -t per-cpu -D 1s
  punctual lab run --kernel ~/linux --plan koolwal-geode
      a kernel build tree under the plan of a paper";

const CHECK_EXAMPLES: &str = "\
Examples:
  punctual lab check --kernel debian:rt wakeup --load hackbench -D 2s --max 100us
  git bisect run sh -c 'make -j2 && punctual lab check --kernel . wakeup --load hackbench -D 2s --max 100us'
      docs/bisect.md has the whole of it

Exit status, as `git bisect run` wants it:
    0  every sample of every boot was at most --max
    1  some sample was above it
  125  it cannot be judged: the kernel cannot be had or does not boot, a guest failed, a cell was
       SKIPPED, or the command line is wrong
  130  interrupted (which ends a bisection)";

/// The command `lab`.
pub fn command() -> Command {
    Command::new("lab")
        .about("Boot kernels on virtual boards that give the same nanoseconds on every run")
        .long_about(
            "Boot kernels on virtual boards that give the same nanoseconds on every run.\n\n\
             A virtual board is QEMU with its time counted in executed instructions: the same \
             kernel, plan and seed give the same figures on every host, however busy. Latencies \
             are lengths of code paths, without caches, buses and devices' delays: what they are \
             for is comparing kernels. QEMU is needed, and no privileges. Of a plan that has a \
             variant \"virtual\" that one is run, unless --variant names another.",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(run())
        .subcommand(check())
        .subcommand(kernels())
        .subcommand(fetch())
}

fn run() -> Command {
    Command::new("run")
        .about("Boot each kernel, measure in the guest, compare and report")
        .after_help(format!("{RUN_EXAMPLES}\n\n{EXIT_STATUS}"))
        .next_help_heading("What to boot")
        .arg(kernel().help(
            "Kernels, with commas between them: debian:none|voluntary|full|rt, an exact one as \
             debian:6.1.0-47-rt, a kernel image, or a kernel build tree [default: those of the \
             plan, else the four models]",
        ))
        .args(board())
        .arg(replicates("1"))
        .next_help_heading("What to measure")
        .args(what())
        .args(warmup())
        .next_help_heading("Threads and releases (parameters of the probes given)")
        .args(PROBE_OPTIONS.iter().map(probe_option))
        .next_help_heading("Judgement")
        .args(judgement())
        .next_help_heading("Output")
        .arg(
            value("out", "DIR", "Folder of the experiment, which must not exist; each guest's run is a folder in it [default: punctual-runs/<UTC time>-lab]")
                .value_parser(clap::value_parser!(PathBuf))
                .value_hint(ValueHint::DirPath),
        )
        .arg(value("group", "NAME", "Name of the experiment in its runs [default: made of what it boots and measures]"))
        .arg(flag("json", "Print the comparison as JSON, and nothing else"))
        .arg(flag("quiet", "No progress").short('q'))
        .arg(flag("no-report", "Do not write report.html"))
}

fn check() -> Command {
    Command::new("check")
        .about("Say by exit status whether a kernel keeps a latency: for `git bisect run`")
        .after_help(CHECK_EXAMPLES)
        .arg(
            value("max", "TIME", "Largest latency that is good; the unit must be said")
                .required(true)
                .value_parser(duration(BareNumber::Refused)),
        )
        .next_help_heading("What to boot")
        .arg(kernel().required(true).help("The kernel, as for `punctual lab run`"))
        .args(board())
        .arg(replicates("4"))
        .next_help_heading("What to measure")
        .args(what())
        .args(warmup())
        .next_help_heading("Threads and releases (parameters of the probes given)")
        .args(PROBE_OPTIONS.iter().map(probe_option))
        .next_help_heading("Output")
        .arg(
            value(
                "out",
                "DIR",
                "Keep the runs in this folder, which must not exist [default: they are not kept]",
            )
            .value_parser(clap::value_parser!(PathBuf))
            .value_hint(ValueHint::DirPath),
        )
        .arg(flag("json", "Print the judgement as JSON"))
        .arg(flag("quiet", "No progress").short('q'))
}

fn kernels() -> Command {
    Command::new("kernels")
        .about("List the kernels that can be booted by name")
        .arg(board_name())
        .arg(flag("json", "Print the list as JSON"))
}

fn fetch() -> Command {
    Command::new("fetch")
        .about("Download kernels into the cache: unpacked, never installed")
        .after_help(
            "The cache is $PUNCTUAL_CACHE, else $XDG_CACHE_HOME/punctual, else ~/.cache/punctual.\n\
             Examples:\n  punctual lab fetch debian:none debian:rt\n  \
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
        .arg(flag("json", "Print what was fetched as JSON, and no progress"))
        .arg(flag("quiet", "Say nothing where it succeeds").short('q'))
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
    value("board", "BOARD", "The virtual board: x86_64 or aarch64 [default: x86_64]")
        .value_parser(["x86_64", "aarch64"])
        .hide_possible_values(true)
        .default_value("x86_64")
        .hide_default_value(true)
}

fn board() -> Vec<Arg> {
    let rates: Vec<_> = RATES.iter().map(|(mips, _)| mips.to_string()).collect();
    let devices: Vec<_> = DEVICES.iter().map(|device| device.name).collect();
    let count = clap::value_parser!(u32);
    vec![
        board_name(),
        value("cpus", "N", "CPUs: 1 on x86_64 (a second one does not start under counted time), 1 to 4 on aarch64 [default: 1]")
            .value_parser(count)
            .default_value("1")
            .hide_default_value(true),
        value("memory", "MIB", "Memory")
            .help(format!("Memory in MiB [default: {DEFAULT_MEMORY_MIB}]"))
            .value_parser(count),
        value("mips", "N", "")
            .help(format!(
                "Instructions that take a microsecond of the board's time: {} [default: {DEFAULT_MIPS}]",
                rates.join(", ")
            ))
            .value_parser(count),
        value("device", "NAME", "")
            .help(format!("Devices beside the board's own: {}; runs with virtio-disk need not repeat exactly", devices.join(", ")))
            .value_delimiter(',')
            .action(ArgAction::Append),
        value("module", "NAME", "Load this kernel module too, with what it depends on; parameters behind its name, as in \"loop max_loop=1\"")
            .action(ArgAction::Append),
        value("modules", "DIR", "Where the modules of a kernel image are, as /lib/modules/RELEASE")
            .value_parser(clap::value_parser!(PathBuf))
            .value_hint(ValueHint::DirPath),
        value("append", "TEXT", "Parameters behind the kernel's command line").allow_hyphen_values(true),
        flag("free-running", "Do not count time: quick, on all CPUs, and labelled plumbing, not a measurement"),
        value("program", "FILE", "The punctual that the board starts: a static executable for it [default: this one, or punctual-BOARD beside it]")
            .value_parser(clap::value_parser!(PathBuf))
            .value_hint(ValueHint::FilePath),
        flag("offline", "Do not download kernels that are not in the cache"),
        value("jobs", "N", "Guests at a time [default: one a CPU of this host]")
            .value_parser(clap::value_parser!(u32).range(1..)),
        value("patience", "TIME", "A guest that gives no sign of life for so long, of this host's time, is ended [default: 2min]")
            .value_parser(positive_seconds)
            .default_value("120")
            .hide_default_value(true),
    ]
}

fn replicates(default: &'static str) -> Arg {
    value("replicates", "N", "")
        .help(format!(
            "Boots of each kernel, each with another seed and phase: what is said of kernels rests \
             on them [default: {default}]"
        ))
        .value_parser(clap::value_parser!(u32).range(1..=1000))
        .default_value(default)
        .hide_default_value(true)
}

fn warmup() -> [Arg; 2] {
    [
        value("warmup", "TIME", "Before each cell, outside all its numbers; a bare number is seconds [default: that of the plan; 200ms for probes]")
            .value_parser(duration(BareNumber::Seconds)),
        flag("no-warmup", "No warm-up").conflicts_with("warmup"),
    ]
}
