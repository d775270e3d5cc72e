//! Command lines as users of cyclictest and rtla type them, made such that clap can read them.
//!
//! Two things are beyond clap: an option whose value is optional takes the next word only if
//! that is a value (`-t wakeup` is a bare `-t` and a probe), and options that punctual does not
//! have are all answered at once, with the command line without them.

use std::ffi::{OsStr, OsString};

use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Command};

use super::foreign::{self, Foreign, Takes};
use super::gone;

/// Options whose value may be left out, by name: what they mean then, and the words besides
/// numbers and lists that are a value.
const BARE: &[(&str, &str, &[&str])] =
    &[("threads", "per-cpu", &["per-cpu"]), ("affinity", "auto", &["auto", "inherited"])];

/// Reads a command line; the first word is the program's name.
///
/// # Errors
/// Those of clap; options of other tools, and options that punctual had, with punctual's form.
pub fn read(words: &[OsString]) -> Result<ArgMatches, clap::Error> {
    let runs = words.get(1).is_some_and(|word| word == "run");
    if let Some(answer) = gone::answer(words) {
        return Err(answer);
    }
    let mut whole = if runs { super::to_run() } else { super::command() };
    let Some((options, first)) = measuring(&whole, words) else {
        return whole.try_get_matches_from_mut(words);
    };
    let (before, after) = words.split_at(first);
    let mut line = Typed { options, words: after, next: 0, read: Vec::new(), foreign: Vec::new() };
    line.read();
    if !line.foreign.is_empty() {
        return Err(line.answer(before));
    }
    let read: Vec<OsString> = before.iter().cloned().chain(line.read).collect();
    whole.try_get_matches_from_mut(read)
}

/// The command that measures, if this line is one, and where its words begin.
fn measuring<'a>(whole: &'a Command, words: &[OsString]) -> Option<(&'a Command, usize)> {
    let word = |n: usize| words.get(n).and_then(|word| word.to_str());
    match (word(1)?, word(2)) {
        ("run", _) => Some((whole.find_subcommand("run")?, 2)),
        ("lab", Some(name @ ("run" | "check"))) => {
            Some((whole.find_subcommand("lab")?.find_subcommand(name)?, 3))
        }
        _ => None,
    }
}

/// The words of a command that measures.
struct Typed<'a> {
    options: &'a Command,
    words: &'a [OsString],
    /// The word to read next.
    next: usize,
    /// What clap shall read.
    read: Vec<OsString>,
    /// Options of other tools as typed, with what is to be said of them.
    foreign: Vec<(String, &'static Foreign)>,
}

