//! Bandwidths of what joins two processes: blocks that the other one writes and the timed one
//! reads.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use punctual_core::schema::{Better, CostSection, Unit};
use punctual_sys::partner::Partner;
use punctual_sys::region::page_size;

use super::joined::{End, in_words, pair};
use crate::registry::Values;
use crate::registry::cost::{Column, CostEntry, Method, Operation, PEER, Peer, peer_cpus};

/// Bytes that are written and asked for at a time.
const BLOCK: usize = 64 << 10;
/// The content repeats after so many bytes, a prime: a byte that is lost or doubled shows.
const REPEATS: usize = 251;
/// Each block begins at a multiple of this in the pattern: the kernel copies from where no cache
/// line of a common size is split.
const ALIGNED: usize = 64;
/// The pattern repeats after so many bytes.
const PERIOD: usize = REPEATS * ALIGNED;
const _: () = assert!(BLOCK.is_multiple_of(ALIGNED));

pub(super) const PIPE: CostEntry = CostEntry {
    name: "bw.pipe",
    summary: "bandwidth of a pipe between two processes, in blocks of 64 KiB",
    help: "Another process writes blocks of 64 KiB into a pipe of the kernel's default size, and \
           the timed one reads as much as there is, up to 64 KiB at a time. What it reads is compared \
           with what was written, at both ends of each piece. Comparable to the pipe bandwidth in \
           LMbench's summary.",
    columns: &[Column { name: "bw pipe", params: &[] }],
    open: |values| {
        let (here, there) = io::pipe().map_err(|error| in_words("pipe", &error))?;
        open("pipe", values, here, there)
    },
    ..STREAM
};

pub(super) const UNIX: CostEntry = CostEntry {
    name: "bw.unix",
    summary: "bandwidth of a pair of AF_UNIX stream sockets, in blocks of 64 KiB",
    help: "As bw.pipe, through a connected pair of AF_UNIX stream sockets with the kernel's default \
           buffers. Comparable to the AF UNIX bandwidth in LMbench's summary.",
    columns: &[Column { name: "bw AF_UNIX", params: &[] }],
    open: |values| {
        let (here, there) = pair::<UnixStream>()?;
        open(UnixStream::NAME, values, here, there)
    },
    ..STREAM
};

pub(super) const TCP: CostEntry = CostEntry {
    name: "bw.tcp",
    summary: "bandwidth of a TCP connection on 127.0.0.1, in blocks of 64 KiB",
    help: "As bw.pipe, through a TCP connection on the loopback device. The kernel sizes its \
           buffers itself; LMbench sets them to 1 MiB, which the kernel limits to \
           net.core.rmem_max. Otherwise comparable to the TCP bandwidth in LMbench's summary.",
    columns: &[Column { name: "bw TCP", params: &[] }],
    open: |values| {
        let (here, there) = pair::<TcpStream>()?;
        open(TcpStream::NAME, values, here, there)
    },
    ..STREAM
};

/// What they have in common.
const STREAM: CostEntry = CostEntry {
    name: "",
    summary: "",
    help: "",
    meaning: "64 KiB that another process wrote, read",
    params: &[PEER],
    needs: &[],
    unit: Unit::MegabytesPerSecond,
    better: Better::More,
    section: CostSection::Bandwidths,
    columns: &[],
    open: |_| Err(io::ErrorKind::Unsupported.into()),
};

