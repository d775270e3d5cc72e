//! Seconds of made-up runs whose true levels are known, and how often the answer has them.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use punctual_core::random::Random;
use punctual_core::stats::extreme::{Answer, Gate, HORIZON, Pareto, Seconds, answer};

/// The scale of all tails, ns.
const SCALE: f64 = 3_000.0;
/// Where they begin, ns.
const BASE: f64 = 50_000.0;
/// Events with an excess, per second.
const RATE: f64 = 0.25;

/// What is generated.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    /// Independent events.
    Clean,
    /// Each second has the larger of its own event and that of the second before: extremal index
    /// 0.5.
    MovingMaxima,
    /// One second in a thousand has an excess of another tail, which begins 10 scales further, with
    /// four times the scale.
    Mixture,
    /// Excesses grow by half over the run.
    Trend,
}

/// A run to be made up.
#[derive(Clone, Copy)]
pub struct Case {
    pub kind: Kind,
    pub shape: f64,
    /// Steps of the clock, ns.
    pub step: f64,
    pub seconds: usize,
}

/// What became of the replicates of a case.
#[derive(Default)]
pub struct Outcome {
    pub replicates: u64,
    pub opened: u64,
    /// Of those opened, how many intervals of the level have the true one.
    pub covered: u64,
    /// How many intervals are below and above it.
    pub missed: [u64; 2],
    /// By gate.
    pub refused: [u64; 6],
}

fn uniform(random: &mut Random) -> f64 {
    ((random.word() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

impl Case {
    /// An hour or four, as the name says.
    pub fn all() -> Vec<(String, Case)> {
        let mut all = Vec::new();
        for (hours, seconds) in [(1, 3_600), (4, 14_400)] {
            for (unit, step) in [("ns", 1.0), ("us", 1_000.0)] {
                for shape in [-0.3, 0.05, 0.3] {
                    let case = Case { kind: Kind::Clean, shape, step, seconds };
                    all.push((format!("{shape:>5} {unit} {hours} h"), case));
                }
            }
            for (name, kind) in [
                ("moving maxima", Kind::MovingMaxima),
                ("mixture", Kind::Mixture),
                ("trend", Kind::Trend),
            ] {
                let case = Case { kind, shape: 0.05, step: 1.0, seconds };
                all.push((format!("{name} {hours} h"), case));
            }
        }
        all
    }

    fn tail(&self, scale: f64) -> Pareto {
        Pareto { shape: self.shape, scale, nll: 0.0 }
    }

    #[allow(clippy::cast_possible_truncation, reason = "latencies of microseconds")]
    fn seconds(&self, random: &mut Random) -> Seconds {
        let n = self.seconds;
        let mut before = 0.0_f64;
        let values = (0..n).map(|i| {
            // Below the tail there is a body.
            let mut value = BASE - 10_000.0 * uniform(random);
            let scale = match self.kind {
                Kind::Trend => SCALE * (1.0 + 0.5 * i as f64 / n as f64),
                _ => SCALE,
            };
            let mut own = 0.0_f64;
            let mut until = -uniform(random).ln();
            while until < RATE {
                own = own.max(BASE + self.tail(scale).level(uniform(random).recip()));
                until -= uniform(random).ln();
            }
            if self.kind == Kind::MovingMaxima {
                value = value.max(before);
                before = own;
            }
            if self.kind == Kind::Mixture && uniform(random) < 0.001 {
                own = BASE + 10.0 * SCALE + self.tail(4.0 * SCALE).level(uniform(random).recip());
            }
            (value.max(own) / self.step).floor() * self.step
        });
        Seconds::new(values.map(|value| value as i64).collect())
    }

    /// What one event is above on average in ten runs.
    pub fn level(&self) -> f64 {
        BASE + self.tail(SCALE).level(RATE * self.seconds as f64 * HORIZON as f64)
    }

    /// The replicates with these seeds, on two threads.
    pub fn calibrate(&self, seeds: Range<u64>) -> Outcome {
        let next = AtomicU64::new(seeds.start);
        let work = || {
            let mut outcome = Outcome::default();
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= seeds.end {
                    return outcome;
                }
                self.replicate(seed, &mut outcome);
            }
        };
        let parts = std::thread::scope(|scope| {
            [0; 2].map(|_| scope.spawn(work)).map(|thread| thread.join().unwrap())
        });
        parts.into_iter().fold(Outcome::default(), |mut all, part| {
            all.replicates += part.replicates;
            all.opened += part.opened;
            all.covered += part.covered;
            for (sum, n) in all.missed.iter_mut().zip(part.missed) {
                *sum += n;
            }
            for (sum, n) in all.refused.iter_mut().zip(part.refused) {
                *sum += n;
            }
            all
        })
    }

    fn replicate(&self, seed: u64, outcome: &mut Outcome) {
        let mut random = Random::new(seed.wrapping_mul(0x1_0000_0001) + 77);
        outcome.replicates += 1;
        match answer(&self.seconds(&mut random)) {
            Answer::Estimate(estimate) => {
                outcome.opened += 1;
                let (low, high) = estimate.level_interval;
                if high < self.level() {
                    outcome.missed[0] += 1;
                } else if low > self.level() {
                    outcome.missed[1] += 1;
                } else {
                    outcome.covered += 1;
                }
            }
            Answer::Refused(refusal) => {
                let gate = Gate::ALL.iter().position(|gate| *gate == refusal.gate).unwrap();
                outcome.refused[gate] += 1;
            }
        }
    }
}
