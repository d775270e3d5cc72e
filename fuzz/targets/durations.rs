//! Durations with units: what is read is written and read again the same.

use punctual_core::units::{BareNumber, exact_duration, human_ns, parse_duration_ns};

pub fn target(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    for bare in [BareNumber::Microseconds, BareNumber::Seconds, BareNumber::Refused] {
        if let Ok(ns) = parse_duration_ns(text, bare) {
            let written = exact_duration(ns);
            assert_eq!(parse_duration_ns(&written, BareNumber::Seconds), Ok(ns), "{written}");
            let _ = human_ns(i64::try_from(ns).unwrap_or(i64::MAX));
        }
    }
}
