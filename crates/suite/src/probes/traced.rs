//! The ways of threads from an interrupt to their work, from the kernel's trace: what `timer-irq`
//! and `rtc-irq` have in common.

mod matching;
mod path;

use std::io;
use std::sync::Arc;

use punctual_core::schema::{Condition, Role, Unit};
use punctual_core::units::human_ns;
use punctual_sys::clock::monotonic_ns;

use self::matching::Matching;
use self::path::{Leg, Matched, Paths, TimerEvent, Who};
use super::followed::{Followed, FollowedThread, any};
use crate::recorder::Recorder;
use crate::registry::probe::{By, Drained, SeriesEntry, Stage};
use crate::ring::{Field, Format, Ring, Switches};

/// A series of legs.
pub(super) const fn leg(name: &'static str, meaning: &'static str) -> SeriesEntry {
    SeriesEntry { name, meaning, role: Role::Leg, unit: Unit::Ns, by: By::Session }
}

/// Bytes that the events of one activation take in the ring, and how many seconds there is room
/// for: it is emptied once a second.
const BYTES: u64 = 160;
pub(super) const SECONDS: u64 = 3;

/// Room for what is not of the threads, KiB.
const BESIDES_KIB: u64 = 512;

/// The most that a CPU's ring may take, KiB.
const MOST_KIB: u64 = 64 << 10;

const SWITCH: &str = "sched/sched_switch";
const WAKING: &str = "sched/sched_waking";

/// Where the numbers of the events are.
struct Layouts {
    interrupt: u16,
    waking: (u16, Field),
    switch: (u16, [Field; 3]),
}

impl Layouts {
    fn of(
        switches: &Switches,
        interrupts: &[(&'static str, Option<&'static str>)],
    ) -> Result<(Self, &'static str), String> {
        let format = |event: &str| {
            switches.format(event).ok_or_else(|| format!("this kernel does not trace {event}"))
        };
        let field = |format: &Format, name: &str| {
            format.field(name).ok_or_else(|| format!("events without {name}"))
        };
        let (waking, switch) = (format(WAKING)?, format(SWITCH)?);
        let known = interrupts
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

/// What is traced of the threads of a cell.
pub(super) struct TracedThreads {
    ring: Ring,
    layouts: Layouts,
    interrupt: &'static str,
    pub(super) followed: Arc<Followed>,
    paths: Paths,
    matching: Matching,
    latest: Option<Latest>,
}

/// Takes the samples of a thread up to an instant.
type Each<'a> = dyn FnMut(&mut TracedThreads, &FollowedThread, u64, &mut [Recorder]) + 'a;

/// The latest activation that has legs.
struct Latest {
    thread: u32,
    latency_ns: u64,
    matched: Matched,
}

impl TracedThreads {
    /// Traces the first of these interrupts that the kernel can, each with a filter; there are
    /// so many activations a second.
    ///
    /// # Errors
    /// Why they cannot be traced, and what would help.
    pub(super) fn open(
        stage: &mut Stage<'_>,
        interrupts: &[(&'static str, Option<&'static str>)],
        second: u64,
    ) -> Result<Self, String> {
        let kib = BESIDES_KIB + second * BYTES * SECONDS / 1024;
        let ring = Ring::open(stage.root, stage.journal, kib.min(MOST_KIB))?;
        let switches = ring.switches();
        let (layouts, interrupt) = Layouts::of(&switches, interrupts)?;
        for event in [SWITCH, WAKING, interrupt] {
            switches.enable(event)?;
        }
        let filters =
            |pids: &[i32]| vec![(WAKING, any("pid", pids)), (SWITCH, any("next_pid", pids))];
        Ok(Self {
            followed: Followed::new(&ring, Box::new(filters)),
            ring,
            layouts,
            interrupt,
            paths: Paths::default(),
            matching: Matching::default(),
            latest: None,
        })
    }

    /// Follows what was traced, and hands over each thread with the instant up to which all is
    /// known; the last call of the warm-up forgets what was counted.
    ///
    /// # Errors
    /// The trace cannot be read.
    pub(super) fn drain(&mut self, out: &mut Drained<'_>, each: &mut Each<'_>) -> io::Result<()> {
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
        for thread in self.followed.threads() {
            if let Some(tracks) = out.tracks.get_mut(thread.number as usize) {
                each(self, &thread, until, tracks);
            }
        }
        if out.until_ns != u64::MAX {
            (self.matching, self.latest) = (Matching::default(), None);
            self.ring.begin(out.until_ns);
        }
        Ok(())
    }

    /// The legs of a thread's way to the work that it began at `now`, after its release, or
    /// after the interrupt if it has none.
    pub(super) fn of(
        &mut self,
        thread: &FollowedThread,
        release: Option<u64>,
        now: u64,
    ) -> Option<[u64; 4]> {
        let number = thread.number;
        let (steps, matched) = match thread.id {
            Ok(id) => self.paths.of(id, release, now),
            Err(_) => ([0; 2], None),
        };
        self.matching.add(number, steps, matched.is_some());
        let matched = matched?;
        let legs = matched.legs;
        let latency_ns = legs.iter().sum();
        if self.latest.as_ref().is_none_or(|latest| latency_ns > latest.latency_ns) {
            self.latest = Some(Latest { thread: number, latency_ns, matched });
        }
        Some(legs)
    }

    /// What was counted: samples without legs, and what was lost, of events and of this many
    /// samples.
    pub(super) fn counts(&self, lost: u64) -> Vec<u64> {
        vec![self.matching.unmatched(), self.ring.lost() + lost]
    }

    /// Where legs come from, those of the latest activation, and which threads have none.
    pub(super) fn notes(&self) -> Vec<Condition> {
        let text = format!(
            "legs come from the kernel's trace events {}, {WAKING} and {SWITCH}, which take time \
             themselves",
            self.interrupt
        );
        let source = Condition { id: "traced".to_owned(), text };
        let without = self.matching.without(&self.followed.threads());
        [source].into_iter().chain(self.latest.as_ref().map(said)).chain(without).collect()
    }
}

/// The legs of the latest activation, and what had the CPU in the longest.
fn said(latest: &Latest) -> Condition {
    let Latest { thread, latency_ns, matched } = latest;
    let time = |ns: u64| human_ns(ns.cast_signed());
    let [interrupt, wakeup, switch, user] = matched.legs.map(time);
    // What has no release begins with its interrupt.
    let interrupt = match matched.legs[0] {
        0 => String::new(),
        _ => format!("interrupt {interrupt}, "),
    };
    let why = match matched.longest() {
        Leg::Interrupt => "interrupts were off, or a more urgent one ran".to_owned(),
        Leg::Wakeup => "the handler had other work before".to_owned(),
        Leg::Switch | Leg::User => match &matched.before {
            Who { id: 0, .. } => "the CPU was idle before".to_owned(),
            Who { id, name } => format!("{name} (PID {id}) had the CPU"),
        },
    };
    let text = format!(
        "the latest activation with legs, {} of thread {thread}: {interrupt}wakeup {wakeup}, \
         switch {switch}, user {user}; in the longest leg {why}",
        time(*latency_ns)
    );
    Condition { id: "latest".to_owned(), text }
}
