//! Measures on behalf of another side: carries out an [`Order`] and sends the run out over a
//! byte channel while it grows.
//!
//! Messages are written by the process that measures, between seconds of a cell. The carrier
//! must not delay it for longer than a file would.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use punctual_core::channel::{Event, Message, Order, encode};
use punctual_core::judge::Unjudged;
use punctual_core::schema::{Cell, Condition, Run};
use punctual_sys::clock::monotonic_ns;

use crate::engine::{self, Observer, Options, Program, Progress, SyncPolicy};

/// Transports the bytes of messages, either all of them or with an error.
pub trait Carrier {
    /// Passes bytes to the other side.
    ///
    /// # Errors
    /// Why they could not be sent.
    fn carry(&mut self, bytes: &[u8]) -> io::Result<()>;
}

/// Tells the other side. A message that cannot be sent is dropped with a line on stderr: the
/// measurement matters more than its progress reports.
pub fn tell(carrier: &mut dyn Carrier, event: Event) {
    send(carrier, &Message::Event(event));
}

fn send(carrier: &mut dyn Carrier, message: &Message) {
    if let Err(error) = carrier.carry(&encode(message)) {
        eprintln!("punctual: a message is lost: {error}");
    }
}

/// Runs the order in `dir`, which must not exist yet, and sends the run out as it grows. It is
/// judged by the side that ordered it. `conditions` are those that are known beforehand.
///
/// # Errors
/// Those of [`engine::run`], or `run.json` could not be written.
pub fn measure(
    order: &Order,
    program: Program,
    dir: &Path,
    conditions: Vec<Condition>,
    carrier: &mut dyn Carrier,
) -> anyhow::Result<()> {
    let options = Options {
        out: Some(PathBuf::from(dir)),
        // What names the run and its board stays with the side that ordered it.
        board_name: None,
        group: None,
        replicate: None,
        runs: 1,
        program,
        virtual_board: order.virtual_board,
        sync: SyncPolicy::Cell,
        phase_ns: order.phase_ns,
        dither: order.dither.clone(),
        aim: order.aim,
        dma_latency_us: Some(0),
        break_ns: None,
        threshold_ns: order.threshold_ns,
        force: false,
        all_cpus: false,
        require_rt: false,
        continued: None,
        // The other side, which sent the program, knows it.
        tool_sha256: Some(String::new()),
        conditions,
    };
    let mut sender = Sender { carrier, dir, cell: None, sent: BTreeMap::new() };
    let finished = engine::run(&order.plan(), &options, &Unjudged, &mut sender)?;
    if let Some(reason) = finished.not_written {
        anyhow::bail!("run.json could not be written: {reason}");
    }
    sender.whole("run.json");
    Ok(())
}

/// Follows the run and sends out what it writes.
struct Sender<'a> {
    carrier: &'a mut dyn Carrier,
    /// The run directory.
    dir: &'a Path,
    /// Folder of the cell that is being measured.
    cell: Option<String>,
    /// How much of each growing file has been sent.
    sent: BTreeMap<String, u64>,
}

impl Sender<'_> {
    fn tell(&mut self, event: Event) {
        tell(self.carrier, event);
    }

    /// Sends a file that is replaced as a whole. If it does not exist yet it is sent later.
    fn whole(&mut self, name: &str) {
        if let Ok(bytes) = fs::read(self.dir.join(name)) {
            send(self.carrier, &Message::Whole(name.to_owned(), bytes));
        }
    }

    /// Sends what has been added to a file.
    fn added(&mut self, name: String) {
        let from = self.sent.get(&name).copied().unwrap_or(0);
        let mut bytes = Vec::new();
        let read = File::open(self.dir.join(&name)).and_then(|mut file| {
            file.seek(SeekFrom::Start(from))?;
            file.read_to_end(&mut bytes)
        });
        if read.is_ok() && !bytes.is_empty() {
            self.sent.insert(name.clone(), from + bytes.len() as u64);
            send(self.carrier, &Message::Append(name, bytes));
        }
    }

    fn added_to_cell(&mut self, file: &str) {
        if let Some(dir) = self.cell.clone() {
            self.added(format!("cells/{dir}/{file}"));
        }
    }
}

impl Observer for Sender<'_> {
    fn started(&mut self, run: &Run, _dir: &Path, plan_ns: u64) {
        let cells = run.cells.len();
        self.tell(Event::Started { at_ns: monotonic_ns(), plan_ns, cells });
    }

    fn cell_started(&mut self, cell: &Cell, number: usize, before_ns: u64) {
        self.whole("run.json");
        self.cell = Some(cell.dir.clone());
        let key = cell.key.clone();
        self.tell(Event::Cell { at_ns: monotonic_ns(), number, key, before_ns });
    }

    fn progress(&mut self, progress: &Progress<'_>) {
        self.added_to_cell("blocks");
        self.tell(Event::Progress {
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
