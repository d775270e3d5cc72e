//! Lines for the kernel's log and for a console.

use std::convert::Infallible;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::thread;
use std::time::Duration;

use punctual_sys::{error, fd};

use crate::harness::worker::{LoadError, Worker};
use crate::registry::load::{Form, LoadEntry, Owns, PartForm, nothing_to_resolve};
use crate::registry::need::KERNEL_LOG;
use crate::registry::{Default, Kind, Param, any_text};

const LOGGED: usize = 0;
const TYPED: usize = 1;
const LOG: &str = "/dev/kmsg";
/// What its lines begin with, in the log and on the console.
const PREFIX: &str = "punctual-load: ";

pub(super) const ENTRY: LoadEntry = LoadEntry {
    name: "console",
    summary: "write lines to the kernel's log and to a console",
    help: "Writes lines that begin with \"punctual-load:\" to /dev/kmsg, from where the kernel prints \
           them on its consoles if their level is below that of kernel.printk, and to tty: a serial \
           console can hold up a kernel for milliseconds at each line. lines-logged counts lines \
           that were read back from the log, console-bytes what tty has taken; it stays 0 if tty \
           cannot be written to. The log keeps the lines, and so may files of the machine's log \
           daemon.",
    main_param: "tty",
    params: &[
        Param {
            name: "tty",
            kind: Kind::Text { value: "FILE", check: any_text },
            default: Default::Value("/dev/console"),
            help: "device of the console",
        },
        Param {
            name: "rate",
            kind: Kind::Count { low: 1, high: 100_000 },
            default: Default::Value("100"),
            help: "lines per second to each of the two",
        },
        Param {
            name: "level",
            kind: Kind::Count { low: 0, high: 7 },
            default: Default::Value("6"),
            help: "level of the lines in the log, from 0 for emergencies",
        },
    ],
    counters: &["lines-logged", "console-bytes"],
    needs: &[KERNEL_LOG],
    form: Form::Part(PartForm {
        resolve: nothing_to_resolve,
        owns: Owns::Nothing,
        steady_from: None,
        run,
    }),
};

fn run(worker: &Worker<'_>) -> Result<Infallible, LoadError> {
    let values = worker.values();
    let (tty, level) = (values.text("tty"), values.number("level"));
    let pause = Duration::from_secs(1) / values.small("rate");
    worker.fork(|worker| {
        // A serial line without a carrier may hold this up, and is not to become the terminal that
        // controls this process.
        const O_NOCTTY: i32 = 0o400;
        if let Ok(console) = OpenOptions::new().write(true).custom_flags(O_NOCTTY).open(tty) {
            typewrite(worker, &console, pause);
        }
        // Goes on like a machine without a console.
        loop {
            thread::park();
        }
    })?;
    let failed = |error| LoadError::io(LOG, &error);
    let mut log = File::open(LOG).map_err(failed)?;
    log.seek(SeekFrom::End(0)).map_err(failed)?;
    fd::set_nonblocking(log.as_fd()).map_err(failed)?;
    let mut number = 0_u64;
    loop {
        number += 1;
        // By default the kernel drops what one opening writes beyond 10 lines in 5 s.
        let mut writer = OpenOptions::new().write(true).open(LOG).map_err(failed)?;
        // One call is one record.
        let line = format!("<{level}>{PREFIX}line {number} of the load console\n");
        writer.write_all(line.as_bytes()).map_err(failed)?;
        worker.add(LOGGED, read_back(&mut log)?);
        thread::sleep(pause);
    }
}

/// Writes to the console until that fails, as it does on a machine without one.
fn typewrite(worker: &Worker<'_>, mut console: &File, pause: Duration) {
    for number in 1_u64.. {
        let line = format!("{PREFIX}line {number} of the load console\r\n");
        if console.write_all(line.as_bytes()).is_err() {
            return;
        }
        worker.add(TYPED, line.len() as u64);
        thread::sleep(pause);
    }
}

/// How many lines of this load are new in the log.
fn read_back(log: &mut File) -> Result<u64, LoadError> {
    let mut record = [0; 8192];
    let mut lines = 0;
    loop {
        match log.read(&mut record) {
            Ok(0) => return Ok(lines),
            Ok(length) => lines += u64::from(is_own(&record[..length])),
            Err(error) => match (error.kind(), error.raw_os_error()) {
                (ErrorKind::WouldBlock, _) => return Ok(lines),
                // Others wrote so much that lines were dropped before they could be read.
                (ErrorKind::BrokenPipe | ErrorKind::Interrupted, _) => {}
                _ => return Err(LoadError::Failed(format!("{LOG}: {}", error::text(&error)))),
            },
        }
    }
}

/// Whether a record is of this load: its text follows the first semicolon
/// (Documentation/ABI/testing/dev-kmsg).
fn is_own(record: &[u8]) -> bool {
    let text = record.iter().position(|byte| *byte == b';').map(|at| &record[at + 1..]);
    text.is_some_and(|text| text.starts_with(PREFIX.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_own_records_count() {
        assert!(is_own(b"14,1063,2543213,-;punctual-load: line 1 of the load console\n"));
        for other in [&b"6,1,2,-;usb 1-1: punctual-load: no\n"[..], b"punctual-load: x", b""] {
            assert!(!is_own(other));
        }
    }
}
