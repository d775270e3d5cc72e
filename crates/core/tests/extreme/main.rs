//! Whether the gates of the extrapolation open and close on made-up runs, and whether its 95 %
//! interval has the true level: a fixed sample of `examples/calibrate_extreme.rs`, which has 2,000
//! replicates.

mod generators;

use generators::{Case, Kind};

const REPLICATES: u64 = 100;

#[test]
fn levels_lie_in_their_intervals_where_the_gates_open() {
    let clean = Case::all().into_iter().filter(|(_, case)| {
        case.kind == Kind::Clean && case.seconds == 3_600
            || case.kind == Kind::MovingMaxima && case.seconds == 14_400
    });
    for (name, case) in clean {
        let outcome = case.calibrate(0..REPLICATES);
        assert!(outcome.opened * 2 >= REPLICATES, "{name}: {} opened", outcome.opened);
        // Of 50 or more with 92 %, fewer than 80 % have a probability of 0.4 %.
        assert!(outcome.covered * 5 >= outcome.opened * 4, "{name}: {} covered", outcome.covered);
    }
}

#[test]
fn mixtures_and_trends_are_refused() {
    let bad = Case::all().into_iter().filter(|(_, case)| {
        matches!(case.kind, Kind::Mixture | Kind::Trend) && case.seconds == 14_400
    });
    for (name, case) in bad {
        let outcome = case.calibrate(0..REPLICATES);
        // Of 100 with 10 %, more than 18 have a probability of 0.5 %.
        assert!(outcome.opened <= 18, "{name}: {} opened", outcome.opened);
    }
}
