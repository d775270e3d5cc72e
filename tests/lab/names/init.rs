//! The init of a guest that prints how its kernel names its own addresses, and ends. The console
//! is slow, so it prints a hash of every 1,024 lines of `/proc/kallsyms`; those of modules and of
//! what the kernel makes while it runs are left out.

use std::ffi::{c_char, c_int, c_ulong, c_void};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::ptr::null;

unsafe extern "C" {
    fn mount(
        source: *const c_char,
        target: *const c_char,
        kind: *const c_char,
        flags: c_ulong,
        data: *const c_void,
    ) -> c_int;
    fn reboot(how: c_int) -> c_int;
}

/// `RB_AUTOBOOT`: QEMU ends instead (`-no-reboot`).
const RESTART: c_int = 0x0123_4567;

fn main() {
    let _ = fs::create_dir("/proc");
    let proc = c"proc".as_ptr();
    // SAFETY: the texts live as long as the program.
    unsafe { mount(proc, c"/proc".as_ptr(), proc, 0, null()) };
    let lines = BufReader::new(File::open("/proc/kallsyms").expect("/proc/kallsyms")).split(b'\n');
    let mut hash = START;
    let mut count = 0;
    for line in lines.map_while(Result::ok).filter(|line| !line.contains(&b'[')) {
        hash = hashed(hash, &line);
        count += 1;
        if count % 1_024 == 0 {
            println!("kallsyms {count} {hash:016x}");
        }
    }
    println!("kallsyms {count} {hash:016x}");
    println!("kallsyms end");
    // SAFETY: no memory is passed.
    unsafe { reboot(RESTART) };
}

/// FNV-1a (RFC 9923), 64 bits.
const START: u64 = 0xcbf2_9ce4_8422_2325;

fn hashed(hash: u64, line: &[u8]) -> u64 {
    let line = line.iter().chain(b"\n");
    line.fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
