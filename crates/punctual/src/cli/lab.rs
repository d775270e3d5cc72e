//! The command `lab` and its subcommands.

use std::path::PathBuf;

use clap::builder::ArgPredicate;
use clap::{Arg, Command, ValueHint};
use punctual_core::units::BareNumber;

use super::args::{duration, judgement};
use super::boards::{
    aims, board, board_name, folder, group, kernel, measured, quiet, replicates,
    replicates_by_comparisons, seed, warm,
};
use super::run::{flag, value};
use super::search;

const EXIT_STATUS: &str = "\
Exit status:
    0  PASS: no deadline was missed; or nothing to judge
    1  FAIL: a deadline was missed
    2  usage error: nothing was booted
    3  INCONCLUSIVE: neither is shown; it says what is missing
    4  SKIPPED: a prerequisite of something that was asked for is missing
   69  a guest failed (panic, hang, module that does not load): its console is in
       its run directory, and the other guests went on; or it has no --legs
  130  interrupted; what was measured is kept
The worst run counts.";

const RUN_EXAMPLES: &str = r"Examples:
  punctual lab run --replicates 1
      four preemption models of Debian's kernel, idle and under two loads
  punctual lab run --kernel debian:none,debian:rt \
      wakeup --load none,hackbench -D 2s
      two kernels, eight boots each, and what can be concluded from them
  punctual lab run --board aarch64 --cpus 2 --kernel debian:rt \
      wakeup -t per-cpu -D 1s
  punctual lab run --kernel ~/linux --plan koolwal-geode
      a kernel build tree, measured by the plan of a paper
  punctual lab run --kernel debian:none,debian:rt --legs \
      wakeup --load none,hackbench -D 2s
      interrupt latency, wake-up, scheduling and the rest of every sample";

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
  punctual lab check --kernel ~/linux wakeup --load process \
      -D 6s --max 1ms --aim 1
      one boot, and one more with a release at the longest section
  git bisect run sh -c '
      make olddefconfig >/dev/null && make -j"$(nproc)" vmlinux || exit 125
      punctual lab check --kernel . wakeup --load hackbench \
          -D 2s --max 100us
  '
      in a kernel tree, after `git bisect start BAD GOOD`: see docs/bisect.md

Exit status, as `git bisect run` expects it:
    0  good: every sample of every boot was at most --max, and every aimed release
    1  bad: at least one was above it
  125  skip: no judgement, because the kernel was not built or does not boot, a
       guest failed, a cell was SKIPPED, or samples were above --max, but perhaps
       only because several CPUs take turns (docs/lab.md)
  129  ends the bisection, since no commit can cure it: a wrong option, no QEMU, a
       file besides the kernel that cannot be read or written
  130  interrupted, which ends the bisection"#;

const EXPLAIN_EXAMPLES: &str = r"Examples:
  punctual lab run --kernel debian:none,debian:rt wakeup --load hackbench \
      -D 2s --replicates 1 --out a
  punctual lab explain a/debian-none-0 --worst 3 -o why.html
      the three latest samples and a typical one, in words and pictures
  punctual lab explain a/debian-none-0 --against a/debian-rt-0
      the same samples of two kernels side by side

Exit status: 0; 2 error: the run cannot be repeated or the repeat differs;
130 interrupted.";

const SECTIONS_EXAMPLES: &str = r"Examples:
  punctual lab sections --kernel debian:full,debian:rt \
      --load hackbench,process -D 2s --out s
      s/sections.html compares the kernels; each run has its sections.json
  punctual lab sections --kernel ./bzImage --load hackbench -D 10s --longest 10

Exit status: 0; 2 error: a kernel cannot be watched, or a guest failed;
130 interrupted.";

const AIM_EXAMPLES: &str = r"Examples:
  punctual lab aim --kernel debian:none,debian:full,debian:rt \
      --load hackbench,process -D 2s --aim 5 --out aimed
      aimed/aimed.html has the table; each release is a run of its own
  punctual lab aim --kernel ./bzImage --load process -D 10s --replicates 4

