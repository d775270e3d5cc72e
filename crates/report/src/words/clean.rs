//! Terminals that are not of today.

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar;

/// A text for a terminal whose locale has only ASCII. Every character keeps its width.
#[must_use]
pub fn ascii(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let plain = |c: char| match c {
        c if c.is_ascii() => c.to_string(),
        '·' => "|".to_owned(),
        '…' => "~".to_owned(),
        '–' | '—' => "-".to_owned(),
        'µ' | 'μ' => "u".to_owned(),
        '×' => "x".to_owned(),
        '“' | '”' => "\"".to_owned(),
        '‘' | '’' => "'".to_owned(),
        c => "?".repeat(c.width().unwrap_or(0)),
    };
    Cow::Owned(text.chars().map(plain).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ascii_keeps_the_width() {
        assert_eq!(ascii("a · b…  5 µs 数 é"), "a | b~  5 us ?? ?");
        assert!(matches!(ascii("plain"), Cow::Borrowed(_)));
    }
}
