//! The events of the trace that tell who has a CPU.

use std::collections::BTreeMap;

use punctual_core::units::SECOND_NS;

use super::stretches::{Actor, Actors, Change, Origin};
use crate::ring::{Field, Format, Switches};

pub(super) const SWITCH: &str = "sched/sched_switch";
const NMI: &str = "nmi/nmi_handler";

/// Names of softirqs by their number (include/linux/interrupt.h).
const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// How to read each event that is traced, by its number.
pub(super) struct Told {
    known: Vec<(u16, Meaning)>,
    current: Field,
    /// Threads that spin, by their PID.
    own: BTreeMap<i32, Actor>,
    /// The other threads seen so far.
    threads: BTreeMap<i32, Actor>,
    /// Where the numbers are of what threads of the kernel measure, by the event's number.
    measured: Vec<(u16, Vec<Field>)>,
}

enum Meaning {
    /// An interrupt with a name of its own.
    Vector(Actor),
    /// The number and name of a device's interrupt.
    Handler([Field; 2]),
    Leave,
    /// The number of a softirq, by which its actor is found.
    Soft(Field, [Actor; SOFTIRQS.len()]),
    SoftDone,
    Nmi(Actor, Field),
    /// PID and name of the next thread.
    Switch([Field; 2]),
    /// Of the osnoise tracer: who had the CPU, and its net time.
    Net(Whose, Field),
}

/// Who had the CPU.
enum Whose {
    Nmi(Actor),
    /// The number and name of an interrupt.
    Interrupt([Field; 2]),
    /// The number of a softirq.
    Softirq(Field, [Actor; SOFTIRQS.len()]),
    /// The name of a thread.
    Thread(Field),
}

/// What a thread of the kernel has measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measured {
    /// A gap of so many ns up to the event.
    Gap(u64),
    /// A gap with interrupts off, rounded down to microseconds, ns: since when, ns of CLOCK_REALTIME.
    Hardware(u64, u64),
    /// It has measured for so many us up to the event.
    Spun(u64),
}

/// The tracers that measure by themselves, and what their threads are called.
pub(super) const OSNOISE: (&str, &str) = ("osnoise", "osnoise/");
pub(super) const HWLAT: (&str, &str) = ("hwlat", "hwlatd/");

impl Told {
    /// Traces them.
    ///
    /// # Errors
    /// The kernel has none of them, or refuses.
    pub(super) fn trace(switches: &Switches, actors: &mut Actors) -> Result<Self, String> {
        let switch = switches.format(SWITCH).ok_or("this kernel does not trace sched_switch")?;
        let current = switch.field("common_pid").ok_or("events without common_pid")?;
        let mut all = vec![(SWITCH.to_owned(), switch)];
        for system in ["irq_vectors", "irq", "ipi", "nmi"] {
            for name in switches.group(system) {
                let event = format!("{system}/{name}");
                all.extend(switches.format(&event).map(|format| (event, format)));
            }
        }
        let mut known = Vec::new();
        for (event, format) in all {
            if let Some(kind) = Meaning::of(&event, &format, actors) {
                switches.enable(&event)?;
                known.push((format.id, kind));
            }
        }
        Ok(Self {
            known,
            current,
            own: BTreeMap::new(),
            threads: BTreeMap::new(),
            measured: Vec::new(),
        })
    }

    /// Traces what a tracer tells that measures by itself.
    ///
    /// # Errors
    /// The kernel's events are others than those known here, or it refuses.
    pub(super) fn measured(
        tracer: &str,
        switches: &Switches,
        actors: &mut Actors,
    ) -> Result<Self, String> {
        let format = |event: &str, names: &[&str]| {
            let format = switches.format(event);
            let fields = |format: Format| {
                let fields: Option<Vec<_>> = names.iter().map(|name| format.field(name)).collect();
                Some((format, fields?))
            };
            format.and_then(fields).ok_or_else(|| format!("this kernel's {event} is unknown"))
        };
        let (mut known, mut measured) = (Vec::new(), Vec::new());
        let own = if tracer == OSNOISE.0 {
            for event in ["nmi_noise", "irq_noise", "softirq_noise", "thread_noise"] {
                let event = format!("osnoise/{event}");
                let (format, fields) = format(&event, &["duration"])?;
                let whose = Whose::of(&event, &format, actors);
                let whose = whose.ok_or_else(|| format!("this kernel's {event} is unknown"))?;
                switches.enable(&event)?;
                known.push((format.id, Meaning::Net(whose, fields[0])));
            }
            switches.enable("osnoise/sample_threshold")?;
            measured.push(format("osnoise/sample_threshold", &["duration"])?);
            format("ftrace/osnoise", &["runtime", "common_pid"])?
        } else {
            let names = ["duration", "outer_duration", "tv_sec", "tv_nsec", "common_pid"];
            format("ftrace/hwlat", &names)?
        };
        let current = own.1[own.1.len() - 1];
        measured.push(own);
        let measured = measured.into_iter().map(|(format, fields)| (format.id, fields)).collect();
        Ok(Self { known, current, own: BTreeMap::new(), threads: BTreeMap::new(), measured })
    }

