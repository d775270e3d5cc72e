//! `export`: what a known run holds, and the layout of cyclictest.

use std::process::Command;

use punctual_harness::{need, programs, text};

use crate::support::{Scratch, json, stderr, stdout};

const USAGE: i32 = 2;

/// 900 samples of 10 us, then one of 100 ms, in each of two threads.
const STALL: &str =
    "run sim:dist=list,values=10us*900/100ms -t 2 --aligned 0 -D 1 --no-report --out r";

fn exported(scratch: &Scratch, line: &str) -> String {
    let output = scratch.punctual(&format!("export {line}"));
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{line}");
    stdout(&output)
}

#[test]
fn a_known_run_in_the_layout_of_cyclictest() {
    let scratch = Scratch::new("export-layout");
    assert_eq!(scratch.punctual(STALL).status.code(), Some(0));
    let rows: String = (0..12)
        .map(|row| {
            let count = if row == 10 { 900 } else { 0 };
            format!("{row:06} {count:06}\t{count:06}\n")
        })
        .collect();
    let expected = format!(
        "# SIMULATED: these latencies are made up\n# Histogram\n{rows}# Total: 000000900 000000900\n# Min Latencies: 00010 00010\n\
         # Avg Latencies: 00120 00120\n# Max Latencies: 100000 100000\n\
         # Histogram Overflows: 00001 00001\n# Histogram Overflow at cycle number:\n\
         # Thread 0: 00900\n# Thread 1: 00900\n\n"
    );
    assert_eq!(exported(&scratch, "r --histogram --text --rows 12"), expected);
    assert_eq!(exported(&scratch, "r --histogram --rows 12"), expected, "text is the default");
    let with_sum = exported(&scratch, "r --histogram --rows 12 --sum");
    assert!(with_sum.contains("\n000010 000900\t000900\t001800\n"), "{with_sum}");
    assert!(with_sum.contains("\n# Total: 000000900 000000900 000001800\n"), "{with_sum}");
    let whole = exported(&scratch, "r --histogram --text");
    assert!(whole.contains("\n009999 000000\t000000\n# Total: "), "no more than 10000 rows");
}

