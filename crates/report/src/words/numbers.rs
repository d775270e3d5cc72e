//! How numbers are written in every output.

use punctual_core::compare::Span;
use punctual_core::schema::{Run, Unit};
use punctual_core::units::{Civil, SECOND_NS, civil, exact_duration, grouped, human_ns};

use super::clean;

/// Lowest, median and highest of a quantity over runs, ns.
pub type Ends = Option<[f64; 3]>;

/// The ends of a span of integers.
#[must_use]
pub fn ends(span: Option<Span<i64>>) -> Ends {
    span.map(|span| [span.lowest as f64, span.median, span.highest as f64])
}

/// The ends of a span of means.
#[must_use]
pub fn mean_ends(span: Option<Span<f64>>) -> Ends {
    span.map(|span| [span.lowest, span.median, span.highest])
}

/// `566.0 (541.0 to 854.0) us`: in one unit if that leaves the lowest value its
/// digits, and a single value if all runs agree.
#[must_use]
pub fn span(ends: Ends) -> String {
    let Some([lowest, median, highest]) = ends else {
        return "-".to_owned();
    };
    let (unit, name, digits) = match highest.abs() {
        v if v < 1e3 => (1.0, "ns", 1),
        v if v < 1e6 => (1e3, "us", 1),
        v if v < 1e9 => (1e6, "ms", 3),
        _ => (1e9, "s", 3),
    };
    if lowest == highest {
        return mean_ns(median);
    }
    if lowest < unit / 10.0 && unit > 1.0 {
        return format!("{} ({} to {})", mean_ns(median), mean_ns(lowest), mean_ns(highest));
    }
    let text = |ns: f64| format!("{:.digits$}", ns / unit);
    format!("{} ({} to {}) {name}", text(median), text(lowest), text(highest))
}

/// A rate with three significant digits: `41.2 MB/s`, `1.20 k messages/s`.
#[must_use]
pub fn rate(name: &str, per_second: f64) -> String {
    let (value, prefix) = match per_second.abs() {
        v if v >= 1e9 => (per_second / 1e9, "G"),
        v if v >= 1e6 => (per_second / 1e6, "M"),
        v if v >= 1e4 => (per_second / 1e3, "k"),
        _ => (per_second, ""),
    };
    let digits = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    };
    if name == "bytes" {
        format!("{value:.digits$} {prefix}B/s")
    } else {
        let gap = if prefix.is_empty() { "" } else { " " };
        format!("{value:.digits$} {prefix}{gap}{}/s", clean(name))
    }
}

/// A mean or a deviation; below a microsecond, to a tenth of a nanosecond.
#[must_use]
#[allow(
    clippy::cast_possible_truncation,
    reason = "a mean of i64 values fits i64, and `as` saturates"
)]
pub fn mean_ns(ns: f64) -> String {
    if ns.abs() < 1_000.0 { format!("{ns:.1} ns") } else { human_ns(ns.round() as i64) }
}

/// A time within a cell: `4.218 s`, after its start.
#[must_use]
pub fn instant(ns: u64) -> String {
    let seconds = ns / SECOND_NS;
    if seconds < 60 {
        return human_ns(i64::try_from(ns).unwrap_or(i64::MAX));
    }
    let (h, m, s) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let ms = ns % SECOND_NS / 1_000_000;
    if h > 0 {
        format!("{h} h {m:02} min {s:02}.{ms:03} s")
    } else {
        format!("{m} min {s:02}.{ms:03} s")
    }
}

/// A duration with a space before its unit, if it is a whole number of it: `10 s`, `24 h`.
#[must_use]
pub fn duration(ns: u64) -> String {
    let text = exact_duration(ns);
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(0);
    let (number, unit) = text.split_at(split);
    if number.len() > 4 {
        return instant(ns);
    }
    format!("{number} {unit}")
}

/// A ratio with three significant digits from 0.01 to 100; `-` without one.
#[must_use]
pub fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or_else(
        || "-".to_owned(),
        |ratio| match ratio {
            r if r >= 100.0 => format!("{r:.0}"),
            r if r >= 10.0 => format!("{r:.1}"),
            r if r >= 1.0 => format!("{r:.2}"),
            r => format!("{r:.3}"),
        },
    )
}

/// When a run was started, ns since 1970 by the clock of the machine that started it; 0 if that was
/// not recorded. The clock of a virtual board starts on the same day in every boot, so of its runs it
/// is in the run's ID, to the second.
#[must_use]
pub fn started_ns(run: &Run) -> u64 {
    match run.board.lab {
        Some(_) => since_1970_s(&run.run_id).map_or(0, |s| s.saturating_mul(SECOND_NS)),
        None => run.started.realtime_ns,
    }
}

/// The time at the start of a run's ID, such as `20261120T170000Z`, in seconds since 1970.
fn since_1970_s(run_id: &str) -> Option<u64> {
    let text = run_id.get(..16)?;
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let number = |text: &str| {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse::<u64>().ok())?
    };
    let part = |text: &str, from: usize, to: usize| text.get(from..to).and_then(number);
    let (year, month, day) = (part(date, 0, 4)?, part(date, 4, 6)?, part(date, 6, 8)?);
    let (hour, minute, second) = (part(time, 0, 2)?, part(time, 2, 4)?, part(time, 4, 6)?);
    if year < 1970 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years from March on end with their leap day. Before 1970-01-01 there were 719,468 days.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    Some((days - 719_468) * 86_400 + hour * 3_600 + minute * 60 + second)
}