    /// What an event tells that a thread of the kernel has measured.
    pub(super) fn found(&self, event: &[u8]) -> Option<Measured> {
        let id = u16::from_ne_bytes(*event.first_chunk()?);
        let (_, fields) = self.measured.iter().find(|(known, _)| *known == id)?;
        let number = |field: &Field| field.number(event);
        Some(match &fields[..] {
            [duration] => Measured::Gap(number(duration)?),
            [runtime, _] => Measured::Spun(number(runtime)?),
            [inner, outer, seconds, ns, _] => Measured::Hardware(
                number(inner)?.max(number(outer)?).saturating_mul(1_000),
                number(seconds)?.saturating_mul(SECOND_NS).saturating_add(number(ns)?),
            ),
            _ => return None,
        })
    }

    /// Makes a thread that spins known.
    pub(super) fn know(&mut self, id: i32, actor: Actor) {
        self.own.insert(id, actor);
    }

    fn thread(&self, id: i32) -> Option<Actor> {
        self.own.get(&id).or_else(|| self.threads.get(&id)).copied()
    }

    /// What an event tells, and whom it interrupts.
    pub(super) fn change(
        &mut self,
        event: &[u8],
        actors: &mut Actors,
    ) -> Option<(Option<Actor>, Change)> {
        let id = u16::from_ne_bytes(*event.first_chunk()?);
        let (_, kind) = self.known.iter().find(|(known, _)| *known == id)?;
        let change = match kind {
            Meaning::Vector(actor) => Change::Enter(*actor),
            Meaning::Handler([number, name]) => {
                let (number, name) = (number.number(event)?, name.text(event)?);
                Change::Enter(
                    actors.number(&format!("interrupt {number} {name}"), Origin::Interrupt),
                )
            }
            Meaning::Leave => Change::Leave,
            Meaning::Soft(vector, all) => {
                Change::Soft(*all.get(usize::try_from(vector.number(event)?).ok()?)?)
            }
            Meaning::SoftDone => Change::SoftDone,
            Meaning::Nmi(actor, length) => Change::Nmi(*actor, length.number(event)?),
            Meaning::Switch([next, name]) => {
                let id = pid(*next, event)?;
                let actor = match self.own.get(&id) {
                    Some(own) => *own,
                    // Known once more: exec(2) changes names.
                    None => actors.number(&name.text(event)?, Origin::Thread),
                };
                self.threads.insert(id, actor);
                Change::Switch(actor)
            }
            Meaning::Net(whose, length) => {
                Change::Net(whose.actor(event, actors)?, length.number(event)?)
            }
        };
        Some((self.thread(pid(self.current, event)?), change))
    }
}

fn pid(field: Field, event: &[u8]) -> Option<i32> {
    i32::try_from(field.number(event)?).ok()
}

impl Whose {
    fn of(event: &str, format: &Format, actors: &mut Actors) -> Option<Self> {
        Some(match event {
            "osnoise/nmi_noise" => Self::Nmi(actors.number("NMI", Origin::Interrupt)),
            "osnoise/irq_noise" => {
                Self::Interrupt([format.field("vector")?, format.field("desc")?])
            }
            "osnoise/softirq_noise" => Self::Softirq(format.field("vector")?, softirqs(actors)),
            _ => Self::Thread(format.field("comm")?),
        })
    }

    fn actor(&self, event: &[u8], actors: &mut Actors) -> Option<Actor> {
        Some(match self {
            Self::Nmi(actor) => *actor,
            Self::Interrupt([number, name]) => {
                let (number, name) = (number.number(event)?, name.text(event)?);
                actors.number(&format!("interrupt {number} {name}"), Origin::Interrupt)
            }
            Self::Softirq(vector, all) => *all.get(usize::try_from(vector.number(event)?).ok()?)?,
            Self::Thread(name) => actors.number(&name.text(event)?, Origin::Thread),
        })
    }
}

fn softirqs(actors: &mut Actors) -> [Actor; SOFTIRQS.len()] {
    SOFTIRQS.map(|name| actors.number(&format!("softirq {name}"), Origin::Softirq))
}

impl Meaning {
    fn of(event: &str, format: &Format, actors: &mut Actors) -> Option<Self> {
        let (system, name) = event.split_once('/')?;
        Some(match (system, name) {
            ("sched", _) => Self::Switch([format.field("next_pid")?, format.field("next_comm")?]),
            ("irq", "irq_handler_entry") => {
                Self::Handler([format.field("irq")?, format.field("name")?])
            }
            ("irq", "softirq_entry") => Self::Soft(format.field("vec")?, softirqs(actors)),
            ("irq", "softirq_exit") => Self::SoftDone,
            ("irq", "irq_handler_exit") => Self::Leave,
            ("nmi", _) if event == NMI => {
                Self::Nmi(actors.number("NMI", Origin::Interrupt), format.field("delta_ns")?)
            }
            ("ipi" | "irq_vectors", _) if name.ends_with("_exit") => Self::Leave,
            ("ipi" | "irq_vectors", _) => {
                let of = name.strip_suffix("_entry")?;
                Self::Vector(actors.number(&format!("interrupt {of}"), Origin::Interrupt))
            }
            _ => return None,
        })
    }
}
