//! Groups of senders and receivers, modelled on hackbench: what the load and the metric of that
//! name share.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use punctual_sys::fd;

/// Senders per group, and receivers per group.
pub(crate) const SIDE: usize = 20;
/// Bytes of a message.
pub(crate) const MESSAGE: usize = 100;
/// Memory of a group's 40 tasks (stacks, tables and full socket buffers), rounded up, bytes.
pub(crate) const GROUP_MEMORY: u64 = 32 << 20;
/// Messages between two calls of a receiver's tally.
const BATCH: u64 = 100;

/// A channel for the messages to one receiver: its end and that of the senders.
pub(crate) fn channel(pipes: bool) -> io::Result<(File, File)> {
    let (reader, writer): (OwnedFd, OwnedFd) = if pipes {
        let (reader, writer) = io::pipe()?;
        (reader.into(), writer.into())
    } else {
        let (reader, writer) = UnixStream::pair()?;
        (reader.into(), writer.into())
    };
    Ok((reader.into(), writer.into()))
}

/// Holds all tasks back until every one has been created.
#[derive(Debug)]
pub(crate) struct StartGate {
    waiting: io::PipeReader,
    opener: io::PipeWriter,
}

impl StartGate {
    pub(crate) fn new() -> io::Result<Self> {
        let (waiting, opener) = io::pipe()?;
        Ok(Self { waiting, opener })
    }

    /// Nobody reads the byte, so it lets everyone pass.
    pub(crate) fn open(&self) -> io::Result<()> {
        (&self.opener).write_all(&[0])
    }

    pub(crate) fn wait(&self) -> io::Result<()> {
        while !fd::wait_readable([self.waiting.as_fd()], Duration::from_secs(60))?[0] {}
        Ok(())
    }
}

/// Sends a message to each receiver, `loops` times.
pub(crate) fn send(writers: &[File], loops: u64) -> io::Result<()> {
    let message = [0; MESSAGE];
    for _ in 0..loops {
        for mut writer in writers {
            writer.write_all(&message)?;
        }
    }
    Ok(())
}

/// Receives what all senders of a group send in so many loops, and tallies it.
pub(crate) fn receive(mut reader: &File, loops: u64, mut tally: impl FnMut(u64)) -> io::Result<()> {
    let mut message = [0; MESSAGE];
    let mut left = loops * SIDE as u64;
    while left > 0 {
        let batch = left.min(BATCH);
        for _ in 0..batch {
            reader.read_exact(&mut message)?;
        }
        tally(batch);
        left -= batch;
    }
    Ok(())
}
