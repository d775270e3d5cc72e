//! What a search for the next whole frame may cost.

/// So often may each byte be checked in vain.
const CHECKS: u64 = 8;

/// Keeps the search for whole frames in damaged bytes linear. Beginnings of frames that claim
/// to be long can overlap in any number, and each wrong checksum costs the length of its frame.
/// What accidents damage costs a check or two; bytes made to cost time soon use up what they
/// are granted, and beginnings of frames among them are then passed over unchecked until the
/// search has come further.
#[derive(Debug, Clone)]
pub(crate) struct Vain {
    /// Longest frame.
    longest: u64,
    /// Bytes checked in vain so far.
    spent: u64,
}

impl Vain {
    /// Of frames up to this long, bytes.
    pub(crate) fn new(longest: usize) -> Self {
        Self { longest: longest as u64, spent: 0 }
    }

    /// Whether a frame of this length at this place may be checked.
    pub(crate) fn affords(&self, at: usize, length: usize) -> bool {
        let granted = (at as u64).saturating_add(self.longest).saturating_mul(CHECKS);
        self.spent.saturating_add(length as u64) <= granted
    }

    /// Notes that the checksum of a frame of this length was wrong.
    pub(crate) fn spend(&mut self, length: usize) {
        self.spent = self.spent.saturating_add(length as u64);
    }

    /// Bytes checked in vain so far.
    #[cfg(test)]
    pub(crate) fn spent(&self) -> u64 {
        self.spent
    }
}
