//! Texts from elsewhere.

use std::borrow::Cow;

/// What stands in place of a character that must not be printed.
const REPLACEMENT: &str = "\u{fffd}";

/// Text from a board, a guest, a plan or a command line without characters that control a terminal,
/// turn the direction of the text (Unicode TR 36, "Bidirectional Text Spoofing"), take no room,
/// or break XML.
#[must_use]
pub fn clean(text: &str) -> Cow<'_, str> {
    without(text, is_bad)
}

/// [`clean`] of at most `most` characters, followed by `…` if there were more.
#[must_use]
pub fn clean_start(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", clean(&text[..end])),
        None => clean(text).into_owned(),
    }
}

/// [`clean`] for a text of several lines, which stay.
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
    fn long_texts_are_cut_between_characters() {
        assert_eq!(clean_start("üü\u{7}ü", 3), "üü\u{fffd}…");
        assert_eq!(clean_start("üüü", 3), "üüü");
    }
}
