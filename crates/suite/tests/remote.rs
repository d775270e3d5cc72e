//! A run that is measured on behalf of another side, as it comes out there.

use std::collections::BTreeMap;
use std::{fs, io};

use punctual_core::channel::{Decoder, Event, Message, Order, VirtualBoard};
use punctual_core::plan::Plan;
use punctual_core::schema::{Condition, Outcome, Run};
use punctual_core::units::SECOND_NS;
use punctual_suite::engine::Program;
use punctual_suite::remote::{Carrier, measure};

const PLAN: &str = r#"
name = "remote"
warmup = "0s"
deadline = "10s"
[[cell]]
probe = "wakeup:policy=other"
load = ["none"]
duration = "1s"
"#;

struct Bytes(Vec<u8>);

impl Carrier for Bytes {
    fn carry(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// The last `run.json` of a run, what was appended to its files, and what was told of it.
fn carried_out(order: &Order) -> (Run, BTreeMap<String, Vec<u8>>, Vec<Event>) {
    let dir = std::env::temp_dir().join(format!("punctual-remote-{}", std::process::id()));
    let _ = fs::remove_dir_all(&dir);
    let mut carrier = Bytes(Vec::new());
    let known = Condition { id: "known".to_owned(), text: "beforehand".to_owned() };
    let program = Program { name: "punctual-board", version: "1.2.3" };
    measure(order, program, &dir, vec![known], &mut carrier).unwrap();
    let mut decoder = Decoder::default();
    decoder.push(&carrier.0);
    let (mut run, mut files, mut events) = (None, BTreeMap::new(), Vec::new());
    while let Some(message) = decoder.take().unwrap() {
        match message {
            Message::Event(event) => events.push(event),
            Message::Whole(name, bytes) => {
                assert_eq!(name, "run.json");
                run = Some(serde_json::from_slice(&bytes).unwrap());
            }
            Message::Append(name, bytes) => {
                files.entry(name).or_insert_with(Vec::new).extend(bytes);
            }
        }
    }
    for (name, bytes) in &files {
        assert!(fs::read(dir.join(name)).unwrap() == *bytes, "{name}");
    }
    fs::remove_dir_all(dir).unwrap();
    (run.unwrap(), files, events)
}

#[test]
fn the_run_that_comes_out_is_the_one_that_was_ordered_and_written() {
    let free_running = VirtualBoard { cpus: 1, ..VirtualBoard::default() };
    let order = Order {
        virtual_board: Some(free_running),
        phase_ns: 7,
        ..Order::of(&Plan::from_toml(PLAN).unwrap(), 10 * SECOND_NS)
    };
    let (run, files, events) = carried_out(&order);
    let names: Vec<&str> = files.keys().map(|name| name.rsplit('/').next().unwrap()).collect();
    assert_eq!(names, ["blocks", "histograms"]);
    assert!(run.conditions.iter().any(|condition| condition.id == "known"));
    assert!(matches!(events[0], Event::Started { cells: 1, .. }), "{events:?}");
    assert!(matches!(events[1], Event::Cell { number: 0, .. }), "{events:?}");

    assert_eq!((run.plan, run.phase_ns), (order.plan(), 7));
    assert_eq!((run.tool.name.as_str(), run.tool.version.as_str()), ("punctual-board", "1.2.3"));
    // What the board was made of, and how the run is called, is for those to record who ordered it.
    assert_eq!((run.board.lab, run.group, run.replicate), (None, None, None));
    assert_eq!((run.tool.sha256, run.plan_hash), (String::new(), String::new()));
    // And so is the judgement.
    assert!(!run.judged);
    assert_eq!(run.verdict.outcome, Outcome::None);
    assert_eq!(run.cells[0].verdict.outcome, Outcome::None);
}
