//! Guests of the lab that lie. The emulator is a script that writes what it was given to the
//! channel, so that no board need be booted.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use punctual_core::channel::{Event, Message, encode};

use punctual_harness::processes::{signal, wait_at_most};
use punctual_harness::{Ended, Place, Tmpfs, end_of, need, programs, root, until};

/// A place with a kernel of nothing, a program of nothing, and an emulator that sends `stream`
/// and then executes `after`.
fn place(stream: &[u8], after: &str) -> Place {
    let place = Place::new();
    let mut image = vec![0_u8; 64];
    image[56..60].copy_from_slice(b"ARM\x64");
    image.extend_from_slice(b"Linux version 6.1.0 (x@y)\0");
    fs::write(place.path.join("image"), image).unwrap();
    // An ELF file for aarch64 without a dynamic linker.
    let mut program = [b"\x7fELF\x02\x01".to_vec(), vec![0; 58]].concat();
    program[18] = 183;
    fs::write(place.path.join("program"), program).unwrap();
    fs::write(place.path.join("stream"), stream).unwrap();
    let script = format!(
        "#!/bin/sh\n\
         [ \"$1\" = --version ] && echo 'QEMU emulator version 7.2.22' && exit\n\
         for word; do case $word in file,id=channel,path=*) to=${{word#*path=}};; esac; done\n\
         cat '{}' >\"$to\"\n{after}\n",
        place.at("stream")
    );
    fs::create_dir(place.path.join("bin")).unwrap();
    let emulator = place.path.join("bin/qemu-system-aarch64");
    fs::write(&emulator, script).unwrap();
    fs::set_permissions(&emulator, fs::Permissions::from_mode(0o755)).unwrap();
    place
}

fn lab(place: &Place, out: &str, more: &[&str]) -> Command {
    let line = ["lab", "run", "--offline", "--board", "aarch64", "--kernel", "./image"];
    let program = place.at("program");
    let rest = ["--program", &program, "--no-report", "--out", out, "sim", "-D", "1s"];
    let mut command = place.command(&[&line[..], more, &rest].concat());
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", place.at("bin")));
    command.env("PUNCTUAL_CACHE", place.at("cache"));
    command
}

fn run(place: &Place) -> Ended {
    end_of(lab(place, "r", &[]))
}

fn event(event: Event) -> Vec<u8> {
    encode(&Message::Event(event))
}

fn ended(whole: bool) -> Vec<u8> {
    event(Event::Ended { at_ns: 9, whole })
}

