//! Kernels as they are requested.

use std::fmt;
use std::path::PathBuf;

use anyhow::{Result, bail};
use punctual_core::preemption::Model;

use super::releases::RELEASES;
use crate::arch::Arch;

/// The ways to name a kernel.
pub const FORMS: &str = "  \
  debian:MODEL             the distribution's kernel, with this preemption model:
                           none, voluntary, full, lazy or rt
  debian:6.12[-MODEL]      the newest 6.12 that Debian has
  debian:trixie[-MODEL]    the kernel of this release of Debian; or of stable, sid,
                           trixie-backports, ...
  debian:6.1.0-56[-MODEL]  this kernel of Debian's
  PATH                     a vmlinuz, bzImage, Image or vmlinux file, or the build
                           tree of a kernel";

/// What the packages of kernels and of their parts begin with. Since 6.19 `linux-image-…` only
/// depends on the others, whose names go on alike.
const PARTS: [&str; 4] = ["linux-image-", "linux-binary-", "linux-modules-", "linux-base-"];

/// A kernel as requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Spec {
    Debian(Debian),
    Path(PathBuf),
}

/// Which of Debian's kernels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Which {
    /// That of this machine's release of Debian, or of the stable one.
    Own,
    /// That of a release or a suite: `trixie`, `stable`, `trixie-backports`.
    Suite(String),
    /// The newest whose version begins like this: `6.12`.
    Series(String),
    /// That with this ABI name: `6.1.0-56`.
    Exact(String),
}

/// A kernel of Debian's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Debian {
    pub(super) which: Which,
    /// The preemption model; `None`: the kernel's default. [`Model::Rt`] is a different package.
    pub(super) model: Option<Model>,
}

impl Spec {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let Some(rest) = text.strip_prefix("debian:") else {
            if text.is_empty() {
                bail!("no kernel is given; use one of\n{FORMS}");
            }
            return Ok(Self::Path(text.into()));
        };
        let model = |name: &str| name.parse::<Model>().ok();
        if let Some(model) = model(rest) {
            return Ok(Self::Debian(Debian { which: Which::Own, model: Some(model) }));
        }
        let (name, model) = match rest.rsplit_once('-').map(|(name, last)| (name, model(last))) {
            Some((name, Some(model))) => (name, Some(model)),
            _ => (rest, None),
        };
        let which = if is_abi(name) {
            Which::Exact(name.to_owned())
        } else if is_series(name) {
            Which::Series(name.to_owned())
        } else if is_suite(name) {
            Which::Suite(name.to_owned())
        } else {
            bail!("{text} is not the name of a kernel; use one of\n{FORMS}");
        };
        Ok(Self::Debian(Debian { which, model }))
    }
}

impl Debian {
    pub(super) fn is_rt(&self) -> bool {
        self.model == Some(Model::Rt)
    }

    /// This model of the kernel with an ABI name.
    pub(super) fn exactly(&self, abi: &str) -> Self {
        Self { which: Which::Exact(abi.to_owned()), model: self.model }
    }
}

impl Which {
    /// Whether a kernel with this ABI name can be meant, by its name alone.
    pub(super) fn admits(&self, abi: &str) -> bool {
        match self {
            Self::Exact(asked) => asked == abi,
            Self::Series(series) => is_of_series(abi, series),
            Self::Own | Self::Suite(_) => true,
        }
    }
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own => Ok(()),
            Self::Suite(name) | Self::Series(name) | Self::Exact(name) => f.write_str(name),
        }
    }
}

impl fmt::Display for Debian {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.which, self.model) {
            (which, None) => write!(f, "debian:{which}"),
            (Which::Own, Some(model)) => write!(f, "debian:{model}"),
            (which, Some(model)) => write!(f, "debian:{which}-{model}"),
        }
    }
}

/// Whether this is the beginning of a version: `6.12` or `6.12.43`.
fn is_series(text: &str) -> bool {
    let mut parts = text.split('.');
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    parts.by_ref().take(4).all(is_number) && parts.next().is_none() && text.contains('.')
}

/// Whether the version of an ABI name begins like this: `6.1.0-56` with `6.1`, but not with `6`.
fn is_of_series(abi: &str, series: &str) -> bool {
    abi.strip_prefix(series).is_some_and(|rest| rest.starts_with(['.', '-', '+', '~']))
}

/// Names of suites that move on from release to release.
const ALIASES: [&str; 7] = [
    "oldoldstable",
    "oldstable",
    "oldstable-backports",
    "stable",
    "stable-backports",
    "testing",
    "unstable",
];

fn is_suite(text: &str) -> bool {
    ALIASES.contains(&text) || RELEASES.iter().any(|release| release.name == text)
}

/// Whether this is the ABI name of a Debian kernel: `6.1.0-56`, `6.12.43+deb13` or `6.12-rc6`,
/// but neither `6.12`, which is a meta package, nor `6.1.0-56-cloud`, which is another
/// flavour.
fn is_abi(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".+~".contains(&byte);
    let part = |part: &str| {
        part.strip_prefix("rc").unwrap_or(part).starts_with(|first: char| first.is_ascii_digit())
            && part.bytes().all(plain)
    };
    text.starts_with(|first: char| first.is_ascii_digit())
        && text.contains(['-', '+'])
        && text.split('-').all(part)
}

