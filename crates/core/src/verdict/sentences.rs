//! Numbers as the sentences of a verdict print them.

use crate::schema::Broke;
use crate::stats::samples_needed;
use crate::units::{SECOND_NS, exact_duration, grouped, human_ns};

/// A deadline as it was given, with a space before its unit: `200 us`.
pub(super) fn deadline(ns: u64) -> String {
    let exact = exact_duration(ns);
    let unit = exact.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(exact.len());
    format!("{} {}", &exact[..unit], &exact[unit..])
}

/// The sample above the break value.
pub(super) fn broke(broke: &Broke) -> String {
    let cpu = broke.cpu.map_or_else(String::new, |cpu| format!(", CPU {cpu}"));
    let at =
        broke.at_ns.map_or_else(String::new, |at| format!(", at {}", human_ns(at.cast_signed())));
    format!(
        "{} > break value {} (thread {}{cpu}{at})",
        human_ns(broke.latency_ns),
        deadline(broke.limit_ns),
        broke.thread
    )
}

/// A time in the unit that people would use for it: `20.0 s`, `34.7 days`.
#[allow(
    clippy::cast_precision_loss,
    reason = "one decimal is shown of what may be thousands of years"
)]
pub(super) fn stretch(ns: u128) -> String {
    const HOUR: u128 = 3_600;
    let (unit, name) = match ns / u128::from(SECOND_NS) {
        0 => return human_ns(i64::try_from(ns).unwrap_or(i64::MAX)),
        1..120 => (1, "s"),
        120..7_200 => (60, "min"),
        7_200..172_800 => (HOUR, "h"),
        172_800..63_072_000 => (24 * HOUR, "days"),
        _ => (8_766 * HOUR, "years"),
    };
    format!("{:.1} {name}", ns as f64 / (unit * u128::from(SECOND_NS)) as f64)
}

/// An upper bound of a share, never smaller than it is: `at most 1 in 10,016`.
pub(super) fn at_most(bound: f64) -> String {
    match one_in(bound) {
        Some(n) => format!("at most 1 in {}", grouped(n)),
        None => format!("at most {:.1} %", (bound * 1e3).ceil() / 10.0),
    }
}

/// The n of "1 in n", rounded down; none if half or more exceed.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
fn one_in(bound: f64) -> Option<u64> {
    // Exactly 1/n must not become n - 1.
    let n = (1.0 / bound * (1.0 + 4.0 * f64::EPSILON)).floor();
    (n >= 2.0).then_some(n as u64)
}

/// A probability in the shortest form: `1e-4`, `0.05`.
pub(super) fn probability(p: f64) -> String {
    if p < 1e-2 { format!("{p:e}") } else { p.to_string() }
}

/// A confidence in percent: `95 %`, `99.9 %`.
pub(super) fn confidence(c: f64) -> String {
    let percent = format!("{:.6}", c * 100.0);
    let percent = percent.trim_end_matches('0').trim_end_matches('.');
    format!("{percent} %")
}

/// How much longer to run until `k` exceedances in total leave an upper bound of
/// at most `target`.
pub(super) fn needs(
    target: f64,
    k: u64,
    scheduled: u64,
    interval_ns: Option<u64>,
    nouns: &str,
    level: f64,
) -> String {
    let asked = format!("not enough evidence for P <= {}", probability(target));
    let Some(needed) = samples_needed(target, k, level) else {
        return format!("{asked}: no practical number of releases is enough");
    };
    let more = needed.saturating_sub(scheduled);
    let longer = match interval_ns {
        Some(interval) => {
            let time = stretch(u128::from(more) * u128::from(interval));
            format!("{time} more at this interval")
        }
        None => format!("{} more", grouped(more)),
    };
    let what = if interval_ns.is_some() { "releases" } else { nouns };
    let calm = if k > 0 { ", if no more are late" } else { "" };
    format!("{asked}: needs {} {what}, {longer}{calm}", grouped(needed))
}

/// What the maximum is worth (L0): as many releases again exceed it with
/// probability n / (n + n), if they are exchangeable with the past ones.
pub(super) fn maximum(
    max_ns: i64,
    scheduled: u64,
    interval_ns: Option<u64>,
    nouns: &str,
) -> String {
    let max = human_ns(max_ns);
    match interval_ns {
        Some(interval) => {
            let time = stretch(u128::from(scheduled) * u128::from(interval));
            format!(
                "a maximum seen in {time} ({max}) has a 50 % chance of being exceeded in the next \
                 {time}"
            )
        }
        None => {
            let n = grouped(scheduled);
            format!(
                "a maximum seen in {n} {nouns} ({max}) has a 50 % chance of being exceeded in the \
                 next {n}"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_read_as_people_say_them() {
        assert_eq!(deadline(200_000), "200 us");
        assert_eq!(deadline(1_500_000), "1500 us");
        assert_eq!(stretch(20_000_000_000), "20.0 s");
        assert_eq!(stretch(2_995_732_273_000_000), "34.7 days");
        assert_eq!(stretch(12 * 3_600 * 1_000_000_000), "12.0 h");
        assert_eq!(stretch(20_000_000), "20.000 ms");
        assert_eq!(probability(1e-4), "1e-4");
        assert_eq!(probability(0.05), "0.05");
        assert_eq!(confidence(0.95), "95 %");
        assert_eq!(confidence(0.999), "99.9 %");
        assert_eq!(at_most(1e-4), "at most 1 in 10,000");
        assert_eq!(at_most(0.7), "at most 70.0 %");
        assert_eq!(at_most(1.0), "at most 100.0 %");
    }

    #[test]
    fn what_is_missing_is_said_in_releases_and_time() {
        assert_eq!(
            needs(1e-4, 0, 9_956, Some(1_000_000), "hand-overs", 0.95),
            "not enough evidence for P <= 1e-4: needs 29,956 releases, 20.0 s more at this interval"
        );
        assert_eq!(
            needs(1e-9, 0, 0, Some(1_000_000), "hand-overs", 0.95),
            "not enough evidence for P <= 1e-9: needs 2,995,732,273 releases, 34.7 days more at this interval"
        );
        assert_eq!(
            needs(1e-2, 3, 500, None, "hand-overs", 0.95),
            "not enough evidence for P <= 0.01: needs 773 hand-overs, 273 more, if no more are late"
        );
    }

    #[test]
    fn a_maximum_says_how_long_it_took_to_find() {
        assert_eq!(
            maximum(104_100, 30_000, Some(1_000_000), "hand-overs"),
            "a maximum seen in 30.0 s (104.1 us) has a 50 % chance of being exceeded in the next 30.0 s"
        );
    }

    proptest! {
        #[test]
        fn one_in_n_is_never_less_than_the_bound(bound in 1e-12_f64..0.5) {
            let n = one_in(bound).unwrap();
            prop_assert!(1.0 / n as f64 >= bound * (1.0 - 1e-14));
            prop_assert!(1.0 / (n as f64 + 1.0) < bound);
        }
    }
}
