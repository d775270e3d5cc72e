//! The landscape of a search: mixes tried on boards, with what is known of them kept.

use std::collections::BTreeMap;

use punctual_core::params::Named;
use punctual_core::search::{
    Contribution, Landscape, Longest, Mix, MixOutcome, Scored, Step, TriedMix, Try, score,
};
use punctual_lab::experiment::Place;
use punctual_sys::signal::Signals;

use super::bench::{Bench, Job};
use super::folder::SearchFolder;
use super::progress::Progress;
use super::space;

/// Why a search does not go on.
pub enum Stopped {
    Interrupted,
    Failed(anyhow::Error),
}

impl From<anyhow::Error> for Stopped {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

/// Mixes that are tried on boards.
pub struct Trials<'a> {
    bench: Bench,
    folder: SearchFolder,
    signals: &'a Signals,
    progress: Progress,
    loads: Vec<Named>,
    /// The guests of a mix.
    places: Vec<Place>,
    /// What has been tried, in the order of the search.
    tried: Vec<(String, Step)>,
    best: Option<(u64, String)>,
}

impl<'a> Trials<'a> {
    pub fn new(
        bench: Bench,
        folder: SearchFolder,
        signals: &'a Signals,
        progress: Progress,
        loads: Vec<Named>,
    ) -> Self {
        let places = bench.places();
        Self { bench, folder, signals, progress, loads, places, tried: Vec::new(), best: None }
    }

    /// How many tries are kept.
    pub fn kept(&self) -> usize {
        self.folder.len()
    }

    /// The tries of a mix, kernel by kernel.
    fn of(&self, load: &str) -> impl Iterator<Item = &Try> {
        let key = |place: &Place| (load.to_owned(), self.bench.kernel(place), place.seed());
        self.places.iter().filter_map(move |place| self.folder.get(&key(place)))
    }

    /// That of the guest with the shortest, for each kernel; `None` for one on which a guest failed.
    fn by_kernel(&self, load: &str) -> Vec<Option<Longest>> {
        let shortest = |kernel: &String| {
            let tries = self.of(load).filter(|tried| tried.kernel == *kernel);
            let lengths = tries.map(|tried| Some((tried.longest_ns?, tried)));
            let lengths: Option<Vec<(u64, &Try)>> = lengths.collect();
            let (longest_ns, tried) = lengths?.into_iter().min_by_key(|(length, _)| *length)?;
            Some(Longest { longest_ns, from: tried.from.clone(), to: tried.to.clone() })
        };
        self.bench.kernels().iter().map(shortest).collect()
    }

    fn outcome(&self, load: &str) -> MixOutcome {
        let sizes = self.of(load).find(|tried| !tried.sizes.is_empty());
        MixOutcome {
            score: scored(&self.by_kernel(load)),
            sizes: sizes.map(|tried| tried.sizes.clone()).unwrap_or_default(),
        }
    }

    /// A mix that was tried, with its number and lengths.
    pub fn scored(&self, one: &TriedMix) -> Scored {
        let load = one.mix.to_string();
        let at = self.tried.iter().position(|(tried, _)| *tried == load).unwrap_or_default();
        let by_kernel = self.by_kernel(&load);
        let failed = self.of(&load).find_map(|tried| tried.failed.clone());
        Scored {
            number: at as u64 + 1,
            step: one.step,
            score_ns: scored(&by_kernel),
            by_kernel,
            failed,
            load,
        }
    }

    /// What a load contributes to a mix, which was tried without it.
    pub fn part(&self, load: &Named, without: &TriedMix) -> Contribution {
        let alone = load.to_string();
        let by_kernel = |count: fn(&Try) -> u64| {
            let of = |kernel: &String| {
                let counts = self.of(&alone).filter(|tried| tried.kernel == *kernel).map(count);
                counts.max()
            };
            self.bench.kernels().iter().map(of).collect()
        };
        Contribution {
            without: self.scored(without),
            functions: by_kernel(|tried| tried.functions),
            locking: by_kernel(|tried| tried.locking),
            load: alone,
        }
    }

    /// Puts the tries of the folder into the order of the search.
    pub fn sort(&mut self) -> Result<(), Stopped> {
        let mut sorted = Vec::new();
        for (number, (load, step)) in (1..).zip(&self.tried) {
            // A search with another budget may have had other numbers.
            let renumbered = |tried: &Try| Try { number, step: Some(*step), ..tried.clone() };
            sorted.extend(self.of(load).map(renumbered));
        }
        self.folder.sort(sorted)?;
        Ok(())
    }

    /// What has to be booted of these mixes, and how many of their tries are here.
    fn jobs(&self, step: Step, mixes: &[Mix]) -> Vec<Job> {
        let mut jobs = Vec::new();
        for (number, mix) in (self.tried.len() as u64 + 1..).zip(mixes) {
            let load = mix.to_string();
            for place in &self.places {
                let key = (load.clone(), self.bench.kernel(place), place.seed());
                if self.folder.get(&key).is_none() {
                    let name = format!("{number:04}-{}", place.name);
                    let place = Place { name, ..place.clone() };
                    jobs.push(Job { place, number, step, load: load.clone() });
                }
            }
        }
        jobs
    }
}

fn scored(by_kernel: &[Option<Longest>]) -> Option<u64> {
    let length = |longest: &Option<Longest>| longest.as_ref().map(|longest| longest.longest_ns);
    score(&by_kernel.iter().map(length).collect::<Vec<_>>())
}

impl Landscape for Trials<'_> {
    type Error = Stopped;

    fn loads(&self) -> Vec<Named> {
        self.loads.clone()
    }

    fn sizes(&self, load: &str) -> Vec<String> {
        space::sizes(load)
    }

    fn resized(
        &self,
        load: &Named,
        size: &str,
        larger: bool,
        took_effect: &BTreeMap<String, String>,
    ) -> Option<Named> {
        space::resized(load, size, larger, took_effect)
    }

    fn try_all(&mut self, step: Step, mixes: &[Mix]) -> Result<Vec<MixOutcome>, Stopped> {
        let jobs = self.jobs(step, mixes);
        let before = (self.tried.len() + mixes.len()) * self.places.len() - jobs.len();
        let Self { bench, folder, signals, progress, best, .. } = self;
        let mut done = before;
        let best = best.as_ref().map(|(score, load)| (*score, load.as_str()));
        progress.known(done, best);
        let mut ended = |tried: Try| {
            done += 1;
            progress.ended(done, &tried);
            progress.known(done, best);
            folder.keep(tried)
        };
        if !bench.boot(jobs, signals, &mut ended, &|text| progress.say(text))? {
            return Err(Stopped::Interrupted);
        }
        self.tried.extend(mixes.iter().map(|mix| (mix.to_string(), step)));
        let outcomes: Vec<MixOutcome> =
            mixes.iter().map(|mix| self.outcome(&mix.to_string())).collect();
        for (mix, outcome) in mixes.iter().zip(&outcomes) {
            if let Some(score) = outcome.score
                && self.best.as_ref().is_none_or(|(best, _)| score > *best)
            {
                self.best = Some((score, mix.to_string()));
            }
        }
        Ok(outcomes)
    }
}
