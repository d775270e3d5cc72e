//! Late episodes: lateness counted in the unit in which it comes.
//!
//! One stall delays many activations, so that their number says little of how often something
//! made them late, and no bound that takes them for independent holds. Episodes are found by runs
//! declustering with a fixed gap (R. L. Smith, Statistical Science 4 (1989) 367): a gap that is
//! estimated from the run that is judged would be the shorter the more there is to hide.

use std::collections::BTreeMap;

use crate::block::{BLOCK_NS, Spell, coarse_range};
use crate::run::{SeriesData, ThreadData};
use crate::schema::{Cell, Episodes, Latency, Stats, Thread};
use crate::units::SECOND_NS;

use super::batches::batches;
use super::behind::Limits;
use super::bounds::{binomial_reaches, clopper_pearson_upper, gamma_count_lower, real};
use super::stopped::Stopped;

/// The gap that separates two episodes, ns.
pub const EPISODE_GAP_NS: u64 = SECOND_NS;

/// The least time of which anything is claimed, ns: ten gaps.
pub const LEAST_OBSERVED_NS: u64 = 10 * SECOND_NS;

/// A longer gap, ns: episodes that it joins, more than chance does, come in clusters themselves.
const LONG_GAP_NS: u64 = 10 * SECOND_NS;

/// A shorter one, ns.
const SHORT_GAP_NS: u64 = SECOND_NS / 10;

/// The level at which episodes are said to come in clusters.
const CLUSTERED: f64 = 0.01;

/// The longest of fewer episodes than this says little of how long one can be.
const LEAST_EPISODES: u64 = 20;

/// How long one may be then, ns, whatever was seen.
pub const LONG_EPISODE_NS: u64 = 10 * SECOND_NS;

/// Joins spells, ordered by their beginning, of which the next begins at most `gap` ns after all
/// before it have ended. None may be shorter apart than the gap by which spells are made.
fn joined(spells: &[Spell], gap: u64) -> Vec<Spell> {
    let mut episodes: Vec<Spell> = Vec::new();
    for spell in spells {
        match episodes.last_mut() {
            Some(last) if spell.from <= last.to.saturating_add(gap) => {
                last.to = last.to.max(spell.to);
                last.late = last.late.saturating_add(spell.late);
            }
            _ => episodes.push(*spell),
        }
    }
    episodes
}

/// The whole seconds in which any spell lies, of spells ordered by their beginning and of those
/// seconds that were observed: releases that a start at the end missed may reach beyond.
fn seconds_late(spells: &[Spell], observed_ns: u64) -> u64 {
    let (mut seconds, mut next) = (0_u64, 0_u64);
    let end = observed_ns.div_ceil(BLOCK_NS).max(1) - 1;
    for spell in spells {
        let begins = spell.from / BLOCK_NS;
        let (first, last) = (begins.max(next), (spell.to / BLOCK_NS).min(end.max(begins)));
        if last >= first {
            seconds = seconds.saturating_add(last - first + 1);
            next = last + 1;
        }
    }
    seconds
}

/// The episodes that these spells make, of one thread or of several, seen in `observed_ns`.
#[must_use]
pub fn episodes(spells: Vec<Spell>, observed_ns: u64) -> Episodes {
    of_threads(spells, [observed_ns, observed_ns], None, &Stopped::default())
}

