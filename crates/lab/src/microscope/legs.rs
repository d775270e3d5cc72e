//! The legs of every sample of a run: its guest is booted again, and of what the kernel executes
//! only the functions are noted that are passed between a release and the start of the work.

use std::collections::VecDeque;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, anyhow, ensure};
use punctual_core::legs::{CellLegs, Legs, SampleLegs};
use punctual_core::run::LoadedRun;
use punctual_observer::event::{Event, Kind};

use super::course::{BoardTime, Course, is_milestone};
use super::daif::Switches;
use super::functions::Functions;
use super::stream::{Item, Stream};
use super::wanted::{self, CellSamples};
use super::{Watch, joined, marks_of};
use crate::experiment::{Experiment, Follow, Place, Ready};
use crate::qemu::End;

/// Events that are kept between two samples, at most: 64 MiB. A second of the busiest load has some
/// ten thousand.
const EVENTS_MAX: usize = 1 << 22;

/// What is watched of the guests of an experiment to find the legs of their samples.
pub struct LegWatches {
    /// By kernel.
    all: Vec<Watch>,
}

impl LegWatches {
    /// Of all kernels of an experiment.
    ///
    /// # Errors
    /// Why a kernel cannot be watched, or its guests not be repeated.
    pub fn of(experiment: &Experiment) -> Result<Self> {
        let doubts = experiment.board.not_exact();
        ensure!(doubts.is_empty(), "what was measured may not repeat: {}", doubts.join("; "));
        let watch = |kernel| {
            Watch::of(experiment, kernel, |_, functions| {
                let clocks = functions.switches().into_iter().flat_map(Switches::clocks);
                let entries = functions.entries(is_milestone).into_iter();
                let milestones = joined(entries.chain(clocks));
                Ok(vec![format!("milestones={milestones}"), "ring=16".to_owned()])
            })
        };
        let kernels = 0..experiment.kernels.len();
        Ok(Self { all: kernels.map(watch).collect::<Result<_>>()? })
    }
}

/// A guest that was booted again for its legs.
#[derive(Debug)]
pub struct RepeatLegs {
    /// How it ended.
    pub end: End,
    /// The legs, if it came out as the run did.
    pub found: Result<Legs>,
}

/// Boots the guest of a run again, into a run directory in `out`, and finds the legs of all of its
/// samples. `None` if [`Follow::pause`] ended it.
///
/// # Errors
/// Not all samples of the run are known, or it cannot be booted.
pub fn legs(
    experiment: &Experiment,
    host: &Ready,
    place: &Place,
    out: &Path,
    watches: &LegWatches,
    run: &LoadedRun,
    follow: &mut dyn Follow,
) -> Result<Option<RepeatLegs>> {
    let watch = watches.all.get(place.kernel).context("its kernel is not watched")?;
    let instruction_ns = watch.instruction_ns;
    let marks = marks_of(&run.run.board)?;
    let cells = wanted::all(run)?;
    let read = |events, functions: &Functions| read(events, functions, instruction_ns, &cells);
    let booted = watch.boot(marks, experiment, host, place, out, follow, read)?;
    let Some((end, found)) = booted else {
        return Ok(None);
    };
    let found = found.map(|found| Legs {
        run_id: run.run.run_id.clone(),
        instruction_ns,
        cells: run
            .run
            .cells
            .iter()
            .zip(found)
            .map(|(cell, samples)| CellLegs::of(cell.key.clone(), samples))
            .collect(),
    });
    Ok(Some(RepeatLegs { end, found }))
}

/// What is going on while events are read.
struct LegReader<'a> {
    functions: &'a Functions,
    instruction_ns: u64,
    cells: &'a [CellSamples],
    time: BoardTime,
    /// How many recorders have begun.
    begun: u64,
    /// Whether the last of them records: after it comes the warm-up of the next.
    is_recording: bool,
    /// What has happened, as far back as the next sample can reach.
    events: VecDeque<Event>,
    /// By cell.
    found: Vec<Vec<SampleLegs>>,
}

