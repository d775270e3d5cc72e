//! `cpumap`: which of several threads had which CPU, and when (as Hourglass).

mod looks;
mod map;
mod model;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use punctual_core::schema::{Condition, Tells};
use punctual_core::units::{BareNumber, SECOND_NS};
use punctual_sys::affinity;
use punctual_sys::sched::Policy;

use super::counts::Counts;
use super::margin::{COUNTERS, MARGIN, Margin, Spinning};
use super::noise::stretches::{Actor, Actors, NOBODYS, Origin, Stretch};
use super::noise::trace::Traced;
use crate::registry::probe::{
    By, Closed, CounterEntry, Drained, Pace, Primary, ProbeEntry, ProbeThread, Session, Stage,
    State,
};
use crate::registry::{Choice, Default, Kind, Param, Values};
use looks::{LOST, Looker, Seat};
use map::{Map, Run};
use model::{Model, Rank, Work};

pub(super) const ENTRY: ProbeEntry = ProbeEntry {
    name: "cpumap",
    summary: "which of several threads had which CPU, and when (as Hourglass)",
    help: "Each thread looks at the clock as often as it can. Two looks further apart than threshold=TIME \
are a gap: something else had the CPU (an interrupt, another thread, firmware, a hypervisor). Recorded \
is each gap, and, as a map, which thread had which CPU from when to when; what had it between two runs \
of threads that wanted it is called other, or with trace=on by its name: a thread, an interrupt, a softirq. \
`punctual report` draws the map around the longest gap; \
`punctual export --intervals` has all of it. Thread n does what the n-th model says, from the first \
again after the last: cpu spins, yield calls sched_yield(2) after each look, periodic:WORK/PERIOD \
works for WORK after every release; @PRIORITY or @other behind it gives it scheduling of its own. \
Threads that spin leave margin=PERCENT of every 10 ms, all at the same time: a spinning real-time \
thread can hang a board. Time in which a thread sleeps is no gap, and nobody's in the map. Follows \
Hourglass (John Regehr, USENIX 2002).",
    params: &[
        Param {
            name: "model",
            kind: Kind::Text { value: "MODEL+...", check: |text| model::parse(text).map(drop) },
            default: Default::Value("cpu"),
            help: "what threads do: cpu, yield, periodic:WORK/PERIOD",
        },
        Param {
            name: "threshold",
            kind: Kind::Or(
                &[Choice::of(AUTO, "four looks, at least 500 ns")],
                &Kind::Time { bare: BareNumber::Microseconds, low: 1, high: SECOND_NS },
            ),
            default: Default::Value(AUTO),
            help: "two looks at the clock that are further apart are a gap",
        },
        Param {
            name: "trace",
            kind: Kind::Choice(&[
                Choice::of("off", ""),
                Choice::of("on", "by the kernel's trace, which takes time itself"),
            ]),
            default: Default::Value("off"),
            help: "whether to name what is called other",
        },
        MARGIN,
    ],
    // Under fifo the first of several threads on a CPU would have it all the time.
    overrides: &[("policy", "rr")],
    without: &[],
    check,
    needs: &[],
    device: None,
    pace: Pace::BackToBack,
    dithers: |_| false,
    primary: Primary {
        name: "gap",
        meaning: "a look at the clock minus the one before, if that is more than the threshold",
        nouns: ("gap", "gaps"),
        by: By::Thread,
    },
    series: &[],
    counters: &[
        CounterEntry {
            name: "late",
            meaning: "releases of periodic threads whose work was not done before the next one",
            tells: Tells::Nothing,
        },
        CounterEntry {
            name: "moved",
            meaning: "gaps after which a thread was on another CPU",
            tells: Tells::Nothing,
        },
        CounterEntry { name: "had", meaning: "us of CPUs that threads had", tells: Tells::Nothing },
        CounterEntry {
            name: "taken",
            meaning: "us of gaps: work that threads could not do",
            tells: Tells::Nothing,
        },
        CounterEntry {
            name: "lost",
            meaning: "runs, or events of the trace, for which there was no room",
            tells: Tells::Loss,
        },
        CounterEntry {
            name: "unmapped",
            meaning: "intervals left out: the first million is kept, and what is around a longest gap",
            tells: Tells::Nothing,
        },
        COUNTERS[0],
        COUNTERS[1],
    ],
    state: State::There(open),
};

