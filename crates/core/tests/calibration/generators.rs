//! Late activations at an interval of 1 ms, as independent ones, in bursts, by stalls, and in
//! regimes.

use punctual_core::block::{SPELL_GAP_NS, Spell};
use punctual_core::random::Random;
use punctual_core::units::SECOND_NS;

pub const MS: u64 = 1_000_000;

/// A number between 0 and 1, both excluded.
pub fn uniform(random: &mut Random) -> f64 {
    ((random.word() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

/// How many trials until the first success, of probability `p` each.
fn geometric(random: &mut Random, p: f64) -> u64 {
    if p >= 1.0 { 1 } else { 1 + (uniform(random).ln() / (-p).ln_1p()) as u64 }
}

pub fn exponential(random: &mut Random, mean: f64) -> f64 {
    -mean * uniform(random).ln()
}

/// Of a gamma distribution with this shape, below 1, and scale 1: algorithm GS of J. H. Ahrens and
/// U. Dieter, Computing 12 (1974).
pub fn gamma(random: &mut Random, shape: f64) -> f64 {
    let bound = 1.0 + shape / std::f64::consts::E;
    loop {
        let p = bound * uniform(random);
        let (found, accepted) = if p <= 1.0 {
            let found = p.powf(1.0 / shape);
            (found, (-found).exp())
        } else {
            let found = -((bound - p) / shape).ln();
            (found, found.powf(shape - 1.0))
        };
        if uniform(random) <= accepted {
            return found;
        }
    }
}

/// What makes activations late.
#[derive(Debug, Clone, Copy)]
pub enum Lateness {
    /// Bursts of a geometrically distributed number of activations with this mean.
    Bursts(f64),
    /// Stalls of an exponentially distributed time with this mean, ms: one late start, which misses
    /// the releases in between.
    Stalls(f64),
}

impl Lateness {
    /// How long one lasts on average, in activations.
    pub fn mean(self) -> f64 {
        match self {
            Self::Bursts(mean) | Self::Stalls(mean) => mean,
        }
    }
}

/// Lateness that begins `rate` times an activation on average, over `releases` of them: spells of
/// lateness, whose sum of late activations counts missed ones. The process is stationary: it may be
/// late at the start.
pub fn late(random: &mut Random, lateness: Lateness, rate: f64, releases: u64) -> Vec<Spell> {
    let calm = 1.0 / rate - lateness.mean();
    assert!(calm > 1.0, "more often late than not");
    let mut spells = Vec::new();
    let mut at = 0_u64;
    // What is left of a memoryless time is distributed as all of it.
    let mut is_late = uniform(random) < lateness.mean() * rate;
    while at < releases {
        if is_late {
            let spell = one(random, lateness, at, releases);
            at = spell.to / MS + 1;
            spells.push(spell);
        } else {
            at += geometric(random, 1.0 / calm);
        }
        is_late = !is_late;
    }
    spells
}

fn one(random: &mut Random, lateness: Lateness, at: u64, releases: u64) -> Spell {
    let from = at * MS;
    match lateness {
        Lateness::Bursts(mean) => {
            let late = geometric(random, 1.0 / mean).min(releases - at);
            // Each activation is 300 us late.
            Spell { thread: 0, from, to: from + (late - 1) * MS + MS * 3 / 10, late }
        }
        Lateness::Stalls(mean) => {
            let lasts = (exponential(random, mean) * MS as f64) as u64 + MS / 2;
            let to = (from + lasts).min(releases * MS);
            Spell { thread: 0, from, to, late: 1 + (to - from) / MS }
        }
    }
}

/// Something that goes wrong and makes single activations late, again and again for a while.
#[derive(Debug, Clone, Copy)]
pub struct Trouble {
    /// How many are late.
    pub late: u32,
    /// The gaps between them, s, between these two with equal probability.
    pub gaps: [f64; 2],
}

impl Trouble {
    fn longest(self) -> f64 {
        f64::from(self.late - 1) * self.gaps[1]
    }

    /// How many episodes one makes on average: gaps above 1 s part them.
    pub fn episodes(self) -> f64 {
        let [from, to] = self.gaps;
        let parting = ((to - from.max(1.0)) / (to - from)).clamp(0.0, 1.0);
        1.0 + f64::from(self.late - 1) * parting
    }
}

/// Troubles that begin `rate` times an activation on average, independently of each other. One that
/// began before the first activation may go on.
pub fn in_troubles(random: &mut Random, trouble: Trouble, rate: f64, releases: u64) -> Vec<Spell> {
    let before = 1_000.0 * trouble.longest();
    let mut spells = Vec::new();
    let mut begins = -before + exponential(random, 1.0 / rate);
    while begins < releases as f64 {
        let mut at = begins;
        for _ in 0..trouble.late {
            if (0.0..releases as f64).contains(&at) {
                let from = at as u64 * MS;
                spells.push(Spell { thread: 0, from, to: from + MS * 3 / 10, late: 1 });
            }
            let [from, to] = trouble.gaps;
            at += 1_000.0 * (from + (to - from) * uniform(random));
        }
        begins += exponential(random, 1.0 / rate);
    }
    spells.sort_by_key(|spell| spell.from);
    spells
}

/// Single late activations that come in a part `noisy` of the time only, in cycles of `cycle`
/// activations that begin anywhere, and `rate` times an activation on average.
pub fn in_regimes(
    random: &mut Random,
    noisy: f64,
    cycle: f64,
    rate: f64,
    releases: u64,
) -> Vec<Spell> {
    let phase = uniform(random) * cycle;
    let within = |at: u64| (at as f64 + phase) % cycle < noisy * cycle;
    let mut spells = Vec::new();
    let mut at = geometric(random, rate / noisy) - 1;
    while at < releases {
        if within(at) {
            spells.push(Spell { thread: 0, from: at * MS, to: at * MS + MS * 3 / 10, late: 1 });
        }
        at += geometric(random, rate / noisy);
    }
    spells
}

/// Stalls that last `length_s` each, or that long on average, and make everything late in a share of
/// the time; calm times between them are exponentially distributed. One may go on at the start.
pub fn stalls(
    random: &mut Random,
    length_s: f64,
    fixed: bool,
    share: f64,
    seconds: f64,
) -> Vec<Spell> {
    let calm = length_s * (1.0 - share) / share;
    let of = |random: &mut Random| if fixed { length_s } else { exponential(random, length_s) };
    let mut spells = Vec::new();
    // The rest of a stall that is found by chance: of a fixed length any part of it, else as long as
    // a whole one.
    let mut at = 0.0;
    let mut rest = if uniform(random) < share {
        if fixed { length_s * uniform(random) } else { exponential(random, length_s) }
    } else {
        at = exponential(random, calm);
        of(random)
    };
    while at < seconds {
        let end = (at + rest).min(seconds);
        let late = ((end - at) * 1e3).round() as u64;
        if late > 0 {
            let ns = |at: f64| (at * 1e9) as u64;
            spells.push(Spell { thread: 0, from: ns(at), to: ns(end) - 1, late });
        }
        at += rest + exponential(random, calm);
        rest = of(random);
    }
    spells
}

/// The spells of activations that are 300 us late each, at these releases, as they are recorded: at
/// most 100 ms apart and started in one second.
pub fn as_recorded(late: impl IntoIterator<Item = u64>) -> Vec<Spell> {
    let mut spells: Vec<Spell> = Vec::new();
    for at in late {
        let (from, to) = (at * MS, at * MS + MS * 3 / 10);
        let goes_on = |last: &&mut Spell| {
            from <= last.to + SPELL_GAP_NS && to / SECOND_NS == last.to / SECOND_NS
        };
        match spells.last_mut().filter(goes_on) {
            Some(last) => (last.to, last.late) = (to, last.late + 1),
            None => spells.push(Spell { thread: 0, from, to, late: 1 }),
        }
    }
    spells
}

/// Frequent lateness: each activation is late with the probability `share`, independently of the
/// others, or by turns of `turns_s` on average with 1.8 and 0.2 times that.
pub fn frequent(random: &mut Random, share: f64, turns_s: Option<f64>, seconds: u64) -> Vec<Spell> {
    let releases = seconds * 1_000;
    let mut late = Vec::new();
    let (mut begins, mut often) = (0, uniform(random) < 0.5);
    while begins < releases {
        let (p, ends) = match turns_s {
            None => (share, releases),
            Some(mean) => {
                let lasts = 1 + (exponential(random, mean) * 1e3) as u64;
                let factor = if often { 1.8 } else { 0.2 };
                (share * factor, (begins + lasts).min(releases))
            }
        };
        let mut at = begins + geometric(random, p) - 1;
        while at < ends {
            late.push(at);
            at += geometric(random, p);
        }
        (begins, often) = (ends, !often);
    }
    as_recorded(late)
}
