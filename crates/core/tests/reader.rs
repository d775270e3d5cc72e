//! The reader of docs/run-format.md, which knows nothing of this code, reads what it writes.

use std::fs;
use std::process::Command;

use punctual_core::block::{Block, Late, Moments, Outlier, Strain, System};
use punctual_core::format::{Part, Record, encode};
use punctual_core::histogram::Histogram;
use punctual_core::interval::{Actor, Interval};

/// The program in the document.
fn program() -> &'static str {
    let document = include_str!("../../../docs/run-format.md");
    let (_, rest) = document.split_once("```python\n").expect("a reader in Python");
    rest.split_once("```").expect("its end").0
}

fn records() -> Vec<Record> {
    let moments = Moments {
        count: 4,
        missed: 1,
        early: 2,
        exceeded: 0,
        min: -300,
        max: 5_000,
        max_at: 7,
        sum: 8_000,
        sum_sq: 1 << 90,
    };
    let mut counts = Histogram::new();
    [3, 3, 300_000].into_iter().for_each(|value| counts.record(value));
    vec![
        Record::Block(Block { thread: 1, series: 2, index: 9, moments, coarse: vec![(-3, 4)] }),
        Record::Late(Late { thread: 1, series: 0, at: 70_000, latency: 20, missed: 3 }),
        Record::Work { second: 4, part: 1, totals: vec![1 << 40] },
        Record::System(System {
            second: 4,
            busy: 1000,
            steal: 5,
            strain: Strain {
                interrupts: Some(300),
                switches: None,
                pressure: [Some(0), Some(1000), None],
            },
        }),
        Record::Histogram { thread: 0, series: 1, part: Part::Behind, counts: counts.sparse() },
        Record::Outliers { thread: 0, series: 3, samples: vec![Outlier { at: 1, latency: -1 }] },
        Record::Actor(Actor { number: 200, name: "kworker/ü:1".to_owned() }),
        Record::Interval(Interval { cpu: 3, from: 1_000, to: 1_500, actor: 200 }),
    ]
}

const PRINTED: &str = "\
block {'thread': 1, 'series': 2, 'second': 9, 'count': 4, 'missed': 1, 'early': 2, \
'exceeded': 0, 'max_at': 7, 'min': -300, 'max': 5000} mean 2000
late [1, 0, 70000, 20, 3]
work [4, 1, 1, 1099511627776]
system [4, 1000, 5, 301, 0, 1, 1001, 0]
histogram thread 0 series 1 part 2 counts 3 top bin from 299008
outliers [0, 3, 1, 1, 1]
actor 200 'kworker/ü:1'
interval CPU 3 from 1000 to 1500 actor 200
";

#[test]
fn the_documented_reader_reads_every_kind_of_record() {
    let found = Command::new("python3").arg("--version").output().is_ok();
    if !found && std::env::var_os("CI").is_none() {
        eprintln!("skipped: there is no python3");
        return;
    }
    let mut bytes = b"damage".to_vec();
    records().iter().for_each(|record| encode(record, &mut bytes));
    bytes.extend([0xB5, 0x1A, 9]);
    let file = std::env::temp_dir().join(format!("punctual-reader-{}", std::process::id()));
    fs::write(&file, bytes).unwrap();
    let mut python = Command::new("python3");
    python.args(["-c", program()]).arg(&file).env("PYTHONIOENCODING", "utf-8");
    let output = python.output();
    fs::remove_file(&file).unwrap();
    let output = output.unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(String::from_utf8_lossy(&output.stdout), PRINTED);
}
