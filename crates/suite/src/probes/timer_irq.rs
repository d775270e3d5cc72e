//! `timer-irq`: what a wake-up by a timer consists of, from the kernel's own trace.

mod path;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use punctual_core::schema::{Condition, Role, Tells, Unit};
use punctual_core::units::human_ns;
use punctual_sys::clock::monotonic_ns;
use punctual_sys::thread;
use punctual_sys::timer::AbsoluteSleep;

use self::path::{Leg, Matched, Paths, TimerEvent, Who};
use super::handover::Handover;
use super::serve::Serve;
use crate::recorder::Recorder;
use crate::registry::Values;
use crate::registry::probe::{
    By, Closed, CounterEntry, Drained, Pace, Primary, ProbeEntry, ProbeThread, SeriesEntry,
    Session, Stage, State, Stop, Window,
};
use crate::ring::{Field, Format, Ring, Switches};
use crate::schedule::Schedule;

pub(super) const ENTRY: ProbeEntry = ProbeEntry {
    name: "timer-irq",
    summary: "timer expiry to interrupt to wake-up to user space (as rtla timerlat)",
    help: "Each thread waits for its release as wakeup does (clock_nanosleep), and the kernel's trace \
says what happened on the way: the timer's interrupt handler was entered (leg interrupt, the interrupt \
latency or t1), it woke the thread (leg wakeup), the scheduler switched to it (leg switch), and it read \
the clock in user space (leg user). The legs of a sample add up to its latency (t2). If the handler \
was already running at the release, the leg interrupt is 0. The trace is read in binary form from an \
instance of its own, so nobody else's tracing is disturbed. A note names what had the CPU in the longest leg of \
the latest activation. Tracing takes time itself: compare with wakeup. Follows t1 and t2 of Mitsubishi's measurements and rtla \
timerlat.",
    params: &[],
    overrides: &[],
    without: &[],
    check: |_| Ok(()),
    needs: &[],
    device: None,
    pace: Pace::Periodic,
    dithers: |_| true,
    primary: Primary {
        name: "latency",
        meaning: "start of the work minus its release",
        nouns: ("activation", "activations"),
        by: By::Thread,
    },
    series: &[
        leg("interrupt", "the timer's interrupt handler is entered minus the release"),
        leg("wakeup", "the thread is woken minus the handler is entered"),
        leg("switch", "the CPU is switched to the thread minus the thread is woken"),
        leg("user", "start of the work minus the CPU is switched to the thread"),
    ],
    counters: &[
        CounterEntry {
            name: "unmatched",
            meaning: "activations without legs: the thread did not sleep, or was woken before it did",
            tells: Tells::Nothing,
        },
        CounterEntry {
            name: "lost",
            meaning: "events or activations for which there was no room",
            tells: Tells::Loss,
        },
    ],
    state: State::There(open),
};

const fn leg(name: &'static str, meaning: &'static str) -> SeriesEntry {
    SeriesEntry { name, meaning, role: Role::Leg, unit: Unit::Ns, by: By::Session }
}

/// Bytes that the events of one activation take in the ring, and how many seconds there is room
/// for: it is emptied once a second.
const BYTES: u64 = 160;
const SECONDS: u64 = 3;

/// Room for what is not of the threads, KiB.
const BESIDES_KIB: u64 = 512;

/// The most that a CPU's ring may take, KiB.
const MOST_KIB: u64 = 64 << 10;

const SWITCH: &str = "sched/sched_switch";
const WAKING: &str = "sched/sched_waking";

/// The first thing that the timer's interrupt handler does, by architecture, with a filter.
const INTERRUPTS: [(&str, Option<&str>); 2] = [
    ("irq_vectors/local_timer_entry", None),
    ("irq/irq_handler_entry", Some("name ~ \"*timer*\"")),
];

