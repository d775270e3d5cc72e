//! An eventfd: see [`crate::event`].

use std::io;

use super::Token;
use crate::clock::monotonic_ns;
use crate::event::{Event, Posted, Taken};

impl Token for Event {
    #[inline]
    fn post(&self) -> io::Result<()> {
        while Event::post(self, 1)? == Posted::Interrupted {}
        Ok(())
    }

    #[inline]
    fn take(&self) -> io::Result<Option<u64>> {
        Ok((Event::take(self)? != Taken::Interrupted).then(monotonic_ns))
    }
}
