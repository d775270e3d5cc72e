//! One QEMU as a child process, until it ends.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use punctual_core::channel::{Event, ORDER_FILE};
use punctual_sys::affinity::{self, CpuSet};
use punctual_sys::file;
use punctual_sys::folder::Folder;
use punctual_sys::limits::cpu_time_of;
use punctual_sys::process::bind_to_this;
use punctual_sys::shared::memory_file;
use punctual_sys::storage::room;

use crate::bounds::{Bounds, LOG};
use crate::console::{CONSOLE, Console};
use crate::observer::Observer;
use crate::patience::{Passed, Patience};
use crate::qmp::{self, Control};
use crate::receiver::Receiver;
use crate::run_dir::{Complete, RunDir};

/// The plugin that watches the guest.
const OBSERVER: &str = "observer.so";

/// The guest's messages as they arrived.
const CHANNEL: &str = "channel";

/// The guest's initramfs.
const INITRAMFS: &str = "initramfs";

/// The order of a guest that goes on from a kept state.
const ORDER: &str = "order";

/// Error messages of QEMU itself; removed if there are none.
const COMPLAINTS: &str = "qemu.log";

/// Longest time that is spent on the messages of one guest before signals and the other guests
/// are looked at.
const SLICE: Duration = Duration::from_millis(100);

/// Less free space than this is none, bytes.
const FULL: u64 = 256 << 10;

/// What to boot.
#[derive(Debug, Clone, Copy)]
pub struct Boot<'a> {
    /// The QEMU program.
    pub program: &'a Path,
    /// QEMU's options except those that name files.
    pub options: &'a [String],
    /// The file that QEMU boots.
    pub kernel: &'a Path,
    /// The kernel's command line.
    pub parameters: &'a str,
    /// What it starts from.
    pub start: Start<'a>,
    /// The run directory, which must not exist yet.
    pub dir: &'a Path,
    /// The folder of what is needed only while the guest runs. It must not exist yet, and goes when
    /// the guest ends.
    pub working: &'a Path,
    /// The host CPU to stay on; `None`: any.
    pub cpu: Option<u32>,
    /// Longest time without a sign of life: CPU time of QEMU, or the host's time while QEMU
    /// uses none.
    pub patience: Duration,
    /// What the guest may do.
    pub bounds: &'a Bounds,
    /// What watches it; its events come out of `Guest::events`.
    pub observer: Option<&'a Observer>,
}

/// What a guest starts from.
#[derive(Debug, Clone, Copy)]
pub enum Start<'a> {
    /// The kernel, with this initramfs.
    Cold(&'a [u8]),
    /// The same, and when the guest pauses its state is written.
    ToKeep {
        /// The initramfs.
        initramfs: &'a [u8],
        /// Where the state goes.
        state: &'a Path,
    },
    /// A state that was written, which finds this order when it goes on.
    Kept {
        /// The state.
        state: &'a Path,
        /// The order.
        order: &'a [u8],
    },
}

/// A running guest.
pub struct Guest {
    child: Child,
    control: Option<Control>,
    /// What QEMU has as the guest's memory, if it is watched there: open until it has been opened.
    _memory: Option<File>,
    cpu: Option<u32>,
    dir: PathBuf,
    working: PathBuf,
    receiver: Receiver,
    console: Console,
    started: Instant,
    patience: Patience,
    /// Longest time in all, as CPU time of QEMU.
    cpu_time: Duration,
    /// What to do if the disk is full.
    elsewhere: &'static str,
}

/// How a guest ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// Reasons why its run is incomplete, in order of time; empty if the whole run is there.
    pub troubles: Vec<String>,
    /// The last lines of its console, if there is trouble.
    pub last_lines: Vec<String>,
}

impl Guest {
    /// Boots a guest. It ends with the calling thread, however that ends.
    ///
    /// # Errors
    /// The run directory cannot be created, or QEMU cannot be started.
    pub fn boot(boot: &Boot<'_>, complete: Complete) -> Result<Self> {
        let dir = RunDir::create(boot.dir, complete)?;
        Self::start(boot, dir).inspect_err(|_| remove(boot.working))
    }

