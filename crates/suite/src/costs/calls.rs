//! System calls on files and sockets that nobody waits for.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};

use punctual_core::schema::{Better, CostSection, Unit};
use punctual_sys::calls::WriteSet;
use punctual_sys::error::{kind, text};
use punctual_sys::shared::memory_file;

use super::apart::{Apart, Scale, timed};
use crate::registry::cost::{Column, CostEntry, Method};
use crate::registry::{Choice, Default, Kind, Param, Values};

pub(super) const IO: CostEntry = CostEntry {
    name: "lat.io",
    summary: "read and write of one byte of a device that does nothing (null I/O)",
    help: "Reads one byte of /dev/zero and writes one to /dev/null, in a process of one thread: in \
one with threads each call also counts the users of the descriptor. The value is the mean of the two. \
Comparable to null I/O in LMbench's summary.",
    meaning: "half of a 1-byte read of /dev/zero and a 1-byte write to /dev/null, the empty loop \
subtracted",
    params: &[],
    needs: &[],
    unit: Unit::Us,
    better: Better::Less,
    section: CostSection::Processor,
    columns: &[Column { name: "null I/O", params: &[] }],
    open: |_| {
        timed(None, Scale::Us(2.0), || {
            let writer = named("/dev/null", File::options().write(true).open("/dev/null"))?;
            Ok(NullIo { reader: named("/dev/zero", File::open("/dev/zero"))?, writer })
        })
    },
};

pub(super) const SELECT: CostEntry = CostEntry {
    name: "lat.select",
    summary: "select on 100 descriptors, all ready (slct TCP, 100fd select)",
    help: "Asks select(2), with a timeout of zero, which of some descriptors can be written to: all \
can. They are duplicates of one connected TCP socket of the loopback device, or of one file in memory, \
numbered from the lowest that are free, in a process of one thread. Comparable to slct TCP and to \
100fd select in LMbench's summary.",
    meaning: "one select, the empty loop subtracted",
    params: &[
        Param {
            name: "of",
            kind: Kind::Choice(&[
                Choice::of("tcp", "a TCP connection of the loopback device"),
                Choice::of("file", "a file in memory"),
            ]),
            default: Default::Value("tcp"),
            help: "what the descriptors are",
        },
        Param {
            name: "fds",
            kind: Kind::Count { low: 1, high: 1000 },
            default: Default::Value("100"),
            help: "descriptors",
        },
    ],
    needs: &[],
    unit: Unit::Us,
    better: Better::Less,
    section: CostSection::Processor,
    columns: &[
        Column { name: "slct TCP", params: &[] },
        Column { name: "100fd select", params: &[("of", "file")] },
    ],
    open: open_select,
};

/// The same error with the name of what failed.
pub(super) fn named<T>(what: &str, result: io::Result<T>) -> io::Result<T> {
    result.map_err(|error| io::Error::new(kind(&error), format!("{what}: {}", text(&error))))
}

struct NullIo {
    reader: File,
    writer: File,
}

impl Apart for NullIo {
    fn run(&mut self, iterations: u64) -> io::Result<()> {
        for _ in 0..iterations {
            if self.reader.read(&mut [0])? + self.writer.write(&[0])? != 2 {
                return Err(io::Error::other("a byte was not read or not written"));
            }
        }
        Ok(())
    }
}

fn open_select(values: &Values) -> io::Result<Method> {
    let count: usize = values.small("fds");
    let tcp = values.text("of") == "tcp";
    timed(None, Scale::Us(1.0), || {
        let (of, _others) = if tcp { connected()? } else { in_memory()? };
        let copies = (0..count).map(|_| of.try_clone());
        let copies = named("dup", copies.collect::<io::Result<Vec<_>>>())?;
        let set = WriteSet::new(copies.iter().map(OwnedFd::as_fd))?;
        Ok(Select { set, _kept: (copies, _others) })
    })
}

fn connected() -> io::Result<(OwnedFd, Vec<OwnedFd>)> {
    let listener = named("bind to 127.0.0.1", TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
    let stream = named("connect to 127.0.0.1", TcpStream::connect(listener.local_addr()?))?;
    let (other, _) = named("accept", listener.accept())?;
    Ok((stream.into(), vec![listener.into(), other.into()]))
}

fn in_memory() -> io::Result<(OwnedFd, Vec<OwnedFd>)> {
    Ok((memory_file(c"punctual-select", 1)?.into(), Vec::new()))
}

struct Select {
    set: WriteSet,
    /// The duplicates, and the other ends.
    _kept: (Vec<OwnedFd>, Vec<OwnedFd>),
}

impl Apart for Select {
    fn run(&mut self, iterations: u64) -> io::Result<()> {
        for _ in 0..iterations {
            if self.set.ready()? != self.set.len() {
                return Err(io::Error::other("not every descriptor was ready"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::costs::apart::tests::{leaves_nothing, value};

    #[test]
    fn bytes_are_read_and_written() {
        assert!(value("lat.io", 10_000) > 0.0);
        leaves_nothing("lat.io", 1);
    }

    #[test]
    fn more_descriptors_take_longer() {
        for of in ["tcp", "file"] {
            let of_fds = |fds| value(&format!("lat.select:of={of},fds={fds}"), 2_000);
            let (few, many) = (of_fds(2), of_fds(1_000));
            assert!(many > 3.0 * few && few > 0.0, "{of}: {few} us, {many} us");
        }
        leaves_nothing("lat.select", 1);
    }
}
