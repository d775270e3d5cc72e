//! Durations with units, in and out.

use thiserror::Error;

/// Nanoseconds in one second.
pub const SECOND_NS: u64 = 1_000_000_000;

/// Why a duration could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UnitError {
    /// Not a number followed by a unit.
    #[error("\"{0}\" is not a time; write a number and a unit, as in 200us, 1ms, 24h")]
    Malformed(String),
    /// A bare number, although a unit is required.
    #[error("\"{0}\" has no unit; write for example {0}us or {0}ms")]
    UnitMissing(String),
    /// `m`, although a minute makes no sense.
    #[error("\"{0}\": m is a minute, which makes no sense here; ms is a millisecond")]
    Minute(String),
    /// More than u64 nanoseconds (584 years).
    #[error("\"{0}\" is longer than 584 years")]
    TooLong(String),
}

/// What a bare number means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BareNumber {
    /// Microseconds, as for cyclictest's `-i` and `-b`. Minutes are refused.
    Microseconds,
    /// Seconds, as for cyclictest's `-D`. `m` is a minute.
    Seconds,
    /// An error: a unit is required. Minutes are refused.
    Refused,
}

/// Reads a duration such as `200us`, `1.5ms` or `24h`, in nanoseconds.
///
/// Units: `ns`, `us` (or `µs`), `ms`, `s`, `m` (or `min`), `h`, `d`. Fractions are
/// exact in integers; digits below a nanosecond are an error.
///
/// # Errors
/// [`UnitError`] says what is wrong with the text.
pub fn parse_duration_ns(text: &str, bare: BareNumber) -> Result<u64, UnitError> {
    let malformed = || UnitError::Malformed(text.to_owned());
    let trimmed = text.trim();
    let unit_start = trimmed
        .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')
        .unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(unit_start);
    let unit_ns: u64 = match (unit.trim(), bare) {
        ("ns", _) => 1,
        ("us" | "µs" | "μs", _) | ("", BareNumber::Microseconds) => 1_000,
        ("ms", _) => 1_000_000,
        ("s", _) | ("", BareNumber::Seconds) => SECOND_NS,
        ("m" | "min", BareNumber::Seconds) => 60 * SECOND_NS,
        ("m" | "min", _) => return Err(UnitError::Minute(text.to_owned())),
        ("h", _) => 3_600 * SECOND_NS,
        ("d", _) => 86_400 * SECOND_NS,
        ("", BareNumber::Refused) if !number.is_empty() => {
            return Err(UnitError::UnitMissing(text.to_owned()));
        }
        _ => return Err(malformed()),
    };
    scale(&number.replace('_', ""), unit_ns).ok_or_else(|| {
        if number.bytes().all(|b| b.is_ascii_digit()) && !number.is_empty() {
            UnitError::TooLong(text.to_owned())
        } else {
            malformed()
        }
    })
}

/// `number` (decimal, at most one point) times `unit`, exactly.
fn scale(number: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.len() > 18 {
        return None;
    }
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut value = whole.checked_mul(u128::from(unit))?;
    if !fraction.is_empty() {
        let digits: u128 = fraction.parse().ok()?;
        let scaled = digits * u128::from(unit);
        let power = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
        if !scaled.is_multiple_of(power) {
            return None;
        }
        value = value.checked_add(scaled / power)?;
    }
    u64::try_from(value).ok()
}

/// Writes a duration exactly with the largest unit that keeps it an integer:
/// `200us`, `1ms`, `24h`. The inverse of [`parse_duration_ns`].
#[must_use]
pub fn exact_duration(ns: u64) -> String {
    const UNITS: [(u64, &str); 6] = [
        (3_600 * SECOND_NS, "h"),
        (60 * SECOND_NS, "min"),
        (SECOND_NS, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
        (1, "ns"),
    ];
    if ns == 0 {
        return "0s".to_owned();
    }
    // Minutes and hours only if they are short: 90 s reads better than 1.5 min.
    let (unit, name) =
        UNITS.into_iter().find(|(unit, _)| ns.is_multiple_of(*unit)).unwrap_or((1, "ns"));
    format!("{}{name}", ns / unit)
}

/// Writes a latency for people: three or four significant digits and its unit,
/// as in `23.4 us`, `1.204 ms`, `-850 ns`.
#[must_use]
pub fn human_ns(ns: i64) -> String {
    let magnitude = ns.unsigned_abs();
    let sign = if ns < 0 { "-" } else { "" };
    let (unit, name) = match magnitude {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (1_000, "us"),
        1_000_000..SECOND_NS => (1_000_000, "ms"),
        _ => (SECOND_NS, "s"),
    };
    let tenths = decimal(magnitude, unit, 1);
    if unit == 1_000 {
        format!("{sign}{tenths} {name}")
    } else {
        format!("{sign}{} {name}", decimal(magnitude, unit, 3))
    }
}

/// A time in the unit that people would use for it: `20.0 s`, `34.7 days`.
#[allow(clippy::cast_precision_loss, reason = "one decimal is shown")]
#[must_use]
pub fn stretch(ns: u64) -> String {
    const HOUR: u64 = 3_600;
    let (unit, name) = match ns / SECOND_NS {
        0 => return human_ns(i64::try_from(ns).unwrap_or(i64::MAX)),
        1..120 => (1, "s"),
        120..7_200 => (60, "min"),
        7_200..172_800 => (HOUR, "h"),
        172_800.. => (24 * HOUR, "days"),
    };
    format!("{:.1} {name}", ns as f64 / (unit * SECOND_NS) as f64)
}

/// A share in percent, without the sign: `1`, `0.01`. Eleven digits, so that 7e-4 is 0.07.
#[must_use]
pub fn percent(share: f64) -> String {
    let rounded = format!("{:.10e}", share * 100.0);
    rounded.parse::<f64>().unwrap_or(f64::NAN).to_string()
}

/// `value / unit` with `places` decimals, rounded half up, in integers.
fn decimal(value: u64, unit: u64, places: u32) -> String {
    let power = 10_u128.pow(places);
    let scaled = (u128::from(value) * power + u128::from(unit) / 2) / u128::from(unit);
    let width = places as usize;
    format!("{}.{:0width$}", scaled / power, scaled % power)
}

/// A date and time of day, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Civil {
    /// Year, such as 2026.
    pub year: u64,
    /// Month, 1 to 12.
    pub month: u64,
    /// Day of the month, 1 to 31.
    pub day: u64,
    /// Hour, 0 to 23.
    pub hour: u64,
    /// Minute, 0 to 59.
    pub minute: u64,
    /// Second, 0 to 59: leap seconds are not counted since 1970.
    pub second: u64,
}

