//! A load while it runs, changing on its schedule if it has one. Instants are ns after the
//! cell's start.

use std::mem;

use punctual_core::schema::{AtWork, LoadPhase, LoadWork, PhaseFound};

use super::context::{LoadContext, PartSample};
use super::phased::{PhaseSpec, PhasedSpec};
use super::set::{LoadSet, LoadStartError};
use super::turns::Turns;
use super::worked::Worked;
use crate::knobs::Journal;
use crate::registry::placement::Placing;

/// A running load. Every process of it is killed when this is dropped.
#[derive(Debug)]
pub struct PhasedLoad {
    turns: Turns,
    phases: Vec<Phase>,
    /// The current turn: phases counted over all repeats.
    turn: u64,
    now: Now,
    /// The machine as it was before this thread was bound; none for a load that rests.
    place: Option<Placing>,
    until_ns: u64,
}

#[derive(Debug)]
struct Phase {
    spec: PhaseSpec,
    worked: Worked,
    at_work: Vec<AtWork>,
}

#[derive(Debug)]
enum Now {
    /// Its parts are still to show that they work.
    Starting(LoadSet),
    AtWork(LoadSet),
    /// It did not start, or was ended.
    Gone,
}

/// A phase whose load is at work from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Began {
    /// Its number over all repeats, from 0.
    pub turn: u64,
    /// Its number in the schedule, from 0.
    pub phase: u32,
    /// From when until when.
    pub at_work: AtWork,
}

impl PhasedLoad {
    /// Starts the first phase and waits until it has shown that it works ([`LoadSet::start`]).
    /// The cell ends at `until_ns`.
    ///
    /// # Errors
    /// Those of [`LoadSet::start`], also if a later phase cannot start for a known reason.
    pub fn start(
        spec: &PhasedSpec,
        until_ns: u64,
        context: &mut LoadContext<'_>,
    ) -> Result<Self, LoadStartError> {
        for phase in spec.phases() {
            LoadSet::can_start(&phase.load)?;
        }
        let mut load = Self::resting(spec, until_ns);
        if let Some(first) = load.phases.first_mut() {
            let place = Placing::beside(context.probe.clone());
            let named = |reason| LoadStartError { load: spec.canonical().to_owned(), reason };
            let place = place.map_err(named)?;
            let set = LoadSet::start_at(&first.spec.load, &place, context)?;
            first.started(&set);
            load.now = Now::AtWork(set);
            load.place = Some(place);
        }
        Ok(load)
    }

    /// The phases of a load that is not started: what is simulated runs ahead of every clock.
    #[must_use]
    pub fn resting(spec: &PhasedSpec, until_ns: u64) -> Self {
        let phase = |(number, spec): (u32, &PhaseSpec)| Phase {
            spec: spec.clone(),
            worked: Worked::new(&spec.load, number),
            at_work: Vec::new(),
        };
        let mut phases: Vec<_> = (0..).zip(spec.phases()).map(phase).collect();
        if !spec.changes() {
            phases.iter_mut().for_each(|phase| phase.worked.is_whole_cell());
        }
        let turns = Turns::of(spec.phases().iter().map(|phase| phase.for_ns));
        Self { turns, phases, turn: 0, now: Now::Gone, place: None, until_ns }
    }

    /// The parts of all phases and the names of their counters, before anything is counted.
    #[must_use]
    pub fn described(&self) -> Vec<LoadWork> {
        self.phases.iter().flat_map(|phase| phase.worked.described()).collect()
    }

    /// Counts work from now on, the start of the cell.
    pub fn begin(&mut self) -> Began {
        if let Now::AtWork(set) = &mut self.now {
            self.phases[0].worked.begin(set);
        }
        self.at_work(0)
    }

    /// The turns of a load that rests, each with its whole time.
    pub fn all_turns(&mut self) -> Vec<Began> {
        let mut all = Vec::new();
        while self.turns.end(self.turn) < self.until_ns {
            let end = self.turns.end(self.turn);
            self.turn += 1;
            all.push(self.at_work(end));
        }
        all
    }

    /// When [`PhasedLoad::step`] is to be called next: at once (0) while a load starts, `u64::MAX`
    /// if it changes no more.
    #[must_use]
    pub fn due_ns(&self) -> u64 {
        let end = self.turns.end(self.turn);
        match self.now {
            Now::Starting(_) => 0,
            _ if end >= self.until_ns => u64::MAX,
            _ => end,
        }
    }

