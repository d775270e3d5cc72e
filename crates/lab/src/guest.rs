//! A guest: QEMU as a child process, its channel and its console, until it ends.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail, ensure};
use punctual_core::guest::{Decoder, Event, Message};
use punctual_core::json;
use punctual_core::schema::{Condition, Run};
use punctual_sys::affinity::{self, CpuSet};
use punctual_sys::process::bind_to_this;

use crate::arch::Arch;
use crate::files;

/// The guest's console, kept with the run.
pub const CONSOLE: &str = "console.log";

/// What the guest has sent, as it came; held open while the guest runs, and removed at
/// the end.
pub const CHANNEL: &str = ".channel";

/// The guest's initramfs; removed at the end.
const INITRAMFS: &str = ".initramfs";

/// What QEMU itself complained of; removed where it did not.
const COMPLAINTS: &str = "qemu.log";

/// Lines of the console that are shown where a guest failed.
const LAST_LINES: usize = 12;

/// How the kernel begins to say why it panics; its stack and registers come behind that.
const PANIC: &str = "Kernel panic - ";

/// What to boot.
#[derive(Debug, Clone, Copy)]
pub struct Boot<'a> {
    /// Architecture: which QEMU.
    pub arch: Arch,
    /// QEMU's options but for files.
    pub options: &'a [String],
    /// What QEMU boots.
    pub kernel: &'a Path,
    /// The kernel's command line.
    pub parameters: &'a str,
    /// The whole initramfs.
    pub initramfs: &'a [u8],
    /// The run directory, which must not exist.
    pub dir: &'a Path,
    /// The CPU of the host to stay on; any where there is none.
    pub cpu: Option<u32>,
    /// Longest time without a sign of life, in the host's time.
    pub patience: Duration,
}

/// The oldest QEMU that has what boards need: semihosting from user space.
const OLDEST: (u32, u32) = (7, 2);

/// Completes `run.json` with what only the host knows; an error ends the guest.
pub type Complete = Box<dyn Fn(&mut Run) -> anyhow::Result<()>>;

/// A guest that was booted.
pub struct Guest {
    child: Child,
    cpu: Option<u32>,
    dir: PathBuf,
    channel: File,
    decoder: Decoder,
    complete: Complete,
    started: Instant,
    alive: Instant,
    patience: Duration,
    console_bytes: u64,
    /// Whether init runs, which gives signs of life of its own.
    booted: bool,
    /// Whether the guest said that the whole run came out.
    whole: bool,
    troubles: Vec<String>,
    /// The first message that could not be read.
    damage: Option<String>,
}

/// How a guest ended: the reasons why its run is not whole, the first one first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// None: the whole run is there.
    pub troubles: Vec<String>,
    /// The last lines of its console, where there are troubles.
    pub last_lines: Vec<String>,
}

/// The name of the program that emulates an architecture, and the package that has it.
#[must_use]
pub fn emulator(arch: Arch) -> (&'static str, &'static str) {
    match arch {
        Arch::X86_64 => ("qemu-system-x86_64", "qemu-system-x86"),
        Arch::Aarch64 => ("qemu-system-aarch64", "qemu-system-arm"),
    }
}

/// Version of the emulator, as `7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)`.
///
/// # Errors
/// Where it is not installed or does not tell.
pub fn emulator_version(arch: Arch) -> anyhow::Result<String> {
    let (program, package) = emulator(arch);
    let output = match Command::new(program).arg("--version").stdin(Stdio::null()).output() {
        Ok(output) => output,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            bail!(
                "there is no {program} on this machine: install it (on Debian: apt-get install \
                 --no-install-recommends {package})"
            )
        }
        Err(error) => return Err(error).context(format!("cannot start {program}")),
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.lines().next().and_then(|line| line.split("version ").nth(1));
    let version = version.ok_or_else(|| anyhow!("{program} --version tells no version"))?;
    let mut numbers = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let number = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    ensure!(
        number >= OLDEST,
        "{program} is of version {version}: {}.{} or newer is needed",
        OLDEST.0,
        OLDEST.1
    );
    Ok(version.to_owned())
}

impl Guest {
    /// Boots a guest. It ends with the calling thread, however that ends.
    ///
    /// # Errors
    /// Where the run directory cannot be made or QEMU not be started.
    pub fn boot(boot: &Boot<'_>, complete: Complete) -> anyhow::Result<Self> {
        let dir = boot.dir;
        fs::create_dir(dir).with_context(|| format!("cannot make {}", dir.display()))?;
        Self::start(boot, complete).inspect_err(|_| remove_hidden(dir))
    }

