//! Events on their way out, collected so that few are worth a system call.

use crate::event::SIZE;

/// Where the bytes go.
pub trait Sink {
    /// Writes some of the bytes, and says how many. `None`: nothing can be written any more.
    fn write(&mut self, bytes: &[u8]) -> Option<usize>;
}

/// A buffered output. If its reader goes away, it becomes silent: the guest runs on as it would
/// have.
#[derive(Debug)]
pub struct Output<'a, S> {
    sink: S,
    buffer: &'a mut [[u8; SIZE]],
    filled: usize,
    is_closed: bool,
}

impl<'a, S: Sink> Output<'a, S> {
    /// An output through a buffer of so many events.
    #[must_use]
    pub const fn new(sink: S, buffer: &'a mut [[u8; SIZE]]) -> Self {
        Self { sink, buffer, filled: 0, is_closed: false }
    }

    /// Adds an event or the header.
    pub fn put(&mut self, bytes: [u8; SIZE]) {
        if self.filled == self.buffer.len() {
            self.flush();
        }
        if let Some(free) = self.buffer.get_mut(self.filled) {
            *free = bytes;
            self.filled += 1;
        }
    }

    /// Writes all that was collected.
    pub fn flush(&mut self) {
        let mut rest = self.buffer.get(..self.filled).unwrap_or_default().as_flattened();
        while !rest.is_empty() && !self.is_closed {
            let written = self.sink.write(rest);
            match written.and_then(|written| rest.get(written..)) {
                Some(remaining) => rest = remaining,
                None => self.is_closed = true,
            }
        }
        self.filled = 0;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;

    /// Takes `step` bytes at a time, and as many as `limit` in total.
    #[derive(Clone)]
    pub(crate) struct Memory {
        pub(crate) bytes: Rc<RefCell<Vec<u8>>>,
        pub(crate) step: usize,
        pub(crate) limit: usize,
    }

    impl Memory {
        pub(crate) fn new() -> Self {
            Self { bytes: Rc::default(), step: usize::MAX, limit: usize::MAX }
        }
    }

    impl Sink for Memory {
        fn write(&mut self, bytes: &[u8]) -> Option<usize> {
            let mut all = self.bytes.borrow_mut();
            let room = self.limit - all.len();
            let taken = bytes.len().min(self.step).min(room);
            all.extend(&bytes[..taken]);
            (taken > 0).then_some(taken)
        }
    }

    #[test]
    fn all_bytes_arrive_however_short_the_writes() {
        for step in [1, 7, 16, 1000] {
            let memory = Memory { step, ..Memory::new() };
            let mut buffer = [[0; SIZE]; 4];
            let mut output = Output::new(memory.clone(), &mut buffer);
            let expected: Vec<u8> = (0..=255).cycle().take(20 * SIZE).collect();
            for bytes in expected.chunks_exact(SIZE) {
                output.put(bytes.try_into().unwrap());
            }
            assert!(memory.bytes.borrow().len() < expected.len());
            output.flush();
            output.flush();
            assert_eq!(*memory.bytes.borrow(), expected);
        }
    }

    #[test]
    fn nothing_is_written_after_a_failure() {
        let mut memory = Memory { limit: 100, ..Memory::new() };
        let mut buffer = [[0; SIZE]; 4];
        let mut output = Output::new(memory.clone(), &mut buffer);
        for _ in 0..50 {
            output.put([1; SIZE]);
        }
        assert_eq!(memory.bytes.borrow().len(), 100);
        memory.limit = usize::MAX;
        output.sink = memory.clone();
        output.put([1; SIZE]);
        output.flush();
        assert_eq!(memory.bytes.borrow().len(), 100);
    }
}