impl Typed<'_> {
    fn read(&mut self) {
        while let Some(word) = self.take() {
            match word.to_str() {
                Some("--") => {
                    self.read.push(word);
                    self.read.extend_from_slice(&self.words[self.next..]);
                    return;
                }
                Some(text) if text.starts_with("--") => self.long(text),
                Some(text) if text.starts_with('-') && text.len() > 1 => self.cluster(text),
                _ => self.read.push(word),
            }
        }
    }

    fn take(&mut self) -> Option<OsString> {
        let word = self.words.get(self.next).cloned();
        self.next += 1;
        word
    }

    /// `--name`, `--name VALUE` or `--name=VALUE`.
    fn long(&mut self, text: &str) {
        let (name, attached) = match text.split_once('=') {
            Some((name, _)) => (name, true),
            None => (text, false),
        };
        let known =
            self.options.get_arguments().find(|arg| arg.get_long() == Some(&name[2..])).cloned();
        match (known, foreign::find(name)) {
            (Some(arg), _) => {
                self.read.push(text.into());
                if !attached && takes_value(&arg) {
                    self.value(&arg, "=");
                }
            }
            (None, Some(foreign)) => self.foreign(text.to_owned(), foreign, attached),
            (None, None) => self.read.push(text.into()),
        }
    }

    /// One-letter options joined to a word, such as `-Sp90`.
    fn cluster(&mut self, text: &str) {
        let mut kept = String::from("-");
        let mut rest = &text[1..];
        while let Some(letter) = rest.chars().next() {
            rest = &rest[letter.len_utf8()..];
            let arg = self.options.get_arguments().find(|arg| arg.get_short() == Some(letter));
            let arg = arg.cloned();
            let foreign = foreign::find(&format!("-{letter}"));
            match (arg, foreign) {
                (Some(arg), _) => {
                    kept.push(letter);
                    if takes_value(&arg) {
                        kept.push_str(rest);
                        self.read.push(kept.into());
                        if rest.is_empty() {
                            self.value(&arg, "");
                        }
                        return;
                    }
                }
                // A bare -h asks for help.
                (None, Some(foreign)) if letter != 'h' || self.is_number_next(rest) => {
                    let takes = foreign.takes;
                    let attached = !rest.is_empty() && takes != Takes::Nothing;
                    let value = if attached { std::mem::take(&mut rest) } else { "" };
                    self.foreign(format!("-{letter}{value}"), foreign, attached);
                }
                _ => {
                    // clap says what is wrong with it.
                    kept.push(letter);
                    kept.push_str(rest);
                    break;
                }
            }
        }
        if kept.len() > 1 {
            self.read.push(kept.into());
        }
    }

    /// The value of the option read last, which has none attached.
    fn value(&mut self, arg: &Arg, joint: &str) {
        let next = self.words.get(self.next).map(OsString::as_os_str);
        let bare = BARE.iter().find(|(name, ..)| arg.get_id() == name);
        match bare {
            Some((_, meant, words)) if !next.is_some_and(|next| is_value(next, words)) => {
                if let Some(option) = self.read.last_mut() {
                    option.push(format!("{joint}{meant}"));
                }
            }
            _ => {
                let value = self.take();
                self.read.extend(value);
            }
        }
    }

    fn foreign(&mut self, typed: String, foreign: &'static Foreign, attached: bool) {
        let takes = match foreign.takes {
            _ if attached => false,
            Takes::Nothing => false,
            Takes::Value => self.words.get(self.next).is_some(),
            Takes::Number => self.is_number_next(""),
        };
        let value = if takes { self.take() } else { None };
        let value = value.map(|value| format!(" {}", value.to_string_lossy()));
        self.foreign.push((typed + &value.unwrap_or_default(), foreign));
    }

    /// Whether a number is attached or follows as a word.
    fn is_number_next(&self, attached: &str) -> bool {
        let next = self.words.get(self.next).and_then(|word| word.to_str()).unwrap_or_default();
        let value = if attached.is_empty() { next } else { attached };
        value.starts_with(|c: char| c.is_ascii_digit())
    }

    /// What to write instead of the foreign options.
    fn answer(self, before: &[OsString]) -> clap::Error {
        let mut text = String::from("these options of cyclictest or rtla do not exist here:\n");
        for (typed, foreign) in &self.foreign {
            text.push_str(&format!("  {typed}: {}\n", foreign.answer));
        }
        let words = before.iter().skip(1).chain(&self.read);
        let line: Vec<_> = words.map(|word| word.to_string_lossy().into_owned()).collect();
        text.push_str(&format!(
            "The rest of the line is understood:\n  punctual {}\n",
            line.join(" ")
        ));
        clap::Error::raw(ErrorKind::UnknownArgument, text)
    }
}

/// Whether an option has a value.
pub fn takes_value(arg: &Arg) -> bool {
    arg.get_action().takes_values()
}

/// Whether the word after an option is its value, or can become one.
pub fn takes_next(arg: &Arg, next: &str) -> bool {
    let bare = BARE.iter().find(|(name, ..)| arg.get_id() == name);
    takes_value(arg)
        && bare.is_none_or(|(_, _, words)| {
            is_value(next.as_ref(), words) || words.iter().any(|word| word.starts_with(next))
        })
}

