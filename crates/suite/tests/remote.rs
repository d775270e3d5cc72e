//! A run that is measured on behalf of another side, as it comes out there.

use std::collections::BTreeMap;
use std::{fs, io};

use punctual_core::aim::Aim;
use punctual_core::channel::{Decoder, Event, Message, Order, VirtualBoard};
use punctual_core::plan::Plan;
use punctual_core::schema::{Condition, Outcome, Run};
use punctual_core::units::SECOND_NS;
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
    measure(order, &dir, vec![known], &mut carrier).unwrap();
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
        plan: Plan::from_toml(PLAN).unwrap(),
        board: "virtual-x86_64".to_owned(),
        virtual_board: Some(free_running),
        group: None,
        replicate: Some(3),
        phase_ns: 7,
        dither: None,
        aim: Aim::NONE,
        limit_ns: 10 * SECOND_NS,
        tool_sha256: Some("beef".to_owned()),
    };
    let (run, files, events) = carried_out(&order);
    let names: Vec<&str> = files.keys().map(|name| name.rsplit('/').next().unwrap()).collect();
    assert_eq!(names, ["blocks", "histograms"]);
    assert!(run.conditions.iter().any(|condition| condition.id == "known"));
    assert!(matches!(events[0], Event::Started { cells: 1, .. }), "{events:?}");
    assert!(matches!(events[1], Event::Cell { number: 0, .. }), "{events:?}");

    assert_eq!((run.replicate, run.phase_ns, &run.group), (Some(3), 7, &None));
    assert_eq!(run.tool.sha256, "beef");
    assert_eq!(run.board.name, "virtual-x86_64");
    // What the board was made of is for those to record who made it.
    assert_eq!(run.board.lab, None);
    // That its time is not counted is known here, since nothing is judged then.
    assert_eq!(run.conditions[0].id, "free-running");
    assert_eq!(run.verdict.outcome, Outcome::Inconclusive);
}
