//! A thread of `cpumap`: it looks at the clock as often as it can. While it has a CPU two looks are
//! as far apart as the loop is long; when they are not, it did not have one.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use punctual_core::schema::Condition;
use punctual_ring::Entries;
use punctual_sys::affinity::current_cpu;
use punctual_sys::clock::monotonic_ns;
use punctual_sys::sched::{self, Policy};
use punctual_sys::timer::{AbsoluteSleep, Wait, Waited};

use super::super::followed::Followed;
use super::map::Run;
use super::model::{Model, Rank, Work};
use crate::probes::counts::Counts;
use crate::probes::margin::{Margin, Spinning};
use crate::recorder::Recorder;
use crate::registry::probe::{ProbeThread, Stop, Window};
use crate::schedule::Schedule;

/// Runs that wait for the session, which takes them once a second.
const RUNS: usize = 1 << 13;

/// Looks by which the loop is timed.
const TRIED: usize = 4_096;

/// No interrupt takes less, ns: entering and leaving the kernel takes as much.
const LEAST_THRESHOLD_NS: u64 = 500;

/// The entry's counters, as far as threads count them.
pub(super) const LATE: usize = 0;
pub(super) const MOVED: usize = 1;
pub(super) const WORK: usize = 2;
pub(super) const TAKEN: usize = 3;
pub(super) const LOST: usize = 4;

/// What a thread and its session share.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) runs: Entries<4>,
    pub(super) counts: Counts<5>,
    pub(super) spinning: Arc<Spinning>,
    /// Two looks that are further apart are a gap, ns.
    pub(super) threshold: AtomicU64,
    /// Median time between two looks, ns; 0 if it was not measured.
    pub(super) look: AtomicU64,
    /// Whether the thread publishes no more.
    pub(super) over: AtomicBool,
}

impl Seat {
    pub(super) fn new(threshold: Option<u64>) -> Self {
        Self {
            runs: Entries::new(RUNS),
            counts: Counts::default(),
            spinning: Arc::default(),
            threshold: AtomicU64::new(threshold.unwrap_or(0)),
            look: AtomicU64::new(0),
            over: AtomicBool::new(false),
        }
    }
}

/// A thread.
pub(super) struct Looker {
    pub(super) model: Model,
    /// That of the cell.
    pub(super) policy: Policy,
    pub(super) margin: Margin,
    pub(super) break_ns: i64,
    /// Whether it may wait for a CPU that another thread of the probe has.
    pub(super) share: bool,
    pub(super) seat: Arc<Seat>,
    /// Runs published so far.
    pub(super) published: u64,
    /// Its number, if the kernel is traced.
    pub(super) followed: Option<(u32, Arc<Followed>)>,
}

impl ProbeThread for Looker {
    fn prepare(&mut self) -> io::Result<()> {
        if let Some((number, followed)) = &self.followed {
            followed.add(*number)?;
        }
        match self.model.rank {
            Some(Rank::Priority(priority)) => sched::set(self.policy, priority)?,
            Some(Rank::Other) => {
                sched::set(Policy::Other, 0)?;
                sched::set_timer_slack(1)?;
            }
            None => {}
        }
        if self.seat.threshold.load(Ordering::Relaxed) == 0 {
            let look = match self.model.work {
                Work::Yield => median_look(std::thread::yield_now),
                _ => median_look(|| ()),
            };
            self.seat.look.store(look, Ordering::Relaxed);
            self.seat.threshold.store(threshold_of(look), Ordering::Relaxed);
        }
        Ok(())
    }

    fn run(&mut self, window: &Window, tracks: &mut [Recorder], stop: &Stop) -> io::Result<()> {
        self.seat.counts.begin();
        self.seat.spinning.begin();
        self.seat.over.store(false, Ordering::Relaxed);
        let mut looks = Looks {
            seat: &self.seat,
            recorder: &mut tracks[0],
            stop,
            left: window.samples,
            threshold: self.seat.threshold.load(Ordering::Relaxed),
            break_ns: self.break_ns,
            published: &mut self.published,
            last: 0,
            run: Run::default(),
            taken: 0,
        };
        let ended = match self.model.work {
            Work::Spin => looks.spin(window, self.margin, || ()),
            Work::Yield => looks.spin(window, self.margin, std::thread::yield_now),
            Work::Periodic { work_ns, period_ns } => looks.serve(window, work_ns, period_ns),
        };
        self.seat.over.store(true, Ordering::Release);
        ended
    }

    fn notes(&self) -> Vec<Condition> {
        // After a margin one of those that share a CPU goes on and the others wait, as they are to.
        if self.share { Vec::new() } else { self.seat.spinning.notes() }
    }
}