fn open<R, W>(name: &'static str, values: &Values, here: R, there: W) -> io::Result<Method>
where
    R: Read + 'static,
    W: AsFd,
    for<'a> &'a W: Write,
{
    Ok(Method::Timed(Box::new(Stream::new(name, values, here, &there)?)))
}

/// The other process writes as many blocks as it is told to, so that none is there before.
struct Stream<R> {
    name: &'static str,
    here: R,
    orders: PipeWriter,
    /// Bytes read so far.
    at: u64,
    buffer: AlignedBlock,
    partner: Partner,
}

impl<R: Read> Stream<R> {
    fn new<W>(name: &'static str, values: &Values, here: R, there: &W) -> io::Result<Self>
    where
        W: AsFd,
        for<'a> &'a W: Write,
    {
        let (told, orders) = io::pipe().map_err(|error| in_words("pipe", &error))?;
        let mut pattern = AlignedBlock::new(BLOCK + PERIOD);
        for (at, byte) in (0..).zip(pattern.bytes()) {
            *byte = expected(at);
        }
        let body = || write_blocks(&told, there, pattern.bytes());
        let kept = [there.as_fd(), told.as_fd()];
        let partner = Partner::fork(&kept, &peer_cpus(values)?, body)?;
        Ok(Self { name, here, orders, at: 0, buffer: AlignedBlock::new(BLOCK), partner })
    }

    /// Reads what the other process writes when it is told to.
    fn read(&mut self, blocks: u64) -> io::Result<()> {
        self.orders.write_all(&blocks.to_ne_bytes())?;
        let end = self.at + blocks * BLOCK as u64;
        while self.at < end {
            let length = match self.here.read(self.buffer.bytes()) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                length => length?,
            };
            let read = &self.buffer.bytes()[..length];
            let last = self.at + length as u64 - 1;
            if (read[0], read[length - 1]) != (expected(self.at), expected(last)) {
                return Err(io::Error::other("what was read is not what was written"));
            }
            self.at = last + 1;
        }
        Ok(())
    }
}

/// The byte at this place of the stream, and of the pattern.
fn expected(at: u64) -> u8 {
    u8::try_from(at % REPEATS as u64).unwrap_or(0)
}

/// Bytes that begin at a page.
struct AlignedBlock {
    held: Vec<u8>,
    from: usize,
    length: usize,
}

impl AlignedBlock {
    fn new(length: usize) -> Self {
        let held = vec![0; length + page_size()];
        let from = held.as_ptr().align_offset(page_size());
        Self { held, from, length }
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.held[self.from..self.from + self.length]
    }
}

/// The life of the other process, until it is told nothing more.
fn write_blocks<W>(mut told: &PipeReader, mut there: &W, pattern: &[u8]) -> io::Result<()>
where
    for<'a> &'a W: Write,
{
    let (mut order, mut phase) = ([0; 8], 0);
    loop {
        match told.read_exact(&mut order) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            read => read?,
        }
        for _ in 0..u64::from_ne_bytes(order) {
            there.write_all(&pattern[phase..phase + BLOCK])?;
            phase = (phase + BLOCK) % PERIOD;
        }
    }
}

impl<R: Read> Operation for Stream<R> {
    fn run(&mut self, iterations: u64) -> io::Result<()> {
        let read = self.read(iterations);
        read.map_err(|error| self.partner.explain(in_words(self.name, &error)))
    }

    fn empty(&mut self, _: u64) -> io::Result<()> {
        // The loop is one in 64 KiB: it is part of what reading takes.
        Ok(())
    }

    fn value(&self, ns: f64) -> f64 {
        BLOCK as f64 * 1e3 / ns
    }

    fn peers(&self) -> Vec<Peer> {
        vec![Peer { name: "writes".to_owned(), id: self.partner.pid() }]
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{gone, timed, values};
    use super::*;

    #[test]
    fn each_carries_every_byte_in_order_and_leaves_nothing() {
        for entry in [&PIPE, &UNIX, &TCP] {
            let mut operation = timed(entry, &[]);
            operation.run(3).unwrap();
            operation.run(40).unwrap();
            let id = operation.peers()[0].id;
            drop(operation);
            assert!(gone(id), "{}", entry.name);
        }
    }

    #[test]
    fn no_block_is_copied_from_or_to_what_is_unaligned() {
        for length in [BLOCK, BLOCK + PERIOD] {
            let mut buffer = AlignedBlock::new(length);
            let from = buffer.bytes().as_ptr() as usize;
            assert!(from.is_multiple_of(page_size()) && buffer.bytes().len() == length);
        }
        let mut phases: Vec<_> = (0..REPEATS).map(|block| block * BLOCK % PERIOD).collect();
        assert!(phases.iter().all(|phase| phase % ALIGNED == 0));
        phases.sort_unstable();
        phases.dedup();
        assert_eq!(phases.len(), REPEATS, "blocks differ as much as they can");
    }

    #[test]
    fn mb_are_a_million_bytes() {
        let operation = timed(&PIPE, &[]);
        // 65536 bytes in 65.536 us.
        assert_eq!(operation.value(65_536.0), 1000.0);
    }

    #[test]
    fn another_content_and_the_end_of_the_writer_are_errors() {
        let values = values(&PIPE, &[]);
        let (here, there) = io::pipe().unwrap();
        let mut stream = Stream::new("pipe", &values, here, &there).unwrap();
        stream.run(1).unwrap();
        stream.at += 1;
        let said = stream.run(1).unwrap_err().to_string();
        assert_eq!(said, "pipe: what was read is not what was written");
        drop(there);
        punctual_sys::process::kill(stream.partner.pid()).unwrap();
        let said = stream.run(1 << 30).unwrap_err().to_string();
        assert!(
            said == "the other process killed by SIGKILL" || said.contains("not what"),
            "{said}"
        );
    }
}
