//! `noise`: every time that something else had the CPU, and what it was.

mod events;
mod measured;
pub(super) mod stretches;
pub(super) mod trace;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use punctual_core::schema::{Condition, Role, Tells, Unit};
use punctual_core::units::{BareNumber, SECOND_NS, human_ns};
use punctual_sys::affinity;
use punctual_sys::clock::monotonic_ns;
use punctual_sys::timer::{AbsoluteSleep, Wait, Waited};

use self::events::{HWLAT, OSNOISE};
use self::measured::{Gap, relay};
use self::stretches::{Actor, Actors, NOBODYS, Origin, Stretch, Taken};
use self::trace::{Mapped, Traced};
use super::counts::Counts;
use super::followed::Followed;
use super::handover::Handover;
use super::margin::{COUNTERS, MARGIN, Margin, Spinning};
use super::tracer::{self, LOOK_NS, Tracer};
use crate::recorder::Recorder;
use crate::registry::probe::{
    By, Closed, CounterEntry, Drained, Pace, Primary, ProbeEntry, ProbeThread, SeriesEntry,
    Session, Stage, State, Stop, Window, thread_name,
};
use crate::registry::{Choice, Default, Kind, Param, Values};

pub(super) const ENTRY: ProbeEntry = ProbeEntry {
    name: "noise",
    summary: "every time that something else had the CPU, and what it was (as oslat, osnoise)",
    help: "A thread on each CPU spins and reads the clock; two readings further apart than \
threshold=TIME are a gap: something else had the CPU. Recorded is the length of each gap. If the kernel \
can be traced, each is put down to what had the CPU in it: interrupts, softirqs, NMIs, threads, by name; \
what is left is untraced: hardware, a hypervisor, and the kernel's code before and after its own \
events. The trace is read in binary form from an instance of its own, and tracing takes time itself: \
trace=off measures without it. tracer=osnoise and tracer=hwlat let threads of the kernel measure \
instead, if it has these tracers: osnoise much as this probe does but without the way to user space, \
hwlat with interrupts off, so that only hardware, firmware, NMIs and a hypervisor are left. By default the threads sleep for a tenth of the time (margin=10%), \
because spinning real-time threads can hang a board; nothing is measured then. Follows oslat of rt-tests \
and the osnoise tracer.",
    params: &[
        Param {
            name: "threshold",
            kind: Kind::Time { bare: BareNumber::Microseconds, low: 100, high: SECOND_NS },
            default: Default::Value("1us"),
            help: "gaps longer than this are recorded",
        },
        Param {
            name: "trace",
            kind: Kind::Choice(&[
                Choice::of("auto", "if the kernel can be traced"),
                Choice::of("off", "only measure the gaps"),
            ]),
            default: Default::Value("auto"),
            help: "whether to put gaps down to what had the CPU",
        },
        Param {
            name: "tracer",
            kind: Kind::Choice(&[
                tracer::EVENTS,
                Choice::of(OSNOISE.0, "threads of the kernel's osnoise tracer do"),
                Choice::of(HWLAT.0, "those of its hwlat tracer do, with interrupts off"),
            ]),
            default: Default::Value(tracer::EVENTS.value),
            help: "who measures",
        },
        MARGIN,
    ],
    overrides: &[("threads", "per-cpu")],
    without: &[],
    check,
    needs: &[],
    device: None,
    pace: Pace::BackToBack,
    dithers: |_| false,
    primary: Primary {
        name: "gap",
        meaning: "time between two readings of the clock by a thread that spins",
        nouns: ("gap", "gaps"),
        by: By::Thread,
    },
    series: &[
        part("interrupt", "what interrupts and NMIs had of a gap"),
        part("softirq", "what softirqs had of a gap"),
        part("thread", "what other threads had of a gap"),
        part(
            "untraced",
            "what is left of a gap: hardware, a hypervisor, the kernel around its events",
        ),
    ],
    counters: &[
        CounterEntry {
            name: "spun",
            meaning: "microseconds in which threads read the clock or something else had the CPU",
            tells: Tells::Nothing,
        },
        CounterEntry {
            name: "lost",
            meaning: "events or gaps for which there was no room",
            tells: Tells::Loss,
        },
        COUNTERS[0],
        COUNTERS[1],
    ],
    state: State::There(open),
};