    /// Ends the load whose phase is over and starts the next one, or looks whether that is at work
    /// by now. Call it on the main thread, as [`LoadSet::start`].
    pub fn step(&mut self, now_ns: &dyn Fn() -> u64, journal: &mut Journal) -> Option<Began> {
        let turn = self.turns.at(now_ns());
        if turn != self.turn && self.due_ns() != u64::MAX && now_ns() < self.until_ns {
            self.end(self.turns.end(self.turn));
            // A machine that did not let this thread run may have left out whole phases.
            for left_out in self.turn + 1..turn {
                let phase = &mut self.phases[self.turns.phase(left_out)];
                phase.worked.left_out(phase.spec.for_ns, "its phase was over before it started");
            }
            self.turn = turn;
            let mut context = LoadContext::new(journal);
            let phase = &self.phases[self.turns.phase(turn)];
            if let Some(place) = &self.place {
                let set = LoadSet::launch(&phase.spec.load, place, &mut context);
                self.now = Now::Starting(set);
            }
        }
        let is_decided = match &mut self.now {
            Now::Starting(set) => set.is_settled() || set.is_overdue(),
            Now::AtWork(_) | Now::Gone => false,
        };
        match mem::replace(&mut self.now, Now::Gone) {
            Now::Starting(mut set) if is_decided => {
                let phase = &mut self.phases[self.turns.phase(self.turn)];
                if let Err(error) = set.settle(&phase.spec.load) {
                    phase.worked.add(set);
                    phase.worked.left_out(phase.spec.for_ns, &error.to_string());
                    return None;
                }
                phase.started(&set);
                phase.worked.begin(&mut set);
                self.now = Now::AtWork(set);
                Some(self.at_work(now_ns()))
            }
            now => {
                self.now = now;
                None
            }
        }
    }

    /// Kills every process without asking what it did.
    pub fn kill(&mut self) {
        if let Now::Starting(set) | Now::AtWork(set) = &mut self.now {
            set.kill();
        }
    }

    /// Number and work so far of each part that is at work ([`LoadSet::sample`]).
    pub fn sample(&mut self) -> Vec<(u32, PartSample)> {
        let first: usize = self.phases[..self.turns.phase(self.turn)]
            .iter()
            .map(|phase| phase.worked.parts())
            .sum();
        match &mut self.now {
            Now::AtWork(set) => {
                let phase = &self.phases[self.turns.phase(self.turn)];
                let samples = phase.worked.since_begin(set.sample());
                (u32::try_from(first).unwrap_or(u32::MAX)..).zip(samples).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Ends every process, removes the folders and returns the work done, and the phases if the
    /// load changes.
    #[must_use]
    pub fn stop(mut self, now_ns: u64) -> (Vec<LoadWork>, Vec<LoadPhase>) {
        let (end, changes) = (self.turns.end(self.turn), self.turns.are_several());
        self.end(now_ns.min(end));
        let mut work = Vec::new();
        let mut phases = Vec::new();
        for (number, phase) in self.phases.into_iter().enumerate() {
            // Those that it did not come to have nothing to tell.
            if number as u64 <= self.turn {
                work.extend(phase.worked.done());
            }
            phases.push(LoadPhase {
                load: phase.spec.load.canonical().to_owned(),
                for_ns: phase.spec.for_ns,
                at_work: phase.at_work,
                found: PhaseFound::default(),
            });
        }
        (work, if changes { phases } else { Vec::new() })
    }

    fn at_work(&mut self, from_ns: u64) -> Began {
        let number = self.turns.phase(self.turn);
        let to_ns = self.turns.end(self.turn).min(self.until_ns).max(from_ns);
        let at_work = AtWork { from_ns, to_ns };
        self.phases[number].at_work.push(at_work);
        Began { turn: self.turn, phase: u32::try_from(number).unwrap_or(u32::MAX), at_work }
    }

    /// Ends what is there; it was to end at `to_ns`.
    fn end(&mut self, to_ns: u64) {
        let phase = &mut self.phases[self.turns.phase(self.turn)];
        match mem::replace(&mut self.now, Now::Gone) {
            Now::Gone => {}
            Now::AtWork(set) => phase.worked.add(set),
            Now::Starting(set) => {
                phase.worked.add(set);
                phase.worked.left_out(phase.spec.for_ns, "it was not at work when its phase ended");
            }
        }
        if let Some(last) = phase.at_work.last_mut() {
            last.to_ns = last.to_ns.min(to_ns);
        }
    }
}

impl Phase {
    /// Keeps the parameters that took effect.
    fn started(&mut self, set: &LoadSet) {
        let described = set.described();
        self.spec.load.pin(&described);
        self.worked.describe(described);
    }
}
