//! `noise`: every time that something else had the CPU, and what it was.

mod events;
mod stretches;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use punctual_core::schema::{Condition, Role, Tells, Unit};
use punctual_core::units::{BareNumber, SECOND_NS, human_ns};
use punctual_sys::affinity;
use punctual_sys::clock::monotonic_ns;
use punctual_sys::timer::{AbsoluteSleep, Wait, Waited};

use self::events::{SWITCH, Told};
use self::stretches::{Actor, Actors, CpuPast, NOBODYS, Origin, SOURCES, Stretch, Taken};
use super::counts::Counts;
use super::followed::{Followed, any};
use super::handover::Handover;
use super::margin::{MARGIN, Margin};
use crate::recorder::Recorder;
use crate::registry::probe::{
    By, Closed, CounterEntry, Drained, Pace, Primary, ProbeEntry, ProbeThread, SeriesEntry,
    Session, Stage, State, Stop, Window, thread_name,
};
use crate::registry::{Choice, Default, Kind, Param, Values};
use crate::ring::Ring;

pub(super) const ENTRY: ProbeEntry = ProbeEntry {
    name: "noise",
    summary: "every time that something else had the CPU, and what it was (as oslat, osnoise)",
    help: "A thread on each CPU spins and reads the clock; two readings further apart than \
threshold=TIME are a gap: something else had the CPU. Recorded is the length of each gap. If the kernel \
can be traced, each is put down to what had the CPU in it: interrupts, softirqs, NMIs, threads, by name; \
what is left is untraced: hardware, a hypervisor, and the kernel's code before and after its own \
events. The trace is read in binary form from an instance of its own, and tracing takes time itself: \
trace=off measures without it. By default the threads sleep for a tenth of the time (margin=10%), \
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
        MARGIN,
    ],
    overrides: &[("threads", "per-cpu")],
    without: &[],
    check: |_| Ok(()),
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
    ],
    state: State::There(open),
};

const fn part(name: &'static str, meaning: &'static str) -> SeriesEntry {
    SeriesEntry { name, meaning, role: Role::Aside, unit: Unit::Ns, by: By::Session }
}

/// A CPU's ring, KiB: some 100,000 events, which is more than a CPU has in two seconds.
const RING_KIB: u64 = 8 << 10;

/// Gaps of one thread until the next second.
const GAPS: u64 = 1 << 16;

/// Intervals of a cell's map; after that only those of gaps longer than any before, since a run may
/// last for days.
const MAPPED: u64 = 1 << 20;

/// How many sources a note names.
const NAMED: usize = 5;

/// Who had a CPU of which the trace tells nothing.
const NOBODY: &str = "untraced";

fn open(values: &Values, stage: &mut Stage<'_>) -> Result<Box<dyn Session>, String> {
    let mut actors = Actors::default();
    let (mut traced, mut refused) = (None, None);
    if values.text("trace") == "auto" {
        match Traced::open(stage, &mut actors) {
            Ok(trace) => traced = Some(trace),
            Err(error) => refused = Some(error),
        }
    }
    Ok(Box::new(Noise {
        threshold_ns: values.number("threshold"),
        margin: Margin::of(values),
        break_ns: stage.break_ns,
        actors,
        traced,
        refused,
        mapped: 0,
        longest_ns: 0,
        spinners: Vec::new(),
    }))
}

struct Noise {
    threshold_ns: u64,
    margin: Margin,
    break_ns: i64,
    actors: Actors,
    traced: Option<Traced>,
    /// Why nothing is traced.
    refused: Option<String>,
    /// How many intervals the map has.
    mapped: u64,
    /// The longest gap so far, ns.
    longest_ns: u64,
    spinners: Vec<Spinner>,
}

/// What the session knows of a thread that spins.
struct Spinner {
    own: Actor,
    gaps: Arc<Handover<3>>,
    spun_us: Arc<Counts<1>>,
}

struct Traced {
    ring: Ring,
    events: Told,
    cpus: BTreeMap<u32, CpuPast>,
    followed: Arc<Followed>,
}

impl Traced {
    fn open(stage: &mut Stage<'_>, actors: &mut Actors) -> Result<Self, String> {
        let ring = Ring::open(stage.root, stage.journal, RING_KIB)?;
        let switches = ring.switches();
        let events = Told::trace(&switches, actors)?;
        // As the kernel counts them: the lower, the more urgent (include/linux/sched/prio.h). Of
        // switches between other threads those from a more urgent one are traced: no other takes
        // the CPU from a thread that spins.
        let more_urgent = match stage.scheduling {
            (policy, priority) if policy.is_real_time() => Some(99 - priority.min(99)),
            _ => None,
        };
        let filters = move |pids: &[i32]| {
            let filter = |urgent| {
                let (from, to) = (any("prev_pid", pids), any("next_pid", pids));
                (SWITCH, format!("{from} || {to} || prev_prio < {urgent}"))
            };
            more_urgent.map(filter).into_iter().collect()
        };
        let followed = Followed::new(switches, Box::new(filters));
        Ok(Self { ring, events, cpus: BTreeMap::new(), followed })
    }