#[test]
fn early_and_missed_releases_are_in_the_tables() {
    let scratch = Scratch::new("export-early");
    assert_eq!(scratch.punctual(STALL).status.code(), Some(0));
    let csv = exported(&scratch, "r --histogram --csv");
    assert!(
        csv.starts_with("cell,key,origin,thread,cpus,low_ns,high_ns,samples,missed\n1,"),
        "{csv}"
    );
    let rows = json(&scratch.punctual("export r --histogram --json"));
    let sum = |column: &str| {
        rows.as_array().unwrap().iter().map(|row| row[column].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!((sum("samples"), sum("missed")), (1_802, 198));

    let early = "run sim:dist=list,values=10us/20us,shift=15us -D 1 --no-report --out early";
    assert_eq!(scratch.punctual(early).status.code(), Some(0));
    let text = exported(&scratch, "early --histogram --text");
    assert!(text.contains("\n# Total: 000000500\n# Min Latencies: -0005\n"), "{text}");
    assert!(text.contains("\n# Early, before their release: 00500\n"), "{text}");
    let rows = json(&scratch.punctual("export early --histogram --json"));
    let end = |name: &str| rows[0][name].as_i64().unwrap();
    assert!(end("low_ns") <= -5_000 && end("high_ns") >= -5_000, "{rows}");
    assert!(end("high_ns") < 0, "{rows}");
    assert_eq!(rows[0]["samples"], 500);
}

#[test]
fn what_is_not_there_is_said() {
    let scratch = Scratch::new("export-wrong");
    assert_eq!(scratch.punctual(STALL).status.code(), Some(0));
    for (line, said) in [
        ("export r", "--histogram"),
        ("export r --histogram --worst", "cannot be used with"),
        ("export r --csv --text --load", "cannot be used with"),
        ("export r --histogram --cell 2", "the run has 1 cell\n"),
        ("export r --histogram --series queue", "it has: latency"),
        ("export r --histogram --rows 0", "must be 1 to 10,000,000"),
        ("export r --histogram --rows 99999999999", "must be 1 to 10,000,000"),
        ("export r --timeline --rows 5", "cannot be used with"),
        ("export r --sum --csv --histogram", "cannot be used with"),
        ("export r --load", "nothing of this kind was recorded in the chosen cells"),
        ("export r --load --csv", "nothing of this kind"),
        ("export r --costs", "nothing of this kind"),
        ("export r --phases --csv", "nothing of this kind"),
        ("export r --costs --series latency", "cannot be used with"),
        ("export nowhere --worst", "no such run directory"),
    ] {
        let output = scratch.punctual(line);
        assert_eq!(output.status.code(), Some(USAGE), "{line}");
        assert!(stderr(&output).contains(said), "{line}: {}", stderr(&output));
        assert_eq!(stdout(&output), "", "{line}");
    }
}

/// A line as words and separators, for comparison: numbers by their padding.
fn shape(text: &str) -> Vec<String> {
    let from = text.find("# Histogram\n").expect("a histogram");
    text[from..].lines().map(|line| line.split(" #").next().unwrap().to_owned()).collect()
}

/// Whether two lines differ in numbers only, and these are padded to the same width.
fn agree(a: &str, b: &str) -> bool {
    let split = |line: &str| -> Vec<String> {
        line.split_inclusive(|c: char| !c.is_ascii_digit()).map(str::to_owned).collect()
    };
    let number = |word: &str| word.trim_end_matches(|c: char| !c.is_ascii_digit()).to_owned();
    let (a, b) = (split(a), split(b));
    a.len() == b.len()
        && a.iter().zip(&b).all(|(a, b)| {
            let (x, y) = (number(a), number(b));
            let (short, long) = if x.len() < y.len() { (&x, &y) } else { (&y, &x) };
            // A number that needs more than the width of the padding has no zero in front.
            let wide = !short.is_empty() && long.len() > short.len() && !long.starts_with('0');
            a[x.len()..] == b[y.len()..] && (x.len() == y.len() || wide)
        })
}

/// The program itself is the expectation: the same lines with the same separators and widths.
#[test]
fn the_layout_is_that_of_cyclictest_itself() {
    need!(programs(&["cyclictest"]));
    let scratch = Scratch::new("export-oracle");
    for (threads, option, sum) in [("1", "-h", ""), ("3", "-h", ""), ("2", "-H", "--sum")] {
        let line = ["-q", "-i", "20000", "-l", "5", "-t", threads, option, "30"];
        let theirs = Command::new("cyclictest").args(line).output().unwrap();
        let theirs = shape(&text(&theirs.stdout));
        // Most of cyclictest's samples are overflows on a busy machine, so are some of these.
        let run = format!("run sim:high=60us -t {threads} -D 1 --no-report --out r{threads}");
        assert_eq!(scratch.punctual(&run).status.code(), Some(0));
        let ours = shape(&exported(&scratch, &format!("r{threads} --histogram --rows 30 {sum}")));
        assert_eq!(ours.len(), theirs.len(), "{ours:#?} {theirs:#?}");
        for (ours, theirs) in ours.iter().zip(&theirs) {
            // How many cycles are listed depends on how many were late.
            let of = |line: &'_ str| match line.split_once(':') {
                Some((thread, _)) if thread.starts_with("# Thread ") => thread.to_owned(),
                _ => line.to_owned(),
            };
            assert!(agree(&of(ours), &of(theirs)), "{ours:?} is not of the form of {theirs:?}");
        }
    }
    assert!(agree("# Max Latencies: 00010 100000", "# Max Latencies: 12345 00001"));
    for other in ["# Max Latencies: 00010", "# Max: 00010 00002", "# Max Latencies: 010 00002"] {
        assert!(!agree("# Max Latencies: 00010 00011", other), "{other}");
    }
}
