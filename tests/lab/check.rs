//! `lab check`, as `git bisect run` calls it.

use crate::boards::x86_64;
use punctual_harness::{Place, need};

const LIMIT: &str = "wakeup --load hackbench -D 2s --max 100us";

#[test]
fn the_exit_status_tells_good_from_bad_and_from_neither() {
    need!(x86_64());
    let place = Place::of_build();
    let check = |options: &str| {
        let ended = place.run(&format!("lab check -q --offline --jobs 2 {options} {LIMIT}"));
        print!("{}", ended.stdout);
        ended
    };
    check("--kernel debian:rt --replicates 2").with(0).says(&["good: debian:rt: at most 100.0 us"]);
    check("--kernel debian:none --replicates 2")
        .with(1)
        .says(&["bad: debian:none: above 100.0 us"]);
    check("--kernel debian:rt --replicates 1 --append punctual.end_init")
        .with(125)
        .says(&["cannot be judged: debian:rt", "ended before its run"]);
    check("--kernel no/such/kernel").with(125).says(&["no kernel at no/such/kernel"]);
}
