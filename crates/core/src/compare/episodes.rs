//! How often something was late: the rates of late episodes of two kernels.

use serde::Serialize;

use super::groups::KernelRuns;
use super::matching::Match;
use crate::schema::{Cell, Episodes};
use crate::stats::{EpisodeRatio, are_overdispersed, episode_ratio};

/// The rates of late episodes of one cell, over all runs of each kernel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EpisodeRates {
    /// The cell.
    pub key: String,
    /// The other kernel: an index into [`super::Comparison::groups`].
    pub group: usize,
    /// Episodes: base, other.
    pub episodes: [u64; 2],
    /// Time in which lateness would have been seen, ns: base, other.
    pub observed_ns: [u64; 2],
    /// Rate of the other kernel over that of the base; none without any episode, or if the base
    /// has none.
    pub ratio: Option<f64>,
    /// Its interval, exact if episodes come singly and at one rate in all runs of a kernel: none
    /// if they come in clusters in some run. An end that is none is infinite.
    pub interval: Option<[Option<f64>; 2]>,
    /// Two-sided p that the rates are equal, on the same condition.
    pub p: Option<f64>,
}

/// The rates of each matched cell, of the kernels that have several runs (`repeated`, with their
/// indices). A cell is left out unless all of its runs counted episodes for one deadline, in one
/// way. Intervals are at `confidence`.
pub(super) fn rates(
    cells: &[Match<'_>],
    base: &KernelRuns,
    repeated: &[(usize, &KernelRuns)],
    confidence: f64,
) -> Vec<EpisodeRates> {
    let mut found = Vec::new();
    for cell in cells {
        for (group, other) in repeated {
            let sides = [base, *other].map(|kernel| SideEpisodes::of(cell, kernel));
            if let [Some(base), Some(other)] = sides {
                found.extend(base.against(&other, (&cell.key, *group), confidence));
            }
        }
    }
    found
}

/// The episodes of all runs of a kernel.
struct SideEpisodes {
    /// Deadline and way of counting.
    counted: (Option<u64>, u64, bool),
    episodes: u64,
    observed_ns: u64,
    clustered: bool,
    /// Episodes and time observed, s, of each run.
    runs: Vec<(u64, f64)>,
}

impl SideEpisodes {
    /// None if a run did not count them, or counted others.
    fn of(found: &Match<'_>, kernel: &KernelRuns) -> Option<Self> {
        let mut all: Option<Self> = None;
        for run in &kernel.runs {
            let (.., cell) = found.cells.iter().find(|(of, ..)| of == run)?;
            let one = Self::of_cell(cell, cell.latency()?.episodes.as_ref()?);
            all = Some(match all {
                None => one,
                Some(mut all) if all.counted == one.counted => Self {
                    runs: {
                        all.runs.extend(one.runs);
                        all.runs
                    },
                    counted: one.counted,
                    episodes: all.episodes.saturating_add(one.episodes),
                    observed_ns: all.observed_ns.saturating_add(one.observed_ns),
                    clustered: all.clustered || one.clustered,
                },
                Some(_) => return None,
            });
        }
        all
    }

    fn of_cell(cell: &Cell, episodes: &Episodes) -> Self {
        Self {
            counted: (cell.verdict.deadline_ns, episodes.episode_gap_ns, episodes.in_seconds),
            episodes: episodes.count,
            observed_ns: episodes.observed_ns,
            clustered: episodes.clustered,
            #[allow(clippy::cast_precision_loss, reason = "a time needs no 16th digit")]
            runs: vec![(episodes.count, episodes.observed_ns as f64 / 1e9)],
        }
    }

    /// Whether its episodes say how often they come: not if they come in clusters, or if they are
    /// of some runs more than of others by more than chance.
    fn tells(&self) -> bool {
        !self.clustered && !are_overdispersed(&self.runs)
    }

    fn against(
        &self,
        other: &Self,
        (key, group): (&str, usize),
        confidence: f64,
    ) -> Option<EpisodeRates> {
        if self.counted != other.counted {
            return None;
        }
        #[allow(clippy::cast_precision_loss, reason = "times of a ratio")]
        let side = |of: &Self| (of.episodes, of.observed_ns as f64);
        let found = episode_ratio(side(self), side(other), confidence);
        let finite = |value: f64| Some(value).filter(|value| value.is_finite());
        let tested = found.filter(|_| self.tells() && other.tells());
        Some(EpisodeRates {
            key: key.to_owned(),
            group,
            episodes: [self.episodes, other.episodes],
            observed_ns: [self.observed_ns, other.observed_ns],
            ratio: found.and_then(|EpisodeRatio { ratio, .. }| finite(ratio)),
            interval: tested.map(|EpisodeRatio { interval, .. }| interval.map(finite)),
            p: tested.map(|EpisodeRatio { p, .. }| p),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{cell, compared, run};
    use super::*;

    /// Two runs of each kernel with so many episodes, in 400 s and in 1,000 s each.
    fn rates(counts: [[u64; 2]; 2], change: impl Fn(usize, &mut Cell)) -> Vec<EpisodeRates> {
        let mut runs = Vec::new();
        for (kernel, (model, seconds)) in [("none", 400), ("rt", 1_000)].into_iter().enumerate() {
            for (number, count) in counts[kernel].into_iter().enumerate() {
                let mut cell = cell("x", 10, 20);
                cell.latency_mut().unwrap().episodes = Some(Episodes {
                    count,
                    observed_ns: seconds * 1_000_000_000,
                    ..Episodes::default()
                });
                change(2 * kernel + number, &mut cell);
                runs.push(run(&format!("{model}{number}"), model, vec![cell]));
            }
        }
        compared(runs).replicates.unwrap().episodes
    }

    #[test]
    fn the_episodes_of_all_runs_of_a_kernel_are_put_together() {
        let found = rates([[5, 6], [9, 12]], |_, _| ());
        let [rates] = &found[..] else { panic!("{found:?}") };
        assert_eq!((rates.episodes, rates.group), ([11, 21], 1));
        assert_eq!(rates.observed_ns, [800_000_000_000, 2_000_000_000_000]);
        let alone = episode_ratio((11, 800.0), (21, 2_000.0), 0.95).unwrap();
        let near = |ours: f64, other: f64| (ours / other - 1.0).abs() < 1e-9;
        assert!(near(rates.ratio.unwrap(), alone.ratio) && near(rates.p.unwrap(), alone.p));
        assert!(near(rates.interval.unwrap()[1].unwrap(), alone.interval[1]));
    }

    #[test]
    fn what_has_no_end_or_no_test_is_left_out() {
        let none = rates([[0, 0], [9, 12]], |_, _| ());
        assert_eq!(none[0].ratio, None);
        assert!(matches!(none[0].interval, Some([Some(_), None])));
        let never = rates([[0, 0], [0, 0]], |_, _| ());
        assert_eq!((never[0].ratio, never[0].interval, never[0].p), (None, None, None));
        let clustered = rates([[5, 6], [9, 12]], |number, cell| {
            let episodes = &mut cell.latency_mut().unwrap().episodes;
            episodes.as_mut().unwrap().clustered = number == 3;
        });
        assert!(clustered[0].ratio.is_some());
        assert_eq!((clustered[0].interval, clustered[0].p), (None, None));
    }

    #[test]
    fn episodes_of_other_deadlines_are_not_compared() {
        let other = |number: usize, cell: &mut Cell| {
            cell.verdict.deadline_ns = Some(if number == 1 { 1 } else { 2 });
        };
        assert_eq!(rates([[5, 6], [9, 12]], other), []);
        let lacking = |number: usize, cell: &mut Cell| {
            if number == 2 {
                cell.latency_mut().unwrap().episodes = None;
            }
        };
        assert_eq!(rates([[5, 6], [9, 12]], lacking), []);
    }
}
