//! punctual as the init of a virtual board: mounts, modules, the plan, the way out.
//!
//! The kernel starts [`init_main`] as process 1. It prepares the machine, starts this
//! program again to measure ([`measure_main`]), reaps what is orphaned meanwhile, and
//! restarts the machine, which ends the emulator. Two processes, so that a crash of the
//! one that measures is told by the other, and is no panic of the kernel.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use punctual_core::guest::{Event, MODULES_PATH, Message, ORDER_PATH, Order, encode};
use punctual_core::json;
use punctual_core::schema::{Cell, Run};
use punctual_sys::boot;
use punctual_sys::clock::monotonic_ns;
use punctual_sys::emulator::Channel;
use punctual_sys::{fd, process};

use crate::engine::{self, Observer, Options, Progress, SyncPolicy};

/// The command that init starts this program with to measure; no part of the interface.
pub const MEASURE: &str = "__measure";

/// Where the run directory grows in the guest's memory.
const RUN: &str = "/run/punctual";

/// What is mounted, where, and whether the plan can do without it.
const MOUNTS: [(&str, &str, bool); 7] = [
    ("proc", "/proc", false),
    ("sysfs", "/sys", false),
    ("devtmpfs", "/dev", false),
    ("tmpfs", "/tmp", false),
    ("tmpfs", "/run", false),
    ("tracefs", "/sys/kernel/tracing", true),
    ("debugfs", "/sys/kernel/debug", true),
];

/// Whether this process is a virtual board's init: process 1, with an order to carry out.
#[must_use]
pub fn is_init() -> bool {
    boot::is_init() && Path::new(ORDER_PATH).exists()
}

/// Init of a virtual board. What the kernel hands it as arguments is not read: on arm64
/// words of the kernel's command line are among them.
pub fn init_main() {
    let order = read_order();
    if order.as_ref().is_ok_and(|order| order.crash) {
        eprintln!("punctual: init ends, as it was told to");
        return;
    }
    for (kind, on, optional) in MOUNTS {
        let mounted = fs::create_dir_all(on).and_then(|()| boot::mount(kind, Path::new(on), ""));
        if let Err(error) = mounted
            && !optional
        {
            eprintln!("punctual: cannot mount {kind} on {on}: {error}");
        }
    }
    // Loads send to it; a kernel without a network has none.
    if let Err(error) = boot::raise_loopback() {
        eprintln!("punctual: no loopback interface: {error}");
    }
    match order {
        Ok(order) => attend(&order),
        Err(error) => eprintln!("punctual: {error:#}"),
    }
    if let Err(error) = boot::restart() {
        eprintln!("punctual: cannot restart: {error}");
    }
}

fn read_order() -> anyhow::Result<Order> {
    let text = fs::read(ORDER_PATH).with_context(|| format!("cannot read {ORDER_PATH}"))?;
    json::read(&text).with_context(|| format!("{ORDER_PATH} is no order"))
}

/// Prepares what the plan needs, has it measured, and tells how that ended.
fn attend(order: &Order) {
    let mut way_out = match WayOut::open() {
        Ok(way_out) => way_out,
        Err(error) => {
            eprintln!("punctual: no channel to the emulator: {error}");
            return;
        }
    };
    way_out.tell(Event::Booted { at_ns: monotonic_ns() });
    let prepared = load_modules(order).and_then(|()| find_devices(order));
    let whole = match prepared.and_then(|()| measure(order)) {
        Ok(()) => true,
        Err(error) => {
            way_out.tell(Event::Trouble { text: format!("{error:#}") });
            false
        }
    };
    way_out.tell(Event::Ended { at_ns: monotonic_ns(), whole });
}

fn load_modules(order: &Order) -> anyhow::Result<()> {
    for module in &order.modules {
        let path = Path::new(MODULES_PATH).join(&module.file);
        File::open(&path)
            .and_then(|file| boot::load_module(&file, &module.parameters))
            .with_context(|| format!("module {} does not load", module.file))?;
        // Its memory is of use to the measurement.
        let _ = fs::remove_file(path);
    }
    for (path, text) in &order.writes {
        fs::write(path, text).with_context(|| format!("cannot write \"{text}\" to {path}"))?;
    }
    Ok(())
}

fn find_devices(order: &Order) -> anyhow::Result<()> {
    // Devices of a driver that probes in the background appear a little later.
    for path in &order.expects {
        let mut waited = 0;
        while !Path::new(path).exists() {
            anyhow::ensure!(waited < 20, "{path} has not appeared: the board lacks the device");
            std::thread::sleep(Duration::from_millis(100));
            waited += 1;
        }
    }
    Ok(())
}

