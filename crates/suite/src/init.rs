//! punctual as the init of a virtual board: mounts, modules, the plan, the shutdown.
//!
//! The kernel starts [`init_main`] as process 1. It prepares the machine, starts this program
//! again to measure ([`measure_main`]), reaps orphans meanwhile, and restarts the machine,
//! which ends the emulator. There are two processes so that a crash of the one that measures
//! is reported by the other instead of panicking the kernel.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use punctual_core::channel::{BoardSetup, Event, MODULES_PATH, ORDER_PATH, Order, SETUP_PATH};
use punctual_sys::boot;
use punctual_sys::clock::monotonic_ns;
use punctual_sys::emulator::Channel;
use punctual_sys::{fd, limits, process};

use serde::de::DeserializeOwned;

use crate::engine::Program;
use crate::remote::{self, Carrier, tell};
use crate::{rest, turns, warm};

/// The internal command with which init starts this program to measure.
pub const MEASURE: &str = "__measure";

/// The run directory, in the guest's memory.
const RUN: &str = "/run/punctual";

/// A word on the kernel's command line that makes init end at once, so the kernel panics.
/// Tests use it to see what a panic leaves.
const END_INIT: &str = "punctual.end_init";

/// Hard limit on open files.
const OPEN_FILES: u64 = 512 << 10;

/// What is mounted, where, and whether the plan can do without it.
const MOUNTS: [(&str, &str, bool); 8] = [
    ("proc", "/proc", false),
    ("sysfs", "/sys", false),
    ("devtmpfs", "/dev", false),
    ("tmpfs", "/tmp", false),
    ("tmpfs", "/run", false),
    ("tracefs", "/sys/kernel/tracing", true),
    ("debugfs", "/sys/kernel/debug", true),
    ("cgroup2", "/sys/fs/cgroup", true),
];

/// Whether this process is a virtual board's init: process 1, with something to set up.
#[must_use]
pub fn is_init() -> bool {
    boot::is_init() && Path::new(SETUP_PATH).exists()
}

