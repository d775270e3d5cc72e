//! What a registry entry says of its parameters and needs: lists, help, man
//! page and checks of parameters all derive from it.

use std::collections::BTreeMap;

use punctual_core::params::Named;

/// One parameter of a probe or load.
#[derive(Debug, Clone, Copy)]
pub struct Param {
    /// The key, as `groups` in `hackbench:groups=4`.
    pub name: &'static str,
    /// What stands for the value in help, as `N` or `TIME`.
    pub value: &'static str,
    /// The default in words or as a value; what takes effect is recorded.
    pub default: &'static str,
    /// One line of help.
    pub help: &'static str,
}

/// What a probe or load needs of the board; without it the cell is SKIPPED.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// An x86 CPU with a constant, invariant time stamp counter.
    Tsc,
    /// A raw or ping socket for ICMP.
    IcmpSocket,
}

impl Need {
    /// The need in words.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Tsc => "an invariant TSC (x86)",
            Self::IcmpSocket => "a raw or ping socket (root, or net.ipv4.ping_group_range)",
        }
    }
}

/// A probe or load that a later version brings. Plans may name it already: its cells
/// are SKIPPED until then, which is no usage error as a misspelt name is.
#[derive(Debug, Clone, Copy)]
pub struct Planned {
    /// Its name.
    pub name: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// The device of a virtual board that it measures, by the board's name for it.
    pub device: Option<&'static str>,
}

/// The parameters of one probe or load, checked against its registry entry.
#[derive(Debug, Clone)]
pub struct Values {
    of: String,
    values: BTreeMap<String, String>,
}

impl Values {
    /// Checks that every parameter given is one of `known`.
    ///
    /// # Errors
    /// A message that names the unknown parameter and lists the known ones.
    pub fn check(named: &Named, known: &[Param]) -> Result<Self, String> {
        for key in named.params.keys() {
            if !known.iter().any(|param| param.name == key) {
                let list: Vec<_> = known.iter().map(|param| param.name).collect();
                let list = if list.is_empty() { "none".to_owned() } else { list.join(", ") };
                return Err(format!("{} has no parameter \"{key}\"; it has: {list}", named.name));
            }
        }
        Ok(Self { of: named.name.clone(), values: named.params.clone() })
    }

    /// The text of a parameter, where it was given.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(String::as_str)
    }

    /// A parameter read by `parse`, or `default` where it was not given.
    ///
    /// # Errors
    /// A message that names the parameter and what is wrong with it.
    pub fn get<T, E: std::fmt::Display>(
        &self,
        key: &str,
        default: T,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T, String> {
        match self.text(key) {
            None => Ok(default),
            Some(text) => {
                parse(text).map_err(|error| format!("{}: {key}={text}: {error}", self.of))
            }
        }
    }

    /// A whole number between `low` and `high`.
    ///
    /// # Errors
    /// A message that names the parameter and its range.
    pub fn number(&self, key: &str, default: u64, low: u64, high: u64) -> Result<u64, String> {
        self.get(key, default, |text| match text.parse::<u64>() {
            Ok(n) if (low..=high).contains(&n) => Ok(n),
            _ => Err(format!("must be a whole number from {low} to {high}")),
        })
    }
}
