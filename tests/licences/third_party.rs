//! THIRD-PARTY.txt: what the release binaries contain beside the project's own code, and its
//! licences. It is generated from the sources in Cargo's registry, and committed.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use punctual_harness::{end_of, sources};

use super::{holds, packages};

const RENEW: &str = "THIRD_PARTY=overwrite cargo test -p punctual-harness --test licences";
const TARGETS: [&str; 2] = ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"];

/// A crate that is linked into a binary: name, version, licence, texts of licences.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Linked {
    name: String,
    version: String,
    licence: String,
    texts: Vec<String>,
}

/// Names and versions of the crates that the binary for a target links. What only builds or
/// tests it, and what runs in the compiler, is not in it.
fn names(target: &str) -> BTreeSet<(String, String)> {
    let mut tree = Command::new(env!("CARGO"));
    tree.args([
        "tree",
        "--locked",
        "--offline",
        "--package=punctual",
        "--edges=normal,no-proc-macro",
    ])
    .args(["--prefix=none", "--no-dedupe", "--format={p}", "--target", target])
    .current_dir(sources());
    let tree = end_of(tree).with(0).stdout;
    let mut names = BTreeSet::new();
    for line in tree.lines() {
        // "name v1.2.3", with the folder of those of the project behind it.
        let (name, version) = line.split_once(" v").unwrap();
        if !version.contains(' ') {
            names.insert((name.to_owned(), version.to_owned()));
        }
    }
    names
}

fn linked() -> BTreeSet<Linked> {
    let mut all = BTreeSet::new();
    for target in TARGETS {
        let mut names = names(target);
        assert!(names.len() > 30, "{target}: {names:?}");
        for package in packages(target) {
            let field = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
            let (name, version) = (field("name"), field("version"));
            if names.remove(&(name.clone(), version.clone())) {
                let manifest = field("manifest_path");
                let texts = texts(Path::new(&manifest).parent().unwrap());
                all.insert(Linked { name, version, licence: field("license"), texts });
            }
        }
        assert!(names.is_empty(), "{target}: cargo metadata does not have {names:?}");
    }
    all
}

/// The texts of licences and notices in the folder of a crate.
fn texts(folder: &Path) -> Vec<String> {
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files.retain(|file| {
        let name = file.file_name().unwrap().to_string_lossy().to_uppercase();
        let stems = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];
        file.is_file() && stems.iter().any(|stem| name.starts_with(stem))
    });
    files.iter().map(|file| fs::read_to_string(file).unwrap()).collect()
}

/// What decides whether two texts are the same: their words, however they are laid out.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn tidy(text: &str) -> String {
    let lines = text.trim_matches(['\n', '\r', '\u{c}']).lines();
    lines.map(|line| line.replace('\u{c}', "").trim_end().to_owned() + "\n").collect()
}

/// The document, of the crates and of the other parts (the files of packaging/licences).
fn document(crates: &BTreeSet<Linked>, others: &[String]) -> Result<String, String> {
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let mut texts: Vec<(&str, Vec<String>)> = Vec::new();
    let mut list = String::new();
    for one in crates {
        let name = format!("{} {}", one.name, one.version);
        let mut own = BTreeSet::new();
        for text in &one.texts {
            let number = *numbers.entry(words(text)).or_insert_with(|| {
                texts.push((text, Vec::new()));
                texts.len()
            });
            if own.insert(number) {
                texts[number - 1].1.push(name.clone());
            }
        }
        let own: Vec<_> = own.iter().map(|number| format!("[{number}]")).collect();
        let mut own = own.join(" ");
        if one.texts.is_empty() {
            // This licence has one text for all, without names.
            let apache = ["Apache-2.0".to_owned()].into();
            if !holds(&one.licence, &apache, &mut BTreeSet::new()) {
                return Err(format!("{name} ({}) brings no text of its licence", one.licence));
            }
            own = "brings no text; used under Apache-2.0".into();
        }
        writeln!(list, "{name}: {}\n    {own}", one.licence).unwrap();
    }
    let mut document = format!(
        "What the binaries of punctual contain beside its own code, and the licences.\n\n\
         Generated; renew it with\n{RENEW}\n\n\
         Crates, with the numbers of the texts below. What is no crate comes after them, without\n\
         a number.\n\n{list}"
    );
    let rule = "=".repeat(80);
    for other in others {
        write!(document, "\n{rule}\n{}", tidy(other)).unwrap();
    }
    for (index, (text, users)) in texts.iter().enumerate() {
        let users = users.join(", ");
        write!(document, "\n{rule}\n[{}] {users}\n\n{}", index + 1, tidy(text)).unwrap();
    }
    Ok(document)
}

#[test]
fn third_party_txt_is_of_these_dependencies() {
    let folder = sources().join("packaging/licences");
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let others: Vec<_> = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let expected = document(&linked(), &others).unwrap();
    let file = sources().join("THIRD-PARTY.txt");
    if env::var_os("THIRD_PARTY").is_some_and(|value| value == "overwrite") {
        fs::write(&file, &expected).unwrap();
    }
    let committed = fs::read_to_string(&file).unwrap_or_default();
    let differs = committed.lines().zip(expected.lines()).find(|(old, new)| old != new);
    assert!(
        committed == expected,
        "THIRD-PARTY.txt is not of the dependencies in Cargo.lock ({differs:?}). Renew it with: {RENEW}"
    );
}

fn example(name: &str, licence: &str, texts: &[&str]) -> Linked {
    let texts = texts.iter().map(|&text| text.to_owned()).collect();
    Linked { name: name.into(), version: "1.0.0".into(), licence: licence.into(), texts }
}

#[test]
fn a_text_that_several_bring_stands_once() {
    let (first, second) = ("Some  words\nof MIT", "Some words of MIT\n");
    let crates = [example("a", "MIT", &[first]), example("b", "MIT", &["other", second])].into();
    let document = document(&crates, &["musl: MIT\n".to_owned()]).unwrap();
    assert_eq!(document.matches("of MIT").count(), 1, "{document}");
    for part in [
        "a 1.0.0: MIT\n    [1]\n",
        "b 1.0.0: MIT\n    [1] [2]\n",
        "[1] a 1.0.0, b 1.0.0\n",
        "\nmusl: MIT\n",
    ] {
        assert!(document.contains(part), "{part}: {document}");
    }
}

#[test]
fn a_crate_without_text_is_refused_unless_apache_holds() {
    let refused = document(&[example("a", "MIT OR Zlib", &[])].into(), &[]).unwrap_err();
    assert!(refused.contains("a 1.0.0 (MIT OR Zlib)"), "{refused}");
    document(&[example("a", "MIT OR Apache-2.0", &[])].into(), &[]).unwrap();
}