const fn part(name: &'static str, meaning: &'static str) -> SeriesEntry {
    SeriesEntry { name, meaning, role: Role::Aside, unit: Unit::Ns, by: By::Session }
}

/// Gaps of one thread until the next second.
const GAPS: u64 = 1 << 16;

/// How many sources a note names.
const NAMED: usize = 5;

fn check(values: &Values) -> Result<(), String> {
    let tracer = values.text("tracer");
    if tracer == tracer::EVENTS.value {
        return Ok(());
    }
    if values.number("margin") == 0 {
        return Err(values.wrong("margin", "a tracer needs some"));
    }
    if values.text("trace") == "off" {
        return Err(values.wrong("trace", &format!("tracer={tracer} is tracing")));
    }
    match values.number("threshold") % 1_000 {
        0 => Ok(()),
        _ => Err(values.wrong("threshold", "a tracer's is in whole microseconds")),
    }
}

fn open(values: &Values, stage: &mut Stage<'_>) -> Result<Box<dyn Session>, String> {
    let mut actors = Actors::default();
    let (mut traced, mut tracer, mut refused) = (None, None, None);
    match (values.text("tracer"), values.text("trace")) {
        (name, _) if name != tracer::EVENTS.value => {
            let (started, trace) = Traced::measured(stage, values, name, &mut actors)?;
            (tracer, traced) = (Some(started), Some(trace));
        }
        (_, "auto") => match Traced::open(stage, &mut actors, true) {
            Ok(trace) => traced = Some(trace),
            Err(error) => refused = Some(error),
        },
        _ => {}
    }
    Ok(Box::new(Noise {
        threshold_ns: values.number("threshold"),
        margin: Margin::of(values),
        break_ns: stage.break_ns,
        watched: Arc::new(Mutex::new(Watched { actors, traced, recorded: Vec::new() })),
        tracer,
        refused,
        begins: 0,
        map: Mapped::default(),
        spinners: Vec::new(),
    }))
}

struct Noise {
    threshold_ns: u64,
    margin: Margin,
    break_ns: i64,
    /// Only with a tracer that measures do threads of the cell look into it.
    watched: Arc<Mutex<Watched>>,
    tracer: Option<Tracer>,
    /// Why nothing is traced.
    refused: Option<String>,
    /// When the measurement begins, ns of CLOCK_MONOTONIC.
    begins: u64,
    map: Mapped,
    spinners: Vec<Spinner>,
}

struct Watched {
    actors: Actors,
    traced: Option<Traced>,
    /// Gaps that a tracer measured and threads have recorded, with their numbers.
    recorded: Vec<(u32, Gap)>,
}

/// What the session knows of a thread that spins.
struct Spinner {
    own: Actor,
    gaps: Arc<Handover<3>>,
    spun_us: Arc<Counts<1>>,
    spinning: Arc<Spinning>,
}

impl Session for Noise {
    fn thread(&mut self, number: u32) -> Result<Box<dyn ProbeThread>, String> {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let spun_us: Arc<Counts<1>> = Arc::default();
        let spinner = Spinner {
            own: watched.actors.number(&thread_name(number), Origin::Thread),
            gaps: Handover::new(GAPS),
            spun_us: Arc::clone(&spun_us),
            spinning: Arc::default(),
        };
        let (gaps, spinning) = (Arc::clone(&spinner.gaps), Arc::clone(&spinner.spinning));
        self.spinners.push(spinner);
        if let Some(tracer) = &self.tracer {
            let shared = Arc::clone(&self.watched);
            return Ok(Box::new(relay((number, tracer.clone()), shared, spun_us, self.break_ns)));
        }
        Ok(Box::new(Polling {
            number,
            threshold_ns: self.threshold_ns,
            margin: self.margin,
            break_ns: self.break_ns,
            gaps,
            spun_us,
            spinning,
            followed: watched.traced.as_ref().map(|traced| Arc::clone(&traced.followed)),
            recording_ns: u64::MAX,
        }))
    }