/// Init of a virtual board. It ignores its arguments: on arm64 they include words of the
/// kernel's command line.
pub fn init_main() {
    for (kind, on, optional) in MOUNTS {
        let mounted = fs::create_dir_all(on).and_then(|()| boot::mount(kind, Path::new(on), ""));
        if let Err(error) = mounted
            && !optional
        {
            eprintln!("punctual: cannot mount {kind} on {on}: {error}");
        }
    }
    // So that a load may limit the memory of a group; a kernel without CONFIG_MEMCG refuses.
    let _ = fs::write("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
    if is_asked(END_INIT) {
        eprintln!("punctual: init ends, as {END_INIT} on the command line asks");
        return;
    }
    // What programs may have on a distribution with systemd; the kernel's own limit of each is 4,096.
    let raised = fs::write("/proc/sys/fs/file-max", i64::MAX.to_string())
        .and_then(|()| limits::set_open_file_limit(OPEN_FILES));
    if let Err(error) = raised {
        eprintln!("punctual: cannot raise the limit of open files: {error}");
    }
    // Network loads use the loopback device; a kernel without networking has none.
    if let Err(error) = boot::raise_loopback() {
        eprintln!("punctual: no loopback interface: {error}");
    }
    match read(SETUP_PATH) {
        Ok(setup) => attend(&setup),
        Err(error) => eprintln!("punctual: {error:#}"),
    }
    if let Err(error) = boot::restart() {
        eprintln!("punctual: cannot restart: {error}");
    }
}

/// Whether the kernel's command line has this word.
fn is_asked(word: &str) -> bool {
    let command_line = fs::read_to_string("/proc/cmdline").unwrap_or_default();
    command_line.split_whitespace().any(|asked| asked == word)
}

fn read<T: DeserializeOwned>(path: &str) -> anyhow::Result<T> {
    let text = fs::read(path).with_context(|| format!("cannot read {path}"))?;
    serde_json::from_slice(&text).with_context(|| format!("cannot make sense of {path}"))
}

/// Prepares what the plan needs, runs it, and reports how that ended.
fn attend(setup: &BoardSetup) {
    let mut way_out = match WayOut::open() {
        Ok(way_out) => way_out,
        Err(error) => {
            eprintln!("punctual: no channel to the emulator: {error}");
            return;
        }
    };
    tell(&mut way_out, Event::Booted { at_ns: monotonic_ns() });
    let prepared = load_modules(setup).and_then(|()| find_devices(setup));
    let ordered = prepared.and_then(|()| {
        if !Path::new(ORDER_PATH).exists() {
            warm::pause_for_order(&mut way_out, is_asked(warm::PASS))?;
        }
        read::<Order>(ORDER_PATH)
    });
    let whole = match ordered.and_then(|order| measure(&order)) {
        Ok(()) => true,
        Err(error) => {
            tell(&mut way_out, Event::Trouble { text: format!("{error:#}") });
            false
        }
    };
    tell(&mut way_out, Event::Ended { at_ns: monotonic_ns(), whole });
}

fn load_modules(setup: &BoardSetup) -> anyhow::Result<()> {
    for module in &setup.modules {
        let path = Path::new(MODULES_PATH).join(&module.file);
        File::open(&path)
            .and_then(|file| boot::load_module(&file, &module.parameters))
            .with_context(|| format!("cannot load module {}", module.file))?;
        // Frees memory for the measurement.
        let _ = fs::remove_file(path);
    }
    for (path, text) in &setup.writes {
        fs::write(path, text).with_context(|| format!("cannot write \"{text}\" to {path}"))?;
    }
    Ok(())
}

fn find_devices(setup: &BoardSetup) -> anyhow::Result<()> {
    // Devices of a driver that probes asynchronously appear a little later.
    for path in &setup.expects {
        let mut waited = 0;
        while !Path::new(path).exists() {
            anyhow::ensure!(waited < 20, "{path} did not appear: the board lacks the device");
            std::thread::sleep(Duration::from_millis(100));
            waited += 1;
        }
    }
    Ok(())
}

/// Runs the measuring process to its end, for at most as long as the order allows.
fn measure(order: &Order) -> anyhow::Result<()> {
    let events = process::child_events().context("events of children")?;
    let here = std::env::current_exe().context("this program")?;
    let child = Command::new(here)
        .arg(MEASURE)
        .stdin(Stdio::null())
        .spawn()
        .context("cannot start the measuring process")?;
    let pid = i32::try_from(child.id()).context("its process ID")?;
    let limit = monotonic_ns().saturating_add(order.limit_ns);
    loop {
        let left = limit.saturating_sub(monotonic_ns());
        fd::wait_readable([events.as_fd()], Duration::from_nanos(left)).context("waiting")?;
        fd::drain(events.as_fd());
        while let Ok(Some((ended, exit))) = process::try_wait_any() {
            if ended == pid {
                anyhow::ensure!(exit.success(), "the measuring process {exit}");
                return Ok(());
            }
        }
        if monotonic_ns() >= limit {
            let _ = process::kill(pid);
            anyhow::bail!(
                "the plan did not finish within {} s of the board's time",
                order.limit_ns / 1_000_000_000
            );
        }
    }
}

/// The measuring process, of this program: carries out the order and sends the run out as it grows.
#[must_use]
pub fn measure_main(program: Program) -> i32 {
    let done = read::<Order>(ORDER_PATH).and_then(|mut order| {
        let mut way_out = WayOut::open().context("the channel to the emulator")?;
        let mut settling = || tell(&mut way_out, Event::Settling { at_ns: monotonic_ns() });
        let unrest = rest::wait(&mut settling);
        if let Some(board) = &mut order.virtual_board
            && board.takes_turns()
        {
            let wait_ns = turns::longest_wait_ns().context("how long CPUs wait for their turn")?;
            board.turn_wait_ns = Some(wait_ns);
        }
        let conditions = unrest.into_iter().collect();
        remote::measure(&order, program, Path::new(RUN), conditions, &mut way_out)
    });
    match done {
        Ok(()) => 0,
        Err(error) => {
            if let Ok(mut way_out) = WayOut::open() {
                tell(&mut way_out, Event::Trouble { text: format!("{error:#}") });
            }
            1
        }
    }
}

/// The channel to the emulator.
struct WayOut(Channel);

impl WayOut {
    fn open() -> io::Result<Self> {
        Channel::open().map(Self)
    }
}

impl Carrier for WayOut {
    fn carry(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }
}
