//! A pipe (pipe(7)): one byte is a token.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::AsRawFd;

use super::{Token, posted, taken};

/// Both ends of a pipe. Programs started later do not inherit them.
#[derive(Debug)]
pub struct Pipe {
    reader: PipeReader,
    writer: PipeWriter,
}

impl Pipe {
    /// An empty pipe.
    ///
    /// # Errors
    /// Those of pipe2(2).
    pub fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        Ok(Self { reader, writer })
    }
}

impl Token for Pipe {
    #[inline]
    fn post(&self) -> io::Result<()> {
        let byte = 1_u8;
        // SAFETY: the buffer has the byte that the write asks for.
        posted(|| unsafe {
            libc::write(self.writer.as_raw_fd(), (&raw const byte).cast(), 1) as libc::c_long
        })
    }

    #[inline]
    fn take(&self) -> io::Result<Option<u64>> {
        let mut byte = 0_u8;
        // SAFETY: the buffer has the byte that the read asks for.
        taken(unsafe {
            libc::read(self.reader.as_raw_fd(), (&raw mut byte).cast(), 1) as libc::c_long
        })
    }
}