    /// Follows what was traced until now.
    fn follow(&mut self, actors: &mut Actors, spinners: &[Spinner]) -> io::Result<()> {
        let Self { ring, events, cpus, followed } = self;
        for (number, id) in followed.ids() {
            events.know(id, spinners[number as usize].own);
        }
        ring.read(&mut |cpu, at, event| {
            if let Some((current, change)) = events.change(event, actors) {
                cpus.entry(cpu).or_default().change(at, current, change);
            }
        })
    }
}

impl Session for Noise {
    fn thread(&mut self, number: u32) -> Result<Box<dyn ProbeThread>, String> {
        let spinner = Spinner {
            own: self.actors.number(&thread_name(number), Origin::Thread),
            gaps: Handover::new(GAPS),
            spun_us: Arc::default(),
        };
        let thread = Polling {
            number,
            threshold_ns: self.threshold_ns,
            margin: self.margin,
            break_ns: self.break_ns,
            gaps: Arc::clone(&spinner.gaps),
            spun_us: Arc::clone(&spinner.spun_us),
            followed: self.traced.as_ref().map(|traced| Arc::clone(&traced.followed)),
            recording_ns: u64::MAX,
        };
        self.spinners.push(spinner);
        Ok(Box::new(thread))
    }

    fn drain(&mut self, out: &mut Drained<'_>) -> io::Result<()> {
        let until = monotonic_ns().min(out.until_ns);
        if let Some(traced) = &mut self.traced {
            traced.follow(&mut self.actors, &self.spinners)?;
        }
        // Of a gap that has to wait, what was before it is to be known then, too.
        let mut forget = until;
        let Self { actors, traced, spinners, mapped, longest_ns, .. } = self;
        for (spinner, tracks) in spinners.iter().zip(out.tracks.iter_mut()) {
            spinner.gaps.take(|[from, to, cpu]| {
                if to >= until {
                    forget = forget.min(from);
                    return false;
                }
                let number = u32::try_from(cpu).unwrap_or(u32::MAX);
                let is_mapped = *mapped < MAPPED || to - from > *longest_ns;
                *longest_ns = (to - from).max(*longest_ns);
                let mut of = [0; SOURCES];
                let mut piece = |piece: Stretch| {
                    let length = piece.to - piece.from;
                    let (name, source) = match piece.actor {
                        Some(actor) => actors.had(actor, &piece),
                        None => (NOBODY, Origin::Untraced),
                    };
                    of[source as usize] += length;
                    if is_mapped {
                        let actor = out.intervals.actor(name);
                        out.intervals.push(number, piece.from, piece.to, actor);
                        *mapped += 1;
                    }
                };
                match traced.as_mut().and_then(|traced| traced.cpus.get_mut(&number)) {
                    Some(cpu) => cpu.cut((from, to), spinner.own, &mut piece),
                    None => piece(Stretch { from, to, ..NOBODYS }),
                }
                let parts = tracks.iter_mut().zip(of).filter(|_| traced.is_some());
                for (track, ns) in parts.filter(|(_, ns)| *ns > 0) {
                    track.record(to, i64::try_from(ns).unwrap_or(i64::MAX), 0);
                }
                true
            });
        }
        let is_warm_up = out.until_ns != u64::MAX;
        if let Some(traced) = traced {
            traced.cpus.values_mut().for_each(|cpu| cpu.forget(forget));
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
        Closed { counts: vec![spun, self.lost()], notes: vec![self.sources(spun)] }
    }
}

impl Noise {
    fn lost(&self) -> u64 {
        let events = self.traced.as_ref().map_or(0, |traced| traced.ring.lost());
        events + self.spinners.iter().map(|spinner| spinner.gaps.lost()).sum::<u64>()
    }

    /// What had the CPUs most, or why that is not known.
    fn sources(&self, spun_us: u64) -> Condition {
        let text = match (&self.traced, &self.refused) {
            (None, Some(why)) => format!("what had the CPU is not known: {why}"),
            (None, None) => "what had the CPU was not traced, as requested".to_owned(),
            (Some(_), _) => {
                let most = self.actors.most(NAMED);
                let one = |(name, share): &(&str, Taken)| {
                    format!(
                        "{name} {} times, {} in all, {} at most",
                        share.times,
                        human_ns(share.total_ns.cast_signed()),
                        human_ns(share.longest_ns.cast_signed())
                    )
                };
                let most: Vec<_> = most.iter().map(one).collect();
                let spun = human_ns(spun_us.saturating_mul(1_000).cast_signed());
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
        self.gaps.begin();
        let mut left = window.samples;
        let mut begin = monotonic_ns();
        while begin < window.end && left > 0 && !stop.is_set() {
            let round_end = (begin + self.margin.spin_ns()).min(window.end);
            let mut last = begin;
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
            if !self.margin.is_none() && last < window.end && left > 0 {
                self.margin.sleep();
            }
            begin = monotonic_ns();
        }
        Ok(())
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