fn open(_: &Values, stage: &mut Stage<'_>) -> Result<Box<dyn Session>, String> {
    let second = 1_000_000_000 / stage.interval_ns.max(1) + 1;
    let bytes = u64::from(stage.threads) * second * BYTES * SECONDS;
    let ring = Ring::open(stage.root, stage.journal, (BESIDES_KIB + bytes / 1024).min(MOST_KIB))?;
    let switches = ring.switches();
    let (layouts, interrupt) = Layouts::of(&switches)?;
    for event in [SWITCH, WAKING, interrupt] {
        switches.enable(event)?;
    }
    let offsets = stage.dither.map(|dither| dither.offsets_ns(stage.interval_ns));
    Ok(Box::new(Timers {
        ring,
        layouts,
        interrupt,
        interval_ns: stage.interval_ns,
        offsets: offsets.map_or_else(|| Arc::new([]) as Arc<[u64]>, Arc::from),
        break_ns: stage.break_ns,
        followed: Arc::new(Followed { switches, ids: Mutex::default() }),
        handed: Vec::new(),
        paths: Paths::default(),
        room: second * SECONDS,
        unmatched: 0,
        worst: None,
    }))
}

/// Where the numbers of the events are.
struct Layouts {
    interrupt: u16,
    waking: (u16, Field),
    switch: (u16, [Field; 3]),
}

impl Layouts {
    fn of(switches: &Switches) -> Result<(Self, &'static str), String> {
        let format = |event: &str| {
            switches.format(event).ok_or_else(|| format!("this kernel does not trace {event}"))
        };
        let field = |format: &Format, name: &str| {
            format.field(name).ok_or_else(|| format!("events without {name}"))
        };
        let (waking, switch) = (format(WAKING)?, format(SWITCH)?);
        let known = INTERRUPTS
            .iter()
            .find_map(|(event, filter)| Some((*event, filter, switches.format(event)?.id)));
        let (event, filter, interrupt) = known.ok_or("this kernel does not trace interrupts")?;
        if let Some(filter) = filter {
            switches.filter(event, filter)?;
        }
        let of_switch = ["next_pid", "prev_pid", "prev_comm"];
        let [next, prev, name] = of_switch.map(|name| field(&switch, name));
        let switch = (switch.id, [next?, prev?, name?]);
        Ok((Self { interrupt, waking: (waking.id, field(&waking, "pid")?), switch }, event))
    }

    fn seen(&self, event: &[u8]) -> Option<TimerEvent> {
        let id = u16::from_ne_bytes(*event.first_chunk()?);
        let thread = |field: Field| field.number(event).and_then(|id| i32::try_from(id).ok());
        if id == self.interrupt {
            return Some(TimerEvent::Interrupt);
        }
        if id == self.waking.0 {
            return Some(TimerEvent::Waking { thread: thread(self.waking.1)? });
        }
        let [next, prev, name] = self.switch.1;
        (id == self.switch.0).then_some(())?;
        let before = Who { id: thread(prev)?, name: name.text(event)? };
        Some(TimerEvent::Switch { thread: thread(next)?, before })
    }
}

/// The threads that are traced; a thread adds itself when it starts.
struct Followed {
    switches: Switches,
    ids: Mutex<Vec<(u32, i32)>>,
}

impl Followed {
    fn add(&self, number: u32, id: i32) -> Result<(), String> {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        ids.push((number, id));
        let any = |field: &str| {
            let each: Vec<_> = ids.iter().map(|(_, id)| format!("{field} == {id}")).collect();
            each.join(" || ")
        };
        self.switches.filter(WAKING, &any("pid"))?;
        self.switches.filter(SWITCH, &any("next_pid"))?;
        self.switches.start()
    }
}

struct Timers {
    ring: Ring,
    layouts: Layouts,
    interrupt: &'static str,
    interval_ns: u64,
    /// By how much releases are moved, ns; empty if they are not.
    offsets: Arc<[u64]>,
    break_ns: i64,
    followed: Arc<Followed>,
    /// Of each thread, its releases and when it ran.
    handed: Vec<Arc<Handover<2>>>,
    paths: Paths,
    /// How many samples of a thread there is room for.
    room: u64,
    unmatched: u64,
    worst: Option<Latest>,
}

/// The latest activation that has legs.
struct Latest {
    thread: u32,
    latency_ns: u64,
    matched: Matched,
}

impl Session for Timers {
    fn thread(&mut self, number: u32) -> Result<Box<dyn ProbeThread>, String> {
        let handed = Handover::new(self.room);
        self.handed.push(Arc::clone(&handed));
        Ok(Box::new(Sleeper {
            number,
            interval_ns: self.interval_ns,
            offsets: Arc::clone(&self.offsets),
            break_ns: self.break_ns,
            followed: Arc::clone(&self.followed),
            handed,
        }))
    }

