//! What a shell offers when a word is completed: options from the definition of the command
//! line; names of probes, loads, costs, plans and runs, and parameters, from where they are
//! defined. The scripts of the shells call punctual for every word.

use std::ffi::OsString;

use clap::{Arg, Command, ValueHint};

use crate::{cli, output};

mod names;

/// The internal command that a shell's script calls, with the words up to the cursor; the last
/// one, which may be empty, is to be completed.
pub const COMPLETE: &str = "__complete";

/// A word that could stand there.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Candidate {
    /// The whole word.
    word: String,
    /// What it is, in a line; may be empty.
    help: String,
}

impl Candidate {
    fn new(word: impl Into<String>, help: impl Into<String>) -> Self {
        Self { word: word.into(), help: help.into() }
    }
}

/// What the shell shall offer.
#[derive(Debug, Default, PartialEq, Eq)]
struct Offer {
    candidates: Vec<Candidate>,
    /// Which paths besides.
    paths: Paths,
}

/// Paths that the shell shall complete by itself.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Paths {
    #[default]
    None,
    Files,
    Folders,
}

/// Prints what can stand for the last word: a candidate, a tab and its help in each line; then
/// `:files` or `:folders` if paths can stand there too.
pub fn print(words: &[OsString]) {
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let Offer { candidates, paths } = offer(&words);
    let mut text = String::new();
    for Candidate { word, help } in candidates {
        // A name of a run may have any character; a line break would be another candidate.
        if !word.contains(char::is_control) {
            text.push_str(&format!("{word}\t{help}\n"));
        }
    }
    match paths {
        Paths::None => {}
        Paths::Files => text.push_str(":files\n"),
        Paths::Folders => text.push_str(":folders\n"),
    }
    // A shell that went away needs no candidates.
    let _ = output::print(&text);
}

/// Where in the command line the last word is.
struct Place<'a> {
    command: &'a Command,
    /// The option whose value it is.
    option: Option<&'a Arg>,
    /// Positional words before it.
    positional: usize,
    only_positional: bool,
}

impl<'a> Place<'a> {
    fn of(whole: &'a Command, before: &[String], word: &str) -> Self {
        let mut place =
            Place { command: whole, option: None, positional: 0, only_positional: false };
        let follows = before.iter().skip(1).map(String::as_str).chain([word]);
        for (text, next) in before.iter().zip(follows) {
            place.pass(text, next);
        }
        place
    }

    /// Passes a word; `next` is the one after it.
    fn pass(&mut self, text: &str, next: &str) {
        if self.option.take().is_some() {
        } else if self.only_positional {
            self.positional += 1;
        } else if text == "--" {
            self.only_positional = true;
        } else if let Some(long) = text.strip_prefix("--") {
            let arg = self.command.get_arguments().find(|arg| arg.get_long() == Some(long));
            self.option = arg.filter(|arg| cli::takes_next(arg, next));
        } else if let Some(letters) = text.strip_prefix('-').filter(|rest| !rest.is_empty()) {
            let mut rest = letters.chars();
            let with_value = rest.by_ref().find_map(|letter| {
                let mut args = self.command.get_arguments();
                args.find(|arg| arg.get_short() == Some(letter) && cli::takes_value(arg))
            });
            let is_last = rest.as_str().is_empty();
            self.option = with_value.filter(|arg| is_last && cli::takes_next(arg, next));
        } else if let Some(below) = self.command.find_subcommand(text) {
            self.command = below;
        } else {
            self.positional += 1;
        }
    }
}

fn offer(words: &[String]) -> Offer {
    let Some((word, before)) = words.split_last() else {
        return Offer::default();
    };
    let mut whole = cli::command();
    whole.build();
    let place = Place::of(&whole, before, word);
    if let Some(option) = place.option {
        return values(option, word, "");
    }
    if !place.only_positional && word.starts_with('-') {
        return match word.split_once('=') {
            Some((name, value)) => {
                let named =
                    |arg: &&Arg| arg.get_long().is_some_and(|long| name == format!("--{long}"));
                let arg = place.command.get_arguments().find(named);
                arg.map_or_else(Offer::default, |arg| values(arg, value, &format!("{name}=")))
            }
            None => Offer { candidates: options(place.command, word), paths: Paths::None },
        };
    }
    let below = place.command.get_subcommands().filter(|below| !below.is_hide_set());
    let below = below.map(|below| Candidate::new(below.get_name(), about(below)));
    let mut candidates: Vec<_> = below.filter(|below| below.word.starts_with(word)).collect();
    let positionals: Vec<_> = place.command.get_positionals().collect();
    let at = place.positional.min(positionals.len().saturating_sub(1));
    let arg = positionals.get(at).filter(|arg| place.positional <= at || takes_many(arg));
    let offered = arg.map_or_else(Offer::default, |arg| values(arg, word, ""));
    candidates.extend(offered.candidates);
    Offer { candidates, paths: offered.paths }
}

fn takes_many(arg: &Arg) -> bool {
    arg.get_num_args().is_some_and(|range| range.max_values() > 1)
}

fn about(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

fn options(command: &Command, word: &str) -> Vec<Candidate> {
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let named = shown.filter_map(|arg| {
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let name = match (arg.get_long(), arg.get_short()) {
            (Some(long), _) => format!("--{long}"),
            (None, Some(short)) => format!("-{short}"),
            (None, None) => return None,
        };
        Some(Candidate::new(name, help.lines().next().unwrap_or_default()))
    });
    named.filter(|option| option.word.starts_with(word)).collect()
}

/// What can stand for `word` as the value of `arg`, each after `before`.
fn values(arg: &Arg, word: &str, before: &str) -> Offer {
    let named = names::of(arg.get_id().as_str(), word);
    let candidates = match named.is_empty() {
        true => {
            let possible = arg.get_possible_values();
            let visible = possible.iter().filter(|value| value.get_name().starts_with(word));
            visible.map(|value| Candidate::new(value.get_name(), "")).collect()
        }
        false => named,
    };
    let paths = match arg.get_value_hint() {
        ValueHint::AnyPath | ValueHint::FilePath => Paths::Files,
        ValueHint::DirPath => Paths::Folders,
        _ => Paths::None,
    };
    Offer { candidates: names::after(before, candidates), paths }
}

#[cfg(test)]
mod tests;
