//! Boards that are booted once and kept, and guests that go on from there.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::boards::{emulators, hog, prepared, x86_64};
use punctual_harness::processes::{signal, wait_at_most};
use punctual_harness::schema::validate;
use punctual_harness::{Ended, Place, end_of, need, run_json, until};

const PLAN: &str = "wakeup --load none,hackbench -D 500ms";

/// A place with a cache of its own, which has the user's kernels.
fn place() -> Place {
    let place = Place::of_build();
    let set = |name| std::env::var_os(name).map(PathBuf::from);
    let user = set("PUNCTUAL_CACHE")
        .or_else(|| Some(set("XDG_CACHE_HOME")?.join("punctual")))
        .unwrap_or_else(|| set("HOME").unwrap().join(".cache/punctual"));
    fs::create_dir(place.path.join("cache")).unwrap();
    symlink(user.join("kernels"), place.path.join("cache/kernels")).unwrap();
    place
}

fn lab(place: &Place, line: &str) -> Command {
    let mut command = prepared(place, &format!("lab {line}"));
    command.env("PUNCTUAL_CACHE", place.path.join("cache"));
    command
}

fn run(place: &Place, options: &str) -> Ended {
    let line = format!("run --offline --no-report --kernel debian:full {options} {PLAN}");
    end_of(lab(place, &line))
}

/// Folders of kept boards and of such that are being made.
fn boards(place: &Place) -> Vec<PathBuf> {
    let entries = fs::read_dir(place.path.join("cache/boards")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

#[test]
fn a_warm_board_repeats_on_a_busy_host_and_its_replicates_differ() {
    need!(x86_64());
    let place = place();
    let first = run(&place, "--warm --replicates 2 --out a");
    first.with(0).says(&["boots once, to be kept"]);
    let [board] = &boards(&place)[..] else { panic!("{:?}", boards(&place)) };
    {
        let _hogs = [hog(), hog()];
        let second = run(&place, "--warm --replicates 2 --out b").with(0).stderr.clone();
        assert!(!second.contains("boots once"), "{second}");
    }
    place.run("compare --exact a b").with(0).says(&["2 of 2 runs identical"]);

    let description: serde_json::Value =
        serde_json::from_slice(&fs::read(board.join("snapshot.json")).unwrap()).unwrap();
    let [one, other] = [0, 1].map(|number| {
        let dir = place.path.join(format!("a/debian-full-{number}"));
        let run = run_json(&dir);
        validate(&run);
        assert_eq!(run["board"]["lab"]["snapshot_sha256"], description["sha256"]);
        assert_eq!(run["replicate"], number);
        let cell = &run["cells"][1];
        assert_eq!((&cell["state"], &cell["scheduled"]), (&"complete".into(), &500.into()));
        fs::read(dir.join("cells").join(cell["dir"].as_str().unwrap()).join("histograms")).unwrap()
    });
    assert!(one != other, "two replicates measured the same");
    place.run("show a/debian-full-0").with(0).says(&["warm board: it went on from"]);

    // A board that is damaged is made anew, and is another one.
    let state = board.join("state");
    let mut bytes = fs::read(&state).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&state, bytes).unwrap();
    run(&place, "--warm --out c").with(0).says(&["is damaged, and is made anew"]);
    let refused = "snapshot_sha256: ";
    place.run("compare --exact a/debian-full-0 c/debian-full-0").with(4).says(&[refused]);

    // Warm and cold are never compared.
    run(&place, "--out cold").with(0);
    place.run("compare --exact a/debian-full-0 cold/debian-full-0").with(4).says(&[refused]);
    let reason = ["is of a warm board (--warm), ", "of one that booted", "are not compared"];
    place.run("compare a cold").with(4).says(&reason);
    place.run("report a cold --output r.html").with(2).says(&reason);
}

#[test]
fn a_check_can_be_warm_and_says_so() {
    need!(x86_64());
    let place = place();
    let check = |options: &str| {
        end_of(lab(&place, &format!("check -q --offline --kernel debian:rt {options}")))
    };
    check("--warm --replicates 2 --max 100us wakeup -D 500ms")
        .with(0)
        .says(&["good: debian:rt: at most 100.0 us in each of 2 starts from one boot"]);
    // Nothing is kept of a guest that does not come to its pause, and its console is shown.
    let panic = "Kernel panic - not syncing: Attempted to kill init!";
    check("--warm --replicates 1 --max 100us --append punctual.end_init wakeup -D 500ms")
        .with(125)
        .says(&["ended before its run", panic]);
    assert_eq!(boards(&place).len(), 1);
    for (options, says) in [
        ("--board aarch64", "--warm: the board aarch64 has no device"),
        ("--free-running", "--warm: a guest without counted time"),
        ("--device edu", "--warm: QEMU does not write the state of edu"),
    ] {
        check(&format!("--warm {options} --max 100us wakeup -D 500ms")).with(129).says(&[says]);
    }
    // A board that has executed too many instructions to go on pauses a second time.
    let far = "--warm --replicates 2 --max 100us --append punctual.pass_instructions";
    check(&format!("{far} wakeup -D 500ms")).with(0).says(&["2 starts from one boot"]);
    let history = lab(&place, "history --warm");
    end_of(history).with(2).says(&["unexpected argument '--warm'"]);
}

#[test]
fn three_at_once_keep_one_board_and_an_interrupt_leaves_nothing() {
    need!(x86_64());
    let place = place();
    let line = |out: &str| {
        let plan = "wakeup -D 100ms --no-warmup";
        format!("run --offline --no-report --kernel debian:rt --warm --out {out} {plan}")
    };
    let mut first = lab(&place, &line("i"));
    let mut child = first.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // The file of the initramfs is there when the emulator is started.
    let boots = || boards(&place).iter().any(|board| board.join("working/initramfs").exists());
    let boots = until(Duration::from_secs(20), || boots() && !emulators(&place).is_empty());
    assert!(boots, "{:?}", boards(&place));
    signal(&child, "INT");
    let limit = Duration::from_secs(5);
    assert_eq!(wait_at_most(&mut child, limit, "SIGINT").code(), Some(130));
    assert!(until(limit, || place.living().is_empty()), "{:?}", place.living());
    assert!(boards(&place).is_empty(), "{:?}", boards(&place));

    let ended: Vec<Ended> = std::thread::scope(|scope| {
        let run = |out| {
            let command = lab(&place, &line(out));
            scope.spawn(move || end_of(command))
        };
        let all = ["a", "b", "c"].map(run);
        all.into_iter().map(|one| one.join().unwrap().with(0)).collect()
    });
    let makers = ended.into_iter().filter(|one| one.stderr.contains("boots once")).count();
    assert_eq!((makers, boards(&place).len()), (1, 1));
    for other in ["b", "c"] {
        place.run(&format!("compare --exact a {other}")).with(0);
    }
}
