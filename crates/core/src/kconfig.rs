//! A kernel's configuration: the text of `.config`, `/boot/config-RELEASE` or
//! `/proc/config.gz` once unpacked (Documentation/kbuild/kconfig.rst).

/// The options that are set, in the order of the text: name without `CONFIG_`, and value
/// without quotes. Whatever is no such line is passed over.
pub fn options(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines()
        .filter_map(|line| line.trim().strip_prefix("CONFIG_")?.split_once('='))
        .map(|(name, value)| (name, value.trim_matches('"')))
}

/// Whether an option (without `CONFIG_`) is built in: `y`, and not `m`.
#[must_use]
pub fn is_set(text: &str, option: &str) -> bool {
    options(text).any(|(name, value)| name == option && value == "y")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# CONFIG_PREEMPT_RT is not set\nCONFIG_PREEMPT=y\n  CONFIG_HZ=250\r\n\
                        CONFIG_LSM=\"lockdown,yama\"\nCONFIG_BRD=m\nCONFIG_\nCONFIG_HZ\nHZ=9\n";

    #[test]
    fn options_are_read_and_other_lines_passed_over() {
        let expected = [("PREEMPT", "y"), ("HZ", "250"), ("LSM", "lockdown,yama"), ("BRD", "m")];
        assert_eq!(options(TEXT).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn an_option_is_set_by_its_whole_name() {
        assert!(is_set(TEXT, "PREEMPT"));
        for option in ["PREEMPT_RT", "PREEM", "BRD", "HZ", ""] {
            assert!(!is_set(TEXT, option), "{option}");
        }
    }
}