    fn start(boot: &Boot<'_>, run_dir: RunDir) -> Result<Self> {
        let (dir, working) = (boot.dir, boot.working);
        let held =
            make_private(working).with_context(|| format!("cannot make {}", working.display()))?;
        let write = |name: &str, bytes: &[u8]| {
            let file = held.make_file(name);
            file.and_then(|mut file| file.write_all(bytes))
                .with_context(|| format!("cannot write {}", working.join(name).display()))
        };
        write(CHANNEL, &[])?;
        let made = run_dir.folder().make_file(CONSOLE).map(drop);
        made.with_context(|| format!("cannot write {}", dir.join(CONSOLE).display()))?;
        let console = Console::of(dir);
        let mut memory = None;
        let mut command = Command::new(boot.program);
        command
            .args(boot.options)
            .args(["-serial", &file_option("file:", console.path())])
            .arg("-chardev")
            .arg(file_option("file,id=channel,path=", &working.join(CHANNEL)))
            .arg("-kernel")
            .arg(boot.kernel)
            .args(["-append", boot.parameters])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(run_dir.folder().make_file(COMPLAINTS).context("the log of QEMU")?);
        if let Start::Cold(initramfs) | Start::ToKeep { initramfs, .. } = boot.start {
            write(INITRAMFS, initramfs)?;
            command.arg("-initrd").arg(working.join(INITRAMFS));
        }
        if let Start::Kept { order, .. } = boot.start {
            write(ORDER, order)?;
            let option = format!("name={ORDER_FILE},file=");
            command.arg("-fw_cfg").arg(file_option(&option, &working.join(ORDER)));
            command.args(["-incoming", "defer"]);
        }
        if let Start::ToKeep { state, .. } | Start::Kept { state, .. } = boot.start {
            command.args(qmp::OPTIONS).stdin(Stdio::piped()).stdout(Stdio::piped());
            command.env(qmp::STATE, state);
        }
        if let Some(observer) = boot.observer {
            write(OBSERVER, observer.program)?;
            let mut option = file_option("file=,", &working.join(OBSERVER)).replacen("=,", "=", 1);
            observer.arguments.iter().for_each(|argument| {
                option.push(',');
                option.push_str(argument);
            });
            if let Some(bytes) = observer.memory {
                let file = memory_file(c"punctual-guest", bytes).context("the guest's memory")?;
                // QEMU and the observer open it anew: no other child inherits it.
                let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
                let object =
                    format!("memory-backend-file,id=memory,share=on,size={bytes},mem-path={path}");
                command.args(["-object", &object, "-machine", "memory-backend=memory"]);
                option.push_str(&format!(",memory={path}"));
                memory = Some(file);
            }
            command.arg("-plugin").arg(option).stdout(Stdio::piped());
        }
        bind_to_this(&mut command);
        let receiver = Receiver::open(&working.join(CHANNEL), run_dir, boot.bounds.clone())?;
        let child = spawn(&mut command, boot.cpu)
            .with_context(|| format!("cannot start {}", boot.program.display()))?;
        let mut guest = Self {
            child,
            control: None,
            _memory: memory,
            cpu: boot.cpu,
            dir: dir.to_owned(),
            working: working.to_owned(),
            receiver,
            console,
            started: Instant::now(),
            patience: Patience::of(boot.patience),
            cpu_time: boot.bounds.cpu_time,
            elsewhere: match boot.start {
                Start::ToKeep { .. } => "set PUNCTUAL_CACHE to another folder",
                Start::Cold(_) | Start::Kept { .. } => "name another folder with --out",
            },
        };
        guest.control = match boot.start {
            Start::Cold(_) => None,
            Start::ToKeep { .. } => Some(Control::keep(&mut guest.child)?),
            Start::Kept { .. } => Some(Control::go_on(&mut guest.child)?),
        };
        Ok(guest)
    }