/// Runs the measuring process to its end, at most as long as the order allows.
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
                "the plan has not ended {} s of the board's time after its start",
                order.limit_ns / 1_000_000_000
            );
        }
    }
}

/// The measuring process: runs the plan of the order, and sends the run out as it grows.
#[must_use]
pub fn measure_main() -> i32 {
    match read_order().and_then(|order| run(&order)) {
        Ok(()) => 0,
        Err(error) => {
            if let Ok(mut way_out) = WayOut::open() {
                way_out.tell(Event::Trouble { text: format!("{error:#}") });
            }
            1
        }
    }
}

fn run(order: &Order) -> anyhow::Result<()> {
    let options = Options {
        out: Some(PathBuf::from(RUN)),
        board_name: Some(order.board.clone()),
        lab: Some(order.lab.clone()),
        sync: SyncPolicy::Cell,
        // The host's to say.
        group: None,
        replicate: order.replicate,
        phase_ns: order.phase_ns,
        dma_latency_us: Some(0),
        break_ns: None,
        threshold_ns: None,
        force: false,
    };
    let way_out = WayOut::open().context("the channel to the emulator")?;
    let mut sender = Sender { way_out, cell: None, sent: BTreeMap::new() };
    let finished = engine::run(&order.plan, &options, &mut sender)?;
    if let Some(reason) = finished.not_written {
        anyhow::bail!("run.json could not be written: {reason}");
    }
    sender.whole("run.json");
    Ok(())
}

/// The channel that messages leave by.
struct WayOut(Channel);

impl WayOut {
    fn open() -> std::io::Result<Self> {
        Channel::open().map(Self)
    }

    fn send(&mut self, message: &Message) {
        if let Err(error) = self.0.write_all(&encode(message)) {
            eprintln!("punctual: a message is lost: {error}");
        }
    }

    fn tell(&mut self, event: Event) {
        self.send(&Message::Event(event));
    }
}

/// Follows the run and sends out what it writes.
struct Sender {
    way_out: WayOut,
    /// Folder of the cell that is measured.
    cell: Option<String>,
    /// How much of a file that grows has been sent.
    sent: BTreeMap<String, u64>,
}

impl Sender {
    /// A file that is replaced as a whole; one that is not there yet is sent later.
    fn whole(&mut self, name: &str) {
        if let Ok(bytes) = fs::read(Path::new(RUN).join(name)) {
            self.way_out.send(&Message::Whole(name.to_owned(), bytes));
        }
    }

    /// What has been added to a file.
    fn added(&mut self, name: String) {
        let from = self.sent.get(&name).copied().unwrap_or(0);
        let mut bytes = Vec::new();
        let read = File::open(Path::new(RUN).join(&name)).and_then(|mut file| {
            file.seek(SeekFrom::Start(from))?;
            file.read_to_end(&mut bytes)
        });
        if read.is_ok() && !bytes.is_empty() {
            self.sent.insert(name.clone(), from + bytes.len() as u64);
            self.way_out.send(&Message::Append(name, bytes));
        }
    }

    fn added_to_cell(&mut self, file: &str) {
        if let Some(dir) = self.cell.clone() {
            self.added(format!("cells/{dir}/{file}"));
        }
    }
}

impl Observer for Sender {
    fn started(&mut self, run: &Run, _dir: &Path, plan_ns: u64) {
        let cells = run.cells.len();
        self.way_out.tell(Event::Started { at_ns: monotonic_ns(), plan_ns, cells });
    }

    fn cell_started(&mut self, cell: &Cell, number: usize, before_ns: u64) {
        self.whole("run.json");
        self.cell = Some(cell.dir.clone());
        let key = cell.key.clone();
        self.way_out.tell(Event::Cell { at_ns: monotonic_ns(), number, key, before_ns });
    }

    fn progress(&mut self, progress: &Progress<'_>) {
        self.added_to_cell("blocks");
        self.way_out.tell(Event::Progress {
            at_ns: monotonic_ns(),
            measured_ns: progress.measured_ns,
            max_ns: progress.max_ns,
        });
    }

    fn snapshot(&mut self) {}

    fn cell_ended(&mut self, _cell: &Cell) {
        self.added_to_cell("blocks");
        self.added_to_cell("histograms");
    }
}
