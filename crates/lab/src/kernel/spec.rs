//! Kernels as they are requested.

use std::fmt;
use std::path::PathBuf;

use anyhow::{Result, bail};
use punctual_core::preemption::Model;

use crate::arch::Arch;

/// The ways to name a kernel.
pub const FORMS: &str = "  \
  debian:MODEL                                 the distribution's kernel, with this preemption model:
                                               none, voluntary, full, lazy or rt
  debian:6.1.0-56[-MODEL]                      this kernel of Debian's
  PATH                                         a vmlinuz, bzImage, Image or vmlinux file, or the
                                               build tree of a kernel";

/// A kernel as requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Spec {
    Debian(Debian),
    Path(PathBuf),
}

/// A particular Debian kernel, or the newest one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Debian {
    /// Its ABI name, such as `6.1.0-56`; `None`: the newest.
    pub(super) abi: Option<String>,
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
            return Ok(Self::Debian(Debian { abi: None, model: Some(model) }));
        }
        let (abi, model) = match rest.rsplit_once('-').map(|(abi, name)| (abi, model(name))) {
            Some((abi, Some(model))) => (abi, Some(model)),
            _ => (rest, None),
        };
        if !is_abi(abi) {
            bail!("{text} is not the name of a kernel; use one of\n{FORMS}");
        }
        Ok(Self::Debian(Debian { abi: Some(abi.to_owned()), model }))
    }
}

impl Debian {
    pub(super) fn is_rt(&self) -> bool {
        self.model == Some(Model::Rt)
    }
}

impl fmt::Display for Debian {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("debian:")?;
        match (&self.abi, self.model) {
            (Some(abi), None) => f.write_str(abi),
            (Some(abi), Some(model)) => write!(f, "{abi}-{model}"),
            (None, model) => f.write_str(model.map_or("", Model::as_str)),
        }
    }
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

/// ABI name of a package and whether it is the real-time flavour; `None` for other packages
/// (debug symbols, unsigned, cloud, other architectures).
pub(super) fn of_package(name: &str, arch: Arch) -> Option<(&str, bool)> {
    let flavour =
        name.strip_prefix("linux-image-")?.strip_suffix(arch.debian())?.strip_suffix('-')?;
    let abi = flavour.strip_suffix("-rt");
    Some((abi.unwrap_or(flavour), abi.is_some())).filter(|(abi, _)| is_abi(abi))
}

/// Orders versions by their numbers: `6.1.0-9` before `6.1.0-56`. Unlike dpkg, it does not
/// know `~`.
pub(super) fn version_key(text: &str) -> Vec<(u64, &str)> {
    let is_digit = |character: char| character.is_ascii_digit();
    let mut key = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (number, behind) = rest.split_at(rest.find(|c| !is_digit(c)).unwrap_or(rest.len()));
        let (word, behind) = behind.split_at(behind.find(is_digit).unwrap_or(behind.len()));
        key.push((number.parse().unwrap_or(0), word));
        rest = behind;
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_read_and_print() {
        for (text, abi, model) in [
            ("debian:none", None, Some(Model::None)),
            ("debian:rt", None, Some(Model::Rt)),
            ("debian:6.1.0-47", Some("6.1.0-47"), None),
            ("debian:6.1.0-47-rt", Some("6.1.0-47"), Some(Model::Rt)),
            ("debian:6.12.43+deb13-full", Some("6.12.43+deb13"), Some(Model::Full)),
            ("debian:6.12-rc6-voluntary", Some("6.12-rc6"), Some(Model::Voluntary)),
        ] {
            let debian = Debian { abi: abi.map(String::from), model };
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
            "debian:6.12",
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

    #[test]
    fn versions_are_in_the_order_of_their_numbers() {
        let mut versions =
            ["6.1.0-56", "6.12.43+deb13", "6.1.0-9", "6.1.192-10", "6.1.192-2", "6.12.5+deb13"];
        versions.sort_by(|a, b| version_key(a).cmp(&version_key(b)));
        assert_eq!(
            versions,
            ["6.1.0-9", "6.1.0-56", "6.1.192-2", "6.1.192-10", "6.12.5+deb13", "6.12.43+deb13"]
        );
    }
}
