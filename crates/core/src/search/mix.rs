//! Loads that run together.

use std::fmt;

use crate::params::Named;

/// Loads that run together, by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mix(Vec<Named>);

impl Mix {
    /// One load.
    #[must_use]
    pub fn of(load: Named) -> Self {
        Self(vec![load])
    }

    /// Its loads.
    #[must_use]
    pub fn loads(&self) -> &[Named] {
        &self.0
    }

    /// This mix with another load; `None` if it has a load of that name.
    #[must_use]
    pub fn with(&self, load: &Named) -> Option<Self> {
        let at = self.0.binary_search_by(|own| own.name.cmp(&load.name)).err()?;
        let mut loads = self.0.clone();
        loads.insert(at, load.clone());
        Some(Self(loads))
    }

    /// This mix without the load at an index; `None` if none is left.
    #[must_use]
    pub fn without(&self, index: usize) -> Option<Self> {
        let mut loads = self.0.clone();
        (index < loads.len() && loads.len() > 1).then(|| loads.remove(index))?;
        Some(Self(loads))
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.0.iter().map(Named::to_string).collect();
        f.write_str(&texts.join("+"))
    }
}