/// Reads all events, while the guest waits: the legs of each sample of these cells.
///
/// # Errors
/// They are not the observer's, end too early, or are not those of these samples.
fn read(
    from: impl Read,
    functions: &Functions,
    instruction_ns: u64,
    cells: &[CellSamples],
) -> Result<Vec<Vec<SampleLegs>>> {
    let mut stream = Stream::open(from)?;
    let mut reader = LegReader {
        functions,
        instruction_ns,
        cells,
        time: BoardTime::default(),
        begun: 0,
        is_recording: false,
        events: VecDeque::new(),
        found: cells.iter().map(|_| Vec::new()).collect(),
    };
    let mut failed = None;
    loop {
        match stream.next()? {
            // QEMU waits until everything is read.
            Item::Event(event) if failed.is_none() => failed = reader.event(event).err(),
            Item::Event(_) | Item::Dump(_) | Item::Spilled(_) => {}
            Item::End(_) => break,
        }
    }
    if let Some(error) = failed {
        return Err(error);
    }
    for (found, cell) in reader.found.iter().zip(cells) {
        let (found, all) = (found.len(), cell.latencies_ns.len());
        ensure!(found == all, "{found} samples were watched, and {all} recorded");
    }
    Ok(reader.found)
}

impl LegReader<'_> {
    fn event(&mut self, event: Event) -> Result<()> {
        let event = self.time.correct(event, self.functions);
        match event.kind() {
            Some(Kind::Begin) => {
                self.begun += 1;
                self.is_recording = true;
                self.events.clear();
            }
            Some(Kind::Finish) => self.is_recording = false,
            Some(Kind::Sample) if self.is_recording => return self.sample(),
            _ => {}
        }
        if !self.is_recording {
            return Ok(());
        }
        ensure!(self.events.len() < EVENTS_MAX, "too much happened between two samples");
        self.events.push_back(event);
        Ok(())
    }

    fn sample(&mut self) -> Result<()> {
        let cell = self.cells.iter().position(|cell| cell.begin == self.begun);
        let Some(number) = cell else { return Ok(()) };
        let (cell, found) = (&self.cells[number], &mut self.found[number]);
        let ordinal = found.len() + 1;
        let latency_ns = *cell
            .latencies_ns
            .get(found.len())
            .with_context(|| format!("sample {ordinal} was watched and not recorded"))?;
        let events = self.events.make_contiguous();
        let course = Course::of(events, latency_ns, self.instruction_ns, self.functions)
            .map_err(|error| anyhow!("sample {ordinal}: {error:#}"))?;
        let ends_ns = course.legs().iter().map(|leg| leg.end_ns).collect();
        found.push(SampleLegs { idle: course.release.is_idle, ends_ns });
        let read = course.time.end;
        let longest_ns = cell.latencies_ns.iter().max().copied().unwrap_or(0);
        self.forget_before(read.saturating_sub(2 * longest_ns / self.instruction_ns.max(1)));
        Ok(())
    }

    /// Of what was before, the last event stays: it tells that all since then is known.
    fn forget_before(&mut self, at: u64) {
        let old = self.events.partition_point(|event| event.at < at);
        self.events.drain(..old.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use punctual_observer::event::{Header, PROTOCOL};

    use super::super::functions::tests::{address, functions};
    use super::super::sample::explain;
    use super::super::sample::tests::{BUSY, events, recorded};
    use super::*;

    const NS: u64 = 4;

    /// What the observer writes of a course: of blocks only milestones, and the first of user space
    /// after such.
    fn noted(course: &[Event], functions: &Functions) -> Vec<Event> {
        let entries = functions.entries(is_milestone);
        let mut has_passed = false;
        let is_noted = |event: &&Event| match event.kind() {
            Some(Kind::Block) if entries.contains(&event.address()) => {
                has_passed = true;
                true
            }
            Some(Kind::Block) => event.address() >> 63 == 0 && std::mem::take(&mut has_passed),
            Some(Kind::InterruptsOff | Kind::InterruptsOn) => false,
            _ => true,
        };
        course.iter().filter(is_noted).copied().collect()
    }

    fn bytes(events: &[Event]) -> Vec<u8> {
        let header = Header { protocol: PROTOCOL, api: 1 }.to_bytes();
        let end = Event::new(u64::MAX, Kind::End, 0);
        let all = events.iter().chain([&end]).map(|event| event.to_bytes());
        std::iter::once(header).chain(all).flatten().collect()
    }

    fn later(course: &[Event], by: u64) -> impl Iterator<Item = Event> + '_ {
        course.iter().map(move |event| Event { at: event.at + by, word: event.word })
    }

    /// A cell whose samples take this course, one after the other; the recorder of another begins
    /// before.
    fn cell(course: &[Event], times: u64) -> Vec<Event> {
        let mut all = vec![Event::new(0, Kind::Begin, 0), Event::new(1, Kind::Begin, 0)];
        for number in 0..times {
            let by = number * 10_000;
            all.extend(later(course, by));
            let at = all.last().map_or(0, |event| event.at);
            all.push(Event::new(at + 5, Kind::Sample, 0));
        }
        all.push(Event::new(times * 10_000, Kind::Finish, 0));
        all
    }

    fn watched(events: &[Event], latencies_ns: &[u64]) -> Result<Vec<Vec<SampleLegs>>> {
        let cells = [CellSamples { begin: 2, latencies_ns: latencies_ns.to_vec() }];
        read(&bytes(events)[..], &functions(), NS, &cells)
    }

    #[test]
    fn legs_are_those_of_an_explanation() {
        let functions = functions();
        let mut faulty = BUSY.to_vec();
        // The interrupted code faults, which takes no time.
        faulty.insert(14, (1_805, "irq asm_exc_page_fault+0"));
        let mut idle = vec![(900, "read+0"), (1_300, "idle"), (1_300, "resume")];
        idle.extend_from_slice(&BUSY[7..]);
        for (course, latency_ns) in [(&BUSY[..], 4_000), (&faulty, 4_000), (&idle, 10_000)] {
            let course = events(&functions, course);
            let why = explain(&course, recorded(latency_ns), NS, &functions).unwrap();
            let ends: Vec<u64> = why.legs.iter().map(|leg| leg.end_ns).collect();
            assert_eq!(ends.len(), 6);
            let noted = noted(&cell(&course, 3), &functions);
            let found = watched(&noted, &[latency_ns; 3]).unwrap();
            assert_eq!(found, [vec![SampleLegs { idle: why.idle, ends_ns: ends }; 3]]);
        }
    }

    #[test]
    fn a_thread_that_was_awake_has_one_leg() {
        let functions = functions();
        let noted = noted(&cell(&events(&functions, &BUSY), 2), &functions);
        let found = watched(&noted, &[4_000, 100]).unwrap();
        assert_eq!(found[0][1], SampleLegs { idle: false, ends_ns: vec![100] });
    }

    #[test]
    fn only_what_the_next_sample_can_reach_is_kept() {
        let functions = functions();
        let course = noted(&events(&functions, &BUSY), &functions);
        let cells = [CellSamples { begin: 1, latencies_ns: vec![4_000; 100] }];
        let mut reader = LegReader {
            functions: &functions,
            instruction_ns: NS,
            cells: &cells,
            time: BoardTime::default(),
            begun: 0,
            is_recording: false,
            events: VecDeque::new(),
            found: vec![Vec::new()],
        };
        let mut all = cell(&course, 100);
        all.remove(0);
        for event in all {
            reader.event(event).unwrap();
            assert!(reader.events.len() < 3 * course.len(), "{}", reader.events.len());
        }
        assert_eq!(reader.found[0].len(), 100);
    }

    #[test]
    fn what_does_not_fit_the_record_is_not_made_up() {
        let functions = functions();
        let noted = noted(&cell(&events(&functions, &BUSY), 3), &functions);
        let error = |events: &[Event], latencies: &[u64]| {
            watched(events, latencies).unwrap_err().to_string()
        };
        assert_eq!(error(&noted, &[4_000; 2]), "sample 3 was watched and not recorded");
        assert_eq!(error(&noted, &[4_000; 4]), "3 samples were watched, and 4 recorded");
        let early = error(&noted, &[40_000; 3]);
        assert_eq!(early, "sample 1: what is known begins after the release");
        let timeless: Vec<Event> =
            noted.iter().filter(|event| event.kind() != Some(Kind::Clock)).copied().collect();
        assert!(error(&timeless, &[4_000; 3]).contains("clock was not read"));
        // Samples of the warm-up before the next cell belong to none.
        let mut more = noted;
        let user = address(&functions, "user");
        more.push(Event::new(40_000, Kind::Clock, user));
        more.push(Event::new(40_001, Kind::Sample, user));
        assert_eq!(watched(&more, &[4_000; 3]).unwrap()[0].len(), 3);
    }
}
