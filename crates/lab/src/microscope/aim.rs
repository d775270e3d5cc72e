//! Which releases would be latest: sections of a watched course to aim at, and what a release
//! there would measure.

mod nearer;

use std::cmp::Reverse;
use std::collections::HashMap;

use anyhow::{Context, Result, ensure};
use punctual_core::aim::Aim;
use punctual_core::block::Outlier;
use punctual_core::dither::Dither;
use punctual_core::run::LoadedRun;
use punctual_core::sections::Section;

use super::functions::Functions;
use super::sections::{Anchor, Axis, CellCourse, INTO};
use super::tally::Sighting;
use super::wanted;

/// How long the thread takes from reading the clock until its next release is set up, ns: 1,500
/// instructions.
const ASLEEP_NS: i64 = 6_000;

/// A release to be aimed at a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The release and its instant.
    pub aim: Aim,
    /// The section, without what was executed in it.
    pub section: Section,
    /// The instant, ns since the start of the cell.
    pub at_ns: u64,
    /// What the release would measure, ns.
    pub predicted_ns: u64,
    /// Instructions that the CPU had executed when the section began.
    pub(super) begin: u64,
}

/// The releases of a cell to be aimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Targets {
    /// In the order of their predictions, the latest first.
    pub targets: Vec<Target>,
    /// Sections longer than the last of them whose time is not known.
    pub passed_over: u64,
}

/// A cell that was watched and recorded.
pub(super) struct Aimed<'a> {
    cell: usize,
    course: &'a CellCourse,
    samples: &'a [Outlier],
    read_ns: Vec<u64>,
    dither: &'a Dither,
    interval_ns: u64,
    instruction_ns: u64,
    /// The only release, which was aimed itself.
    only: Option<Aim>,
}

impl<'a> Aimed<'a> {
    pub(super) fn of(
        run: &'a LoadedRun,
        cell: usize,
        course: &'a CellCourse,
        instruction_ns: u64,
    ) -> Result<Self> {
        let recorded = run.run.cells[cell].latency().context("it measures no latency")?;
        let dither = run.run.dither.as_ref().context("its releases are not dithered")?;
        let interval_ns = recorded.interval_ns.context("its releases have no interval")?;
        let samples = &wanted::kept(run, cell)?.primary().outliers;
        ensure!(!samples.is_empty(), "it has no sample");
        let read_ns = samples.iter().map(|sample| sample.at).collect();
        let only = run.run.aim.filter(|aim| aim.release == 1);
        Ok(Self { cell, course, samples, read_ns, dither, interval_ns, instruction_ns, only })
    }

    /// The instant of the first release before it was dithered, ns since the start of the cell.
    fn first_ns(&self) -> i64 {
        let only = self.only.map(|aim| aim.at_ns);
        let offset = only.unwrap_or_else(|| self.dither.offset_ns(0, self.interval_ns));
        self.released(0) - signed(offset)
    }

    /// The release of a sample, ns since the start of the cell.
    fn released(&self, sample: usize) -> i64 {
        self.samples.get(sample).map_or(0, |sample| signed(sample.at) - sample.latency)
    }

    /// What wake-ups take in it.
    pub(super) fn costs(&self) -> Costs {
        Costs::of(self)
    }

    /// The releases to aim, with what wake-ups take under this load.
    pub(super) fn targets(&self, count: usize, costs: &Costs, functions: &Functions) -> Targets {
        let Self { instruction_ns, ref read_ns, .. } = *self;
        let axis = Axis { samples: &self.course.samples, read_ns, instruction_ns };
        let mut unknown = Vec::new();
        let mut places: Vec<(u64, Moved, &Sighting)> = Vec::new();
        for found in &self.course.long {
            let (begin, exact) = axis.time(found);
            if !exact {
                unknown.push(found.length());
            } else if let Some(place) = self.aim(found, begin) {
                places.push((place.left_ns + costs.at(self, found, place), place, found));
            }
        }
        // Of several sections that one release met the longest stands for all.
        places.sort_by_key(|(_, place, found)| (place.at_ns, Reverse(found.length())));
        places.dedup_by_key(|(_, place, _)| place.at_ns);
        places.sort_by_key(|(predicted_ns, place, _)| (Reverse(*predicted_ns), place.at_ns));
        places.truncate(count);
        let target = |(predicted_ns, place, found): (u64, Moved, &Sighting)| Target {
            aim: place.aim,
            section: axis.plain(found, functions),
            at_ns: place.at_ns,
            predicted_ns,
            begin: found.from,
        };
        let targets: Vec<Target> = places.into_iter().map(target).collect();
        let least = targets.last().map_or(0, |last| last.section.length_ns);
        let longer = unknown.iter().filter(|length| **length * instruction_ns > least);
        Targets { passed_over: longer.count() as u64, targets }
    }