/// What a guest left in its run directory.
fn left(place: &Place) -> Vec<String> {
    let folder = place.path.join("r/image-0");
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_guest_that_says_it_is_done_and_sent_nothing_has_failed() {
    let place = place(&ended(true), "");
    run(&place).with(69).says(&[
        "FAILED: ",
        "said that its run is complete",
        "run.json is missing",
    ]);
}

#[test]
fn a_guest_writes_no_file_but_its_own_and_nothing_to_the_terminal() {
    let file = |name: &str| encode(&Message::Whole(name.to_owned(), b"<script>".to_vec()));
    let key = "\x1b]0;owned\x07".to_owned();
    let stream = [
        file("evil.sh"),
        file("report.html"),
        file("cells/00-other/blocks"),
        file("\x1b[31m"),
        event(Event::Cell { at_ns: 1, number: 0, key, before_ns: 0 }),
        event(Event::Trouble { text: "\x1b[2Jit failed\u{202e}".to_owned() }),
        ended(false),
    ];
    let place = place(&stream.concat(), "");
    let ended = run(&place).with(69).says(&["it failed", "\"evil.sh\" is no file of this run"]);
    let printed = format!("{}{}", ended.stdout, ended.stderr);
    assert!(!printed.contains(['\x1b', '\x07', '\u{202e}']), "{printed:?}");
    assert_eq!(left(&place), ["console.log"]);
}

#[test]
fn a_guest_whose_time_is_over_is_ended() {
    let late = Event::Progress { at_ns: 1 << 60, measured_ns: 1, max_ns: None };
    let place = place(&event(late), "exec sleep 1000");
    run(&place).with(69).says(&["goes on after 363 s of the board's time"]);
}

#[test]
fn signals_and_patience_are_minded_whatever_arrives() {
    // As it was, each of these headers cost a checksum of all that follows.
    let header = [&[0xF5, b'E'][..], &10_000_000_u32.to_le_bytes(), &[1, 2, 3, 4]].concat();
    let place = place(&header.repeat(2_000_000), "exec sleep 1000");
    let mut command = lab(&place, "r", &["--patience", "1h"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = || channel(&place).metadata().is_ok_and(|file| file.len() > 0);
    assert!(until(Duration::from_secs(30), begun));
    signal(&child, "INT");
    assert_eq!(wait_at_most(&mut child, Duration::from_secs(20), "SIGINT").code(), Some(130));
    assert!(until(Duration::from_secs(2), || place.living().is_empty()), "{:?}", place.living());
    let impatient = end_of(lab(&place, "s", &["--patience", "1s"]));
    impatient.with(69).says(&["no sign of life for 1 s", "damaged message"]);
}

/// The channel of a guest that runs; no file without one.
fn channel(place: &Place) -> PathBuf {
    let out = place.path.join("r");
    let names = fs::read_dir(&out).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let mut working = names.filter(|name| name.to_string_lossy().starts_with("punctual-load-"));
    out.join(working.next().unwrap_or_default()).join("image-0/channel")
}

#[test]
fn what_a_killed_lab_has_left_goes_with_a_restore() {
    let at_work = Event::Progress { at_ns: 1, measured_ns: 1, max_ns: None };
    let place = place(&event(at_work), "exec sleep 1000");
    let mut command = lab(&place, "r", &[]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = || channel(&place).metadata().is_ok_and(|file| file.len() > 0);
    assert!(until(Duration::from_secs(30), begun));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(until(Duration::from_secs(2), || place.living().is_empty()), "{:?}", place.living());
    let left = channel(&place);
    let working = left.ancestors().nth(2).unwrap().to_str().unwrap();
    place.run("restore").with(0).says(&[working]);
    assert!(!left.exists() && !Path::new(working).exists());
    assert!(place.path.join("r/image-0/console.log").exists(), "what has arrived stays");
}

#[test]
fn a_full_disk_is_the_reason() {
    need!(root());
    need!(programs(&["mount"]));
    let place = place(&[], "");
    let on = place.path.join("small");
    let disk = Tmpfs::mount(&on, "1m");
    // The emulator ends as it does if the disk took none of what it wrote.
    let out = on.join("r");
    let script = place.path.join("bin/qemu-system-aarch64");
    let text = fs::read_to_string(&script).unwrap();
    fs::write(&script, format!("{text}cat /dev/zero >\"${{to%/*}}/fill\"\nexit 0\n")).unwrap();
    let ended = end_of(lab(&place, out.to_str().unwrap(), &[]));
    ended.with(69).says(&["FAILED: the disk of", "small/r", "is full: free some space", "--out"]);
    drop(disk);
}

#[test]
fn kernels_and_modules_that_are_no_files_are_refused() {
    need!(programs(&["mkfifo"]));
    let place = place(&[], "");
    let fifo = place.at("fifo");
    let mut mkfifo = Command::new("mkfifo");
    mkfifo.arg(&fifo);
    end_of(mkfifo).with(0);
    let of = |more: &[&str]| end_of(lab(&place, "r", more)).with(2);
    for (kernel, is) in [("/dev/zero", "a device"), (fifo.as_str(), "a FIFO")] {
        of(&["--kernel", kernel]).says(&["cannot read the kernel", kernel, is, "no regular file"]);
    }
    let none = ["it contains none of kernel, modules.order", "/lib/modules/RELEASE"];
    of(&["--modules", "/", "--module", "loop"]).says(&[
        "/ is no folder of modules",
        none[0],
        none[1],
    ]);
    let modules = place.path.join("modules/kernel");
    fs::create_dir_all(&modules).unwrap();
    fs::rename(&fifo, modules.join("x.ko")).unwrap();
    let folder = place.at("modules");
    of(&["--modules", &folder, "--module", "x"]).says(&["x.ko", "it is a FIFO"]);
}
