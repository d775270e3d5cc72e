//! How often the gates of the extrapolation open on made-up runs, and how often its 95 % interval
//! then has the true level: `cargo run --release -p punctual-core --example calibrate_extreme`,
//! with a number of replicates other than 2,000 as an argument, and as a second one the first seed,
//! 0 if there is none.

use punctual_core::stats::extreme::Gate;

#[path = "../tests/extreme/generators.rs"]
mod generators;

fn main() {
    let number = |place, default| {
        std::env::args().nth(place).map_or(default, |text| text.parse().expect("a number"))
    };
    let (replicates, first) = (number(1, 2_000), number(2, 0));
    let gates: String = Gate::ALL.iter().map(|gate| format!(" {:>12}", gate.name())).collect();
    println!("{:20} {:>7} {:>8} {:>6} {:>6}{gates}", "run", "opened", "covered", "below", "above");
    for (name, case) in generators::Case::all() {
        let outcome = case.calibrate(first..first + replicates);
        let refused: String = outcome.refused.iter().map(|n| format!(" {n:>12}")).collect();
        println!(
            "{name:20} {:>7} {:>7.1}% {:>6} {:>6}{refused}",
            outcome.opened,
            100.0 * outcome.covered as f64 / outcome.opened.max(1) as f64,
            outcome.missed[0],
            outcome.missed[1],
        );
    }
}