    /// Where the release is that can be moved into a section which began then.
    fn aim(&self, found: &Sighting, begin: i64) -> Option<Moved> {
        let end = begin + signed(found.length() * self.instruction_ns);
        let at = (begin + signed(INTO * self.instruction_ns)).max(self.asleep(found));
        let next = self.released(found.samples);
        let first = self.first_ns();
        // What came after the next release was part of its own latency, so it stays where it is.
        let stays = at >= next && self.is_before_reading(found);
        let at = if stays { next } else { at };
        if at >= end || (at >= next && !stays) || at <= first {
            return None;
        }
        let left_ns = (end - at).unsigned_abs();
        let is_own = stays || next < end && self.came_within(found);
        let aim = self.moved(at, stays)?;
        Some(Moved { aim, at_ns: at.unsigned_abs(), left_ns, is_own })
    }

    /// When the thread that took the sample before a section is asleep again.
    fn asleep(&self, found: &Sighting) -> i64 {
        let last = found.samples.checked_sub(1).and_then(|sample| self.read_ns.get(sample));
        last.map_or(0, |read| signed(*read) + ASLEEP_NS)
    }

    /// The release that is moved to an instant, which is the next one; `stays` if it may be there
    /// already.
    fn moved(&self, at: i64, stays: bool) -> Option<Aim> {
        let first = self.first_ns();
        // The releases between, which the last sample missed, count too.
        let due = |index: u64| {
            first
                + signed(index * self.interval_ns + self.dither.offset_ns(index, self.interval_ns))
        };
        let about = (at - first).unsigned_abs() / self.interval_ns;
        let index = match self.only {
            Some(aim) => aim.release - 1,
            None => (about.saturating_sub(1)..=about + 1)
                .find(|index| due(*index) > at || stays && due(*index) == at)?,
        };
        Some(Aim {
            cell: u32::try_from(self.cell).ok()?,
            release: index + 1,
            at_ns: u64::try_from(at - first).ok()?,
        })
    }

    /// Whether a section began before the next sample had read the clock.
    fn is_before_reading(&self, found: &Sighting) -> bool {
        let next = self.course.samples.get(found.samples);
        next.is_some_and(|anchor| found.from < anchor.clock)
    }

    /// Whether the interrupt of the next sample's release came before the section ended.
    fn came_within(&self, found: &Sighting) -> bool {
        let sample = self.samples.get(found.samples).zip(self.course.samples.get(found.samples));
        sample.is_some_and(|(sample, anchor)| {
            let due = self.due(sample, *anchor);
            self.timer(due).is_some_and(|timer| timer < found.to)
        })
    }

    /// How many instructions had been executed when the release of a sample was due.
    fn due(&self, sample: &Outlier, anchor: Anchor) -> u64 {
        let latency = sample.latency.max(0).unsigned_abs();
        anchor.clock.saturating_sub(latency / self.instruction_ns.max(1))
    }

    /// Whether the interrupt of a release with so much left of a section is part of it already:
    /// if one of another timer came in the section as soon as one could, or while the thread would be
    /// woken, since one interrupt serves all timers that expire meanwhile (`hrtimer_interrupt`).
    fn is_shared(&self, found: &Sighting, left_ns: u64, waking_ns: u64) -> bool {
        let instructions = |ns: u64| ns / self.instruction_ns.max(1);
        let at = found.to.saturating_sub(instructions(left_ns));
        let served = found.on.max(at) + AT_ONCE + instructions(waking_ns);
        self.timer(at).is_some_and(|timer| timer < found.to && timer <= served)
    }

    /// When the first interrupt of the timer from then on was entered.
    fn timer(&self, at: u64) -> Option<u64> {
        next(&self.course.timers, at)
    }