    fn below(&self, _: u32) -> u32 {
        // Those of the kernel come first.
        self.tracer.is_some().into()
    }

    fn is_of_process(&self) -> bool {
        self.tracer.is_none()
    }

    fn longest_pause_ns(&self) -> u64 {
        if self.tracer.is_some() { 2 * LOOK_NS } else { 0 }
    }

    fn drain(&mut self, out: &mut Drained<'_>) -> io::Result<()> {
        let until = monotonic_ns().min(out.until_ns);
        let is_warm_up = out.until_ns != u64::MAX;
        if is_warm_up {
            self.begins = out.until_ns;
        }
        let Self { watched, spinners, map, begins, .. } = self;
        let mut watched = watched.lock().unwrap_or_else(PoisonError::into_inner);
        let Watched { actors, traced, recorded } = &mut *watched;
        if let Some(traced) = traced {
            traced.follow(actors, &|number| spinners[number as usize].own)?;
        }
        let unknown = traced.as_ref().and_then(|traced| traced.followed.unknown()).is_some();
        let mut waiting = Vec::new();
        for (number, gap) in recorded.drain(..) {
            // Those of the warm-up may come after its end.
            if gap.to >= until {
                waiting.push((number, gap));
            } else if is_warm_up || gap.from >= *begins {
                map.add(&gap, actors, out.intervals, out.tracks.get_mut(number as usize));
            }
        }
        *recorded = waiting;
        // Of a gap that has to wait, what was before it is to be known then, too.
        let mut forget = until;
        for (spinner, tracks) in spinners.iter().zip(out.tracks.iter_mut()) {
            spinner.gaps.take(|[from, to, cpu]| {
                if to >= until {
                    forget = forget.min(from);
                    return false;
                }
                let cpu = u32::try_from(cpu).unwrap_or(u32::MAX);
                let mut pieces = Vec::new();
                let told = traced.as_mut().filter(|_| !unknown);
                match told.and_then(|traced| traced.cpus.get_mut(&cpu)) {
                    Some(past) => past.cut((from, to), spinner.own, &mut |one| pieces.push(one)),
                    None => pieces.push(Stretch { from, to, ..NOBODYS }),
                }
                let gap = Gap { cpu, from, to, pieces };
                let is_told = traced.is_some() && !unknown;
                map.add(&gap, actors, out.intervals, is_told.then_some(tracks));
                true
            });
        }
        if let Some(traced) = traced {
            if self.tracer.is_none() {
                traced.cpus.values_mut().for_each(|cpu| cpu.forget(forget));
            }
            if is_warm_up {
                traced.ring.begin(out.until_ns);
            }
        }
        if is_warm_up {
            actors.begin();
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Closed {
        let spun = Counts::totals(self.spinners.iter().map(|spinner| &*spinner.spun_us))[0];
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let events = watched.traced.as_ref().map_or(0, |traced| traced.ring.lost());
        let lost = events + self.spinners.iter().map(|spinner| spinner.gaps.lost()).sum::<u64>();
        let [overslept, unspun] = Spinning::totals(self.spinners.iter().map(|one| &one.spinning));
        let mut notes = vec![self.sources(&watched, spun)];
        notes.extend(self.tracer.as_ref().map(Tracer::note));
        Closed { counts: vec![spun, lost, overslept, unspun], notes }
    }
}

impl Noise {
    /// What had the CPUs most, or why that is not known.
    fn sources(&self, watched: &Watched, spun_us: u64) -> Condition {
        let unknown = watched.traced.as_ref().and_then(|traced| traced.followed.unknown());
        let text = match (&watched.traced, self.refused.as_ref().or(unknown.as_ref())) {
            (_, Some(why)) => format!("what had the CPU is not known: {why}"),
            (None, None) => "what had the CPU was not traced, as requested".to_owned(),
            (Some(_), None) => {
                let most = watched.actors.most(NAMED);
                let one = |(name, share): &(&str, Taken)| {
                    format!(
                        "{name} {} times, {} in all, {} at most",
                        share.times,
                        human_ns(share.total_ns.cast_signed()),
                        human_ns(share.longest_ns.cast_signed())
                    )
                };
                let most: Vec<_> = most.iter().map(one).collect();
                // The hwlat tracer does not tell for how long it has looked.
                let spun = match spun_us {
                    0 if self.tracer.is_some() => "a time that it does not tell".to_owned(),
                    us => human_ns(us.saturating_mul(1_000).cast_signed()),
                };
                match most.is_empty() {
                    true => format!("nothing that is traced had a CPU in a gap, in {spun}"),
                    false => format!("in {spun} of spinning, {}", most.join("; ")),
                }
            }
        };
        Condition { id: "sources".to_owned(), text }
    }
}

struct Polling {
    number: u32,
    threshold_ns: u64,
    margin: Margin,
    break_ns: i64,
    /// Start, end and CPU of each gap.
    gaps: Arc<Handover<3>>,
    spun_us: Arc<Counts<1>>,
    spinning: Arc<Spinning>,
    followed: Option<Arc<Followed>>,
    /// The least time that it has taken to record a gap, ns.
    recording_ns: u64,
}

/// Readings of the clock between two looks at the stop flag: a few microseconds.
const READINGS_PER_LOOK: u32 = 64;

impl ProbeThread for Polling {
    fn prepare(&mut self) -> io::Result<()> {
        self.followed.as_ref().map_or(Ok(()), |followed| followed.add(self.number))
    }

    fn run(&mut self, window: &Window, tracks: &mut [Recorder], stop: &Stop) -> io::Result<()> {
        let recorder = &mut tracks[0];
        while AbsoluteSleep.until(window.first)? == Waited::Interrupted && !stop.is_set() {}
        self.spun_us.begin();
        self.spinning.begin();
        self.gaps.begin();
        let mut left = window.samples;
        let first = monotonic_ns();
        let (mut begin, mut last) = (first, first);
        while begin < window.end && left > 0 && !stop.is_set() {
            let round_end = (begin + self.margin.spin_ns()).min(window.end);
            last = begin;
            while last < round_end && left > 0 && !stop.is_set() {
                for _ in 0..READINGS_PER_LOOK {
                    let now = monotonic_ns();
                    last = if now.wrapping_sub(last) > self.threshold_ns {
                        self.found(recorder, (last, now), &mut left, stop)
                    } else {
                        now
                    };
                }
            }
            self.spun_us.add(0, (last - begin) / 1_000);
            self.spinning.spun(self.margin, last - begin);
            begin = match !self.margin.is_none() && last < window.end && left > 0 {
                true => self.margin.sleep(&self.spinning),
                false => monotonic_ns(),
            };
        }
        self.spinning.end(self.margin, begin.max(last) - first);
        Ok(())
    }

    fn notes(&self) -> Vec<Condition> {
        self.spinning.notes()
    }
}

impl Polling {
    /// Records a gap, and those that follow while it does; returns when it looked last.
    #[cold]
    fn found(
        &mut self,
        recorder: &mut Recorder,
        (mut from, mut to): (u64, u64),
        left: &mut u64,
        stop: &Stop,
    ) -> u64 {
        loop {
            let gap = to.wrapping_sub(from).cast_signed();
            if *left > 0 {
                *left -= 1;
                recorder.record(to, gap, 0);
                self.gaps.put([from, to, affinity::current_cpu().into()]);
            }
            if gap > self.break_ns {
                stop.set_broken(from, gap);
            }
            let now = monotonic_ns();
            let took = now.wrapping_sub(to);
            self.recording_ns = self.recording_ns.min(took);
            if took - self.recording_ns <= self.threshold_ns || stop.is_set() {
                return now;
            }
            (from, to) = (to, now);
        }
    }
}
