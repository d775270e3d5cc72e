//! The work of one phase of a load, over all of its turns.

use std::time::Duration;

use punctual_core::schema::LoadWork;

use super::context::PartSample;
use super::part::description;
use super::set::LoadSet;
use super::spec::LoadSpec;
use crate::registry::placement::recorded;

/// What the parts of a phase have done.
#[derive(Debug)]
pub(super) struct Worked {
    phase: Option<u32>,
    /// Over the turns that have ended.
    done: Vec<LoadWork>,
    /// Counters of the running turn when its work began to count.
    base: Vec<Vec<u64>>,
    measured: Duration,
}

impl Worked {
    pub(super) fn new(spec: &LoadSpec, phase: u32) -> Self {
        let parts = spec.parts().iter();
        let done = parts
            .map(|part| LoadWork {
                phase: Some(phase),
                ..description(part.entry, &recorded(&part.values))
            })
            .collect();
        Self { phase: Some(phase), done, base: Vec::new(), measured: Duration::ZERO }
    }

    /// It is no phase but the load of the whole cell.
    pub(super) fn is_whole_cell(&mut self) {
        self.phase = None;
        self.done.iter_mut().for_each(|part| part.phase = None);
    }

    /// How many parts it has.
    pub(super) fn parts(&self) -> usize {
        self.done.len()
    }

    /// Its parts with the names of their counters.
    pub(super) fn described(&self) -> Vec<LoadWork> {
        self.done.clone()
    }

    /// Takes the parameters that took effect.
    pub(super) fn describe(&mut self, started: Vec<LoadWork>) {
        for (part, started) in self.done.iter_mut().zip(started) {
            part.params = started.params;
        }
    }

    /// Counts the work of a turn from now on.
    pub(super) fn begin(&mut self, set: &mut LoadSet) {
        let counts = |part: PartSample| part.counters.iter().map(|(_, total)| *total).collect();
        self.base = set.sample().into_iter().map(counts).collect();
        set.mark_start();
    }

    /// Samples with what was counted since the cell began.
    pub(super) fn since_begin(&self, mut samples: Vec<PartSample>) -> Vec<PartSample> {
        for (number, part) in samples.iter_mut().enumerate() {
            let base = self.base.get(number).into_iter().flatten();
            let before = self.done.get(number).map_or(&[][..], |done| &done.counters);
            for (((_, total), base), before) in part.counters.iter_mut().zip(base).zip(before) {
                *total = total.saturating_sub(*base).saturating_add(before.total);
            }
        }
        samples
    }

    /// Ends a turn and adds what it has done.
    pub(super) fn add(&mut self, set: LoadSet) {
        self.measured += set.measured();
        let seconds = self.measured.as_secs_f64();
        for (done, turn) in self.done.iter_mut().zip(set.stop()) {
            for (done, turn) in done.counters.iter_mut().zip(&turn.counters) {
                done.total = done.total.saturating_add(turn.total);
                #[allow(clippy::cast_precision_loss, reason = "a rate for people")]
                let per_second = if seconds > 0.0 { done.total as f64 / seconds } else { 0.0 };
                done.per_second = per_second;
            }
            done.idle_seconds = done.idle_seconds.saturating_add(turn.idle_seconds);
            done.restarts = done.restarts.saturating_add(turn.restarts);
            done.deaths = done.deaths.saturating_add(turn.deaths);
            done.gone_ns = done.gone_ns.max(turn.gone_ns);
            done.idle_ns = done.idle_ns.saturating_add(turn.idle_ns);
            done.unit_ns = turn.unit_ns.or(done.unit_ns);
            done.containment = turn.containment;
            done.trouble = done.trouble.take().or(turn.trouble);
        }
    }

    /// A turn of `for_ns` in which it was not at work, and why.
    pub(super) fn left_out(&mut self, for_ns: u64, why: &str) {
        for part in &mut self.done {
            part.gone_ns = part.gone_ns.max(for_ns);
            part.trouble.get_or_insert_with(|| why.to_owned());
        }
    }

    /// The parts with their work.
    pub(super) fn done(self) -> Vec<LoadWork> {
        self.done
    }
}
