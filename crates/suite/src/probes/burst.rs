//! `burst`: how far a consumer falls behind packets that arrive at a steady rate (as queuelat).

use std::hint::black_box;
use std::io;
use std::sync::Arc;

use punctual_core::schema::{Condition, Role, Tells, Unit};
use punctual_sys::clock::monotonic_ns;
use punctual_sys::timer::{AbsoluteSleep, Wait, Waited};

use super::counts::Counts;
use super::margin::{COUNTERS, MARGIN, Margin, Spinning};
use crate::recorder::Recorder;
use crate::registry::probe::{
    By, Closed, CounterEntry, Pace, Primary, ProbeEntry, ProbeThread, SeriesEntry, Session, Stage,
    State, Stop, Window,
};
use crate::registry::{Default, Kind, Param, Values};

pub(super) const ENTRY: ProbeEntry = ProbeEntry {
    name: "burst",
    summary: "how far a consumer falls behind packets that arrive at a rate (as queuelat)",
    help: "Each thread is a consumer that polls, as a packet processor does. Packet k of a round \
arrives k / rate after its start: nothing produces it but the clock, so nothing can hold the producer \
up. The thread reads the clock, records how long the oldest packet that it finds has waited and how \
many wait, and takes up to 32 of them, of each of which it copies size bytes. Packets for which the \
queue has no room are dropped; the oldest has then waited for longer than queue / rate, so with that \
as the deadline a drop is a FAIL. A periodic test sees one stall in each period; here \
several short ones in a row add up, until the consumer has caught up. By default the thread sleeps \
for a tenth of the time (margin=10%), because a spinning real-time thread can hang a board; no packet \
arrives then. If something keeps the thread past the end of a round, packets go on to arrive until it \
looks again. Follows queuelat of rt-tests.",
    params: &[
        Param {
            name: "rate",
            kind: Kind::Count { low: 1_000, high: 100_000_000 },
            default: Default::Value("100000"),
            help: "packets a second",
        },
        Param {
            name: "queue",
            kind: Kind::Count { low: 1, high: 1 << 30 },
            default: Default::Value("128"),
            help: "packets that can wait",
        },
        Param {
            name: "size",
            kind: Kind::Count { low: 1, high: PACKET_MAX },
            default: Default::Value("64"),
            help: "bytes to copy of each packet",
        },
        MARGIN,
    ],
    overrides: &[],
    without: &[],
    check: |_| Ok(()),
    needs: &[],
    device: None,
    pace: Pace::BackToBack,
    dithers: |_| false,
    primary: Primary {
        name: "latency",
        meaning: "the consumer finds the oldest packet minus that has arrived",
        nouns: ("look that finds packets", "looks that find packets"),
        by: By::Thread,
    },
    series: &[SeriesEntry {
        name: "queue",
        meaning: "packets that wait when the consumer looks",
        role: Role::Aside,
        unit: Unit::Packets,
        by: By::Thread,
    }],
    counters: &[
        CounterEntry {
            name: "dropped",
            meaning: "packets for which the queue had no room",
            tells: Tells::Nothing,
        },
        CounterEntry { name: "packets", meaning: "that arrived", tells: Tells::Nothing },
        COUNTERS[0],
        COUNTERS[1],
    ],
    state: State::There(open),
};

/// The largest packet, bytes: a jumbo frame.
const PACKET_MAX: u64 = 9_000;

/// Packets that the consumer takes between two looks, as packet processors do.
const BATCH: u64 = 32;

/// Packets in memory; the consumer takes one after the other.
const POOL: usize = 256;

#[allow(clippy::unnecessary_wraps, reason = "sessions can fail to open; this one does not")]
fn open(values: &Values, stage: &mut Stage<'_>) -> Result<Box<dyn Session>, String> {
    Ok(Box::new(Bursts {
        rate: Rate(values.number("rate")),
        queue: values.number("queue"),
        size: usize::try_from(values.number("size")).unwrap_or(1),
        margin: Margin::of(values),
        break_ns: stage.break_ns,
        threads: Vec::new(),
    }))
}

struct Bursts {
    rate: Rate,
    queue: u64,
    size: usize,
    margin: Margin,
    break_ns: i64,
    threads: Vec<(Arc<Counts<2>>, Arc<Spinning>)>,
}

/// The entry's counters.
const DROPPED: usize = 0;
const PACKETS: usize = 1;