    fn drain(&mut self, out: &mut Drained<'_>) -> io::Result<()> {
        // What is in no ring by now may come after an event of another CPU that is.
        let read = monotonic_ns();
        let Self { ring, layouts, paths, .. } = self;
        ring.read(&mut |cpu, at, event| {
            if let Some(seen) = layouts.seen(event) {
                paths.push(cpu, at, seen);
            }
        })?;
        paths.follow(read);
        let until = read.min(out.until_ns);
        let ids = self.followed.ids.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (number, id) in ids {
            let Some(tracks) = out.tracks.get_mut(number as usize) else { continue };
            self.handed[number as usize].take(|[release, now]| {
                if now >= until {
                    return false;
                }
                match self.paths.of(id, release, now) {
                    Some(matched) => {
                        for (track, leg) in tracks.iter_mut().zip(matched.legs) {
                            track.record(now, leg.cast_signed(), 0);
                        }
                        let latency_ns = now - release;
                        if self.worst.as_ref().is_none_or(|worst| latency_ns > worst.latency_ns) {
                            self.worst = Some(Latest { thread: number, latency_ns, matched });
                        }
                    }
                    None => self.unmatched += 1,
                }
                true
            });
        }
        if out.until_ns != u64::MAX {
            (self.unmatched, self.worst) = (0, None);
            self.ring.begin(out.until_ns);
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Closed {
        let handed = self.handed.iter().map(|handed| handed.lost());
        let lost = self.ring.lost() + handed.sum::<u64>();
        Closed {
            counts: vec![self.unmatched, lost],
            notes: [self.source()].into_iter().chain(self.worst.as_ref().map(said)).collect(),
        }
    }
}

impl Timers {
    fn source(&self) -> Condition {
        let text = format!(
            "legs come from the kernel's trace events {}, {WAKING} and {SWITCH}, which take time \
             themselves",
            self.interrupt
        );
        Condition { id: "traced".to_owned(), text }
    }
}

/// The legs of the latest activation, and what had the CPU in the longest.
fn said(worst: &Latest) -> Condition {
    let Latest { thread, latency_ns, matched } = worst;
    let time = |ns: u64| human_ns(ns.cast_signed());
    let [interrupt, wakeup, switch, user] = matched.legs.map(time);
    let why = match matched.longest() {
        Leg::Interrupt => "interrupts were off, or a more urgent one ran".to_owned(),
        Leg::Wakeup => "the handler was busy with other timers".to_owned(),
        Leg::Switch | Leg::User => match &matched.before {
            Who { id: 0, .. } => "the CPU was idle before".to_owned(),
            Who { id, name } => format!("{name} (PID {id}) had the CPU"),
        },
    };
    let text = format!(
        "the latest activation with legs, {} of thread {thread}: interrupt {interrupt}, wakeup \
         {wakeup}, switch {switch}, user {user}; in the longest leg {why}",
        time(*latency_ns)
    );
    Condition { id: "latest".to_owned(), text }
}

struct Sleeper {
    number: u32,
    interval_ns: u64,
    offsets: Arc<[u64]>,
    break_ns: i64,
    followed: Arc<Followed>,
    handed: Arc<Handover<2>>,
}

impl ProbeThread for Sleeper {
    fn prepare(&mut self) -> io::Result<()> {
        self.followed.add(self.number, thread::id()).map_err(io::Error::other)
    }

    fn run(&mut self, window: &Window, tracks: &mut [Recorder], stop: &Stop) -> io::Result<()> {
        let aim = window.aim;
        let schedule =
            Schedule::dithered(window.first, self.interval_ns, window.end, &self.offsets)
                .aimed(aim.release, window.first.saturating_add(aim.at_ns));
        let serve = Serve::new(schedule, &mut tracks[0], window.samples, stop, self.break_ns);
        let handed = &*self.handed;
        handed.begin();
        let job = |release: u64, latency: i64| {
            handed.put([release, release.wrapping_add_signed(latency)]);
        };
        serve.run(&mut AbsoluteSleep, job).map(drop)
    }
}
