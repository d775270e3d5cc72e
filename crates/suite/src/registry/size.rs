//! Sizes with units.

/// Reads a size such as `4096`, `64K`, `256M` or `2G` (powers of 1024), in bytes.
///
/// # Errors
/// How a size is written.
pub fn parse(text: &str) -> Result<u64, String> {
    let wrong = || "write a size in bytes, or with a unit, such as 64K, 256M or 2G".to_owned();
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match &text[digits.len()..] {
        "" => 0,
        "K" | "k" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err(wrong()),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(1 << shift).ok_or_else(wrong)
}

/// Writes a size with the largest unit that keeps it whole.
#[must_use]
pub fn text(bytes: u64) -> String {
    let units = [(40, "T"), (30, "G"), (20, "M"), (10, "K")];
    for (shift, unit) in units {
        if bytes > 0 && bytes.is_multiple_of(1 << shift) {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    bytes.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nonsense_is_refused() {
        for wrong in ["", "M", "1.5M", "-1", "5X", "5MB", "99999999999T", "é", "5é"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse("64K"), Ok(65_536));
    }

    proptest! {
        #[test]
        fn sizes_round_trip(bytes in 0_u64..=u64::MAX) {
            prop_assert_eq!(parse(&text(bytes)), Ok(bytes));
        }
    }
}