/// Those of threads that observed for at least and at most so many ns. A probe that leaves a margin
/// observes a part of the `window_ns` in which its spells lie. What counts seconds counts those in
/// which the process was not stopped.
fn of_threads(
    mut spells: Vec<Spell>,
    [observed_ns, most_observed_ns]: [u64; 2],
    window_ns: Option<u64>,
    stopped: &Stopped,
) -> Episodes {
    spells.sort_unstable_by_key(|spell| (spell.from, spell.to));
    let count = |gap| joined(&spells, gap).len() as u64;
    let found = joined(&spells, EPISODE_GAP_NS);
    let sizes = || found.iter().map(|episode| episode.late);
    let count_10s = count(LONG_GAP_NS);
    let (running, found_running) = (stopped.without(&spells), stopped.without(&found));
    let lengths = || found.iter().map(|episode| episode.to.saturating_sub(episode.from));
    Episodes {
        episode_gap_ns: EPISODE_GAP_NS,
        count: found.len() as u64,
        count_100ms: count(SHORT_GAP_NS),
        count_10s,
        longest_ns: lengths().max().unwrap_or(0),
        total_ns: lengths().fold(0, u64::saturating_add),
        largest: sizes().max().unwrap_or(0),
        size_sum: sizes().fold(0, u64::saturating_add),
        size_sum_sq: sizes().fold(0, |sum, late| sum.saturating_add(late.saturating_mul(late))),
        seconds_late: seconds_late(&running, window_ns.unwrap_or(most_observed_ns)),
        batches: batches(&running, window_ns.unwrap_or(observed_ns), observed_ns),
        clustered: are_clustered(&found_running, count_10s, observed_ns),
        in_seconds: false,
        joined: false,
        observed_ns,
        most_observed_ns,
    }
}

/// Whether episodes come in clusters: whether a gap of 10 s joins more of them than it would if
/// they came independently (p < 0.01), and the time between them is spread more than then, which
/// tells clusters from episodes that come regularly.
///
/// Given their number n, the times between independent ones (each less the gap that separates
/// episodes) are spacings of a uniform sample of the time T that is left. Each exceeds x with the
/// probability (1 - x/T)^n; the number of short ones is compared with the binomial distribution,
/// which spreads more than theirs. The sum of the squares of all n + 1, with those before the first
/// and after the last, is 2 T^2 / (n + 2) on average (M. Greenwood, Journal of the Royal
/// Statistical Society 109 (1946) 85).
fn are_clustered(found: &[Spell], count_10s: u64, observed_ns: u64) -> bool {
    let number = found.len() as u64;
    let (gaps, short) = (number.saturating_sub(1), number.saturating_sub(count_10s));
    if gaps == 0 || short == 0 {
        return false;
    }
    let mut spacings = Vec::with_capacity(found.len() + 1);
    spacings.push(found[0].from);
    let between = |pair: &[Spell]| pair[1].from.saturating_sub(pair[0].to + EPISODE_GAP_NS);
    spacings.extend(found.windows(2).map(between));
    spacings.push(observed_ns.saturating_sub(found[found.len() - 1].to));
    let free: f64 = spacings.iter().map(|ns| seconds(*ns)).sum();
    let squares: f64 = spacings.iter().map(|ns| seconds(*ns) * seconds(*ns)).sum();
    let longer = (1.0 - seconds(LONG_GAP_NS - EPISODE_GAP_NS) / free).max(0.0);
    let share = 1.0 - longer.powf(real(number));
    let spread = squares > 2.0 * free * free / real(number + 2);
    spread && binomial_reaches(short, gaps, share) < CLUSTERED
}

/// Spells of which only the seconds are known: each of them is a whole second, so that two in
/// neighbouring seconds are one episode, and two with a second between them are not.
#[must_use]
pub fn spells_of_seconds(primary: &SeriesData, thread: u32, limits: &Limits) -> Vec<Spell> {
    let deadline = limits.deadline;
    let mut missed: BTreeMap<u64, u64> = BTreeMap::new();
    for late in &primary.late {
        let exceeded = limits.exceeded(late.latency, late.missed);
        let of_second = missed.entry(late.at / BLOCK_NS).or_default();
        *of_second = of_second.saturating_add(exceeded);
    }
    let late_in = |block: &crate::block::Block| {
        if block.moments.max <= deadline {
            return None;
        }
        let above = block.coarse.iter().filter(|(bin, _)| coarse_range(*bin).1 > deadline);
        let late = above.map(|(_, count)| u64::from(*count)).sum::<u64>().max(1);
        let late = late.saturating_add(missed.get(&block.index).copied().unwrap_or(0));
        let from = block.index.saturating_mul(BLOCK_NS);
        // A start that was late for longer than a second reaches back into those before.
        let reach = block.moments.max_at.saturating_sub(block.moments.max.unsigned_abs());
        let to = from.saturating_add(BLOCK_NS - 1);
        Some(Spell { thread, from: from.min(reach / BLOCK_NS * BLOCK_NS), to, late })
    };
    primary.blocks.iter().filter_map(late_in).collect()
}