impl Session for Bursts {
    fn thread(&mut self, _: u32) -> Result<Box<dyn ProbeThread>, String> {
        let Self { rate, queue, size, margin, break_ns, .. } = *self;
        let (counts, spinning): (Arc<Counts<2>>, Arc<Spinning>) = (Arc::default(), Arc::default());
        self.threads.push((Arc::clone(&counts), Arc::clone(&spinning)));
        let (packets, copy) = (vec![0; POOL * size], vec![0; size]);
        Ok(Box::new(Consumer {
            rate,
            queue,
            size,
            margin,
            break_ns,
            counts,
            spinning,
            packets,
            copy,
            next: 0,
        }))
    }

    fn close(self: Box<Self>) -> Closed {
        let mut counts = Counts::totals(self.threads.iter().map(|(counts, _)| &**counts));
        counts.extend(Spinning::totals(self.threads.iter().map(|(_, spinning)| spinning)));
        Closed { counts, notes: Vec::new() }
    }
}

/// Packets a second.
#[derive(Clone, Copy)]
struct Rate(u64);

impl Rate {
    /// How many have arrived so long after the start, ns.
    fn arrived(self, ns: u64) -> u64 {
        ns.saturating_mul(self.0) / 1_000_000_000
    }

    /// How long after the start a packet arrives, counted from 0, ns.
    fn arrives(self, packet: u64) -> u64 {
        (packet + 1).saturating_mul(1_000_000_000).div_ceil(self.0)
    }
}

struct Consumer {
    rate: Rate,
    queue: u64,
    size: usize,
    margin: Margin,
    break_ns: i64,
    counts: Arc<Counts<2>>,
    spinning: Arc<Spinning>,
    packets: Vec<u8>,
    /// One packet.
    copy: Vec<u8>,
    /// The one that is taken next.
    next: usize,
}

impl ProbeThread for Consumer {
    fn prepare(&mut self) -> io::Result<()> {
        self.packets.fill(1);
        Ok(())
    }

    fn run(&mut self, window: &Window, tracks: &mut [Recorder], stop: &Stop) -> io::Result<()> {
        let [waits, lengths] = tracks else {
            return Err(io::Error::other("two series come from a thread"));
        };
        while AbsoluteSleep.until(window.first)? == Waited::Interrupted && !stop.is_set() {}
        self.counts.begin();
        self.spinning.begin();
        let arrive_ns = self.margin.spin_ns();
        let first = monotonic_ns();
        let (mut left, mut begin) = (window.samples, first);
        while begin < window.end && left > 0 && !stop.is_set() {
            let most_ns = window.end - begin;
            let arrive_ns = arrive_ns.min(most_ns);
            let mut round = Round { begin, arrive_ns, most_ns, all: self.rate.arrived(arrive_ns) };
            self.consume(&mut round, (waits, lengths), &mut left, stop);
            // A round may be too short for a packet.
            let end = monotonic_ns().max(begin + arrive_ns);
            self.spinning.spun(self.margin, end - begin);
            begin = end;
            if !self.margin.is_none() && begin < window.end && left > 0 {
                begin = self.margin.sleep(&self.spinning);
            }
        }
        self.spinning.end(self.margin, begin - first);
        Ok(())
    }

    fn notes(&self) -> Vec<Condition> {
        self.spinning.notes()
    }
}

/// Packets that arrive one after the other.
struct Round {
    /// Start, CLOCK_MONOTONIC, ns.
    begin: u64,
    /// For how long they arrive, ns.
    arrive_ns: u64,
    /// For how long they may at most: until the window ends, ns.
    most_ns: u64,
    /// How many there are.
    all: u64,
}

impl Round {
    /// How many have arrived so long after the start, ns, if the time for them is over. A thread that
    /// comes a whole round late was kept away, and they arrived on: none that was due is left out. It
    /// can be late so once, so that one that is slower than they are leaves its margin.
    #[cold]
    fn arrived_late(&mut self, rate: Rate, ns: u64) -> u64 {
        if std::mem::replace(&mut self.arrive_ns, 0) > 0 && ns >= Margin::ROUND_NS {
            self.all = self.all.max(rate.arrived(ns.min(self.most_ns)));
        }
        self.all
    }
}

