//! What others take from a cell: foreign real-time threads, limits of control groups and the
//! hypervisor.

use punctual_core::key::NO_LOAD;
use punctual_core::schema::{Cell, Condition, Placement, Policy};
use punctual_core::units::{human_ns, percent};

use crate::facts::{FactsRoot, GroupLimits, Rivals, Stolen};

/// The stolen share of one CPU's time that is told, in millionths.
const STOLEN_LIMIT: u64 = 1_000;

/// Follows what others take, from cell to cell.
#[derive(Debug)]
pub(super) struct Foreign {
    rivals: Rivals,
    limits: GroupLimits,
}

impl Foreign {
    /// Looks at the machine before the first cell.
    pub(super) fn find() -> Self {
        let root = FactsRoot::live();
        Self { rivals: Rivals::find(&root), limits: GroupLimits::find(&root) }
    }

    /// The measurement of a cell is about to begin.
    pub(super) fn begin(&mut self) {
        self.limits.begin();
        self.rivals.begin();
    }

    /// It is over.
    pub(super) fn end(&mut self) {
        self.rivals.end();
        self.limits.end();
    }

    /// Adds to the cell what they took. It looks at all threads of the machine, so call it when
    /// the load has stopped.
    pub(super) fn note(&mut self, cell: &mut Cell, stolen: Option<Stolen>) {
        let (placements, measures) = match cell.cost() {
            Some(cost) => (vec![&cost.placement], "the timed thread"),
            None => {
                let threads = cell.threads().iter().map(|thread| &thread.placement);
                (threads.collect(), "the probe")
            }
        };
        let rivals = self.rivals.told(&placements, measures);
        let limits = self.limits.told(stopped(cell, &placements, measures));
        cell.conditions.extend(rivals.into_iter().chain(limits).chain(stolen.and_then(steal)));
    }
}

/// What a limit of CPU time stops in a cell: tasks of real-time policies are exempt.
fn stopped(cell: &Cell, measuring: &[&Placement], measures: &'static str) -> &'static str {
    let exempt =
        |one: &&Placement| matches!(one.policy, Policy::Fifo | Policy::Rr | Policy::Deadline);
    // A load can be placed into another group, whose limits are not those of this process.
    let elsewhere = cell.load == NO_LOAD || cell.load.contains("cgroup=");
    match (measuring.iter().all(exempt), elsewhere) {
        (true, true) => "what is not real-time in it",
        (true, false) => "the load",
        (false, true) => measures,
        (false, false) => "what was measured, and the load,",
    }
}

/// The condition that the hypervisor took CPU time from the cell.
fn steal(stolen: Stolen) -> Option<Condition> {
    #[allow(clippy::cast_precision_loss, reason = "a share for people")]
    let share = percent(((stolen.of_a_cpu as f64) / 1e3).round() / 1e3);
    let time = human_ns(i64::try_from(stolen.ns).unwrap_or(i64::MAX));
    (stolen.of_a_cpu > STOLEN_LIMIT).then(|| Condition {
        id: "steal".to_owned(),
        text: format!(
            "the hypervisor ran others for {time} while a virtual CPU had work ({share} % of a \
             CPU's time, steal in /proc/stat): late samples may be its doing; give each virtual \
             CPU a CPU of its own"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::schema::{Latency, Thread, What};

    #[test]
    fn stolen_time_is_told_above_a_thousandth_of_a_cpu() {
        assert_eq!(steal(Stolen { ns: 10_000_000, of_a_cpu: 1_000 }), None);
        let told = steal(Stolen { ns: 250_000_000, of_a_cpu: 12_500 }).unwrap();
        assert_eq!(told.id, "steal");
        assert!(told.text.contains("others for 250.000 ms"), "{told:?}");
        assert!(told.text.contains("(1.3 % of a CPU's time"), "{told:?}");
    }

    #[test]
    fn a_quota_stops_what_is_not_real_time() {
        let said = |policy, load: &str| {
            let placement = Placement { policy, ..Placement::default() };
            let threads = vec![Thread { placement: placement.clone(), ..Thread::default() }];
            let what = What::Latency(Latency { threads, ..Latency::default() });
            let cell = Cell::new(String::new(), String::new(), load.to_owned(), 1, what);
            stopped(&cell, &[&placement], "the probe")
        };
        assert_eq!(said(Policy::Fifo, "paper"), "the load");
        assert_eq!(said(Policy::Fifo, "memory:cgroup=/a"), "what is not real-time in it");
        assert_eq!(said(Policy::Deadline, NO_LOAD), "what is not real-time in it");
        assert_eq!(said(Policy::Other, NO_LOAD), "the probe");
        assert_eq!(said(Policy::Other, "paper"), "what was measured, and the load,");
    }
}