/// The spells of a thread that was cut short: those on disk, and in each later second with
/// something late one around its largest sample, since the last spell was still open.
#[must_use]
pub fn spells_on_disk(data: &ThreadData, thread: u32) -> Vec<Spell> {
    let mut spells = data.spells.clone();
    let known = spells.iter().map(|spell| spell.to).max();
    for block in &data.primary().blocks {
        let end = block.index.saturating_add(1).saturating_mul(BLOCK_NS);
        if block.moments.exceeded > 0 && known.is_none_or(|known| block.moments.max_at > known) {
            let to = block.moments.max_at.min(end);
            let from = to.saturating_sub(block.moments.max.unsigned_abs());
            spells.push(Spell { thread, from, to, late: block.moments.exceeded });
        }
    }
    spells
}

/// Records the late episodes of a cell and of its threads, whose spells are given by thread.
pub fn tell_episodes(cell: &mut Cell, spells: Vec<Vec<Spell>>, in_seconds: bool) {
    let (window_ns, stopped) = running(cell);
    let Some(latency) = cell.latency_mut() else { return };
    let mut each = spells.iter().cloned();
    for number in 0..latency.threads.len() {
        let own = observed_ns(latency, &latency.threads[number].stats, window_ns);
        let window = of_window(latency, window_ns);
        let found = of_threads(each.next().unwrap_or_default(), [own, own], window, &stopped);
        latency.threads[number].episodes = Some(Episodes { in_seconds, ..found });
    }
    let all = of_cell(latency, spells.into_iter().flatten().collect(), window_ns, &stopped);
    latency.episodes = Some(Episodes { in_seconds, ..all });
}

/// Records the batches of a cell whose record is older than they are.
pub fn tell_batches(cell: &mut Cell, spells: Vec<Spell>) {
    let (window_ns, stopped) = running(cell);
    let Some(latency) = cell.latency_mut() else { return };
    let batches = of_cell(latency, spells, window_ns, &stopped).batches;
    if let Some(episodes) = &mut latency.episodes {
        episodes.batches = batches;
    }
}

/// How long a cell measured without its stops, ns, and these.
fn running(cell: &Cell) -> (u64, Stopped) {
    let (window_ns, stopped) = (cell.window_ns(), Stopped::of(&cell.stops));
    (window_ns - stopped.until(window_ns), stopped)
}

/// The episodes of all threads together.
fn of_cell(latency: &Latency, spells: Vec<Spell>, window_ns: u64, stopped: &Stopped) -> Episodes {
    let of_thread = |thread: &Thread| observed_ns(latency, &thread.stats, window_ns);
    let observed = latency.threads.iter().map(of_thread).min().unwrap_or(0);
    let most = latency.threads.iter().map(of_thread).max().unwrap_or(0);
    of_threads(spells, [observed, most], of_window(latency, window_ns), stopped)
}

/// The time in which spells lie, ns, if that is not the time that was observed: of a probe without
/// an interval.
fn of_window(latency: &Latency, window_ns: u64) -> Option<u64> {
    latency.interval_ns.is_none_or(|interval| interval == 0).then_some(window_ns)
}

/// Time in which lateness of one thread would have been seen, ns. A probe that spins leaves a
/// margin in which it looks at nothing.
fn observed_ns(latency: &Latency, stats: &Stats, window_ns: u64) -> u64 {
    if let Some(interval) = latency.interval_ns.filter(|interval| *interval > 0) {
        return stats.scheduled.saturating_mul(interval);
    }
    let margin = latency.params.get("margin").and_then(|text| text.strip_suffix('%'));
    let margin = margin.and_then(|percent| percent.parse::<u64>().ok()).unwrap_or(0).min(100);
    window_ns / 100 * (100 - margin)
}