const AUTO: &str = "auto";

fn models(values: &Values) -> Vec<Model> {
    model::parse(values.text("model")).unwrap_or_default()
}

fn check(values: &Values) -> Result<(), String> {
    let models = models(values);
    if values.known_number("threads").is_some_and(|threads| threads < models.len() as u64) {
        return Err(values.wrong("model", "needs a thread for each; set threads=N"));
    }
    let ranked = |model: &Model| matches!(model.rank, Some(Rank::Priority(_)));
    if values.text("policy") == "other" && models.iter().any(ranked) {
        return Err(values.wrong("model", "a priority needs policy=fifo or policy=rr"));
    }
    Ok(())
}

fn open(values: &Values, stage: &mut Stage<'_>) -> Result<Box<dyn Session>, String> {
    let (models, margin) = (models(values), Margin::of(values));
    let (policy, _) = stage.scheduling;
    let periodic = |thread: u32| {
        let work = models[thread as usize % models.len()].work;
        matches!(work, Work::Periodic { .. }).then(|| work.share(margin.0)).unwrap_or(0)
    };
    let wanted: u64 = (0..stage.threads).map(periodic).sum();
    let inherited = affinity::get().map_err(|error| format!("sched_getaffinity: {error}"))?;
    // Isolated CPUs that threads are bound to are in no inherited mask.
    let cpus = inherited.with(&stage.bound).len() as u64;
    let room = if stage.bound.is_empty() { cpus } else { stage.bound.len() as u64 };
    let share = u64::from(stage.threads) > room;
    if policy.is_real_time() && wanted > cpus * (1_000 - 10 * margin.0) {
        return Err(format!(
            "periodic threads would take {} % of {cpus} CPUs, which leaves less than the margin",
            wanted / 10
        ));
    }
    if !policy.is_real_time()
        && models.iter().any(|model| matches!(model.rank, Some(Rank::Priority(_))))
    {
        return Err("model asks for real-time priorities, which are refused".to_owned());
    }
    let traced = match values.text("trace") {
        "on" => {
            let mut actors = Actors::default();
            let own = actors.number("threads of the probe", Origin::Thread);
            // Threads of the cell may have priorities of their own.
            let traced = Traced::open(stage, &mut actors, false)?;
            Some(NamedOthers { traced, actors, own })
        }
        _ => None,
    };
    Ok(Box::new(Maps {
        traced,
        models,
        policy,
        margin,
        threshold: values.known_number("threshold"),
        break_ns: stage.break_ns,
        share,
        seats: Vec::new(),
        map: Map::new(stage.threads),
    }))
}

/// Who had CPUs besides threads of the probe.
struct NamedOthers {
    traced: Traced,
    actors: Actors,
    /// What all threads of the probe are.
    own: Actor,
}

impl NamedOthers {
    /// Cuts a stretch of a CPU.
    fn cut(&mut self, cpu: u32, (from, to): (u64, u64)) -> Vec<(u64, u64, Option<String>)> {
        let Self { traced, actors, own } = self;
        let mut pieces = Vec::new();
        let mut each = |piece: Stretch| {
            let name = piece.actor.map(|actor| actors.name(actor).to_owned());
            pieces.push((piece.from, piece.to, name));
        };
        let is_told = traced.followed.unknown().is_none();
        match traced.cpus.get_mut(&cpu).filter(|_| is_told) {
            Some(past) => past.cut((from, to), *own, &mut each),
            None => each(Stretch { from, to, ..NOBODYS }),
        }
        pieces
    }
}

