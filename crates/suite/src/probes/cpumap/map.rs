//! Who had which CPU, put together from what each thread knows of itself.

use std::collections::BTreeMap;

use crate::registry::probe::Intervals;

/// Intervals of a cell that are kept, whatever they are; 24 bytes each where they are read. From
/// then on only those around a gap that is longer than any before.
pub(super) const KEPT: u64 = 1 << 20;

/// What is kept on either side of such a gap, ns.
const AROUND_NS: u64 = 25_000_000;

/// Runs that may wait for a thread that does not get a CPU.
const WAITING: usize = 1 << 20;

/// The name of whatever had a CPU that no thread of the probe had.
pub(super) const OTHER: &str = "other";

/// A stretch in which a thread had a CPU; CLOCK_MONOTONIC, ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) cpu: u32,
    /// Start of the gap before it in which something else had that CPU; `None` if it did not
    /// follow one, or if the thread was on another CPU before it.
    pub(super) gap: Option<u64>,
    pub(super) from: u64,
    pub(super) to: u64,
}

impl Run {
    pub(super) fn words(self) -> [u64; 4] {
        [self.cpu.into(), self.gap.unwrap_or(0), self.from, self.to]
    }

    pub(super) fn of([cpu, gap, from, to]: [u64; 4]) -> Self {
        let gap = Some(gap).filter(|gap| *gap > 0);
        Self { cpu: u32::try_from(cpu).unwrap_or(u32::MAX), gap, from, to }
    }
}

/// Cuts a stretch of a CPU, ns of CLOCK_MONOTONIC, by who had it; no name: not known.
pub(super) type WhoHad<'a> = dyn FnMut(u32, (u64, u64)) -> Vec<(u64, u64, Option<String>)> + 'a;

/// A stretch of a CPU's time, and the thread that had it; `None`: none of the probe.
type Had = (u32, u64, u64, Option<u32>);

/// Which thread had which CPU.
#[derive(Debug)]
pub(super) struct Map {
    /// Runs by thread that wait for what others did meanwhile.
    waiting: Vec<(u32, Run)>,
    /// The end of each thread's last run.
    heard: Vec<u64>,
    /// Up to when the CPUs are mapped.
    ends: BTreeMap<u32, u64>,
    kept: u64,
    /// The longest gap so far, ns.
    longest: u64,
    /// Runs and intervals that are not in the map.
    pub(super) left_out: u64,
}

impl Map {
    pub(super) fn new(threads: u32) -> Self {
        Self {
            waiting: Vec::new(),
            heard: vec![0; threads as usize],
            ends: BTreeMap::new(),
            kept: 0,
            longest: 0,
            left_out: 0,
        }
    }

    /// Up to when the CPUs are mapped, ns of CLOCK_MONOTONIC.
    pub(super) fn ends(&self) -> impl Iterator<Item = (u32, u64)> {
        self.ends.iter().map(|(cpu, end)| (*cpu, *end))
    }

    /// Begins the measurement: what was kept and left out before does not count.
    pub(super) fn begin(&mut self) {
        (self.kept, self.longest, self.left_out) = (0, 0, 0);
    }

    /// The next run of a thread.
    pub(super) fn add(&mut self, thread: u32, run: Run) {
        self.heard[thread as usize] = run.to;
        if self.waiting.len() < WAITING {
            self.waiting.push((thread, run));
        } else {
            self.left_out += 1;
        }
    }

    /// Whether the thread adds no more for now.
    pub(super) fn set_over(&mut self, thread: u32, over: bool) {
        let heard = &mut self.heard[thread as usize];
        if over {
            *heard = u64::MAX;
        } else if *heard == u64::MAX {
            *heard = 0;
        }
    }

