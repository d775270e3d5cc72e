//! Lists of CPUs, as people and as the kernel write them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use punctual_suite::facts::cpu_list::CpuList;
use punctual_sys::affinity::CpuSet;

fuzz_target!(|text: &str| {
    if let Some(list) = CpuList::parse(text) {
        assert_eq!(CpuList::parse(&list.to_string()), Some(list));
    }
    if let Some(set) = CpuSet::parse(text) {
        let written = set.to_string();
        assert!(set.is_empty() || CpuSet::parse(&written) == Some(set), "{written}");
    }
});
