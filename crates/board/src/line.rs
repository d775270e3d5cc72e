//! A command line: options, which may come anywhere, and the other words.

use std::collections::BTreeMap;

use anyhow::{Context, anyhow, bail};
use punctual_core::units::{BareNumber, parse_duration_ns};

/// An option of a command.
pub struct Opt {
    /// Its long name, without dashes.
    pub name: &'static str,
    /// Its letter, or a space.
    pub letter: char,
    /// Whether a value follows.
    pub takes: bool,
}

/// An option with a value.
pub const fn value(name: &'static str, letter: char) -> Opt {
    Opt { name, letter, takes: true }
}

/// An option without.
pub const fn flag(name: &'static str, letter: char) -> Opt {
    Opt { name, letter, takes: false }
}

/// A command line that has been read.
#[derive(Debug)]
pub struct Line {
    /// The words that are no options.
    pub words: Vec<String>,
    given: BTreeMap<&'static str, String>,
}

impl Line {
    /// Reads the words after the command.
    ///
    /// # Errors
    /// An option that the command does not have, or that lacks its value or has one too many.
    pub fn read(words: &[String], known: &[&[Opt]]) -> anyhow::Result<Self> {
        let mut line = Self { words: Vec::new(), given: BTreeMap::new() };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if word == "--" {
                line.words.extend(words.cloned());
                break;
            }
            let Some((name, attached)) = split(word) else {
                line.words.push(word.clone());
                continue;
            };
            let option =
                known.iter().copied().flatten().find(|option| match name.strip_prefix("--") {
                    Some(long) => option.name == long,
                    None => name.ends_with(option.letter),
                });
            let option = option.with_context(|| format!("{name}: there is no such option here"))?;
            let value = match (option.takes, attached) {
                (true, Some(attached)) => attached.to_owned(),
                (true, None) => {
                    words.next().with_context(|| format!("{name} needs a value"))?.clone()
                }
                (false, None) => String::new(),
                (false, Some(_)) => bail!("{name} takes no value"),
            };
            if line.given.insert(option.name, value).is_some() {
                bail!("{name} is given twice");
            }
        }
        Ok(line)
    }

    /// The value of an option; empty if it takes none.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.given.get(name).map(String::as_str)
    }

    /// Whether it is given.
    pub fn has(&self, name: &str) -> bool {
        self.given.contains_key(name)
    }

    /// Its value as a time, ns, where a bare number may mean something.
    ///
    /// # Errors
    /// It is none.
    pub fn time_ns(&self, name: &str, bare: BareNumber) -> anyhow::Result<Option<u64>> {
        let read = |text| parse_duration_ns(text, bare).map_err(|why| anyhow!("--{name}: {why}"));
        self.get(name).map(read).transpose()
    }

    /// Its value as a whole number.
    ///
    /// # Errors
    /// It is none.
    pub fn number(&self, name: &str) -> anyhow::Result<Option<u64>> {
        let read = |text: &str| text.parse().with_context(|| format!("--{name} {text}"));
        self.get(name).map(read).transpose()
    }
}

/// An option's dashes and name, and the value in the same word; `None` for other words.
fn split(word: &str) -> Option<(&str, Option<&str>)> {
    if word.starts_with("--") {
        return Some(match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        });
    }
    let letter = word.strip_prefix('-')?.chars().next()?;
    let (name, rest) = word.split_at(1 + letter.len_utf8());
    Some((name, Some(rest).filter(|rest| !rest.is_empty())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: &[Opt] = &[value("duration", 'D'), value("out", ' '), flag("quiet", 'q')];

    fn read(text: &str) -> anyhow::Result<Line> {
        let words: Vec<_> = text.split_whitespace().map(str::to_owned).collect();
        Line::read(&words, &[OPTIONS])
    }

    #[test]
    fn options_come_anywhere_with_their_values_in_the_word_or_after_it() {
        for text in ["-D5s a --out=r -q b", "a -q -D 5s b --out r", "--duration=5s --out r -q a b"]
        {
            let line = read(text).unwrap();
            assert_eq!(line.words, ["a", "b"], "{text}");
            assert_eq!((line.get("duration"), line.get("out")), (Some("5s"), Some("r")), "{text}");
            assert!(line.has("quiet") && !line.has("load"), "{text}");
            let ns = line.time_ns("duration", BareNumber::Seconds).unwrap();
            assert_eq!(ns, Some(5_000_000_000), "{text}");
        }
        assert_eq!(read("-- -q").unwrap().words, ["-q"]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, says) in [
            ("-x", "-x: there is no such option here"),
            ("--duratoin 5", "--duratoin: there is no such"),
            ("-D", "-D needs a value"),
            ("--quiet=1", "--quiet takes no value"),
            ("-q -q", "-q is given twice"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
        let line = read("-D 5x").unwrap();
        let error = line.time_ns("duration", BareNumber::Seconds).unwrap_err().to_string();
        assert!(error.starts_with("--duration: "), "{error}");
        assert!(line.number("duration").unwrap_err().to_string().contains("--duration 5x"));
    }
}
