//! Makes the table of `stats/extreme/table.rs`: quantiles of A^2 of samples of a generalised Pareto
//! distribution, under the one that was fitted to them.

use punctual_core::random::Random;
use punctual_core::stats::extreme::{Excess, Excesses, Pareto, anderson_darling};

/// Samples for each shape, and excesses in each.
const SAMPLES: usize = 20_000;
const EXCESSES: usize = 500;

const P_VALUES: [f64; 14] =
    [0.99, 0.95, 0.9, 0.75, 0.5, 0.3, 0.2, 0.1, 0.05, 0.025, 0.01, 0.005, 0.0025, 0.001];

fn statistic(shape: f64, random: &mut Random) -> f64 {
    let tail = Pareto { shape, scale: 1e6, nll: 0.0 };
    let mut uniform = || ((random.word() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    let mut cells: Vec<Excess> = (0..EXCESSES)
        .map(|_| tail.level(uniform().recip()))
        .map(|low| Excess { low, high: low + 1.0, count: 1.0 })
        .collect();
    cells.sort_by(|a, b| a.low.total_cmp(&b.low));
    let excesses = Excesses::new(cells, 0.0).unwrap();
    anderson_darling(&excesses, &excesses.fit())
}

fn row(number: u32) -> String {
    let shape = f64::from(number) / 10.0 - 0.5;
    let mut random = Random::new(u64::from(number) << 32);
    let mut all: Vec<_> = (0..SAMPLES).map(|_| statistic(shape, &mut random)).collect();
    all.sort_by(f64::total_cmp);
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of the samples"
    )]
    let at = |p: f64| all[((1.0 - p) * SAMPLES as f64) as usize];
    let quantiles: Vec<_> = P_VALUES.iter().map(|p| format!("{:.4}", at(*p))).collect();
    format!("    [{}], // {shape:.1}", quantiles.join(", "))
}

fn main() {
    let rows: Vec<_> = (0..2)
        .map(|half| {
            std::thread::spawn(move || (half * 8..half * 8 + 8).map(row).collect::<Vec<_>>())
        })
        .collect();
    for rows in rows {
        rows.join().unwrap().iter().for_each(|row| println!("{row}"));
    }
}
