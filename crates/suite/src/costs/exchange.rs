//! Operations that another process answers, one after the other.

use std::io;

use punctual_sys::partner::Partner;

use super::joined::in_words;
use crate::registry::cost::{Operation, Peer};

/// Something that takes both processes.
pub(super) trait Exchange {
    /// What it goes through, in errors.
    const THROUGH: &'static str;
    /// What the other process does, for the record.
    const OTHER: &'static str;

    /// Does it once.
    fn once(&mut self) -> io::Result<()>;

    fn partner(&self) -> &Partner;
}

impl<E: Exchange> Operation for E {
    fn run(&mut self, iterations: u64) -> io::Result<()> {
        for _ in 0..iterations {
            if let Err(error) = self.once() {
                return Err(self.partner().explain(in_words(E::THROUGH, &error)));
            }
        }
        Ok(())
    }

    fn value(&self, ns: f64) -> f64 {
        ns / 1e3
    }

    fn peers(&self) -> Vec<Peer> {
        vec![Peer { name: E::OTHER.to_owned(), id: self.partner().pid() }]
    }
}
