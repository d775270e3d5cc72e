//! Whether a measurement finds a delay of known length: a module (late/) makes a hard interrupt
//! keep the CPU for so long, with a period that is a multiple of that of the releases.

use std::env;
use std::fs;

use crate::boards::x86_64;
use crate::modules::{Module, module};
use punctual_harness::{Place, count, keep, need, run_json};

/// Boots of each row for `make disturbances`; in `make test` there is one, and no averages.
fn boots() -> Option<usize> {
    env::var("DISTURBANCES").ok().map(|boots| boots.parse().unwrap())
}

/// What a wake-up on an idle board takes at most without any delay, us, and so what a delay
/// comes on top of.
const USUAL: (f64, f64) = (14.0, 26.0);

/// One row: a delay, and how it is measured.
struct Row {
    us: u32,
    period_ms: u32,
    options: &'static str,
}

impl Row {
    /// Maximum and average of an idle cell of 4 s in each boot, us.
    fn measured(&self, module: &Module, place: &Place, table: &mut String) -> Vec<(f64, f64)> {
        let boots = boots().unwrap_or(1);
        let Self { us, period_ms, options } = self;
        let out = format!("{us}-{period_ms}{}", options.replace("-i ", "-"));
        let parameters = format!("late us={us} period_us={period_ms}000");
        let modules = module.folder.display().to_string();
        let kernel = module.kernel("none");
        // Of few delays none may come right before a release.
        let seconds = period_ms.div_ceil(100).max(4);
        let line = format!(
            "lab run -q --no-report --jobs 2 --replicates {boots} -D {seconds}s --out {out}"
        );
        let mut words: Vec<&str> = line.split(' ').collect();
        words.extend(["--kernel", &kernel, "--modules", &modules, "--module", &parameters]);
        words.push("wakeup");
        words.extend(options.split_whitespace());
        place.words(&words).with(0);
        let runs = fs::read_dir(place.path.join(&out)).unwrap().flatten().map(|entry| entry.path());
        let mut runs: Vec<_> = runs.filter(|path| path.is_dir()).collect();
        runs.sort();
        let found: Vec<(f64, f64)> = runs
            .iter()
            .map(|run| {
                let cell = &run_json(run)["cells"][0];
                assert_eq!(cell["dithered"], true);
                (count(cell, "max_ns") as f64 / 1e3, cell["avg_ns"].as_f64().unwrap() / 1e3)
            })
            .collect();
        let each: Vec<_> = found.iter().map(|(max, avg)| format!("{max:.1} ({avg:.3})")).collect();
        let line = format!("{us:>4} us every {period_ms:>4} ms, {:<8} {}", options, each.join(" "));
        println!("{line}");
        table.push_str(&format!("\n{line}"));
        assert_eq!(found.len(), boots);
        found
    }
}

#[test]
fn a_delay_of_a_known_length_is_found_in_every_boot() {
    need!(x86_64());
    let place = Place::of_build();
    let module = need!(module(&place, "late"));
    let mut table = "delay, interval; maximum (average) of each boot, us".to_owned();
    for (us, period_ms, options) in
        [(300, 97, "-i 100us"), (150, 97, "-i 100us"), (300, 1_000, "-i 50us")]
    {
        for (max, _) in (Row { us, period_ms, options }).measured(&module, &place, &mut table) {
            let delay = f64::from(us);
            let (least, most) = (0.9 * delay + USUAL.0, 1.1 * delay + USUAL.1);
            assert!((least..=most).contains(&max), "{us} us every {period_ms} ms: {max} us");
        }
    }
    if boots().is_none() {
        return;
    }
    // At the usual interval a boot may miss it.
    (Row { us: 150, period_ms: 97, options: "-i 1ms" }).measured(&module, &place, &mut table);
    // What is small beside the scatter of maxima is seen in the averages.
    let mut averages = |us| {
        let row = Row { us, period_ms: 97, options: "-i 250us" };
        let found = row.measured(&module, &place, &mut table).into_iter();
        found.map(|(_, average)| average).collect::<Vec<_>>()
    };
    let (without, with) = (averages(0), averages(50));
    keep(&table);
    let highest = without.iter().copied().fold(0.0, f64::max);
    assert!(with.iter().all(|average| *average > highest), "{with:?} us with, {without:?} without");
}
