//! Man pages, generated from the definition of the command line, and the shells' completions.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::ArgMatches;

use super::report::cannot_write;
use crate::ending::Ending;
use crate::{cli, output};

pub fn completions(matches: &ArgMatches) -> anyhow::Result<Ending> {
    output::print(match matches.get_one::<String>("shell").map(String::as_str) {
        Some("zsh") => include_str!("../completions/punctual.zsh"),
        Some("fish") => include_str!("../completions/punctual.fish"),
        Some("elvish") => include_str!("../completions/punctual.elv"),
        _ => include_str!("../completions/punctual.bash"),
    })?;
    Ok(Ending::Done)
}

pub fn pages(matches: &ArgMatches) -> anyhow::Result<Ending> {
    let mut command = cli::command().disable_help_subcommand(true);
    command.build();
    let Some(folder) = matches.get_one::<PathBuf>("dir") else {
        output::print(&page(&command)?)?;
        return Ok(Ending::Done);
    };
    fs::create_dir_all(folder).with_context(|| cannot_write(folder))?;
    write_pages(&command, folder)?;
    Ok(Ending::Done)
}

/// The pages of a command and of its subcommands.
fn write_pages(command: &clap::Command, folder: &Path) -> anyhow::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let path = folder.join(format!("{name}.1"));
    fs::write(&path, page(command)?).with_context(|| cannot_write(&path))?;
    command.get_subcommands().try_for_each(|command| write_pages(command, folder))
}

fn page(command: &clap::Command) -> io::Result<String> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