Exit status: 0; 2 error: a kernel cannot be watched; 69 a guest failed;
130 interrupted.";

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
        .subcommand(explain())
        .subcommand(sections())
        .subcommand(aim())
        .subcommand(search::command())
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
        .arg(replicates_by_comparisons())
        .arg(seed("Seed of the first guest of each kernel; those of its other replicates follow it [default: 1]"));
    measured(boots)
        .arg(
            value(
                "cost",
                "LIST",
                "Also measure these costs, or only them if no probe and no plan is given: metrics as \
                 for `punctual cost`, separated by commas, summary or all",
            ),
        )
        .arg(
            aims(
                "Watch each guest, and boot it again with one release moved to the beginning of a \
                 long section, for the N latest of each cell: see `punctual lab aim`",
            )
            .conflicts_with_all(["warm", "legs"]),
        )
        .next_help_heading("Judgement")
        .args(judgement())
        .next_help_heading("Output")
        .arg(folder("Folder for the experiment, which must not exist yet; each guest's run becomes a folder in it [default: punctual-runs/<UTC time>-lab]"))
        .arg(group())
        .arg(flag(
            "legs",
            "Find what every latency consists of, and report it: each guest boots twice, the second \
             time watched and one after the other, and must come out identical. Only the probe \
             wakeup with one thread, boards with one CPU",
        ).conflicts_with("warm"))
        .arg(flag("json", "Print only the comparison, as JSON"))
        .arg(quiet())
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
        .arg(
            aims(
                "Judge by the latest releases that there can be too: aim N of each cell at the \
                 longest sections, as `punctual lab aim` does. One boot and N of each cell are \
                 enough, so --replicates is 1 then unless you say otherwise",
            )
            .conflicts_with("warm"),
        )
        .next_help_heading("What to boot")
        .arg(kernel().required(true).help("The kernel, as for `punctual lab run`"))
        .args(board())
        .arg(warm())
        .arg(replicates("4").default_value_if("aim", ArgPredicate::IsPresent, "1"));
    measured(boots)
        .next_help_heading("Output")
        .arg(folder(
            "Keep the runs in this folder, which must not exist yet [default: they are not kept]",
        ))
        .arg(flag("json", "Print the judgement as JSON"))
        .arg(quiet())
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
        .arg(folder("Folder of the history; it gets history.html, .txt, .csv, .json and .svg [default: punctual-history]"))
        .arg(flag("json", "Print only the history, as JSON"))
        .arg(quiet())
}

fn explain() -> Command {
    Command::new("explain")
        .about("Explain why samples were late: repeat a run, watched, and see what ran")
        .long_about(
            "Repeats the guest of a run and watches it from outside, which changes no nanosecond, \
             and says of the worst samples what ran between the release and the start of the work: \
             the legs of the latency, who kept interrupts off or the scheduler from being called, \
             and every function. The repeat must come out identical, else nothing is explained.",
        )
        .after_help(EXPLAIN_EXAMPLES)
        .arg(
            Arg::new("runs")
                .value_name("RUN")
                .help("Runs of virtual boards, measured by `punctual lab run` with this punctual")
                .required(true)
                .num_args(1..)
                .value_hint(ValueHint::DirPath),
        )
        .arg(value(
            "cell",
            "KEY",
            "Only this cell, by its key, such as \"wakeup @ hackbench @ 2s\"",
        ))
        .arg(
            value("worst", "N", "How many of the latest samples of each cell")
                .value_parser(clap::value_parser!(u32).range(1..=64))
                .default_value("3"),
        )
        .arg(
            value("above", "TIME", "Only samples above this latency, with a unit (e.g. 200us)")
                .value_parser(duration(BareNumber::Refused)),
        )
        .arg(
            value(
                "at",
                "TIME,...",
                "Samples taken so long after the start of their cell, or next after that (e.g. \
                 47.4ms)",
            )
            .value_parser(duration(BareNumber::Refused))
            .value_delimiter(',')
            .conflicts_with_all(["worst", "above"]),
        )
        .arg(
            value("against", "RUN", "Put the samples of another run beside those of this one")
                .value_hint(ValueHint::DirPath),
        )
        .next_help_heading("What to boot")
        .arg(
            value(
                "kernel",
                "KERNEL",
                "The kernel of the run [default: found by its name and release]",
            )
            .short('k')
            .value_hint(ValueHint::AnyPath),
        )
        .args(board().into_iter().filter(|arg| {
            ["module", "modules", "files", "program", "qemu", "offline", "patience"]
                .contains(&arg.get_id().as_str())
        }))
        .mut_arg("qemu", |arg| {
            arg.help("The QEMU of the run [default: one of its version, if it is in PATH]")
        })
        .next_help_heading("Output")
        .arg(
            value(
                "output",
                "FILE",
                "Write a page with the legs, a timeline and a flame graph of each sample",
            )
            .short('o')
            .value_parser(clap::value_parser!(PathBuf))
            .value_hint(ValueHint::FilePath),
        )
        .arg(
            value(
                "figures",
                "DIR",
                "Write the timelines and flame graphs to a folder, as SVG, PDF and PNG",
            )
            .value_parser(clap::value_parser!(PathBuf))
            .value_hint(ValueHint::DirPath),
        )
        .arg(
            value(
                "perfetto",
                "FILE",
                "Write what ran as a trace for ui.perfetto.dev or chrome://tracing",
            )
            .value_parser(clap::value_parser!(PathBuf))
            .value_hint(ValueHint::FilePath),
        )
        .arg(flag("json", "Print only the explanation, as JSON"))
        .arg(quiet())
}