/// The package of a kernel: `linux-image-` and its release.
pub(super) fn package_name(abi: &str, rt: bool, arch: Arch) -> String {
    format!("linux-image-{abi}{}-{}", if rt { "-rt" } else { "" }, arch.debian())
}

/// Whether a package is a kernel, a part of one, or depends on one.
pub(super) fn is_part(name: &str) -> bool {
    PARTS.iter().any(|part| name.starts_with(part))
}

/// ABI name of a package and whether it is the real-time flavour; `None` for other packages
/// (debug symbols, unsigned, cloud, other architectures).
pub(super) fn of_package(name: &str, arch: Arch) -> Option<(&str, bool)> {
    let flavour =
        name.strip_prefix("linux-image-")?.strip_suffix(arch.debian())?.strip_suffix('-')?;
    let abi = flavour.strip_suffix("-rt");
    Some((abi.unwrap_or(flavour), abi.is_some())).filter(|(abi, _)| is_abi(abi))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_read_and_print() {
        let series = |name: &str| Which::Series(name.to_owned());
        let suite = |name: &str| Which::Suite(name.to_owned());
        let exact = |name: &str| Which::Exact(name.to_owned());
        for (text, which, model) in [
            ("debian:none", Which::Own, Some(Model::None)),
            ("debian:rt", Which::Own, Some(Model::Rt)),
            ("debian:6.12", series("6.12"), None),
            ("debian:7.3-lazy", series("7.3"), Some(Model::Lazy)),
            ("debian:6.12.43-rt", series("6.12.43"), Some(Model::Rt)),
            ("debian:trixie", suite("trixie"), None),
            ("debian:sid-full", suite("sid"), Some(Model::Full)),
            ("debian:stable-backports-rt", suite("stable-backports"), Some(Model::Rt)),
            ("debian:6.1.0-47", exact("6.1.0-47"), None),
            ("debian:6.1.0-47-rt", exact("6.1.0-47"), Some(Model::Rt)),
            ("debian:6.12.43+deb13-full", exact("6.12.43+deb13"), Some(Model::Full)),
            ("debian:6.12-rc6-voluntary", exact("6.12-rc6"), Some(Model::Voluntary)),
        ] {
            let debian = Debian { which, model };
            assert_eq!(debian.to_string(), text);
            assert_eq!(Spec::parse(text).unwrap(), Spec::Debian(debian));
        }
        assert_eq!(Spec::parse("../linux").unwrap(), Spec::Path("../linux".into()));
        assert_eq!(Spec::parse("./debian:rt").unwrap(), Spec::Path("./debian:rt".into()));
    }

    #[test]
    fn other_specs_are_refused_with_the_forms() {
        for text in [
            "",
            "debian:",
            "debian:realtime",
            "debian:-rt",
            "debian:6",
            "debian:6.",
            "debian:6.1.2.3.4",
            "debian:buster",
            "debian:6.1.0-56-cloud",
            "debian:6.1.0-56-rt-none",
            "debian:6.1/../x",
            "debian:6.1.0 -o",
        ] {
            let error = Spec::parse(text).unwrap_err().to_string();
            assert!(error.ends_with(FORMS), "{text}: {error}");
        }
    }

    #[test]
    fn a_series_is_the_beginning_of_a_version() {
        let of = |abi, series: &str| Which::Series(series.to_owned()).admits(abi);
        assert!(of("6.1.0-56", "6.1") && of("6.12.43+deb13", "6.12") && of("6.12-rc6", "6.12"));
        assert!(of("6.12.43+deb13", "6.12.43"));
        assert!(!of("6.12.43+deb13", "6.1") && !of("6.12.43+deb13", "6.12.4"));
    }

    #[test]
    fn packages_have_the_names_of_debian() {
        for (abi, rt, arch, name) in [
            ("6.1.0-56", false, Arch::X86_64, "linux-image-6.1.0-56-amd64"),
            ("6.1.0-56", true, Arch::X86_64, "linux-image-6.1.0-56-rt-amd64"),
            ("6.12.43+deb13", true, Arch::Aarch64, "linux-image-6.12.43+deb13-rt-arm64"),
        ] {
            assert_eq!(package_name(abi, rt, arch), name);
            assert_eq!(of_package(name, arch), Some((abi, rt)));
        }
        for name in [
            "linux-image-amd64",
            "linux-image-rt-amd64",
            "linux-image-6.12-rt-amd64",
            "linux-image-6.1.0-56-cloud-amd64",
            "linux-image-6.1.0-56-amd64-dbg",
            "linux-image-6.1.0-56-amd64-unsigned",
            "linux-image-6.1.0-56-arm64",
        ] {
            assert_eq!(of_package(name, Arch::X86_64), None, "{name}");
        }
    }
}
