//! Texts from elsewhere, and terminals that are not of today.

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar;

/// What stands in place of a character that must not be printed.
const REPLACEMENT: &str = "\u{fffd}";

/// Text from a board, a plan or a command line without characters that control a terminal,
/// turn the direction of the text (Unicode TR 36, "Bidirectional Text Spoofing"), take no room,
/// or break XML.
#[must_use]
pub fn clean(text: &str) -> Cow<'_, str> {
    without(text, is_bad)
}

/// The same for a text of several lines, which stay.
#[must_use]
pub fn clean_lines(text: &str) -> Cow<'_, str> {
    without(text, |c| c != '\n' && is_bad(c))
}

fn without(text: &str, bad: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&bad) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace(bad, REPLACEMENT))
}

fn is_bad(c: char) -> bool {
    c.is_control()
        || matches!(c,
            // Zero-width characters, marks and overrides of direction, line separators.
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{61c}' | '\u{ad}' | '\u{feff}'
            // Annotations, tags, and what is no character.
            | '\u{fff9}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}' | '\u{e0000}'..='\u{e007f}')
}

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
    fn control_characters_do_not_pass() {
        assert_eq!(clean("a\u{1b}[2Jb\n"), "a\u{fffd}[2Jb\u{fffd}");
        assert_eq!(clean_lines("a\u{1b}\nb"), "a\u{fffd}\nb");
        assert!(matches!(clean("µs · ü"), Cow::Borrowed(_)));
    }

    /// `runs/gpj.exe` that reads `runs/exe.jpg`.
    #[test]
    fn nothing_turns_the_direction_of_a_text() {
        let tricks = ['\u{202e}', '\u{2066}', '\u{200f}', '\u{61c}', '\u{200b}', '\u{e0041}'];
        for trick in tricks {
            assert_eq!(clean(&format!("runs/{trick}gpj.exe")), "runs/\u{fffd}gpj.exe", "{trick:?}");
        }
    }

    #[test]
    fn ascii_keeps_the_width() {
        assert_eq!(ascii("a · b…  5 µs 数 é"), "a | b~  5 us ?? ?");
        assert!(matches!(ascii("plain"), Cow::Borrowed(_)));
    }
}
