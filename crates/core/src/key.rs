//! The key of a cell, such as `wakeup @ none @ 30s`, and how it is printed.

/// What stands between the parts of a key: probe or cost, load, duration, number of samples.
pub const BETWEEN: &str = " @ ";

/// The load of a cell that measures without one.
pub const NO_LOAD: &str = "none";

/// The first part: the probe or cost with the parameters that were given.
#[must_use]
pub fn subject(key: &str) -> &str {
    key.split(BETWEEN).next().unwrap_or_default()
}

/// After how many samples per thread the cell ends, if that is part of its key.
#[must_use]
pub fn samples(key: &str) -> Option<u64> {
    key.rsplit(BETWEEN).next()?.strip_suffix(" samples")?.parse().ok()
}

/// A load as it is printed: `none` is called idle, since `none` also names a preemption model.
#[must_use]
pub fn load_name(load: &str) -> &str {
    if load == NO_LOAD { "idle" } else { load }
}

/// A key as it is printed: `wakeup @ idle @ 30s`. Whatever compares keys uses the key itself.
#[must_use]
pub fn key_name(key: &str) -> String {
    let name = |(i, part)| if i == 1 { load_name(part) } else { part };
    key.split(BETWEEN).enumerate().map(name).collect::<Vec<_>>().join(BETWEEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_load_is_called_idle() {
        assert_eq!([load_name("none"), load_name("hackbench")], ["idle", "hackbench"]);
        assert_eq!(key_name("wakeup @ none @ 30s"), "wakeup @ idle @ 30s");
        assert_eq!(key_name("wakeup @ none"), "wakeup @ idle");
        assert_eq!(key_name("none @ hackbench @ 1s"), "none @ hackbench @ 1s");
        assert_eq!(subject("wakeup:threads=2 @ none @ 30s"), "wakeup:threads=2");
    }

    #[test]
    fn a_number_of_samples_is_the_last_part() {
        assert_eq!(samples("wakeup @ none @ 10s @ 1000 samples"), Some(1_000));
        for key in ["wakeup @ none @ 10s", "wakeup @ cmd:echo 9 samples @ 10s", ""] {
            assert_eq!(samples(key), None, "{key}");
        }
    }
}
