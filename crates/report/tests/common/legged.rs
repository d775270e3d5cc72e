//! Runs whose samples were taken apart, as a repeat of a board would have done it.

use punctual_core::block::Outlier;
use punctual_core::legs::{CellLegs, Legs, SampleLegs};
use punctual_core::run::LoadedRun;

use super::{MS, Random};

/// Adds legs to every cell of a run: `busy` of a hundred releases find interrupts off for up to
/// 300 us.
pub fn legs_of_all(mut run: LoadedRun, busy: u64) -> LoadedRun {
    let mut random = Random::new(7 + busy);
    let mut cells = Vec::new();
    for (cell, data) in run.run.cells.iter().zip(&mut run.cells) {
        let samples: Vec<_> = (0..1_000).map(|n| sample(&mut random, n, busy)).collect();
        let Some(thread) = data.threads.first_mut() else { continue };
        let outlier = |(number, sample): (u64, &SampleLegs)| Outlier {
            at: number * MS,
            latency: sample.latency_ns().unwrap() as i64,
        };
        thread.series_mut(0).outliers = (1..).zip(&samples).map(outlier).collect();
        cells.push(CellLegs::of(cell.key.clone(), samples));
    }
    run.legs = Some(Legs { run_id: run.run.run_id.clone(), instruction_ns: 4, cells });
    run
}

fn sample(random: &mut Random, number: u64, busy: u64) -> SampleLegs {
    if number == 500 {
        return SampleLegs { idle: false, ends_ns: vec![812] };
    }
    let is_busy = number % 100 < busy;
    let mut end = 0;
    let legs = [if is_busy { 300_000.0 } else { 30.0 }, 900.0, 9_000.0, 1_800.0, 600.0, 20.0];
    let base = [208.0, 1_472.0, 4_000.0, 3_300.0, 2_000.0, 184.0];
    let ends = base.into_iter().zip(legs).map(|(base, spread)| {
        end += (base + spread * random.unit().powi(4)) as u64;
        end
    });
    SampleLegs { idle: !is_busy, ends_ns: ends.collect() }
}