/// The date and time of day at `realtime_ns` since 1970. Howard Hinnant, "chrono-compatible
/// low-level date algorithms": civil_from_days, with years that begin in March so that the
/// leap day is the last.
#[must_use]
pub fn civil(realtime_ns: u64) -> Civil {
    let seconds = realtime_ns / SECOND_NS;
    let (days, time) = (seconds / 86_400, seconds % 86_400);
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    Civil {
        year: year_of_era + era * 400 + u64::from(month <= 2),
        month,
        day: day_of_year - (153 * march_month + 2) / 5 + 1,
        hour: time / 3_600,
        minute: time / 60 % 60,
        second: time % 60,
    }
}

/// Writes a count with a comma every three digits: `1,024,000`.
#[must_use]
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A time for names, such as `20261120T170000Z`, from nanoseconds since 1970.
#[must_use]
pub fn utc(realtime_ns: u64) -> String {
    let Civil { year, month, day, hour, minute, second } = civil(realtime_ns);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_have_the_unit_that_people_use() {
        for (ns, text) in [
            (20_000_000, "20.000 ms"),
            (20 * SECOND_NS, "20.0 s"),
            (150 * SECOND_NS, "2.5 min"),
            (12 * 3_600 * SECOND_NS, "12.0 h"),
            (3_000_000 * SECOND_NS, "34.7 days"),
        ] {
            assert_eq!(stretch(ns), text);
        }
    }

    #[test]
    fn units_are_read_exactly() {
        for (text, ns) in [
            ("200us", 200_000),
            ("1.5ms", 1_500_000),
            ("24h", 86_400 * SECOND_NS),
            ("0.000000001s", 1),
            ("1_000us", 1_000_000),
            (" 3 s", 3 * SECOND_NS),
        ] {
            assert_eq!(parse_duration_ns(text, BareNumber::Refused), Ok(ns), "{text}");
        }
    }

    #[test]
    fn a_bare_number_means_what_the_option_says() {
        assert_eq!(parse_duration_ns("1000", BareNumber::Microseconds), Ok(1_000_000));
        assert_eq!(parse_duration_ns("10", BareNumber::Seconds), Ok(10 * SECOND_NS));
        assert_eq!(parse_duration_ns("1m", BareNumber::Seconds), Ok(60 * SECOND_NS));
        assert!(matches!(
            parse_duration_ns("5", BareNumber::Refused),
            Err(UnitError::UnitMissing(_))
        ));
        assert!(matches!(
            parse_duration_ns("1m", BareNumber::Microseconds),
            Err(UnitError::Minute(_))
        ));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "ms", "1.2.3ms", "-1ms", "1e3us", "0.5ns", "5 parsec", "."] {
            assert!(
                matches!(
                    parse_duration_ns(text, BareNumber::Seconds),
                    Err(UnitError::Malformed(_))
                ),
                "{text}"
            );
        }
        assert!(matches!(
            parse_duration_ns("999999999999h", BareNumber::Seconds),
            Err(UnitError::TooLong(_))
        ));
    }

    #[test]
    fn latencies_read_well() {
        for (ns, text) in [
            (0, "0 ns"),
            (-850, "-850 ns"),
            (23_449, "23.4 us"),
            (999_950, "1000.0 us"),
            (1_204_000, "1.204 ms"),
            (-2_500_000_000, "-2.500 s"),
            (i64::MIN, "-9223372036.855 s"),
        ] {
            assert_eq!(human_ns(ns), text);
        }
        assert_eq!(grouped(1_024_000), "1,024,000");
        assert_eq!(grouped(7), "7");
    }

    proptest! {
        #[test]
        fn exact_duration_round_trips(ns in 0_u64..=u64::MAX) {
            prop_assert_eq!(parse_duration_ns(&exact_duration(ns), BareNumber::Seconds), Ok(ns));
        }

        #[test]
        fn no_text_panics(text in ".*") {
            let _ = parse_duration_ns(&text, BareNumber::Seconds);
        }
    }

    #[test]
    fn time_is_written_as_utc() {
        for (seconds, text) in [
            (0, "19700101T000000Z"),
            (951_782_399, "20000228T235959Z"),
            (951_782_400, "20000229T000000Z"),
            (1_795_194_000, "20261120T170000Z"),
        ] {
            assert_eq!(utc(seconds * 1_000_000_000), text);
        }
    }
}
