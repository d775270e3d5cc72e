//! Whether a measurement finds a delay of known length: a module (late/) makes a hard interrupt
//! keep the CPU for so long, with a period that is a multiple of that of the releases.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::boards::x86_64;
use punctual_harness::{Place, count, keep, need, programs, run_json, sources, text};

/// Boots of each row for `make disturbances`; in `make test` there is one, and no averages.
fn boots() -> Option<usize> {
    env::var("DISTURBANCES").ok().map(|boots| boots.parse().unwrap())
}

/// What a wake-up on an idle board takes at most without any delay, us, and so what a delay
/// comes on top of.
const USUAL: (f64, f64) = (14.0, 26.0);

/// A module built for a kernel of Debian, and the name of that kernel.
struct Module {
    folder: PathBuf,
    kernel: String,
}

/// The folders of kernel headers that are installed.
fn headers() -> Result<PathBuf, String> {
    let folders = fs::read_dir("/usr/src").map_err(|error| format!("/usr/src: {error}"))?;
    let names = folders.flatten().map(|entry| entry.path());
    let found = names.filter(|path| release_of(path).is_some());
    let newest = found.max_by_key(|path| numbers(&path.display().to_string()));
    newest.ok_or_else(|| "no kernel headers (Debian's linux-headers-amd64)".to_owned())
}

fn release_of(headers: &Path) -> Option<&str> {
    let release = headers.file_name()?.to_str()?.strip_prefix("linux-headers-")?;
    let flavoured = |release: &&str| ["-rt", "-cloud"].iter().any(|of| release.ends_with(of));
    release.strip_suffix("-amd64").filter(|release| !flavoured(release))
}

/// The numbers in a name, by which releases are ordered.
fn numbers(name: &str) -> Vec<u64> {
    name.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}

fn module(place: &Place) -> Result<Module, String> {
    programs(&["make", "cc"])?;
    let headers = headers()?;
    let build = place.open_folder("late");
    for file in ["late.c", "Makefile"] {
        fs::copy(sources().join("tests/lab/late").join(file), build.join(file)).unwrap();
    }
    let made = Command::new("make")
        .arg("-s")
        .arg(format!("M={}", build.display()))
        .arg("-C")
        .arg(&headers)
        .arg("modules")
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", text(&made.stderr));
    let folder = place.open_folder("modules");
    fs::create_dir(folder.join("kernel")).unwrap();
    fs::copy(build.join("late.ko"), folder.join("kernel/late.ko")).unwrap();
    fs::write(folder.join("modules.order"), "kernel/late.ko\n").unwrap();
    let release = release_of(&headers).unwrap();
    Ok(Module { folder, kernel: format!("debian:{release}-none") })
}

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
        let line =
            format!("lab run -q --no-report --jobs 2 --replicates {boots} -D 4s --out {out}");
        let mut words: Vec<&str> = line.split(' ').collect();
        words.extend(["--kernel", &module.kernel, "--modules", &modules, "--module", &parameters]);
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
    let module = need!(module(&place));
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