struct Maps {
    traced: Option<NamedOthers>,
    models: Vec<Model>,
    policy: Policy,
    margin: Margin,
    /// `None`: by the loop of each thread.
    threshold: Option<u64>,
    break_ns: i64,
    /// Whether threads wait for each other's CPUs.
    share: bool,
    /// By thread, with the number of runs that were taken.
    seats: Vec<(Arc<Seat>, u64)>,
    map: Map,
}

impl Session for Maps {
    fn thread(&mut self, number: u32) -> Result<Box<dyn ProbeThread>, String> {
        let seat = Arc::new(Seat::new(self.threshold));
        self.seats.push((Arc::clone(&seat), 0));
        let model = self.models[number as usize % self.models.len()];
        let Self { policy, margin, break_ns, share, .. } = *self;
        let followed =
            self.traced.as_ref().map(|named| (number, Arc::clone(&named.traced.followed)));
        Ok(Box::new(Looker {
            model,
            policy,
            margin,
            break_ns,
            share,
            seat,
            published: 0,
            followed,
        }))
    }

    fn longest_pause_ns(&self) -> u64 {
        let periods = self.models.iter().map(|model| match model.work {
            Work::Periodic { period_ns, .. } => period_ns,
            Work::Spin | Work::Yield => Margin::ROUND_NS,
        });
        periods.max().unwrap_or(0)
    }

    fn drain(&mut self, out: &mut Drained<'_>) -> io::Result<()> {
        for (number, (seat, taken)) in (0..).zip(&mut self.seats) {
            // Looked at first: what is published before it is then taken.
            let over = seat.over.load(Ordering::Acquire);
            while let Some(words) = seat.runs.take(*taken) {
                *taken += 1;
                self.map.add(number, Run::of(words));
            }
            self.map.set_over(number, over);
        }
        let Some(named) = &mut self.traced else {
            self.map.hand_over(out.intervals, &mut |_, (from, to)| vec![(from, to, None)]);
            if out.until_ns < u64::MAX {
                self.map.begin();
            }
            return Ok(());
        };
        let own = named.own;
        named.traced.follow(&mut named.actors, &|_| own)?;
        self.map.hand_over(out.intervals, &mut |cpu, stretch| named.cut(cpu, stretch));
        for (cpu, end) in self.map.ends() {
            if let Some(past) = named.traced.cpus.get_mut(&cpu) {
                past.forget(end);
            }
        }
        if out.until_ns < u64::MAX {
            self.map.begin();
            named.traced.ring.begin(out.until_ns);
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Closed {
        let seats = self.seats.iter().map(|(seat, _)| &**seat);
        let mut counts = Counts::totals(seats.clone().map(|seat| &seat.counts));
        counts.push(self.map.left_out);
        counts.extend(Spinning::totals(seats.clone().map(|seat| &seat.spinning)));
        counts[LOST] += self.traced.as_ref().map_or(0, |named| named.traced.ring.lost());
        let of = |value: fn(&Seat) -> u64| {
            let all = || seats.clone().map(value);
            match (all().min().unwrap_or(0), all().max().unwrap_or(0)) {
                (low, high) if low == high => format!("{low}"),
                (low, high) => format!("{low} to {high}"),
            }
        };
        let threshold = of(|seat| seat.threshold.load(Ordering::Relaxed));
        let mut text = format!("what is called a gap is longer than {threshold} ns");
        if self.threshold.is_none() {
            let look = of(|seat| seat.look.load(Ordering::Relaxed));
            text.push_str(&format!(": a look at the clock takes {look} ns (median)"));
        }
        let mut notes = vec![Condition { id: "threshold".to_owned(), text }];
        let unknown = self.traced.as_ref().and_then(|named| named.traced.followed.unknown());
        notes.extend(unknown.map(|why| {
            let text = format!("what is called other has no names: {why}");
            Condition { id: "sources".to_owned(), text }
        }));
        Closed { counts, notes }
    }
}