    fn start(boot: &Boot<'_>, complete: Complete) -> anyhow::Result<Self> {
        let dir = boot.dir;
        let write = |name: &str, bytes: &[u8]| {
            let path = dir.join(name);
            fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))
        };
        write(INITRAMFS, boot.initramfs)?;
        write(CHANNEL, &[])?;
        write(CONSOLE, &[])?;
        let (program, _) = emulator(boot.arch);
        let mut command = Command::new(program);
        command
            .args(boot.options)
            .args(["-serial", &file_option("file:", &dir.join(CONSOLE))])
            .arg("-chardev")
            .arg(file_option("file,id=channel,path=", &dir.join(CHANNEL)))
            .arg("-kernel")
            .arg(boot.kernel)
            .arg("-initrd")
            .arg(dir.join(INITRAMFS))
            .args(["-append", boot.parameters])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(dir.join(COMPLAINTS)).context("the log of QEMU")?);
        bind_to_this(&mut command);
        let child =
            spawn(&mut command, boot.cpu).with_context(|| format!("cannot start {program}"))?;
        let channel = File::open(dir.join(CHANNEL)).context("the channel")?;
        let now = Instant::now();
        Ok(Self {
            child,
            cpu: boot.cpu,
            dir: dir.to_owned(),
            channel,
            decoder: Decoder::default(),
            complete,
            started: now,
            alive: now,
            patience: boot.patience,
            console_bytes: 0,
            booted: false,
            whole: false,
            troubles: Vec::new(),
            damage: None,
        })
    }

    /// The CPU of the host that it stays on.
    #[must_use]
    pub fn cpu(&self) -> Option<u32> {
        self.cpu
    }

    /// Time since the start, of the host.
    #[must_use]
    pub fn wall(&self) -> Duration {
        self.started.elapsed()
    }

    /// Takes what the guest has sent since, and hands events on; `Some` once it has ended.
    pub fn poll(&mut self, mut tell: impl FnMut(&Event)) -> Option<End> {
        // Asked before the channel is read to its end: nothing comes behind it.
        let ended = self.child.try_wait();
        let is_over = matches!(ended, Ok(Some(_)));
        if let Err(error) = self.receive(is_over, &mut tell) {
            self.troubles.push(format!("{error:#}"));
            self.kill();
            return Some(self.end(None));
        }
        match ended {
            Ok(Some(status)) => Some(self.end(Some(status))),
            Ok(None) if self.is_stuck() => {
                self.troubles.push(format!(
                    "no sign of life for {} s of the host's time: the guest hangs, or this host is \
                     too busy (--patience)",
                    self.patience.as_secs()
                ));
                self.kill();
                Some(self.end(None))
            }
            Ok(None) => None,
            Err(error) => {
                self.troubles.push(format!("QEMU cannot be waited for: {error}"));
                self.kill();
                Some(self.end(None))
            }
        }
    }

    /// Ends the guest at once.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Ends a guest that nobody waits for any more; what came out stays.
    pub fn abandon(mut self) {
        self.kill();
        self.troubles.push("ended by a signal".to_owned());
        self.end(None);
    }

    /// A kernel that complains on its console for ever, as of a CPU that is stuck, is not
    /// alive: once init runs, only what it sends counts.
    fn is_stuck(&mut self) -> bool {
        let console = fs::metadata(self.dir.join(CONSOLE)).map_or(0, |file| file.len());
        if console != self.console_bytes && !self.booted {
            self.console_bytes = console;
            self.alive = Instant::now();
        }
        self.alive.elapsed() > self.patience
    }

    /// Takes what has come; of a guest that has `ended` nothing more will.
    fn receive(&mut self, ended: bool, tell: &mut impl FnMut(&Event)) -> anyhow::Result<()> {
        let mut bytes = Vec::new();
        self.channel.read_to_end(&mut bytes).context("cannot read the channel")?;
        if !bytes.is_empty() {
            self.alive = Instant::now();
            self.decoder.push(&bytes);
            if !self.booted {
                // Init runs: the guest has its initramfs in its own memory.
                self.booted = true;
                let _ = fs::remove_file(self.dir.join(INITRAMFS));
            }
        }
        loop {
            match self.decoder.take() {
                Ok(Some(message)) => self.act(message, tell)?,
                Ok(None) if ended && self.decoder.skip() => {}
                Ok(None) => return Ok(()),
                Err(error) => {
                    // Who measured was ended in the middle of a message: init tells why behind it.
                    if self.damage.is_none() {
                        self.damage = Some(error.to_string());
                    }
                    self.decoder.skip();
                }
            }
        }
    }

    fn act(&mut self, message: Message, tell: &mut impl FnMut(&Event)) -> anyhow::Result<()> {
        match message {
            Message::Event(event) => {
                match &event {
                    Event::Trouble { text } => self.troubles.push(printable(text)),
                    Event::Ended { whole, .. } => self.whole = *whole,
                    _ => {}
                }
                tell(&event);
                Ok(())
            }
            Message::Append(name, bytes) => self.append(&name, &bytes),
            Message::Whole(name, bytes) if name == "run.json" => self.run_json(&bytes),
            Message::Whole(name, bytes) => self.replace(&name, &bytes),
        }
    }

    fn append(&self, name: &str, bytes: &[u8]) -> anyhow::Result<()> {
        let path = self.dir.join(name);
        let write = || -> io::Result<()> {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            OpenOptions::new().append(true).create(true).open(&path)?.write_all(bytes)
        };
        write().with_context(|| format!("cannot write {}", path.display()))
    }

    fn run_json(&self, bytes: &[u8]) -> anyhow::Result<()> {
        let mut run: Run = json::read(bytes).context("run.json of the guest")?;
        (self.complete)(&mut run)?;
        let mut text = serde_json::to_vec_pretty(&run)?;
        text.push(b'\n');
        self.replace("run.json", &text)
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> anyhow::Result<()> {
        let path = self.dir.join(name);
        files::replace(&path, bytes).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Whether the run came out, and what the console last said where it did not.
    fn end(&mut self, status: Option<ExitStatus>) -> End {
        remove_hidden(&self.dir);
        let complaints = fs::read_to_string(self.dir.join(COMPLAINTS)).unwrap_or_default();
        if complaints.trim().is_empty() {
            let _ = fs::remove_file(self.dir.join(COMPLAINTS));
        }
        if let Some(status) = status.filter(|_| !self.whole && self.troubles.is_empty()) {
            let text = match complaints.trim() {
                "" if status.success() => {
                    "the guest ended before its run: a panic, or too little memory (--memory)"
                        .to_owned()
                }
                "" => format!("QEMU ended: {status}"),
                // Before it aborts QEMU prints every register; all of it is in the file.
                complaints => format!(
                    "QEMU ended: {} ({COMPLAINTS} has all of it)",
                    complaints.lines().last().unwrap_or_default()
                ),
            };
            self.troubles.push(text);
        }
        self.troubles.extend(self.damage.take());
        if !self.troubles.is_empty() {
            // What it says of itself is all that a report made later can know.
            let _ = self.note(&self.troubles.join("; "));
        }
        let last_lines = if self.troubles.is_empty() { Vec::new() } else { self.last_lines() };
        End { troubles: std::mem::take(&mut self.troubles), last_lines }
    }

    /// Puts the reason why a run is not whole into it, where something of it is there.
    fn note(&self, text: &str) -> anyhow::Result<()> {
        let bytes = fs::read(self.dir.join("run.json"))?;
        let mut run: Run = json::read(&bytes)?;
        let text = format!("the guest failed: {text}");
        run.conditions.insert(0, Condition { id: "guest-failed".to_owned(), text });
        let mut bytes = serde_json::to_vec_pretty(&run)?;
        bytes.push(b'\n');
        self.replace("run.json", &bytes)
    }

    fn last_lines(&self) -> Vec<String> {
        last_lines(&fs::read(self.dir.join(CONSOLE)).unwrap_or_default())
    }
}

/// A guest's text without what would steer a terminal.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

/// The last lines of a console, the first of them why the kernel panicked where it did.
fn last_lines(console: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(console);
    let lines: Vec<String> =
        text.lines().map(printable).filter(|line| !line.trim().is_empty()).collect();
    let mut last = lines[lines.len().saturating_sub(LAST_LINES)..].to_vec();
    let is_reason = |line: &&String| line.contains(PANIC) && !line.contains("---[ end");
    if let Some(reason) = lines.iter().find(is_reason)
        && !last.contains(reason)
    {
        last[0].clone_from(reason);
    }
    last
}

impl Drop for Guest {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.kill();
        }
    }
}

