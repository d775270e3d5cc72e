//! Activations of threads of the kernel, as its timerlat tracer tells them
//! (Documentation/trace/timerlat-tracer.rst).

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use punctual_core::units::SECOND_NS;

use super::super::tracer::{LOOK_NS, Relay, Take, Tracer};
use crate::registry::Values;
use crate::registry::probe::{Closed, Drained, ProbeThread, Session, Stage};
use crate::ring::{Field, Ring};

pub(super) const TIMERLAT: (&str, &str) = ("timerlat", "timerlat/");

/// Series of the session: the interrupt, and the way from there to the thread.
const INTERRUPT: usize = 0;
pub(super) const THREAD: usize = 4;

/// A CPU's ring, KiB: two events of 40 bytes for each activation, at most 10,000 a second.
const RING_KIB: u64 = 4 << 10;

/// The kernel's bounds of its period, us.
const PERIODS_US: std::ops::RangeInclusive<u64> = 100..=1_000_000;

pub(super) fn check(values: &Values) -> Result<(), String> {
    let interval_ns = values.number("interval");
    if values.text("tracer") != TIMERLAT.0
        || interval_ns.is_multiple_of(1_000) && PERIODS_US.contains(&(interval_ns / 1_000))
    {
        return Ok(());
    }
    Err(values.wrong("interval", "timerlat has whole microseconds, from 100us to 1s"))
}

pub(super) fn open(stage: &mut Stage<'_>) -> Result<Box<dyn Session>, String> {
    let zero = |file| (file, "0".to_owned());
    let stops = ["osnoise/stop_tracing_us", "osnoise/stop_tracing_total_us", "osnoise/print_stack"];
    let settings = [
        ("osnoise/cpus", stage.bound.to_string()),
        ("osnoise/timerlat_period_us", (stage.interval_ns / 1_000).to_string()),
    ];
    let settings = [&settings[..], &stops.map(zero)].concat();
    let (tracer, ring) = Tracer::start(stage, TIMERLAT, &settings, RING_KIB)?;
    let format = ring.switches().format("ftrace/timerlat").ok_or("timerlat without its event")?;
    let field = |name| format.field(name).ok_or_else(|| format!("timerlat without {name}"));
    let fields = [field("seqnum")?, field("context")?, field("timer_latency")?];
    let told = TimerlatTold { id: format.id, fields, cpus: BTreeMap::new() };
    Ok(Box::new(Timerlat {
        shared: Arc::new(Mutex::new(TimerlatShared { ring, told, recorded: Vec::new() })),
        tracer,
        interval_ns: stage.interval_ns,
        break_ns: stage.break_ns,
        begins: 0,
    }))
}

struct Timerlat {
    shared: Arc<Mutex<TimerlatShared>>,
    tracer: Tracer,
    interval_ns: u64,
    break_ns: i64,
    /// When the measurement begins, ns of CLOCK_MONOTONIC.
    begins: u64,
}

struct TimerlatShared {
    ring: Ring,
    told: TimerlatTold,
    /// What threads have recorded, with their numbers.
    recorded: Vec<(u32, Activation)>,
}

fn locked(shared: &Mutex<TimerlatShared>) -> MutexGuard<'_, TimerlatShared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TimerlatShared {
    fn follow(&mut self) -> io::Result<()> {
        let Self { ring, told, .. } = self;
        ring.read(&mut |cpu, at, event| {
            told.event(cpu, at, event);
        })
    }
}

/// One activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Activation {
    /// When the thread told its latency, ns of CLOCK_MONOTONIC.
    at: u64,
    latency_ns: u64,
    /// What of that had passed when the timer's function ran in the interrupt.
    interrupt_ns: Option<u64>,
}

impl Activation {
    fn release(&self) -> u64 {
        self.at.saturating_sub(self.latency_ns)
    }
}

/// What the events of the tracer tell.
struct TimerlatTold {
    id: u16,
    /// The number of the activation, who tells, and the latency.
    fields: [Field; 3],
    cpus: BTreeMap<u32, OfCpu>,
}

#[derive(Default)]
struct OfCpu {
    /// Number and latency of the latest interrupt.
    interrupt: Option<(u64, u64)>,
    activations: VecDeque<Activation>,
}

impl TimerlatTold {
    fn event(&mut self, cpu: u32, at: u64, event: &[u8]) -> Option<()> {
        if u16::from_ne_bytes(*event.first_chunk()?) != self.id {
            return None;
        }
        let [number, context, latency_ns] = self.fields.map(|field| field.number(event));
        let of_cpu = self.cpus.entry(cpu).or_default();
        match context? {
            0 => of_cpu.interrupt = Some((number?, latency_ns?)),
            1 => {
                let interrupt = of_cpu.interrupt.take().filter(|(of, _)| Some(*of) == number);
                let (latency_ns, interrupt_ns) = (latency_ns?, interrupt.map(|(_, ns)| ns));
                of_cpu.activations.push_back(Activation { at, latency_ns, interrupt_ns });
            }
            _ => {}
        }
        Some(())
    }
}

