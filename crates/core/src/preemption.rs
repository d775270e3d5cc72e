//! Preemption models of the kernel: their names, and what a kernel says about its own.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A preemption model, named as `debugfs:sched/preempt` and the parameter `preempt=` name it.
///
/// Read from a record, any other name is [`Model::Unknown`]; read from what a person wrote
/// ([`FromStr`]), it is an error.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Model {
    /// The kernel gives a CPU up only where it sleeps or returns to user space.
    None,
    /// As `none`, and at explicit preemption points too.
    Voluntary,
    /// Anywhere outside critical sections.
    Full,
    /// As `full`, but ordinary tasks wait for the tick or the return to user space.
    Lazy,
    /// `PREEMPT_RT`: most critical sections can be preempted too.
    Rt,
    /// The kernel does not say.
    #[default]
    #[serde(other)]
    Unknown,
}

/// A name that no preemption model has.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no preemption model \"{0}\"; there are none, voluntary, full, lazy and rt")]
pub struct UnknownModel(pub String);

impl Model {
    /// Every model that has a name, from the least preemptible to the most.
    pub const ALL: [Self; 5] = [Self::None, Self::Voluntary, Self::Full, Self::Lazy, Self::Rt];

    /// Its name in records and on command lines.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Voluntary => "voluntary",
            Self::Full => "full",
            Self::Lazy => "lazy",
            Self::Rt => "rt",
            Self::Unknown => "unknown",
        }
    }

    /// The configuration option that selects it, without `CONFIG_`, which is also what kernel
    /// developers call it; absent for [`Model::Unknown`].
    #[must_use]
    pub const fn option(self) -> Option<&'static str> {
        match self {
            Self::None => Some("PREEMPT_NONE"),
            Self::Voluntary => Some("PREEMPT_VOLUNTARY"),
            Self::Full => Some("PREEMPT"),
            Self::Lazy => Some("PREEMPT_LAZY"),
            Self::Rt => Some("PREEMPT_RT"),
            Self::Unknown => Option::None,
        }
    }

    /// The model that a kernel was built with, or the default of one with `PREEMPT_DYNAMIC`;
    /// `is_set` says whether an option (without `CONFIG_`) is `y`.
    #[must_use]
    pub fn built_in(is_set: impl Fn(&str) -> bool) -> Option<Self> {
        // Kernels with PREEMPT_RT can have PREEMPT_LAZY too, and the patches for real time
        // that brought PREEMPT_LAZY set it beside PREEMPT.
        Self::ALL.into_iter().rev().find(|model| model.option().is_some_and(&is_set))
    }

    /// What the version (`uname -v`) says for certain: [`Model::Rt`] or nothing. `PREEMPT`
    /// alone is full or lazy preemption ([`version_has`]).
    #[must_use]
    pub fn in_version(version: &str) -> Option<Self> {
        let words: Vec<&str> = version.split_whitespace().collect();
        // The patches for 5.4 and older print it as two words.
        let old = || words.windows(2).any(|pair| pair == ["PREEMPT", "RT"]);
        (words.contains(&"PREEMPT_RT") || old()).then_some(Self::Rt)
    }

    /// The model that the values of `preempt=` on the kernel's command line select: the last
    /// one that the kernel knows.
    #[must_use]
    pub fn at_boot<'a>(values: impl Iterator<Item = &'a str>) -> Option<Self> {
        values
            .filter_map(|value| value.parse().ok())
            .filter(|model: &Self| model.is_parameter())
            .last()
    }

    /// Whether `preempt=` can select it where the kernel has `PREEMPT_DYNAMIC`.
    #[must_use]
    pub const fn is_parameter(self) -> bool {
        !matches!(self, Self::Rt | Self::Unknown)
    }
}

/// Whether the version (`uname -v`) has this word, such as `PREEMPT` or `PREEMPT_DYNAMIC`.
#[must_use]
pub fn version_has(version: &str, word: &str) -> bool {
    version.split_whitespace().any(|one| one == word)
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Model {
    type Err = UnknownModel;

    fn from_str(text: &str) -> Result<Self, UnknownModel> {
        Self::ALL
            .into_iter()
            .find(|model| model.as_str() == text)
            .ok_or_else(|| UnknownModel(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_and_read() {
        for model in Model::ALL {
            assert_eq!(model.to_string().parse(), Ok(model));
            let json = serde_json::to_string(&model).unwrap();
            assert_eq!(json, format!("\"{model}\""));
            assert_eq!(serde_json::from_str::<Model>(&json).unwrap(), model);
        }
        assert_eq!(format!("{:>5}|", Model::Rt), "   rt|");
    }

    #[test]
    fn another_name_is_unknown_in_a_record_and_refused_from_a_person() {
        assert_eq!(serde_json::to_string(&Model::Unknown).unwrap(), "\"unknown\"");
        for text in ["\"unknown\"", "\"\"", "\"<script>\"", "\"RT\""] {
            assert_eq!(serde_json::from_str::<Model>(text).unwrap(), Model::Unknown, "{text}");
        }
        assert!(serde_json::from_str::<Model>("3").is_err());
        let error = "unknown".parse::<Model>().unwrap_err().to_string();
        for name in ["unknown", "none", "voluntary", "full", "lazy", "rt"] {
            assert!(error.contains(name), "{error}");
        }
    }

    #[test]
    fn the_configuration_tells_the_model_it_was_built_with() {
        let model = |set: &[&str]| Model::built_in(|option| set.contains(&option));
        // linux-image-6.1.0-56-amd64, -rt-amd64 and -arm64.
        assert_eq!(
            model(&["PREEMPT_BUILD", "PREEMPT_VOLUNTARY", "PREEMPT_DYNAMIC"]),
            Some(Model::Voluntary)
        );
        assert_eq!(model(&["PREEMPT_LAZY", "PREEMPT_RT"]), Some(Model::Rt));
        assert_eq!(
            model(&["PREEMPT_VOLUNTARY_BUILD", "PREEMPT_VOLUNTARY"]),
            Some(Model::Voluntary)
        );
        assert_eq!(model(&["PREEMPT", "PREEMPT_LAZY"]), Some(Model::Lazy));
        assert_eq!(model(&["PREEMPT", "PREEMPTION"]), Some(Model::Full));
        assert_eq!(model(&["PREEMPT_NONE"]), Some(Model::None));
        assert_eq!(model(&["PREEMPTION"]), None);
    }

    #[test]
    fn the_version_tells_real_time() {
        for (version, model) in [
            ("#1 SMP PREEMPT_RT Debian 6.1.192-1", Some(Model::Rt)),
            ("#1 SMP PREEMPT RT Debian 4.19", Some(Model::Rt)),
            ("#1 SMP PREEMPT Debian", None),
            ("#1 SMP PREEMPT_DYNAMIC RT", None),
            ("", None),
        ] {
            assert_eq!(Model::in_version(version), model, "{version}");
        }
        assert!(version_has("#1 SMP PREEMPT_DYNAMIC", "PREEMPT_DYNAMIC"));
        assert!(!version_has("#1 SMP PREEMPT_DYNAMIC", "PREEMPT"));
    }

    #[test]
    fn the_last_known_word_of_the_command_line_counts() {
        assert_eq!(Model::at_boot(["none", "full", "bogus", "rt"].into_iter()), Some(Model::Full));
        assert_eq!(Model::at_boot(["rt"].into_iter()), None);
    }
}
