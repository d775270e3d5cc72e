//! The steps of a search, each from what is known after the one before.

use std::cmp::Reverse;

use super::mix::Mix;
use super::{GAIN, Landscape, PARTNERS, Step, TriedMix};
use crate::params::Named;

/// A search that goes on.
pub(super) struct Search<'a, L> {
    pub(super) landscape: &'a mut L,
    /// Mixes that may still be tried.
    pub(super) left: usize,
    /// Those that were.
    pub(super) candidates: Vec<TriedMix>,
}

impl<L: Landscape> Search<'_, L> {
    /// Tries what was not tried before, as far as the budget reaches. Returns where the mixes are
    /// among the candidates; `None` for those that were not tried.
    pub(super) fn try_all(
        &mut self,
        step: Step,
        mixes: Vec<Mix>,
    ) -> Result<Vec<Option<usize>>, L::Error> {
        let mut new: Vec<Mix> = Vec::new();
        for mix in &mixes {
            let is_known = self.place(mix).is_some() || new.contains(mix);
            if !is_known && new.len() < self.left {
                new.push(mix.clone());
            }
        }
        if !new.is_empty() {
            let outcomes = self.landscape.try_all(step, &new)?;
            self.left -= new.len();
            let tried = new.into_iter().zip(outcomes);
            let tried = tried.map(|(mix, outcome)| TriedMix { mix, step, outcome });
            self.candidates.extend(tried);
        }
        Ok(mixes.iter().map(|mix| self.place(mix)).collect())
    }

    fn place(&self, mix: &Mix) -> Option<usize> {
        self.candidates.iter().position(|one| one.mix == *mix)
    }

    fn score(&self, place: usize) -> u64 {
        self.candidates[place].outcome.score.unwrap_or(0)
    }

    /// Where the best single loads are, of each name the best.
    pub(super) fn best(&self, count: usize) -> Vec<usize> {
        let mut places: Vec<usize> = (0..self.candidates.len())
            .filter(|place| self.candidates[*place].mix.loads().len() == 1)
            .filter(|place| self.candidates[*place].outcome.score.is_some())
            .collect();
        places.sort_by_key(|place| (Reverse(self.score(*place)), *place));
        let mut names: Vec<String> = Vec::new();
        places.retain(|place| {
            let name = &self.candidates[*place].mix.loads()[0].name;
            let is_first = !names.contains(name);
            names.push(name.clone());
            is_first
        });
        places.truncate(count);
        places
    }

    /// The best of these, if it is better than the one before by enough.
    fn better(&self, than: usize, places: Vec<Option<usize>>) -> Option<usize> {
        let best = places.into_iter().flatten();
        let best = best.max_by_key(|place| (self.score(*place), Reverse(*place)))?;
        let before = self.score(than);
        (self.score(best) > before.saturating_add(before / GAIN)).then_some(best)
    }

    /// Changes the sizes of a single load, one after the other, as long as that helps.
    pub(super) fn resize(&mut self, place: usize) -> Result<(), L::Error> {
        let mut place = place;
        let name = self.candidates[place].mix.loads()[0].name.clone();
        for size in self.landscape.sizes(&name) {
            let both = [true, false].map(|larger| (larger, self.resized(place, &size, larger)));
            let both = both.into_iter().filter_map(|(larger, mix)| Some((larger, mix?)));
            let (directions, mixes): (Vec<bool>, Vec<Mix>) = both.unzip();
            let found = self.try_all(Step::Size, mixes)?;
            let Some(better) = self.better(place, found.clone()) else { continue };
            let at = found.iter().position(|found| *found == Some(better));
            let larger = at.is_some_and(|at| directions[at]);
            place = better;
            while let Some(next) = self.resized(place, &size, larger) {
                let found = self.try_all(Step::Size, vec![next])?;
                let Some(better) = self.better(place, found) else { break };
                place = better;
            }
        }
        Ok(())
    }

    fn resized(&self, place: usize, size: &str, larger: bool) -> Option<Mix> {
        let TriedMix { mix, outcome, .. } = &self.candidates[place];
        let load = &mix.loads()[0];
        let effective = outcome.sizes.get(&load.name)?;
        self.landscape.resized(load, size, larger, effective).map(Mix::of)
    }

    /// Joins the best load with others, as long as one of them helps.
    pub(super) fn join(&mut self) -> Result<(), L::Error> {
        let best = self.best(1 + PARTNERS);
        let Some((first, partners)) = best.split_first() else { return Ok(()) };
        let load = |place: &usize| self.candidates[*place].mix.loads()[0].clone();
        let partners: Vec<Named> = partners.iter().map(load).collect();
        let mut place = *first;
        loop {
            let mix = &self.candidates[place].mix;
            let mixes: Vec<Mix> = partners.iter().filter_map(|load| mix.with(load)).collect();
            let found = self.try_all(Step::Mix, mixes)?;
            let Some(better) = self.better(place, found) else { return Ok(()) };
            place = better;
        }
    }
}
