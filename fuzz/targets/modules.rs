//! What kernel modules say about themselves.
#![no_main]

use libfuzzer_sys::fuzz_target;
use punctual_lab::modules::Modinfo;

fuzz_target!(|bytes: &[u8]| {
    let _ = Modinfo::read(bytes);
});
