//! Output to stdout and stderr, for programs and people.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;

use anyhow::Context;
use clap::error::ErrorKind;
use punctual_core::units::grouped;
use punctual_report::text::fitted;
use punctual_report::words;
use punctual_sys::error::{self, EIO};
use serde::Serialize;

/// Width of texts when stdout is not a terminal, columns.
const DEFAULT_WIDTH: usize = 100;

/// Texts are not made narrower than this, columns.
const LEAST_WIDTH: usize = 40;

/// Writes to stdout. A reader that went away (`| head`, a closed terminal) has seen what it
/// wanted: this is not an error and does not change the exit status.
///
/// # Errors
/// The text cannot be written for another reason, such as a full disk.
pub fn print(text: &str) -> anyhow::Result<()> {
    write(&shown(text))
}

fn write(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if is_unread(&error, &stdout) => Ok(()),
        written => written.context("cannot write to stdout"),
    }
}

/// Whether a write failed because nobody reads: a pipe without a reader, or a terminal that is
/// gone (`EIO`, which from a disk is an error).
fn is_unread(error: &io::Error, to: &impl AsFd) -> bool {
    let is_device = || {
        let file = File::from(to.as_fd().try_clone_to_owned()?);
        Ok::<_, io::Error>(file.metadata()?.file_type().is_char_device())
    };
    error.kind() == io::ErrorKind::BrokenPipe
        || (error.raw_os_error() == Some(EIO) && is_device().unwrap_or(false))
}

/// Prints an error to stderr after the program's name. If stderr cannot be written to (its
/// reader went away), there is nobody left to tell and no reason to panic. Names of files, runs
/// and plans are in most errors, so control characters are taken out here, of all of them.
pub fn complain(text: &str) {
    let text = format!("punctual: {}", words::clean_lines(&without_numbers(text)));
    let _ = io::stderr().write_all(shown(&fitted(&text, error_width())).as_bytes());
}

/// A text as the locale can show it: in UTF-8, or without it (`LANG=C`, or none) in ASCII.
fn shown(text: &str) -> Cow<'_, str> {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    // The order of POSIX, "Internationalization Variables".
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG"));
    let locale = locale.unwrap_or_default().to_ascii_lowercase();
    let is_utf8 = locale.contains("utf-8") || locale.contains("utf8");
    if is_utf8 { Cow::Borrowed(text) } else { words::ascii(text) }
}

/// Prints clap's messages: help and version unchanged, errors after the program's name like
/// all other errors. Help that nobody asked for begins with the lines `first`, which it has at
/// its end: whoever types only the name looks for what to type next.
pub fn explain(error: &clap::Error, first: &str) {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let text = text_of(error);
        let text = match text.strip_suffix(first) {
            Some(rest) => format!("{first}\n\n{}", rest.trim_end()),
            None => text,
        };
        let _ = writeln!(io::stderr(), "{}", shown(&text));
    } else if error.use_stderr() {
        complain(&text_of(error));
    } else {
        // If stdout cannot be written to, nobody can be told.
        let _ = error.print();
    }
}

/// An error of clap without its own name for errors.
pub fn text_of(error: &clap::Error) -> String {
    let text = error.render().to_string();
    range_in_words(text.strip_prefix("error: ").unwrap_or(&text).trim_end())
}

/// A message without the numbers of errors that std adds to their texts.
fn without_numbers(text: &str) -> String {
    error::text(&io::Error::other(text.to_owned()))
}

/// A message with the range that clap puts as `65 is not in 1..=64` in words: `must be 1 to 64`.
fn range_in_words(text: &str) -> String {
    /// Where a range without an end of its own may end.
    const ENDLESS: i128 = u32::MAX as i128;
    const MARK: &str = " is not in ";
    let in_words = || {
        let (before, after) = text.split_once(MARK)?;
        let (range, rest) = after.split_at(after.find(char::is_whitespace).unwrap_or(after.len()));
        let (low, high) = range.split_once("..")?;
        let low: i128 = low.parse().ok()?;
        let high: i128 = match high.strip_prefix('=') {
            Some(high) => high.parse().ok()?,
            // The end that a type has is printed as if it were no part of the range.
            None => {
                high.parse::<i128>().ok().map(|end| if end < ENDLESS { end - 1 } else { end })?
            }
        };
        let (before, _value) = before.rsplit_once(' ')?;
        let number = |n: i128| u64::try_from(n).map_or_else(|_| n.to_string(), grouped);
        let low = number(low);
        Some(match high {
            ENDLESS.. => format!("{before} must be at least {low}{rest}"),
            high => format!("{before} must be {low} to {}{rest}", number(high)),
        })
    };
    in_words().unwrap_or_else(|| text.to_owned())
}