/// Median time between two looks, ns.
fn median_look(rest: impl Fn()) -> u64 {
    let mut last = monotonic_ns();
    let mut between: Vec<u64> = (0..TRIED)
        .map(|_| {
            rest();
            let now = monotonic_ns();
            now - std::mem::replace(&mut last, now)
        })
        .collect();
    between.sort_unstable();
    between[TRIED / 2]
}

/// Above what is between two looks, cache misses included.
fn threshold_of(look: u64) -> u64 {
    (4 * look).max(LEAST_THRESHOLD_NS)
}

struct Looks<'a> {
    seat: &'a Seat,
    recorder: &'a mut Recorder,
    stop: &'a Stop,
    /// Gaps to record.
    left: u64,
    threshold: u64,
    break_ns: i64,
    published: &'a mut u64,
    /// The last look, CLOCK_MONOTONIC, ns.
    last: u64,
    /// The time on a CPU that goes on.
    run: Run,
    /// Length of all gaps so far, ns.
    taken: u64,
}

impl Looks<'_> {
    /// Keeps a CPU busy but for the margin, which all threads leave at the same time: on a CPU that
    /// they share nobody else would have one.
    #[inline(always)]
    fn spin(&mut self, window: &Window, margin: Margin, rest: impl Fn()) -> io::Result<()> {
        let Some(mut now) = self.begin_at(window.first)? else { return Ok(()) };
        let (first, seat) = (now, self.seat);
        while now < window.end && self.goes_on() {
            let begun = now;
            let rounds = (now - window.first) / Margin::ROUND_NS;
            let round = window.first + rounds * Margin::ROUND_NS;
            let until = (round + margin.spin_ns()).min(window.end);
            while now < until && self.goes_on() {
                rest();
                now = self.look();
            }
            self.publish();
            seat.spinning.spun(margin, now - begun);
            if !margin.is_none() && now < window.end && self.goes_on() {
                let (asleep, next) = (now, round + Margin::ROUND_NS);
                let Some(begun) = self.begin_at(next)? else { break };
                if asleep < next {
                    seat.spinning.overslept(begun.saturating_sub(next));
                }
                now = begun;
            }
        }
        seat.spinning.end(margin, now - first);
        Ok(())
    }

    /// Works for so long after every release. Releases that pass before the job of an earlier one
    /// is done are late, and have no job of their own.
    fn serve(&mut self, window: &Window, work_ns: u64, period_ns: u64) -> io::Result<()> {
        let mut schedule = Schedule::new(window.first, period_ns, window.end);
        while let Some(release) = schedule.next().filter(|_| self.goes_on()) {
            let Some(begun) = self.begin_at(release)? else { break };
            let (_, missed) = schedule.serve(begun);
            let (taken, mut now) = (self.taken, begun);
            while now - begun - (self.taken - taken) < work_ns && now < window.end && self.goes_on()
            {
                now = self.look();
            }
            self.publish();
            let late = missed + u64::from(now > release + period_ns);
            self.seat.counts.add(LATE, late);
        }
        Ok(())
    }

    #[inline(always)]
    fn goes_on(&self) -> bool {
        self.left > 0 && !self.stop.is_set()
    }

    /// Waits, and begins a run; `None` if the thread is told to end.
    fn begin_at(&mut self, instant: u64) -> io::Result<Option<u64>> {
        while AbsoluteSleep.until(instant)? == Waited::Interrupted {
            if self.stop.is_set() {
                return Ok(None);
            }
        }
        // What is cold after the sleep is not to look like a gap.
        let _ = monotonic_ns();
        let cpu = current_cpu();
        self.last = monotonic_ns();
        self.run = Run { cpu, gap: None, from: self.last, to: self.last };
        Ok(Some(self.last))
    }

    #[inline(always)]
    fn look(&mut self) -> u64 {
        let now = monotonic_ns();
        if now - self.last > self.threshold {
            return self.gap(now);
        }
        self.last = now;
        now
    }

    /// The thread did not have the CPU since the last look.
    #[cold]
    fn gap(&mut self, now: u64) -> u64 {
        let (from, cpu) = (self.last, self.run.cpu);
        let length = now - from;
        self.recorder.record(now, length.cast_signed(), 0);
        self.left -= 1;
        self.taken += length;
        self.seat.counts.add(TAKEN, length / 1_000);
        self.publish();
        self.run.cpu = current_cpu();
        let stayed = self.run.cpu == cpu;
        self.seat.counts.add(MOVED, u64::from(!stayed));
        (self.run.gap, self.run.from) = (stayed.then_some(from), now);
        if length.cast_signed() > self.break_ns {
            self.stop.set_broken(from, length.cast_signed());
        }
        // What was done here is work of this thread.
        self.last = monotonic_ns();
        self.last
    }

    /// Ends the run with the last look, and begins one that follows it directly.
    fn publish(&mut self) {
        self.run.to = self.last;
        self.seat.counts.add(WORK, (self.run.to - self.run.from) / 1_000);
        if self.seat.runs.push(*self.published, self.run.words()) {
            *self.published += 1;
        } else {
            self.seat.counts.add(LOST, 1);
        }
        (self.run.gap, self.run.from) = (None, self.last);
        self.last = monotonic_ns();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::aim::Aim;
    use punctual_core::stats::Limits;

    #[test]
    fn a_gap_is_longer_than_the_loop_and_shorter_than_an_interrupt() {
        let look = median_look(|| ());
        assert!(look > 0 && threshold_of(look) >= 4 * look);
        assert_eq!(threshold_of(30), 500);
        assert!(median_look(std::thread::yield_now) > look);
    }

    fn looker(work: Work, threshold: u64) -> Looker {
        let seat = Arc::new(Seat::new(Some(threshold)));
        let model = Model { work, rank: None };
        let (policy, margin) = (Policy::Other, Margin(10));
        Looker {
            model,
            policy,
            margin,
            break_ns: i64::MAX,
            share: false,
            seat,
            published: 0,
            followed: None,
        }
    }

    fn run(looker: &mut Looker, ns: u64) -> (Recorder, Vec<Run>) {
        looker.prepare().unwrap();
        let first = monotonic_ns();
        let window = Window { first, end: first + ns, samples: u64::MAX, aim: Aim::NONE };
        let mut tracks = [Recorder::new(Limits::NONE)];
        tracks[0].begin(first);
        looker.run(&window, &mut tracks, &Stop::default()).unwrap();
        let [track] = tracks;
        let runs = (0..).map_while(|taken| looker.seat.runs.take(taken)).map(Run::of).collect();
        (track, runs)
    }

    #[test]
    fn runs_and_gaps_are_all_of_the_time_but_the_margin() {
        let mut looker = looker(Work::Spin, 500);
        let (recorder, runs) = run(&mut looker, 100_000_000);
        let gaps = runs.iter().filter(|run| run.gap.is_some()).count() as u64;
        let moved = looker.seat.counts.of(MOVED);
        assert_eq!(recorder.samples(), gaps + moved);
        for pair in runs.windows(2) {
            assert!(pair[0].to <= pair[1].from && pair[1].from <= pair[1].to, "{pair:?}");
            assert!(pair[1].gap.is_none_or(|gap| gap == pair[0].to && gap + 500 < pair[1].from));
        }
        let ran: u64 = runs.iter().map(|run| run.to - run.from).sum();
        let gone = recorder.finish().moments.sum;
        // Ten rounds of 9 ms; a busy machine may wake the thread late, and end a round late.
        let all = i128::from(ran) + gone;
        let (first, last) = (&runs[0], &runs[runs.len() - 1]);
        let elapsed = i128::from(last.to - first.from);
        assert!(all <= elapsed && ran > 0, "{ran} ns, gaps {gone} ns of {elapsed} ns");
        // What is neither was slept, as asked or for longer.
        let [overslept_us, _] = Spinning::totals([&looker.seat.spinning].into_iter());
        let rest = i128::from(monotonic_ns() - first.from) - all;
        assert!(i128::from(overslept_us * 1_000) <= rest, "{overslept_us} us of {rest} ns");
    }

    #[test]
    fn a_job_takes_its_work_and_one_that_does_not_fit_is_late() {
        let mut fits = looker(Work::Periodic { work_ns: 200_000, period_ns: 10_000_000 }, 500);
        let (_, runs) = run(&mut fits, 100_000_000);
        let ran: u64 = runs.iter().map(|run| run.to - run.from).sum();
        let jobs = 10 - fits.seat.counts.of(LATE).min(10);
        assert!((jobs * 200_000..=11 * 300_000).contains(&ran), "{ran} ns");
        // Each look is a gap: no time is left for the job, which ends with the window.
        let mut late = looker(Work::Periodic { work_ns: 900_000, period_ns: 1_000_000 }, 1);
        run(&mut late, 20_000_000);
        assert!(late.seat.counts.of(LATE) >= 15);
    }

    #[test]
    fn runs_without_room_are_counted() {
        // Each look is a gap.
        let mut looker = looker(Work::Spin, 1);
        let (recorder, runs) = run(&mut looker, 300_000_000);
        assert_eq!(runs.len(), RUNS);
        let lost = looker.seat.counts.of(LOST);
        assert!(lost > 0 && lost + RUNS as u64 >= recorder.samples(), "{lost}");
    }
}
