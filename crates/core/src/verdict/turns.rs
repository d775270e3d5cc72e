//! Virtual boards whose CPUs take turns: how much later that may make a release.

use crate::schema::Board;
use crate::units::human_ns;

/// The CPUs of a virtual board that execute one after the other while its time goes on for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turns {
    /// How many there are.
    pub cpus: u32,
    /// The longest time for which one waits for its turn, ns; `None` if that was not measured.
    pub wait_ns: Option<u64>,
}

impl Turns {
    /// Those of a board; `None` if its CPUs run at the same time, or its time is not counted.
    #[must_use]
    pub fn of(board: &Board) -> Option<Self> {
        let unmeasured = board.lab.as_ref().is_some_and(|lab| lab.counted && lab.cpus > 1);
        (board.turn_wait_ns.is_some() || unmeasured)
            .then_some(Self { cpus: board.cpus, wait_ns: board.turn_wait_ns })
    }

    /// How late a release can be for which a CPU of its own would need `alone_ns`, in ns; `None`
    /// if that is not known. Its CPU waits for a turn first, and then has one turn in so many.
    fn stretched(self, alone_ns: u64) -> Option<u64> {
        Some(alone_ns.saturating_mul(u64::from(self.cpus)).saturating_add(self.wait_ns?))
    }

    /// Why a release that was `max_ns` late may have met this deadline on CPUs that run at the
    /// same time; `None` if it would have missed it there too.
    pub(super) fn excuse(self, max_ns: Option<i64>, deadline_ns: u64) -> Option<String> {
        let stretched = self.stretched(deadline_ns);
        let max_ns = u64::try_from(max_ns.unwrap_or(0)).unwrap_or(0);
        if stretched.is_some_and(|stretched| max_ns > stretched) {
            return None;
        }
        let shown = |ns| human_ns(i64::try_from(ns).unwrap_or(i64::MAX));
        let wait = match self.wait_ns {
            Some(ns) => format!("and one waits up to {}", shown(ns)),
            None => "and how long one waits is not known".to_owned(),
        };
        let so = stretched.map_or_else(String::new, |stretched| {
            format!(", so what takes {} may take {} here", shown(deadline_ns), shown(stretched))
        });
        Some(format!(
            "the {} CPUs of this board take turns {wait}{so}: whether the kernel was late is open; \
             --cpus 1 tells",
            self.cpus
        ))
    }
}