    /// Hands over what is complete. A thread that was not heard of since is off its CPU, and says
    /// only later who it was. `named` tells who had a stretch of a CPU that no thread of the probe had.
    pub(super) fn hand_over(&mut self, out: &mut Intervals, named: &mut WhoHad<'_>) {
        let until = self.heard.iter().copied().min().unwrap_or(u64::MAX);
        let gaps = self.waiting.iter().filter(|(_, run)| run.to <= until);
        let gaps = gaps.filter_map(|(_, run)| Some((run.from - run.gap?, run.gap?)));
        let longest = gaps.max().filter(|(length, _)| *length > self.longest);
        let found = self.complete(until);
        self.longest = longest.map_or(self.longest, |(length, _)| length);
        let around = longest.map(|(length, from)| {
            from.saturating_sub(AROUND_NS)..from.saturating_add(length + AROUND_NS)
        });
        let threads: Vec<u32> =
            (0..self.heard.len()).map(|n| out.actor(&format!("thread {n}"))).collect();
        let other = out.actor(OTHER);
        let all = self.kept + found.len() as u64 <= KEPT;
        for (cpu, from, to, thread) in found {
            let near = around.as_ref().is_some_and(|near| from < near.end && to > near.start);
            if all || near {
                let pieces = match thread {
                    Some(_) => vec![(from, to, None)],
                    None => named(cpu, (from, to)),
                };
                for (from, to, name) in pieces {
                    let nobody = thread.map_or(other, |number| threads[number as usize]);
                    let actor = name.map_or(nobody, |name| out.actor(&name));
                    self.kept += 1;
                    out.push(cpu, from, to, actor);
                }
            } else {
                self.left_out += 1;
            }
        }
    }

