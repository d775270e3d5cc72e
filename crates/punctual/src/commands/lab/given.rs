//! The files of the user's that a run was measured with, to measure it again: as its own command line
//! names them, unless they are named anew.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use punctual_core::schema::Run;
use punctual_lab::experiment::{EXPERIMENT, directory_of};
use punctual_lab::modules::is_path;
use punctual_sys::file;

use super::asked;

/// The largest list of an experiment's runs that is read, bytes.
const MOST_LIST: u64 = 4 << 20;

/// What `--module`, `--modules` and `--files` say.
#[derive(Debug, PartialEq, Eq)]
pub struct Given {
    /// Modules by name or path, with their parameters.
    pub modules: Vec<(String, String)>,
    /// Folder of a kernel's modules.
    pub folder_of_modules: Option<PathBuf>,
    /// Folder of the guest's files.
    pub files: Option<PathBuf>,
}

impl Given {
    /// Of the run in this folder.
    pub fn of(run: &Run, dir: &Path, matches: &ArgMatches) -> Self {
        let text = dir.parent().map(|of| file::read(&of.join(EXPERIMENT), MOST_LIST));
        let directory = text.and_then(Result::ok).and_then(|text| directory_of(&text));
        Self::by(matches, recorded(&run.tool.command).as_ref(), directory.as_deref())
    }

    /// By the options of this command, else by those of the one that measured, in this directory.
    fn by(matches: &ArgMatches, recorded: Option<&ArgMatches>, directory: Option<&Path>) -> Self {
        let path = |id| {
            let given = asked::path(matches, id).map(Path::to_owned);
            given.or_else(|| Some(found(asked::path(recorded?, id)?, directory)))
        };
        let mut modules = asked::modules(matches);
        if modules.is_empty() {
            modules = recorded.map(asked::modules).unwrap_or_default();
            for (module, _) in modules.iter_mut().filter(|(module, _)| is_path(module)) {
                *module = found(Path::new(&module), directory).to_string_lossy().into_owned();
            }
        }
        Self { modules, folder_of_modules: path("modules"), files: path("files") }
    }
}

/// A path of a command line, here or, if there is none here, in the directory of that command.
fn found(path: &Path, directory: Option<&Path>) -> PathBuf {
    let there = directory.map(|directory| directory.join(path));
    match there.filter(|there| !path.exists() && there.exists()) {
        Some(there) => there,
        None => path.to_owned(),
    }
}

/// The options of a command that has booted guests; `None` if this punctual does not know them.
fn recorded(command: &[String]) -> Option<ArgMatches> {
    let words: Vec<OsString> = command.iter().map(OsString::from).collect();
    let mut matches = crate::cli::read(&words).ok()?;
    let (name, mut lab) = matches.remove_subcommand()?;
    (name == "lab").then(|| lab.remove_subcommand())?.map(|(_, options)| options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> ArgMatches {
        let words = ["punctual", "lab"].into_iter().chain(line.split_whitespace());
        let words: Vec<String> = words.map(str::to_owned).collect();
        recorded(&words).unwrap()
    }

    #[test]
    fn a_run_has_its_own_modules_and_files_unless_others_are_given() {
        let measured = options("run wakeup -k debian:none --module loop --modules m --files root");
        let again = Given::by(&options("explain run"), Some(&measured), None);
        let loaded = ("loop".to_owned(), String::new());
        let (m, root) = (Some(PathBuf::from("m")), Some(PathBuf::from("root")));
        let expected = Given { modules: vec![loaded], folder_of_modules: m.clone(), files: root };
        assert_eq!(again, expected);
        let other = options("explain run --files other --module brd");
        let again = Given::by(&other, Some(&measured), None);
        let loaded = ("brd".to_owned(), String::new());
        let files = Some(PathBuf::from("other"));
        assert_eq!(again, Given { modules: vec![loaded], folder_of_modules: m, files });
        let none = Given { modules: Vec::new(), folder_of_modules: None, files: None };
        assert_eq!(Given::by(&options("explain run"), None, None), none);
    }

    #[test]
    fn what_is_not_here_is_found_where_it_was_measured() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        assert_eq!(found(Path::new("commands"), Some(&source)), source.join("commands"));
        assert_eq!(found(Path::new("nowhere.ko"), Some(&source)), Path::new("nowhere.ko"));
        assert_eq!(found(Path::new("nowhere.ko"), None), Path::new("nowhere.ko"));
        // This package's own folder comes first.
        assert_eq!(found(Path::new("Cargo.toml"), Some(&source)), Path::new("Cargo.toml"));
    }

    #[test]
    fn a_command_that_is_not_known_names_nothing() {
        let of = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            recorded(&words)
        };
        for line in ["punctual run wakeup", "punctual lab run --gone", "punctual", "x lab future y"]
        {
            assert!(of(line).is_none(), "{line}");
        }
        assert!(of("/usr/bin/punctual lab check --max 1ms -k vmlinux wakeup").is_some());
    }
}