/// The share of a cell's time in which lateness would have been seen.
#[must_use]
pub fn observed_share(latency: &Latency) -> f64 {
    let scheduled = Stats { scheduled: 1, ..Stats::default() };
    let share = match latency.interval_ns.filter(|interval| *interval > 0) {
        Some(_) => 1.0,
        None => real(observed_ns(latency, &scheduled, 1_000_000)) / 1e6,
    };
    share.max(0.01)
}

#[allow(clippy::cast_precision_loss, reason = "a time needs no 16th digit")]
fn seconds(ns: u64) -> f64 {
    ns as f64 / SECOND_NS as f64
}

impl Episodes {
    /// Upper bound of their rate, per second: `-ln(1-c)/T` if there was none, else
    /// `-ln(1 - p)` with p the upper bound of Clopper and Pearson for the share of seconds in
    /// which anything was late. An episode makes at least one second late, so the bound holds
    /// however long episodes last. `None` if every second held one, or for less than
    /// [`LEAST_OBSERVED_NS`].
    #[must_use]
    pub fn rate_upper(&self, confidence: f64) -> Option<f64> {
        if self.observed_ns < LEAST_OBSERVED_NS {
            return None;
        }
        if self.count == 0 {
            return Some(-(1.0 - confidence).ln() / seconds(self.observed_ns));
        }
        let all = self.observed_ns / SECOND_NS;
        if self.seconds_late >= all {
            return None;
        }
        Some(-(-clopper_pearson_upper(self.seconds_late, all, confidence)).ln_1p())
    }

    /// Lower bound of their rate, per second (Garwood 1936); 0 for less than
    /// [`LEAST_OBSERVED_NS`]. After an episode another begins at the earliest one gap later, so
    /// that their number spreads less than the Poisson distribution, and the bound is too low
    /// rather than too high.
    #[must_use]
    pub fn rate_lower(&self, confidence: f64) -> f64 {
        if self.observed_ns < LEAST_OBSERVED_NS {
            return 0.0;
        }
        // More of them take long to compute, and a bound of fewer is lower.
        let count = self.count.min(1 << 32);
        gamma_count_lower(real(count), confidence)
            / seconds(self.most_observed_ns.max(self.observed_ns))
    }

    /// Bounds, lower and upper and each one-sided, on the share of `scheduled` activations that is
    /// late: those of the means of `batches`. `None` if there are none that hold, or for less than
    /// [`LEAST_OBSERVED_NS`].
    #[must_use]
    pub fn share_bounds(&self, scheduled: u64, confidence: f64) -> Option<(f64, f64)> {
        if self.observed_ns < LEAST_OBSERVED_NS || scheduled == 0 {
            return None;
        }
        let (lower, upper) = self.batches.as_ref()?.bounds(confidence)?;
        let a_second = real(scheduled) / seconds(self.observed_ns);
        Some(((lower / a_second).min(1.0), (upper / a_second).min(1.0)))
    }

    /// Upper bound on the share of `scheduled` activations that is late if no episode is longer than
    /// the longest that was seen or, of fewer than 20, than [`LONG_EPISODE_NS`]: how often lateness
    /// begins at most ([`Self::rate_upper`]) times that length.
    #[must_use]
    pub fn share_by_longest(&self, scheduled: u64, confidence: f64) -> Option<f64> {
        let rate = self.rate_upper(confidence)?;
        let seen = real(self.largest) * seconds(self.observed_ns) / real(scheduled.max(1));
        let longest = seen.max(seconds(self.longest_allowed_ns()));
        Some((rate * longest).min(1.0))
    }

    /// How long an episode may be for [`Self::share_by_longest`], ns.
    #[must_use]
    pub fn longest_allowed_ns(&self) -> u64 {
        if self.count < LEAST_EPISODES {
            self.longest_ns.max(LONG_EPISODE_NS)
        } else {
            self.longest_ns
        }
    }
}

#[cfg(test)]
mod tests;
