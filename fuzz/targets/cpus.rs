//! Lists of CPUs, as people and as the kernel write them.

use punctual_sys::affinity::CpuSet;

pub fn target(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    if let Some(set) = CpuSet::parse(text) {
        let written = set.to_string();
        assert_eq!(CpuSet::parse(&written), Some(set), "{written}");
    }
}
