//! Where messages arrive, and how those of a stream are told apart.

use std::io;

use super::message::{LONGEST, MARK, length};

/// Room for the longest record. Keeps what came with a record, which is the next one or its
/// beginning.
pub(super) struct Inbox {
    bytes: [u8; MARK + LONGEST],
    /// Bytes that are there.
    held: usize,
    /// Bytes of them that were handed out.
    taken: usize,
}

impl Inbox {
    pub(super) fn new() -> Self {
        Self { bytes: [0; MARK + LONGEST], held: 0, taken: 0 }
    }

    /// The message of a packet that `receive` brings whole.
    ///
    /// # Errors
    /// Those of `receive`.
    pub(super) fn packet(
        &mut self,
        receive: impl FnOnce(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<&[u8]> {
        let length = receive(&mut self.bytes)?;
        Ok(&self.bytes[..length])
    }

    /// The message of the next record. Asks `read` for as much as there is, and again only while
    /// the record is incomplete.
    ///
    /// # Errors
    /// Those of `read`; `UnexpectedEof` at its end; `InvalidData` if it is no record of ours.
    pub(super) fn record(
        &mut self,
        mut read: impl FnMut(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<&[u8]> {
        self.bytes.copy_within(self.taken..self.held, 0);
        self.held -= self.taken;
        self.taken = 0;
        loop {
            if let Some(mark) = self.bytes[..self.held].first_chunk() {
                let whole = MARK + length(*mark)?;
                if self.held >= whole {
                    self.taken = whole;
                    return Ok(&self.bytes[MARK..whole]);
                }
            }
            match read(&mut self.bytes[self.held..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => self.held += read?,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::call;
    use super::*;
    use std::io::Read;

    #[test]
    fn a_record_that_is_there_takes_one_read() {
        let record = call(7, 9).record().to_vec();
        let (mut inbox, mut reads) = (Inbox::new(), 0);
        for _ in 0..100 {
            let mut stream = &record[..];
            let taken = inbox.record(|bytes| {
                reads += 1;
                stream.read(bytes)
            });
            assert_eq!(taken.unwrap(), call(7, 9).packet());
        }
        assert_eq!(reads, 100);
    }

    #[test]
    fn records_are_told_apart_however_they_come() {
        let records = (0..50).flat_map(|xid| call(xid, !xid).record().to_vec());
        let records: Vec<u8> = records.collect();
        for most in 1..200 {
            let (mut inbox, mut stream) = (Inbox::new(), &records[..]);
            let mut read = |bytes: &mut [u8]| {
                let most = most.min(bytes.len());
                stream.read(&mut bytes[..most])
            };
            for xid in 0..50 {
                assert_eq!(inbox.record(&mut read).unwrap(), call(xid, !xid).packet());
            }
            let end = inbox.record(&mut read).unwrap_err();
            assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof, "{most} bytes at a time");
        }
    }

    #[test]
    fn what_is_cut_short_and_what_is_no_record_are_errors() {
        let record = call(7, 9).record().to_vec();
        for length in 0..record.len() {
            let mut stream = &record[..length];
            let error = Inbox::new().record(|bytes| stream.read(bytes)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        }
        let mut stream = &[0xff; 300][..];
        let error = Inbox::new().record(|bytes| stream.read(bytes)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
