//! A search for the load under which a kernel can be latest: its steps, apart from what tries
//! them.
//!
//! 1. Every load alone at its own sizes.
//! 2. From each of the best [`BEST`] on, one size after the other is made [`FACTOR`] times as large
//!    and as small, as long as that helps.
//! 3. The best is joined by whichever of the [`PARTNERS`] next best loads helps most, then by
//!    another one, as long as any helps.
//!
//! A step helps if its score is larger by more than 1 in [`GAIN`]. Nothing is drawn at random: the
//! same scores give the same tries in the same order.

mod mix;
mod record;
mod steps;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use mix::Mix;
pub use record::{
    Confirmed, Contribution, Found, Longest, Scored, SearchOrigin, SearchedKernel, Try, score,
};

use crate::params::Named;
use steps::Search;

/// Loads whose sizes are changed.
pub const BEST: usize = 3;

/// By how much a size is changed at a time.
pub const FACTOR: u64 = 4;

/// Loads that the best is joined by, one after the other.
pub const PARTNERS: usize = 5;

/// A score that is not larger by this part of it helps nothing: so much is luck.
pub const GAIN: u64 = 10;

/// Why a mix was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    /// A load on its own.
    Alone,
    /// A load with another size.
    Size,
    /// Another load joined.
    Mix,
    /// The best mix without one of its loads.
    Without,
}

/// What a mix scored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MixOutcome {
    /// More is better; `None` if it could not run.
    pub score: Option<u64>,
    /// Every parameter as it took effect, by load.
    pub sizes: BTreeMap<String, BTreeMap<String, String>>,
}

/// A mix that was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriedMix {
    /// The mix.
    pub mix: Mix,
    /// Why.
    pub step: Step,
    /// What came of it.
    pub outcome: MixOutcome,
}

/// What is searched.
pub trait Landscape {
    /// Why nothing can be tried any more.
    type Error;

    /// Every load at its own sizes.
    fn loads(&self) -> Vec<Named>;

    /// The parameters of a load that are sizes, by its name.
    fn sizes(&self, load: &str) -> Vec<String>;

    /// A load with one of its sizes a step larger or smaller than what took effect; `None` at the
    /// end of its range.
    fn resized(
        &self,
        load: &Named,
        size: &str,
        larger: bool,
        took_effect: &BTreeMap<String, String>,
    ) -> Option<Named>;

    /// Tries mixes, in any order; the outcomes are in that of the mixes.
    ///
    /// # Errors
    /// They cannot be tried, or were interrupted.
    fn try_all(&mut self, step: Step, mixes: &[Mix]) -> Result<Vec<MixOutcome>, Self::Error>;
}

/// Searches with at most so many mixes. The candidates are in the order in which they were tried,
/// whatever they scored.
///
/// # Errors
/// That of the landscape; what was tried before is lost here, and known to it.
pub fn search<L: Landscape>(landscape: &mut L, budget: usize) -> Result<Vec<TriedMix>, L::Error> {
    let mut search = Search { landscape, left: budget, candidates: Vec::new() };
    let loads = search.landscape.loads();
    search.try_all(Step::Alone, loads.into_iter().map(Mix::of).collect())?;
    for place in search.best(BEST) {
        search.resize(place)?;
    }
    search.join()?;
    Ok(search.candidates)
}

/// The best candidate, the first of several; `None` if none could run.
#[must_use]
pub fn best(candidates: &[TriedMix]) -> Option<&TriedMix> {
    let ran = candidates.iter().enumerate().filter(|(_, one)| one.outcome.score.is_some());
    ran.max_by_key(|(place, one)| (one.outcome.score, Reverse(*place))).map(|(_, one)| one)
}

/// Tries a mix without each of its loads in turn, unless that was tried before. Empty for one load.
///
/// # Errors
/// That of the landscape.
pub fn without_each<L: Landscape>(
    landscape: &mut L,
    mix: &Mix,
    known: &[TriedMix],
) -> Result<Vec<TriedMix>, L::Error> {
    let mut search = Search { landscape, left: usize::MAX, candidates: known.to_vec() };
    let mixes: Vec<Mix> = (0..mix.loads().len()).filter_map(|load| mix.without(load)).collect();
    let places = search.try_all(Step::Without, mixes)?;
    Ok(places.into_iter().flatten().map(|place| search.candidates[place].clone()).collect())
}

#[cfg(test)]
mod tests;
