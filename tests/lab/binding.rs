//! The probe `uio` on a device that has no driver: it binds it, and leaves it without one.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use punctual_lab::board::BoardSpec;
use punctual_lab::{device, modules};

use crate::boards::x86_64;
use crate::shell::{console_of, initramfs_with, kernel};
use punctual_harness::{Place, need, programs, text};

/// `insmod FILE...`, without a dynamic linker.
const INSMOD: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (syscall(SYS_finit_module, open(argv[i], O_RDONLY), "", 0))
            perror(argv[i]);
    return 0;
}
"#;

/// The guest's init. Nothing but punctual writes to the files of the device or its driver.
const SCRIPT: &str = r#"#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
/insmod MODULES
device=$(grep -lx 0x11e8 /sys/bus/pci/devices/*/device)
device=${device%/device}
state() {
    echo "$1: driver $(readlink $device/driver), kept for $(cat $device/driver_override)"
}
state before
/punctual run uio -D 500ms --no-warmup --no-report -q --json --out /run/a > /run/said
echo "ran $?"
grep -m 1 '"samples": [0-9]' /run/said
state after
/punctual run uio -D 1h --no-warmup --no-report -q --out /run/b > /run/said &
while ! test -e $device/uio; do
    sleep 0.1
done
sleep 0.3
kill -KILL $!
wait $!
echo "status $?"
state killed
/punctual restore
echo "restored $?"
state restored
echo "= end"
"#;

/// Compiles a program that needs no library.
fn compile(place: &Place, name: &str, source: &str) -> Vec<u8> {
    let path = place.open_folder(name);
    let (from, to) = (path.join("source.c"), path.join(name));
    std::fs::write(&from, source).unwrap();
    let made = Command::new("cc").arg("-static").arg("-o").args([&to, &from]).output().unwrap();
    assert!(made.status.success(), "{}", text(&made.stderr));
    std::fs::read(to).unwrap()
}

#[test]
fn a_device_without_a_driver_is_bound_and_released_again() {
    need!(x86_64());
    need!(programs(&["cc"]));
    let place = Place::of_build();
    let (kernel, edu) = (kernel(), device::find("edu").unwrap());
    let wanted: Vec<&str> = edu.modules.iter().map(|(name, _)| *name).collect();
    let folder: &Path = kernel.modules.as_deref().unwrap();
    let modules = modules::closure(Some(folder), &kernel.release, &wanted).unwrap();
    let names: Vec<String> = modules.iter().map(|one| format!("/{}", one.file_name)).collect();
    let insmod = compile(&place, "insmod", INSMOD);
    let own = [("insmod", &insmod)].into_iter();
    let own = own.chain(modules.iter().map(|one| (one.file_name.as_str(), &one.bytes)));
    let script = SCRIPT.replace("MODULES", &names.join(" "));
    let programs = ["mount", "cat", "grep", "readlink", "sleep"];
    let files = initramfs_with(&programs, &script, own);
    let board = BoardSpec { devices: vec![edu], ..BoardSpec::default() };
    let console = console_of(&place, &files, &board, &kernel, Duration::from_secs(120));
    println!("{console}");
    assert!(console.contains("= end\n"), "{console}");
    let without = "driver , kept for (null)\n";
    let with = "/uio_pci_generic, kept for uio_pci_generic\n";
    let has = |when: &str, state: &str| {
        let said = console.split(&format!("{when}: ")).nth(1).unwrap_or_else(|| panic!("{when}"));
        assert!(said.split_inclusive('\n').next().unwrap().ends_with(state), "{when}: {said}");
    };
    has("before", without);
    assert!(console.contains("ran 0\n"), "{console}");
    let samples = console.split("\"samples\": ").nth(1).unwrap().split(',').next().unwrap();
    assert!(samples.parse::<u64>().unwrap() >= 100, "{samples}");
    has("after", without);
    assert!(console.contains("status 137\n") && console.contains("restored 0\n"), "{console}");
    has("killed", with);
    has("restored", without);
}