    /// What is known of the time until then, by CPU.
    fn complete(&mut self, until: u64) -> Vec<Had> {
        let gaps = self.waiting.iter().filter_map(|(_, run)| Some((run.cpu, run.gap?, run.from)));
        let mut gaps: Vec<_> = gaps.collect();
        gaps.sort_unstable();
        let mut gaps = gaps.into_iter().peekable();
        let (mut ready, waiting): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.waiting).into_iter().partition(|(_, run)| run.to <= until);
        self.waiting = waiting;
        ready.sort_unstable_by_key(|(_, run)| (run.cpu, run.from));
        let mut found: Vec<Had> = Vec::with_capacity(2 * ready.len());
        // The CPU of the last gap, and up to when one that has begun lasts there.
        let mut covered = (0, 0);
        for (thread, run) in ready {
            let end = self.ends.entry(run.cpu).or_insert(0);
            while let Some((cpu, _, to)) =
                gaps.next_if(|(cpu, from, _)| (*cpu, *from) <= (run.cpu, *end))
            {
                covered = if covered.0 == cpu { (cpu, to.max(covered.1)) } else { (cpu, to) };
            }
            // Between two runs on a CPU a thread waits for it all the time or not at all.
            if *end > 0 && run.from > *end && covered.0 == run.cpu && covered.1 >= run.from {
                found.push((run.cpu, *end, run.from, None));
            }
            match found.last_mut() {
                Some((cpu, _, to, Some(number)))
                    if (*cpu, *to, *number) == (run.cpu, run.from, thread) =>
                {
                    *to = run.to;
                }
                _ if run.from == run.to => {}
                _ => found.push((run.cpu, run.from, run.to, Some(thread))),
            }
            *end = run.to;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(cpu: u32, gap: Option<u64>, from: u64, to: u64) -> Run {
        Run { cpu, gap, from, to }
    }

    #[test]
    fn a_gap_is_that_of_the_others_less_what_threads_had_of_it() {
        let mut map = Map::new(2);
        map.add(0, run(3, None, 5, 10));
        map.add(0, run(3, Some(10), 30, 40));
        // Nothing is known yet of the other thread, and so of the gap.
        assert!(map.complete(0).is_empty());
        map.add(1, run(3, None, 12, 18));
        map.add(1, run(3, Some(18), 21, 25));
        map.set_over(0, true);
        map.set_over(1, true);
        let thread = |from, to, number| (3, from, to, Some(number));
        let other = |from, to| (3, from, to, None);
        assert_eq!(
            map.complete(u64::MAX),
            [
                thread(5, 10, 0),
                other(10, 12),
                thread(12, 18, 1),
                other(18, 21),
                thread(21, 25, 1),
                other(25, 30),
                thread(30, 40, 0)
            ]
        );
    }

    #[test]
    fn what_nobody_wanted_was_nobodys() {
        let mut map = Map::new(2);
        // It slept, it was moved, and the other one has a CPU of its own.
        for one in
            [run(0, None, 1, 9), run(0, None, 20, 30), run(0, None, 35, 35), run(1, None, 50, 60)]
        {
            map.add(0, one);
        }
        map.add(1, run(1, None, 2, 8));
        let found = map.complete(60);
        assert!(found.iter().all(|(.., thread)| thread.is_some()), "{found:?}");
        assert_eq!(found.len(), 4);
    }

    #[test]
    fn runs_that_follow_each_other_are_one_and_gaps_go_on_over_a_drain() {
        let mut map = Map::new(1);
        map.add(0, run(0, None, 1, 9));
        map.add(0, run(0, None, 9, 15));
        assert_eq!(map.complete(15), [(0, 1, 15, Some(0))]);
        map.add(0, run(0, Some(15), 20, 30));
        assert_eq!(map.complete(30), [(0, 15, 20, None), (0, 20, 30, Some(0))]);
    }

    #[test]
    fn what_a_thread_did_waits_for_one_that_is_off_its_cpu() {
        let (mut map, mut out) = (Map::new(2), Intervals::default());
        map.add(0, run(0, None, 1, 9));
        map.add(1, run(0, None, 9, 12));
        map.add(1, run(0, None, 12, 50));
        map.hand_over(&mut out, &mut |_, (from, to)| vec![(from, to, None)]);
        // Thread 0 may have had the CPU after 9.
        assert_eq!(out.found, [(0, 1, 9, 0)]);
        map.add(0, run(0, Some(9), 50, 60));
        map.hand_over(&mut out, &mut |_, (from, to)| vec![(from, to, None)]);
        assert_eq!(out.found, [(0, 1, 9, 0), (0, 9, 50, 1)]);
        assert_eq!(out.actors, ["thread 0", "thread 1", "other"]);
    }

    #[test]
    fn only_time_within_a_gap_is_that_of_others() {
        let mut map = Map::new(1);
        // Between 9 and 20 it sleeps.
        for one in [run(0, None, 1, 9), run(0, None, 20, 30), run(0, Some(30), 40, 50)] {
            map.add(0, one);
        }
        let thread = |from, to| (0, from, to, Some(0));
        assert_eq!(
            map.complete(50),
            [thread(1, 9), thread(20, 30), (0, 30, 40, None), thread(40, 50)]
        );
    }

    #[test]
    fn a_thread_that_goes_on_after_its_end_is_waited_for() {
        let (mut map, mut out) = (Map::new(2), Intervals::default());
        map.set_over(0, true);
        map.set_over(0, false);
        map.add(1, run(0, None, 1, 9));
        map.hand_over(&mut out, &mut |_, (from, to)| vec![(from, to, None)]);
        assert!(out.found.is_empty());
    }

    #[test]
    fn beyond_what_is_kept_only_the_longest_gap_is_mapped() {
        const MS: u64 = 1_000_000;
        let (mut map, mut out) = (Map::new(1), Intervals::default());
        let mut gap_of = |map: &mut Map, at: u64, length: u64| {
            let (begin, end) = (at * MS, at * MS + length);
            map.add(0, run(0, None, begin - MS, begin));
            map.add(0, run(0, Some(begin), end, end + MS));
            map.hand_over(&mut out, &mut |_, (from, to)| vec![(from, to, None)]);
            (map.longest, map.kept, map.left_out)
        };
        assert_eq!(gap_of(&mut map, 100, 7), (7, 3, 0));
        map.kept = KEPT;
        assert_eq!(gap_of(&mut map, 200, 5), (7, KEPT, 3));
        assert_eq!(gap_of(&mut map, 300, 9), (9, KEPT + 3, 3));
        assert_eq!(out.found.len(), 6);
    }
}