fn sections() -> Command {
    let boots = Command::new("sections")
        .about("Find every stretch in which a kernel could not have reacted")
        .long_about(
            "Boots kernels, measures as `punctual lab run` does, and watches each guest from \
             outside, which changes no nanosecond: every stretch with interrupts off, and every \
             stretch in which a thread that was woken could not have run (interrupts or preemption \
             off; with the models none and voluntary, until the next scheduling point). What \
             samples find by chance is complete here: by length, by the functions that begin and \
             end them, and the longest with their stacks. It says as well what was tested: which \
             functions of the kernel each cell executed, and which that take a spin lock or forbid \
             preemption none did. Only the probe wakeup with one thread, boards with one CPU, Linux \
             5.12 or later; on aarch64 5.14, with QEMU 10.",
        )
        .after_help(SECTIONS_EXAMPLES)
        .arg(
            value("longest", "N", "How many of the longest are shown with their stacks")
                .value_parser(clap::value_parser!(u32).range(1..=64))
                .default_value("5"),
        )
        .next_help_heading("What to boot")
        .arg(kernel().help("Kernels, separated by commas, as for `punctual lab run`"))
        .args(board())
        .arg(replicates("1"));
    measured(boots)
        .next_help_heading("Output")
        .arg(folder("Folder for the runs, as for `punctual lab run`; it gets sections.html too [default: punctual-runs/<UTC time>-lab]"))
        .arg(group())
        .arg(
            value("figures", "DIR", "Write the figures to a folder, as SVG, PDF and PNG")
                .value_parser(clap::value_parser!(PathBuf))
                .value_hint(ValueHint::DirPath),
        )
        .arg(flag("json", "Print only the sections, as JSON"))
        .arg(quiet())
}

fn aim() -> Command {
    let boots = Command::new("aim")
        .about("Aim releases at the longest sections: the worst case of a course, measured")
        .long_about(
            "Watches guests as `punctual lab sections` does, then boots each again for the releases \
             that would be latest: all before it stay where they are, to the nanosecond, and one is \
             moved to the beginning of a long section. So the latest release that there can be in \
             this course of the load is found, and proven by measurement, where samples find it by \
             chance. Each aimed release is an ordinary run, which `punctual lab explain` explains.",
        )
        .after_help(AIM_EXAMPLES)
        .arg(aims("How many releases of each cell").default_value("3"))
        .arg(flag(
            "alone",
            "Aim as many more with no other release before them: another course of the same load, \
             in which the measurement does nothing until then",
        ))
        .next_help_heading("What to boot")
        .arg(kernel().help("Kernels, separated by commas, as for `punctual lab run`"))
        .args(board())
        .arg(replicates("1"));
    measured(boots)
        .next_help_heading("Output")
        .arg(folder("Folder for the runs, as for `punctual lab run`; it gets aimed.html too [default: punctual-runs/<UTC time>-lab]"))
        .arg(group())
        .arg(flag("json", "Print only the aimed releases, as JSON"))
        .arg(quiet())
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