/// A time since 1970 as `2026-11-20 17:00:03 UTC`; none if it was not recorded.
#[must_use]
pub fn utc(realtime_ns: u64) -> Option<String> {
    if realtime_ns == 0 {
        return None;
    }
    let Civil { year, month, day, hour, minute, second } = civil(realtime_ns);
    Some(format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC"))
}

/// A value of a series in its unit; `-` without one.
#[must_use]
pub fn value(unit: Unit, value: Option<i64>) -> String {
    let Some(value) = value else {
        return "-".to_owned();
    };
    match unit {
        Unit::Ns => human_ns(value),
        unit => {
            let sign = if value < 0 { "-" } else { "" };
            format!("{sign}{} {}", grouped(value.unsigned_abs()), unit.name())
        }
    }
}

/// A mean or a deviation of a series in its unit; `-` without one.
#[must_use]
pub fn mean(unit: Unit, mean: Option<f64>) -> String {
    mean.map_or_else(|| "-".to_owned(), |mean| in_unit(unit, mean))
}

pub(super) fn in_unit(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Ns => mean_ns(value),
        Unit::Us => mean_ns(value * 1e3),
        Unit::Packets => format!("{value:.1} packets"),
        Unit::MegabytesPerSecond => rate("bytes", value * 1e6),
        Unit::PerSecond => rate("", value),
        Unit::Megahertz => format!("{value:.0} MHz"),
        Unit::Bytes => format!("{value:.0} bytes"),
        Unit::Pages => format!("{value:.0} pages"),
        Unit::Ratio => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_follow_the_calendar() {
        // From `date -u -d @N`.
        for (seconds, text) in [
            (1, "1970-01-01 00:00:01 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_795_194_003, "2026-11-20 17:00:03 UTC"),
            (4_107_542_399, "2100-02-28 23:59:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(utc(seconds * SECOND_NS).as_deref(), Some(text));
        }
        assert_eq!(utc(0), None);
    }

    #[test]
    fn the_time_in_a_run_s_id_is_read() {
        for seconds in [0, 1, 951_782_400, 1_795_194_003, 4_107_542_399, 4_107_542_400] {
            let name =
                format!("{}-debian-rt-0-f00", punctual_core::units::utc(seconds * SECOND_NS));
            assert_eq!(since_1970_s(&name), Some(seconds), "{name}");
        }
        let none = ["", "r1", "20261120T170003", "2026112\u{e9}T170003Z", "20261320T170003Z-x"];
        for name in none.into_iter().chain(["+2026112T170003Z-x", "19691231T235959Z-x"]) {
            assert_eq!(since_1970_s(name), None, "{name}");
        }
    }

    #[test]
    fn spans_have_one_unit_if_it_serves_them() {
        for (ends, text) in [
            ([541e3, 566e3, 854e3], "566.0 (541.0 to 854.0) us"),
            ([905e3, 1.5e6, 12e6], "1.500 (0.905 to 12.000) ms"),
            ([21e3, 1.5e6, 12e6], "1.500 ms (21.0 us to 12.000 ms)"),
            ([-850.0, 20.0, 2_000.0], "20.0 ns (-850.0 ns to 2.0 us)"),
            ([21.5, 22.0, 30.0], "22.0 (21.5 to 30.0) ns"),
            ([23_400.0; 3], "23.4 us"),
        ] {
            assert_eq!(span(Some(ends)), text);
        }
        assert_eq!(span(None), "-");
    }

    #[test]
    fn rates_have_three_digits() {
        for (name, value, text) in [
            ("bytes", 41_234_567.0, "41.2 MB/s"),
            ("forks", 512.3, "512 forks/s"),
            ("messages", 52_123.0, "52.1 k messages/s"),
            ("files", 0.0, "0.00 files/s"),
        ] {
            assert_eq!(rate(name, value), text);
        }
    }

    #[test]
    fn times_read_well() {
        assert_eq!(instant(4_218_000_000), "4.218 s");
        assert_eq!(instant(125_007_000_000), "2 min 05.007 s");
        assert_eq!(instant(86_399_001_000_000), "23 h 59 min 59.001 s");
        assert_eq!(duration(10 * SECOND_NS), "10 s");
        assert_eq!(duration(86_400 * SECOND_NS), "24 h");
        assert_eq!(duration(1_234_567_890), "1.235 s");
        assert_eq!(
            [0.9, 1.0, 12.34, 127.6].map(|r| ratio(Some(r))),
            ["0.900", "1.00", "12.3", "128"]
        );
    }

    #[test]
    fn values_have_the_unit_of_their_series() {
        assert_eq!(value(Unit::Ns, Some(-1_500)), "-1.5 us");
        assert_eq!(value(Unit::Packets, Some(-12_000)), "-12,000 packets");
        assert_eq!([value(Unit::Ns, None), mean(Unit::Packets, None)], ["-", "-"]);
        for (unit, number, text) in [
            (Unit::Ns, 120.34, "120.3 ns"),
            (Unit::Us, 1.5, "1.5 us"),
            (Unit::Packets, 2.25, "2.2 packets"),
            (Unit::MegabytesPerSecond, 4_300.0, "4.30 GB/s"),
            (Unit::PerSecond, 52_300.0, "52.3 k /s"),
            (Unit::Megahertz, 2_893.4, "2893 MHz"),
            (Unit::Bytes, 64.0, "64 bytes"),
            (Unit::Pages, 32.0, "32 pages"),
            (Unit::Ratio, 3.456, "3.46"),
        ] {
            assert_eq!(mean(unit, Some(number)), text);
        }
    }
}