    /// What its observer writes; at most once, and `None` if it has none.
    pub(crate) fn events(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// The monitor of one that started from a kept state or is to be kept.
    pub(crate) fn control(&mut self) -> Option<&mut Control> {
        self.control.as_mut()
    }

    /// The host CPU that it stays on.
    #[must_use]
    pub fn cpu(&self) -> Option<u32> {
        self.cpu
    }

    /// Host time since the start.
    #[must_use]
    pub fn wall(&self) -> Duration {
        self.started.elapsed()
    }

    /// Reads what the guest has sent since the last call and passes events on; `Some` once it
    /// has ended.
    pub fn poll(&mut self, mut tell: impl FnMut(&Event)) -> Option<End> {
        // Checked before the channel is read to its end, because nothing can arrive after that.
        let ended = self.child.try_wait();
        let is_over = matches!(ended, Ok(Some(_)));
        let received = match self.receiver.receive(is_over, Instant::now() + SLICE, &mut tell) {
            Ok(received) => received,
            Err(error) => return Some(self.kill(format!("{error:#}"))),
        };
        if received.any {
            self.patience.sign_of_life(self.passed());
            // Init is running, so the guest has unpacked its initramfs, and QEMU has read the order.
            for name in [INITRAMFS, ORDER] {
                let _ = fs::remove_file(self.working.join(name));
            }
        }
        if let Some(excess) = self.excess() {
            return Some(self.kill(excess));
        }
        match ended {
            Ok(Some(_)) if received.more => None,
            Ok(Some(status)) => {
                let why = self.why(status);
                Some(self.end(why))
            }
            Ok(None) => match self.control.as_mut().map_or(Ok(()), Control::step) {
                Ok(()) => self.stuck().map(|why| self.kill(why)),
                Err(error) => {
                    let why = self.with_complaint(&error);
                    Some(self.kill(why))
                }
            },
            Err(error) => Some(self.kill(format!("cannot wait for QEMU: {error}"))),
        }
    }

    /// Ends the guest for this reason.
    pub(crate) fn end_for(mut self, reason: String) -> End {
        self.kill(reason)
    }

    /// Ends a guest that is no longer wanted; what it has sent stays.
    pub fn abandon(mut self) {
        self.kill("ended by a signal".to_owned());
    }

    /// What the guest has had too much of.
    fn excess(&self) -> Option<String> {
        if self.passed().cpu > self.cpu_time {
            return Some(format!(
                "QEMU used more than {} s of CPU time: the guest does not end",
                self.cpu_time.as_secs()
            ));
        }
        let complaints = fs::metadata(self.dir.join(COMPLAINTS)).map_or(0, |file| file.len());
        let of = [("its console", self.console.length()), (COMPLAINTS, complaints)];
        let (what, _) = of.into_iter().find(|(_, length)| *length > LOG)?;
        Some(format!("{what} is longer than {} MiB", LOG >> 20))
    }

    /// Once init runs, only messages count as signs of life: a kernel that prints complaints
    /// for ever, for example about a stuck CPU, is not alive.
    fn stuck(&mut self) -> Option<String> {
        let now = self.passed();
        if self.console.has_grown() && !self.receiver.heard {
            self.patience.sign_of_life(now);
        }
        self.patience.ended(now)
    }

    /// What has passed since the start; CPU time of 0 once QEMU has been waited for.
    fn passed(&self) -> Passed {
        Passed { wall: self.wall(), cpu: cpu_time_of(self.child.id()).unwrap_or_default() }
    }

    /// Ends the guest immediately, for this reason.
    fn kill(&mut self, reason: String) -> End {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.end(vec![reason])
    }

    /// Why a guest that ended by itself has not sent its whole run, unless it has said why.
    fn why(&self, status: ExitStatus) -> Vec<String> {
        if self.receiver.whole || self.receiver.is_in_trouble() {
            return Vec::new();
        }
        let complaints = self.complaints();
        vec![match complaints.trim() {
            "" if status.success() => {
                "the guest ended before its run: a panic, or too little memory (--memory)"
                    .to_owned()
            }
            "" => format!("QEMU ended: {status}"),
            // Before it aborts, QEMU prints every register; the file has all of it.
            complaints => format!(
                "QEMU ended: {} ({COMPLAINTS} has all of it)",
                complaints.lines().last().unwrap_or_default()
            ),
        }]
    }

    /// An error, with what QEMU said last if it said anything.
    pub(crate) fn with_complaint(&self, error: &anyhow::Error) -> String {
        match self.complaints().trim().lines().last() {
            Some(complaint) => format!("{error:#}: {complaint}"),
            None => format!("{error:#}"),
        }
    }

    /// What QEMU itself said.
    fn complaints(&self) -> String {
        let text = file::read(&self.dir.join(COMPLAINTS), 2 * LOG).unwrap_or_default();
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Cleans up the run directory; returns the last console lines if the run is incomplete.
    fn end(&mut self, reasons: Vec<String>) -> End {
        // Before what is removed makes room.
        let full = room(&self.dir).is_ok_and(|room| room.free < FULL);
        remove(&self.working);
        if self.complaints().trim().is_empty() {
            let _ = fs::remove_file(self.dir.join(COMPLAINTS));
        }
        let mut troubles = self.receiver.finish(reasons);
        if full && !troubles.is_empty() {
            // QEMU drops what it cannot write, without a word.
            troubles.insert(
                0,
                format!(
                    "the disk of {} is full: free some space, or {}",
                    self.dir.display(),
                    self.elsewhere
                ),
            );
        }
        let last_lines = if troubles.is_empty() { Vec::new() } else { self.console.last_lines() };
        End { troubles, last_lines }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        remove(&self.working);
    }
}

/// Starts a command on one CPU, by letting it inherit the affinity of the calling thread.
fn spawn(command: &mut Command, cpu: Option<u32>) -> io::Result<Child> {
    let Some(cpu) = cpu else {
        return command.spawn();
    };
    let before = affinity::get()?;
    affinity::set(&CpuSet::of(cpu))?;
    let child = command.spawn();
    affinity::set(&before)?;
    child
}

/// Makes a folder that only this user may use, and opens it.
fn make_private(path: &Path) -> io::Result<Folder> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    Folder::open(path.parent().unwrap_or(Path::new("/")))?.make_private_folder(name)
}

/// Removes what only a running guest needs. What is left goes with the folder that it is in.
fn remove(working: &Path) {
    let _ = fs::remove_dir_all(working);
}

/// An option with a path. QEMU wants commas doubled.
fn file_option(before: &str, path: &Path) -> String {
    let path = path.to_string_lossy();
    if before.contains(',') {
        format!("{before}{}", path.replace(',', ",,"))
    } else {
        format!("{before}{path}")
    }
}
