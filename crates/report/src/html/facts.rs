//! What was recorded of the board, and the command lines.

use maud::{Markup, html};
use punctual_core::run::LoadedRun;

use super::interrupts;
use crate::describe::{basics, flat_facts};
use crate::words;

pub fn section(title: &str, runs: &[(&LoadedRun, &str)]) -> Markup {
    html! {
        section {
            h2 { (title) }
            @for (run, name) in runs {
                details {
                    summary { (name) }
                    h4 { "identity" }
                    (list(basics(run)))
                    @for (name, facts) in groups(flat_facts(run)) {
                        @if !interrupts::GROUPS.contains(&name.as_str()) {
                            h4 { (name) }
                            (list(facts))
                        }
                    }
                    (interrupts::table(&run.run))
                }
            }
        }
    }
}

/// Facts by the first part of their name.
fn groups(facts: Vec<(String, String)>) -> Vec<(String, Vec<(String, String)>)> {
    let mut groups: Vec<(String, Vec<(String, String)>)> = Vec::new();
    for (key, value) in facts {
        let (group, rest) = key.split_once('.').unwrap_or((&key, &key));
        let pair = (rest.to_owned(), value);
        match groups.last_mut() {
            Some((name, list)) if name == group => list.push(pair),
            _ => groups.push((group.to_owned(), vec![pair])),
        }
    }
    groups
}

fn list(pairs: Vec<(String, String)>) -> Markup {
    html! { dl { @for (key, value) in pairs { dt { (key) } dd { (value) } } } }
}

/// The command line of every run; a single one needs no name above it.
pub fn one_by_one<'a>(runs: &[(&'a LoadedRun, &str)]) -> Vec<(&'a LoadedRun, String)> {
    let name = |name: &str| if runs.len() > 1 { name.to_owned() } else { String::new() };
    runs.iter().map(|(run, of)| (*run, name(of))).collect()
}

/// Command lines, each below the name that it is given.
pub fn commands(runs: &[(&LoadedRun, String)]) -> Markup {
    html! {
        section {
            h2 { "Command line" }
            @for (run, name) in runs {
                @if !name.is_empty() { h3 { (name) } }
                pre { (words::clean(&shell(&run.run.tool.command))) }
                p class="about" {
                    (words::clean(&run.run.tool.name)) " " (words::clean(&run.run.tool.version))
                    ", " (words::clean(&run.run.tool.target)) ", plan " (words::clean(&run.run.plan.name))
                }
            }
        }
    }
}

/// A command line that a shell reads back as it was.
fn shell(command: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+@%".contains(c);
    let word = |word: &String| {
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    command.iter().map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_can_be_pasted() {
        let command =
            ["punctual", "run", "--load", "cmd:dd if=/dev/zero", "it's", ""].map(str::to_owned);
        assert_eq!(shell(&command), r"punctual run --load 'cmd:dd if=/dev/zero' 'it'\''s' ''");
    }
}