impl Consumer {
    #[inline(always)]
    fn consume(
        &mut self,
        round: &mut Round,
        (waits, lengths): (&mut Recorder, &mut Recorder),
        left: &mut u64,
        stop: &Stop,
    ) {
        let (mut taken, mut dropped) = (0, 0);
        while taken < round.all && *left > 0 && !stop.is_set() {
            let now = monotonic_ns();
            let ns = now - round.begin;
            let arrived = match ns < round.arrive_ns {
                true => self.rate.arrived(ns),
                false => round.arrived_late(self.rate, ns),
            };
            let waiting = arrived - taken;
            if waiting == 0 {
                continue;
            }
            let oldest = round.begin + self.rate.arrives(taken);
            let waited = now.saturating_sub(oldest).cast_signed();
            waits.record(now, waited, 0);
            lengths.record(now, waiting.cast_signed(), 0);
            *left -= 1;
            let lost = waiting.saturating_sub(self.queue);
            dropped += lost;
            let batch = (waiting - lost).min(BATCH);
            (0..batch).for_each(|_| self.take());
            taken += lost + batch;
            if waited > self.break_ns {
                stop.set_broken(oldest, waited);
            }
        }
        self.counts.add(DROPPED, dropped);
        self.counts.add(PACKETS, taken);
    }

    #[inline(always)]
    fn take(&mut self) {
        let from = self.next * self.size;
        self.copy.copy_from_slice(&self.packets[from..from + self.size]);
        black_box(&mut self.copy);
        self.next = (self.next + 1) % POOL;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::aim::Aim;
    use punctual_core::stats::Limits;

    #[test]
    fn a_packet_has_arrived_when_it_arrives_and_not_before() {
        for rate in [1_000, 99_999, 3_000_000, 100_000_000].map(Rate) {
            for packet in [0, 1, 2, 6, 1_000, 99_999] {
                let at = rate.arrives(packet);
                assert_eq!(rate.arrived(at), packet + 1, "{} a second", rate.0);
                assert_eq!(rate.arrived(at - 1), packet);
            }
        }
    }

    fn session(rate: u64, queue: u64, size: usize) -> Bursts {
        Bursts {
            rate: Rate(rate),
            queue,
            size,
            margin: Margin(10),
            break_ns: i64::MAX,
            threads: Vec::new(),
        }
    }

    fn run(mut session: Bursts, ns: u64) -> (Vec<u64>, [Recorder; 2]) {
        let mut thread = session.thread(0).unwrap();
        thread.prepare().unwrap();
        let first = monotonic_ns();
        let window = Window { first, end: first + ns, samples: u64::MAX, aim: Aim::NONE };
        let mut tracks = [Recorder::new(Limits::NONE), Recorder::new(Limits::NONE)];
        for track in &mut tracks {
            track.begin(first);
        }
        thread.run(&window, &mut tracks, &Stop::default()).unwrap();
        (Box::new(session).close().counts, tracks)
    }

    #[test]
    fn packets_that_find_no_room_are_dropped_and_the_others_taken() {
        // Nobody copies 900 GB a second.
        let (counts, [waits, lengths]) = run(session(100_000_000, 40, 9_000), 50_000_000);
        let [dropped, packets, ..] = counts[..] else { panic!("{counts:?}") };
        assert!(dropped > 0 && packets > dropped, "{counts:?}");
        assert_eq!(waits.samples(), lengths.samples());
        assert!(lengths.finish().moments.max > 40);
        assert!(packets - dropped <= waits.samples() * BATCH);
    }

    #[test]
    fn packets_that_are_due_while_the_consumer_is_kept_away_are_all_counted() {
        let rate = Rate(100_000);
        let ms = |ms: u64| ms * 1_000_000;
        let round = || Round { begin: 0, arrive_ns: ms(9), most_ns: ms(150), all: 900 };
        // 200 ms late, of which the window has 150: all of these, and no more later.
        let mut kept = round();
        assert_eq!(kept.arrived_late(rate, ms(200)), 15_000);
        assert_eq!(kept.arrived_late(rate, ms(400)), 15_000);
        // As late as a consumer that has a few packets left to take, which then is kept away: what
        // is slow takes no longer for that.
        let mut slow = round();
        assert_eq!([9, 11, 300].map(|late| slow.arrived_late(rate, ms(late))), [900; 3]);
        let mut whole = round();
        assert_eq!(whole.arrived_late(rate, ms(10)), 1_000);
    }

    #[test]
    fn a_consumer_that_keeps_up_drops_nothing() {
        // The queue has room for any stall of the machine.
        let (counts, [waits, lengths]) = run(session(10_000, 1 << 30, 64), 100_000_000);
        let (dropped, packets) = (counts[0], counts[1]);
        assert_eq!(dropped, 0);
        assert!((1..=1_000).contains(&packets), "{packets}");
        assert!(lengths.finish().moments.min >= 1 && waits.finish().moments.min >= 0);
    }
}
