//! Lines that are no wider than the terminal.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::style::{Paint, Style};

/// Lines are never made narrower than this, columns.
const LEAST: usize = 20;

/// What a long word is broken after: parts of keys, paths and options.
const BREAKS: &[char] = &[',', ';', '/', '+', '=', '-', '_', '@', ':', '.'];

/// Breaks a text at spaces into lines of at most `width` columns. A longer word is broken
/// after a comma, a slash or the like, and if there is none, where the line ends.
#[must_use]
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines: Vec<String> = Vec::new();
    // Columns of the last line.
    let mut used = 0;
    for word in text.split_whitespace() {
        let mut rest = word;
        loop {
            // Measuring all of a word as long as a file for each of its lines would take minutes.
            let wide = width_up_to(rest, width);
            match lines.last_mut() {
                Some(line) if used + 1 + wide <= width => {
                    line.push(' ');
                    line.push_str(rest);
                    used += 1 + wide;
                    break;
                }
                _ => {}
            }
            if wide <= width {
                lines.push(rest.to_owned());
                used = wide;
                break;
            }
            let (head, tail) = rest.split_at(break_at(rest, width));
            lines.push(head.to_owned());
            used = head.width();
            if tail.is_empty() {
                break;
            }
            rest = tail;
        }
    }
    lines
}

/// The columns of a text, or some number above `most`.
fn width_up_to(text: &str, most: usize) -> usize {
    const USUAL: usize = 1 << 10;
    if text.len() <= USUAL {
        return text.width();
    }
    let mut wide = 0;
    for c in text.chars() {
        wide += c.width().unwrap_or(0);
        if wide > most {
            break;
        }
    }
    wide
}

/// Where to break a word that is wider than `width`: the byte that the next line begins with.
fn break_at(word: &str, width: usize) -> usize {
    let mut wide = 0;
    let mut hard = 0;
    let mut soft = 0;
    for (at, c) in word.char_indices() {
        wide += c.width().unwrap_or(0);
        if wide > width && hard > 0 {
            break;
        }
        hard = at + c.len_utf8();
        if BREAKS.contains(&c) {
            soft = hard;
        }
    }
    // A break far to the left would leave the line empty.
    if soft > hard / 3 { soft } else { hard }
}

/// A text of at most `width` columns, with an ellipsis in place of what does not fit.
#[must_use]
pub fn cut(text: &str, width: usize) -> String {
    if width_up_to(text, width) <= width {
        return text.to_owned();
    }
    let (mut short, mut used) = (String::new(), 0);
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used + 1 > width {
            break;
        }
        short.push(c);
    }
    short.push('…');
    short
}

/// Appends a text, wrapped at `width`, with `first` before its first line and `indent`
/// spaces before the others.
pub fn push_wrapped(out: &mut String, text: &str, first: &str, indent: usize, width: usize) {
    for (i, line) in wrap(text, width.saturating_sub(indent).max(LEAST)).iter().enumerate() {
        if i == 0 {
            out.push_str(first);
        } else {
            out.push_str(&" ".repeat(indent));
        }
        out.push_str(line);
        out.push('\n');
    }
}

/// Appends a text, its first line after `first` and the others after so many columns. No line ends
/// between a number and its unit.
pub fn push_styled(
    out: &mut String,
    text: &str,
    style: Style,
    (first, indent, width): (&str, usize, usize),
    paint: Paint,
) {
    let lines = wrap(&glued(text), width.saturating_sub(indent).max(20));
    for (number, line) in lines.iter().enumerate() {
        let before = if number == 0 { first.to_owned() } else { " ".repeat(indent) };
        let line = line.replace(GLUE, " ");
        out.push_str(&format!("{before}{}\n", paint.apply(&line, style)));
    }
}

/// Stands for a space that no line ends at, of the private use area.
const GLUE: char = '\u{e000}';

fn glued(text: &str) -> String {
    let is_unit = |word: &str| {
        let end = word.find(|c: char| !c.is_ascii_alphanumeric() && c != '%');
        ["%", "ns", "us", "ms", "s"].contains(&&word[..end.unwrap_or(word.len())])
    };
    let mut words = text.split(' ');
    let mut out = words.next().unwrap_or("").to_owned();
    for word in words {
        let counts = out.ends_with(|c: char| c.is_ascii_digit());
        out.push(if counts && is_unit(word) { GLUE } else { ' ' });
        out.push_str(word);
    }
    out
}

/// A text of several lines, those that are too long wrapped below their own beginning. It ends
/// with a line feed.
#[must_use]
pub fn fitted(text: &str, width: usize) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let (indent, rest) = line.split_at(line.len() - line.trim_start().len());
        if line.width() <= width {
            out.push_str(&format!("{line}\n"));
        } else {
            push_wrapped(&mut out, rest, indent, indent.len() + 2, width);
        }
    }
    out
}

