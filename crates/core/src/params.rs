//! `name:key=value,key=value`: how parameters ride on a probe's or load's name.

use std::collections::BTreeMap;
use std::fmt;

use thiserror::Error;

use crate::phases::element_end;

/// The load whose parameter is a command line: all that follows the colon, whatever is in it.
pub const COMMAND: &str = "cmd";

/// A name with its parameters, such as `wakeup:timer=posix,interval=500us`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Named {
    /// The name before the colon.
    pub name: String,
    /// Its parameters.
    pub params: BTreeMap<String, String>,
}

/// Why a list of probes or loads could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParamError {
    /// Nothing before the colon, comma or plus.
    #[error("an empty name in \"{0}\"")]
    EmptyName(String),
    /// A parameter is not `key=value`.
    #[error("\"{0}\" is not of the form key=value")]
    NotKeyValue(String),
    /// A parameter is given twice.
    #[error("parameter {0} is given twice")]
    Twice(String),
}

impl Named {
    /// Reads `name` or `name:key=value,…`. A bare first word after the colon is the
    /// value of `main_key`, as in `hackbench:4`; in `cmd:COMMAND` everything after the
    /// colon is the command.
    ///
    /// # Errors
    /// [`ParamError`] if the text does not have this form.
    pub fn parse(text: &str, main_key: &str) -> Result<Self, ParamError> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let name = name.trim();
        if name.is_empty() {
            return Err(ParamError::EmptyName(text.to_owned()));
        }
        let mut params = BTreeMap::new();
        if name == COMMAND {
            params.insert("command".to_owned(), rest.trim().to_owned());
            return Ok(Self { name: name.to_owned(), params });
        }
        for (i, part) in rest.split(',').filter(|part| !part.is_empty()).enumerate() {
            let (key, value) = match part.split_once('=') {
                Some((key, value)) if !key.trim().is_empty() => (key.trim(), value.trim()),
                None if i == 0 && !main_key.is_empty() => (main_key, part.trim()),
                _ => return Err(ParamError::NotKeyValue(part.to_owned())),
            };
            if params.insert(key.to_owned(), value.to_owned()).is_some() {
                return Err(ParamError::Twice(key.to_owned()));
            }
        }
        Ok(Self { name: name.to_owned(), params })
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if self.name == COMMAND {
            return write!(f, ":{}", self.params.get("command").map_or("", String::as_str));
        }
        for (i, (key, value)) in self.params.iter().enumerate() {
            write!(f, "{}{key}={value}", if i == 0 { ':' } else { ',' })?;
        }
        Ok(())
    }
}

/// Splits a list of cells at `,` but not inside the parameters of a name:
/// `none,hackbench:groups=4,loops=20+flood` has two elements. A comma belongs to the
/// parameters if `key=value` follows it; everything after `cmd:` is one command, which ends with
/// its phase if it is in a schedule ([`crate::phases`]).
#[must_use]
pub fn split_list(text: &str) -> Vec<String> {
    let mut list: Vec<String> = Vec::new();
    let mut rest = text;
    loop {
        let end = element_end(rest);
        let (part, behind) = rest.split_at(end);
        match list.last_mut() {
            Some(last) if last.contains(':') && is_key_value(part) => {
                last.push(',');
                last.push_str(part);
            }
            _ => list.push(part.to_owned()),
        }
        match behind.strip_prefix(',') {
            Some(next) => rest = next,
            None => return list,
        }
    }
}

fn is_key_value(part: &str) -> bool {
    part.split_once('=').is_some_and(|(key, _)| {
        !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_splits_between_names_only() {
        for (text, expected) in [
            ("none,paper", vec!["none", "paper"]),
            (
                "hackbench:groups=4,loops=20+flood,none",
                vec!["hackbench:groups=4,loops=20+flood", "none"],
            ),
            ("none,cmd:dd if=/dev/zero,of=x", vec!["none", "cmd:dd if=/dev/zero,of=x"]),
            ("flood+cmd:a,b", vec!["flood+cmd:a,b"]),
            ("", vec![""]),
        ] {
            assert_eq!(split_list(text), expected, "{text}");
        }
    }

    #[test]
    fn parameters_ride_on_the_name() {
        let named = Named::parse("hackbench:4,loops=20", "groups").unwrap();
        assert_eq!(named.to_string(), "hackbench:groups=4,loops=20");
        assert_eq!(
            Named::parse("cmd:make -j4, please", "").unwrap().params["command"],
            "make -j4, please"
        );
        assert_eq!(Named::parse(":x=1", ""), Err(ParamError::EmptyName(":x=1".into())));
        assert_eq!(Named::parse("a:x=1,x=2", ""), Err(ParamError::Twice("x".into())));
        assert_eq!(Named::parse("a:x", ""), Err(ParamError::NotKeyValue("x".into())));
    }
}
