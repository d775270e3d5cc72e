use clap::error::ErrorKind;

use super::{HELP_WIDTH, LEAST_HELP_WIDTH, command, read};

/// Help of all commands, short and long, as it is printed on a terminal this wide.
fn helps(width: usize) -> Vec<(String, String)> {
    fn add(mut command: clap::Command, found: &mut Vec<(String, String)>) {
        let name = command.get_bin_name().unwrap_or_default().to_owned();
        for help in [command.render_help(), command.render_long_help()] {
            found.push((name.clone(), help.to_string()));
        }
        command.get_subcommands().for_each(|below| add(below.clone(), found));
    }
    let mut whole = command().disable_help_subcommand(true).term_width(width);
    whole.build();
    let mut found = Vec::new();
    add(whole, &mut found);
    found
}

/// The command lines of punctual in a text: lines that start with its name, or have it
/// after `sudo` or two spaces; continued lines are joined, pipes and redirections cut off.
fn examples(text: &str) -> Vec<String> {
    let joined = text.replace("\\\n", " ");
    let lines = joined.lines().map(|line| line.rsplit_once(":  ").map_or(line, |(_, line)| line));
    let lines = lines.map(|line| line.trim().trim_start_matches("sudo "));
    let commands = lines.filter(|line| line.starts_with("punctual "));
    let ends = [" > ", " >> ", " | ", " || ", " && ", "  #"];
    let cut = |line: &str| {
        ends.iter().fold(line.to_owned(), |line, end| {
            line.split_once(end).map_or(line.clone(), |(command, _)| command.to_owned())
        })
    };
    commands.map(cut).collect()
}

/// The words of a command line. Of quotes only " is understood, around a whole word.
fn words(line: &str) -> Vec<&str> {
    assert!(!line.contains(['\'', '\\']), "not understood here: {line}");
    let stretches = line.split('"').enumerate();
    stretches
        .flat_map(|(number, stretch)| match number % 2 {
            0 => stretch.split_whitespace().collect(),
            _ => vec![stretch],
        })
        .collect()
}

/// Fails unless clap accepts every line.
fn assert_accepted(whence: &str, lines: &[String]) {
    for line in lines {
        let words: Vec<_> = words(line).into_iter().map(std::ffi::OsString::from).collect();
        let read = read(&words);
        let wrong = read.err().filter(|error| error.kind() != ErrorKind::DisplayHelp);
        assert!(wrong.is_none(), "{whence}: {line}: {}", wrong.unwrap());
    }
}

#[test]
fn definitions_hold_together() {
    command().debug_assert();
}

#[test]
fn every_example_of_help_is_accepted() {
    let mut commands = 0;
    for (name, help) in helps(HELP_WIDTH) {
        let found = examples(&help);
        commands += usize::from(!found.is_empty());
        let listed = help.contains("Examples:\n");
        // The help of punctual itself names two commands below its list.
        assert_eq!(listed || name.is_empty(), !found.is_empty(), "{name}: {found:?}");
        assert_accepted(&name, &found);
    }
    assert!(commands >= 12, "{commands}");
}

/// A wrapped example is two commands for a shell, and a wrapped script another script.
#[test]
fn examples_are_printed_as_they_are_written() {
    for (name, help) in [LEAST_HELP_WIDTH, HELP_WIDTH].into_iter().flat_map(helps) {
        let widest = help.lines().max_by_key(|line| line.chars().count()).unwrap_or_default();
        assert!(widest.chars().count() <= HELP_WIDTH, "{name}: {widest}");
        let Some((_, examples)) = help.split_once("Examples:\n") else {
            continue;
        };
        let examples = examples.split("\n\n").next().unwrap_or_default();
        for line in examples.lines() {
            assert!(line.starts_with("  "), "{name}: wrapped: {line}");
            assert!(line.chars().count() < LEAST_HELP_WIDTH, "{name}: {line}");
        }
    }
}

/// The script for `git bisect run` reaches the shell whole: wrapped, it was two commands.
#[test]
fn the_script_for_git_bisect_is_that_of_the_document() {
    let script = |text: &str| {
        let (_, script) = text.split_once("git bisect run sh -c '\n").expect("a script");
        let ends = ["\n  '", "\n'"].iter().filter_map(|end| script.find(end));
        let script = &script[..ends.min().expect("an end")];
        let joined = script.replace("\\\n", " ");
        let lines =
            joined.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        lines.collect::<Vec<_>>()
    };
    let documented = script(include_str!("../../../../docs/bisect.md"));
    assert!(documented.iter().any(|line| line.ends_with("|| exit 125")), "{documented:?}");
    let (_, help) =
        helps(LEAST_HELP_WIDTH).into_iter().find(|(name, _)| name == "punctual lab check").unwrap();
    assert_eq!(script(&help), documented);
}

#[test]
fn every_command_line_of_the_documents_is_accepted() {
    for (name, text) in [
        ("README.md", include_str!("../../../../README.md")),
        ("BIAS.md", include_str!("../../../../BIAS.md")),
        ("METHODOLOGY.md", include_str!("../../../../METHODOLOGY.md")),
        ("SPECIFICATION.md", include_str!("../../../../SPECIFICATION.md")),
        ("docs/bisect.md", include_str!("../../../../docs/bisect.md")),
        ("docs/cyclictest.md", include_str!("../../../../docs/cyclictest.md")),
        ("docs/command-line.md", include_str!("../../../../docs/command-line.md")),
        ("docs/lab.md", include_str!("../../../../docs/lab.md")),
    ] {
        let blocks = text.split("```sh\n").skip(1);
        let shell = blocks.map(|block| block.split("```").next().unwrap_or_default());
        assert_accepted(name, &examples(&shell.collect::<String>()));
    }
}
