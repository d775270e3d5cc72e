//! Lists of CPUs, as people and as the kernel write them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use punctual_sys::affinity::CpuSet;

fuzz_target!(|text: &str| {
    if let Some(set) = CpuSet::parse(text) {
        let written = set.to_string();
        assert_eq!(CpuSet::parse(&written), Some(set), "{written}");
    }
});
