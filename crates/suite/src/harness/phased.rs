//! Load specifications that change on a schedule: `none for 5s then hackbench for 5s`.

use punctual_core::phases::{self, Phase};

use super::spec::{LoadSpec, SpecError};

/// A load specification with its phases; one that does not change has a single phase.
#[derive(Debug, Clone)]
pub struct PhasedSpec {
    canonical: String,
    phases: Vec<PhaseSpec>,
}

/// One phase of a load.
#[derive(Debug, Clone)]
pub struct PhaseSpec {
    /// Its load.
    pub load: LoadSpec,
    /// How long it lasts, ns; `u64::MAX` if the load does not change.
    pub for_ns: u64,
}

impl PhasedSpec {
    /// Parses a load or a schedule of loads.
    ///
    /// # Errors
    /// [`SpecError`] says what is wrong with the schedule, or names the unknown load or parameter
    /// and lists the known ones.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let Some(phases) = phases::parse(text).map_err(|error| SpecError(error.to_string()))?
        else {
            let load = LoadSpec::parse(text)?;
            let canonical = load.canonical().to_owned();
            return Ok(Self { canonical, phases: vec![PhaseSpec { load, for_ns: u64::MAX }] });
        };
        let mut parsed = Vec::new();
        let mut written = Vec::new();
        for Phase { load, for_ns } in phases {
            let load = LoadSpec::parse(&load)?;
            written.push(Phase { load: load.canonical().to_owned(), for_ns });
            parsed.push(PhaseSpec { load, for_ns });
        }
        Ok(Self { canonical: phases::text(&written), phases: parsed })
    }

    /// The text of a load or schedule with a parameter for each part that does not have it
    /// ([`LoadSpec::with`]).
    ///
    /// # Errors
    /// [`SpecError`] as for [`PhasedSpec::parse`], or for a part that cannot have it.
    pub fn with(text: &str, param: &str, value: &str) -> Result<String, SpecError> {
        let parsed = phases::parse(text).map_err(|error| SpecError(error.to_string()))?;
        let Some(parsed) = parsed else {
            return LoadSpec::with(text, param, value);
        };
        let with = |Phase { load, for_ns }| {
            LoadSpec::with(&load, param, value).map(|load| Phase { load, for_ns })
        };
        let phases = parsed.into_iter().map(with).collect::<Result<Vec<_>, _>>()?;
        Ok(phases::text(&phases))
    }

    /// The canonical form: equal loads have equal keys.
    #[must_use]
    pub fn canonical(&self) -> &str {
        &self.canonical
    }

    /// Its phases, in order; at least one.
    #[must_use]
    pub fn phases(&self) -> &[PhaseSpec] {
        &self.phases
    }

    /// Whether it changes.
    #[must_use]
    pub fn changes(&self) -> bool {
        self.phases.len() > 1
    }

    /// How long its phases take once, ns; `None` if it does not change.
    #[must_use]
    pub fn length_ns(&self) -> Option<u64> {
        let sum = |sum: u64, phase: &PhaseSpec| sum.saturating_add(phase.for_ns);
        self.changes().then(|| self.phases.iter().fold(0, sum))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_schedules_are_written_alike() {
        let canonical = |text: &str| PhasedSpec::parse(text).unwrap().canonical().to_owned();
        assert_eq!(
            canonical("none for 120s then tree+hackbench:04,loops=100 for 5 then cmd: a for 3s"),
            "none for 2min then hackbench:groups=4+tree for 5s then cmd:a for 3s"
        );
        assert_eq!(canonical("tree+copy:jobs=1"), "copy+tree");
        let placed = PhasedSpec::with("none for 5s then copy+tree for 2s", "cpus", "0+2");
        assert_eq!(placed.unwrap(), "none for 5s then copy:cpus=0+2+tree:cpus=0+2 for 2s");
        for (text, expected) in [
            ("none for 5s then hackbensh for 5s", "did you mean \"hackbench\"?"),
            ("none for 5s then none+copy for 5s", "cannot be joined"),
            ("none for 5s then copy", "load \"copy\" has no duration"),
        ] {
            let error = PhasedSpec::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
