//! Releases of kernels, as `uname -r` and packages name them.

/// The series of a release, the first two numbers of its version: `6.12` of `6.12.43+deb13`;
/// all of one that does not begin with a number.
#[must_use]
pub fn series_of(release: &str) -> &str {
    if !release.starts_with(|c: char| c.is_ascii_digit()) {
        return release;
    }
    let mut ends = release.match_indices(|c: char| !c.is_ascii_digit());
    let end = ends.nth(1).map_or(release.len(), |(at, _)| at);
    release.get(..end).unwrap_or(release)
}

/// A key that orders versions by their numbers: `6.1.0-9` before `6.1.0-56`. Unlike dpkg, it
/// does not know `~`.
#[must_use]
pub fn version_key(text: &str) -> Vec<(u64, &str)> {
    let is_digit = |character: char| character.is_ascii_digit();
    let mut key = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (number, behind) = rest.split_at(rest.find(|c| !is_digit(c)).unwrap_or(rest.len()));
        let (word, behind) = behind.split_at(behind.find(is_digit).unwrap_or(behind.len()));
        key.push((number.parse().unwrap_or(0), word));
        rest = behind;
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_the_first_two_numbers() {
        for (release, series) in [
            ("6.1.0-56", "6.1"),
            ("6.12.43+deb13-amd64", "6.12"),
            ("6.12-rc6", "6.12"),
            ("5.10", "5.10"),
            ("weird", "weird"),
        ] {
            assert_eq!(series_of(release), series);
        }
    }

    #[test]
    fn versions_are_in_the_order_of_their_numbers() {
        let ordered = [
            "5.10.0-46-amd64",
            "6.1.0-9",
            "6.1.0-56",
            "6.1.192-2",
            "6.1.192-10",
            "6.12.5+deb13",
            "6.12.43+deb13",
        ];
        let mut versions = ordered;
        versions.reverse();
        versions.sort_by(|a, b| version_key(a).cmp(&version_key(b)));
        assert_eq!(versions, ordered);
    }
}