/// How many releases there were between two.
fn missed(from: u64, to: u64, interval_ns: u64) -> u64 {
    // The clock is read anew for the event's time.
    ((to.saturating_sub(from) + interval_ns / 2) / interval_ns).saturating_sub(1)
}

impl Session for Timerlat {
    fn is_of_process(&self) -> bool {
        false
    }

    fn thread(&mut self, number: u32) -> Result<Box<dyn ProbeThread>, String> {
        let (cpu, shared) = (self.tracer.cpu(number), Arc::clone(&self.shared));
        let (interval_ns, break_ns) = (self.interval_ns, self.break_ns);
        let mut last = None;
        let take: Box<Take> = Box::new(move |window, recorder, stop| {
            let mut shared = locked(&shared);
            shared.follow()?;
            loop {
                let all = &mut shared.told.cpus.entry(cpu).or_default().activations;
                let Some(next) = all.front().filter(|one| one.release() < window.end) else {
                    return Ok(!stop.is_set());
                };
                if recorder.samples() >= window.samples {
                    return Ok(false);
                }
                let next = *next;
                all.pop_front();
                let release = next.release();
                let before = last.replace(release).unwrap_or(release);
                if release < window.first {
                    continue;
                }
                // What was missed before the window is not of it.
                let of_window = (release - window.first) / interval_ns;
                let missed = missed(before, release, interval_ns).min(of_window);
                let latency = next.latency_ns.cast_signed();
                recorder.record(next.at, latency, missed);
                if latency > break_ns {
                    stop.set_broken(release, latency);
                }
                shared.recorded.push((number, next));
            }
        });
        Ok(Box::new(Relay { number, tracer: self.tracer.clone(), take }))
    }

    fn below(&self, _: u32) -> u32 {
        1
    }

    fn longest_pause_ns(&self) -> u64 {
        2 * LOOK_NS
    }

    fn drain(&mut self, out: &mut Drained<'_>) -> io::Result<()> {
        let is_warm_up = out.until_ns != u64::MAX;
        if is_warm_up {
            self.begins = out.until_ns;
        }
        let mut shared = locked(&self.shared);
        shared.follow()?;
        for (number, one) in shared.recorded.drain(..) {
            let (Some(tracks), Some(interrupt_ns)) =
                (out.tracks.get_mut(number as usize), one.interrupt_ns)
            else {
                continue;
            };
            // Those of the warm-up may come after its end.
            if is_warm_up || one.release() >= self.begins {
                let thread_ns = one.latency_ns.saturating_sub(interrupt_ns);
                tracks[INTERRUPT].record(one.at, interrupt_ns.cast_signed(), 0);
                tracks[THREAD].record(one.at, thread_ns.cast_signed(), 0);
            }
        }
        if is_warm_up {
            shared.ring.begin(out.until_ns);
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Closed {
        let lost = locked(&self.shared).ring.lost();
        Closed { counts: vec![0, lost], notes: vec![self.tracer.note()] }
    }
}

const _: () = assert!(*PERIODS_US.end() * 1_000 == SECOND_NS);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::Format;

    const FORMAT: &str = "name: timerlat\nID: 18\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned int seqnum;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:int context;\toffset:12;\tsize:4;\tsigned:1;\n\
        \tfield:u64 timer_latency;\toffset:16;\tsize:8;\tsigned:0;\n";

    fn event(number: u32, context: u32, latency: u64) -> Vec<u8> {
        let head = [18, 0, 0, 0, 0, 0, 0, 0];
        let rest = [&number.to_ne_bytes()[..], &context.to_ne_bytes(), &latency.to_ne_bytes()];
        [&head[..], &rest.concat()].concat()
    }

    #[test]
    fn an_activation_has_the_interrupt_of_its_own_number() {
        let format = Format::parse(FORMAT).unwrap();
        let fields = ["seqnum", "context", "timer_latency"].map(|name| format.field(name).unwrap());
        let mut told = TimerlatTold { id: 18, fields, cpus: BTreeMap::new() };
        for (cpu, at, event) in [
            (0, 1_030, event(7, 0, 20)),
            (1, 1_040, event(8, 0, 35)),
            (0, 1_060, event(7, 1, 50)),
            (1, 1_070, event(9, 1, 60)),
            (0, 1_080, event(7, 2, 70)),
        ] {
            told.event(cpu, at, &event);
        }
        let of = |cpu| told.cpus[&cpu].activations.iter().copied().collect::<Vec<_>>();
        let whole = Activation { at: 1_060, latency_ns: 50, interrupt_ns: Some(20) };
        assert_eq!(of(0), [whole]);
        assert_eq!(of(1), [Activation { at: 1_070, latency_ns: 60, interrupt_ns: None }]);
        assert_eq!(whole.release(), 1_010);
    }

    #[test]
    fn releases_in_between_are_counted_whatever_the_event_s_time_adds() {
        for (from, to, between) in
            [(0, 0, 0), (0, 1_000, 0), (90, 1_010, 0), (0, 1_090, 0), (10, 3_070, 2)]
        {
            assert_eq!(missed(from, to, 1_000), between, "{from} {to}");
        }
    }
}
