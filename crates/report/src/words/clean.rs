//! Texts from elsewhere.

use std::borrow::Cow;

/// Text from a board without control characters: names and command lines come
/// from elsewhere and must neither control a terminal nor break XML.
#[must_use]
pub fn clean(text: &str) -> Cow<'_, str> {
    let bad = |c: char| c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}');
    if text.contains(bad) { Cow::Owned(text.replace(bad, "\u{fffd}")) } else { Cow::Borrowed(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_do_not_pass() {
        assert_eq!(clean("a\u{1b}[2Jb\n"), "a\u{fffd}[2Jb\u{fffd}");
        assert!(matches!(clean("µs · ü"), Cow::Borrowed(_)));
    }
}