    /// What code did that went on after it had looked at the end of a section: from its last such
    /// look until a thread could be switched to, ns. What lies between the two looks it would
    /// have left to others.
    fn way_out(&self, found: &Sighting) -> Option<u64> {
        let long = &self.course.long;
        let after = &long[long.partition_point(|section| section.from < found.to)..];
        let within = found.to.saturating_add(SAME_WORK_NS / self.instruction_ns.max(1));
        let mut soon = after.iter().take_while(|section| section.from < within);
        let last =
            soon.find(|section| section.began == found.ended && section.ended != found.ended)?;
        Some(last.length() * self.instruction_ns)
    }

    /// What came after a section until a sample had read the clock, ns.
    fn after(&self, found: &Sighting, sample: usize) -> u64 {
        let clock = self.course.samples.get(sample).map_or(0, |anchor| anchor.clock);
        clock.saturating_sub(found.to) * self.instruction_ns
    }
}

/// The first of these, which are in order, from then on.
fn next(times: &[u64], at: u64) -> Option<u64> {
    times.get(times.partition_point(|time| *time < at)).copied()
}

/// Where a release is moved to.
#[derive(Clone, Copy)]
struct Moved {
    aim: Aim,
    /// Since the start of the cell.
    at_ns: u64,
    /// What is left of the section then.
    left_ns: u64,
    /// Whether it met this section before it was moved, if it is.
    is_own: bool,
}

/// What wake-ups take in a cell, ns.
pub(super) struct Costs {
    /// If nothing holds them up: what a tenth of the samples are not above whose releases came
    /// outside all longer sections. The others waited for shorter ones, or did more besides.
    whole: u64,
    /// The part of it in which the thread is woken, up to where code after a section goes on.
    waking: u64,
    /// After a section in which the thread was woken: the median of such samples.
    after: u64,
    /// The same after sections that end there.
    after_end: HashMap<u64, u64>,
    /// From where code looks whether it is to give way until it does: what nine of ten sections are
    /// not above that begin there and in which it has not looked again. Some of them did less than
    /// code does that gives way.
    way_out: HashMap<u64, u64>,
}

impl Costs {
    fn of(cell: &Aimed<'_>) -> Self {
        let (mut whole, mut woken) = (Vec::new(), Vec::new());
        let mut after: HashMap<u64, Vec<u64>> = HashMap::new();
        for (number, (sample, anchor)) in cell.samples.iter().zip(&cell.course.samples).enumerate()
        {
            let at = cell.due(sample, *anchor);
            let long = &cell.course.long;
            let begun = long.partition_point(|section| section.from <= at);
            let held = begun.checked_sub(1).map(|place| &long[place]);
            match held.filter(|section| section.to > at) {
                None => {
                    whole.push(sample.latency.max(0).unsigned_abs());
                    let wake = next(&cell.course.wakes, at).filter(|wake| *wake < anchor.clock);
                    let since = |wake| (anchor.clock - wake) * cell.instruction_ns;
                    woken.extend(wake.map(since));
                }
                Some(section) if cell.timer(at).is_some_and(|timer| timer < section.to) => {
                    after.entry(section.ended).or_default().push(cell.after(section, number));
                }
                Some(_) => {}
            }
        }
        let whole = share(whole, 10).unwrap_or(0);
        let woken = share(woken, 10).unwrap_or(whole);
        let all = after.values().flatten().copied().collect();
        let of_end = |(end, found)| Some((end, share(found, 50)?));
        let mut ways: HashMap<u64, Vec<u64>> = HashMap::new();
        for pair in cell.course.long.windows(2) {
            if let [last, section] = pair
                && last.looked
                && (last.to, last.ended) == (section.from, section.began)
                && section.ended != section.began
            {
                let length = section.length() * cell.instruction_ns;
                ways.entry(section.began).or_default().push(length);
            }
        }
        let way_out = ways.into_iter().filter_map(|(look, found)| Some((look, share(found, 90)?)));
        let after_all = share(all, 50).unwrap_or(woken);
        Self {
            whole,
            waking: woken.saturating_sub(after_all),
            after: after_all,
            after_end: after.into_iter().filter_map(of_end).collect(),
            way_out: way_out.collect(),
        }
    }

