//! Who called the code that interrupts have interrupted.

/// Interrupts within interrupts of which the caller is known: more than there are levels.
const NESTED: usize = 8;

/// The callers of interrupted code that stands for them. What threads do that are switched
/// meanwhile is of no importance: while such code is interrupted, either none are, or it does
/// not name a caller any more.
#[derive(Debug)]
pub struct Callers {
    /// By depth, modulo their number; 0 if what was interrupted stands for itself.
    interrupted: [u64; NESTED],
    depth: usize,
    /// When an interrupt returned last.
    returned: u64,
    /// The caller of what went on then; 0 for none.
    resumed: u64,
}

impl Callers {
    /// Nothing was interrupted yet.
    pub const NONE: Self = Self { interrupted: [0; NESTED], depth: 0, returned: 0, resumed: 0 };

    /// Code is interrupted that was called from there.
    pub fn interrupt(&mut self, caller: Option<u64>) {
        self.depth = self.depth.wrapping_add(1);
        if let Some(place) = self.interrupted.get_mut(self.depth % NESTED) {
            *place = caller.unwrap_or(0);
        }
    }

    /// The last interrupt that has not returned does.
    pub fn interrupt_return(&mut self, at: u64) {
        self.returned = at;
        let place = self.interrupted.get_mut(self.depth % NESTED);
        self.resumed = place.map_or(0, core::mem::take);
        self.depth = self.depth.wrapping_sub(1);
    }

    /// Who called code that went on after an interrupt, if that returned after this time.
    #[must_use]
    pub fn resumed_since(&self, at: u64) -> Option<u64> {
        Some(self.resumed).filter(|caller| *caller != 0 && self.returned >= at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_return_is_to_what_was_interrupted() {
        let mut callers = Callers::NONE;
        callers.interrupt(Some(0x10));
        callers.interrupt(None);
        callers.interrupt(Some(0x30));
        callers.interrupt_return(5);
        assert_eq!(callers.resumed_since(5), Some(0x30));
        assert_eq!(callers.resumed_since(6), None);
        callers.interrupt_return(7);
        assert_eq!(callers.resumed_since(5), None);
        callers.interrupt_return(9);
        assert_eq!(callers.resumed_since(9), Some(0x10));
        // Returns to what was not seen to be interrupted.
        (0..20).for_each(|at| callers.interrupt_return(10 + at));
        assert_eq!(callers.resumed_since(0), None);
        callers.interrupt(Some(0x40));
        callers.interrupt_return(40);
        assert_eq!(callers.resumed_since(40), Some(0x40));
    }
}
