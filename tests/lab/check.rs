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

/// `git bisect run` ends at 128 or more, and would skip every commit at 125.
#[test]
fn what_no_commit_can_cure_ends_the_bisection() {
    let place = Place::of_build();
    let check = |options: &str| {
        place.run(&format!("lab check -q --offline {options} -D 2s --max 100us")).with(129)
    };
    check("--kernel k wakeup --load hackbnch").says(&["hackbnch"]);
    check("--kernel k wakeup --load hackbench --cpus many").says(&["many"]);
    check("--kernel k wakeup --qemu no/such/qemu").says(&["no/such/qemu"]);
    check("--kernel k wakeup --program no/such/program").says(&["no/such/program"]);
    need!(x86_64());
    check("--kernel debian:rt,debian:none wakeup").says(&["judges one kernel"]);
    check("--kernel debian:rt wakeup --files no/such/folder").says(&["--files"]);
    std::fs::create_dir(place.path.join("kept")).unwrap();
    check("--kernel debian:rt wakeup --out kept").says(&["kept", "never overwritten"]);
}
