//! The legs of every sample of a run: what each latency consists of, from the release to the
//! reading of the clock. Found by repeating the run and watching it from outside.

use serde::{Deserialize, Serialize};

use crate::explanation::{Leg, Milestone};
use crate::stats::Quantile;

/// The milestones of a sample whose thread was asleep, in this order.
pub const MILESTONES: [Milestone; 6] = [
    Milestone::Interrupt,
    Milestone::Wakeup,
    Milestone::Schedule,
    Milestone::Switch,
    Milestone::User,
    Milestone::Clock,
];

/// The legs of one run. In its directory it is `legs.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Legs {
    /// ID of the run.
    pub run_id: String,
    /// Time of an instruction, ns.
    pub instruction_ns: u64,
    /// Its cells, in the order of the plan.
    pub cells: Vec<CellLegs>,
}

/// The legs of one cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellLegs {
    /// Key of the cell, such as `wakeup @ hackbench @ 2s`.
    pub key: String,
    /// Interrupt latency, release to interrupt: the first of `legs`.
    pub t1: Option<LegTimes>,
    /// Release to the reading of the clock: all legs together, which is the latency.
    pub t2: Option<LegTimes>,
    /// Those legs that some sample has, in their order.
    pub legs: Vec<LegTimes>,
    /// Every sample, in the order of time.
    pub samples: Vec<SampleLegs>,
}

/// How long a leg took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LegTimes {
    /// What it lasts until.
    pub until: Milestone,
    /// How many samples have it.
    pub count: u64,
    /// The shortest, ns.
    pub min_ns: u64,
    /// The median, ns; of an even number of samples the lower one of the middle.
    pub p50_ns: u64,
    /// The 99 % quantile, ns.
    pub p99_ns: u64,
    /// The longest, ns.
    pub max_ns: u64,
    /// Number of the sample that has the longest, from 1; the first of several.
    pub worst: u64,
}

/// The legs of one sample.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleLegs {
    /// Whether the CPU was idle when the release came.
    pub idle: bool,
    /// The end of each leg, ns since the release, for [`MILESTONES`] in turn; the last is the
    /// latency. Only that one if the thread was not asleep when the release came.
    pub ends_ns: Vec<u64>,
}

impl SampleLegs {
    /// Its legs, in the order of time.
    pub fn legs(&self) -> impl Iterator<Item = Leg> + '_ {
        let skipped = MILESTONES.len().saturating_sub(self.ends_ns.len());
        let milestones = MILESTONES.iter().skip(skipped);
        milestones.zip(&self.ends_ns).map(|(until, end_ns)| Leg { until: *until, end_ns: *end_ns })
    }

    /// The length of a leg, ns; none if it does not have it.
    #[must_use]
    pub fn length_ns(&self, until: Milestone) -> Option<u64> {
        let mut begin = 0;
        for leg in self.legs() {
            if leg.until == until {
                return Some(leg.end_ns.saturating_sub(begin));
            }
            begin = leg.end_ns;
        }
        None
    }

    /// Its latency, ns.
    #[must_use]
    pub fn latency_ns(&self) -> Option<u64> {
        self.ends_ns.last().copied()
    }
}

impl CellLegs {
    /// What all of these samples show.
    #[must_use]
    pub fn of(key: String, samples: Vec<SampleLegs>) -> Self {
        let leg = |until| times(until, samples.iter().map(|sample| sample.length_ns(until)));
        let legs: Vec<LegTimes> = MILESTONES.into_iter().filter_map(leg).collect();
        let t1 = legs.iter().find(|leg| leg.until == Milestone::Interrupt).copied();
        let t2 = times(Milestone::Clock, samples.iter().map(SampleLegs::latency_ns));
        Self { key, t1, t2, legs, samples }
    }
}

/// Of the samples that have a length; none if there is none.
fn times(until: Milestone, lengths: impl Iterator<Item = Option<u64>>) -> Option<LegTimes> {
    let numbered = (1_u64..).zip(lengths).filter_map(|(number, ns)| Some((ns?, number)));
    let mut all: Vec<(u64, u64)> = numbered.collect();
    all.sort_unstable();
    let (max_ns, _) = *all.last()?;
    let count = all.len() as u64;
    let at = |q: Quantile| {
        let rank = usize::try_from(q.rank(count)).unwrap_or(usize::MAX);
        all.get(rank.saturating_sub(1)).map_or(max_ns, |(ns, _)| *ns)
    };
    let worst = all.partition_point(|(ns, _)| *ns < max_ns);
    Some(LegTimes {
        until,
        count,
        min_ns: all[0].0,
        p50_ns: at(Quantile::P50),
        p99_ns: at(Quantile::P99),
        max_ns,
        worst: all[worst].1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(ends_ns: &[u64]) -> SampleLegs {
        SampleLegs { idle: false, ends_ns: ends_ns.to_vec() }
    }

    #[test]
    fn every_leg_has_its_quantiles_and_its_worst_sample() {
        let mut samples: Vec<_> =
            (1..=200).map(|n| sample(&[n, n + 10, n + 30, n + 30, n + 60, n + 100])).collect();
        samples[7] = sample(&[5_000, 5_010, 5_030, 5_030, 5_060, 5_100]);
        // Its thread was awake.
        samples.push(sample(&[77]));
        let cell = CellLegs::of("wakeup @ none @ 1s".to_owned(), samples);
        let until: Vec<_> = cell.legs.iter().map(|leg| leg.until).collect();
        assert_eq!(until, MILESTONES);
        let times = |until, count, [min_ns, p50_ns, p99_ns, max_ns]: [u64; 4], worst| LegTimes {
            until,
            count,
            min_ns,
            p50_ns,
            p99_ns,
            max_ns,
            worst,
        };
        let t1 = times(Milestone::Interrupt, 200, [1, 101, 199, 5_000], 8);
        assert_eq!((cell.t1, cell.legs[0]), (Some(t1), t1));
        assert_eq!(cell.legs[1], times(Milestone::Wakeup, 200, [10; 4], 1));
        assert_eq!(cell.legs[3], times(Milestone::Switch, 200, [0; 4], 1));
        assert_eq!(cell.legs[5], times(Milestone::Clock, 201, [40, 40, 40, 77], 201));
        assert_eq!(cell.t2, Some(times(Milestone::Clock, 201, [77, 201, 299, 5_100], 8)));
    }

    #[test]
    fn lengths_add_up_to_the_latency() {
        let whole = sample(&[232, 900, 1_500, 2_000, 2_700, 2_800]);
        let lengths = MILESTONES.map(|until| whole.length_ns(until).unwrap());
        assert_eq!(lengths, [232, 668, 600, 500, 700, 100]);
        assert_eq!(Some(lengths.iter().sum()), whole.latency_ns());
        let awake = sample(&[77]);
        assert_eq!(awake.length_ns(Milestone::Clock), Some(77));
        assert_eq!(awake.length_ns(Milestone::Interrupt), None);
    }

    #[test]
    fn what_no_file_should_have_does_no_harm() {
        let samples = vec![sample(&[]), sample(&[9, 3]), sample(&[u64::MAX; 9])];
        let cell = CellLegs::of(String::new(), samples);
        assert_eq!(cell.t2.unwrap().max_ns, u64::MAX);
        assert_eq!(CellLegs::of(String::new(), Vec::new()).legs, []);
    }
}