    /// What comes after a section with a release there.
    fn at(&self, cell: &Aimed<'_>, found: &Sighting, place: Moved) -> u64 {
        if place.is_own {
            return cell.after(found, found.samples);
        }
        let usual = self.way_out.get(&found.ended).copied().filter(|_| found.looked);
        let way_out = usual.map_or(0, |usual| cell.way_out(found).unwrap_or(usual));
        if !cell.is_shared(found, place.left_ns, self.waking) {
            return self.whole + way_out;
        }
        let after = self.after_end.get(&found.ended).copied().filter(|_| usual.is_none());
        self.waking + after.unwrap_or(self.after + way_out)
    }
}

/// How long code is taken to be at the same work that looks in the same place again, ns.
const SAME_WORK_NS: u64 = 2_000_000;

/// Within how many instructions an interrupt that was pending is entered.
const AT_ONCE: u64 = 100;

/// What so many percent of a list are not above.
fn share(mut list: Vec<u64>, percent: usize) -> Option<u64> {
    list.sort_unstable();
    list.get(list.len() * percent / 100).copied()
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::functions::tests::{address, functions};
    use super::super::sections;
    use super::*;
    use punctual_observer::event::{Event, Header, Kind, PROTOCOL};

    pub(super) const NS: u64 = 4;
    pub(super) const INTERVAL: u64 = 1_000_000;
    /// What each wake-up takes.
    pub(super) const COST: u64 = 14_000;

    /// From the interrupt of the timer until the thread's handler wakes it.
    const HANDLER: u64 = 2_000;

    /// The course of a cell: its releases, and sections (when, how long) without interrupts of
    /// their own; after some the CPU is idle, and before.
    pub(super) struct Made {
        pub(super) watched: sections::Watched,
        pub(super) samples: Vec<Outlier>,
        dither: Dither,
        only: Option<Aim>,
    }

    pub(super) fn made(count: u64, held: &[(u64, u64)], idle: &[u64]) -> Made {
        made_of(&Parts { count, held, idle, ..Parts::default() })
    }

    #[derive(Default)]
    pub(super) struct Parts<'a> {
        pub(super) count: u64,
        pub(super) held: &'a [(u64, u64)],
        /// When code looked whether it is to give way, and how long it went on after that.
        pub(super) looks: &'a [(u64, u64)],
        /// Interrupts of other timers.
        pub(super) timers: &'a [u64],
        pub(super) idle: &'a [u64],
        /// The only release.
        pub(super) only: Option<Aim>,
    }

    pub(super) fn made_of(parts: &Parts<'_>) -> Made {
        let Parts { count, held, looks, timers, idle, only } = *parts;
        let functions = functions();
        let look = address(&functions, "read+10");
        let place = address(&functions, "read+0");
        let timer = address(&functions, "asm_sysvec_apic_timer_interrupt+0");
        let dither = Dither::of_seed(1);
        let mut events = vec![(0, Kind::Begin)];
        let mut samples = Vec::new();
        for index in 0..count {
            let dithered = index * INTERVAL + dither.offset_ns(index, INTERVAL);
            let release = 2_000_000 + only.map_or(dithered, |aim| aim.at_ns);
            // A release in a section waits for its end, but its interrupt is part of that.
            let end = held.iter().map(|(from, length)| (from, from + length));
            let inside = end.into_iter().find(|(from, to)| (**from..*to).contains(&release));
            let now = inside.map_or(release + COST, |(_, to)| to + COST / 2);
            let wake = inside.map_or(release, |(_, to)| to - HANDLER) + HANDLER;
            events.extend([(release, Kind::Interrupt), (wake, Kind::Wake)]);
            events.extend([(now, Kind::Clock), (now, Kind::Sample)]);
            samples.push(Outlier { at: now, latency: signed(now - release) });
        }
        for (from, length) in held {
            events.extend([(*from, Kind::Held), (from + length, Kind::Free)]);
        }
        events.extend(timers.iter().map(|at| (*at, Kind::Interrupt)));
        for (from, length) in looks {
            events.extend([(*from, Kind::Held), (from + length, Kind::Free)]);
        }
        idle.iter().for_each(|at| events.extend([(*at, Kind::Idle), (*at, Kind::Resume)]));
        events.sort_by_key(|(at, kind)| (*at, *kind as u8 == Kind::Sample as u8));
        let mut bytes = Header { protocol: PROTOCOL, api: 1 }.to_bytes().to_vec();
        for (at, kind) in events {
            let is_look = looks.iter().any(|(from, _)| *from == at);
            let kind = if is_look && kind == Kind::Free { Kind::Looked } else { kind };
            let place = match kind {
                Kind::Interrupt => timer,
                Kind::Held | Kind::Looked if is_look => look,
                _ => place,
            };
            bytes.extend(Event::new(at / NS, kind, place).to_bytes());
        }
        bytes.extend(Event::new(u64::MAX, Kind::End, 0).to_bytes());
        let watched = sections::read(&bytes[..], &functions, 3, NS).unwrap();
        Made { watched, samples, dither, only }
    }

    impl Made {
        fn targets(&self, count: usize) -> Targets {
            self.with(|aimed| aimed.targets(count, &aimed.costs(), &functions()))
        }

        pub(super) fn with<T>(&self, of: impl FnOnce(&Aimed<'_>) -> T) -> T {
            let read_ns = self.samples.iter().map(|sample| sample.at).collect();
            let course = &self.watched.cells[0];
            let Self { samples, dither, .. } = self;
            let (cell, interval_ns, instruction_ns, only) = (0, INTERVAL, NS, self.only);
            let aimed =
                Aimed { cell, course, samples, read_ns, dither, interval_ns, instruction_ns, only };
            of(&aimed)
        }

        pub(super) fn release(&self, number: u64) -> u64 {
            2_000_000 + (number - 1) * INTERVAL + self.dither.offset_ns(number - 1, INTERVAL)
        }
    }

    #[test]
    fn the_longest_sections_are_aimed_at_and_predicted() {
        let plain = made(20, &[], &[]);
        // Long before the next release, so that the thread is asleep again.
        let (eighth, twelfth) = (plain.release(8) - 240_000, plain.release(12) - 200_000);
        let made = made(20, &[(eighth, 100_000), (twelfth, 150_000)], &[]);
        let Targets { targets, passed_over } = made.targets(2);
        assert_eq!(passed_over, 0);
        let into = INTO * NS;
        for (target, (begin, length, number)) in
            targets.iter().zip([(twelfth, 150_000, 12), (eighth, 100_000, 8)])
        {
            assert_eq!(target.section.length_ns, length);
            assert_eq!((target.aim.cell, target.aim.release), (0, number));
            // Instructions are told apart, not nanoseconds.
            assert!(target.at_ns.abs_diff(begin + into) < 2 * NS, "{target:?}");
            assert_eq!(target.aim.at_ns, target.at_ns - 2_000_000);
            assert!(target.predicted_ns.abs_diff(length - into + COST) < 3 * NS, "{target:?}");
        }
        assert_eq!(made.targets(1).targets.len(), 1);
    }

    #[test]
    fn a_section_that_a_release_met_costs_no_second_interrupt() {
        let plain = made(20, &[], &[]);
        let begin = plain.release(9) - 50_000;
        let made = made(20, &[(begin, 200_000)], &[]);
        let target = &made.targets(1).targets[0];
        assert_eq!(target.aim.release, 9);
        let expected = 200_000 - INTO * NS + COST / 2;
        assert!(target.predicted_ns.abs_diff(expected) < 3 * NS, "{target:?} {expected}");
    }

    #[test]
    fn an_only_release_goes_to_any_section_before_it() {
        let aim = Aim { cell: 0, release: 1, at_ns: 19_000_000 };
        let begin = 2_000_000 + 7_300_000;
        let held = [(begin, 100_000)];
        let only = Some(aim);
        let made = made_of(&Parts { count: 1, held: &held, only, ..Parts::default() });
        let target = &made.targets(1).targets[0];
        assert_eq!((target.aim.release, target.section.length_ns), (1, 100_000));
        assert!(target.aim.at_ns.abs_diff(begin - 2_000_000 + INTO * NS) < 2 * NS, "{target:?}");
    }

    #[test]
    fn another_timers_interrupt_then_wakes_the_thread_too() {
        let plain = made(20, &[], &[]);
        // One section tells what comes after those in which the thread was woken.
        let (known, begin) = (plain.release(5) - 20_000, plain.release(9) - 250_000);
        let held = [(known, 40_000), (begin, 200_000)];
        // The thread is woken for 5 us, in which the interrupt serves a later timer too.
        for (after, cost) in [(0, COST - HANDLER), (4_000, COST - HANDLER), (6_000, COST)] {
            let timers = [begin + INTO * NS + after];
            let parts = Parts { count: 20, held: &held, timers: &timers, ..Parts::default() };
            let made = made_of(&parts);
            let target = &made.targets(1).targets[0];
            let expected = 200_000 - INTO * NS + cost;
            assert!(target.predicted_ns.abs_diff(expected) < 3 * NS, "{target:?} {expected}");
        }
    }

    #[test]
    fn what_code_does_after_it_looked_comes_on_top() {
        let plain = made(20, &[], &[]);
        let begin = plain.release(9) - 250_000;
        let look = begin + 100_000;
        let (held, looks) = ([(begin, 100_000)], [(look, 30_000)]);
        let made = made_of(&Parts { count: 20, held: &held, looks: &looks, ..Parts::default() });
        let target = &made.targets(1).targets[0];
        assert_eq!(target.section.length_ns, 100_000);
        let expected = 100_000 - INTO * NS + COST + 30_000;
        assert!(target.predicted_ns.abs_diff(expected) < 3 * NS, "{target:?} {expected}");
    }

    #[test]
    fn what_the_same_code_did_after_its_last_look_is_preferred_to_what_is_usual() {
        let plain = made(20, &[], &[]);
        let begin = plain.release(9) - 250_000;
        let look = begin + 100_000;
        let mut held = vec![(begin, 100_000)];
        let mut looks = vec![(look, 5_000), (look + 5_000, 30_000)];
        for number in [12, 14, 16] {
            let begin = plain.release(number) - 250_000;
            held.push((begin, 50_000));
            looks.push((begin + 50_000, 10_000));
        }
        let made = made_of(&Parts { count: 20, held: &held, looks: &looks, ..Parts::default() });
        let target = &made.targets(1).targets[0];
        let expected = 100_000 - INTO * NS + COST + 30_000;
        assert!(target.predicted_ns.abs_diff(expected) < 3 * NS, "{target:?} {expected}");
    }

    #[test]
    fn a_release_that_met_a_section_later_on_its_way_stays_where_it_is() {
        let plain = made(20, &[], &[]);
        // It begins while the thread of the ninth release is on its way, and is part of that.
        let release = plain.release(9);
        let begin = release + COST / 2;
        let held = [(begin, 200_000), (begin + 200_000, 5_000)];
        let mut made = made_of(&Parts { count: 20, held: &held, ..Parts::default() });
        let read = begin + 205_000 + COST / 2;
        let anchor = &mut made.watched.cells[0].samples[8];
        anchor.clock = read / NS;
        made.samples[8] = Outlier { at: read, latency: signed(read - release) };
        let course = &mut made.watched.cells[0];
        for section in course.long.iter_mut().filter(|section| section.from >= begin / NS) {
            section.samples = 8;
        }
        let targets = made.targets(2).targets;
        let stays = &targets[0];
        assert_eq!((stays.aim.release, stays.at_ns), (9, release), "{targets:?}");
        assert!(stays.predicted_ns.abs_diff(read - release) < 2 * NS, "{stays:?}");
        assert_eq!(stays.section.length_ns, 200_000);
        // The shorter one is part of the same release.
        assert!(targets[1..].iter().all(|other| other.at_ns != release), "{targets:?}");
    }

    #[test]
    fn no_release_is_moved_past_another_or_to_where_the_thread_is_awake() {
        let plain = made(20, &[], &[]);
        let none = |begin: u64, length: u64| {
            let targets = made(20, &[(begin, length)], &[]).targets(3).targets;
            assert!(targets.is_empty(), "{begin}: {targets:?}");
        };
        // The next release comes into it at once: it stays where it is.
        let begin = plain.release(9) - 1_000;
        let targets = made(20, &[(begin, 200_000)], &[]).targets(3).targets;
        let places: Vec<_> = targets.iter().map(|target| target.at_ns).collect();
        assert_eq!(places, [plain.release(9)], "{targets:?}");
        // It ends before the thread is asleep again.
        none(plain.release(9) + COST + 100, 5_000);
    }

    #[test]
    fn sections_of_unknown_time_are_passed_over() {
        let plain = made(20, &[], &[]);
        let begin = plain.release(9) - 200_000;
        let idle = [begin - 10_000, begin + 110_000];
        let Targets { targets, passed_over } = made(20, &[(begin, 100_000)], &idle).targets(3);
        assert_eq!((targets.len(), passed_over), (0, 1));
    }
}
