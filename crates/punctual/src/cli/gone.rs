//! Options that punctual had, and what says the same now.

use std::ffi::OsString;

use clap::error::ErrorKind;
use punctual_core::units::percent;

/// Name, and what to write for a value of it.
type Gone = (&'static str, fn(&str) -> String);

const GONE: [Gone; 4] = [
    ("--episodes", |value| format!("write --at-most {value}")),
    ("--tolerate-episodes", |value| format!("write --allow {value}")),
    ("--tolerate", |value| format!("a share has %, so write --allow {}", share(value, "1%"))),
    ("--probability", |value| {
        format!(
            "write --at-most 6/min, or another rate, for how often lateness may begin, or \
             --singly --at-most {} if late activations are independent of each other",
            share(value, "0.01%")
        )
    }),
];

/// A probability in percent; `otherwise` if it is none.
fn share(value: &str, otherwise: &str) -> String {
    let share = value.parse().ok().filter(|share| *share > 0.0 && *share < 1.0);
    share.map_or_else(|| otherwise.to_owned(), |share| format!("{}%", percent(share)))
}

/// What to write instead of the first such option of a line.
pub fn answer(words: &[OsString]) -> Option<clap::Error> {
    let mut words = words.iter().map(|word| word.to_string_lossy()).peekable();
    while let Some(word) = words.next().filter(|word| word != "--") {
        let (name, attached) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (&*word, None),
        };
        let Some((name, instead)) = GONE.iter().find(|(gone, _)| *gone == name) else { continue };
        let next = words.peek().filter(|next| !next.starts_with('-')).map(|next| next.to_string());
        let example = if name.ends_with("episodes") { "6/min" } else { "" };
        let value = attached.or(next).unwrap_or_else(|| example.to_owned());
        let text = format!("{name} does not exist any more: {}\n", instead(&value));
        return Some(clap::Error::raw(ErrorKind::UnknownArgument, text));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> Option<String> {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        answer(&words).map(|error| error.to_string())
    }

    #[test]
    fn an_option_that_is_gone_is_answered_with_what_to_write() {
        for (line, says) in [
            ("run --episodes 1/h", "write --at-most 1/h"),
            ("show r --episodes=1/h", "write --at-most 1/h"),
            ("show r --episodes", "write --at-most 6/min"),
            ("pool a b --tolerate-episodes 6/min", "write --allow 6/min"),
            ("run --tolerate 1e-3 -q", "write --allow 0.1%"),
            ("run --tolerate -q", "write --allow 1%"),
            ("plan-length --probability 1e-4", "--singly --at-most 0.01%"),
        ] {
            assert!(said(line).unwrap().contains(says), "{line}: {:?}", said(line));
        }
        for line in ["run --at-most 6/min", "run -- --episodes 1/h", "run --tolerated 1"] {
            assert_eq!(said(line), None, "{line}");
        }
    }
}