/// Appends parts with ` · ` between them; a line that gets too long is broken there first.
/// The first line begins with `first`, those after it with `indent` spaces.
pub fn push_parts(
    out: &mut String,
    parts: &[(String, Style)],
    first: (&str, Style),
    indent: usize,
    width: usize,
    paint: Paint,
) {
    const BETWEEN: &str = " · ";
    let room = width.saturating_sub(indent).max(LEAST);
    out.push_str(&paint.apply(first.0, first.1));
    let mut used = first.0.width().saturating_sub(indent);
    let mut is_empty = true;
    for (text, style) in parts {
        for (i, line) in wrap(text, room).iter().enumerate() {
            let gap = if is_empty { 0 } else { BETWEEN.width() };
            if i > 0 || used + gap + line.width() > room {
                out.push_str(&format!("\n{}", " ".repeat(indent)));
                used = 0;
            } else if !is_empty {
                out.push_str(BETWEEN);
                used += gap;
            }
            out.push_str(&paint.apply(line, *style));
            used += line.width();
            is_empty = false;
        }
    }
    out.push('\n');
}

/// Appends keys and values in two columns. A value is wrapped in its column; a key that is too
/// long for its own stands above its value.
pub fn push_pairs(out: &mut String, pairs: &[(String, String)], width: usize) {
    let room = (width / 3).max(LEAST);
    let column = pairs.iter().map(|(key, _)| key.width()).filter(|wide| *wide <= room).max();
    let indent = column.unwrap_or(0) + 4;
    for (key, value) in pairs {
        if key.width() + 4 <= indent {
            let pad = " ".repeat(indent - 2 - key.width());
            let first = format!("  {key}{pad}");
            if value.trim().is_empty() {
                out.push_str(&format!("  {key}\n"));
            }
            push_wrapped(out, value, &first, indent, width);
        } else {
            push_wrapped(out, key, "  ", 4, width);
            push_wrapped(out, value, &" ".repeat(indent), indent, width);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_wraps_at_spaces() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert!(wrap("", 10).is_empty());
    }

    #[test]
    fn long_words_break_where_a_reader_expects_it() {
        assert_eq!(wrap("unbreakable x", 4), ["unbr", "eaka", "ble", "x"]);
        assert_eq!(
            wrap("see sim:dist=list,values=10us*900 now", 14),
            ["see", "sim:dist=list,", "values=", "10us*900 now"]
        );
        assert_eq!(wrap("数数数", 4), ["数数", "数"]);
        assert_eq!(wrap("数", 1), ["数"]);
    }

    #[test]
    fn a_word_as_long_as_a_file_is_broken_at_once() {
        let word = "x".repeat(4 << 20);
        let lines = wrap(&word, 60);
        assert!(lines[..lines.len() - 1].iter().all(|line| line.len() == 60));
        assert_eq!(lines.concat(), word);
    }

    #[test]
    fn what_is_cut_says_so() {
        assert_eq!(
            [cut("wakeup", 6), cut("wakeup", 5), cut("数数", 3)],
            ["wakeup", "wake…", "数…"]
        );
    }

    #[test]
    fn parts_break_between_each_other() {
        let parts: Vec<_> =
            ["one board", "Linux 6.1", "PASS"].map(|text| (text.to_owned(), Style::Plain)).into();
        let lines = |width| {
            let mut out = String::new();
            push_parts(&mut out, &parts, ("A  ", Style::Plain), 3, width, Paint::off());
            out
        };
        assert_eq!(lines(80), "A  one board · Linux 6.1 · PASS\n");
        assert_eq!(lines(26), "A  one board · Linux 6.1\n   PASS\n");
    }

    #[test]
    fn lines_that_are_too_long_are_wrapped_below_their_beginning() {
        let text = "error: nothing\n  |  a  table\n  a line that is too long";
        assert_eq!(fitted(text, 60), format!("{text}\n"));
        assert_eq!(
            fitted(text, 22),
            "error: nothing\n  |  a  table\n  a line that is too\n    long\n"
        );
    }

    #[test]
    fn values_stand_beside_their_keys() {
        let pairs = [("key", "a value of several words"), ("a.key.too.long.for.its.column", "v")];
        let pairs = pairs.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let mut out = String::new();
        push_pairs(&mut out, &pairs, 30);
        assert_eq!(
            out,
            "  key  a value of several\n       words\n  a.key.too.long.for.its.\n    column\n       v\n"
        );
    }
}