/// Starts a command on one CPU, which it inherits from the calling thread.
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

/// Removes what only a running guest needs.
fn remove_hidden(dir: &Path) {
    for name in [INITRAMFS, CHANNEL] {
        let _ = fs::remove_file(dir.join(name));
    }
}

/// An option with a path: QEMU takes a comma doubled.
fn file_option(before: &str, path: &Path) -> String {
    let path = path.to_string_lossy();
    if before.contains(',') {
        format!("{before}{}", path.replace(',', ",,"))
    } else {
        format!("{before}{path}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_a_panic_is_shown_before_the_last_lines() {
        assert_eq!(last_lines(b"one\r\n\r\ntwo\x07\r\n"), ["one", "two"]);
        let panic = "[ 6.2] Kernel panic - not syncing: Attempted to kill init!";
        let trace: String = (0..20).map(|number| format!("frame {number}\n")).collect();
        let end = "---[ end Kernel panic - not syncing: Attempted to kill init! ]---";
        let shown = last_lines(format!("{panic}\n{trace}{end}\n").as_bytes());
        assert_eq!(shown.len(), LAST_LINES);
        assert_eq!((&shown[0], &shown[1]), (&panic.to_owned(), &"frame 10".to_owned()));
        assert_eq!(shown[LAST_LINES - 1], end);
        let short = last_lines(format!("{panic}\n{end}\n").as_bytes());
        assert_eq!(short, [panic, end]);
    }
}
