//! Arguments of commands that boot virtual boards: what to boot, and where its runs go.

use std::path::PathBuf;

use clap::{Arg, ArgAction, Command, ValueHint};
use punctual_core::units::BareNumber;
use punctual_lab::board::{DEFAULT_MEMORY_MIB, DEFAULT_MIPS, RATES};
use punctual_lab::device::DEVICES;

use super::args::{duration, positive_seconds};
use super::run::{flag, probe_options, value, what};

/// A command that boots, with the arguments that say what to measure.
pub fn measured(boots: Command) -> Command {
    boots
        .next_help_heading("What to measure")
        .args(what())
        .args(warmup())
        .next_help_heading("Threads and releases (parameters of the probes given)")
        .args(probe_options())
}

pub fn aims(help: &'static str) -> Arg {
    value("aim", "N", help).value_parser(clap::value_parser!(u32).range(1..=64))
}

pub fn folder(help: &'static str) -> Arg {
    value("out", "DIR", help)
        .value_parser(clap::value_parser!(PathBuf))
        .value_hint(ValueHint::DirPath)
}

pub fn group() -> Arg {
    value(
        "group",
        "NAME",
        "Name of the experiment, recorded in its runs [default: derived from what it boots and measures]",
    )
}

pub fn quiet() -> Arg {
    flag("quiet", "Show no progress").short('q')
}

pub fn kernel() -> Arg {
    Arg::new("kernel")
        .long("kernel")
        .short('k')
        .value_name("KERNEL")
        .value_delimiter(',')
        .action(ArgAction::Append)
        .value_hint(ValueHint::AnyPath)
}

pub fn board_name() -> Arg {
    value("board", "BOARD", "The virtual board: x86_64 or aarch64")
        .value_parser(["x86_64", "aarch64"])
        .hide_possible_values(true)
        .default_value("x86_64")
}

pub fn seed(help: &'static str) -> Arg {
    value("seed", "N", help).value_parser(clap::value_parser!(u32).range(1..=1_000_000))
}

pub fn board() -> Vec<Arg> {
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
        value("module", "NAME|FILE.ko", "Load this kernel module and its dependencies, from the kernel's own or from this file; parameters follow, such as \"loop max_loop=1\"")
            .action(ArgAction::Append),
        value("modules", "DIR", "Folder with the modules of a kernel image, such as /lib/modules/RELEASE")
            .value_parser(clap::value_parser!(PathBuf))
            .value_hint(ValueHint::DirPath),
        value("files", "DIR", "Folder whose files the guest finds in its root, for --load cmd: a program with its libraries")
            .value_parser(clap::value_parser!(PathBuf))
            .value_hint(ValueHint::DirPath),
        value("append", "TEXT", "Parameters to append to the kernel's command line")
            .allow_hyphen_values(true)
            .action(ArgAction::Append),
        flag("free-running", "Do not count instructions: fast, on all CPUs, and labelled \"not a measurement\""),
        value("program", "FILE", "The program that the board runs: a punctual-board for it [default: the one that punctual carries]")
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

pub fn warm() -> Arg {
    flag(
        "warm",
        "Boot each board once, keep its state in the cache, and start every guest from there: saves \
         the boots, but all replicates are of one boot, and another cache gives other figures. Not \
         comparable with guests that boot (x86_64 only)",
    )
}

const REPLICATES: &str = "Boots of each kernel, each with its own seed and phase; conclusions about \
                          kernels rest on them";

pub fn replicates(default: &'static str) -> Arg {
    number_of_boots(REPLICATES.to_owned()).default_value(default)
}

/// Without a default of its own: it depends on what is compared.
pub fn replicates_by_comparisons() -> Arg {
    number_of_boots(format!(
        "{REPLICATES} [default: of several kernels as many as it takes for each comparison to be \
         able to show a difference, at least 8; 1 of one kernel, and with --warm, --legs, --aim or \
         --free-running]"
    ))
}

fn number_of_boots(help: String) -> Arg {
    Arg::new("replicates")
        .long("replicates")
        .value_name("N")
        .help(help)
        .value_parser(clap::value_parser!(u32).range(1..=1000))
}

pub fn warmup() -> [Arg; 2] {
    [
        value("warmup", "TIME", "Warm-up before each cell, excluded from all results; a bare number is in seconds [default: that of the plan; 200ms for probes]")
            .value_parser(duration(BareNumber::Seconds)),
        flag("no-warmup", "Skip the warm-up").conflicts_with("warmup"),
    ]
}
