//! Channels of guests that were cut short, that lie and that never stop.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use punctual_core::channel::encode;
use punctual_core::schema::RunState;

use super::*;
use crate::run_dir::tests::run;
use crate::testing::Folder;

const BLOCKS: &str = "cells/00-x/blocks";

fn bounds() -> Bounds {
    Bounds {
        files: [BLOCKS.to_owned()].into(),
        bytes: 100_000,
        board_ns: 1_000,
        cpu_time: Duration::MAX,
    }
}

/// A receiver of these bytes, and its run directory.
fn receiver(folder: &Folder, sent: &[u8]) -> (Receiver, PathBuf) {
    folder.write("channel", sent);
    let path = folder.0.join("run");
    let dir = RunDir::create(&path, Box::new(|_| Ok(()))).unwrap();
    (Receiver::open(&folder.0.join("channel"), dir, bounds()).unwrap(), path)
}

fn later() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

fn trouble(text: &str) -> Message {
    Message::Event(Event::Trouble { text: text.to_owned() })
}

fn whole() -> Vec<u8> {
    encode(&Message::Event(Event::Ended { at_ns: 9, whole: true }))
}

#[test]
fn a_message_that_was_cut_short_is_told_after_what_explains_it() {
    let folder = Folder::new();
    let cut = encode(&Message::Append(BLOCKS.to_owned(), vec![7; 100]));
    let sent = [
        &encode(&Message::Append(BLOCKS.to_owned(), vec![1, 2]))[..],
        &cut[..30],
        &encode(&trouble("the measuring process was killed\x1b")),
        &encode(&Message::Event(Event::Ended { at_ns: 9, whole: false })),
    ];
    let (mut receiver, path) = receiver(&folder, &sent.concat());
    let mut events = 0;
    let received = receiver.receive(true, later(), &mut |_| events += 1).unwrap();
    assert_eq!(received, Received { any: true, more: false });
    assert!(!receiver.receive(true, later(), &mut |_| ()).unwrap().any);
    assert_eq!((events, receiver.heard, receiver.whole), (2, true, false));
    assert_eq!(fs::read(path.join(BLOCKS)).unwrap(), [1, 2]);
    let troubles = receiver.finish(vec!["ended by a signal".to_owned()]);
    assert_eq!(troubles[..2], ["the measuring process was killed\u{fffd}", "ended by a signal"]);
    assert!(troubles[2].contains("message"), "{troubles:?}");
}

#[test]
fn only_the_files_of_the_run_are_written() {
    let folder = Folder::new();
    let file = |name: &str| Message::Whole(name.to_owned(), b"#!/bin/sh".to_vec());
    let append = |name: &str| Message::Append(name.to_owned(), vec![1]);
    let sent = [
        file("evil\x1b[31m.sh"),
        file("report.html"),
        file(BLOCKS),
        append("run.json"),
        append("cells/00-y/blocks"),
        append("cells/00-x/other"),
        append(".new"),
    ];
    let (mut receiver, path) = receiver(&folder, &sent.iter().flat_map(encode).collect::<Vec<_>>());
    receiver.receive(true, later(), &mut |_| ()).unwrap();
    assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
    let troubles = receiver.finish(Vec::new());
    assert_eq!(troubles, ["\"evil\u{fffd}[31m.sh\" is no file of this run"]);
}

#[test]
fn a_run_is_whole_only_with_a_complete_record() {
    let of = |state: Option<RunState>| {
        let folder = Folder::new();
        let record = state.map(|state| serde_json::to_vec(&run(state)).unwrap());
        let message = record.map(|bytes| encode(&Message::Whole(RUN_JSON.to_owned(), bytes)));
        let (mut receiver, _) = receiver(&folder, &[message.unwrap_or_default(), whole()].concat());
        receiver.receive(true, later(), &mut |_| ()).unwrap();
        assert!(receiver.whole);
        receiver.finish(Vec::new()).join("")
    };
    assert_eq!(of(Some(RunState::Complete)), "");
    for (state, says) in [
        (None, "run.json is missing"),
        (Some(RunState::Running), "run.json is of a run that goes on"),
        (Some(RunState::Failed), "run.json is of a run that failed"),
        (Some(RunState::Interrupted), "run.json is of a run that was interrupted"),
    ] {
        assert!(of(state).contains(says), "{state:?}: {}", of(state));
    }
}

#[test]
fn a_guest_that_exceeds_its_bounds_is_refused() {
    let folder = Folder::new();
    let blocks = encode(&Message::Append(BLOCKS.to_owned(), vec![7; 1_000])).repeat(110);
    let (mut of_bytes, _) = receiver(&folder, &blocks);
    let error = of_bytes.receive(false, later(), &mut |_| ()).unwrap_err().to_string();
    assert!(error.contains("more than the 100,000 bytes"), "{error}");

    let folder = Folder::new();
    let late = Event::Progress { at_ns: 1_001, measured_ns: 1, max_ns: None };
    let (mut of_time, _) = receiver(&folder, &encode(&Message::Event(late)));
    let error = of_time.receive(false, later(), &mut |_| ()).unwrap_err().to_string();
    assert!(error.contains("goes on after 0 s of the board's time"), "{error}");

    let folder = Folder::new();
    let long = format!("{}\x1b", "x".repeat(2_000));
    let (mut of_words, _) = receiver(&folder, &encode(&trouble(&long)).repeat(20));
    of_words.receive(true, later(), &mut |_| ()).unwrap();
    let troubles = of_words.finish(Vec::new());
    assert_eq!((troubles.len(), troubles[16].as_str()), (17, "4 more failures"));
    assert!(troubles.iter().all(|text| text.chars().count() <= 1_001 && !text.contains('\x1b')));
}

#[test]
fn a_receiver_comes_back_however_much_there_is() {
    let folder = Folder::new();
    let sent = encode(&trouble("again")).repeat(1_000);
    let (mut receiver, _) = receiver(&folder, &sent);
    let now = Instant::now();
    let received = receiver.receive(true, now, &mut |_| ()).unwrap();
    assert_eq!(received, Received { any: false, more: true });
    // Also between the messages of one slice: its time is over after the first.
    let until = Instant::now() + Duration::from_millis(200);
    let mut told = 0;
    let mut tell = |_: &Event| {
        told += 1;
        while Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    assert!(receiver.receive(true, until, &mut tell).unwrap().more);
    assert!(told <= 1, "{told} messages");
    assert!(!receiver.receive(true, later(), &mut |_| ()).unwrap().more);
    assert_eq!(receiver.finish(Vec::new())[16], "984 more failures");
}