/// Whether a word is a value and no probe: it begins with a digit, as no name does, or is one of
/// `words`. Whoever reads the value says what is wrong with it.
fn is_value(word: &OsStr, words: &[&str]) -> bool {
    let Some(text) = word.to_str() else {
        return false;
    };
    words.contains(&text) || text.starts_with(|first: char| first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_line(line: &str) -> Result<ArgMatches, clap::Error> {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        read(&words)
    }

    /// The probes and the values of options, by name, that a line of `run` was read as.
    fn understood(line: &str, options: &[&str]) -> (Vec<String>, Vec<Option<String>>) {
        let matches = read_line(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        let mut matches = matches.subcommand().unwrap().1;
        if line.starts_with("punctual lab ") {
            matches = matches.subcommand().unwrap().1;
        }
        let probes = matches.get_many::<String>("probes").into_iter().flatten().cloned().collect();
        (probes, options.iter().map(|id| matches.get_one::<String>(id).cloned()).collect())
    }

    #[test]
    fn a_bare_option_takes_the_next_word_only_if_it_is_a_value() {
        for (line, threads, affinity, probes) in [
            ("-t", Some("per-cpu"), None, &[][..]),
            ("-t wakeup", Some("per-cpu"), None, &["wakeup"]),
            ("-t 2 wakeup", Some("2"), None, &["wakeup"]),
            ("-t2 -a wakeup", Some("2"), Some("auto"), &["wakeup"]),
            ("-t per-cpu -a auto", Some("per-cpu"), Some("auto"), &[]),
            ("-t -a 0-1,3 clock", Some("per-cpu"), Some("0-1,3"), &["clock"]),
            ("-a inherited", None, Some("inherited"), &[]),
            ("-t -a -p 90", Some("per-cpu"), Some("auto"), &[]),
            ("-p 90 -t -- sim", Some("per-cpu"), None, &["sim"]),
            ("--threads --affinity sim", Some("per-cpu"), Some("auto"), &["sim"]),
            ("--threads 3 --affinity=1", Some("3"), Some("1"), &[]),
            ("--load none -qt wakeup", Some("per-cpu"), None, &["wakeup"]),
        ] {
            for command in ["run", "lab run", "lab check"] {
                let line = match command {
                    "lab check" => format!("punctual lab check --kernel x --max 1us {line}"),
                    _ => format!("punctual {command} {line}"),
                };
                let (read, values) = understood(&line, &["threads", "affinity"]);
                assert_eq!(read, probes, "{line}");
                let expected = [threads.map(str::to_owned), affinity.map(str::to_owned)];
                assert_eq!(values, expected, "{line}");
            }
        }
    }

    #[test]
    fn letters_can_be_joined() {
        let (_, values) = understood("punctual run -mqSp90 -i200", &["priority", "interval"]);
        assert_eq!(values, [Some("90".to_owned()), Some("200".to_owned())]);
    }

    /// OSADL's own line: everything else in it is understood.
    #[test]
    fn foreign_options_are_answered_at_once_with_the_rest_of_the_line() {
        let error = read_line("punctual run -l100000000 -m -Sp90 -i200 -h400 -q").unwrap_err();
        let text = error.to_string();
        assert!(text.contains("-h400: every run keeps its histogram"), "{text}");
        assert!(text.contains("\n  punctual run -l100000000 -m -Sp90 -i200 -q\n"), "{text}");

        let text = read_line("punctual run -mNh 400 -d 0 --latency=5 --smi -D 5").unwrap_err();
        let text = text.to_string();
        for said in
            ["  -N: ", "  -h 400: ", "  -d 0: ", "  --latency=5: write --dma-latency", "  --smi: "]
        {
            assert!(text.contains(said), "{said} is not in {text}");
        }
        assert!(text.contains("\n  punctual run -m -D 5\n"), "{text}");
    }

    #[test]
    fn h_without_a_number_asks_for_help() {
        for line in ["punctual run -h", "punctual run -h wakeup", "punctual run -qh"] {
            assert_eq!(read_line(line).unwrap_err().kind(), ErrorKind::DisplayHelp, "{line}");
        }
    }

    /// Every option of the table, as it would be typed: an answer, and neither help nor an
    /// unknown option.
    #[test]
    fn every_option_of_the_table_is_answered() {
        for foreign in foreign::FOREIGN {
            for name in foreign.names.split(' ') {
                let value = if foreign.takes == Takes::Nothing { "" } else { " 7" };
                let line = format!("punctual run {name}{value} -D 5 wakeup");
                let text = read_line(&line).unwrap_err().to_string();
                assert!(text.contains(&format!("  {name}{value}: {}", foreign.answer)), "{text}");
                assert!(text.ends_with("  punctual run -D 5 wakeup\n"), "{line}: {text}");
            }
        }
    }

    #[test]
    fn the_document_has_every_option_of_the_table() {
        let document = include_str!("../../../../docs/cyclictest.md");
        let (_, table) = document.split_once("## Options with another form").unwrap();
        for name in foreign::FOREIGN.iter().flat_map(|foreign| foreign.names.split(' ')) {
            assert!(table.contains(&format!("`{name}`")), "{name}");
        }
    }

    /// An answer must not send anybody to an option that does not exist.
    #[test]
    fn answers_name_options_that_exist() {
        let command = super::super::command();
        let has = |name: &str| {
            ["run", "export"].into_iter().any(|of| {
                let command = command.find_subcommand(of).unwrap();
                command.get_arguments().any(|arg| {
                    arg.get_long().is_some_and(|long| name == format!("--{long}"))
                        || arg.get_short().is_some_and(|short| name == format!("-{short}"))
                })
            })
        };
        // Options of the other programs that answers name.
        let others = ["-c", "--show", "-USR1", "-s"];
        for foreign in foreign::FOREIGN {
            let words = foreign.answer.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
            let options = words.filter(|word| word.len() > 1 && word.starts_with('-'));
            for option in options.filter(|option| !others.contains(option)) {
                assert!(has(option), "{}: {option}", foreign.names);
            }
        }
    }

    /// An option that punctual has is not answered as if it were foreign.
    #[test]
    fn no_option_of_punctual_is_in_the_table() {
        let command = super::super::command();
        let run = command.find_subcommand("run").unwrap();
        for arg in run.get_arguments() {
            let names = [
                arg.get_short().map(|letter| format!("-{letter}")),
                arg.get_long().map(|long| format!("--{long}")),
            ];
            for name in names.into_iter().flatten() {
                assert!(foreign::find(&name).is_none(), "{name}");
            }
        }
    }
}
