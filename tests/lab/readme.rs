//! The program that boards run: one course in anyone's hands, and README's digits.

use std::fs;
use std::path::Path;

use crate::boards::x86_64;
use punctual_harness::{Place, board, count, end_of, need, run_json, sources};
use serde_json::Value;

/// Two builds of the host: the release and the debug build, which name and judge the same plan in
/// another way.
#[test]
fn hosts_of_two_builds_have_one_course() {
    need!(x86_64());
    let program = need!(board());
    let place = Place::of_build();
    let other = Path::new(env!("CARGO_BIN_EXE_punctual"));
    assert_ne!(fs::read(place.binary()).unwrap(), fs::read(other).unwrap(), "two builds");
    let line = "lab run --offline -q --no-report --kernel debian:rt --replicates 1 wakeup --load \
                none,hackbench -D 1s --deadline 1ms";
    let renamed = format!("{line} --group another --confidence 0.99 --out b");
    let mut command = Place::with("other", other).command(&[]);
    command.current_dir(&place.path).args(renamed.split_whitespace());
    command.arg("--program").arg(program);
    let ended = std::thread::scope(|scope| {
        let other = scope.spawn(|| end_of(command));
        [place.run(&format!("{line} --out a")), other.join().unwrap()]
    });
    ended.into_iter().for_each(|ended| drop(ended.with(0)));
    place.run("compare --exact a b").with(0).says(&["identical"]);
    let [one, other] = ["a", "b"].map(|out| run_json(&place.path.join(out).join("debian-rt-0")));
    assert_eq!(one["board"]["lab"]["initramfs_sha256"], other["board"]["lab"]["initramfs_sha256"]);
    assert_eq!((&other["group"], &other["plan"]["confidence"]), (&"another".into(), &0.99.into()));
    for run in [&one, &other] {
        assert_eq!(run["tool"]["name"], "punctual-board");
        assert_eq!(run["judged"], true);
        assert_eq!(run["verdict"]["outcome"], "PASS");
        let bytes = count(&run["board"]["lab"], "initramfs_bytes");
        assert!((1_000_000..=5_000_000).contains(&bytes), "an initramfs of {bytes} bytes");
    }
    // What is later is counted while it is measured, so it is part of a course: this one is the
    // same, since nothing is, and numbers of one width take the same time to read and write.
    let later = line.replace("--deadline 1ms", "--deadline 2ms");
    place.run(&format!("{later} --out c")).with(0);
    place.run("compare --exact a c").with(4).says(&["plan.deadline_ns: 1000000 against 2000000"]);
    for (file, bytes) in files(&place, "a") {
        assert!(fs::read(place.path.join("c").join(&file)).unwrap() == bytes, "{file}");
    }
}

/// What the cells of the run in `out` recorded, by path.
fn files(place: &Place, out: &str) -> Vec<(String, Vec<u8>)> {
    let cells = format!("{out}/debian-rt-0/cells");
    let folders = fs::read_dir(place.path.join(cells)).unwrap();
    let names = folders.map(|cell| cell.unwrap().file_name().into_string().unwrap());
    let paths = names.flat_map(|name| {
        ["blocks", "histograms"].map(|file| format!("debian-rt-0/cells/{name}/{file}"))
    });
    let read = |path: String| (path.clone(), fs::read(place.path.join(out).join(path)).unwrap());
    let files: Vec<_> = paths.map(read).collect();
    assert_eq!(files.len(), 4, "two cells");
    files
}

/// The lines of README between two marks.
fn of_readme(mark: &str) -> Vec<String> {
    let text = fs::read_to_string(sources().join("README.md")).unwrap();
    let (_, rest) = text.split_once(&format!("<!-- {mark} -->\n```\n")).expect(mark);
    let (block, _) = rest.split_once("\n```\n<!-- end -->").expect(mark);
    block.lines().map(str::to_owned).collect()
}

/// The hash behind a word of what README's figures are of; the second kernel is that of rt.
fn hash(made_of: &[String], word: &str, number: usize) -> String {
    let mut lines = made_of.iter().filter(|line| line.starts_with(word));
    lines.nth(number).and_then(|line| line.split_whitespace().last()).expect(word).to_owned()
}

/// When a board of README's kernel rt began to measure while each ran all of punctual (commit
/// 7b9ca20), ns of its time: `punctual lab run --kernel debian:rt wakeup --load none,hackbench -D 2s
/// --replicates 1`, `jq .started.monotonic_ns`.
const BEGAN_NS: u64 = 6_744_409_309;

/// What a row of the table has of its own kernel: its maxima, the median p99.9, the average and the
/// number of runs. The rest compares it with the first, or is left out if there are others.
fn own(row: &str) -> Vec<&str> {
    let words: Vec<_> = row.split_whitespace().collect();
    let last = words.len() - 3;
    [&words[..6], &words[7..8], &words[last..]].concat()
}

#[test]
fn readme_has_the_figures_that_anyone_gets() {
    need!(x86_64());
    let place = Place::of_build();
    let line = "lab run --offline -q --json --no-report --replicates 4 --kernel debian:rt --out d";
    let told = place.run(line).with(0).json();
    let rt = run_json(&place.path.join("d/debian-rt-0"));
    let guest = &told["guests"][0];
    for (key, of_record) in [
        ("board_program_sha256", "punctual_sha256"),
        ("qemu", "qemu"),
        ("qemu_sha256", "qemu_sha256"),
        ("firmware_sha256", "firmware_sha256"),
        ("kernel_sha256", "kernel_sha256"),
    ] {
        assert_eq!(guest[key], rt["board"]["lab"][of_record], "{key}");
    }
    let made_of = of_readme("demo: made of");
    let of = |run: &Value, key: &str| run["board"]["lab"][key].as_str().unwrap().to_owned();
    let program = of(&rt, "punctual_sha256");
    let mut show = place.command(&["show", "d/debian-rt-0", "--all"]);
    // A hash is not broken there.
    show.env("COLUMNS", "160");
    end_of(show).with(0).says(&[&format!("board program {program}")]);
    assert_eq!(
        program,
        hash(&made_of, "board program", 0),
        "README's figures are of another board program: README=update packaging/demo PUNCTUAL"
    );
    let others = [
        ("QEMU", of(&rt, "qemu_sha256"), hash(&made_of, "QEMU", 0)),
        ("firmware", of(&rt, "firmware_sha256"), hash(&made_of, "firmware", 0)),
        ("kernel", of(&rt, "kernel_sha256"), hash(&made_of, "kernel", 1)),
    ];
    let differ: Vec<_> = others.iter().filter(|(_, here, there)| here != there).collect();
    if !differ.is_empty() {
        return println!("  README's figures are of other parts than those here: {differ:?}");
    }
    let began: u64 = rt["started"]["monotonic_ns"].as_str().unwrap().parse().unwrap();
    println!("  it began to measure after {began} ns; {BEGAN_NS} ns with all of punctual");
    assert!(began <= BEGAN_NS, "{began} ns");
    let compared = place.run("compare d").with(0).stdout;
    println!("{compared}");
    let mut rows = 0;
    for row in of_readme("demo: table") {
        let is_of_rt = |row: &str| row.split_whitespace().next() == Some("PREEMPT_RT");
        if is_of_rt(&row) {
            let mut here = compared.lines().filter(|line| is_of_rt(line) && line.contains('('));
            let found = here.any(|line| own(line) == own(&row));
            assert!(found, "README has\n{row}\nand here it is\n{compared}");
            rows += 1;
        }
    }
    assert_eq!(rows, 3, "three cells");
}