/// Tells a program that asked for JSON (`--json`) what went wrong, on stdout, in addition to
/// the text on stderr: `{"error": {"message": …, "status": …}}`.
pub fn fail_as_json(arguments: &[String], status: u8, text: &str) {
    if arguments.iter().any(|argument| argument == "--json") {
        let text = without_numbers(text);
        let error = serde_json::json!({ "error": { "message": text, "status": status } });
        // Whoever closed stdout does not want it.
        let _ = print_json(&error);
    }
}

/// Writes a value to stdout as indented JSON.
///
/// # Errors
/// Those of [`print()`].
pub fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    // JSON is UTF-8 in every locale (RFC 8259).
    write(&(serde_json::to_string_pretty(value)? + "\n"))
}

/// Columns for tables and texts: [`asked_width`], or else [`DEFAULT_WIDTH`].
pub fn width() -> usize {
    asked_width(io::stdout()).unwrap_or(DEFAULT_WIDTH)
}

/// Columns for lines that a program may search for a path: where nobody says how wide the
/// reader is, they are not broken.
pub fn line_width() -> usize {
    asked_width(io::stdout()).unwrap_or(usize::MAX)
}

/// The same for lines on stderr.
pub fn error_width() -> usize {
    asked_width(io::stderr()).unwrap_or(usize::MAX)
}

/// `COLUMNS`, which also serves pipes (`| less`); otherwise the width of the terminal that is
/// written to, if it is one.
fn asked_width(to: impl AsFd) -> Option<usize> {
    let set = std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse().ok());
    let terminal = || terminal_size::terminal_size_of(&to);
    let width = set.filter(|width| *width > 0);
    let width = width.or_else(|| terminal().map(|(width, _)| usize::from(width.0)));
    width.map(|width| width.max(LEAST_WIDTH))
}

/// Whether to use colours: stdout is a terminal and `NO_COLOR` (no-color.org) is not set.
pub fn colour() -> bool {
    let unset = |name| std::env::var_os(name).is_none_or(|value| value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    io::stdout().is_terminal() && unset("NO_COLOR") && !dumb
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_put_in_words() {
        for (text, words) in [
            (
                "'0' for '--loops <N>': 0 is not in 1..18446744073709551615\n\nFor more",
                "at least 1",
            ),
            ("'0' for '--jobs <N>': 0 is not in 1..4294967295", "at least 1"),
            ("'65' for '--aim <N>': 65 is not in 1..=64", "1 to 64"),
            ("'0' for '--budget <N>': 0 is not in 1..=1000000", "1 to 1,000,000"),
            ("'9' for '--x <N>': 9 is not in 0..8", "0 to 7"),
            ("'9' for '--x <N>': 9 is not in -3..=8", "-3 to 8"),
        ] {
            let (before, _) = text.split_once("': ").unwrap();
            let rest = text.split_once('\n').map_or(String::new(), |(_, rest)| format!("\n{rest}"));
            assert_eq!(range_in_words(text), format!("{before}': must be {words}{rest}"));
        }
        for kept in ["the probe respond-net is not in this version", "x is not in 1..y", ""] {
            assert_eq!(range_in_words(kept), kept);
        }
    }

    #[test]
    fn numbers_of_errors_are_left_out() {
        let eagain = io::Error::from_raw_os_error(11);
        let text = without_numbers(&format!("cannot start sh: {eagain}; free some"));
        assert_eq!(text, "cannot start sh: Resource temporarily unavailable; free some");
    }
}
