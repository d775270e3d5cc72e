//! The events of the trace that tell who has a CPU.

use std::collections::BTreeMap;

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
}

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
        Ok(Self { known, current, own: BTreeMap::new(), threads: BTreeMap::new() })
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
        };
        Some((self.thread(pid(self.current, event)?), change))
    }
}

fn pid(field: Field, event: &[u8]) -> Option<i32> {
    i32::try_from(field.number(event)?).ok()
}

impl Meaning {
    fn of(event: &str, format: &Format, actors: &mut Actors) -> Option<Self> {
        let (system, name) = event.split_once('/')?;
        Some(match (system, name) {
            ("sched", _) => Self::Switch([format.field("next_pid")?, format.field("next_comm")?]),
            ("irq", "irq_handler_entry") => {
                Self::Handler([format.field("irq")?, format.field("name")?])
            }
            ("irq", "softirq_entry") => {
                let actor = |name| actors.number(&format!("softirq {name}"), Origin::Softirq);
                Self::Soft(format.field("vec")?, SOFTIRQS.map(actor))
            }
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
