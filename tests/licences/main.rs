//! What the project depends on, held against deny.toml, and the licences that go with the binary.

mod third_party;

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use punctual_harness::{end_of, sources};
use serde_json::Value;

/// The packages that are built for a target, tests included.
fn packages(target: &str) -> Vec<Value> {
    let mut metadata = Command::new(env!("CARGO"));
    metadata
        .args(["metadata", "--format-version=1", "--locked", "--offline", "--filter-platform"])
        .arg(target)
        .current_dir(sources());
    end_of(metadata).with(0).json()["packages"].as_array().unwrap().clone()
}

/// Whether a licence expression (SPDX 2.3, annex D) holds with the licences that are
/// allowed, which are noted as used.
struct Expression<'a> {
    words: Vec<&'a str>,
    allowed: &'a BTreeSet<String>,
    used: &'a mut BTreeSet<String>,
}

impl Expression<'_> {
    fn any(&mut self) -> bool {
        let mut holds = self.all();
        while self.skip("OR") {
            holds |= self.all();
        }
        holds
    }

    fn all(&mut self) -> bool {
        let mut holds = self.one();
        while self.skip("AND") {
            holds &= self.one();
        }
        holds
    }

    fn one(&mut self) -> bool {
        if self.skip("(") {
            let holds = self.any();
            assert!(self.skip(")"), "a parenthesis is missing");
            return holds;
        }
        let name = self.words.remove(0);
        // An exception only permits more.
        if self.skip("WITH") {
            self.words.remove(0);
        }
        let allowed = self.allowed.contains(name);
        if allowed {
            self.used.insert(name.to_owned());
        }
        allowed
    }

    fn skip(&mut self, word: &str) -> bool {
        let is_next = self.words.first() == Some(&word);
        if is_next {
            self.words.remove(0);
        }
        is_next
    }
}

fn holds(text: &str, allowed: &BTreeSet<String>, used: &mut BTreeSet<String>) -> bool {
    // Old packages write MIT/Apache-2.0.
    let text = text.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut expression = Expression { words: text.split_whitespace().collect(), allowed, used };
    let holds = expression.any();
    assert!(expression.words.is_empty(), "{text}: what is {:?}?", expression.words);
    holds
}

#[test]
fn dependencies_are_as_deny_toml_says() {
    let rules = fs::read_to_string(sources().join("deny.toml")).unwrap();
    let rules: toml::Table = rules.parse().unwrap();
    let list = |table: &str, key: &str| -> BTreeSet<String> {
        let list = rules[table][key].as_array().unwrap().iter();
        list.map(|one| one.as_str().unwrap().to_owned()).collect()
    };
    let (allowed, registries) = (list("licenses", "allow"), list("sources", "allow-registry"));
    let mut used = BTreeSet::new();
    let mut wrong = BTreeSet::new();
    for target in list("graph", "targets") {
        let packages = packages(&target);
        assert!(packages.len() > 50, "{target}: {} packages", packages.len());
        for package in packages {
            let what = format!("{} {}", package["name"], package["version"]);
            let licence = package["license"].as_str().unwrap_or("none");
            if !holds(licence, &allowed, &mut used) {
                wrong.insert(format!("{what}: licence {licence}"));
            }
            // Those of the project have no source.
            if let Some(source) = package["source"].as_str() {
                let registry = source.strip_prefix("registry+").unwrap_or(source);
                if !registries.contains(registry) {
                    wrong.insert(format!("{what}: from {source}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "deny.toml does not allow: {wrong:#?}");
    let idle: Vec<_> = allowed.difference(&used).collect();
    assert!(idle.is_empty(), "deny.toml allows what nothing needs: {idle:?}");
}

#[test]
fn expressions_are_read_as_they_mean() {
    let allowed = ["MIT", "Zlib"].map(str::to_owned).into();
    let mut used = BTreeSet::new();
    for (text, expected) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("Apache-2.0/MIT", true),
        ("Apache-2.0 OR MIT", true),
        ("Apache-2.0 AND MIT", false),
        ("(Apache-2.0 OR MIT) AND Zlib", true),
        ("Apache-2.0 WITH LLVM-exception OR MIT", true),
        ("MIT AND (GPL-3.0 OR BSD-1-Clause)", false),
    ] {
        assert_eq!(holds(text, &allowed, &mut used), expected, "{text}");
    }
    assert_eq!(used, allowed);
}
